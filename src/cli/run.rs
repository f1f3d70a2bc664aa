//! `ragcheck run`: plan, run, judge, report.

use super::arguments::{Mode, Run, Select};
use super::compare::{self, Side};
use super::exit::Exit;
use super::history;
use super::output::{self, Problem};
use super::score::print;
use super::staleness::Ages;
use crate::evaluation::{Designs, EvaluatedRun, EvaluationBuilder, Prepared, Preparer, passes, recorded_passes};
use crate::gate::{Evaluation, Verdict};
use crate::history::{Gather, HISTORY};
use crate::plan::{self, Plan, Selection};
use crate::run::{self, Commit, LiveOptions, Step, folder::Writing};
use crate::scenario::{self, Loaded};
use crate::trace::{self, Trace, TrialEnd, TrialErrorKind};
use crate::transport::Budget;
use crate::trial::{self, TrialRunner, Variables};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Loads what is selected: the scenarios and the plan, machines not yet filled in. `passes` says how many a run until
/// decided may take.
///
/// # Errors
/// Every mistake in the files, or that nothing is selected.
pub fn select(
    given: &Select,
    trials: Option<BTreeSet<String>>,
    passes: impl FnOnce(&Loaded, &Selection) -> Result<Option<u32>, Problem>,
) -> Result<(Loaded, Plan), Problem> {
    let here = std::env::current_dir().map_err(|why| format!("the current folder cannot be read: {why}"))?;
    let loaded = scenario::load(&scenario::find_root(&here), &given.paths, given.criteria.as_deref())?;
    let mut selection = Selection {
        only: given.only.clone(),
        flow: given.flow.clone(),
        variant: given.variant.clone(),
        repeat: given.repeat,
        trials,
        passes: None,
    };
    selection.passes = passes(&loaded, &selection)?;
    let plan = plan::build(&loaded, &selection, given.seed)?;
    if plan.trials.is_empty() {
        return Err(Problem::Words(
            "no trial is selected: `ragcheck list` shows what there is to select from with --only, --flow and --variant"
                .into(),
        ));
    }
    Ok((loaded, plan))
}

/// Does what `ragcheck run` was asked to.
///
/// # Errors
/// When nothing could be run at all.
pub fn run(given: &Run) -> Result<Exit, Problem> {
    let bounded = given.max_calls.is_some() || given.max_cost.is_some() || given.timeout.is_some();
    if given.mode == Mode::Replay && bounded {
        return Err(Problem::Words(
            "--max-calls, --max-cost and --timeout bound live and recording runs; a replay sends nothing and waits for nothing: leave them out, or add --mode live".into(),
        ));
    }
    if given.mode == Mode::Replay && !given.label.is_empty() {
        return Err(Problem::Words(
            "--label names a point of the history, and a replay adds none: its recording is one already; `ragcheck history add RUN --label …` adds one afterwards".into(),
        ));
    }
    history::labels(&given.label)?;
    let trials = if given.failed { Some(failed_before(given)?) } else { None };
    if given.comparing.fail_on.is_some() && given.baseline.is_none() {
        return Err(Problem::Words(
            "--fail-on needs --baseline RUN|FILE: a regression is one against something".into(),
        ));
    }
    carry_on(given, trials)
}

