//! Agreement of a judge with people beyond chance, and rates corrected for its errors.
//!
//! Agreement alone misleads when nearly all answers are good, so the whole table is kept: publish it together with
//! sensitivity and specificity.

use super::student::normal_quantile;
use schemars::JsonSchema;
use serde::Serialize;

/// Binary verdicts of a judge beside those of people, on the same answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub(crate) struct Confusion {
    /// Good for both.
    pub both: u64,
    /// Good for the judge, bad for people.
    pub judge_only: u64,
    /// Bad for the judge, good for people.
    pub human_only: u64,
    /// Bad for both.
    pub neither: u64,
}

/// Cohen's kappa with its large-sample standard error and two-sided 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Kappa {
    /// Agreement beyond chance: 1 is perfect, 0 is chance.
    pub value: f64,
    /// Standard error of Fleiss, Cohen and Everitt (1969).
    pub standard_error: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Confusion {
    /// Counts pairs of (judge, human).
    pub(crate) fn of(pairs: impl IntoIterator<Item = (bool, bool)>) -> Self {
        let mut table = Self::default();
        for pair in pairs {
            match pair {
                (true, true) => table.both += 1,
                (true, false) => table.judge_only += 1,
                (false, true) => table.human_only += 1,
                (false, false) => table.neither += 1,
            }
        }
        table
    }

    /// Answers with both verdicts.
    pub(crate) fn total(&self) -> u64 {
        self.both + self.judge_only + self.human_only + self.neither
    }

    /// Share of answers with equal verdicts; `None` without answers.
    pub(crate) fn agreement(&self) -> Option<f64> {
        share(self.both + self.neither, self.total())
    }

    /// Share of the answers good for people that the judge finds good; `None` without such answers.
    pub(crate) fn sensitivity(&self) -> Option<f64> {
        share(self.both, self.both + self.human_only)
    }

    /// Share of the answers bad for people that the judge finds bad; `None` without such answers.
    pub(crate) fn specificity(&self) -> Option<f64> {
        share(self.neither, self.neither + self.judge_only)
    }

    /// Cohen's kappa (1960; oracle `statsmodels.stats.inter_rater.cohens_kappa`); `None` if both sides gave one and
    /// the same verdict throughout: chance alone would then agree.
    pub(crate) fn kappa(&self) -> Option<Kappa> {
        let n = self.total() as f64;
        let cell = |count: u64| count as f64 / n;
        let (yes, judge_only, human_only, no) =
            (cell(self.both), cell(self.judge_only), cell(self.human_only), cell(self.neither));
        let (judge, human) = (yes + judge_only, yes + human_only);
        let chance = judge * human + (1.0 - judge) * (1.0 - human);
        if self.total() == 0 || chance >= 1.0 {
            return None;
        }
        let value = (yes + no - chance) / (1.0 - chance);
        let rest = 1.0 - value;
        let diagonal = yes * (1.0 - (judge + human) * rest).powi(2) + no * (1.0 - (2.0 - judge - human) * rest).powi(2);
        let aside =
            rest.powi(2) * (judge_only * (human + 1.0 - judge).powi(2) + human_only * (1.0 - human + judge).powi(2));
        let centre = (value - chance * rest).powi(2);
        let standard_error = ((diagonal + aside - centre).max(0.0) / n).sqrt() / (1.0 - chance);
        let half = normal_quantile(0.975) * standard_error;
        Some(Kappa { value, standard_error, low: (value - half).max(-1.0), high: (value + half).min(1.0) })
    }

    /// Gwet's AC1 (2008), which stays sensible when one verdict is rare; `None` without answers.
    pub(crate) fn ac1(&self) -> Option<f64> {
        let n = self.total() as f64;
        let good = (2 * self.both + self.judge_only + self.human_only) as f64 / (2.0 * n);
        let chance = 2.0 * good * (1.0 - good);
        self.agreement().map(|agreement| (agreement - chance) / (1.0 - chance))
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(both: u64, judge_only: u64, human_only: u64, neither: u64) -> Confusion {
        Confusion { both, judge_only, human_only, neither }
    }

    #[test]
    fn kappa_agrees_with_statsmodels() {
        let found = table(45, 5, 10, 40).kappa().expect("a table");
        assert!((found.value - 0.70).abs() < 1e-9 && (found.standard_error - 0.071_06).abs() < 5e-6, "{found:?}");
        assert!((found.low - 0.5607).abs() < 5e-5 && (found.high - 0.8393).abs() < 5e-5, "{found:?}");
    }

    #[test]
    fn skewed_verdicts_ruin_kappa_but_not_ac1() {
        let skewed = table(90, 3, 4, 3);
        assert!((skewed.agreement().expect("some") - 0.93).abs() < 1e-12);
        assert!((skewed.kappa().expect("some").value - 0.4243).abs() < 5e-5);
        assert!((skewed.ac1().expect("some") - 0.9203).abs() < 5e-5);
    }

    #[test]
    fn sensitivity_is_of_the_good_answers_and_specificity_of_the_bad_ones() {
        let table = table(40, 10, 20, 30);
        assert!((table.sensitivity().expect("some") - 40.0 / 60.0).abs() < 1e-12);
        assert!((table.specificity().expect("some") - 30.0 / 40.0).abs() < 1e-12);
        assert_eq!((Confusion::default().sensitivity(), Confusion::default().specificity()), (None, None));
    }

    #[test]
    fn nothing_rated_is_nothing_known() {
        let nothing = Confusion::of([]);
        assert_eq!((nothing.agreement(), nothing.ac1(), nothing.kappa()), (None, None, None));
        assert_eq!(table(8, 0, 0, 0).kappa(), None, "all good for both: chance agrees too");
        let pairs =
            [(true, false), (true, true), (false, true), (false, true), (false, false), (true, true), (true, true)];
        assert_eq!(Confusion::of(pairs), table(3, 1, 2, 1));
    }

    proptest! {
        #[test]
        fn exchanging_the_raters_changes_no_agreement(both in 0_u64..60, one in 0_u64..30, two in 0_u64..30, no in 0_u64..60) {
            let (here, there) = (table(both, one, two, no), table(both, two, one, no));
            if let (Some(left), Some(right)) = (here.kappa(), there.kappa()) {
                prop_assert!((left.value - right.value).abs() < 1e-9);
                // A variance of 0 is off by a rounding error, and the root makes more of that.
                prop_assert!((left.standard_error - right.standard_error).abs() < 1e-6);
                prop_assert!(left.low <= left.value && left.value <= left.high);
            }
            prop_assert_eq!(here.ac1(), there.ac1());
        }
    }
}
