//! Merges ranked lists: reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009).
//!
//! Each list gives its n-th entry weight / ([`DAMPING`] + n); an entry's score is the sum. Only places count, so scores of
//! different kinds need no common scale. The paper's constant is 60, for many lists of equal rank; of two, with words that
//! find more than vectors do, 10 and twice the weight for words ([`WORDS`]) found more on one of the two collections that
//! the corpus suite publishes, which is where they were chosen; on the other one they were only measured.
//!
//! Effect of a new passage: outside the first [`DEPTH`] of every list, none; within, it moves the passages after it down
//! by one place in that list, which is less than 2 % of the best score.

use std::collections::HashMap;
use std::hash::Hash;

/// Damping of the first places: a larger value makes the places count more equally.
const DAMPING: f64 = 10.0;

/// Weight of the list by words; the list by vectors has weight 1.
pub(super) const WORDS: f64 = 2.0;

/// Number of entries of each list that are used.
pub(super) const DEPTH: usize = 50;

/// The entries of all lists, best first, each with its score; `order` decides between equal scores.
pub(super) fn fuse<T: Copy + Eq + Hash, K: Ord>(lists: &[(Vec<T>, f64)], order: impl Fn(T) -> K) -> Vec<(T, f64)> {
    // Sums of several entries in one order: that of the lists.
    let mut scores: HashMap<T, f64> = HashMap::new();
    for (list, weight) in lists {
        for (rank, entry) in (1_u32..).zip(list) {
            *scores.entry(*entry).or_default() += weight / (DAMPING + f64::from(rank));
        }
    }
    let mut fused: Vec<(T, f64)> = scores.into_iter().collect();
    fused.sort_by(|(one, a), (other, b)| b.total_cmp(a).then_with(|| order(*one).cmp(&order(*other))));
    fused
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ids(lists: &[Vec<u32>]) -> Vec<u32> {
        let lists: Vec<_> = lists.iter().map(|list| (list.clone(), 1.0)).collect();
        fuse(&lists, |entry| entry).into_iter().map(|(entry, _)| entry).collect()
    }

    #[test]
    fn what_two_lists_hold_stands_before_what_one_holds() {
        assert_eq!(ids(&[vec![1, 2, 3], vec![4, 3, 5]]), [3, 1, 4, 2, 5]);
        let scores = fuse(&[(vec![7], 2.0), (vec![7], 1.0)], |entry| entry);
        assert!((scores[0].1 - 3.0 / 11.0).abs() < 1e-15);
        let weighed = fuse(&[(vec![1], 1.0), (vec![9], WORDS)], |entry| entry);
        assert_eq!(weighed[0].0, 9);
        assert!(ids(&[]).is_empty() && ids(&[vec![], vec![]]).is_empty());
    }

    #[test]
    fn equal_scores_stand_in_the_given_order() {
        assert_eq!(ids(&[vec![9, 1], vec![1, 9]]), [1, 9]);
    }

    proptest! {
        #[test]
        fn one_list_stays_as_it_is_and_the_order_of_lists_changes_nothing_but_rounding(
            list in Just((0..40_u32).collect::<Vec<_>>()).prop_shuffle(),
            other in Just((20..60_u32).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            prop_assert_eq!(&ids(std::slice::from_ref(&list)), &list);
            prop_assert_eq!(ids(&[list.clone(), other.clone()]), ids(&[other, list]));
        }
    }
}
