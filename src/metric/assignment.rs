//! The largest one-to-one assignment of patterns to calls (Kuhn's augmenting paths).
//!
//! Taking the first fit, as some evaluators do, fails a correct trajectory when a general pattern takes the one call
//! that a stricter pattern needed; the result then depends on the order of the patterns.

/// Size of a largest matching between `left` and `right` items; `fits(l, r)` says which pairs are allowed.
pub(super) fn largest(left: usize, right: usize, fits: impl Fn(usize, usize) -> bool) -> usize {
    let mut taken: Vec<Option<usize>> = vec![None; right];
    (0..left).filter(|item| augment(*item, &fits, &mut vec![false; right], &mut taken)).count()
}

fn augment(item: usize, fits: &impl Fn(usize, usize) -> bool, seen: &mut [bool], taken: &mut [Option<usize>]) -> bool {
    for place in 0..taken.len() {
        if seen[place] || !fits(item, place) {
            continue;
        }
        seen[place] = true;
        if taken[place].is_none_or(|other| augment(other, fits, seen, taken)) {
            taken[place] = Some(item);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::largest;
    use proptest::prelude::*;

    #[test]
    fn a_general_item_gives_way_to_a_strict_one() {
        let table = [[true, true], [true, false]];
        assert_eq!(largest(2, 2, |l, r| table[l][r]), 2);
        assert_eq!(largest(0, 3, |_, _| true), 0);
        assert_eq!(largest(3, 2, |_, _| true), 2);
    }

    proptest! {
        #[test]
        fn it_is_as_large_as_trying_every_order(table in proptest::collection::vec(proptest::bool::ANY, 16)) {
            fn best(row: usize, used: u8, table: &[bool]) -> usize {
                if row == 4 {
                    return 0;
                }
                (0..4)
                    .filter(|place| used & (1 << place) == 0 && table[row * 4 + place])
                    .map(|place| 1 + best(row + 1, used | (1 << place), table))
                    .chain([best(row + 1, used, table)])
                    .max()
                    .unwrap_or(0)
            }
            prop_assert_eq!(largest(4, 4, |l, r| table[l * 4 + r]), best(0, 0, &table));
        }
    }
}
