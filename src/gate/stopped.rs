//! Report of a run until decided: where it stopped, by which rules, and what that saved.

use crate::trace::text::count;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Decision of one gate in a run until decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sequential {
    /// Condition checked after each pass: `124 units with at most 2 failures`.
    pub rule: String,
    /// Passes of the run.
    pub passes: u32,
    /// Largest number of passes.
    pub max_passes: u32,
    /// The pass after which it was decided, the last that its figures cover; `None` while it is undecided.
    pub decided_after: Option<u32>,
    /// Whether the remaining passes could not have led to a PASS: such a gate is never accepted.
    #[serde(default)]
    pub cannot_pass: bool,
    /// Largest probability of ever passing a rate below the target (less the margin); also that of the lower bound.
    pub alpha_pass: f64,
    /// Largest probability of ever failing a rate that reaches the target; also that of the upper bound.
    pub alpha_fail: f64,
}

impl Sequential {
    /// The end of the gate's sentence; `margin` is the margin needed to pass, as written.
    pub(super) fn ending(&self, margin: Option<&str>) -> String {
        let within = margin.map(|margin| format!(" within its margin of {margin}")).unwrap_or_default();
        match self.decided_after {
            Some(pass) => format!("{within}, decided after pass {pass} of {} ({})", self.max_passes, self.rule),
            None => format!(" after pass {} of {} (it takes {})", self.passes, self.max_passes, self.rule),
        }
    }
}

/// Where a run until decided stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stopped {
    /// Complete passes.
    pub passes: u32,
    /// Largest number of passes.
    pub max_passes: u32,
    /// Trials of those passes.
    pub trials: u64,
    /// Trials of all passes.
    pub max_trials: u64,
    /// The same as a sentence.
    pub sentence: String,
}

impl Stopped {
    /// Creates the report from passes and trials, each with its maximum.
    pub(super) fn new((passes, max_passes): (u32, u32), (trials, max_trials): (u64, u64)) -> Self {
        let of = format!("{trials} of {}", count(max_trials, "trial", "trials"));
        let sentence = if passes < max_passes {
            format!("stopped after pass {passes} of {max_passes}: {of}")
        } else {
            format!("went through all of {}: {of}", count(u64::from(max_passes), "pass", "passes"))
        };
        Self { passes, max_passes, trials, max_trials, sentence }
    }
}
