//! Aggregates grades and compares them with human ratings.
//!
//! A rating covers a whole trial. A trial's verdict on an item therefore covers all its graded turns: it passes if all
//! pass, fails if one fails, and is missing otherwise. The estimate from both takes a missing one as a failure; it is prediction-powered inference
//! (`stats::prediction_powered`), which assumes that the rated trials are a random sample.

use super::grade::Graded;
use super::tasks::GradingTask;
use crate::scenario::Rubric;
use crate::stats::agreement::Confusion;
use crate::stats::prediction_powered::{Estimate, Weight, estimate};
use crate::trace::{Agreement, GradeValue};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Result of one item over all graded turns.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ItemRow {
    /// Name of the item; `None` for all items together.
    pub item: Option<String>,
    /// Number of turns that pass.
    pub passed: u64,
    /// Number of turns with a verdict.
    pub n: u64,
    /// Number of turns whose verdict depends on the order of the items.
    pub inconsistent: u64,
    /// Number of turns whose reply could not be used.
    pub errors: u64,
    /// Comparison with human ratings; `None` if no rated trial was graded.
    pub beside: Option<Beside>,
}

/// The judge's verdicts compared with human ratings, by trial.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Beside {
    /// Trials with a verdict and a rating.
    pub table: Confusion,
    /// Number of rated trials whose grade is no verdict; the estimate takes it as a failure.
    pub without_verdict: usize,
    /// Number of graded trials without a rating.
    pub unrated: usize,
    /// Estimated rate of satisfied people, from verdicts and ratings.
    pub estimate: Option<Estimate>,
}

/// Grades of a run.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    turns: Vec<(String, Vec<GradeValue>)>,
}

impl Tally {
    /// Adds one graded turn.
    pub(crate) fn add(&mut self, task: &GradingTask, graded: &Graded) {
        self.turns.push((task.trial.clone(), graded.items.iter().map(|item| item.grade).collect()));
    }

    /// Agreement of each item of `rubric` with `ratings`. The turns must be the only ones of their trials, because a
    /// rating covers a whole trial; `case_of` gives a trial's case. A grade without a verdict counts as
    /// `without`, and not at all if that is `None`. Ratings of one case form one cluster, whatever their flow, variant
    /// and repetition.
    pub(crate) fn agreement<C: Ord>(
        &self,
        rubric: &Rubric,
        ratings: &BTreeMap<String, bool>,
        without: Option<bool>,
        case_of: impl Fn(&str) -> Option<C>,
    ) -> BTreeMap<String, Agreement> {
        let mut found: BTreeMap<&String, BTreeMap<C, Agreement>> = BTreeMap::new();
        for (trial, grades) in &self.turns {
            let Some(satisfied) = ratings.get(trial) else { continue };
            for (item, grade) in rubric.items.iter().zip(grades) {
                if let (Some(case), Some(passes)) = (case_of(trial), grade.verdict().or(without)) {
                    found.entry(&item.id).or_default().entry(case).or_default().add(passes, *satisfied);
                }
            }
        }
        found.into_iter().map(|(item, cases)| (item.clone(), Agreement::of_cases(cases.values()))).collect()
    }

    /// One row for each item of `rubric` and one for all of them, compared with `ratings` if there are any.
    pub(crate) fn rows(&self, rubric: &Rubric, ratings: Option<&BTreeMap<String, bool>>) -> Vec<ItemRow> {
        let items = rubric.items.iter().enumerate();
        let mut rows: Vec<ItemRow> = items
            .map(|(place, item)| {
                let own = |grades: &[GradeValue]| grades.get(place).copied().unwrap_or(GradeValue::Error);
                self.row(Some(item.id.clone()), &own, ratings)
            })
            .collect();
        rows.push(self.row(None, &together, ratings));
        rows
    }

    fn row(
        &self,
        item: Option<String>,
        grade: &dyn Fn(&[GradeValue]) -> GradeValue,
        ratings: Option<&BTreeMap<String, bool>>,
    ) -> ItemRow {
        let mut trials: BTreeMap<&str, Vec<GradeValue>> = BTreeMap::new();
        let mut row = ItemRow { item, passed: 0, n: 0, inconsistent: 0, errors: 0, beside: None };
        for (trial, grades) in &self.turns {
            let grade = grade(grades);
            match grade {
                GradeValue::Pass => (row.passed, row.n) = (row.passed + 1, row.n + 1),
                GradeValue::Fail => row.n += 1,
                GradeValue::Inconsistent => row.inconsistent += 1,
                GradeValue::Error | GradeValue::NotGraded => row.errors += 1,
            }
            trials.entry(trial).or_default().push(grade);
        }
        let verdicts = trials.iter().map(|(trial, grades)| (*trial, together(grades).verdict()));
        row.beside = ratings.and_then(|ratings| beside(verdicts, ratings));
        row
    }
}

