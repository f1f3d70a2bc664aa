//! Where a series of figures changed for good: an E-divisive split, then a merge by t-tests.
//!
//! The split proposes points by energy distance (Matteson and James 2014) in overlapping windows, at a weak level; the
//! merge removes the weakest until all that are left are significant between their neighbours (the way of Hunter and
//! Otava). Unlike these, a change needs three points on either side, so that one outlier is none, and variances have
//! the divisor n - 1. History is advisory: no gate stands on it.

use super::student::{Moments, pooled_test};

/// The fewest points on each side of a change.
pub const LEAST: usize = 3;

/// Points that the split looks at together.
const WINDOW: usize = 50;

/// The split proposes at this many times the level of the report.
const WEAKER: f64 = 10.0;

/// A change in a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first point after the change.
    pub index: usize,
    /// Mean from the change before, or the start, up to this one.
    pub before: f64,
    /// Mean from this change up to the next, or the end.
    pub after: f64,
    /// Two-sided p-value of the pooled t-test between the two.
    pub p: f64,
}

impl ChangePoint {
    /// The change relative to the mean before; `None` when that is 0.
    pub fn relative(&self) -> Option<f64> {
        (self.before != 0.0).then(|| self.after / self.before - 1.0)
    }
}

/// The changes of `series` that are significant at `level`, in order; none when a value is not finite, so leave those
/// out beforehand.
pub fn change_points(series: &[f64], level: f64) -> Vec<ChangePoint> {
    if series.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    let mut found = split(series, (level * WEAKER).min(0.5).max(level));
    loop {
        let measured: Vec<ChangePoint> = (0..found.len()).map(|at| measure(series, &found, at)).collect();
        let weakest = measured.iter().enumerate().max_by(|left, right| left.1.p.total_cmp(&right.1.p));
        match weakest {
            // Its neighbours are measured anew without it.
            Some((at, point)) if point.p >= level => drop(found.remove(at)),
            _ => return measured,
        }
    }
}

fn measure(series: &[f64], indexes: &[usize], at: usize) -> ChangePoint {
    let index = indexes[at];
    let start = at.checked_sub(1).map_or(0, |before| indexes[before]);
    let end = indexes.get(at + 1).copied().unwrap_or(series.len());
    let (left, right) = (Moments::of(&series[start..index]), Moments::of(&series[index..end]));
    ChangePoint { index, before: left.mean, after: right.mean, p: pooled_test(left, right) }
}

/// Proposed changes in order, at least [`LEAST`] apart from each other and from the ends.
fn split(series: &[f64], level: f64) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let mut start = 0;
    while start + 2 * LEAST <= series.len() {
        let end = (start + WINDOW).min(series.len());
        let inside = split_window(&series[start..end], level);
        let last = inside.last().map_or(0, |index| index + start);
        for index in inside {
            let index = index + start;
            if found.iter().all(|other| other.abs_diff(index) >= LEAST) {
                found.push(index);
            }
        }
        if end == series.len() {
            break;
        }
        start = last.max(start + WINDOW / 2);
    }
    found.sort_unstable();
    found
}

/// Splits one window at its most divided place, again and again, while the place is significant.
fn split_window(window: &[f64], level: f64) -> Vec<usize> {
    let mut found = Vec::new();
    let mut segments = vec![(0, window.len())];
    while let Some((start, end)) = segments.pop() {
        let Some(offset) = most_divided(&window[start..end]) else { continue };
        let index = start + offset;
        if pooled_test(Moments::of(&window[start..index]), Moments::of(&window[index..end])) < level {
            found.push(index);
            segments.extend([(start, index), (index, end)]);
        }
    }
    found.sort_unstable();
    found
}

