//! The record of one trial, as plain data: the interface between execution and evaluation.
//!
//! Everything that runs writes a [`Trace`]; everything that evaluates reads one. Provider types, flows and metrics
//! are unknown here. On disk a trace is one line of `traces.jsonl` in a run folder. A reader rejects a trace whose
//! `version` is newer than [`TRACE_VERSION`] and ignores unknown fields of an equal version, so that fields can be
//! added without a new version.
//!
//! | version | what is new | how this build reads it |
//! |---|---|---|
//! | 1 | | `roles` are those of `roles_v1.json`, `offered` is unknown |
//! | 2 | `roles` and `offered`; agents that run elsewhere keep the names of their tools | as it stands |
//! | 3 | events `logged`, of agents that log their trajectory; a trace without one is still written as version 2 | as it stands |
//! | 4 | events `searched`, of searches by a flow; the outcome `unseen`; trials that end as `proxy_refused` or `nothing_asked`; a trace without one is still written as the version before | as it stands |
//! | 5 | citations of external answers and spans of managed ones have named members; a trace without one is still written as the version before | older lists of values in the order of the members |
//!
//! A build that reads only version 1 rejects version 2: it would take an external agent's tool names for tools
//! without a role, and report that none of them was called.

mod agreement;
pub(crate) mod answer;
pub(crate) mod citations;
pub(crate) mod columns;
mod event;
mod evidence;
mod folder;
mod grade;
mod managed;
pub(crate) mod markers;
mod member;
mod model_call;
pub(crate) mod normalise;
mod own_files;
mod passages;
pub(crate) mod refusal;
mod result;
mod role;
mod seal;
pub(crate) mod spans;
pub(crate) mod state_machine;
pub(crate) mod text;
mod trajectory;

pub(crate) use agreement::{AGREEMENT, Agreement, MeasuredAgreement};
pub use answer::*;
pub use event::*;
pub(crate) use evidence::*;
pub use folder::*;
pub(crate) use grade::*;
pub(crate) use managed::*;
pub use member::Member;
pub(crate) use member::not_in_traffic_but;
pub(crate) use model_call::*;
pub(crate) use own_files::{EARLIER, claim, set_aside};
pub(crate) use passages::{NamedPassage, PASSAGES, PassageText, PassageWriter, Passages, PassagesError, Searched};
pub(crate) use result::*;
pub(crate) use role::{Role, Roles, version_1};
pub use seal::seal;
pub(crate) use seal::{Seal, sealed};
pub(crate) use trajectory::Logged;

use crate::platform::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The newest version of the trace format that this build writes and reads.
pub(crate) const TRACE_VERSION: u32 = 6;

/// The version that a trace with these events is written in: the oldest that fits, so that older builds can read it.
pub(crate) fn version_of(events: &[Event]) -> u32 {
    let cites = |event: &Event| match event.what.given() {
        Some(ToolResult::External(found)) => !found.citations.is_empty(),
        Some(ToolResult::Search(found)) => {
            found.managed.iter().flat_map(|managed| &managed.citations).any(|citation| !citation.spans.is_empty())
        }
        _ => false,
    };
    let needs = |event: &Event| match &event.what {
        What::Requested(_) => TRACE_VERSION,
        _ if cites(event) => 5,
        What::Searched(_) => 4,
        What::ToolCalled(call) if call.outcome.is_unseen() => 4,
        What::Logged(_) => 3,
        _ => 2,
    };
    events.iter().map(needs).max().unwrap_or(2)
}

/// The flow of external agents: their traces are built from their traffic, which does not show everything.
pub(crate) const EXTERNAL: &str = "external";
/// The flow of imported agents.
pub(crate) const IMPORTED: &str = "imported";

/// Whether a trial measures the agent or controls the measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// The trial proper.
    #[default]
    Main,
    /// The same case with history withheld: its context probes must fail, or they prove nothing.
    Control,
}

/// Flow, variant, repetition and arm: recordings are never shared between lanes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Lane {
    /// The agent's flow, `tool-rag` for example.
    pub flow: String,
    /// The variant's name, `base` when a scenario declares none.
    pub variant: String,
    /// Repetition, counted from 1.
    pub repetition: u32,
    /// Main or control.
    #[serde(default)]
    pub arm: Arm,
}

impl std::fmt::Display for Lane {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}.{}", self.flow, self.variant, self.repetition)?;
        if self.arm == Arm::Control { formatter.write_str(".control") } else { Ok(()) }
    }
}

/// Whether a number is 0, for members that are not written then.
pub(crate) fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// The events of one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// Format version: the oldest that can represent the trace.
    pub version: u32,
    /// The id of its plan, that of `plan.json` in the same folder. Empty in traces of older builds and of other
    /// programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub plan: String,
    /// `scenario/case/flow.variant.n`, followed by `.control` for a control arm.
    pub trial: String,
    /// The scenario's name.
    pub scenario: String,
    /// The case's name.
    pub case: String,
    /// Flow, variant, repetition, arm.
    pub lane: Lane,
    /// The trial's seed.
    pub seed: u64,
    /// Its origin.
    pub evidence: Evidence,
    /// Roles of the agent's tools, by name; unlisted tools have none.
    #[serde(default)]
    pub roles: Roles,
    /// Tools offered to the agent, in order; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<Vec<String>>,
    /// The arguments that the schemas of offered tools name, by tool; a tool whose schema allows others is not listed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, BTreeSet<String>>,
    /// Notes for readers of the verdict, a sentence each: outages that the agent handled, requests that the proxy was
    /// allowed to refuse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Passages found by its searches, by base; their whole text is stored in `passages.jsonl`. Empty
    /// in traces of older builds and of imported messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passages: Vec<Searched>,
    /// Members of a published trace that its source does not carry: metrics that need one measure nothing here. `None`
    /// if mode and flow decide: lists of messages and the traffic of external agents lack known members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<Vec<Member>>,
    /// Why the process of an external agent was not used any further, so that it was started again for the next trial;
    /// `None` if it went on, or if ragcheck does not start the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartCause>,
    /// How the trial ended.
    pub end: TrialEnd,
    /// Duration of the trial, in microseconds of its clock.
    pub took_us: u64,
    /// Events, in the order in which they were observed.
    pub events: Vec<Event>,
}

