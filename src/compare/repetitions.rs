//! Which repetitions of a case on two sides are compared: those of the same number, or of logs, as many as both sides have.
//!
//! The number of a repetition in a log is the place of its line, so it pairs nothing. Where one log has more of a case, as
//! many as the other has are drawn, whatever the order of the lines: the difference between means of unequal numbers is
//! skewed under equal behaviours, and the test of signs would alarm too often.

use super::summary::CaseFigures;
use crate::plan::trial_seed;
use rand::seq::SliceRandom;
use rand::{SeedableRng as _, rngs::ChaCha8Rng};
use serde::Serialize;
use std::collections::BTreeMap;

/// Successes and units of one criterion on both sides, over the repetitions that are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Paired {
    /// Successes and units under A.
    pub a: (u64, u64),
    /// Successes and units under B.
    pub b: (u64, u64),
    /// Repetitions that are compared.
    pub repetitions: u64,
    /// Repetitions of A and of B that are not.
    pub unpaired: (u64, u64),
}

/// Figures of one case by repetition.
type ByNumber<T> = BTreeMap<u32, T>;

impl CaseFigures {
    /// Times of the turns of this case under A and of `other` under B, over the repetitions that are compared; of all where
    /// a side does not say which is of which. `None` if a side did not keep them.
    pub(super) fn paired_times(&self, other: &Self, logged: bool) -> Option<(Vec<u64>, Vec<u64>)> {
        if self.times.is_empty() || other.times.is_empty() {
            let (ours, theirs) = self.usage.as_ref().zip(other.usage.as_ref())?;
            return Some((ours.turns_us.clone(), theirs.turns_us.clone()));
        }
        let (mut ours, mut theirs) = (self.times.clone(), other.times.clone());
        if logged {
            (ours, theirs) = (self.drawn(&ours, &theirs), self.drawn(&theirs, &ours));
        }
        let common = |one: &ByNumber<Vec<u64>>, beside: &ByNumber<Vec<u64>>| {
            let both = one.iter().filter(|(number, _)| beside.contains_key(number));
            both.flat_map(|(_, times)| times.iter().copied()).collect()
        };
        Some((common(&ours, &theirs), common(&theirs, &ours)))
    }

    /// This case under A beside `other` under B.
    pub(super) fn paired(&self, other: &Self, key: &str, logged: bool) -> Paired {
        let by_number = |figures: &Self| -> ByNumber<(u64, u64)> {
            let rows = figures.repetitions.get(key).map(Vec::as_slice).unwrap_or_default();
            rows.iter().filter(|one| one.n > 0).map(|one| (one.repetition, (one.successes, one.n))).collect()
        };
        let (mut ours, mut theirs) = (by_number(self), by_number(other));
        if logged {
            (ours, theirs) = (self.drawn(&ours, &theirs), self.drawn(&theirs, &ours));
        }
        let mut paired = Paired::default();
        for (number, one) in ours {
            match theirs.remove(&number) {
                Some(other) => {
                    paired.repetitions += 1;
                    paired.a = (paired.a.0 + one.0, paired.a.1 + one.1);
                    paired.b = (paired.b.0 + other.0, paired.b.1 + other.1);
                }
                None => paired.unpaired.0 += 1,
            }
        }
        paired.unpaired.1 = theirs.len() as u64;
        paired
    }

    /// `own` repetitions of this case under numbers from 1, drawn by what they and those `beside` them show.
    fn drawn<T: Clone + Ord + Serialize>(&self, own: &ByNumber<T>, beside: &ByNumber<T>) -> ByNumber<T> {
        let sorted = |all: &ByNumber<T>| {
            let mut values: Vec<T> = all.values().cloned().collect();
            values.sort();
            values
        };
        let (mut own, beside) = (sorted(own), sorted(beside));
        // Numbers and texts, so serialisation cannot fail.
        let shown = serde_json::to_string(&(&self.case, &own, &beside)).unwrap_or_default();
        own.shuffle(&mut ChaCha8Rng::seed_from_u64(trial_seed(0, &shown)));
        (1..).zip(own).collect()
    }
}
