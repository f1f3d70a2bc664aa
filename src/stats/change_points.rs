//! Where a series of figures changed for good: an E-divisive split, then a merge by t-tests.
//!
//! The split proposes points by energy distance (Matteson and James 2014) in overlapping windows, at a weak level; the
//! merge removes the weakest until all that are left are significant between their neighbours (the way of Hunter and
//! Otava). Differences: a change needs several points on both sides, so one outlier is no change; variances have the
//! divisor n - 1; and no variance is smaller than that of a single measurement, because equal rates of few units are no
//! certain figures. History is advisory: no gate uses it.

use super::student::{Moments, critical, pooled_test};

/// Number of points in one window of the split.
const WINDOW: usize = 50;

/// Level of the split as a multiple of the reported level.
const WEAKER: f64 = 10.0;

/// A change in a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ChangePoint {
    /// Index of the first point after the change.
    pub index: usize,
    /// Mean from the change before, or the start, up to this one.
    pub before: f64,
    /// Mean from this change up to the next, or the end.
    pub after: f64,
    /// Two-sided p-value of the pooled t-test between the two.
    pub p: f64,
}

/// A value of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measured {
    pub value: f64,
    /// The variance of one such measurement when nothing changes, in the unit of the value squared: the least that
    /// values are taken to vary; 0 where it is not known.
    pub variance: f64,
}

/// What counts as a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rule {
    /// The two-sided level of the t-test.
    pub level: f64,
    /// The fewest points on each side, 2 or more: as many outliers in a row as are no change, and one.
    pub least: usize,
}

/// The changes of `series` by `rule`, in order; none when a value is not finite, so leave those out beforehand.
pub(crate) fn change_points(series: &[Measured], rule: Rule) -> Vec<ChangePoint> {
    if series.iter().any(|one| !one.value.is_finite() || !one.variance.is_finite()) {
        return Vec::new();
    }
    let level = rule.level;
    let mut found = split(series, Rule { level: (level * WEAKER).min(0.5).max(level), ..rule });
    loop {
        let measured: Vec<ChangePoint> = (0..found.len()).map(|at| measure(series, &found, at)).collect();
        let weakest = measured.iter().enumerate().max_by(|left, right| left.1.p.total_cmp(&right.1.p));
        match weakest {
            // Its neighbours are measured again without it.
            Some((at, point)) if point.p >= level => drop(found.remove(at)),
            _ => return measured,
        }
    }
}

fn measure(series: &[Measured], indexes: &[usize], at: usize) -> ChangePoint {
    let index = indexes[at];
    let start = at.checked_sub(1).map_or(0, |before| indexes[before]);
    let end = indexes.get(at + 1).copied().unwrap_or(series.len());
    let (left, right) = (moments(&series[start..index]), moments(&series[index..end]));
    ChangePoint { index, before: left.mean, after: right.mean, p: pooled_test(left, right) }
}

/// The step that is found half of the time when it began `after` points before the end of `series`, which did not change
/// before; `None` where there are too few points for any up to `furthest`, which is below 0 for steps down. `noise` is the
/// variance of one measurement of a value: beyond the step, points vary by as much more or less as it says.
pub(crate) fn detectable(
    series: &[Measured],
    after: usize,
    rule: Rule,
    furthest: f64,
    noise: impl Fn(f64) -> f64,
) -> Option<f64> {
    let before = series.len().checked_sub(after).filter(|before| *before >= rule.least && after >= rule.least)?;
    let (left, right, now) = (before as f64, after as f64, moments(series));
    let times = critical(left + right - 2.0, rule.level) * (1.0 / left + 1.0 / right).sqrt();
    let needed = |step: f64| {
        let beyond = now.mean + step.copysign(furthest);
        let grown = if noise(now.mean) > 0.0 { noise(beyond) / noise(now.mean) } else { 1.0 };
        // The least variance on both sides is that of a measurement at the mean of all.
        let least = noise((left * now.mean + right * beyond) / (left + right));
        let squares = |n: f64, variance: f64| (n - 1.0) * variance.max(least);
        let pooled = (squares(left, now.variance) + squares(right, now.variance * grown)) / (left + right - 2.0);
        times * pooled.sqrt()
    };
    let furthest_found = furthest.abs();
    let is_missed = |step: f64| needed(step) > step;
    (!is_missed(furthest_found)).then(|| super::halved(0.0, furthest_found, is_missed).1)
}

/// The moments of `part`, whose variance is no less than that of its measurements.
fn moments(part: &[Measured]) -> Moments {
    let found = Moments::of(&part.iter().map(|one| one.value).collect::<Vec<_>>());
    let least = part.iter().map(|one| one.variance).sum::<f64>() / found.n;
    Moments { variance: found.variance.max(least), ..found }
}

