//! Runs trials, evaluates traces as they arrive, and writes everything into one folder.

mod prepare;

use super::first_replay::ForeignTools;
use super::never_asked;
use super::{DEFAULT_JOBS, Mode, RunOptions, Suite, SuiteError, Unlisted, environment};
use crate::gate::{Evaluation, Examiner, Verdict};
use crate::history::{self, Gather, HISTORY, HistoryError, NoPoint};
use crate::plan::Plan;
use crate::platform::bounds::Bound;
use crate::suite::evaluation::{self, Designs, EvaluatedRun, ExaminedTrace, RunEvaluator};
use crate::suite::recordings;
use crate::trace::text::plural;
use crate::trace::{self, Trace, TrialEnd, TrialErrorKind};
use crate::trial::run::{self, Begun, Commit, EarlierDraws, Journal, KeptTraces, LiveOptions, Step, folder::Writing};
use crate::trial::{self, Finished, Opened};
use jiff::Timestamp;
use prepare::PreparedRun;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A finished and written run.
pub struct FinishedRun {
    /// Run folder.
    pub folder: PathBuf,
    /// Verdicts of the run.
    pub evaluated: EvaluatedRun,
    /// Recorded exchanges that no trial used, as messages.
    pub unused: Vec<String>,
    /// Trials whose recording is too old by [`RunOptions::ages`], with its time.
    pub old: Vec<(String, Timestamp)>,
    /// Missing parts of a run that ended early; `None` if every trial ran.
    pub stopped: Option<StoppedRun>,
    /// Notes on recordings of which only some were made until decided, and on merging with an earlier run.
    pub notes: Vec<String>,
    /// Result of adding a point to the project's history.
    pub history: HistoryPoint,
}

/// A run that ended early, by a limit or a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoppedRun {
    /// Reason of the end.
    pub reason: String,
    /// Ids of the missing trials.
    pub missing: Vec<String>,
    /// Number of planned trials.
    pub planned: usize,
}

/// Result of adding a run to the project's history; its verdict does not depend on it.
#[derive(Debug)]
pub enum HistoryPoint {
    /// No point was requested: a replay, or a run without a history.
    NotAsked,
    /// The point was added.
    Added,
    /// The run has no point, with the reason.
    NoPoint(NoPoint),
    /// The history cannot be read or written.
    Failed(HistoryError),
}

