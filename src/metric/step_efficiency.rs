//! What a turn took, against what its question needs and what was estimated before it.
//!
//! | metric | units | a unit holds when |
//! |---|---|---|
//! | `step_efficiency` | searches of turns whose case declares `optimal_steps` | it is not beyond that number (KL-7.4) |
//! | `estimate_accuracy` | answered turns with an estimate | the tokens used are within a factor of two of the estimate, and not above the maximum, which is within the session's limit (KL-11.1) |
//!
//! Refused and failed searches are steps too. Per conversation, the share of searches up to the optimum is the number of
//! optimal steps divided by the steps taken. The optimum is that of the case: a run that searches in vain cannot call
//! its own detour optimal. Tokens that no completion reports are estimates themselves, and such a trial has no unit.

use super::catalogue::Registered;
use super::expectation::optimal_steps;
use super::trajectory::{hold, logs, reports_tokens};
use super::{Held, Member, Metric, Observation, TrialView, TurnView};
use crate::settings::catalogue::Units;
use crate::trace::{Logged, Role, Trace, What};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[
    Registered::rate("step_efficiency", |_| StepEfficiency::Steps.metric())
        .about("Of the searches for questions whose case declares how many they need, those up to that number.")
        .counted(Units::Unlimited),
    Registered::rate("estimate_accuracy", |_| StepEfficiency::Estimate.metric())
        .about(
            "Of the answered turns with an estimate of their tokens, those that used at least half and at most twice \
             as many.",
        )
        .counted(Units::OfTurns),
];

/// Largest factor between estimate and use.
const FACTOR: u64 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepEfficiency {
    Steps,
    Estimate,
}

/// Searches that a turn tried.
fn searches(turn: &TurnView<'_>, trace: &Trace) -> u32 {
    let is_search = |what: &&&What| match what {
        What::ToolCalled(call) => matches!(trace.role(&call.tool), Role::Knowledge | Role::External),
        What::Searched(_) => true,
        _ => false,
    };
    u32::try_from(turn.events.iter().filter(is_search).count()).unwrap_or(u32::MAX)
}

/// Whether the estimate of a turn was right; `None` without one.
fn estimate(turn: &TurnView<'_>) -> Option<Held> {
    turn.answer()?;
    let estimate = logs(turn).find_map(|entry| match entry {
        Logged::Estimated { most, expected, limit, .. } => Some(((*expected)?, *most, *limit)),
        _ => None,
    });
    let (expected, most, limit) = estimate?;
    let used = logs(turn).fold(0_u64, |sum, entry| match entry {
        Logged::Used { input, output, .. } => sum.saturating_add(*input).saturating_add(*output),
        _ => sum,
    });
    let near = used <= expected.saturating_mul(FACTOR) && expected <= used.saturating_mul(FACTOR);
    Some(if most > limit {
        hold(false, || format!("a maximum of {most} tokens, and the session may use {limit}"))
    } else if used > most {
        hold(false, || format!("{used} tokens used, at most {most} estimated"))
    } else {
        hold(near, || format!("{used} tokens used, {expected} estimated"))
    })
}

impl StepEfficiency {
    fn metric(self) -> Metric {
        let units = if self == Self::Steps { "searches" } else { "turns with an estimate" };
        let members: &[Member] = match self {
            Self::Steps => &[Member::Calls],
            Self::Estimate => &[Member::Log, Member::Completions, Member::Answers],
        };
        Metric { members, ..Metric::new(units, move |view| self.observe(view)) }
    }

    fn observe(self, view: &TrialView<'_>) -> Vec<Observation> {
        if self == Self::Estimate && !view.turns.iter().flat_map(TurnView::models).any(reports_tokens) {
            return Vec::new();
        }
        let mut units = Vec::new();
        for turn in view.turns {
            if self == Self::Estimate {
                units.extend(estimate(turn).map(|held| Observation::of(turn.label(), held)));
                continue;
            }
            let Some(optimal) = optimal_steps(view, turn) else { continue };
            units.extend((1..=searches(turn, view.trace)).map(|step| {
                let why = (step > optimal).then(|| format!("the question needs {optimal}"));
                Observation::unless(format!("{}, search {step}", turn.label()), why)
            }));
        }
        units
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Outcome;
    use crate::metric::sample::{Story, observe};

    fn held(metric: &str, cases: &str, tell: impl Fn(Story) -> Story) -> Vec<(bool, String)> {
        let units = observe(metric, cases, tell);
        units.into_iter().map(|unit| (unit.outcome == Outcome::Success, unit.note)).collect()
    }

    #[test]
    fn the_optimum_is_that_of_the_case_and_refused_searches_are_steps() {
        const TWO: &str = "[{case: a, ask: q, expect: {optimal_steps: 2, answer: {contains: [so]}}}]";
        let detour = |s: Story| {
            s.turn("q").rejected("knowledge_base_search").search(&["a#1"]).search(&["b#1"]).answer("so", &[])
        };
        let units = held("step_efficiency", TWO, detour);
        assert_eq!(units.iter().map(|unit| unit.0).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(units[2].1, "the question needs 2");
        // What the run itself calls optimal has no effect.
        let boasts = |s: Story| detour(s).push(What::Logged(Logged::Efficiency { useful: 3, actual: 3 }));
        assert_eq!(held("step_efficiency", TWO, boasts), units);
        assert_eq!(held("step_efficiency", TWO, |s| s.turn("q").search(&["a#1"]).answer("so", &[])).len(), 1);
        assert!(held("step_efficiency", "[{case: a, ask: q}]", detour).is_empty(), "no optimum is declared");
    }

    fn turn(estimated: (u64, Option<u64>, u64), used: u64) -> Vec<(bool, String)> {
        let (most, expected, limit) = estimated;
        held("estimate_accuracy", "[{case: a, ask: q}]", |s| {
            let log = |s: Story, entry| s.push(What::Logged(entry));
            let s = log(s.turn("q"), Logged::Estimated { most, expected, warn: None, warned: false, limit });
            let (output, session_input, session_output) = (0, used, 0);
            log(s, Logged::Used { input: used, output, session_input, session_output }).deliver("so", &[], 1)
        })
    }

    #[test]
    fn an_estimate_is_judged_by_what_was_used_whatever_it_calls_itself() {
        assert_eq!(turn((9_000, Some(4_000), 10_000), 2_000), [(true, String::new())]);
        assert_eq!(turn((9_000, Some(4_000), 10_000), 8_000), [(true, String::new())]);
        assert_eq!(turn((9_000, Some(4_000), 10_000), 1_999)[0].1, "1999 tokens used, 4000 estimated");
        assert_eq!(turn((9_000, Some(4_000), 10_000), 8_001)[0].1, "8001 tokens used, 4000 estimated");
        assert_eq!(turn((7_000, Some(4_000), 10_000), 7_500)[0].1, "7500 tokens used, at most 7000 estimated");
        assert_eq!(turn((10_000, Some(4_000), 10_000), 4_000), [(true, String::new())], "the whole limit");
        let beyond = "a maximum of 11000 tokens, and the session may use 10000";
        assert_eq!(turn((11_000, Some(4_000), 10_000), 4_000)[0].1, beyond);
        assert!(turn((9_000, None, 10_000), 4_000).is_empty(), "an older trace has a maximum alone");
    }
}
