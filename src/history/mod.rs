//! Figures over runs: one point for each live run or new recording, and where a series of them changed.
//!
//! On disk a history is JSON lines, one [`Point`] per line, in the order of addition. It can be committed, cached and
//! merged, because a point has a stable identity and counts once. A reader rejects a point of a newer version and
//! ignores unknown fields. Replays add nothing: their recording is a point already.
//!
//! Points are compared only under equal [`Conditions`]: another model, service, concurrency or set of cases begins a
//! new series, and so does another target of a criterion. History is for information: no gate depends on it.

mod gather;
mod store;
mod trend;

pub(crate) use gather::{Gather, NoPoint};
pub(crate) use store::{EDITED, HistoryError, NO_DIGEST, merge};
pub use store::{append, doubtful, load};
pub(crate) use trend::{Change, Line, RECENT, Series, Shown, Unit, series};

use crate::trace::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The newest version that this build reads: that of a point with a quantile that got no answer.
pub(crate) const POINT_VERSION: u32 = 2;
/// The version of any other point, which older builds read, too.
const ANSWERED_VERSION: u32 = 1;

/// The label with the number of re-run trials; figures use first draws.
const RUN_AGAIN: &str = "run again";

/// Default file name of a project's history.
pub(crate) const HISTORY: &str = "history.jsonl";

/// Figures of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Format version.
    pub version: u32,
    /// The identity of the run: unique for a live run, otherwise that of its recordings.
    pub id: String,
    /// Time of the run or recording (RFC 3339, UTC).
    pub at: String,
    /// Conditions of the run.
    pub conditions: Conditions,
    /// User-defined labels: `release` to `1.4.0`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The scenarios, by name; empty in points of older builds.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub scenarios: BTreeSet<String>,
    /// Number of trials.
    pub trials: u64,
    /// Rates of the criteria that measured something.
    pub rates: Vec<Rate>,
    /// The times of turns; `None` when none ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<Times>,
    /// Warning about its line in the file: edited by hand, or without a digest. Empty for an unchanged line.
    #[serde(skip)]
    pub doubt: &'static str,
}

impl Point {
    /// Whether no part of a figure exceeds its whole, and no median exceeds the 95th percentile.
    fn is_possible(&self) -> bool {
        self.rates.iter().all(|rate| rate.successes <= rate.n)
            && self.times.is_none_or(|times| times.ranks()[0] <= times.ranks()[1])
    }

    /// The scenarios, by name; for a point that does not list them, those with gates in it.
    fn scenarios(&self) -> BTreeSet<String> {
        if !self.scenarios.is_empty() {
            return self.scenarios.clone();
        }
        let gates = self.rates.iter().filter_map(|rate| rate.key.split_once('/'));
        gates.map(|(scenario, _)| scenario.to_owned()).collect()
    }
}

/// Conditions that two comparable points share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Conditions {
    /// `REPLAYED` for a recording, which keeps its recorded times, or `LIVE`.
    pub mode: String,
    /// The requested models.
    pub models: BTreeSet<String>,
    /// Services that answered.
    pub answered_by: BTreeSet<String>,
    /// Number of concurrent trials.
    pub concurrency: u16,
    /// Digest of the cases, flows and variants.
    pub cases: String,
}

/// One criterion's rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// The criterion's id, `scenario/id` for a scenario's own gate.
    pub key: String,
    pub metric: String,
    pub target: String,
    /// Successes; for a time, units below the limit.
    pub successes: u64,
    /// Number of units.
    pub n: u64,
}

/// The times of turns, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// Number of turns, answered or not.
    pub n: u64,
    /// Median, nearest rank; `None` if it falls on a turn without an answer.
    pub p50_us: Option<u64>,
    /// 95th percentile, likewise.
    pub p95_us: Option<u64>,
}

impl Times {
    /// Both by length: no answer is longer than any.
    fn ranks(self) -> [u64; 2] {
        [self.p50_us, self.p95_us].map(|us| us.unwrap_or(u64::MAX))
    }
}

/// Name of a mode in conditions.
fn mode_word(mode: Mode) -> String {
    mode.to_string()
}
