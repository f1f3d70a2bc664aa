//! The verdict on a struck trial.

use super::{CellVerdict, Matrix};
use crate::flow::external::{ANSWER_EMPTY, CRASHED, NO_REPLY};
use crate::gate::{Examined, Verdict};
use crate::settings::{DeclaredFault, FaultKind};
use crate::trace::{EXTERNAL, Trace, TrialEnd, TrialErrorKind, TurnOutcome};
use crate::trial::{Finished, Trial};

/// Texts that faults put in place of an answer: an agent that delivers one took a broken answer for a whole one.
const FAULTY_TEXTS: [&str; 2] = ["Let me look into that.", "The answer begins with"];

/// Whether a struck trial meets what its case expects, and why not.
pub(super) enum Met {
    Passed,
    /// It left its state machine.
    Departed(String),
    /// The first expectation that it does not meet.
    Failed(String),
    /// Undetermined.
    Unknown,
}

impl Matrix<'_, '_> {
    /// Whether a trial meets what its case expects.
    pub(super) fn met(&self, ran: &Finished) -> Met {
        let examined = self.examiner.examine(&ran.trace, &ran.passages);
        let Ok(result) = examined.as_ref().map(Examined::result) else { return Met::Unknown };
        if result.verdict == Verdict::Pass {
            return Met::Passed;
        }
        if let Some(departure) = result.departures.first() {
            return Met::Departed(format!("outside of its state machine: {departure}"));
        }
        let failed = result.checks.iter().find(|check| !check.passed && check.unknown.is_none());
        failed.map_or(Met::Unknown, |check| Met::Failed(format!("{}: {}", check.what, check.seen)))
    }

    /// Verdict on a struck trial, and why.
    pub(super) fn verdict(&self, trial: Trial<'_>, fault: &DeclaredFault, ran: &Finished) -> (CellVerdict, String) {
        let trace = &ran.trace;
        if let TrialEnd::Error(error) = &trace.end {
            let verdict = match error.kind {
                // An agent that did not start has met no fault.
                TrialErrorKind::FaultMissed | TrialErrorKind::AgentUnreached => CellVerdict::NotMeasured,
                _ if is_unrecorded(trace) => CellVerdict::NotRecorded,
                TrialErrorKind::Stopped => CellVerdict::NotRecorded,
                _ => CellVerdict::Wrong,
            };
            return (verdict, error.message.clone());
        }
        match self.met(ran) {
            Met::Passed => return (CellVerdict::Recovered, String::new()),
            Met::Departed(why) => return (CellVerdict::Wrong, why),
            Met::Failed(_) | Met::Unknown => {}
        }
        let (verdict, why) = outcome(trace);
        let settings = self.opened.declared(trial.planned);
        let retries = settings.is_some_and(|settings| settings.limits.transport_retries > 0);
        // A stall may use up the turn, and what an agent outside retries is its own affair.
        let must_recover = fault.fault.is_transient()
            && fault.times == 1
            && retries
            && !trial.planned.is_external()
            && fault.fault != FaultKind::Stall;
        if must_recover && verdict != CellVerdict::Wrong {
            return (CellVerdict::Wrong, format!("one repetition would have been answered, and it ended with: {why}"));
        }
        (verdict, why)
    }
}

pub(super) fn is_unrecorded(trace: &Trace) -> bool {
    use TrialErrorKind::{CassetteMiss, LaneMissing};
    matches!(&trace.end, TrialEnd::Error(error) if matches!(error.kind, CassetteMiss | LaneMissing))
}

/// Verdict on a trial that did not meet its expectations.
fn outcome(trace: &Trace) -> (CellVerdict, String) {
    let ends = trace.events.iter().filter_map(|event| Some(&event.what.ended()?.outcome));
    let outside = trace.lane.flow == EXTERNAL;
    let mut degraded = String::new();
    let mut failed = None;
    for end in ends {
        match end {
            TurnOutcome::Failed { kind, .. } if kind == CRASHED => {
                return (CellVerdict::Wrong, "the agent's process ended".to_owned());
            }
            TurnOutcome::Failed { kind, .. } if kind == NO_REPLY || kind == "timeout" && outside => {
                return (CellVerdict::Wrong, format!("no reply ({kind})"));
            }
            TurnOutcome::Failed { kind, .. } if kind == ANSWER_EMPTY => {
                return (CellVerdict::Wrong, "an empty answer".to_owned());
            }
            TurnOutcome::Failed { kind, message } if kind.is_empty() || message.trim().is_empty() => {
                return (CellVerdict::Wrong, "an error without a message".to_owned());
            }
            TurnOutcome::Failed { kind, message } => {
                failed.get_or_insert_with(|| format!("{kind}: {message}"));
            }
            TurnOutcome::Answered(answer) => {
                let text = answer.text.trim();
                if text.is_empty() {
                    return (CellVerdict::Wrong, "an empty answer".to_owned());
                }
                if FAULTY_TEXTS.iter().any(|faulty| faulty.starts_with(text) || text.contains(faulty)) {
                    return (CellVerdict::Wrong, format!("a broken answer was delivered as the answer: {text}"));
                }
                if degraded.is_empty() {
                    text.chars().take(80).for_each(|letter| degraded.push(letter));
                }
            }
        }
    }
    match failed {
        Some(error) => (CellVerdict::ClearError, error),
        None if degraded.is_empty() => (CellVerdict::Wrong, "no turn ended".to_owned()),
        None => (CellVerdict::Degraded, degraded),
    }
}
