//! One process of an agent: started without a shell in a process group of its own, waited for until it is ready, and
//! ended with everything that it started.

use super::lines::{LineTransport, Pipes};
use super::mark::Mark;
use super::output::Output;
use crate::flow::external::{CRASHED, Fault, Life, NO_REPLY};
use crate::platform::clock::{BoxFuture, Clock, timeout};
use crate::platform::lock::lock;
use crate::scenario::external::PORT;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::process::{Child, Command};

/// Remedy for a process that listens elsewhere.
const READS_PORT: &str = "does it read the variable PORT? If not, pass `{{port}}` in the command";
/// Remedy for a process that needs longer.
const STILL_STARTS: &str = "If it is only slow to start, build it first and name the program, give it longer \
                            (`target.ready_within`), or let fewer start at a time (`run --jobs 1`)";
/// How long a process may take until it is ready, unless the scenario says.
pub(in crate::trial::external) const START_LIMIT: Duration = Duration::from_secs(30);
/// Interval between two looks at a starting process.
const LOOK: Duration = Duration::from_millis(20);
/// How long a process may take before another port that it names counts as its own: it may name those of its services first.
const ELSEWHERE: Duration = Duration::from_secs(8);
/// How long a server that listens at `[::1]` may take to listen at 127.0.0.1 too.
const ALONE: Duration = Duration::from_secs(2);
/// How long the end of a process is awaited after its connection broke.
const END_LIMIT: Duration = Duration::from_millis(500);
/// How a process without an error ends.
const SUCCESS: &str = "exit code 0";
/// How long an ended process may take to leave its port.
const LEAVE_LIMIT: Duration = Duration::from_secs(2);

/// How a process is started.
pub(super) struct Start<'s> {
    /// Program and arguments; `{{port}}` is replaced.
    pub(super) command: &'s [String],
    /// Its working folder.
    pub(super) folder: &'s Path,
    /// Variables beside those of this process.
    pub(super) environment: Vec<(String, String)>,
    /// Whether it serves turns over HTTP; otherwise they go to its standard input.
    pub(super) serves: bool,
    /// The port that it has to listen at, if the scenario names one.
    pub(super) fixed_port: Option<u16>,
    /// Path that answers when it is ready.
    pub(super) ready: Option<&'s str>,
    /// How long it may take until it is ready.
    pub(super) within: Duration,
    /// Whether its turns reach `[::1]`, where a server at `localhost` may listen alone.
    pub(super) ipv6: bool,
    /// Whether a process of this kind has replied to a turn.
    pub(super) replied: Arc<AtomicBool>,
    pub(super) clock: &'s Arc<dyn Clock>,
}

/// Why there is no contact with an agent, and the last lines of its process.
#[derive(Debug, Default)]
pub(crate) struct NoContact {
    /// What went wrong.
    pub message: String,
    /// The last lines of the process.
    pub lines: Vec<String>,
    /// Whether the process ended by itself and reported no error, as a program that reads its standard input does.
    pub ended_well: bool,
}

impl From<String> for NoContact {
    fn from(message: String) -> Self {
        Self { message, ..Self::default() }
    }
}

/// A running process; dropping it ends it and everything that it started.
pub(in crate::trial::external) struct Process {
    child: Mutex<Child>,
    /// Id of its process group, 0 where there are none.
    group: u32,
    command: String,
    port: u16,
    /// Where it listens once it is ready.
    address: SocketAddr,
    lines: Option<Arc<LineTransport>>,
    output: Output,
    clock: Arc<dyn Clock>,
    /// Ports of the proxy, which a process may print.
    known: Vec<u16>,
    mark: Mark,
}

