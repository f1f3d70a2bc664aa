//! What is declared about what agents look up: the file that keywords are kept in beyond a run, and its upkeep.

use super::AgeLimit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A keyword index that outlives runs: what a served agent learns is kept there. Trials never use it: each has its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeywordIndexSettings {
    /// Its file, created at the first indexing.
    pub file: String,
    /// What it forgets by itself, at every indexing; without it, only what `ragcheck keywords prune` removes by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forget: Option<Forget>,
}

/// What a keyword index forgets: keywords that meet every condition given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Forget {
    /// Neither indexed nor used for so long: `180d`, `12h`; `never` keeps all.
    pub after: AgeLimit,
    /// Only those that were used fewer times than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fewer_uses_than: Option<u64>,
}
