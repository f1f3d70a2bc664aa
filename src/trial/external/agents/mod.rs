//! Where external agents run: processes that ragcheck starts, or servers that somebody else started; and the proxies
//! through which they reach their services.
//!
//! A process, its port and its proxy are a [`Worker`], which runs one trial at a time: trials with `command` run side by
//! side. An agent that runs elsewhere has one proxy at a fixed address, so its trials run one after another.

mod contact;
mod environment;
mod lines;
mod output;
mod process;

pub(crate) use contact::{Contact, NoContact};
pub(super) use process::Process;

use super::setup::ExternalSetup;
use crate::plan::PlannedTrial;
use crate::platform::clock::Clock;
use crate::trace::{TrialError, TrialErrorKind};
use crate::trial::Doing;
use crate::trial::outcome::error;
use crate::trial::proxy::Proxy;
use process::Start;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OwnedMutexGuard;

/// Any port of this machine.
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
/// Idle processes that are kept for the trials of other scenarios.
const MOST_IDLE: usize = 4;

/// The agents of a run.
#[derive(Default)]
pub(crate) struct Agents {
    proxies: tokio::sync::Mutex<BTreeMap<SocketAddr, Arc<Proxy>>>,
    turnstile: Arc<tokio::sync::Mutex<()>>,
    idle: Arc<Mutex<Vec<Worker>>>,
    /// Why a kind of process cannot be started: the next trial does not try again.
    failed: Mutex<BTreeMap<Kind, Box<TrialError>>>,
}

/// Permission to run one trial; it ends when this is dropped.
pub(crate) struct Place {
    _taken: Option<OwnedMutexGuard<()>>,
}

/// Processes of one kind can take each other's trials: the scenario's index in the plan, the variant, and
/// what they are started for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    scenario: usize,
    variant: String,
    doing: &'static str,
}

/// A process with its proxy.
struct Worker {
    kind: Kind,
    process: Process,
    proxy: Arc<Proxy>,
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

    /// Keeps the process for another trial. A lease that is only dropped, as that of an interrupted trial, ends it.
    pub(super) fn release(mut self) {
        let Some(worker) = self.worker.take().filter(|worker| worker.process.may_go_on()) else { return };
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(worker);
        if idle.len() > MOST_IDLE.max(std::thread::available_parallelism().map_or(1, usize::from)) {
            idle.remove(0);
        }
    }
}

/// What an agent is needed for.
pub(super) struct Wanted<'w> {
    pub(super) setup: &'w ExternalSetup,
    pub(super) trial: &'w PlannedTrial,
    pub(super) doing: Doing,
    /// Whether no earlier trial may have run in the process.
    pub(super) fresh: bool,
    /// The project's folder.
    pub(super) folder: &'w Path,
    pub(super) clock: &'w Arc<dyn Clock>,
}

impl Agents {
    /// Waits until a trial may run: one with a process of its own at once; others, with an agent that somebody else
    /// started or that has one port, when no such trial runs; first come, first served.
    pub(super) async fn place(&self, setup: Option<&ExternalSetup>) -> Place {
        let beside = setup.is_some_and(|setup| setup.is_started() && setup.fixed_port().is_none());
        Place { _taken: if beside { None } else { Some(Arc::clone(&self.turnstile).lock_owned().await) } }
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
            scenario: wanted.trial.scenario,
            variant: wanted.trial.lane.variant.clone(),
            doing: wanted.doing.word(),
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
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|worker| worker.process.is_running());
        let place = idle.iter().position(|worker| worker.kind == *kind)?;
        Some(idle.remove(place))
    }

    async fn start(&self, kind: Kind, wanted: &Wanted<'_>) -> Result<Worker, Box<TrialError>> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).get(&kind).cloned();
        if let Some(why) = failed {
            return Err(why);
        }
        let fixed_port = wanted.setup.fixed_port();
        if let Some(port) = fixed_port {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.retain(|worker| worker.process.port() != port);
        }
        let proxy = Proxy::open(ANY_PORT).await.map_err(|why| taken(ANY_PORT, &why))?;
        let start = Start {
            command: &wanted.setup.command,
            folder: wanted.folder,
            environment: environment::of(wanted.setup.services.base_urls(proxy.address()), wanted.doing)
                .into_iter()
                .chain(wanted.setup.env.clone())
                .collect(),
            serves: wanted.setup.http.is_some(),
            fixed_port,
            ready: wanted.setup.ready.as_deref(),
            clock: wanted.clock,
        };
        match Process::start(start).await {
            Ok(process) => Ok(Worker { kind, process, proxy: Arc::new(proxy) }),
            Err(why) => {
                let remedy = "start it by hand with the same command; `PORT` is the port that it has to listen at";
                let mut detail = why.lines;
                detail.push(remedy.to_owned());
                let why = error(TrialErrorKind::Provider, &why.message, detail);
                self.failed.lock().unwrap_or_else(PoisonError::into_inner).insert(kind, why.clone());
                Err(why)
            }
        }
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
    error(TrialErrorKind::Provider, &message, vec![detail.to_owned()])
}