impl Process {
    /// Starts a process and waits until it is ready.
    #[expect(clippy::disallowed_methods, reason = "the process is read while trials run")]
    pub(super) async fn start(start: Start<'_>) -> Result<Self, NoContact> {
        let shown = start.command.join(" ");
        let urls = start.environment.iter().filter_map(|(_, value)| reqwest::Url::parse(value).ok());
        let known = urls.filter_map(|url| url.port()).collect();
        let port = match start.fixed_port {
            Some(port) => port,
            None => free_port().map_err(|why| format!("there is no free port: {why}"))?,
        };
        let mut words = start.command.iter().map(|word| word.replace(PORT, &port.to_string()));
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).current_dir(start.folder).envs(start.environment).env("PORT", port.to_string());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command.stdin(if start.serves { Stdio::null() } else { Stdio::piped() });
        #[cfg(unix)]
        command.process_group(0);
        let mark = Mark::on(&mut command);
        let mut child = command.spawn().map_err(|why| {
            let folder = start.folder.display();
            format!("the agent cannot be started: `{shown}` in {folder}: {why}")
        })?;
        let output = Output::default();
        let mut lines = None;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => {
                let pipes = Pipes::new(stdin, stdout);
                let clock = Arc::clone(start.clock);
                lines = Some(Arc::new(LineTransport::new(pipes, output.clone(), start.replied, clock)));
            }
            (None, Some(stdout)) => drop(tokio::spawn(output.clone().read(stdout))),
            _ => {}
        }
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(output.clone().read(stderr));
        }
        let group = child.id().unwrap_or_default();
        let clock = Arc::clone(start.clock);
        let mut process = Self {
            child: Mutex::new(child),
            group,
            command: shown,
            port,
            address: (Ipv4Addr::LOCALHOST, port).into(),
            lines,
            output,
            clock,
            known,
            #[cfg(target_os = "linux")]
            mark,
        };
        match &process.lines {
            Some(lines) => process.reads(lines, start.within).await?,
            None => process.address = process.ready(start.ready, start.within, start.ipv6).await?,
        }
        Ok(process)
    }

    /// Waits until it reads its standard input: what it does before belongs to its start, not to a turn.
    async fn reads(&self, lines: &LineTransport, within: Duration) -> Result<(), NoContact> {
        lines.announce().await;
        let until = self.clock.now() + within;
        // The limit of the turn says more than that of the start where the process takes longer.
        while !lines.is_read().await && self.clock.now() < until {
            self.still_runs().await?;
            self.clock.sleep(LOOK).await;
        }
        Ok(())
    }

    /// Fails if it has ended, with its last lines.
    async fn still_runs(&self) -> Result<(), NoContact> {
        let Some(status) = self.exit() else { return Ok(()) };
        // What it printed last is read before its end is reported.
        self.clock.sleep(LOOK).await;
        let message = format!("the agent ended before it was ready ({status}): `{}`", self.command);
        Err(NoContact { message, lines: self.output.last_lines(), ended_well: status == SUCCESS })
    }

    /// Waits until it is ready; returns where it listens.
    async fn ready(&self, path: Option<&str>, within: Duration, ipv6: bool) -> Result<SocketAddr, NoContact> {
        let command = &self.command;
        // Another part of the process may have installed the provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = path.and_then(|_| reqwest::Client::builder().no_proxy().build().ok());
        let until = self.clock.now() + within;
        let (mut alone, mut elsewhere) = (None, self.clock.now() + ELSEWHERE);
        loop {
            let listening = self.listening().await;
            let address = listening.unwrap_or(self.address);
            // A server may open both addresses, one after the other.
            if address.is_ipv6() && !ipv6 {
                let since = *alone.get_or_insert_with(|| self.clock.now());
                if self.clock.now() >= since + ALONE {
                    let message = format!(
                        "the agent listens at {address} alone, and is asked at 127.0.0.1: `{command}`; let it listen at \
                         127.0.0.1, or write `http://[::1]:{{{{port}}}}` in `http`"
                    );
                    return Err(NoContact { message, lines: self.output.last_lines(), ended_well: false });
                }
            }
            let listening = listening.filter(|address| ipv6 || address.is_ipv4());
            let up = match path.zip(client.as_ref()) {
                Some((path, client)) if listening.is_some() => {
                    let asked = client.get(format!("http://{address}{path}")).timeout(within).send();
                    let answer = timeout(&*self.clock, until.saturating_sub(self.clock.now()), asked).await;
                    answer.is_ok_and(|answer| answer.is_ok_and(|answer| answer.status().as_u16() < 400))
                }
                Some(_) => false,
                None => listening.is_some(),
            };
            self.still_runs().await?;
            if up {
                return Ok(address);
            }
            let now = self.clock.now();
            if now >= elsewhere {
                elsewhere = now + ELSEWHERE;
                if let Some((port, true)) = self.other_port() {
                    let message =
                        format!("the agent listens at port {port}, not at {}: `{command}`; {READS_PORT}", self.port);
                    return Err(NoContact { message, lines: self.output.last_lines(), ended_well: false });
                }
            }
            if now >= until {
                let other = self.other_port();
                let named = other.map(|(port, _)| format!(", and its output names port {port}")).unwrap_or_default();
                let what = path.map_or_else(
                    || format!("nothing listens at {address}{named}; {READS_PORT}. {STILL_STARTS}"),
                    |path| format!("GET {path} at {address} does not answer with a status below 400"),
                );
                let seconds = within.as_secs_f64();
                let message = format!("the agent was not ready within {seconds} s: `{command}`; {what}");
                return Err(NoContact { message, lines: self.output.last_lines(), ended_well: false });
            }
            self.clock.sleep(LOOK).await;
        }
    }

    /// Another port that it names and at which something listens; and whether it says that it listens there itself, as other
    /// lines name services that it asks.
    fn other_port(&self) -> Option<(u16, bool)> {
        let printed = self.output.text();
        let ports = printed.lines().flat_map(|line| {
            let lower = line.to_lowercase();
            let says = [
                "running", "listening", "listens", "serving", "started", "server at", "ready at", "local:", "local url",
            ];
            let is_own = says.iter().any(|word| lower.contains(word)) && !lower.contains("connect");
            let named = ["127.0.0.1:", "localhost:", "0.0.0.0:"].into_iter().flat_map(|host| line.split(host).skip(1));
            named.filter_map(move |after| {
                let end = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
                Some((after[..end].parse::<u16>().ok()?, is_own))
            })
        });
        let is_open = |port| std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        let others: BTreeSet<(bool, u16)> = ports
            .filter(|(port, _)| *port != self.port && !self.known.contains(port))
            .map(|(port, own)| (own, port))
            .collect();
        others.into_iter().rev().find(|(_, port)| is_open(*port)).map(|(is_own, port)| (port, is_own))
    }

    /// The port that it was told to listen at.
    pub(in crate::trial::external) fn port(&self) -> u16 {
        self.port
    }

    /// The address of its server.
    pub(super) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Whether its server listens at `[::1]` alone.
    pub(super) fn is_at_ipv6(&self) -> bool {
        self.address.is_ipv6()
    }

    /// Its standard input and output as a transport, if turns go there.
    pub(in crate::trial::external) fn lines(&self) -> Option<Arc<LineTransport>> {
        self.lines.clone()
    }

    /// What it printed since the trial began, without secrets.
    pub(in crate::trial::external) fn printed(&self) -> String {
        self.output.text()
    }

    /// Forgets what it printed before the trial.
    pub(super) fn begin_trial(&self) {
        self.output.clear();
    }

    /// Its last lines, without secrets.
    pub(super) fn last_lines(&self) -> Vec<String> {
        self.output.last_lines()
    }

    pub(super) fn is_running(&self) -> bool {
        self.exit().is_none()
    }

    /// Whether it ended with an error.
    pub(super) fn has_crashed(&self) -> bool {
        self.exit().is_some_and(|status| status != SUCCESS)
    }

    /// Whether another trial may run in it.
    pub(super) fn may_go_on(&self) -> bool {
        self.is_running() && self.lines.as_ref().is_none_or(|lines| lines.is_in_step())
    }

    /// Where it takes connections.
    async fn listening(&self) -> Option<SocketAddr> {
        let (first, second) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
        let mut found = None;
        for address in [first, second, first].map(|host| SocketAddr::new(host, self.port)) {
            if tokio::net::TcpStream::connect(address).await.is_ok() {
                found = Some(address);
                // A server may open both, one after the other: the second look is at the first.
                if address.is_ipv4() {
                    break;
                }
                self.clock.sleep(LOOK).await;
            }
        }
        found
    }

    /// What happened, with the cause. Its other lines are in the trial's file: traces of equal trials are equal.
    fn with_cause(&self, what: &str) -> String {
        let cause = self.output.cause().map_or(".".to_owned(), |line| format!(": {line}"));
        format!("{what}{cause}")
    }

    /// How it ended, if it did.
    fn exit(&self) -> Option<String> {
        let status = lock(&self.child).try_wait().ok()??;
        Some(status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}")))
    }
}