/// Proposed changes in order, at least [`Rule::least`] apart from each other and from the ends.
fn split(series: &[Measured], rule: Rule) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let mut start = 0;
    while start + 2 * rule.least <= series.len() {
        let end = (start + WINDOW).min(series.len());
        let inside = split_window(&series[start..end], rule);
        let last = inside.last().map_or(0, |index| index + start);
        for index in inside {
            let index = index + start;
            if found.iter().all(|other| other.abs_diff(index) >= rule.least) {
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
fn split_window(window: &[Measured], rule: Rule) -> Vec<usize> {
    let mut found = Vec::new();
    let mut segments = vec![(0, window.len())];
    while let Some((start, end)) = segments.pop() {
        let Some(offset) = most_divided(&window[start..end], rule.least) else { continue };
        let index = start + offset;
        if pooled_test(moments(&window[start..index]), moments(&window[index..end])) < rule.level {
            found.push(index);
            segments.extend([(start, index), (index, end)]);
        }
    }
    found.sort_unstable();
    found
}

/// The place with the largest energy distance between the points before it and those from it on; `None` when there is
/// no place with `least` points on each side.
fn most_divided(values: &[Measured], least: usize) -> Option<usize> {
    let n = values.len();
    let distance = |i: usize, j: usize| (values[i].value - values[j].value).abs();
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
        if moved + 1 >= least && n - moved > least {
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

    const STRICT: Rule = Rule { level: 0.001, least: 3 };

    fn exact(values: &[f64]) -> Vec<Measured> {
        values.iter().map(|value| Measured { value: *value, variance: 0.0 }).collect()
    }

    #[test]
    fn one_step_is_found_where_otava_finds_it() {
        let found = change_points(&exact(&SERIES), STRICT);
        assert_eq!(found.len(), 1, "{found:?}");
        let change = found[0];
        assert_eq!(change.index, 12);
        assert!((change.before - 8.075).abs() < 1e-9 && (change.after - 9.183_33).abs() < 5e-6, "{change:?}");
        assert!((change.after / change.before - 1.0 - 0.137_25).abs() < 5e-6);
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
            assert_eq!(change_points(&exact(&SERIES[..12 + after]), STRICT).len(), changes, "{after} points after");
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
        let found: Vec<usize> = change_points(&exact(&series), STRICT).iter().map(|change| change.index).collect();
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
                !change_points(&exact(&values.iter().map(shape).collect::<Vec<_>>()), Rule { level, least: 3 })
                    .is_empty()
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
        for values in [&[][..], &[1.0, 1.0, 9.0, 9.0, 9.0], &[4.0; 60], &[1.0, f64::NAN, 9.0, 1.0, 1.0, 9.0, 9.0]] {
            assert!(change_points(&exact(values), STRICT).is_empty(), "{values:?}");
        }
    }

    #[test]
    fn values_that_happen_to_be_equal_vary_no_less_than_one_measurement_does() {
        // One of 58 units failed in each of three runs, after none in three runs.
        let of = |variance: f64| -> Vec<Measured> {
            [1.0, 1.0, 1.0, 0.983, 0.983, 0.983].map(|value| Measured { value, variance }).to_vec()
        };
        assert_eq!(change_points(&of(0.0), STRICT).len(), 1);
        assert!(change_points(&of(0.99 * 0.01 / 58.0), STRICT).is_empty());
    }

    #[test]
    fn a_step_of_the_size_that_is_found_half_of_the_time_is_found_half_of_the_time() {
        let mut rng = ChaCha8Rng::seed_from_u64(31);
        let mut normal = || {
            let (radius, angle): (f64, f64) = (rng.random(), rng.random());
            (-2.0 * (1.0 - radius).ln()).sqrt() * (angle * std::f64::consts::TAU).cos()
        };
        let rule = Rule { level: 1e-5, least: 3 };
        let detectable = |series: &[Measured], after| detectable(series, after, rule, 1e3, |_| 1e-9);
        let mut found = 0;
        for _ in 0..400 {
            let noise = exact(&(0..30).map(|_| normal()).collect::<Vec<_>>());
            let step = detectable(&noise, 6).expect("enough points");
            let place = |(at, one): (usize, &Measured)| Measured {
                value: one.value + if at < 24 { 0.0 } else { step },
                ..*one
            };
            let moved: Vec<Measured> = noise.iter().enumerate().map(place).collect();
            found += u32::from(change_points(&moved, rule).iter().any(|change| change.index.abs_diff(24) <= 1));
        }
        assert!((120..=280).contains(&found), "{found} of 400");
        assert_eq!(detectable(&exact(&[1.0; 8]), 6), None);
        let values = [1.0, 3.0, 2.0, 5.0, 4.0, 2.0, 1.0, 3.0];
        let step = |scale: f64| detectable(&exact(&values.map(|value| value * scale)), 3).expect("enough points");
        assert!((step(10.0) / step(1.0) - 10.0).abs() < 1e-9, "{} {}", step(10.0), step(1.0));
    }

    proptest! {
        #[test]
        fn scaling_and_turning_a_series_keeps_its_changes(steps in proptest::collection::vec(0_u8..40, 6..70)) {
            let series: Vec<f64> = steps.iter().map(|step| f64::from(*step)).collect();
            let indexes = |values: &[f64]| change_points(&exact(values), Rule { level: 0.01, ..STRICT }).iter().map(|c| c.index).collect::<Vec<_>>();
            let doubled: Vec<f64> = series.iter().map(|value| value * 2.0).collect();
            prop_assert_eq!(indexes(&series), indexes(&doubled));
            for pair in indexes(&series).windows(2) {
                prop_assert!(pair[1] - pair[0] >= STRICT.least);
            }
        }
    }
}
