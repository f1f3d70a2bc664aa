//! A conversation with an agent of which nothing is known yet: it is started or running, and its requests are seen.

use super::environment;
use super::process::{self, NoContact, Process, START_LIMIT, Start};
use crate::flow::external::in_utf8;
use crate::platform::clock::{Clock, RealClock, timeout};
use crate::platform::lock::lock;
use crate::settings::Auth;
use crate::transport::{
    HttpRequest, HttpResponse, LiveTransport, Passed, Service, Tap, Target, Transport, TransportError,
};
use crate::trial::TrialMode;
use crate::trial::external::services::unknown_base_urls;
use crate::trial::proxy::{MODEL_MOUNT, Proxy, Serving};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long one reply is awaited.
const REPLY_LIMIT: Duration = Duration::from_mins(2);
/// How long an agent may neither reply nor ask a service.
const SILENT_LIMIT: Duration = Duration::from_secs(20);

/// An agent, and the proxy that sees what it asks.
pub(crate) struct Contact {
    process: Option<Process>,
    agent: Arc<dyn Transport>,
    tap: Arc<Tap>,
    serving: Serving,
    proxy: Proxy,
    clock: Arc<dyn Clock>,
    /// What it asked while nothing was sent to it, as at its start.
    unprompted: Mutex<Vec<Passed>>,
}

