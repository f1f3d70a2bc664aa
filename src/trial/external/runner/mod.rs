//! Cases of a test runner that calls the agent in its own process: `ragcheck exec`.
//!
//! The runner is started with the base URLs of our proxy and the address of `control`, where it begins and ends cases.
//! Each case is a trial like that of any external agent, and the runner stands for the agent (`case`): its requests
//! between beginning and end are the lane. A recording is verified as everywhere, by a replay, for which the runner is
//! started a second time.

mod case;
mod control;

pub(super) use case::{Beginnings, Begun, ENDED_EARLY, NEVER_ENDED};

use super::agents::{Mark, Place, environment};
use crate::plan::{Plan, PlannedCase, PlannedTrial, ResolvedCase, trial_seed};
use crate::platform::clock::{Clock, RealClock, timeout};
use crate::platform::lock::lock;
use crate::scenario::Turn;
use crate::trace::{Arm, EXTERNAL, Lane};
use crate::trial::run::interrupted;
use crate::trial::{Finished, Opened, TrialMode};
use control::Control;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The proxy's address in a plan: any port.
pub(crate) const NO_ADDRESS: &str = "127.0.0.1:0";
/// Variable with the address at which the runner begins cases.
const ADDRESS: &str = "RAGCHECK_URL";
/// How long an interrupted runner may take to end.
const END_LIMIT: Duration = Duration::from_secs(3);
/// Interval between two looks at trials that are about to end.
const LOOK: Duration = Duration::from_millis(10);

/// Why a runner cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// It cannot be started.
    #[error("`{command}` cannot be started: {error}")]
    Start { command: String, error: std::io::Error },
    /// A port cannot be opened on loopback, or there is no runtime.
    #[error("no server can be started on loopback: {0}")]
    Server(std::io::Error),
}

/// A test runner, and what its cases are judged by.
pub(crate) struct Runner<'r> {
    /// What the trials share; opened with `plan`.
    pub opened: Arc<Opened>,
    /// A plan with one scenario of one variant, and the cases that it expects something of.
    pub plan: Arc<Plan>,
    pub mode: TrialMode,
    /// Program and arguments.
    pub command: &'r [OsString],
    /// Whether it prints to the error output alone.
    pub stdout_is_ours: bool,
    /// Receives progress.
    pub tell: &'r (dyn Fn(&str) + Sync),
}

/// One case that a runner began, and its trial.
pub(crate) struct RunnerTrial {
    pub case: PlannedCase,
    /// Its trial, which is the only one of the only scenario of its plan.
    pub planned: PlannedTrial,
    pub finished: Finished,
}

/// Result of a runner.
pub(crate) struct Ran {
    /// The cases, the scenario's first and then by name, each in the order of its takes.
    pub trials: Vec<RunnerTrial>,
    /// How the runner ended each time that it was started, where that was no success.
    pub failures: Vec<String>,
    /// What kept a request or a case from being counted.
    pub problems: Vec<String>,
    /// Names of the cases whose tests were skipped, with the reason; they have no trial here.
    pub skipped: BTreeMap<String, String>,
}

/// A case by name, and its take.
type Key = (String, u32);

/// The cases of a runner.
struct Cases {
    opened: Arc<Opened>,
    plan: Arc<Plan>,
    mode: TrialMode,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    known: BTreeMap<Key, Known>,
    /// Cases that were begun and not ended, with the sender of the reply.
    open: BTreeMap<Key, control::Ending>,
    /// Whether the runner is running.
    runs: bool,
    /// Whether the runner was started a second time.
    verifies: bool,
    problems: Vec<String>,
}

/// A case that was begun.
struct Known {
    planned: (PlannedCase, PlannedTrial),
    beginnings: Arc<Beginnings>,
    /// `None` once the runner begins it no more.
    begins: Option<mpsc::UnboundedSender<Begun>>,
    begun: bool,
    /// Whether its trial was served, after it was begun last.
    served: bool,
    /// Why its test was skipped, if it was.
    skipped: Option<String>,
    task: JoinHandle<Finished>,
}

/// Runs a test runner, and the trials of the cases that it begins.
///
/// # Errors
/// If it cannot be started, or a server cannot.
pub(crate) fn run(runner: &Runner<'_>) -> Result<Ran, RunnerError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(RunnerError::Server)?;
    runtime.block_on(runner.run())
}

