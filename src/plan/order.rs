//! Orders the trials of a live run so that drift at a provider does not look like a difference between variants.
//!
//! Variants are interleaved in blocks: a block is one repetition of one case under every selected flow and variant,
//! in an order drawn from the run's seed. Drift then affects all variants alike. Reports and traces keep plan order.

use super::{PlannedTrial, trial_seed};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use std::collections::{BTreeMap, BTreeSet};

/// Places of `trials` in the order in which a live run starts them; empty if that is plan order, as it is when no
/// scenario has several variants.
pub(crate) fn interleaved(trials: &[PlannedTrial], seed: u64) -> Vec<u32> {
    let mut variants: BTreeMap<usize, BTreeSet<(&str, &str)>> = BTreeMap::new();
    for trial in trials {
        variants.entry(trial.scenario).or_default().insert((&trial.lane.flow, &trial.lane.variant));
    }
    if variants.values().all(|known| known.len() < 2) {
        return Vec::new();
    }
    let mut places: BTreeMap<(usize, usize, u32), usize> = BTreeMap::new();
    let mut blocks: Vec<Vec<u32>> = Vec::new();
    for (place, trial) in (0_u32..).zip(trials) {
        let key = (trial.scenario, trial.case, trial.lane.repetition);
        let block = *places.entry(key).or_insert(blocks.len());
        if block == blocks.len() {
            blocks.push(Vec::new());
        }
        blocks[block].push(place);
    }
    for block in &mut blocks {
        // Seeded by its first trial's name, so that selecting other cases changes no block.
        let Some(first) = block.first().map(|place| &trials[*place as usize].id) else { continue };
        let mut dice = ChaCha8Rng::seed_from_u64(trial_seed(seed, &format!("order of {first}")));
        block.shuffle(&mut dice);
    }
    blocks.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Arm, Lane};
    use proptest::prelude::*;

    fn trials(cases: usize, variants: &[&str], repetitions: u32) -> Vec<PlannedTrial> {
        let mut trials = Vec::new();
        for case in 0..cases {
            for variant in variants {
                for repetition in 1..=repetitions {
                    let lane = Lane { flow: "tool-rag".into(), variant: (*variant).into(), repetition, arm: Arm::Main };
                    trials.push(PlannedTrial { id: format!("s/{case}/{lane}"), scenario: 0, case, lane, seed: 0 });
                }
            }
        }
        trials
    }

    #[test]
    fn one_variant_keeps_the_order_of_the_plan() {
        assert_eq!(interleaved(&trials(3, &["base"], 4), 7), Vec::<u32>::new());
    }

    #[test]
    fn each_variant_is_first_about_as_often_as_any_other_and_another_seed_draws_another_order() {
        let trials = trials(50, &["a", "b"], 4);
        let order = interleaved(&trials, 1);
        let first = order.chunks(2).filter(|block| trials[block[0] as usize].lane.variant == "a").count();
        assert!((70..=130).contains(&first), "{first} of 200 blocks begin with a");
        assert_ne!(order, interleaved(&trials, 2));
        assert_eq!(order, interleaved(&trials, 1));
    }

    proptest! {
        #[test]
        fn every_block_holds_each_variant_once_and_the_order_is_a_permutation(
            cases in 1_usize..5, repetitions in 1_u32..5, seed in any::<u64>(), by_pass in any::<bool>(),
        ) {
            let mut trials = trials(cases, &["a", "b", "c"], repetitions);
            if by_pass {
                trials.sort_by_key(|trial| trial.lane.repetition);
            }
            let order = interleaved(&trials, seed);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..trials.len() as u32).collect::<Vec<_>>());
            for block in order.chunks(3) {
                let of = |place: &u32| &trials[*place as usize];
                let variants: BTreeSet<&str> = block.iter().map(|place| of(place).lane.variant.as_str()).collect();
                prop_assert_eq!(variants.len(), 3);
                let (first, alike) = (of(&block[0]), |place: &u32| (of(place).case, of(place).lane.repetition));
                prop_assert!(block.iter().all(|place| alike(place) == (first.case, first.lane.repetition)));
            }
            if by_pass {
                prop_assert!(order.iter().map(|place| trials[*place as usize].lane.repetition).is_sorted());
            }
        }
    }
}