impl Contact {
    /// Starts `command` in `folder`: a server, or a program that reads lines. Its requests go to `services`; `answered`
    /// if these are recorded answers.
    ///
    /// # Errors
    /// The process did not start, or nothing listens at its port.
    pub(crate) async fn start(
        command: &[String],
        server: bool,
        folder: &Path,
        (services, answered): (Arc<dyn Transport>, bool),
    ) -> Result<Self, NoContact> {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let proxy = open(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)).await?;
        let tap = Arc::new(Tap::new(services));
        // Before the process: some ask while they start.
        let serving = proxy.serve(Arc::clone(&tap) as Arc<dyn Transport>, &[], Vec::new(), None);
        let mode = if answered { TrialMode::Replay } else { TrialMode::Record };
        let process = Process::start(Start {
            command,
            folder,
            environment: environment::of(unknown_base_urls(proxy.address()), mode),
            serves: server,
            fixed_port: None,
            ready: None,
            within: START_LIMIT,
            ipv6: true,
            replied: Arc::default(),
            clock: &clock,
        })
        .await?;
        let agent = match process.lines() {
            Some(lines) => lines,
            None => to(&process.origin(), &clock)?,
        };
        Ok(Self { process: Some(process), agent, tap, serving, proxy, clock, unprompted: Mutex::default() })
    }

    /// An agent that runs at `origin`, with its base URLs at `proxy`.
    ///
    /// # Errors
    /// The proxy's port is taken.
    pub(crate) async fn running(
        origin: &str,
        proxy: SocketAddr,
        services: Arc<dyn Transport>,
    ) -> Result<Self, NoContact> {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let url = reqwest::Url::parse(origin).ok();
        let place =
            url.as_ref().and_then(|url| Some((url.host_str()?.trim_matches(['[', ']']), url.port_or_known_default()?)));
        if let Some(place) = place
            && let Err(why) = tokio::net::TcpStream::connect(place).await
        {
            return Err(format!(
                "the agent at {origin} is not reached ({why}): start it first, with its base URLs at the proxy \
                 (OPENAI_BASE_URL=http://{proxy}{MODEL_MOUNT} for example; docs/how-to/external-agents.md)"
            )
            .into());
        }
        let proxy = open(proxy).await?;
        let tap = Arc::new(Tap::new(services));
        let serving = proxy.serve(Arc::clone(&tap) as Arc<dyn Transport>, &[], Vec::new(), None);
        let agent = to(origin, &clock)?;
        Ok(Self { process: None, agent, tap, serving, proxy, clock, unprompted: Mutex::default() })
    }

    /// Whether it is a server: otherwise a request is a line.
    pub(crate) fn is_server(&self) -> bool {
        self.process.as_ref().is_none_or(|process| process.lines().is_none())
    }

    /// Whether its process runs, if ragcheck started it.
    pub(crate) fn is_running(&self) -> bool {
        self.process.as_ref().is_none_or(Process::is_running)
    }

    /// Whether its process has ended with an error, or does so within a moment: its connections close before it is gone.
    pub(crate) async fn has_crashed(&self) -> bool {
        let Some(process) = &self.process else { return false };
        for _ in 0..10 {
            // Also after the end: its last lines are still being read.
            let is_running = process.is_running();
            self.clock.sleep(Duration::from_millis(50)).await;
            if !is_running {
                break;
            }
        }
        process.has_crashed()
    }

    /// The host by which its server is reached, in whatever process.
    pub(crate) fn host(&self) -> &'static str {
        if !self.process.as_ref().is_some_and(Process::is_at_ipv6) {
            return "127.0.0.1";
        }
        // Where the name has that address, it has the other one on another machine.
        if process::reaches_ipv6("localhost") { "localhost" } else { "[::1]" }
    }

    /// Sends one request to the agent; returns its reply, and what it asked until then.
    pub(crate) async fn send(&self, request: HttpRequest) -> (Result<HttpResponse, TransportError>, Vec<Passed>) {
        lock(&self.unprompted).extend(self.tap.take());
        let before = self.tap.moment();
        let mut reply = self.agent.send(request);
        let mut waited = SILENT_LIMIT;
        let mut known = timeout(&*self.clock, waited, &mut reply).await;
        // A model may take long; an agent that neither replies nor asks one did not understand.
        if known.is_err() && self.tap.moment() != before {
            waited = REPLY_LIMIT;
            known = timeout(&*self.clock, REPLY_LIMIT.saturating_sub(SILENT_LIMIT), &mut reply).await;
        }
        drop(reply);
        let reply = known.unwrap_or(Err(TransportError::Timeout { after: waited }));
        (reply.map(in_utf8), self.tap.take())
    }

    /// What it asked before the requests that were sent to it, as at its start.
    pub(crate) fn unprompted(&self) -> Vec<Passed> {
        lock(&self.unprompted).clone()
    }

    /// Requests that the proxy does not serve, and refused.
    pub(crate) fn refused(&self) -> Vec<String> {
        self.serving.requests().refused.iter().map(ToString::to_string).collect()
    }

    /// Ends the process, and waits until the address of the proxy is free.
    pub(crate) async fn end(self) {
        let (address, clock) = (self.proxy(), Arc::clone(&self.clock));
        drop(self);
        for _ in 0..50 {
            if std::net::TcpListener::bind(address).is_ok() {
                return;
            }
            clock.sleep(Duration::from_millis(20)).await;
        }
    }

    /// Address of the proxy.
    pub(crate) fn proxy(&self) -> SocketAddr {
        self.proxy.address()
    }

    /// The last lines of the process, if ragcheck started it.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        self.process.as_ref().map(Process::last_lines).unwrap_or_default()
    }

    /// Variables in which the process has base URLs.
    pub(crate) fn variables(&self) -> Vec<String> {
        unknown_base_urls(self.proxy()).into_iter().map(|(name, _)| name).collect()
    }
}

async fn open(address: SocketAddr) -> Result<Proxy, NoContact> {
    Ok(Proxy::open(address).await.map_err(|why| format!("the proxy cannot listen at {address}: {why}"))?)
}

fn to(origin: &str, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Transport>, NoContact> {
    let target = Target {
        base_url: origin.to_owned(),
        key: None,
        auth: Auth::Bearer,
        headers: &[("x-ragcheck-mode", "record")],
        timeout: REPLY_LIMIT,
        trial_header: false,
    };
    let live = LiveTransport::new(BTreeMap::from([(Service::Agent, target)]), Arc::clone(clock));
    Ok(Arc::new(live.map_err(|why| why.to_string())?))
}
