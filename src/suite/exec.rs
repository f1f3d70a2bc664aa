//! Judges the cases that a test runner begins: `ragcheck exec`.
//!
//! The runner decides which cases there are, so the plan is finished when it has ended. A case with the name of one of the
//! scenario's must meet what that one expects; the others have only the rules that always apply.

use super::environment::{self, Facts};
use super::{FinishedRun, HistoryPoint, Mode, SuiteError, Unlisted};
use crate::gate::Verdict;
use crate::plan::{self, Part, Plan, PlannedCase, Selection};
use crate::platform::{secrets, yaml};
use crate::scenario::{self, Loaded, LoadedScenario};
use crate::settings::Provider;
use crate::suite::evaluation::{self, ExaminedTrace, RunEvaluator};
use crate::suite::recordings;
use crate::trace::text::{listed, plural, quote};
use crate::trace::{self, EXTERNAL, TrialEnd};
use crate::transport::Budget;
use crate::trial::external::runner::{self, NO_ADDRESS, Runner, RunnerTrial};
use crate::trial::run::{self, UNJUDGED, folder::Writing};
use crate::trial::{self, Opened, TrialMode, Variables};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of cases listed in a note.
const NAMED: usize = 5;

/// What a test runner is run with.
pub(crate) struct ExecOptions<'e> {
    pub(crate) mode: Mode,
    /// Program and arguments.
    pub(crate) command: &'e [OsString],
    /// The scenario that the cases are judged by.
    pub(crate) scenario: Named,
    /// Criteria in place of the project's.
    pub(crate) criteria: Option<PathBuf>,
    pub(crate) seed: u64,
    /// Maximum number of requests of a live or recording run.
    pub(crate) max_calls: Option<u64>,
    /// Variables with the providers' keys; they take precedence over the process environment.
    pub(crate) variables: Variables,
    /// Parent of the run folder; the project's reports folder by default.
    pub(crate) reports: Option<PathBuf>,
    /// The command that replays the cases, for messages.
    pub(crate) again: String,
    /// Whether the runner prints to the error output alone.
    pub(crate) stdout_is_ours: bool,
    /// Receives progress.
    pub(crate) tell: &'e (dyn Fn(&str) + Sync),
}

/// The scenario of a test runner.
pub(crate) enum Named {
    File(PathBuf),
    /// Usual settings: the text of a scenario, and providers beside the project's.
    Usual(String, BTreeMap<String, Provider>),
}

/// A finished and written run of a test runner.
pub(crate) struct ExecRun {
    pub(crate) run: FinishedRun,
    /// How the runner ended, each time that it failed.
    pub(crate) failures: Vec<String>,
    /// What kept a request or a case from being counted.
    pub(crate) problems: Vec<String>,
}

/// Runs a test runner from the project at or above `folder`, evaluates its cases and writes the run folder.
///
/// # Errors
/// [`SuiteError`] if nothing could be run, or the folder cannot be written.
pub(crate) fn exec(folder: &Path, options: &ExecOptions<'_>) -> Result<ExecRun, SuiteError> {
    let record = options.mode == Mode::Record;
    if options.mode == Mode::Replay && options.max_calls.is_some() {
        return Err(SuiteError::BoundedReplay);
    }
    let _alone = record.then(|| recordings::lock("exec --mode record")).transpose()?.flatten();
    let loaded = Arc::new(loaded(folder, options)?);
    let base = Arc::new(base(&loaded, options)?);
    let mut opened = Opened::new(Arc::clone(&loaded), &base)?;
    opened.variables.clone_from(&options.variables);
    opened.budget = Arc::new(Budget::new(options.max_calls));
    opened.records = Some(plan::in_mode(&options.again, Mode::Record.as_str()));
    let opened = Arc::new(opened);
    if record {
        recordings::writable(&opened, &base)?;
    }
    let mode = match options.mode {
        Mode::Live => TrialMode::Live,
        Mode::Record => TrialMode::Record,
        Mode::Replay => TrialMode::Replay,
    };
    let (shared, plan) = (Arc::clone(&opened), Arc::clone(&base));
    let runner = Runner {
        opened: shared,
        plan,
        mode,
        command: options.command,
        stdout_is_ours: options.stdout_is_ours,
        tell: options.tell,
    };
    let runner::Ran { mut trials, failures, mut problems, skipped } = runner::run(&runner)?;
    if trials.is_empty() {
        return Err(SuiteError::NoCase { failures, problems, skipped });
    }
    let mut plan = planned(&base, &mut trials);
    plan.mode = Some(if options.mode == Mode::Live { trace::Mode::Live } else { trace::Mode::Replay });
    plan.typed = Some(plan::Typed { exec: Some(options.again.clone()), ..plan::Typed::default() });
    let left_out = not_begun(&base, &plan);
    let is_usual = matches!(options.scenario, Named::Usual(..));
    let lost = if is_usual && options.mode == Mode::Replay { recorded_alone(&opened, &plan) } else { Vec::new() };
    if loaded.partial || !left_out.is_empty() {
        let cases = !left_out.is_empty();
        let by = if cases { "the cases that the test runner began".to_owned() } else { String::new() };
        let of = if cases { (plan.trials.number() + left_out.len()) as u64 } else { 0 };
        plan.part = Some(Part { of, by, cases, scenarios: loaded.partial });
    }
    let mut run = written(&opened, plan, trials, options)?;
    if !skipped.is_empty() {
        let all: Vec<String> = skipped.iter().map(|(name, why)| format!("{name} ({})", quote(why, 80))).collect();
        let number = plural(all.len(), "case");
        run.notes.push(format!("note: the tests skipped {number}, which the run leaves out: {}", all.join(", ")));
    }
    let left_out: Vec<String> = left_out.into_iter().filter(|name| !skipped.contains_key(name)).collect();
    if !left_out.is_empty() {
        run.notes.push(format!("note: the test runner did not begin {} of the scenario", left_out.join(", ")));
    }
    if !lost.is_empty() {
        let names = listed(lost.iter().map(|name| quote(name, 60)), NAMED);
        run.notes.push(format!("note: the test runner did not begin cases that are recorded: {names}"));
    }
    problems.extend(opened.budget.reason().map(str::to_owned));
    Ok(ExecRun { run, failures, problems })
}

