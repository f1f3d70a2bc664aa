//! Figures over runs: one point for each live run or new recording, and where a series of them changed.
//!
//! On disk a history is JSON lines, one [`Point`] a line, in the order in which they were added; it can be committed,
//! cached and merged, because a point has the identity of what it shows and counts once. A reader refuses a point of a
//! newer version and ignores fields that it does not know. Replays add nothing: what was recorded is a point already.
//!
//! Points are compared only under equal [`Conditions`]: another model, service, concurrency or set of cases begins a new
//! series, and so does another target of a criterion. History is advisory: no gate stands on it.

mod gather;
mod store;
mod trend;

pub(crate) use gather::{Gather, NoPoint};
pub use store::append;
pub use store::doubtful;
pub use store::load;
pub(crate) use store::{EDITED, HistoryError, NO_DIGEST, merge};
pub(crate) use trend::{Change, Line, RECENT, Series, Shown, Unit, series};

use crate::trace::Mode;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Version of a point.
pub(crate) const POINT_VERSION: u32 = 1;

/// The label that says how many trials were run again; figures are of first draws.
const RUN_AGAIN: &str = "run again";

/// The file of a project's history, unless another is named.
pub(crate) const HISTORY: &str = "history.jsonl";

/// What one run showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Format version.
    pub version: u32,
    /// The identity of what was run: a live run's own, or that of its recordings.
    pub id: String,
    /// When it was run or recorded (RFC 3339, UTC).
    pub at: String,
    /// Under which conditions.
    pub conditions: Conditions,
    /// What people call it: `release` to `1.4.0`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The scenarios, by name; empty in points of older builds.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub scenarios: BTreeSet<String>,
    /// Trials.
    pub trials: u64,
    /// The criteria's rates, those that measured something.
    pub rates: Vec<Rate>,
    /// The times of turns; `None` when none ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<Times>,
    /// What its line in the file says against it: edited by hand, or without a digest. Empty for one that is as it was written.
    #[serde(skip)]
    pub doubt: &'static str,
}

impl Point {
    /// Whether no part of a figure is larger than its whole, and no median above the 95th percentile.
    fn is_possible(&self) -> bool {
        self.rates.iter().all(|rate| rate.successes <= rate.n)
            && self.times.is_none_or(|times| times.p50_us <= times.p95_us)
    }

    /// The scenarios, by name; of a point that does not list them, those whose own gates it has.
    fn scenarios(&self) -> BTreeSet<String> {
        if !self.scenarios.is_empty() {
            return self.scenarios.clone();
        }
        let gates = self.rates.iter().filter_map(|rate| rate.key.split_once('/'));
        gates.map(|(scenario, _)| scenario.to_owned()).collect()
    }
}

/// What must be equal for two points to be compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Conditions {
    /// `REPLAYED` for a recording, which keeps the times that it was recorded with, or `LIVE`.
    pub mode: String,
    /// The models that were asked for.
    pub models: BTreeSet<String>,
    /// Who answered.
    pub answered_by: BTreeSet<String>,
    /// Trials at the same time.
    pub concurrency: u16,
    /// Digest of the cases, flows and variants.
    pub cases: String,
}

/// One criterion's rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// The criterion's id, `scenario/id` for a scenario's own gate.
    pub key: String,
    /// Its metric.
    pub metric: String,
    /// Its target.
    pub target: String,
    /// Successes; for a time, units below the limit.
    pub successes: u64,
    /// Units.
    pub n: u64,
}

/// The times of turns, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// Turns that ended.
    pub n: u64,
    /// Median, nearest rank.
    pub p50_us: u64,
    /// 95th percentile, nearest rank.
    pub p95_us: u64,
}

/// How conditions name a mode.
fn mode_word(mode: Mode) -> String {
    mode.to_string()
}
