//! Units of a criterion's rate: single units, with a planned or observed number per conversation, or conversations.

use super::tally::Tally;
use crate::plan::Plan;
use crate::scenario::criteria::{Estimand, Per};
use crate::scenario::{Criterion, ReadCriterion};
use crate::settings::catalogue::Units;
use crate::stats::betting::Stakes;
use crate::stats::{Clusters, Sample};
use crate::trace::Mode;
use std::collections::BTreeMap;

/// What is counted, and what is known in advance about the number of units per conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    /// Units; the script determines their number.
    Planned,
    /// Units; the agent's behaviour determines their number, up to the limit. `None` means no limit.
    Outcome(Option<u64>),
    /// Conversations, each by its share of good units.
    Conversations(Size),
}

/// Number of units per conversation, where conversations are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// Determined by the script.
    Planned,
    /// At most one.
    One,
    /// Determined by the agent's behaviour.
    Outcome,
}

impl Counting {
    /// How `written` counts in this plan, over one scenario or all.
    pub(super) fn of(plan: &Plan, written: &Criterion, read: &ReadCriterion, scenario: Option<usize>) -> Self {
        // In a log, the behaviour of users and agents determines the number of turns.
        let imported = plan.mode == Some(Mode::Imported);
        let planned = read.metric.entry.units == Units::Planned && !imported;
        let per = if imported { written.per.unwrap_or(Per::Conversation) } else { read.per };
        let most = || written.most.map(u64::from).or_else(|| most(plan, read.metric.entry.units, scenario));
        match per {
            Per::Unit if planned => Self::Planned,
            Per::Unit => Self::Outcome(most()),
            Per::Conversation if planned => Self::Conversations(Size::Planned),
            Per::Conversation if most() == Some(1) => Self::Conversations(Size::One),
            Per::Conversation => Self::Conversations(Size::Outcome),
        }
    }

    /// Whether each conversation has the same weight.
    pub(super) fn per_conversation(self) -> bool {
        matches!(self, Self::Conversations(_))
    }

    /// The value of `per` in criteria.
    pub(super) fn word(self) -> &'static str {
        if self.per_conversation() { "conversation" } else { "unit" }
    }

    /// Whether units are evaluated one by one between these passes: no conversation has more than one, by the plan or
    /// by a limit.
    pub(super) fn is_single(self, passes: &[Clusters]) -> bool {
        match self {
            Self::Planned | Self::Conversations(Size::Planned) => passes.iter().all(Clusters::is_single),
            Self::Outcome(most) => most == Some(1) && passes.iter().all(Clusters::is_single),
            Self::Conversations(size) => size == Size::One,
        }
    }

    /// The bets on passes; `None` if nothing bounds the rate.
    pub(super) fn stakes(self, passes: &[Clusters]) -> Option<Stakes> {
        match self {
            Self::Planned => Some(Stakes::Planned),
            Self::Outcome(most) => {
                most.filter(|most| passes.iter().all(|pass| pass.largest() <= *most)).map(Stakes::Limited)
            }
            Self::Conversations(_) => Some(Stakes::Means),
        }
    }

    /// The sample behind the rate; `first_alike` maps each case to the first one with the same input.
    pub(super) fn sample(
        self,
        tally: &Tally,
        estimand: Estimand,
        first_alike: &BTreeMap<(usize, usize), usize>,
    ) -> Sample {
        if estimand == Estimand::FixedSuite {
            let clusters = &tally.clusters;
            return match self {
                Self::Planned => Sample::Fixed(clusters.clone()),
                Self::Outcome(most) => Sample::Limited { clusters: clusters.clone(), most },
                Self::Conversations(_) => Sample::conversations(clusters),
            };
        }
        let mut cases: BTreeMap<Option<&usize>, Clusters> = BTreeMap::new();
        for (case, clusters) in &tally.by_case {
            cases.entry(first_alike.get(case)).or_default().absorb(clusters);
        }
        match self {
            // All conversations of a case are then one cluster.
            Self::Outcome(most) => {
                let longest = cases.values().map(Clusters::number).max().unwrap_or(1);
                let over = |most: u64| cases.values().any(|case| case.largest() > most);
                let most = most.filter(|most| !over(*most)).map(|most| most.saturating_mul(longest));
                let clusters = cases.values().map(|case| (case.good(), case.units())).collect();
                Sample::Limited { clusters, most }
            }
            Self::Planned | Self::Conversations(_) => Sample::cases(cases.values()),
        }
    }
}

