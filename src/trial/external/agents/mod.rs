//! Where external agents run: processes that ragcheck starts, or servers that somebody else started; and the proxies
//! through which they reach their services.
//!
//! A process, its port and its proxy are a [`Worker`], which runs one trial at a time: trials with `command` run side by
//! side. An agent that runs elsewhere has one proxy at a fixed address: `turnstile` says when its trials may run.

mod contact;
pub(super) mod environment;
mod lines;
mod mark;
mod output;
mod process;
mod turnstile;

pub(crate) use contact::Contact;
pub(super) use mark::Mark;
pub(crate) use process::NoContact;
pub(super) use process::{Process, START_LIMIT};
pub(crate) use turnstile::Place;

use super::setup::ExternalSetup;
use super::spans;
use super::start::{Starts, Unfit};
use crate::platform::clock::Clock;
use crate::platform::lock::lock;
use crate::scenario::external::PORT;
use crate::trace::{TrialError, TrialErrorKind};
use crate::trial::TrialMode;
use crate::trial::opened::Trial;
use crate::trial::outcome::error;
use crate::trial::proxy::Proxy;
use crate::trial::recording::RecordingError;
use crate::trial::services::LiveAccess;
use process::Start;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use turnstile::Turnstile;

/// Any port of this machine.
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
/// Idle processes that are kept for the trials of other scenarios.
const MOST_IDLE: usize = 4;

/// The agents of a run.
#[derive(Default)]
pub(crate) struct Agents {
    proxies: tokio::sync::Mutex<BTreeMap<SocketAddr, Arc<Proxy>>>,
    turnstile: Turnstile,
    starts: Starts,
    idle: Arc<Mutex<Vec<Worker>>>,
    /// Why a kind of process cannot be started: the next trial does not try again.
    failed: Mutex<BTreeMap<Kind, Box<TrialError>>>,
    /// Processes that ended after a trial, before the next one.
    ended_between: AtomicU32,
    /// Scenarios, by index in the plan, and variants of which a trial was watched, see [`Agents::watches`].
    watched: Mutex<BTreeSet<(usize, String)>>,
    /// Services that agents asked, by the scenario's index in the plan.
    asked: Mutex<BTreeMap<usize, BTreeSet<&'static str>>>,
    /// Whether a process that reads lines has replied to a turn, by kind.
    replied: Mutex<BTreeMap<Kind, Arc<AtomicBool>>>,
}

/// Processes of one kind can take each other's trials: the scenario's index in the plan, the variant, and
/// what they are started for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    scenario: usize,
    variant: String,
    mode: &'static str,
}

/// A process with its proxy.
struct Worker {
    kind: Kind,
    process: Process,
    proxy: Arc<Proxy>,
    /// Notes about its start, for the trials that run in it.
    notes: Vec<String>,
}

/// An agent that serves one trial.
pub(super) struct Lease {
    /// Through which it reaches its services.
    pub(super) proxy: Arc<Proxy>,
    /// `None` for an agent that runs elsewhere.
    worker: Option<Worker>,
    idle: Arc<Mutex<Vec<Worker>>>,
}

impl Lease {
    /// The process, if ragcheck started it.
    pub(super) fn process(&self) -> Option<&Process> {
        self.worker.as_ref().map(|worker| &worker.process)
    }

    /// Notes about the start of the process.
    pub(super) fn notes(&self) -> &[String] {
        self.worker.as_ref().map_or(&[], |worker| &worker.notes)
    }

    /// Keeps the process for another trial. A lease that is only dropped, as that of an interrupted trial, ends it.
    pub(super) fn release(mut self) {
        let Some(worker) = self.worker.take().filter(|worker| worker.process.may_go_on()) else { return };
        let mut idle = lock(&self.idle);
        idle.push(worker);
        if idle.len() > MOST_IDLE.max(std::thread::available_parallelism().map_or(1, usize::from)) {
            idle.remove(0);
        }
    }
}

