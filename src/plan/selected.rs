//! What a plan was made from: what was typed, the part that was selected, the recordings that changed.

use crate::trace::text::{count, listed, quote};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Arguments of `ragcheck run` that select its trials and criteria, or the command of `ragcheck exec`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Typed {
    /// Scenario files and folders, relative to the project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Values by option, without its dashes: `only`, `exclude`, `tag`, `flow`, `variant`, `repeat`, `criteria` (relative
    /// to the project), `seed`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, Vec<String>>,
    /// The command that ran the cases, `ragcheck exec -- pytest` for example, if it was not `ragcheck run`. No other command
    /// runs them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<String>,
}

/// The command of `ragcheck exec` with that mode.
pub(crate) fn in_mode(exec: &str, mode: &str) -> String {
    exec.replacen(" -- ", &format!(" --mode {mode} -- "), 1)
}

/// The selection behind a partial plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Number of trials in the whole; 0 if whole scenarios were selected.
    pub of: u64,
    /// The selection as typed: `--only refund-*`; empty if whole scenarios were selected.
    pub by: String,
    /// Whether single cases or trials were selected: these then decide, and rates over all cases do not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cases: bool,
    /// Whether only some of the project's scenarios were selected: criteria that need the others do not decide.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scenarios: bool,
}

/// Planned recordings that differ from those at a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedRecordings {
    /// The commit, as an abbreviated hash.
    pub base: String,
    /// The trials that replay them, then stopping designs, gradings and shared prompts by the names of their files.
    pub trials: Vec<String>,
    /// The baseline of the run, if it differs from that of the commit or is not there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub baseline: String,
}

impl ChangedRecordings {
    /// Largest number of trials that are named.
    const NAMED: usize = 5;

    /// Warns of recordings that differ from those of the base and may have been edited.
    pub(crate) fn words(&self) -> String {
        let base = quote(&self.base, 40);
        let baseline = match self.baseline.as_str() {
            "" => String::new(),
            file => format!("; the baseline {} CHANGED since {base}", quote(file, 200)),
        };
        if self.trials.is_empty() {
            return format!("every recording is as it was at {base}{baseline}");
        }
        let named = listed(self.trials.iter().map(|trial| quote(trial, 200)), Self::NAMED);
        let recordings = count(self.trials.len() as u64, "recording", "recordings");
        format!("{recordings} CHANGED since {base}: {named}{baseline}")
    }
}
