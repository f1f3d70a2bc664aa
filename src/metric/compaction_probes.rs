//! `compaction_probes`: context probes that hold / context probes of turns with a compaction in or before them (KL-5.3).
//!
//! What a compaction must keep is asked for afterwards: the user's question and the probe of the case decide, not a
//! list of phrases by which an agent recognises decisions, and not what the agent logs of them.

use super::catalogue::Registered;
use super::expectation::probed;
use super::trajectory::logs;
use super::{Member, Metric, Observation, TrialView};
use crate::settings::catalogue::Units;
use crate::trace::Logged;
use std::collections::BTreeSet;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("compaction_probes", |_| Metric {
    members: &[Member::Log, Member::Calls, Member::Answers],
    ..Metric::new("probes after a compaction", observe)
})
.about("Of the context probes after a compaction of their conversation, those that hold.")
.counted(Units::Unlimited)];

fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    let (mut compacted, mut units) = (BTreeSet::new(), Vec::new());
    for turn in view.turns {
        if logs(turn).any(|entry| matches!(entry, Logged::Compacted { done: true, .. })) {
            compacted.insert(turn.conversation);
        }
        if !compacted.contains(&turn.conversation) {
            continue;
        }
        let unit = |(what, held)| Observation::of(format!("{}, {what}", turn.label()), held);
        units.extend(probed(view, turn).map(unit));
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Outcome;
    use crate::metric::sample::{Story, observe};
    use crate::trace::What;

    const CASES: &str = "[{case: a, turns: [{ask: 'It is the one by the pond, GL-4417.'}, {ask: Which one is mine?, \
                         expect: {context: {probes: [{any_of: [GL-4417]}]}}}]}]";

    fn held(done: bool, answer: &'static str) -> Vec<bool> {
        let compacted = Logged::Compacted { before: 100, after: 60, done, keeps: Vec::new() };
        let tell = |s: Story| {
            let s = s.turn("It is the one by the pond, GL-4417.").deliver("Noted.", &[], 1);
            s.turn("Which one is mine?").push(What::Logged(compacted.clone())).deliver(answer, &[], 1)
        };
        observe("compaction_probes", CASES, tell).iter().map(|unit| unit.outcome == Outcome::Success).collect()
    }

    #[test]
    fn what_a_compaction_lost_is_seen_by_a_question_whatever_the_log_says_it_keeps() {
        assert_eq!(held(true, "Yours is GL-4417, by the pond."), [true]);
        assert_eq!(held(true, "I do not know which one is yours."), [false]);
        assert!(held(false, "I do not know which one is yours.").is_empty(), "nothing was compacted");
    }
}
