//! What a keyword index forgets: by age, by use, by hand, or by itself as the project file says.

use crate::settings::Forget;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// What to prune: keywords that meet every condition given. Without a condition nothing is pruned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneRule {
    /// Neither indexed nor used since then.
    pub idle_since: Option<Timestamp>,
    /// Used fewer times than this.
    pub fewer_uses_than: Option<u64>,
}

/// Pruning that an index does by itself, at every indexing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upkeep {
    /// Keywords idle for longer than this go …
    pub idle: Duration,
    /// … when they were used fewer times than this; `None`: however often.
    pub fewer_uses_than: Option<u64>,
}

impl Upkeep {
    /// As the project file declares it; `None` where nothing is forgotten.
    pub fn declared(forget: &Forget) -> Option<Self> {
        let idle = forget.after.age()?;
        Some(Self { idle, fewer_uses_than: forget.fewer_uses_than })
    }

    /// What it prunes at that time; `None` where nothing can be so old.
    pub fn at(self, now: Timestamp) -> Option<PruneRule> {
        let idle_since = now.checked_sub(self.idle).ok()?;
        Some(PruneRule { idle_since: Some(idle_since), fewer_uses_than: self.fewer_uses_than })
    }
}

/// What pruning removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pruned {
    /// Keywords.
    pub keywords: usize,
    /// External answers that no keyword led to any more.
    pub results: usize,
}
