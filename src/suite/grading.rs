//! Grades the answers of a run folder by a rubric, with a model: writes `grades.jsonl` and `judgements.csv`, and
//! updates verdicts and reports.

use super::{Mode, SuiteError, Unlisted};
use crate::grader::{self, Graded, Grader, GradingTask, ItemGrade, Scope, Tally};
use crate::plan::Plan;
use crate::platform::files;
use crate::platform::secrets;
use crate::scenario::{self, Rubric, RubricEvidence};
use crate::suite::evaluation::{self, EvaluatedRun, ScoreError, read_plan, read_traces};
use crate::suite::recordings;
use crate::trace::{self, GRADE_VERSION, Grade, Grades, MeasuredAgreement, Passages, TrialError, TrialErrorKind};
use crate::transport::Budget;
use crate::trial::run::interrupted;
use crate::trial::{ModelAccess, Variables};
use futures_util::StreamExt;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Default path of the rubric.
const RUBRIC: &str = "scenarios/rubric.yaml";

#[derive(Debug, Clone)]
pub(crate) struct GradingOptions {
    /// Project folder.
    pub root: PathBuf,
    /// Path of the rubric; `scenarios/rubric.yaml` of the project by default.
    pub rubric: Option<PathBuf>,
    /// Source of grades; record mode only sends answers that have no recording.
    pub mode: Mode,
    /// All answers, or those with both sources.
    pub scope: Scope,
    /// Maximum number of requests; an answer takes two.
    pub max_calls: Option<u64>,
    /// Maximum cost in US dollars, by the project's prices.
    pub max_cost: Option<f64>,
    /// Number of answers graded at the same time, live or recording.
    pub jobs: u16,
    /// Variables with the providers' keys; they take precedence over the process environment.
    pub variables: Variables,
    /// Command that records missing gradings, for messages.
    pub command: String,
}

/// A graded run folder.
pub(crate) struct GradedRun {
    pub rubric: Rubric,
    /// Answers in the order of the traces.
    pub tasks: Vec<GradingTask>,
    /// Result for each answer, in the same order; equal contents were graded once.
    pub outcomes: Vec<Result<Graded, TrialError>>,
    /// Answers that this command did not grade and that keep the grades of an earlier live one, with why.
    pub kept: Vec<(usize, TrialError)>,
    /// Number of distinct contents.
    pub contents: usize,
    /// Verdicts of the folder with the grades; `None` if no answer was graded and nothing was written.
    pub evaluated: Option<EvaluatedRun>,
}

/// Result for each distinct content, by its hash.
type Outcomes = BTreeMap<String, Result<Graded, TrialError>>;

/// Grades the answers of the run in `folder` and writes the results there. Writes nothing if no answer was graded.
///
/// # Errors
/// If the run, the project or the rubric cannot be used; errors of single answers are in [`GradedRun::outcomes`].
pub(crate) fn grade(folder: &Path, options: &GradingOptions) -> Result<GradedRun, SuiteError> {
    if options.mode == Mode::Replay && (options.max_calls.is_some() || options.max_cost.is_some()) {
        return Err(SuiteError::BoundedReplayedGrading);
    }
    let _alone = (options.mode == Mode::Record).then(|| recordings::lock("judge --mode record")).transpose()?.flatten();
    let plan = read_plan(folder)?;
    let grader = open(options)?;
    if options.mode == Mode::Record {
        recordings::writable_folders(grader.folders().iter().map(PathBuf::as_path))?;
    }
    let wanted = grader.rubric().evidence == RubricEvidence::Passages;
    let whole = Passages::read(folder, |_| wanted).map_err(ScoreError::from)?;
    let mut tasks = Vec::new();
    for trace in read_traces(folder)? {
        tasks.extend(grader::tasks(&plan, &trace?, options.scope, &whole));
    }
    let hashes: Vec<String> = tasks.iter().map(|task| grader.hash(&task.content)).collect();
    let mut distinct: BTreeMap<&str, &GradingTask> = BTreeMap::new();
    for (task, hash) in tasks.iter().zip(&hashes) {
        distinct.entry(hash).or_insert(task);
    }
    let contents: Vec<(&str, &GradingTask)> = distinct.into_iter().collect();
    let mut found = outcomes(&grader, options, &contents)?;
    let kept = keep_earlier(folder, &mut found);
    let kept = (0..).zip(&hashes).filter_map(|(place, hash)| Some((place, kept.get(hash)?.clone()))).collect();
    let contents = contents.len();
    let stopped = || Err(stopped("it was not reached", options.mode));
    let outcomes: Vec<_> = hashes.iter().map(|hash| found.get(hash).cloned().unwrap_or_else(stopped)).collect();
    let mut graded = GradedRun { rubric: grader.rubric().clone(), tasks, outcomes, kept, contents, evaluated: None };
    if graded.outcomes.iter().any(Result::is_ok) {
        let rows = rows(&graded, &hashes, grader.digest());
        let unwritten = |error| SuiteError::GradesWrite { folder: folder.to_owned(), error };
        let clean = |line: &str| secrets::clean(line).into_owned();
        write(folder, trace::GRADES, &|out| trace::write_grades(out, &rows, clean)).map_err(unwritten)?;
        write(folder, trace::JUDGEMENTS_CSV, &|out| grader::write_csv(out, &rows)).map_err(unwritten)?;
        let mut written = vec![trace::GRADES, trace::JUDGEMENTS_CSV];
        if let Some(measured) = agreement(&plan, &graded, grader.digest()) {
            files::replace(folder.join(trace::AGREEMENT), measured.stored()).map_err(unwritten)?;
            written.push(trace::AGREEMENT);
        }
        trace::claim(folder, &written).map_err(unwritten)?;
        let mut evaluated = evaluation::score(folder, false)?;
        evaluated.write(folder).map_err(unwritten)?;
        evaluation::renew_runs_page(folder).map_err(Unlisted::beside(folder))?;
        graded.evaluated = Some(evaluated);
    }
    Ok(graded)
}

