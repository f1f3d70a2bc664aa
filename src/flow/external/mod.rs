//! `external`: an agent of any language or framework, behind HTTP.
//!
//! The agent is a black box. A turn is one POST to its address (`target`); everything else is inferred from its traffic
//! with the model and the search service (`trace_builder`), which passes through our proxy and is kept in a [`Tap`](crate::transport::Tap).
//! Its tools keep their names and have the roles that the scenario gives them; their results are decoded without
//! knowledge of the agent (`decoder`).
//!
//! A turn takes two kinds of time: that of its exchanges, which recordings hold, and the agent's own, which [`Pace`]
//! measures or takes from the recording. An external process does not follow our clock.

mod answer;
mod chains;
mod cookies;
mod decoder;
mod evidence;
mod groups;
mod probe;
mod reply;
mod session;
mod shown;
mod target;
#[cfg(test)]
mod tests;
mod trace_builder;
mod trial_spans;
mod turn;

pub(crate) use chains::Chains;
pub(crate) use probe::Probe;
pub(crate) use reply::{AnswerAt, Unread, in_utf8, read as read_reply};
pub(crate) use session::{Session, ended_as, reset};
pub(crate) use target::{AGENT_ERROR, ANSWER_MISSING, Endpoint, Fill, PLACEHOLDERS, Target};
pub(crate) use turn::Tracing;

use crate::platform::clock::BoxFuture;
use crate::settings::catalogue::FlowEntry;
use crate::trace::spans::Span;
use crate::trace::{Member, Roles};
use crate::transport::{Miss, TransportError};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The name that scenarios use.
pub(crate) const NAME: &str = crate::trace::EXTERNAL;

/// What scenarios may declare for it. Its tools are not listed: they are known only at run time.
pub(super) fn entry() -> FlowEntry {
    FlowEntry { name: NAME, placeholders: &PLACEHOLDERS, ..FlowEntry::default() }
}

/// Kind of failure of a turn in which the agent's process ended.
pub(crate) const CRASHED: &str = "agent_crashed";
/// Kind of failure of a turn without a whole reply, after which the agent's process went on.
pub(crate) const NO_REPLY: &str = "no_reply";
/// Kind of failure of a turn whose answer has no word.
pub(crate) const ANSWER_EMPTY: &str = "answer_empty";

/// Kind of failure of a turn that took longer than its limit.
pub(crate) const TIMED_OUT: &str = "timeout";

/// Tool name for a search that the agent makes without a call of the model, if no tool has that role.
const UNASKED: &str = "external_search";

/// How long the agent must send no request after a reply, in trials that are not replayed: see
/// [`Silence`].
pub(crate) const SILENCE: Duration = Duration::from_millis(200);
/// Polling interval for requests still in flight after a reply.
const AWAITED: Duration = Duration::from_millis(5);

/// The scenario's settings for the agent.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Address of the agent and format of a turn.
    pub target: Target,
    /// Endpoint called before each trial.
    pub reset: Option<Endpoint>,
    pub roles: Roles,
    /// Time limit of one turn.
    pub turn: Duration,
    /// The variant's prompts by name, for the placeholders of a turn.
    pub prompts: BTreeMap<String, String>,
}

/// The process of an agent that ragcheck started.
pub(crate) trait Life: Send + Sync {
    /// Kind and message of the failure of a turn whose connection broke for the reason `why`: the process ended, or it
    /// closed the connection and goes on. `None` if it runs and takes no connections.
    fn failure<'l>(&'l self, why: &'l str) -> BoxFuture<'l, Option<Fault>>;

    /// What a process without a reply is to do, if its standard output shows it and none of its kind has replied to a turn before.
    fn advice(&self) -> Option<String>;
}

/// Spans that came, and what is odd about them.
#[derive(Debug, Default)]
pub(crate) struct TurnSpans {
    /// The spans that came since the last call.
    pub spans: Vec<Span>,
    /// What could not be read or belongs to no trial.
    pub notes: Vec<String>,
    /// Exports, or parts of them, that could not be read: they may show anything.
    pub unread: usize,
}

/// Where the agent's spans arrive.
pub(crate) trait Telemetry: Send + Sync {
    /// Waits for the spans of a turn until the one came that the span `parent` caused: the turn as a whole.
    fn of_turn<'t>(&'t self, parent: &'t str) -> BoxFuture<'t, TurnSpans>;

    /// Waits at the end of a trial until no further span comes.
    fn rest(&self) -> BoxFuture<'_, TurnSpans>;
}

/// What spans told in a trial.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Turns without a span.
    pub turns_without: usize,
    /// Turns with spans of clients alone, which show no tool and no search.
    pub turns_of_clients: usize,
    /// Exports, or parts of them, that could not be read.
    pub unread: usize,
    /// What was done, a line each.
    pub lines: Vec<String>,
    /// What is odd about them, or contradicts the traffic.
    pub notes: Vec<String>,
    /// Members that they show of all calls and searches, and the log.
    pub shows: BTreeSet<Member>,
}

/// Duration of turns. In replay, only the duration of the exchanges is known.
pub(crate) trait Pace: Send + Sync {
    /// Duration of a turn that took `real`, of which the exchanges took `exchanges`, measured or recorded.
    fn turn(&self, real: Duration, exchanges: Duration) -> Duration;
}

/// Replaces values generated per run by those of the recording.
pub(crate) trait Words: Send + Sync {
    /// Replaces them in a text from the agent.
    fn text(&self, text: &str) -> String;
    /// Replaces them in the body of a request.
    fn body(&self, body: &serde_json::Value) -> serde_json::Value;
}

/// For how long the agent must send no request after a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Silence {
    /// It is not checked: a replay.
    Unchecked,
    /// For [`SILENCE`] if a request was in progress when the reply arrived.
    IfBusy,
    /// For [`SILENCE`] after every reply: the first trial, in which the agent's way of working is not known.
    Always,
}

/// Reason why a trial cannot continue; it says nothing about the quality of the agent.
#[derive(Debug, Clone)]
pub(crate) enum Trouble {
    /// The agent was unreachable or could not be reset.
    Unreached(String),
    /// The scenario's way to the agent is wrong: it redirects, or asks for authentication.
    SetUp(String),
    /// A turn exceeded its time limit.
    TooSlow(String),
    /// The agent sent requests after its reply.
    AfterReply(String),
    /// The recording has no such exchange.
    Miss(Box<Miss>),
}

/// How a process failed a turn: the kind of failure, and a message with its last lines.
pub(crate) type Fault = (&'static str, String);

/// Classifies a transport error on the way to the agent.
fn unreached(error: &TransportError, at: &str) -> Trouble {
    Trouble::Unreached(format!("the agent at {at} was not reached: {error}"))
}