impl Runner<'_> {
    async fn run(&self) -> Result<Ran, RunnerError> {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let (opened, plan) = (Arc::clone(&self.opened), Arc::clone(&self.plan));
        let proxy = opened.agents.any_proxy().await.map_err(RunnerError::Server)?;
        let cases = Arc::new(Cases { opened, plan, mode: self.mode, state: Mutex::default() });
        let control = Control::open(&cases, proxy.address()).await.map_err(RunnerError::Server)?;
        let mut failures = Vec::new();
        failures.extend(self.start(&control, self.mode, &clock).await?);
        cases.runner_ended(&clock).await;
        let verifies = self.mode == TrialMode::Record && self.opened.budget.reason().is_none() && cases.verify();
        if verifies {
            (self.tell)("the cases are recorded; the test runner is started again, to verify the recordings");
            // Another address: `go test` and others keep results by what a test reads of its environment.
            let again = Control::open(&cases, proxy.address()).await.map_err(RunnerError::Server)?;
            failures.extend(self.start(&again, TrialMode::Replay, &clock).await?);
        }
        let outside = proxy.of_nobody();
        let mut ran = cases.end().await;
        ran.failures = failures;
        ran.problems.extend(outside.iter().map(|one| format!("outside any case, {one}; it was refused")));
        Ok(ran)
    }

    /// Starts the runner and waits for its end; returns how it failed, if it did.
    async fn start(
        &self,
        control: &Control,
        mode: TrialMode,
        clock: &Arc<dyn Clock>,
    ) -> Result<Option<String>, RunnerError> {
        let mut words = self.command.iter();
        let mut command = Command::new(words.next().map(OsString::as_os_str).unwrap_or_default());
        let environment = environment::of(control.base_urls(None), mode);
        command.args(words).envs(environment).env(ADDRESS, control.address()).kill_on_drop(true);
        if self.stdout_is_ours {
            command.stdout(std::io::stderr());
        }
        let mark = Mark::on(&mut command);
        // Before it starts: its first request may be quick.
        lock(&control.cases().state).runs = true;
        let mut child = command.spawn().map_err(|error| {
            let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
            RunnerError::Start { command: words.join(" "), error }
        })?;
        let status = tokio::select! {
            status = child.wait() => status,
            why = interrupted() => {
                self.opened.budget.end(why);
                self.stopped(&mut child, &mark, clock).await
            }
            // A request that the budget does not allow has no answer: its client would wait for one.
            _ = self.opened.budget.ended() => self.stopped(&mut child, &mark, clock).await,
        };
        let status = status.map_err(RunnerError::Server)?;
        Ok((!status.success()).then(|| match status.code() {
            Some(code) => format!("exit code {code}"),
            None => status.to_string(),
        }))
    }

    /// Waits for the end of a runner whose run has ended, and kills what it started and left running.
    async fn stopped(
        &self,
        child: &mut Child,
        mark: &Mark,
        clock: &Arc<dyn Clock>,
    ) -> std::io::Result<std::process::ExitStatus> {
        let status = Self::ended(child, clock).await;
        mark.kill();
        status
    }

    /// A terminal interrupts a runner too; one that goes on is asked to end, then killed.
    async fn ended(child: &mut Child, clock: &Arc<dyn Clock>) -> std::io::Result<std::process::ExitStatus> {
        if let Ok(status) = timeout(&**clock, END_LIMIT, child.wait()).await {
            return status;
        }
        #[cfg(unix)]
        if let Some(id) = child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())) {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
            if let Ok(status) = timeout(&**clock, END_LIMIT, child.wait()).await {
                return status;
            }
        }
        child.start_kill()?;
        child.wait().await
    }
}

impl State {
    /// The runner has ended: nothing ends what it left open.
    fn close(&mut self) {
        self.runs = false;
        self.open.clear();
    }
}

impl Cases {
    /// Ends what a runner left open, and waits until no trial runs: those that are recorded wait for a replay.
    async fn runner_ended(&self, clock: &Arc<dyn Clock>) {
        lock(&self.state).close();
        while lock(&self.state).known.values().any(|one| !one.task.is_finished() && !one.beginnings.waits()) {
            clock.sleep(LOOK).await;
        }
    }