/// Combines several grades: a failure takes precedence over a missing verdict.
fn together(grades: &[GradeValue]) -> GradeValue {
    let order = [GradeValue::Fail, GradeValue::Error, GradeValue::Inconsistent];
    order.into_iter().find(|grade| grades.contains(grade)).unwrap_or(GradeValue::Pass)
}

fn beside<'v>(
    verdicts: impl Iterator<Item = (&'v str, Option<bool>)>,
    ratings: &BTreeMap<String, bool>,
) -> Option<Beside> {
    // Leaving out trials without a verdict would choose the sample: to the estimate they are failures of the judge.
    let (mut table, mut without_verdict) = (Vec::new(), 0);
    // Repetitions of a case share errors: a case counts once, by its means.
    let (mut rated, mut judged): (BTreeMap<&str, Vec<_>>, BTreeMap<&str, Vec<_>>) = Default::default();
    for (trial, verdict) in verdicts {
        let passes = verdict.unwrap_or(false);
        let case = trial.rsplit_once('/').map_or(trial, |(case, _)| case);
        match ratings.get(trial) {
            Some(satisfied) => {
                table.extend(verdict.map(|passes| (passes, *satisfied)));
                without_verdict += usize::from(verdict.is_none());
                rated.entry(case).or_default().push((passes, *satisfied));
            }
            None => judged.entry(case).or_default().push(passes),
        }
    }
    if rated.is_empty() {
        return None;
    }
    let mean = |values: &mut dyn ExactSizeIterator<Item = bool>| {
        let number = values.len() as f64;
        values.map(share).sum::<f64>() / number
    };
    let pairs = |case: &Vec<(bool, bool)>| {
        (mean(&mut case.iter().map(|(judge, _)| *judge)), mean(&mut case.iter().map(|(_, human)| *human)))
    };
    let people: Vec<(f64, f64)> = rated.values().map(pairs).collect();
    let model: Vec<f64> = judged.values().map(|case| mean(&mut case.iter().copied())).collect();
    let weight = if model.is_empty() { Weight::Nothing } else { Weight::Tuned };
    let estimate = estimate(&people, &model, weight);
    let unrated = judged.values().map(Vec::len).sum();
    Some(Beside { table: Confusion::of(table), without_verdict, unrated, estimate })
}

