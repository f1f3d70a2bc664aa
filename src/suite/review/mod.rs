//! What `ragcheck review` shows of a run and in which order, and the ratings file that it writes.
//!
//! Trials on which judges disagree come first, then a random sample. Only the sample shows how often people are
//! satisfied, so a rating says how its trial was drawn: a trial that is in the sample counts as drawn for it, even
//! where its judges disagree. Both orders come from a hash of seed and trial, so that the same seed gives the same
//! review again, and a larger sample begins with the smaller one.

mod table;

pub(crate) use table::{RatingsError, RatingsTable};

use super::evaluation::{self, ScoreError, read_plan, read_traces};
use crate::gate::Verdict;
use crate::grader::{self, Scope};
use crate::report::review::{ReviewTurn, conversations};
use crate::trace::{Grade, GradeValue, Grades, Mode, Passages};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What to show of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReviewOptions {
    /// Trials in the random sample.
    pub sample: usize,
    /// Most trials that are shown because judges disagree.
    pub disagreements: usize,
    /// Seed of the order.
    pub seed: u64,
    /// All answers, or those with both sources.
    pub scope: Scope,
}

/// The trials of a review.
#[derive(Debug)]
pub(crate) struct Review {
    /// In the order shown.
    pub items: Vec<ReviewItem>,
    /// Trials that could have been drawn.
    pub candidates: usize,
    /// Whether answers are of a live run: another run has other answers.
    pub live: bool,
}

/// One trial of a review.
#[derive(Debug)]
pub(crate) struct ReviewItem {
    /// Its id.
    pub trial: String,
    /// Whether it is in the random sample.
    pub sampled: bool,
    /// What was said in it.
    pub conversations: Vec<Vec<ReviewTurn>>,
}

/// Draws the trials of a review from the run in `folder`.
///
/// # Errors
/// If the folder does not hold a readable run.
pub(crate) fn draw(folder: &Path, options: ReviewOptions) -> Result<Review, ScoreError> {
    let plan = read_plan(folder)?;
    let grades = Grades::read(folder)?;
    let scored = evaluation::score(folder, false)?;
    let trials = scored.evaluation.trials.iter();
    let verdicts: BTreeMap<String, Verdict> = trials.map(|trial| (trial.id.to_string(), trial.verdict)).collect();
    let (mut candidates, mut live) = (Vec::new(), false);
    for trace in read_traces(folder)? {
        let trace = trace?;
        if !grader::tasks(&plan, &trace, options.scope, &Passages::default()).is_empty() {
            live |= trace.evidence.mode == Mode::Live;
            let disagree = disagree(grades.of_trial(&trace.trial), verdicts.get(&trace.trial).copied());
            candidates.push((trace.trial, disagree));
        }
    }
    let drawn = order(&candidates, options);
    let mut shown = BTreeMap::new();
    let wanted: BTreeSet<&str> = drawn.iter().map(|(trial, _)| *trial).collect();
    for trace in read_traces(folder)? {
        let trace = trace?;
        if wanted.contains(trace.trial.as_str()) {
            shown.insert(trace.trial.clone(), conversations(&trace));
        }
    }
    let item = |(trial, sampled): (&str, bool)| {
        let conversations = shown.remove(trial).unwrap_or_default();
        ReviewItem { trial: trial.to_owned(), sampled, conversations }
    };
    Ok(Review { items: drawn.into_iter().map(item).collect(), candidates: candidates.len(), live })
}

/// Whether judges disagree: an item's verdict depends on the order of the rubric, two graders differ on an item, or the
/// grades and the expectations of the case differ.
fn disagree(grades: &[Grade], verdict: Option<Verdict>) -> bool {
    let mut items: BTreeMap<(u32, u32, &str), BTreeSet<bool>> = BTreeMap::new();
    for grade in grades {
        if grade.value == GradeValue::Inconsistent {
            return true;
        }
        if let Some(passes) = grade.value.verdict() {
            items.entry((grade.conversation, grade.turn, &grade.item)).or_default().insert(passes);
        }
    }
    let passes = items.values().all(|verdicts| !verdicts.contains(&false));
    let differs = match verdict {
        Some(Verdict::Pass) => !passes,
        Some(Verdict::Fail) => passes,
        _ => false,
    };
    !items.is_empty() && (differs || items.values().any(|verdicts| verdicts.len() > 1))
}

