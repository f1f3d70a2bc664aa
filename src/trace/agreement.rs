//! Agreement of a model's grades with people: `agreement.json`, measured by `ragcheck judge` in a run with ratings.
//!
//! Valid for one rubric and one model only. A file edited by hand is rejected, because it is evidence. A reader
//! rejects a newer version and ignores unknown fields of an equal one.

use super::{Seal, seal, sealed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the file that this build writes.
const VERSION: u32 = 1;

/// File with the agreement, beside the grades.
pub(crate) const AGREEMENT: &str = "agreement.json";

/// The agreement of a rubric's items with people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredAgreement {
    /// Format version.
    pub version: u32,
    /// SHA-256, in hex, of the rubric and its model's settings.
    pub rubric: String,
    /// The model that graded.
    pub model: String,
    /// Service that answered for it: `simulator`, or the provider and model.
    pub from: String,
    /// The id of the plan whose answers were rated.
    pub plan: String,
    /// By item: rated trials with one graded answer whose grade is a verdict.
    pub items: BTreeMap<String, Agreement>,
    /// By item: rated trials with one graded answer; a grade without a verdict counts as a failure, as it does in a gate
    /// with a lower limit. Empty in a file that an older build wrote.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub all_answers: BTreeMap<String, Agreement>,
}

/// Grades of one item compared with human ratings, one per trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Agreement {
    /// Both pass it.
    pub both: u64,
    /// The model passes it, the person does not.
    pub judge_only: u64,
    /// The person passes it, the model does not.
    pub human_only: u64,
    /// Neither passes it.
    pub neither: u64,
    /// The model's errors by case; `None` in a file that an older build wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_case: Option<ErrorsByCase>,
}

/// A model's errors with each case counted once, however often it was rated: repetitions of a case err together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorsByCase {
    /// Cases with an answer that the person fails.
    pub bad: u64,
    /// The sum of these cases' shares that the model passes, in millionths, rounded up.
    pub judge_only: u64,
    /// Cases with an answer that the person passes.
    pub good: u64,
    /// The sum of these cases' shares that the model fails, in millionths, rounded up.
    pub human_only: u64,
}

impl ErrorsByCase {
    /// Adds one case: human ratings of its answers, and the model's grades.
    fn add(&mut self, case: &Agreement) {
        let share = |wrong: u64, right: u64| (wrong * 1_000_000).div_ceil(wrong + right);
        if case.judge_only + case.neither > 0 {
            self.bad += 1;
            self.judge_only += share(case.judge_only, case.neither);
        }
        if case.human_only + case.both > 0 {
            self.good += 1;
            self.human_only += share(case.human_only, case.both);
        }
    }
}

impl Agreement {
    /// The same for an item whose failure is desirable.
    #[must_use]
    pub fn mirrored(self) -> Self {
        let by_case = self.by_case.map(|one| ErrorsByCase {
            bad: one.good,
            judge_only: one.human_only,
            good: one.bad,
            human_only: one.judge_only,
        });
        let Self { both, judge_only, human_only, neither, .. } = self;
        Self { both: neither, judge_only: human_only, human_only: judge_only, neither: both, by_case }
    }

    /// Combines the agreement of several cases.
    pub fn of_cases<'a>(cases: impl IntoIterator<Item = &'a Self>) -> Self {
        let (mut all, mut by_case) = (Self::default(), ErrorsByCase::default());
        for case in cases {
            all.both += case.both;
            all.judge_only += case.judge_only;
            all.human_only += case.human_only;
            all.neither += case.neither;
            by_case.add(case);
        }
        Self { by_case: Some(by_case), ..all }
    }

    /// Counts one rated trial.
    pub fn add(&mut self, judge: bool, human: bool) {
        match (judge, human) {
            (true, true) => self.both += 1,
            (true, false) => self.judge_only += 1,
            (false, true) => self.human_only += 1,
            (false, false) => self.neither += 1,
        }
    }

    /// The observed share `f` of the answers that people fail and the model passes, and the share `g` of those that people
    /// pass and the model fails; `None` unless both kinds of answers were rated.
    pub fn error_rates(&self) -> Option<(f64, f64)> {
        let share = |part: u64, other: u64| (part + other > 0).then(|| part as f64 / (part + other) as f64);
        share(self.judge_only, self.neither).zip(share(self.human_only, self.both))
    }

    /// Number of rated trials.
    pub fn total(&self) -> u64 {
        self.both + self.judge_only + self.human_only + self.neither
    }
}