/// Plans, runs, judges and reports; only `trials`, where they are given.
///
/// # Errors
/// When nothing could be run at all.
pub fn carry_on(given: &Run, trials: Option<BTreeSet<String>>) -> Result<Exit, Problem> {
    let labels = history::labels(&given.label)?;
    let baseline = given.baseline.as_deref().map(|named| Side::read(named, false)).transpose()?;
    let every = trials.is_none();
    let (loaded, mut plan) = select(&given.select, trials, |loaded, selection| most_passes(given, loaded, selection))?;
    let ages = Ages::new(given.warn_recordings_after, &loaded.project)?;
    let reports = given.report_dir.clone().unwrap_or_else(|| loaded.root.join(&loaded.project.reports));
    let root = loaded.root.clone();
    let chosen = &given.select;
    let whole = every && chosen.only.is_empty() && chosen.variant.is_none() && chosen.flow.is_none();
    let designs = (given.mode == Mode::Record).then(|| Designs::begin(&loaded, &plan, whole)).transpose()?;
    let runner = TrialRunner::new(Arc::new(loaded)).map_err(|why| why.to_string())?;
    let runner = runner.with_variables(variables(given.env_file.as_deref())?);
    let runner = Arc::new(runner.with_budget(Budget::new(given.max_calls).with_dollars(given.max_cost)));
    let unpriced: Vec<String> = given.max_cost.iter().flat_map(|_| runner.unpriced(&plan)).collect();
    if !unpriced.is_empty() {
        return Err(Problem::Words(format!(
            "--max-cost needs the price of everything that is asked, and ragcheck.yaml has none of {}: add it under `prices`",
            unpriced.join(", ")
        )));
    }
    plan.machines = runner.machines();
    if given.mode != Mode::Replay {
        plan.order = plan::interleaved(&plan.trials, plan.seed);
    }
    let plan = Arc::new(plan);
    let mut builder = EvaluationBuilder::begin(&plan).map_err(|why| why.to_string())?;
    if baseline.is_some() {
        builder = builder.collecting();
    }
    let preparer = builder.preparer();
    let text = plan.to_json().map_err(|why| why.to_string())?;
    let cannot_write = |why: io::Error| format!("the run cannot be written below {}: {why}", reports.display());
    let mut writing = Writing::begin(&reports, &text).map_err(cannot_write)?;
    let progress = progress(plan.trials.len(), given.mode);
    let (mut unused, mut missed, mut recorded) = (Vec::new(), Vec::new(), Vec::new());
    let mut gather = Gather::default();
    let mut commit = |step: Step<Prepared>| {
        let done = match step {
            Step::Trial(done) => *done,
            Step::PassEnded(pass) if builder.end_of_pass(pass) => return Ok(ControlFlow::Continue(())),
            Step::PassEnded(_) => return Ok(ControlFlow::Break(())),
        };
        writing.trace(&done.made.line)?;
        if matches!(&done.finished.trace.end, TrialEnd::Error(why) if why.kind == TrialErrorKind::Stopped) {
            missed.push(done.finished.trace.trial.clone());
        }
        gather.add(&done.finished.trace);
        unused.extend(done.finished.unused);
        if let Some(at) = done.finished.trace.evidence.recorded_at.as_ref().and_then(|at| at.parse().ok())
            && ages.too_old(at)
        {
            recorded.push((done.finished.trace.trial.clone(), at));
        }
        if let (Mode::Record, TrialEnd::Completed, Some(verdict)) =
            (given.mode, &done.finished.trace.end, done.made.verdict())
        {
            runner.note_verdict(&done.finished.trace, verdict).map_err(io::Error::other)?;
        }
        builder.add(Some(&done.finished.trace), done.made).map_err(io::Error::other)?;
        progress.inc(1);
        Ok(ControlFlow::Continue(()))
    };
    carry_out(given, &runner, &plan, &preparer, &mut commit).map_err(|why| format!("the run stopped: {why}"))?;
    progress.finish_and_clear();
    let mut judged = builder.finish();
    if let Some(designs) = designs {
        designs.end(judged.evaluation.stopped.as_ref(), judged.evaluation.errors.is_empty())?;
    }
    judged.write(writing.path()).map_err(cannot_write)?;
    write_environment(writing.path(), &format!("{:?}", given.mode).to_lowercase(), given.jobs, &root)
        .map_err(cannot_write)?;
    let folder = writing.finish().map_err(cannot_write)?;
    report(&judged, given, &folder, &unused);
    if given.mode != Mode::Replay && !given.no_history {
        history::note(&root.join(HISTORY), gather, &judged.evaluation, given.jobs, labels);
    }
    ages.remark(&recorded).iter().for_each(|remark| output::remark(remark));
    if let Some(reason) = runner.budget().reason() {
        output::remark(&missing(&missed, plan.trials.len(), reason));
    }
    let exit = Exit::of_code(judged.evaluation.exit_code);
    let Some(baseline) = baseline else { return Ok(exit) };
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let summary = judged.summary(&name).ok_or_else(|| "the run kept no figures to compare".to_owned())?;
    let linked = judged.linked().map_err(|why| why.to_string())?;
    let this = Side::of_run(summary, &folder, linked);
    Ok(exit.worse(compare::conclude(&baseline, &this, &given.comparing, given.format, false)?))
}

/// The most passes of a run that stops when it is decided; `None` for one that runs every trial. A live or recording
/// run is asked for it; a replay does what its recordings say.
fn most_passes(given: &Run, loaded: &Loaded, selection: &Selection) -> Result<Option<u32>, Problem> {
    if given.mode != Mode::Replay {
        let most = given.until_decided.then(|| passes(loaded, selection, given.max_trials));
        return Ok(most.transpose()?);
    }
    let recorded = recorded_passes(loaded, selection)?;
    if given.until_decided && recorded.is_none() {
        return Err(Problem::Words(
            "--until-decided is for --mode record and --mode live: these recordings are as many as were planned, and a replay judges them so".into(),
        ));
    }
    recorded.iter().filter_map(|recorded| recorded.note()).for_each(|note| output::remark(&note));
    Ok(recorded.map(|recorded| recorded.most))
}