/// The trials drawn, and whether each is in the random sample: disagreements first.
fn order(candidates: &[(String, bool)], options: ReviewOptions) -> Vec<(&str, bool)> {
    let hash = |trial: &str| Sha256::digest(format!("{}\n{trial}", options.seed)).to_vec();
    let mut shuffled: Vec<&(String, bool)> = candidates.iter().collect();
    shuffled.sort_by_cached_key(|(trial, _)| hash(trial));
    let mut disagreements = options.disagreements;
    let mut first = Vec::new();
    let mut others = Vec::new();
    for (place, (trial, disagree)) in shuffled.into_iter().enumerate() {
        let sampled = place < options.sample;
        if *disagree && disagreements > 0 {
            disagreements -= 1;
            first.push((trial.as_str(), sampled));
        } else if sampled {
            others.push((trial.as_str(), true));
        }
    }
    first.extend(others);
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use GradeValue::{Error, Fail, Inconsistent, Pass};

    fn options(sample: usize, disagreements: usize, seed: u64) -> ReviewOptions {
        ReviewOptions { sample, disagreements, seed, scope: Scope::All }
    }

    #[test]
    fn disagreements_come_first_and_the_sample_is_that_of_the_seed_whatever_else_is_shown() {
        let candidates: Vec<(String, bool)> = (0..100).map(|n| (format!("s/c{n}/f.v.1"), n % 10 == 0)).collect();
        let drawn = order(&candidates, options(20, 4, 7));
        let disagree = |trial: &str| candidates.iter().any(|(id, disagree)| id == trial && *disagree);
        assert!(drawn[..4].iter().all(|(trial, _)| disagree(trial)), "{drawn:?}");
        let sample = |drawn: &[(&str, bool)]| -> BTreeSet<String> {
            drawn.iter().filter(|(_, sampled)| *sampled).map(|(trial, _)| (*trial).to_owned()).collect()
        };
        assert_eq!(sample(&drawn).len(), 20);
        assert_eq!(sample(&drawn), sample(&order(&candidates, options(20, 0, 7))), "disagreements change no sample");
        assert!(sample(&order(&candidates, options(30, 4, 7))).is_superset(&sample(&drawn)), "a larger one goes on");
        assert_ne!(sample(&order(&candidates, options(20, 4, 8))), sample(&drawn));
        assert_eq!(order(&candidates, options(500, 0, 7)).len(), 100, "there are no more");
    }

    #[test]
    fn judges_disagree_over_the_order_with_each_other_or_with_the_case() {
        let grade = |item: &str, value: GradeValue| -> Grade {
            let text = serde_json::json!({"version": 1, "trial": "t", "conversation": 0, "turn": 0, "label": "turn 1",
                "answer": "a", "item": item, "kind": "model", "value": value, "model": "m", "rubric": "r", "content": "c"});
            serde_json::from_value(text).expect("a grade")
        };
        let of = |values: &[(&str, GradeValue)], verdict: Verdict| {
            let grades: Vec<Grade> = values.iter().map(|(item, value)| grade(item, *value)).collect();
            disagree(&grades, Some(verdict))
        };
        assert!(!of(&[("a", Pass), ("b", Pass)], Verdict::Pass) && !of(&[("a", Fail)], Verdict::Fail));
        assert!(of(&[("a", Inconsistent)], Verdict::Pass) && of(&[("a", Pass), ("a", Fail)], Verdict::Fail));
        assert!(of(&[("a", Pass), ("b", Fail)], Verdict::Pass) && of(&[("a", Pass)], Verdict::Fail));
        assert!(!of(&[], Verdict::Fail) && !of(&[("a", Error)], Verdict::Fail), "no grade is no disagreement");
    }
}