/// The scenario and the criteria.
fn loaded(folder: &Path, options: &ExecOptions<'_>) -> Result<Loaded, SuiteError> {
    let file = if let Named::File(file) = &options.scenario { Some(file) } else { None };
    let (root, criteria) = (scenario::find_root(folder), options.criteria.as_deref());
    let mut loaded = scenario::load_for_runner(&root, file, criteria, &crate::catalogues())?;
    if let Named::Usual(text, providers) = &options.scenario {
        let scenario = yaml::read(text).map_err(|why| SuiteError::NotForRunner(why.to_string()))?;
        loaded.project.providers.extend(providers.clone());
        loaded.scenarios = vec![LoadedScenario {
            file: "ragcheck exec".to_owned(),
            scenario,
            case_places: Vec::new(),
            tables: BTreeSet::new(),
            prompts: BTreeMap::new(),
            managed_retrieval: None,
        }];
    }
    Ok(loaded)
}

/// The plan of a scenario, without trials: with its cases, unless its settings are the usual ones.
fn base(loaded: &Loaded, options: &ExecOptions<'_>) -> Result<Plan, SuiteError> {
    let wrong = |why: &str| SuiteError::NotForRunner(format!("--scenario: {why}"));
    let [source] = loaded.scenarios.as_slice() else { return Err(wrong("name the file of one scenario")) };
    let mut plan = plan::build(loaded, &Selection::default(), options.seed)?;
    let [planned] = plan.scenarios.as_mut_slice() else { return Err(wrong("name the file of one scenario")) };
    if planned.variants.len() != 1 || planned.variants[0].flow != EXTERNAL {
        return Err(wrong("a test runner calls one agent: write `flow: external`, and no `variants` or one"));
    }
    let target = source.scenario.target.clone().or_else(|| serde_json::from_str("{}").ok());
    let mut target = target.filter(|target| target.command.is_empty() && target.http.is_none()).ok_or_else(|| {
        wrong("its agent has an address or a command in `target`, so `ragcheck run` tests it; remove them for a test runner")
    })?;
    // What the runner is told of a turn.
    target.send = Some(serde_json::json!({
        "question": "{{message}}", "history": "{{history}}", "conversation_id": "{{conversation_id}}", "tenant": "{{tenant}}"
    }));
    let mut agent = source.scenario.agent_at(target);
    NO_ADDRESS.clone_into(&mut agent.proxy);
    planned.agent = Some(agent);
    if let Some(paired) = planned.cases.iter().find(|case| case.case.control) {
        let name = &paired.case.case;
        return Err(wrong(&format!("the case `{name}` has a control, which is a second conversation with the agent")));
    }
    if matches!(options.scenario, Named::Usual(..)) {
        planned.cases.clear();
    }
    plan.trials = Vec::new().into();
    Ok(plan)
}