impl Life for Process {
    fn failure<'l>(&'l self, why: &'l str) -> BoxFuture<'l, Option<Fault>> {
        Box::pin(async move {
            let until = self.clock.now() + END_LIMIT;
            loop {
                if let Some(status) = self.exit() {
                    self.clock.sleep(LOOK).await;
                    // What it printed last is read before the cause is named; a helper of its own may keep the stream open.
                    while self.output.is_open() && self.clock.now() < until {
                        self.clock.sleep(LOOK).await;
                    }
                    return Some((
                        CRASHED,
                        self.with_cause(&format!("The agent's process ended in this turn ({status})")),
                    ));
                }
                if self.clock.now() >= until {
                    break;
                }
                self.clock.sleep(LOOK).await;
            }
            if self.lines.is_none() && self.listening().await.is_none() {
                return None;
            }
            // The system's words for a connection that broke differ by chance.
            let why = if why.contains("error") { "it closed the connection" } else { why };
            Some((NO_REPLY, self.with_cause(&format!("The agent sent no whole reply ({why})"))))
        })
    }

    fn advice(&self) -> Option<String> {
        self.lines.as_ref().filter(|lines| !lines.has_replied())?;
        let lines = self.output.last_lines();
        Some(match lines.last() {
            Some(last) => format!(
                ". A reply is one line of JSON on its standard output, such as {{\"answer\": \"…\"}}; the last line that it \
                 printed is: {last}"
            ),
            None => {
                ". It printed nothing: a reply is one line of JSON on its standard output, written at once (flushed; in Ruby: \
                 `$stdout.sync = true`)"
                    .to_owned()
            }
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(group) = i32::try_from(self.group).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = lock(&self.child).start_kill();
        self.mark.kill();
    }
}

/// Whether a host reaches `[::1]`: by that address, or by a name that has it on this machine.
pub(super) fn reaches_ipv6(host: &str) -> bool {
    let found = || std::net::ToSocketAddrs::to_socket_addrs(&("localhost", 0)).ok();
    host == "[::1]" || host == "localhost" && found().is_some_and(|mut all| all.any(|address| address.is_ipv6()))
}

/// Waits until nothing listens at a port, for as long as an ended process may take to leave it.
pub(super) async fn is_left(port: u16, clock: &Arc<dyn Clock>) {
    let until = clock.now() + LEAVE_LIMIT;
    while TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err() && clock.now() < until {
        clock.sleep(LOOK).await;
    }
}

/// Ports for agents: below those that systems give to outgoing connections (from 32,768 or 49,152), any of which could
/// take a port between its choice and its use.
const PORTS: Range<u16> = 20_000..32_000;

/// A port that nothing listens at and that no other process of this run was given lately: two that start at the same
/// time would otherwise answer each other's turns. Another program may take it before the agent does, which then says so.
fn free_port() -> std::io::Result<u16> {
    static CHOSEN: AtomicU32 = AtomicU32::new(0);
    let count = u32::from(PORTS.end - PORTS.start);
    // Runs that begin one after the other, each with its number of process, begin far from each other.
    let first = std::process::id().wrapping_mul(367);
    let mut why = None;
    for _ in PORTS {
        let next = first.wrapping_add(CHOSEN.fetch_add(1, Ordering::Relaxed)) % count;
        let port = PORTS.start + u16::try_from(next).unwrap_or_default();
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(port),
            Err(taken) => why = Some(taken),
        }
    }
    Err(why.unwrap_or_else(|| ErrorKind::AddrInUse.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_port_is_given_once() {
        let ports: BTreeSet<u16> = (0..200).map(|_| free_port().expect("a port")).collect();
        assert_eq!(ports.len(), 200);
    }
}
