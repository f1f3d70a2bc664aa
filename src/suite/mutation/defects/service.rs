//! Defects of errors, faults, times and tokens.

use super::edits::{each, keep};
use crate::trace::{Logged, Reply, ToolOutcome, Trace, What};

pub(super) fn errors_swallowed(trace: &mut Trace) -> bool {
    keep(trace, |what| match what {
        What::ToolCalled(call) => matches!(call.outcome, ToolOutcome::Ok(_) | ToolOutcome::Unseen { .. }),
        What::Logged(entry) => !matches!(entry, Logged::Failure { .. } | Logged::Reflection { .. }),
        What::Degraded { .. } => false,
        _ => true,
    })
}

/// Takes out what a fault leaves: failed attempts and calls, feedback, retries, lessons, restarts, what was done without.
pub(super) fn fault_switched_off(trace: &mut Trace) -> bool {
    let mended = each(trace, |what| {
        let attempts = match what {
            What::ModelCalled(called) => &mut called.attempts,
            What::ToolCalled(call) => &mut call.attempts,
            What::Searched(search) => &mut search.attempts,
            _ => return false,
        };
        let before = attempts.len();
        attempts.retain(|attempt| attempt.cause.is_none());
        attempts.len() < before
    });
    let dropped = keep(trace, |what| match what {
        What::ToolCalled(call) => matches!(call.outcome, ToolOutcome::Ok(_) | ToolOutcome::Unseen { .. }),
        What::ModelCalled(called) => !matches!(called.reply, Reply::Failure { .. }),
        What::Logged(entry) => !matches!(
            entry,
            Logged::Failure { .. }
                | Logged::Reflection { .. }
                | Logged::Notice { .. }
                | Logged::Restored { .. }
                | Logged::StartedAfresh { .. }
                | Logged::Recovered { .. }
                | Logged::Compacted { .. }
        ),
        What::Retried(_) | What::FedBack(_) | What::Degraded { .. } => false,
        _ => true,
    });
    mended || dropped
}

pub(super) fn model_slower(trace: &mut Trace) -> bool {
    let mut more = 0;
    each(trace, |what| match what {
        What::TurnStarted { .. } => {
            more = 0;
            false
        }
        What::ModelCalled(called) => {
            more += called.took_us * 9;
            called.took_us *= 10;
            true
        }
        What::TurnEnded(end) => {
            end.took_us += more;
            false
        }
        _ => false,
    })
}

pub(super) fn tokens_times_a_hundred(trace: &mut Trace) -> bool {
    each(trace, |what| match what {
        What::ModelCalled(called) => match &mut called.reply {
            Reply::Completion(completion) => {
                let known = completion.input_tokens.is_some();
                for tokens in [&mut completion.input_tokens, &mut completion.output_tokens].into_iter().flatten() {
                    *tokens = tokens.saturating_mul(100);
                }
                known
            }
            Reply::Failure { .. } => false,
        },
        _ => false,
    })
}