    /// Prepares for the second start of the runner; whether a recording needs it.
    fn verify(&self) -> bool {
        let mut state = lock(&self.state);
        state.verifies = true;
        state.known.values_mut().for_each(|one| one.begun = false);
        state.known.values().any(|one| !one.task.is_finished())
    }

    /// Waits for the end of every trial.
    async fn end(&self) -> Ran {
        let mut state = {
            let mut state = lock(&self.state);
            state.close();
            std::mem::take(&mut *state)
        };
        state.known.values_mut().for_each(|one| one.begins = None);
        let (mut trials, mut all_skipped) = (Vec::new(), BTreeMap::new());
        for (_, Known { planned: (case, planned), task, skipped, .. }) in state.known {
            if let Some(why) = skipped {
                // Its trial has ended, or waits for what it will not receive.
                task.abort();
                all_skipped.insert(case.case.case, why);
                continue;
            }
            let finished = task.await.unwrap_or_else(|failure| {
                let plan = self.plan_of(&case, &planned);
                self.opened.trial(&plan, &planned).crashed(&failure.to_string())
            });
            trials.push(RunnerTrial { case, planned, finished });
        }
        let expected = self.expected();
        let place = |name: &str| expected.iter().position(|one| one.case.case == name).unwrap_or(expected.len());
        trials.sort_by_key(|one| place(&one.case.case.case));
        Ran { trials, failures: Vec::new(), problems: state.problems, skipped: all_skipped }
    }

    /// The scenario's cases.
    fn expected(&self) -> &[PlannedCase] {
        self.plan.scenarios.first().map_or(&[], |scenario| scenario.cases.as_slice())
    }

    /// A case that begins for the first time, with its trial. `questions` are what the agent is asked, turn by turn, unless
    /// the scenario says.
    fn planned(&self, (name, take): &Key, questions: Vec<String>) -> (PlannedCase, PlannedTrial) {
        let known = self.expected().iter().find(|one| one.case.case == *name).cloned();
        let case = known.unwrap_or_else(|| {
            let questions = if questions.is_empty() { vec![name.clone()] } else { questions };
            let turns = questions.into_iter().map(|ask| Turn { ask, expect: None }).collect();
            PlannedCase { table: None, line: 1, case: ResolvedCase::single(name, turns), input: String::new() }
        });
        let (scenario, variant) = self.plan.scenarios.first().map_or_else(Default::default, |scenario| {
            let variant = scenario.variants.first().map(|variant| variant.name.clone());
            (scenario.name.clone(), variant.unwrap_or_default())
        });
        let lane = Lane { flow: EXTERNAL.into(), variant, repetition: *take, arm: Arm::Main };
        let id = format!("{scenario}/{name}/{lane}");
        let seed = trial_seed(self.plan.seed, &id);
        (case, PlannedTrial { id, scenario: 0, case: 0, lane, seed })
    }

    fn plan_of(&self, case: &PlannedCase, planned: &PlannedTrial) -> Plan {
        let mut plan = (*self.plan).clone();
        for scenario in &mut plan.scenarios {
            scenario.cases = vec![case.clone()];
        }
        plan.trials = vec![planned.clone()].into();
        plan
    }

    #[expect(clippy::disallowed_methods, reason = "trials of a runner are tasks of their own, as live trials are")]
    fn start(&self, planned: (PlannedCase, PlannedTrial)) -> Known {
        let (begins, begun) = mpsc::unbounded_channel();
        let beginnings = Arc::new(Beginnings::new(begun));
        let plan = self.plan_of(&planned.0, &planned.1);
        let (opened, mode, of_trial, own) =
            (Arc::clone(&self.opened), self.mode, planned.1.clone(), Arc::clone(&beginnings));
        let task = tokio::spawn(async move {
            let (trial, place) = (opened.trial(&plan, &of_trial), Place::default());
            let finished = tokio::select! {
                biased;
                finished = super::carry_out(trial, mode, &place, Some(&own)) => finished,
                reason = opened.budget.ended() => trial.stopped(reason),
            };
            own.refuse(&finished.trace.end).await;
            finished
        });
        Known { planned, beginnings, begins: Some(begins), begun: false, served: false, skipped: None, task }
    }
}