/// Agreement of the grades with the run's ratings; `None` if no rated trial of one turn has a grade with a verdict.
fn agreement(plan: &Plan, graded: &GradedRun, rubric: &str) -> Option<MeasuredAgreement> {
    let ratings = plan.ratings.as_ref()?;
    let mut tally = Tally::default();
    let mut from = String::new();
    for (task, outcome) in graded.tasks.iter().zip(&graded.outcomes) {
        if let (Ok(found), true) = (outcome, task.is_only) {
            tally.add(task, found);
            from.clone_from(&found.from);
        }
    }
    let case_of = |trial: &str| {
        let planned = plan.trials.place_of(trial).and_then(|place| plan.trials.at(place))?;
        Some((planned.scenario, planned.case))
    };
    let items = tally.agreement(&graded.rubric, ratings, None, case_of);
    let all = tally.agreement(&graded.rubric, ratings, Some(false), case_of);
    let grader = (rubric.to_owned(), graded.rubric.model.name.clone(), from);
    (!items.is_empty()).then(|| MeasuredAgreement::new(grader, plan.id.clone(), items, all))
}

fn open(options: &GradingOptions) -> Result<Grader, SuiteError> {
    let root = &options.root;
    let file = options.rubric.as_ref().map_or_else(|| root.join(RUBRIC), Clone::clone);
    let (project, rubric) = scenario::load_rubric(root, &file, &crate::catalogues()).map_err(SuiteError::Files)?;
    let model = format!("{}/{}", rubric.model.provider, rubric.model.name);
    let price = project.prices.get(&model).copied();
    if options.max_cost.is_some() && price.is_none() {
        return Err(SuiteError::UnpricedGrader(model));
    }
    if options.max_cost.is_some() && rubric.model.max_tokens.is_none() {
        return Err(SuiteError::UnboundedGrader);
    }
    let budget = Budget::new(options.max_calls).with_dollars(options.max_cost);
    let access = ModelAccess::new(&project, &rubric.model.provider, options.variables.clone(), budget)?;
    Ok(Grader::new(rubric, access.at_price(price), root, &project.cassettes, options.command.clone()))
}