/// What an agent is needed for.
pub(super) struct Wanted<'w> {
    pub(super) setup: &'w ExternalSetup,
    pub(super) trial: Trial<'w>,
    pub(super) mode: TrialMode,
    /// Whether no earlier trial may have run in the process.
    pub(super) fresh: bool,
    pub(super) clock: &'w Arc<dyn Clock>,
    /// Access to the providers while a process starts.
    pub(super) access: &'w (dyn Fn() -> Result<LiveAccess, Box<TrialError>> + Sync),
}

impl Agents {
    /// Waits until a trial may run.
    pub(super) async fn place(&self, setup: Option<&ExternalSetup>) -> Place {
        self.turnstile.place(setup).await
    }

    /// Whether a trial is the first of its scenario and variant: the agent's way of working is not known yet.
    pub(super) fn watches(&self, trial: Trial<'_>) -> bool {
        lock(&self.watched).insert((trial.planned.scenario, trial.planned.lane.variant.clone()))
    }

    /// Watches the next trial of a scenario and variant again: in this one the agent asked after its reply.
    pub(super) fn watch_again(&self, trial: Trial<'_>) {
        lock(&self.watched).remove(&(trial.planned.scenario, trial.planned.lane.variant.clone()));
    }

    /// Keeps recordings of starts made since then: an interrupted run goes on.
    pub(crate) fn resume(&self, since: jiff::Timestamp) {
        self.starts.resume(since);
    }

    /// Whether the agent of a trial was answered at its start by a recording that was edited by hand.
    pub(super) async fn has_edited_start(&self, trial: Trial<'_>) -> bool {
        self.starts.is_edited(trial).await
    }

