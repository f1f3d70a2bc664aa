//! A rate from few human ratings and many verdicts of a judge, without trusting the judge.
//!
//! Prediction-powered inference (Angelopoulos et al. 2023, tuned as in their PPI++ of the same year): the judge's mean
//! over all answers, corrected by its errors on those that people rated too. Valid only if the rated answers are a
//! random sample and independent: the caller passes the means of dependent ones. Ratings are between 0 and 1.

use super::population;
use super::student::normal_quantile;
use schemars::JsonSchema;
use serde::Serialize;

/// Smallest number of rated answers for which a normal interval alone is used.
const FEW: usize = 30;

/// Weight of the judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// None: human ratings alone.
    Nothing,
    /// Full weight: the first form of the estimate.
    #[cfg(test)]
    Full,
    /// The weight with the shortest interval, by the judge's covariance with people.
    Tuned,
}

/// A mean with its two-sided 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
}

/// Estimates the mean human rating from answers `rated` by (judge, human) and others `judged` alone (oracle
/// `ppi_py.ppi_mean_ci`); `None` without rated answers, without judged ones when the judge has weight, or with a value
/// that is not finite.
pub(crate) fn estimate(rated: &[(f64, f64)], judged: &[f64], weight: Weight) -> Option<Estimate> {
    let finite = rated.iter().all(|(judge, human)| judge.is_finite() && human.is_finite());
    if rated.is_empty() || !finite || judged.iter().any(|value| !value.is_finite()) {
        return None;
    }
    if judged.is_empty() && weight != Weight::Nothing {
        return None;
    }
    let weight = match weight {
        Weight::Nothing => 0.0,
        #[cfg(test)]
        Weight::Full => 1.0,
        Weight::Tuned => tuned(rated, judged),
    };
    let rest: Vec<f64> = rated.iter().map(|(judge, human)| human - weight * judge).collect();
    let (mean, spread) = (mean_of(&rest), variance(&rest) / rest.len() as f64);
    let (more, noise) = if judged.is_empty() {
        (0.0, 0.0)
    } else {
        (weight * mean_of(judged), weight.powi(2) * variance(judged) / judged.len() as f64)
    };
    let half = normal_quantile(0.975) * (spread + noise).sqrt();
    let value = mean + more;
    let (mut low, mut high) = (value - half, value + half);
    // The spread of few or equal ratings is too small: three good ones do not show 100 %. The interval then covers the
    // bounds from the ratings alone.
    if rated.len() < FEW || spread <= 0.0 {
        let (good, n) = (rated.iter().map(|(_, human)| human).sum(), rated.len() as u64);
        low = low.min(population::lower_at(good, n, 0.025)).max(0.0);
        high = high.max(population::upper_at(good, n, 0.025)).min(1.0);
    }
    Some(Estimate { value, low, high })
}

/// The weight that makes the variance smallest, kept within 0 and 1.
fn tuned(rated: &[(f64, f64)], judged: &[f64]) -> f64 {
    let (n, more) = (rated.len() as f64, judged.len() as f64);
    let judges: Vec<f64> = rated.iter().map(|(judge, _)| *judge).collect();
    let humans: Vec<f64> = rated.iter().map(|(_, human)| *human).collect();
    let (judge, human) = (mean_of(&judges), mean_of(&humans));
    let covariance = rated.iter().map(|(j, h)| (j - judge) * (h - human)).sum::<f64>() / n;
    let pooled: Vec<f64> = judges.iter().chain(judged).copied().collect();
    // The oracle divides this variance, and only this one, by one less than the number.
    let spread = variance(&pooled) * (n + more) / (n + more - 1.0);
    if spread > 0.0 { (covariance / ((1.0 + n / more) * spread)).clamp(0.0, 1.0) } else { 0.0 }
}

fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean_of(values);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 84 good for both, 4 for people only, 8 for the judge only, 4 for neither; 372 of 400 good for the judge alone.
    fn sample() -> (Vec<(f64, f64)>, Vec<f64>) {
        let rated = [(84, (1.0, 1.0)), (4, (0.0, 1.0)), (8, (1.0, 0.0)), (4, (0.0, 0.0))];
        let judged = [(372, 1.0), (28, 0.0)];
        (
            rated.iter().flat_map(|(n, pair)| vec![*pair; *n]).collect(),
            judged.iter().flat_map(|(n, value)| vec![*value; *n]).collect(),
        )
    }

    #[test]
    fn all_three_weights_agree_with_ppi_py() {
        let (rated, judged) = sample();
        let rows = [
            (Weight::Nothing, 0.88, 0.8163, 0.9437),
            (Weight::Full, 0.89, 0.8181, 0.9619),
            (Weight::Tuned, 0.883_63, 0.8231, 0.9442),
        ];
        for (weight, value, low, high) in rows {
            let found = estimate(&rated, &judged, weight).expect("a sample");
            assert!((found.value - value).abs() < 5e-6, "{weight:?}: {found:?}");
            assert!((found.low - low).abs() < 5e-5 && (found.high - high).abs() < 6e-5, "{weight:?}: {found:?}");
        }
        assert!((mean_of(&judged) - 0.93).abs() < 1e-12, "the judge alone would pass 90 %");
        assert!(estimate(&rated, &judged, Weight::Tuned).expect("a sample").low < 0.9, "people do not yet");
    }

    #[test]
    fn three_good_ratings_do_not_show_that_all_are_good() {
        let found = estimate(&[(1.0, 1.0); 3], &[1.0; 40], Weight::Tuned).expect("a sample");
        assert!((found.value - 1.0).abs() < 1e-12 && (found.low - 0.2924).abs() < 5e-5, "{found:?}");
        let mixed = estimate(&[(1.0, 1.0), (1.0, 1.0), (1.0, 0.0)], &[1.0; 40], Weight::Tuned).expect("a sample");
        assert!(mixed.low <= population::lower_at(2.0, 3, 0.025) && mixed.high <= 1.0, "{mixed:?}");
        let many = estimate(&[(1.0, 1.0); 50], &[1.0; 40], Weight::Tuned).expect("a sample");
        assert!((0.92..0.94).contains(&many.low), "{many:?}");
    }

    #[test]
    fn without_ratings_there_is_no_estimate() {
        let (rated, judged) = sample();
        assert_eq!(estimate(&[], &judged, Weight::Nothing), None);
        assert_eq!(estimate(&rated, &[], Weight::Full), None);
        assert!(estimate(&rated, &[], Weight::Nothing).is_some());
        assert_eq!(estimate(&[(f64::NAN, 1.0)], &judged, Weight::Tuned), None);
    }

    #[test]
    fn a_judge_that_says_the_same_of_everything_gets_no_weight() {
        let (rated, judged) = sample();
        let blind: Vec<(f64, f64)> = rated.iter().map(|(_, human)| (1.0, *human)).collect();
        let judged = vec![1.0; judged.len()];
        let found = estimate(&blind, &judged, Weight::Tuned).expect("a sample");
        assert!(tuned(&blind, &judged).abs() < 1e-12 && (found.value - 0.88).abs() < 1e-12, "{found:?}");
    }

    proptest! {
        /// Fewer ratings also hold what they allow exactly, around another middle: their interval may be wider.
        #[test]
        fn tuning_is_never_much_wider_than_people_alone(
            rated in proptest::collection::vec((0_u8..2, 0_u8..2), FEW..80),
            judged in proptest::collection::vec(0_u8..2, 100..300),
        ) {
            let rated: Vec<(f64, f64)> = rated.iter().map(|(j, h)| (f64::from(*j), f64::from(*h))).collect();
            let judged: Vec<f64> = judged.iter().map(|value| f64::from(*value)).collect();
            let width = |weight| estimate(&rated, &judged, weight).map(|found| found.high - found.low).expect("some");
            prop_assert!(width(Weight::Tuned) <= width(Weight::Nothing) * 1.1 + 1e-9);
        }
    }
}