fn outcomes(
    grader: &Grader,
    options: &GradingOptions,
    contents: &[(&str, &GradingTask)],
) -> Result<Outcomes, SuiteError> {
    let replayed = |(hash, task): &(&str, &GradingTask)| ((*hash).to_owned(), grader.replay(task));
    let mut outcomes = Outcomes::new();
    if options.mode != Mode::Live {
        outcomes = contents.par_iter().map(replayed).collect();
    }
    if options.mode == Mode::Replay {
        return Ok(outcomes);
    }
    // Contents with a matching recording are not sent again.
    let wanted = contents.iter().filter(|(hash, _)| !outcomes.get(*hash).is_some_and(Result::is_ok));
    let wanted: Vec<(&str, &GradingTask)> = wanted.copied().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(SuiteError::Runtime)?;
    let mut asked = Outcomes::new();
    runtime.block_on(async {
        let all = async {
            let questions = futures_util::stream::iter(wanted.iter().map(|(hash, task)| async move {
                let outcome = match options.mode {
                    Mode::Record => grader.record(task).await,
                    Mode::Replay | Mode::Live => grader.live(task).await,
                };
                ((*hash).to_owned(), outcome)
            }));
            let mut answers = questions.buffered(options.jobs.max(1).into());
            while let Some((hash, outcome)) = answers.next().await {
                asked.insert(hash, outcome);
            }
        };
        tokio::select! {
            biased;
            () = all => {}
            _ = grader.access().budget().ended() => {}
            why = interrupted() => grader.access().budget().end(why),
        }
    });
    let reason = grader.access().budget().reason().unwrap_or("it was not reached");
    for (hash, _) in &wanted {
        asked.entry((*hash).to_owned()).or_insert_with(|| Err(stopped(reason, options.mode)));
    }
    outcomes.extend(asked);
    Ok(outcomes)
}

/// Puts the live grades of the folder in place of outcomes without any, and returns what these were. No recording holds
/// such grades, and a content names the whole input: answer, rubric and model.
fn keep_earlier(folder: &Path, found: &mut Outcomes) -> BTreeMap<String, TrialError> {
    let grades = Grades::read(folder).ok().filter(|grades| !grades.are_edited()).unwrap_or_default();
    let mut earlier: BTreeMap<&str, Vec<&Grade>> = BTreeMap::new();
    for grade in grades.iter().filter(|grade| !grade.item.is_empty() && grade.recorded_at.is_none()) {
        let rows = earlier.entry(&grade.content).or_default();
        // Equal contents have equal grades: those of the first answer stand for all.
        if rows.first().is_none_or(|first| first.is_of_answer_of(grade)) {
            rows.push(grade);
        }
    }
    let mut kept = BTreeMap::new();
    for (hash, outcome) in found {
        let (Err(why), Some(rows)) = (&*outcome, earlier.get(hash.as_str())) else { continue };
        kept.insert(hash.clone(), why.clone());
        let items = rows.iter().map(|row| ItemGrade {
            item: row.item.clone(),
            grade: row.value,
            quote: row.evidence.clone(),
            reason: row.reason.clone(),
        });
        *outcome = Ok(Graded { items: items.collect(), from: rows[0].from.clone(), recorded_at: None });
    }
    kept
}

fn stopped(reason: &str, mode: Mode) -> TrialError {
    let then = match mode {
        Mode::Live => {
            "live grades are not recorded: the same command starts from the beginning; with `--mode record`, it can be continued"
        }
        Mode::Record | Mode::Replay => "what was recorded is kept; the same command continues from there",
    };
    let detail = vec![then.to_owned()];
    TrialError { kind: TrialErrorKind::Stopped, message: reason.to_owned(), cause: reason.to_owned(), detail }
}

/// One row for each answer and item, in the order of the traces.
fn rows(graded: &GradedRun, hashes: &[String], rubric: &str) -> Vec<Grade> {
    let mut rows = Vec::new();
    for ((task, outcome), hash) in graded.tasks.iter().zip(&graded.outcomes).zip(hashes) {
        let blank = Grade {
            version: GRADE_VERSION,
            trial: task.trial.clone(),
            conversation: task.at.0,
            turn: task.at.1,
            label: task.turn.clone(),
            answer: task.answer.clone(),
            model: graded.rubric.model.name.clone(),
            rubric: rubric.to_owned(),
            content: hash.clone(),
            ..Grade::default()
        };
        match outcome {
            Err(why) => rows.push(Grade { reason: why.message.clone(), ..blank }),
            Ok(found) => rows.extend(found.items.iter().map(|item| Grade {
                item: item.item.clone(),
                value: item.grade,
                evidence: item.quote.clone(),
                reason: item.reason.clone(),
                from: found.from.clone(),
                recorded_at: found.recorded_at.clone(),
                ..blank.clone()
            })),
        }
    }
    rows
}

/// Writes a file of the folder atomically.
fn write(folder: &Path, name: &str, content: &dyn Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut text = Vec::new();
    content(&mut text)?;
    files::replace(folder.join(name), secrets::clean_text_bytes(&text))
}
