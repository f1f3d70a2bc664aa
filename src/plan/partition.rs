//! Partitions of a run: each takes the trials that a hash of their ids gives it, so that machines share a run without
//! speaking to each other. A trial stays in its partition when others are added.
//!
//! The plan of a partition lists all trials of the run, and [`Plan::partition`] says which of them it runs. It has the
//! id of the whole plan, which its traces carry: `ragcheck merge` puts them together as they are. A build that does not
//! know partitions takes the other trials for trials that were not run, which is an ERROR.

use super::{Part, Plan, PlannedTrial};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Largest number of partitions.
const MOST: u32 = 10_000;

/// One partition of a run: trials whose hash, modulo `of`, is `number - 1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Partition {
    /// Which partition, from 1.
    pub number: u32,
    /// Number of partitions.
    pub of: u32,
}

/// Why a text names no partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "write `hash:3/8` for the third of eight partitions: from 1 to the number of partitions, which is {MOST} at most"
)]
pub struct NoPartition;

impl FromStr for Partition {
    type Err = NoPartition;

    fn from_str(text: &str) -> Result<Self, NoPartition> {
        let (number, of) = text.strip_prefix("hash:").and_then(|rest| rest.split_once('/')).ok_or(NoPartition)?;
        let whole = |text: &str| text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        let (number, of): (u32, u32) = whole(number).zip(whole(of)).ok_or(NoPartition)?;
        if (1..=of).contains(&number) && of <= MOST { Ok(Self { number, of }) } else { Err(NoPartition) }
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "hash:{}/{}", self.number, self.of)
    }
}

impl Partition {
    /// Number of the partition, of `of`, that a trial belongs to: the first eight bytes of SHA-256 over its id.
    pub fn number_of(trial: &str, of: u32) -> u32 {
        let digest = Sha256::digest(trial.as_bytes());
        let hash = digest.iter().take(8).fold(0, |hash: u64, byte| hash << 8 | u64::from(*byte));
        (hash % u64::from(of.max(1))) as u32 + 1
    }

    /// Whether the trial belongs to it.
    fn has(self, trial: &PlannedTrial) -> bool {
        Self::number_of(&trial.id, self.of) == self.number
    }

    /// Its share of an amount that all partitions may use together, rounded down.
    pub fn share(self, amount: u64) -> u64 {
        amount / u64::from(self.of.max(1))
    }
}

impl Plan {
    /// The plan of the trials that its partition runs; a plan without a partition is unchanged.
    #[must_use]
    pub fn narrowed(mut self) -> Self {
        let Some(partition) = self.partition.filter(|partition| partition.of > 1) else { return self };
        let whole = self.trials.number() as u64;
        let mut places = BTreeMap::new();
        let mut trials = Vec::new();
        for (place, trial) in (0_u32..).zip(&self.trials) {
            if partition.has(trial) {
                places.insert(place, trials.len() as u32);
                trials.push(trial.clone());
            }
        }
        self.order = self.order.iter().filter_map(|place| places.get(place).copied()).collect();
        self.trials = trials.into();
        let selected = self.part.take();
        let by = selected.as_ref().map(|part| part.by.as_str()).filter(|by| !by.is_empty());
        self.part = Some(Part {
            of: selected.as_ref().map_or(0, |part| part.of).max(whole),
            by: by
                .into_iter()
                .map(str::to_owned)
                .chain([format!("--partition {partition}")])
                .collect::<Vec<_>>()
                .join(", "),
            cases: true,
            scenarios: selected.is_some_and(|part| part.scenarios),
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_written_as_its_number_of_a_number_and_nothing_else_is_one() {
        let read: Partition = "hash:3/8".parse().expect("a partition");
        assert_eq!((read, read.to_string()), (Partition { number: 3, of: 8 }, "hash:3/8".to_owned()));
        for wrong in
            ["3/8", "hash:0/8", "hash:9/8", "hash:3", "hash:/8", "hash:+3/8", "hash:1/0", "hash:1/10001", "time:1/2"]
        {
            assert_eq!(wrong.parse::<Partition>(), Err(NoPartition), "{wrong}");
        }
    }

    #[test]
    fn every_trial_is_in_one_partition_whatever_other_trials_there_are_and_the_partitions_are_of_like_size() {
        let mut counts = [0; 8];
        for trial in 0..8_000 {
            counts[Partition::number_of(&format!("s/case-{trial}/tool-rag.base.1"), 8) as usize - 1] += 1;
        }
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
        // The hash is a promise: other machines and later builds must agree on it.
        assert_eq!(Partition::number_of("s/case-1/tool-rag.base.1", 8), NUMBER_OF_THE_FIRST);
    }

    /// Python: `int.from_bytes(hashlib.sha256(b"s/case-1/tool-rag.base.1").digest()[:8], "big") % 8 + 1`.
    const NUMBER_OF_THE_FIRST: u32 = 7;
}
