//! `ragcheck judge`: grades the answers of a run by a rubric, with a model.

use super::arguments::Judge;
use super::exit::Exit;
use super::output::{self, Problem};
use super::runs::is_there;
use super::select::{current_folder, variables};
use crate::grader::{self, Graded, GradingTask, ItemGrade, ItemRow, Scope, Tally};
use crate::scenario;
use crate::suite::evaluation::EvaluatedRun;
use crate::suite::{self, GradedRun, GradingOptions};
use crate::trace::{self, GradeValue, TrialError, text::plural};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Runs `ragcheck judge`.
///
/// # Errors
/// If the run, the project or the rubric cannot be used.
pub(super) fn run(given: &Judge) -> Result<Exit, Problem> {
    is_there(&given.run)?;
    let here = current_folder()?;
    let rubric = given.rubric.as_ref().map(|file| format!(" --rubric {}", file.display())).unwrap_or_default();
    let all = if given.all { " --all" } else { "" };
    let options = GradingOptions {
        root: scenario::find_root(&here),
        rubric: given.rubric.as_ref().map(|file| here.join(file)),
        mode: given.mode,
        scope: if given.all { Scope::All } else { Scope::BothSources },
        max_calls: given.max_calls,
        max_cost: given.max_cost,
        jobs: given.jobs,
        variables: variables(given.env_file.as_deref())?,
        command: format!("ragcheck judge {}{rubric}{all} --mode record", given.run.display()),
    };
    let graded = suite::grade(&given.run, &options)?;
    if graded.tasks.is_empty() {
        let hint = if given.all { "" } else { "; --all grades every answer, not only those from both sources" };
        output::remark(&format!("nothing to grade: no answer of {} qualifies{hint}", given.run.display()));
        return Ok(Exit::Failed);
    }
    if let Some(evaluated) = &graded.evaluated {
        let judged = Judged::of(&graded, evaluated, &given.run);
        output::data(given.format, &judged, |judged| report(judged, evaluated))?;
    }
    if let Some(why) = unusable(&graded.outcomes) {
        output::remark(&why);
        return Ok(Exit::Failed);
    }
    let failed =
        graded.tasks.iter().zip(&graded.outcomes).filter_map(|(task, outcome)| Some((task, outcome.as_ref().err()?)));
    let kept = graded.kept.iter().map(|(place, why)| (&graded.tasks[*place], why));
    let failures = failures(failed.chain(kept));
    if failures.is_empty() {
        return Ok(Exit::Passed);
    }
    output::remark(&failures);
    if !graded.kept.is_empty() {
        output::remark(&format!(
            "{} of these answers keep their grades from an earlier `--mode live`",
            graded.kept.len()
        ));
    }
    Ok(Exit::Incomplete)
}

/// What `judge` found.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Judged {
    /// The judge.
    pub model: String,
    /// The rubric.
    pub rubric: String,
    /// Where its replies come from, and of which days.
    pub provenance: String,
    /// Whether the judge graded answers of its own model.
    pub own_answers: bool,
    /// Answers, each asked twice.
    pub answers: usize,
    /// Trials that gave them.
    pub trials: usize,
    /// Distinct contents among them.
    pub contents: usize,
    /// Answers without a grade, because the judge could not be asked.
    pub not_graded: usize,
    /// Each item of the rubric, and all of them together.
    pub items: Vec<ItemRow>,
    /// File of the grades.
    pub grades: String,
    /// File of the agreement with people, if there are ratings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<String>,
}

impl Judged {
    fn of(run: &GradedRun, evaluated: &EvaluatedRun, folder: &Path) -> Self {
        let GradedRun { rubric, tasks, outcomes, contents, .. } = run;
        let mut tally = Tally::default();
        for (task, outcome) in tasks.iter().zip(outcomes) {
            if let Ok(graded) = outcome {
                tally.add(task, graded);
            }
        }
        let trials: BTreeSet<&str> = tasks.iter().map(|task| task.trial.as_str()).collect();
        let ratings = evaluated.plan().ratings.as_ref();
        let agreement = folder.join(trace::AGREEMENT);
        Self {
            model: rubric.model.name.clone(),
            rubric: rubric.rubric.clone(),
            provenance: provenance(outcomes),
            own_answers: tasks.iter().any(|task| task.model == rubric.model.name),
            answers: tasks.len(),
            trials: trials.len(),
            contents: *contents,
            not_graded: outcomes.iter().filter(|outcome| outcome.is_err()).count(),
            items: tally.rows(rubric, ratings),
            grades: folder.join(trace::GRADES).display().to_string(),
            agreement: (ratings.is_some() && agreement.exists()).then(|| agreement.display().to_string()),
        }
    }
}