    /// Replaces the earlier recording of a trial's start: the trial is kept.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) async fn place_start(&self, trial: Trial<'_>) -> Result<(), RecordingError> {
        self.starts.place(trial).await
    }

    /// Recorded exchanges of starts that no process asked for, as messages.
    pub(crate) fn unused(&self) -> Vec<String> {
        self.starts.unused()
    }

    /// Notes that the agent of a trial asked these services.
    pub(super) fn asks(&self, trial: Trial<'_>, services: BTreeSet<&'static str>) {
        lock(&self.asked).entry(trial.planned.scenario).or_default().extend(services);
    }

    /// Services that the agents of a scenario asked in this run, by its index in the plan; `None` if none was there.
    pub(crate) fn asked(&self, scenario: usize) -> Option<BTreeSet<&'static str>> {
        lock(&self.asked).get(&scenario).cloned()
    }

    /// Number of processes that ended after a trial without being asked to.
    pub(crate) fn ended_between(&self) -> u32 {
        self.ended_between.load(Ordering::SeqCst)
    }

    /// An agent for one trial: its process, started if none is idle, or the server that runs elsewhere.
    ///
    /// # Errors
    /// The proxy's port is taken, or the process did not start.
    pub(super) async fn lease(&self, wanted: Wanted<'_>) -> Result<Lease, Box<TrialError>> {
        let idle = Arc::clone(&self.idle);
        if wanted.setup.command.is_empty() {
            let proxy = self.proxy(wanted.setup.proxy).await?;
            return Ok(Lease { proxy, worker: None, idle });
        }
        let kind = Kind {
            scenario: wanted.trial.planned.scenario,
            variant: wanted.trial.planned.lane.variant.clone(),
            mode: wanted.mode.word(),
        };
        let found = if wanted.fresh || wanted.setup.restarts { None } else { self.take(&kind) };
        let worker = match found {
            Some(worker) => {
                worker.process.begin_trial();
                worker
            }
            None => self.start(kind, &wanted).await?,
        };
        Ok(Lease { proxy: Arc::clone(&worker.proxy), worker: Some(worker), idle })
    }

    fn take(&self, kind: &Kind) -> Option<Worker> {
        let mut idle = lock(&self.idle);
        let known = idle.len();
        idle.retain(|worker| worker.process.is_running());
        self.ended_between.fetch_add(u32::try_from(known - idle.len()).unwrap_or(u32::MAX), Ordering::SeqCst);
        let place = idle.iter().position(|worker| worker.kind == *kind)?;
        Some(idle.remove(place))
    }

    /// Starts a process, with what it asks before its first turn answered.
    async fn start(&self, kind: Kind, wanted: &Wanted<'_>) -> Result<Worker, Box<TrialError>> {
        let failed = lock(&self.failed).get(&kind).cloned();
        if let Some(why) = failed {
            return Err(why);
        }
        loop {
            match self.begin(kind.clone(), wanted).await {
                Ok(worker) => return Ok(worker),
                Err(Unfit::Outdated) => {}
                Err(Unfit::Error { why, lasting }) => {
                    if lasting {
                        lock(&self.failed).insert(kind, why.clone());
                    }
                    return Err(why);
                }
            }
        }
    }

    async fn begin(&self, kind: Kind, wanted: &Wanted<'_>) -> Result<Worker, Unfit> {
        let brief = |why| Unfit::Error { why, lasting: false };
        let setup = wanted.setup;
        let fixed_port = setup.fixed_port();
        if let Some(port) = fixed_port {
            lock(&self.idle).retain(|worker| worker.process.port() != port);
            // Else the process that ends could be taken for the one that starts.
            process::is_left(port, wanted.clock).await;
        }
        let proxy = Proxy::open(ANY_PORT).await.map_err(|why| brief(taken(ANY_PORT, &why)))?;
        let beginning = self.starts.begin(wanted).await.map_err(brief)?;
        let serving = proxy.serve(beginning.way(), &setup.hosts, setup.services.mounts(), None);
        let start = Start {
            command: &setup.command,
            folder: &wanted.trial.opened.loaded.root,
            environment: environment::of(setup.services.base_urls(proxy.address()), wanted.mode)
                .into_iter()
                .chain(setup.spans.then(|| spans::variables(proxy.address())).into_iter().flatten())
                .chain(setup.env.clone())
                .collect(),
            serves: setup.http.is_some(),
            fixed_port,
            ready: setup.ready.as_deref(),
            within: setup.ready_within,
            ipv6: setup.http.as_deref().is_some_and(|url| {
                let url = reqwest::Url::parse(&url.replace(PORT, "1")).ok();
                url.as_ref().and_then(reqwest::Url::host_str).is_some_and(process::reaches_ipv6)
            }),
            replied: Arc::clone(lock(&self.replied).entry(kind.clone()).or_default()),
            clock: wanted.clock,
        };
        let started = Process::start(start).await;
        if started.is_ok() {
            beginning.settled().await;
        }
        let requests = serving.requests();
        drop(serving);
        let started = started.map_err(|why| {
            let remedy = "start it by hand with the same command; `PORT` is the port that it has to listen at";
            let mut detail = why.lines;
            detail.push(remedy.to_owned());
            error(TrialErrorKind::AgentUnreached, &why.message, detail)
        });
        let (process, notes) = beginning.end(started, requests).await?;
        Ok(Worker { kind, process, proxy: Arc::new(proxy), notes })
    }

    /// The proxy of an agent that takes any port, as [`NO_ADDRESS`](super::runner::NO_ADDRESS) says.
    ///
    /// # Errors
    /// If no port can be opened.
    pub(super) async fn any_proxy(&self) -> std::io::Result<Arc<Proxy>> {
        let mut proxies = self.proxies.lock().await;
        let opened = Arc::new(Proxy::open(ANY_PORT).await?);
        Ok(Arc::clone(proxies.entry(ANY_PORT).or_insert(opened)))
    }

    /// The proxy at that address, opened on first use.
    async fn proxy(&self, address: SocketAddr) -> Result<Arc<Proxy>, Box<TrialError>> {
        let mut proxies = self.proxies.lock().await;
        if let Some(proxy) = proxies.get(&address) {
            return Ok(Arc::clone(proxy));
        }
        let opened = Arc::new(Proxy::open(address).await.map_err(|why| taken(address, &why))?);
        proxies.insert(address, Arc::clone(&opened));
        Ok(opened)
    }
}

#[expect(clippy::unnecessary_box_returns, reason = "an error of a trial is long and always on its way through results")]
fn taken(address: SocketAddr, why: &std::io::Error) -> Box<TrialError> {
    let message = format!("the proxy cannot listen at {address}: {why}");
    let detail = "stop what listens there, or write another address in `proxy` and in the agent's settings";
    error(TrialErrorKind::AgentUnreached, &message, vec![detail.to_owned()])
}
