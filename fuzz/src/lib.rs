//! What several targets do: a file of another agent's traces, judged, as `ragcheck score --import` does it.

use ragcheck::internals::suite::evaluation::{ExaminedTrace, RunEvaluator};
use ragcheck::internals::suite::import::{Format, Imported};
use ragcheck::{EvaluatedRun, Trace, read_traces};
use std::sync::Arc;

pub mod page;
pub mod table;

/// Imports a text and judges it; `None` if it is refused.
///
/// # Panics
/// If a trace does not read back as it was written, or what was imported cannot be judged.
pub fn judged(format: Format, text: &[u8]) -> Option<EvaluatedRun> {
    let read = match format.read("fuzz.json", text, None, None) {
        Ok(read) => read,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return None;
        }
    };
    assert!(!read.summary().is_empty());
    let Imported { plan, traces, passages, .. } = read;
    assert_eq!(plan.trials.len(), traces.len());
    let plan = Arc::new(plan);
    let mut evaluator = RunEvaluator::begin(&plan).expect("the default criteria are valid");
    let examiner = evaluator.examiner();
    for (trace, passages) in traces.iter().zip(&passages) {
        let examined = ExaminedTrace::of(&examiner, trace, passages);
        let back: Vec<Trace> = read_traces(examined.line.as_slice()).collect::<Result<_, _>>().expect("reads back");
        assert_eq!(back.as_slice(), std::slice::from_ref(trace));
        evaluator.add(Some(trace), passages, examined).expect("a trial of the plan");
    }
    Some(evaluator.finish())
}