impl Suite {
    /// Runs the selected trials, evaluates them and writes the run folder; [`RunOptions::progress`] shows the progress.
    ///
    /// # Errors
    /// [`SuiteError`] if nothing could be run, or the folder cannot be written.
    pub fn run(&self, options: &RunOptions) -> Result<FinishedRun, SuiteError> {
        let bounded = options.max_calls.is_some() || options.max_cost.is_some() || options.timeout.is_some();
        if options.mode == Mode::Replay && bounded {
            return Err(SuiteError::BoundedReplay);
        }
        if options.until_decided && options.partition.is_some() {
            return Err(SuiteError::PartitionUntilDecided);
        }
        if options.mode == Mode::Replay && options.hold.is_some() {
            return Err(SuiteError::HeldReplay);
        }
        let reports = options.reports.clone().unwrap_or_else(|| self.reports());
        let record = options.mode == Mode::Record;
        let _alone = record.then(|| recordings::lock("run --mode record")).transpose()?.flatten();
        let PreparedRun { plan, text, opened, kept, earlier, mut notes } = self.prepare(options, &reports)?;
        if record {
            recordings::writable(&opened, &plan)?;
        }
        options.progress.begin(plan.trials.len(), &opened.budget);
        let journal = journal(options, &reports, &plan, &text)?;
        let unwritten = |error: io::Error| match &journal {
            // Paid results are in the journal.
            Some(journal) => {
                let error = io::Error::new(error.kind(), format!("{}: {error}", reports.display()));
                SuiteError::Interrupted { error, finished: journal.finished() }
            }
            None => SuiteError::Write { reports: reports.clone(), error },
        };
        let chosen = &options.selection;
        let designs = record
            .then(|| Designs::begin(self.loaded(), &plan, !chosen.is_part() && options.partition.is_none()))
            .transpose()?;
        let published = plan.published();
        let mut evaluator = RunEvaluator::begin(&published)?;
        if options.for_comparison {
            evaluator = evaluator.collecting();
        }
        let examiner = evaluator.examiner();
        let mut writing = Writing::begin(&reports, &text).map_err(unwritten)?;
        let mut facts = TraceFacts::default();
        let mut commit = |step: Step<ExaminedTrace>| {
            let mut trial = match step {
                Step::Trial(trial) => *trial,
                Step::PassEnded(pass) if evaluator.end_of_pass(pass) => return Ok(ControlFlow::Continue(())),
                Step::PassEnded(_) => return Ok(ControlFlow::Break(())),
            };
            let completed = trial.finished.trace.end == TrialEnd::Completed;
            if let Some(again) = trial.finished.again.take() {
                let examined = ExaminedTrace::of(&examiner, &again, &trial.finished.passages);
                let verdict = examined.verdict().map_or(run::UNJUDGED, Verdict::as_str);
                if record {
                    trial::note_run_again(&opened, &again, verdict).map_err(io::Error::other)?;
                }
                if let Some(last) = trial.finished.trace.evidence.run_again.last_mut() {
                    verdict.clone_into(last);
                }
                trial.inspection = ExaminedTrace::of(&examiner, &trial.finished.trace, &trial.finished.passages);
                writing.run_again(&examined.line)?;
            } else if let Some(verdict) =
                trial.inspection.verdict().filter(|_| record && completed).map(Verdict::as_str)
            {
                trial::note_verdict(&opened, &trial.finished.trace, verdict).map_err(io::Error::other)?;
                // A replay of the recording has the same note.
                trial.finished.trace.evidence.noted_verdict = Some(verdict.to_owned());
                trial.inspection = ExaminedTrace::of(&examiner, &trial.finished.trace, &trial.finished.passages);
            }
            let trace = &trial.finished.trace;
            writing.trace(&trial.inspection.line)?;
            writing.passages(&trial.finished.passages)?;
            if let Some(text) = trial.finished.printed.as_deref().filter(|text| !text.is_empty()) {
                writing.printed(&trace.trial, text)?;
            }
            facts.add(trace, options);
            facts.unused.extend(trial.finished.unused);
            evaluator.add(Some(trace), &trial.finished.passages, trial.inspection).map_err(io::Error::other)?;
            Ok(ControlFlow::Continue(()))
        };
        let carried_out =
            carry_out(options, &opened, &plan, (journal.as_ref(), &kept, &earlier), &examiner, &mut commit);
        carried_out.map_err(|error| match &journal {
            Some(journal) => SuiteError::Interrupted { error, finished: journal.finished() },
            None => SuiteError::Stopped(error),
        })?;
        let mut evaluated = evaluator.finish();
        if record && opened.budget.reason().is_none() {
            let noted = recordings::note_model_ends(&opened, &plan);
            notes.extend(
                noted.err().map(|why| format!("warning: what providers say of their models' ends is not kept: {why}")),
            );
        }
        if record {
            let unread = TrialErrorKind::ReplyUnread.label();
            let groups = evaluated.evaluation.errors.iter().filter(|group| group.kind == unread);
            for trial in groups.flat_map(|group| &group.trials) {
                let noted = trial::note_error(&opened, &plan, trial);
                noted.map_err(|error| SuiteError::Stopped(io::Error::other(error)))?;
            }
        }
        if let Some(designs) = designs {
            designs.end(evaluated.evaluation.stopped.as_ref(), evaluated.evaluation.errors.is_empty())?;
        }
        let left_out = writing.flush().map_err(unwritten)?;
        notes.extend((left_out > 0).then(|| without_room(left_out)));
        evaluated.write(writing.path()).map_err(unwritten)?;
        let root = &self.loaded().root;
        let point = facts.gather.identity();
        let (mode, jobs) = (options.mode.as_str(), options.jobs);
        let of_run = environment::Facts { mode, jobs, point: Some(&point), made_at: None };
        environment::write(writing.path(), root, &of_run).map_err(unwritten)?;
        let ended = opened.budget.reason();
        let part = chosen.chooses_cases() || options.partition.is_some();
        let newest = ended.is_none() && !part && options.failed.is_none();
        let (folder, aside) = writing.finish(newest).map_err(unwritten)?;
        notes.extend(aside);
        // Additions to an earlier equal run, made here: grades count, and the page links to its comparisons.
        if folder.join(trace::GRADES).exists() {
            evaluated = evaluation::score(&folder, options.for_comparison)?;
        }
        if [trace::GRADES, trace::COMPARISON_HTML, trace::VARIANTS_HTML].iter().any(|file| folder.join(file).exists()) {
            evaluated.write(&folder).map_err(unwritten)?;
        }
        let TraceFacts { gather, foreign_tools, judged, mut unused, missing, old, failed } = facts;
        if options.mode == Mode::Replay {
            unused.extend(opened.agents.unused());
        }
        notes.extend(ended_between(opened.agents.ended_between()));
        let never_asked = never_asked::never_asked(&plan, &opened, &judged);
        if options.mode == Mode::Replay {
            let services = self.loaded().scenarios.iter().flat_map(|one| one.scenario.services.keys());
            let answers = |name: &&String| {
                !["model", "search"].contains(&name.as_str()) && !never_asked.iter().any(|(.., other)| other == name)
            };
            notes.extend(foreign_tools.note(&reports, &services.filter(answers).cloned().collect()));
        }
        // Cases that were left out may be the ones that ask.
        let whole = newest && !options.resume;
        notes.extend(never_asked.into_iter().filter(|_| whole).map(|one| never_asked::note(one, options.mode)));
        let history = match options.history.clone().filter(|_| options.mode != Mode::Replay) {
            Some(labels) => add_point(&root.join(HISTORY), gather, &evaluated.evaluation, options.jobs, labels),
            None => HistoryPoint::NotAsked,
        };
        let stopped = ended.map(|reason| StoppedRun { reason: reason.to_owned(), missing, planned: plan.trials.len() });
        if let Some(journal) = journal {
            // What ended and cannot be measured would not be run again.
            journal.end(stopped.is_none() && !failed);
        }
        let unlisted = Unlisted::beside(&folder);
        if options.mode == Mode::Replay {
            let pruned = run::folder::prune(&reports, self.loaded().project.keep_replays(), &folder);
            pruned.map_err(&unlisted)?;
        }
        notes.extend(evaluation::write_runs_page(&reports, root).map_err(unlisted)?);
        Ok(FinishedRun { folder, evaluated, unused, old, stopped, notes, history })
    }
}