/// Reason why an agreement file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AgreementError {
    /// It is not valid JSON of this format.
    #[error("it is no measured agreement: {0}; `ragcheck judge` writes one for a run with ratings")]
    Parse(#[from] serde_json::Error),
    /// It was edited.
    #[error(
        "it was edited after it was measured; copy it again from the run folder, or measure it again with `ragcheck judge`"
    )]
    Edited,
    /// Written by a newer build.
    #[error("format {0} is newer than this build reads ({VERSION}); update ragcheck")]
    Newer(u32),
}

impl MeasuredAgreement {
    /// Creates the agreement from the measured items: over verdicts, and over all answers.
    pub fn new(
        grader: (String, String, String),
        plan: String,
        items: BTreeMap<String, Agreement>,
        all_answers: BTreeMap<String, Agreement>,
    ) -> Self {
        let (rubric, model, from) = grader;
        Self { version: VERSION, rubric, model, from, plan, items, all_answers }
    }

    /// The agreement of an item for a gate whose limit is a ceiling (which takes no answer without a verdict), or not.
    pub fn of_item(&self, item: &str, is_ceiling: bool) -> Option<Agreement> {
        let verdicts = self.items.get(item)?;
        let all = self.all_answers.get(item).filter(|_| !is_ceiling);
        Some(*all.unwrap_or(verdicts))
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// If it is not an agreement file, was edited, or comes from a newer build.
    pub fn read(text: &str) -> Result<Self, AgreementError> {
        let found: Self = serde_json::from_str(text)?;
        if found.version > VERSION {
            return Err(AgreementError::Newer(found.version));
        }
        if sealed(text) == Seal::Whole { Ok(found) } else { Err(AgreementError::Edited) }
    }

    /// The text of its file.
    pub fn stored(&self) -> String {
        seal(&serde_json::to_string_pretty(self).unwrap_or_default()).0 + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agreement_comes_back_as_it_was_measured_and_an_edited_one_is_refused() {
        let item = Agreement { both: 40, judge_only: 1, human_only: 2, neither: 30, by_case: None };
        let grader = ("r".to_owned(), "m".to_owned(), "simulator".to_owned());
        let items = BTreeMap::from([("grounded".into(), item)]);
        let measured = MeasuredAgreement::new(grader, "p".into(), items.clone(), items);
        let text = measured.stored();
        assert_eq!(MeasuredAgreement::read(&text).expect("read"), measured);
        assert!(matches!(MeasuredAgreement::read(&text.replace("40", "90")), Err(AgreementError::Edited)));
        let newer = MeasuredAgreement { version: 2, ..measured };
        assert!(matches!(MeasuredAgreement::read(&newer.stored()), Err(AgreementError::Newer(2))));
        assert!(MeasuredAgreement::read("{}").is_err());
    }

    #[test]
    fn a_lower_limit_counts_all_answers_and_an_upper_limit_those_with_a_verdict() {
        let one = |human_only| Agreement { both: 5, judge_only: 0, human_only, neither: 5, by_case: None };
        let of = |human_only| BTreeMap::from([("polite".to_owned(), one(human_only))]);
        let grader = || ("r".to_owned(), "m".to_owned(), "simulator".to_owned());
        let measured = MeasuredAgreement::new(grader(), "p".into(), of(1), of(7));
        assert_eq!(measured.of_item("polite", false), Some(one(7)));
        assert_eq!(measured.of_item("polite", true), Some(one(1)));
        let older = MeasuredAgreement::new(grader(), "p".into(), of(1), BTreeMap::new());
        assert_eq!(older.of_item("polite", false), Some(one(1)));
        assert_eq!(older.of_item("another", false), None);
    }
}