/// The largest number of units of one conversation, where a criterion is about units whose number is an outcome; `None`
/// for other criteria, and where nothing limits it.
pub(crate) fn most_units(
    plan: &Plan,
    written: &Criterion,
    read: &ReadCriterion,
    scenario: Option<usize>,
) -> Option<u64> {
    match Counting::of(plan, written, read, scenario) {
        Counting::Outcome(most) => most,
        Counting::Planned | Counting::Conversations(_) => None,
    }
}

/// The largest number of units per conversation, by the script and the limits.
fn most(plan: &Plan, units: Units, scenario: Option<usize>) -> Option<u64> {
    if plan.mode == Some(Mode::Imported) {
        return None;
    }
    let mut most = 0;
    for (_, of) in plan.scenarios.iter().enumerate().filter(|(at, _)| scenario.is_none_or(|only| only == *at)) {
        let turns = of.cases.iter().map(|case| case.case.turns().count() as u64).max().unwrap_or(0);
        let each = match units {
            Units::Planned | Units::OfTurns => 1,
            Units::OfCompletions => {
                let limits = of.variants.iter().map(|one| one.settings.as_ref().map(|own| own.limits.model_calls));
                u64::from(limits.collect::<Option<Vec<u32>>>()?.into_iter().max().unwrap_or(0))
            }
            Units::Unlimited => return None,
        };
        most = most.max(turns.saturating_mul(each));
    }
    Some(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::catalogue;
    use crate::metric::sample::plan;

    fn counting(cases: &str, criterion: &str, mode: Option<Mode>) -> Counting {
        let mut plan = plan(cases, &format!("[{{id: C, kind: confidence, {criterion}}}]"), 1);
        plan.mode = mode;
        let written = &plan.criteria.criteria[0];
        let read = written.read(&catalogue::entries()).expect("a criterion");
        Counting::of(&plan, written, &read, None)
    }

    #[test]
    fn what_the_script_fixes_is_counted_by_unit_and_an_outcome_by_conversation() {
        let of = |criterion: &str| counting("[{case: a, turns: [{ask: q}, {ask: r}]}]", criterion, None);
        assert_eq!(of("metric: turn_success_rate, target: '>= 95%'"), Counting::Planned);
        assert_eq!(of("metric: latency_p95, target: '<= 10s'"), Counting::Planned);
        for metric in ["retry_recovery", "tenant_isolation", "citation_precision", "citation_validity"] {
            let found = of(&format!("metric: {metric}, target: '>= 95%'"));
            assert_eq!(found, Counting::Conversations(Size::Outcome), "{metric}");
        }
        let planned = of("metric: turn_success_rate, target: '>= 95%', per: conversation");
        assert_eq!(planned, Counting::Conversations(Size::Planned));
    }

    #[test]
    fn the_most_units_of_a_conversation_are_written_or_follow_from_the_turns() {
        let two = "[{case: a, turns: [{ask: q}, {ask: r}]}]";
        let validity = "metric: citation_validity, target: '>= 95%', per: unit";
        assert_eq!(counting(two, validity, None), Counting::Outcome(Some(2)));
        let calls = "metric: verbatim_query_rate(lookup), target: '<= 10%', per: unit, most: 8";
        assert_eq!(counting(two, calls, None), Counting::Outcome(Some(8)));
        let one = counting("[{case: a, ask: q}]", "metric: citation_validity, target: '>= 95%'", None);
        assert_eq!(one, Counting::Conversations(Size::One));
    }

    #[test]
    fn no_script_says_how_many_turns_a_conversation_of_a_log_has() {
        let of = |per: &str| {
            let criterion = format!("metric: turn_success_rate, target: '>= 95%'{per}");
            counting("[{case: a, ask: q}]", &criterion, Some(Mode::Imported))
        };
        assert_eq!(of(""), Counting::Conversations(Size::Outcome));
        assert_eq!(of(", per: unit"), Counting::Outcome(None));
        assert_eq!(of(", per: unit, most: 40"), Counting::Outcome(Some(40)));
    }
}