/// The plan of what was run; sets the places of the trials in it.
fn planned(base: &Plan, trials: &mut [RunnerTrial]) -> Plan {
    let mut plan = base.clone();
    let mut cases: Vec<PlannedCase> = Vec::new();
    for one in trials.iter_mut() {
        if cases.last().is_none_or(|last| last.case.case != one.case.case.case) {
            cases.push(one.case.clone());
        }
        one.planned.case = cases.len() - 1;
    }
    for scenario in &mut plan.scenarios {
        scenario.cases.clone_from(&cases);
    }
    plan.trials = trials.iter().map(|one| one.planned.clone()).collect::<Vec<_>>().into();
    plan
}

/// Names of the scenario's cases that were not begun.
fn not_begun(base: &Plan, plan: &Plan) -> Vec<String> {
    let names = |plan: &Plan| -> Vec<String> {
        plan.scenarios.iter().flat_map(|scenario| &scenario.cases).map(|case| case.case.case.clone()).collect()
    };
    let begun = names(plan);
    names(base).into_iter().filter(|name| !begun.contains(name)).collect()
}

/// Names of recorded cases that are not in the plan.
fn recorded_alone(opened: &Opened, plan: &Plan) -> Vec<String> {
    let Some(scenario) = plan.scenarios.first() else { return Vec::new() };
    let folder = opened.cassettes.join(&scenario.name);
    let lanes = recordings::cassettes(Path::new(""), std::slice::from_ref(&folder)).unwrap_or_default();
    let cases = lanes.iter().filter_map(|lane| lane.path.parent()).filter(|case| **case != *folder);
    let names: BTreeSet<String> =
        cases.filter_map(|case| Some(case.file_name()?.to_string_lossy().into_owned())).collect();
    let begun = |name: &String| scenario.cases.iter().any(|case| case.case.case == *name);
    names.into_iter().filter(|name| !begun(name)).collect()
}

/// Evaluates the trials, and writes the run folder.
fn written(
    opened: &Opened,
    mut plan: Plan,
    trials: Vec<RunnerTrial>,
    options: &ExecOptions<'_>,
) -> Result<FinishedRun, SuiteError> {
    let loaded = &opened.loaded;
    let reports = options.reports.clone().unwrap_or_else(|| loaded.root.join(&loaded.project.reports));
    let unwritten = |error: io::Error| SuiteError::Write { reports: reports.clone(), error };
    let text = plan.stored(|text| secrets::clean_bytes(text).into_owned())?;
    let plan = Arc::new(plan).published();
    let mut evaluator = RunEvaluator::begin(&plan)?;
    let examiner = evaluator.examiner();
    let mut writing = Writing::begin(&reports, &text).map_err(unwritten)?;
    let mut unused = Vec::new();
    for RunnerTrial { finished, .. } in trials {
        let mut trace = finished.trace;
        trace.plan.clone_from(&plan.id);
        let mut examined = ExaminedTrace::of(&examiner, &trace, &finished.passages);
        if options.mode == Mode::Record && trace.end == TrialEnd::Completed {
            let verdict = examined.verdict().map_or(UNJUDGED, Verdict::as_str).to_owned();
            let noted = trial::note_verdict(opened, &trace, &verdict);
            noted.map_err(|why| SuiteError::Stopped(io::Error::other(why)))?;
            trace.evidence.noted_verdict = Some(verdict);
            examined = ExaminedTrace::of(&examiner, &trace, &finished.passages);
        }
        writing.trace(&examined.line).map_err(unwritten)?;
        writing.passages(&finished.passages).map_err(unwritten)?;
        unused.extend(finished.unused);
        evaluator.add(Some(&trace), &finished.passages, examined)?;
    }
    writing.flush().map_err(unwritten)?;
    let mut evaluated = evaluator.finish();
    evaluated.write(writing.path()).map_err(unwritten)?;
    let facts = Facts { mode: options.mode.as_str(), ..Facts::default() };
    environment::write(writing.path(), &loaded.root, &facts).map_err(unwritten)?;
    let newest = opened.budget.reason().is_none() && plan.part.as_ref().is_none_or(|part| !part.cases);
    let (folder, aside) = writing.finish(newest).map_err(unwritten)?;
    if folder.join(trace::GRADES).exists() {
        evaluated = evaluation::score(&folder, false)?;
    }
    if options.mode == Mode::Replay {
        run::folder::prune(&reports, loaded.project.keep_replays(), &folder).map_err(Unlisted::beside(&folder))?;
    }
    let kept = evaluation::write_runs_page(&reports, &loaded.root).map_err(Unlisted::beside(&folder))?;
    let (old, stopped, history) = (Vec::new(), None, HistoryPoint::NotAsked);
    Ok(FinishedRun { folder, evaluated, unused, old, stopped, notes: aside.into_iter().chain(kept).collect(), history })
}