fn report(judged: &Judged, evaluated: &EvaluatedRun) -> String {
    let mut lines = vec![format!(
        "judge: {} by the rubric `{}`, {}",
        judged.model,
        trace::text::line(&judged.rubric),
        judged.provenance
    )];
    lines.push(format!(
        "{} of {}, {}, each asked twice: items in order and reversed; equal contents share their grades, which the intervals do not account for",
        plural(judged.answers, "answer"),
        plural(judged.trials, "trial"),
        plural(judged.contents, "distinct content"),
    ));
    if judged.own_answers {
        lines.push("warning: the judge is the model that it grades; take one of another family".to_owned());
    }
    let table = grader::table(&judged.items, evaluated.plan().ratings.is_some());
    let mut text = format!("{}\n\n{table}grades: {}\n", lines.join("\n"), judged.grades);
    if let Some(file) = &judged.agreement {
        let what = "copy it into the project and name it under `agreement` in ragcheck.yaml: then grades decide gates";
        text.push_str(&format!("agreement with people: {file} ({what})\n"));
    } else if evaluated.plan().ratings.is_some() {
        text.push_str("agreement with people: not measured, because no rated trial of one turn has a verdict\n");
    }
    text
}

/// Why no grade can be used, if answers were graded but no item of any has a verdict.
fn unusable(outcomes: &[Result<Graded, TrialError>]) -> Option<String> {
    let items: Vec<&ItemGrade> = outcomes.iter().flatten().flat_map(|graded| &graded.items).collect();
    let usable = |item: &&ItemGrade| matches!(item.grade, GradeValue::Pass | GradeValue::Fail);
    if items.is_empty() || items.iter().any(usable) {
        return None;
    }
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for item in &items {
        *reasons.entry(trace::text::quote(&item.reason, 200)).or_default() += 1;
    }
    let mut reasons: Vec<(String, usize)> = reasons.into_iter().collect();
    reasons.sort_by(|(_, left), (_, right)| right.cmp(left));
    let told = reasons.iter().take(5).map(|(reason, count)| format!("  {}: {reason}", plural(*count, "grade")));
    let told: Vec<String> = told.collect();
    Some(format!(
        "no usable grade: not one of {} came to a verdict\n{}\n  the judge does not keep to the form of its reply: try \
         another model, or reword the rubric",
        plural(items.len(), "grade"),
        told.join("\n")
    ))
}

/// Origin and date of the grades, recorded and live separately.
fn provenance(outcomes: &[Result<Graded, TrialError>]) -> String {
    let mut sources: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for graded in outcomes.iter().flatten() {
        let mode = if graded.recorded_at.is_some() { "REPLAYED" } else { "LIVE" };
        let days = sources.entry(format!("{mode} from {}", trace::text::line(&graded.from))).or_default();
        days.extend(graded.recorded_at.as_deref().and_then(|at| at.split('T').next()));
    }
    let told = sources.into_iter().map(|(source, days)| match (days.first(), days.last()) {
        (Some(first), Some(last)) if first == last => format!("{source}, recorded {first}"),
        (Some(first), Some(last)) => format!("{source}, recorded {first} to {last}"),
        _ => source,
    });
    told.collect::<Vec<_>>().join("; ")
}

/// Why answers were not graded: one message per cause.
fn failures<'a>(failed: impl Iterator<Item = (&'a GradingTask, &'a TrialError)>) -> String {
    let mut causes: BTreeMap<&str, (usize, &GradingTask, &TrialError)> = BTreeMap::new();
    for (task, why) in failed {
        causes.entry(&why.cause).or_insert((0, task, why)).0 += 1;
    }
    let told = causes.into_values().map(|(count, task, why)| {
        let label = why.kind.label();
        let what = why.message.strip_prefix(&format!("{label}: ")).unwrap_or(&why.message);
        let mut lines = vec![format!("{label}: {}: {what}", plural(count, "answer"))];
        lines.push(format!("  first: {}, {}", task.trial, task.turn));
        lines.extend(why.detail.iter().map(|line| format!("  {line}")));
        trace::text::block(&lines.join("\n"))
    });
    told.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod unusable_tests {
    use super::*;

    fn graded(grade: GradeValue, reason: &str) -> Result<Graded, TrialError> {
        let item = ItemGrade { item: "a".into(), grade, quote: String::new(), reason: reason.into() };
        Ok(Graded { items: vec![item], from: "simulator".into(), recorded_at: None })
    }

    #[test]
    fn grades_of_which_none_came_to_a_verdict_are_unusable_with_the_reasons() {
        let garbled = || graded(GradeValue::Error, "the reply is no JSON");
        let why = unusable(&[garbled(), garbled(), graded(GradeValue::Inconsistent, "the orders disagree")]);
        let why = why.expect("no grade is usable");
        assert!(why.contains("not one of 3 grades") && why.contains("2 grades: the reply is no JSON"), "{why}");
        assert_eq!(unusable(&[garbled(), graded(GradeValue::Fail, "")]), None);
        assert_eq!(unusable(&[]), None, "what was not graded is told otherwise");
    }
}