impl Trace {
    /// A trace of a completed trial, without names, roles and events.
    pub(crate) fn of(trial: String, lane: Lane, seed: u64, evidence: Evidence) -> Self {
        Self { version: version_of(&[]), trial, lane, seed, evidence, ..Self::default() }
    }
}

/// Why the process of an external agent is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestartCause {
    /// It ended by itself in a turn.
    Crashed,
    /// It was ended because a turn took longer than its limit.
    TimedOut,
    /// It was ended because its trial ended in ERROR.
    TrialError,
    /// The scenario declares a new process for each trial.
    Declared,
}

/// How a trial ended. An agent that answers with an error has completed its trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrialEnd {
    /// Every conversation was run to its end.
    #[default]
    Completed,
    /// The trial could not be run: its verdict is ERROR.
    Error(TrialError),
}

impl TrialEnd {
    /// The first format version that can represent it.
    pub fn version(&self) -> u32 {
        match self {
            Self::Error(TrialError { kind: TrialErrorKind::ProxyRefused | TrialErrorKind::NothingAsked, .. }) => 4,
            Self::Completed | Self::Error(_) => 1,
        }
    }
}

/// Reason why a trial could not be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialError {
    /// Kind of error.
    pub kind: TrialErrorKind,
    /// One-line message.
    pub message: String,
    /// Key that groups trials with the same cause under one message with a count.
    pub cause: String,
    /// Further lines: the nearest exchange, what differs, what to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detail: Vec<String>,
}

impl TrialError {
    /// First line of the proposals for values that an agent generates per run; their lines follow.
    pub(crate) const GENERATED: &str =
        "if the agent generates these values per run, declare them in the scenario, below `vars:`";

    /// This miss as what follows from an earlier turn, which `message` and the lines `more` are about: nothing is to be
    /// recorded again, and nothing declared.
    pub(crate) fn after(&self, message: String, more: impl IntoIterator<Item = String>) -> Self {
        let after = format!("so a later request is not recorded: {}", self.message);
        let of_miss = self.detail.iter().take_while(|line| *line != Self::GENERATED);
        let of_miss = of_miss.filter(|line| !line.starts_with("re-record: ")).cloned();
        let detail = more.into_iter().chain([after]).chain(of_miss).collect();
        Self { kind: TrialErrorKind::TurnFailed, cause: message.clone(), message, detail }
    }
}

words! {
    fn label;
    /// Kinds of errors of a trial.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum TrialErrorKind {
        /// The lane has no cassette.
        LaneMissing = "lane missing",
        /// The cassette does not hold a request.
        CassetteMiss = "cassette miss",
        /// The cassette cannot be read.
        CassetteBroken = "cassette broken",
        /// An external agent asked its model less often than its recording.
        AsksLess = "asks less than recorded",
        /// A turn of an external agent failed in a replay, or its answer is not the expected one, so a later request is not in
        /// the cassette.
        TurnFailed = "turn failed",
        /// The provider failed permanently.
        Provider = "provider error",
        /// The run was stopped, or its budget was used up, before this trial ended.
        Stopped = "stopped",
        /// The trial waited for an event that cannot occur.
        Deadlock = "deadlock",
        /// The program failed: a bug.
        Panic = "panic",
        /// A conversation to import contradicts itself.
        ConversationBroken = "conversation broken",
        /// The case expects calls of a tool that the agent was not offered.
        ToolNotOffered = "tool not offered",
        /// The proxy refused a request of an external agent, so its answer says nothing about it.
        ProxyRefused = "refused by the proxy",
        /// An external agent called neither model nor search service through the proxy.
        NothingAsked = "nothing asked",
        /// The case expects something that the traffic of an external agent does not show.
        NotShown = "not measured",
        /// The case has expectations on tokens or cost, and a service did not report tokens or has no price.
        UsageUnknown = "usage unknown",
        /// No reply of an external agent could be read in the whole run.
        ReplyUnread = "reply not read",
        /// An external agent did not start, or was not reached.
        AgentUnreached = "agent not reached",
        /// An external agent redirected, asked for authentication, asked its services on after its reply, or gave no reply in
        /// time where that is no verdict: while it was recorded or replayed, or had asked for nothing.
        NoUsableReply = "no usable reply",
        /// A fault that the case declares never landed, so nothing is known of how the agent meets it.
        FaultMissed = "fault never landed",
    }
}

impl TrialErrorKind {
    /// Whether the agent ran or its services were called: a re-run then replaces an ERROR.
    pub fn was_run(self) -> bool {
        use TrialErrorKind::{
            AgentUnreached, AsksLess, CassetteBroken, CassetteMiss, LaneMissing, Stopped, TurnFailed,
        };
        !matches!(self, AsksLess | LaneMissing | CassetteMiss | CassetteBroken | Stopped | AgentUnreached | TurnFailed)
    }
}