/// Facts about trials noted beside their evaluation.
#[derive(Default)]
struct TraceFacts {
    gather: Gather,
    foreign_tools: ForeignTools,
    /// External scenarios with a trial that ended with an answer.
    judged: BTreeSet<String>,
    unused: Vec<String>,
    missing: Vec<String>,
    old: Vec<(String, Timestamp)>,
    /// Whether a trial ended in ERROR.
    failed: bool,
}

impl TraceFacts {
    fn add(&mut self, trace: &Trace, options: &RunOptions) {
        self.failed |= matches!(trace.end, TrialEnd::Error(_));
        if matches!(&trace.end, TrialEnd::Error(why) if why.kind == TrialErrorKind::Stopped) {
            self.missing.push(trace.trial.clone());
        }
        self.gather.add(trace);
        self.foreign_tools.add(trace);
        if trace.lane.flow == trace::EXTERNAL && trace.end == TrialEnd::Completed {
            self.judged.insert(trace.scenario.clone());
        }
        if let Some(ages) = &options.ages
            && let Some(at) = trace.evidence.recorded_at.as_ref().and_then(|at| at.parse().ok())
            && ages.too_old(at)
        {
            self.old.push((trace.trial.clone(), at));
        }
    }
}

/// Journal of a run that costs money; `None` in replay.
#[expect(clippy::disallowed_methods, reason = "a journal says when its run was begun")]
fn journal(options: &RunOptions, reports: &Path, plan: &Plan, text: &[u8]) -> Result<Option<Journal>, SuiteError> {
    if options.mode == Mode::Replay {
        return if options.resume { Err(SuiteError::ReplayResumed) } else { Ok(None) };
    }
    let mode = options.mode.as_str();
    Ok(Some(if options.resume {
        Journal::resume(reports, plan, text, mode)?
    } else {
        let arguments = std::env::args().skip(1).collect();
        Journal::begin(reports, plan, text, Begun::now(mode, Timestamp::now(), arguments))?
    }))
}

fn carry_out(
    options: &RunOptions,
    opened: &Arc<Opened>,
    plan: &Arc<Plan>,
    (journal, kept, earlier): (Option<&Journal>, &KeptTraces, &EarlierDraws),
    examiner: &Examiner<'_>,
    commit: &mut Commit<'_, ExaminedTrace>,
) -> io::Result<()> {
    let inspect = |finished: &Finished| {
        let examined = ExaminedTrace::of(examiner, &finished.trace, &finished.passages);
        options.progress.add(examined.verdict(), examined.cost());
        examined
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let Some(journal) = journal else {
        // An external agent waits more than it computes.
        let outside = plan.scenarios.iter().any(|scenario| scenario.agent.is_some());
        let usual = if outside { cores.max(usize::from(DEFAULT_JOBS)) } else { cores };
        return run::replay(opened, plan, options.jobs.map_or(usual, usize::from), kept, &inspect, commit);
    };
    let live = LiveOptions {
        jobs: usize::from(options.jobs.unwrap_or(DEFAULT_JOBS)),
        record: options.mode == Mode::Record,
        limit: options.timeout,
        journal,
        kept,
        earlier,
    };
    run::live(opened, plan, live, &inspect, commit)
}

/// Note on processes of agents that ended by themselves between two trials; when they end is up to them, so reports do
/// not count them.
fn ended_between(number: u32) -> Option<String> {
    (number > 0).then(|| {
        let times = if number == 1 { "once".to_owned() } else { format!("{number} times") };
        format!("the agent's process ended {times} between two trials, and was started again")
    })
}

/// Note that some passages are not stored in full.
fn without_room(left_out: usize) -> String {
    let bound = Bound::FoundPassagesSize;
    let passages = plural(left_out, "passage");
    format!(
        "{} takes {}: {passages} are in the traces only, shortened; {}",
        trace::PASSAGES,
        bound.shown(),
        bound.advice()
    )
}

#[expect(clippy::disallowed_methods, reason = "a live run's point says when it was made")]
fn add_point(
    file: &Path,
    gather: Gather,
    evaluation: &Evaluation,
    jobs: Option<u16>,
    labels: BTreeMap<String, String>,
) -> HistoryPoint {
    let now = Timestamp::now().to_string();
    match gather.finish(evaluation, &now, jobs.unwrap_or(DEFAULT_JOBS), labels) {
        Err(why) => HistoryPoint::NoPoint(why),
        Ok(point) => match history::append(file, &point) {
            Ok(_) => HistoryPoint::Added,
            Err(error) => HistoryPoint::Failed(error),
        },
    }
}