/// What a run that was ended early lacks, and how to get it.
fn missing(trials: &[String], planned: usize, reason: &str) -> String {
    const SHOWN: usize = 5;
    let mut lines = vec![format!("stopped: {reason}; {} of {planned} trials are missing:", trials.len())];
    lines.extend(trials.iter().take(SHOWN).map(|trial| format!("  {trial}")));
    if trials.len() > SHOWN {
        lines.push(format!("  and {} more", trials.len() - SHOWN));
    }
    lines.push("finished trials are kept; add --failed to the same command to run the others".to_owned());
    lines.join("\n")
}

/// The variables of the environment file, where one is given.
///
/// # Errors
/// When it cannot be read, or a line of it is no variable.
pub fn variables(file: Option<&Path>) -> Result<Variables, Problem> {
    let Some(file) = file else { return Ok(Variables::new()) };
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(|why| format!("--env-file: {shown} cannot be read: {why}"))?;
    let read = trial::read_variables(&text);
    read.map_err(|line| Problem::Words(format!("--env-file: {shown}, line {line}: expected `KEY=VALUE` or a comment")))
}

fn carry_out(
    given: &Run,
    runner: &Arc<TrialRunner>,
    plan: &Arc<Plan>,
    preparer: &Preparer<'_>,
    commit: &mut Commit<'_, Prepared>,
) -> io::Result<()> {
    let make = |trace: &Trace| preparer.prepare(trace);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    match given.mode {
        Mode::Replay => run::replay(runner, plan, given.jobs.map_or(cores, usize::from), &make, commit),
        Mode::Record | Mode::Live => {
            let options = LiveOptions {
                jobs: usize::from(given.jobs.unwrap_or(history::USUAL_JOBS)),
                record: given.mode == Mode::Record,
                limit: given.timeout,
            };
            run::live(runner, plan, options, &make, commit)
        }
    }
}

fn report(judged: &EvaluatedRun, given: &Run, folder: &Path, unused: &[String]) {
    print(judged, given.format, folder);
    if !unused.is_empty() {
        let number = unused.len();
        let what = if number == 1 { "exchange was" } else { "exchanges were" };
        let mut lines = vec![format!("note: {number} recorded {what} not asked for:")];
        lines.extend(unused.iter().take(5).map(|what| format!("  {what}")));
        if number > 5 {
            lines.push(format!("  and {} more", number - 5));
        }
        output::remark(&lines.join("\n"));
    }
}

/// The trials of the newest run that did not pass.
fn failed_before(given: &Run) -> Result<BTreeSet<String>, Problem> {
    let reports = given.report_dir.clone().unwrap_or_else(reports_folder);
    let file = reports.join("latest").join(trace::RUN);
    let text = std::fs::read_to_string(&file)
        .map_err(|why| format!("--failed needs an earlier run, and {} cannot be read: {why}", file.display()))?;
    let judgement: Evaluation = serde_json::from_str(&text).map_err(|why| format!("{}: {why}", file.display()))?;
    let failed: BTreeSet<String> = judgement
        .trials
        .iter()
        .filter(|trial| trial.verdict != Verdict::Pass)
        .map(|trial| trial.id.into_owned())
        .collect();
    if failed.is_empty() {
        return Err(Problem::Words(format!("--failed: every trial of {} passed", file.display())));
    }
    Ok(failed)
}

fn progress(trials: usize, mode: Mode) -> ProgressBar {
    let target = if mode == Mode::Replay { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} trials, {elapsed} gone, about {eta} to go");
    let bar = ProgressBar::with_draw_target(Some(trials as u64), target);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// What differs between machines and runs, and therefore is nowhere else.
#[expect(clippy::disallowed_methods, reason = "environment.json is where the wall clock may show")]
pub fn write_environment(folder: &Path, mode: &str, jobs: Option<u16>, root: &Path) -> io::Result<()> {
    let environment = json!({
        "ragcheck": env!("CARGO_PKG_VERSION"),
        "written_at": jiff::Timestamp::now().to_string(),
        "mode": mode,
        "jobs": jobs,
        "project": root.display().to_string(),
        "arguments": std::env::args().skip(1).collect::<Vec<_>>(),
        "system": std::env::consts::OS,
        "processor": std::env::consts::ARCH,
    });
    std::fs::write(folder.join(trace::ENVIRONMENT), serde_json::to_vec_pretty(&environment)?)
}

/// The folder that holds runs, as the project says; the usual one where the project has mistakes.
pub fn reports_folder() -> PathBuf {
    let root = scenario::find_root(&std::env::current_dir().unwrap_or_default());
    let reports = scenario::load(&root, &[], None).map_or_else(|_| "reports".into(), |loaded| loaded.project.reports);
    root.join(reports)
}