/// The place with the largest energy distance between the points before it and those from it on; `None` when there is
/// no place with [`LEAST`] points on each side.
fn most_divided(values: &[f64]) -> Option<usize> {
    let n = values.len();
    let distance = |i: usize, j: usize| (values[i] - values[j]).abs();
    // Sums of distances: within the left part, across, and within the right part, moved along point by point.
    let (mut left, mut across) = (0.0, 0.0);
    let mut right: f64 = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).map(|(i, j)| distance(i, j)).sum();
    let mut best: Option<(f64, usize)> = None;
    for moved in 0..n {
        let to_left: f64 = (0..moved).map(|i| distance(i, moved)).sum();
        let to_right: f64 = (moved + 1..n).map(|j| distance(moved, j)).sum();
        left += to_left;
        right -= to_right;
        across += to_right - to_left;
        let (m, k) = ((moved + 1) as f64, (n - moved - 1) as f64);
        if moved + 1 >= LEAST && n - moved > LEAST {
            let energy = 2.0 * across / (m * k) - 2.0 * left / (m * (m - 1.0)) - 2.0 * right / (k * (k - 1.0));
            let score = energy * m * k / (m + k);
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, moved + 1));
            }
        }
    }
    best.map(|(_, index)| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{SeedableRng as _, rngs::ChaCha8Rng};

    const SERIES: [f64; 24] = [
        8.1, 8.3, 7.9, 8.0, 8.2, 8.1, 7.8, 8.2, 8.0, 8.1, 8.3, 7.9, 9.2, 9.0, 9.4, 9.1, 9.3, 9.2, 9.0, 9.3, 9.1, 9.2,
        9.4, 9.0,
    ];

    #[test]
    fn one_step_is_found_where_otava_finds_it() {
        let found = change_points(&SERIES, 0.001);
        assert_eq!(found.len(), 1, "{found:?}");
        let change = found[0];
        assert_eq!(change.index, 12);
        assert!((change.before - 8.075).abs() < 1e-9 && (change.after - 9.183_33).abs() < 5e-6, "{change:?}");
        assert!((change.relative().expect("not from 0") - 0.137_25).abs() < 5e-6);
        // Otava hands variances with divisor n to a formula for n - 1, which makes its p a little too small.
        let otava = |values: &[f64]| {
            let moments = Moments::of(values);
            Moments { variance: moments.variance * (moments.n - 1.0) / moments.n, ..moments }
        };
        let p = pooled_test(otava(&SERIES[..12]), otava(&SERIES[12..]));
        assert!((p / 7.0729e-15 - 1.0).abs() < 1e-4, "{p:e}");
        assert!(change.p > p && change.p < 1e-13, "{:e}", change.p);
    }

    #[test]
    fn one_or_two_new_values_are_not_yet_a_change_and_three_are() {
        for (after, changes) in [(1, 0), (2, 0), (3, 1), (6, 1)] {
            assert_eq!(change_points(&SERIES[..12 + after], 0.001).len(), changes, "{after} points after");
        }
    }

    #[test]
    fn two_steps_far_apart_are_both_found_also_across_windows() {
        let noise = |i: usize| ((i * 7919) % 13) as f64 / 20.0;
        let level = |i: usize| {
            if i < 40 {
                5.0
            } else if i < 95 {
                7.0
            } else {
                6.0
            }
        };
        let series: Vec<f64> = (0..140).map(|i| level(i) + noise(i)).collect();
        let found: Vec<usize> = change_points(&series, 0.001).iter().map(|change| change.index).collect();
        assert_eq!(found, [40, 95]);
    }

    #[test]
    fn a_machine_that_is_only_noisy_raises_no_more_alarms_than_published() {
        // Rates of Otava for 50 points without a change: 3.3 % at .001, 26 % at .01.
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let mut normal = || {
            let (radius, angle): (f64, f64) = (rng.random(), rng.random());
            (-2.0 * (1.0 - radius).ln()).sqrt() * (angle * std::f64::consts::TAU).cos()
        };
        let runs = 400;
        let series: Vec<Vec<f64>> = (0..runs).map(|_| (0..50).map(|_| normal()).collect()).collect();
        let alarms = |level: f64, skewed: bool| {
            let shown = |values: &Vec<f64>| {
                let shape = |value: &f64| if skewed { (0.4 * value).exp() } else { *value };
                !change_points(&values.iter().map(shape).collect::<Vec<_>>(), level).is_empty()
            };
            series.iter().filter(|values| shown(values)).count() as f64 / f64::from(runs)
        };
        let (strict, lax) = (alarms(0.001, false), alarms(0.01, false));
        assert!(strict <= 0.033, "{strict}");
        assert!(lax <= 0.26 && lax > 0.05, "a level of .01 is no level: {lax}");
        assert!(alarms(0.001, true) <= 0.05, "times have a long tail: {}", alarms(0.001, true));
    }

    #[test]
    fn short_constant_and_broken_series_have_no_changes() {
        assert!(change_points(&[], 0.001).is_empty());
        assert!(change_points(&[1.0, 1.0, 9.0, 9.0, 9.0], 0.001).is_empty());
        assert!(change_points(&[4.0; 60], 0.001).is_empty());
        assert!(change_points(&[1.0, f64::NAN, 9.0, 1.0, 1.0, 9.0, 9.0], 0.001).is_empty());
    }

    proptest! {
        #[test]
        fn scaling_and_turning_a_series_keeps_its_changes(steps in proptest::collection::vec(0_u8..40, 6..70)) {
            let series: Vec<f64> = steps.iter().map(|step| f64::from(*step)).collect();
            let indexes = |values: &[f64]| change_points(values, 0.01).iter().map(|c| c.index).collect::<Vec<_>>();
            let doubled: Vec<f64> = series.iter().map(|value| value * 2.0).collect();
            prop_assert_eq!(indexes(&series), indexes(&doubled));
            for pair in indexes(&series).windows(2) {
                prop_assert!(pair[1] - pair[0] >= LEAST);
            }
        }
    }
}