fn share(good: bool) -> f64 {
    if good { 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::prompt::tests::{content, rubric};
    use super::super::reply::ItemGrade;
    use super::*;

    fn tally(turns: &[(&str, [GradeValue; 2])]) -> Tally {
        let mut tally = Tally::default();
        for (trial, grades) in turns {
            let task = GradingTask::sample(trial, content());
            let item = |grade: &GradeValue| ItemGrade {
                item: String::new(),
                grade: *grade,
                quote: String::new(),
                reason: String::new(),
            };
            let items = grades.iter().map(item).collect();
            tally.add(&task, &Graded { items, from: String::new(), recorded_at: None });
        }
        tally
    }

    #[test]
    fn what_has_no_verdict_is_in_no_denominator_and_is_counted_beside() {
        use GradeValue::{Error, Fail, Inconsistent, Pass};
        let tally =
            tally(&[("a", [Pass, Fail]), ("b", [Pass, Inconsistent]), ("c", [Error, Pass]), ("d", [Pass, Pass])]);
        let rows = tally.rows(&rubric(), None);
        let seen: Vec<_> = rows.iter().map(|row| (row.passed, row.n, row.inconsistent, row.errors)).collect();
        assert_eq!(seen, [(3, 3, 0, 1), (2, 3, 1, 0), (1, 2, 1, 1)]);
        assert!(rows.iter().all(|row| row.beside.is_none()));
    }

    #[test]
    fn a_rating_is_set_beside_all_turns_of_its_trial_together() {
        use GradeValue::{Fail, Pass};
        let tally = tally(&[("a", [Pass, Pass]), ("a", [Fail, Pass]), ("b", [Pass, Pass]), ("c", [Pass, Pass])]);
        let ratings = BTreeMap::from([("a".to_owned(), true), ("b".to_owned(), true), ("other".to_owned(), false)]);
        let rows = tally.rows(&rubric(), Some(&ratings));
        let first = rows[0].beside.as_ref().expect("rated");
        assert_eq!(first.table, Confusion { both: 1, judge_only: 0, human_only: 1, neither: 0 });
        assert_eq!(first.unrated, 1);
        let none = BTreeMap::from([("other".to_owned(), false)]);
        assert_eq!(tally.rows(&rubric(), Some(&none))[0].beside, None);
    }

    #[test]
    fn the_estimate_counts_ratings_of_trials_without_a_verdict() {
        use GradeValue::{Error, Pass};
        let turns: Vec<(String, [GradeValue; 2])> =
            (0..80).map(|n| (format!("c{n}"), if n % 2 == 0 { [Pass; 2] } else { [Error; 2] })).collect();
        let ratings = (0..40).map(|n| (format!("c{n}"), n % 2 == 0)).collect();
        let named: Vec<(&str, [GradeValue; 2])> = turns.iter().map(|(name, grades)| (name.as_str(), *grades)).collect();
        let row = &tally(&named).rows(&rubric(), Some(&ratings))[0];
        let beside = row.beside.as_ref().expect("rated");
        assert_eq!((beside.table.total(), beside.without_verdict, beside.unrated), (20, 20, 40));
        let value = beside.estimate.expect("an estimate").value;
        assert!((value - 0.5).abs() < 1e-9, "half of the people were satisfied: {value}");
    }

    #[test]
    fn repeated_ratings_of_one_case_are_one_cluster_of_the_graders_errors() {
        use GradeValue::{Fail, Pass};
        let turns =
            [("a/1", [Pass; 2]), ("a/2", [Pass; 2]), ("a/3", [Fail; 2]), ("b/1", [Fail; 2]), ("c/1", [Pass; 2])];
        let ratings = turns.iter().map(|(trial, _)| ((*trial).to_owned(), *trial == "c/1")).collect();
        let case = |trial: &str| trial.split('/').next().map(str::to_owned);
        let found = tally(&turns).agreement(&rubric(), &ratings, None, case);
        let one = found.values().next().expect("an item");
        assert_eq!((one.both, one.judge_only, one.human_only, one.neither), (1, 2, 0, 2));
        let by_case = one.by_case.expect("cases");
        assert_eq!((by_case.bad, by_case.judge_only, by_case.good, by_case.human_only), (2, 666_667, 1, 0));
    }

    #[test]
    fn a_grade_without_a_verdict_is_in_the_agreement_over_all_answers_as_a_failure() {
        use GradeValue::{Error, Fail, Inconsistent, Pass};
        let turns = [("a", [Pass; 2]), ("b", [Error; 2]), ("c", [Inconsistent; 2]), ("d", [Fail; 2])];
        let ratings = turns.iter().map(|(trial, _)| ((*trial).to_owned(), *trial < "c")).collect();
        let of = |without| {
            let found = tally(&turns).agreement(&rubric(), &ratings, without, |trial| Some(trial.to_owned()));
            let one = *found.values().next().expect("an item");
            (one.both, one.judge_only, one.human_only, one.neither)
        };
        assert_eq!(of(None), (1, 0, 0, 1));
        assert_eq!(of(Some(false)), (1, 0, 1, 2), "one of two good answers and both bad ones did not pass");
    }

    #[test]
    fn repeated_ratings_of_a_case_count_once() {
        use GradeValue::{Fail, Pass};
        let estimate = |repeated: usize| {
            let (mut turns, mut ratings) = (Vec::new(), BTreeMap::new());
            for case in 0..40 {
                for repetition in 1..=repeated {
                    let name = format!("s/rated-{case}/tool-rag.base.{repetition}");
                    ratings.insert(name.clone(), case % 8 > 0);
                    turns.push((name, if case % 10 > 0 { Pass } else { Fail }));
                    turns.push((format!("s/only-{case}/tool-rag.base.{repetition}"), Pass));
                }
            }
            let named: Vec<(&str, [GradeValue; 2])> =
                turns.iter().map(|(name, grade)| (name.as_str(), [*grade; 2])).collect();
            let rows = tally(&named).rows(&rubric(), Some(&ratings));
            rows[0].beside.as_ref().and_then(|beside| beside.estimate).expect("an estimate")
        };
        let (once, ten) = (estimate(1), estimate(10));
        assert!((once.low - ten.low).abs() < 1e-9 && (once.high - ten.high).abs() < 1e-9, "{once:?} {ten:?}");
    }

    #[test]
    fn the_estimate_is_the_vector_of_the_oracle() {
        use GradeValue::{Fail, Pass};
        let cells = [(84, Pass, true), (4, Fail, true), (8, Pass, false), (4, Fail, false)];
        let (mut turns, mut ratings) = (Vec::new(), BTreeMap::new());
        for (number, grade, satisfied) in cells {
            for _ in 0..number {
                let name = format!("rated-{:03}", turns.len());
                ratings.insert(name.clone(), satisfied);
                turns.push((name, grade));
            }
        }
        turns.extend((0..400).map(|number| (format!("only-{number:03}"), if number < 372 { Pass } else { Fail })));
        let named: Vec<(&str, [GradeValue; 2])> =
            turns.iter().map(|(name, grade)| (name.as_str(), [*grade; 2])).collect();
        let rows = tally(&named).rows(&rubric(), Some(&ratings));
        let found = rows[0].beside.as_ref().and_then(|beside| beside.estimate).expect("an estimate");
        assert!((found.value - 0.883_63).abs() < 5e-6 && (found.low - 0.8231).abs() < 5e-5, "{found:?}");
        assert_eq!((rows[0].passed, rows[0].n), (464, 500));
    }
}
