//! Errors that prevent the evaluation of a run.

use crate::trace::TraceError;

/// Reason why a run cannot be evaluated at all.
#[derive(Debug, thiserror::Error)]
pub enum EvaluationError {
    /// A criterion or gate that cannot be parsed. `id`: its id, prefixed with its scenario for a gate.
    #[error("{id}: {problem}")]
    Criterion { id: String, problem: String },
    /// A plan that contradicts itself.
    #[error("the plan cannot be used: {0}")]
    Plan(String),
    /// A trace of a trial that the plan does not contain.
    #[error("there is a trace of {0}, which the plan does not have: do plan.json and traces.jsonl belong together?")]
    Stranger(String),
    /// Two traces of one trial.
    #[error("there are two traces of {0}: each trial counts once")]
    Twice(String),
    /// A trace made from another plan.
    #[error(
        "the trace of {0} is of another run: its `plan` is not the `id` of plan.json; restore the traces that \
         were written with this plan"
    )]
    Foreign(String),
    /// A trace that contradicts the plan about its trial. `what`: lane, scenario, case or mode.
    #[error("the trace of {trial} contradicts the plan: its {what} is {found}, planned was {planned}")]
    Contradiction { trial: String, what: &'static str, planned: String, found: String },
    /// A grade of an answer that the run does not contain.
    #[error(
        "there is a grade of another answer of {trial}, {turn}: grade the run again with `ragcheck judge`, or delete grades.jsonl"
    )]
    Grade { trial: String, turn: String },
    /// A trace that cannot be read.
    #[error("traces.jsonl, {0}")]
    Trace(#[from] TraceError),
}
