//! Faults that a scenario, or a file beside it, declares: what goes wrong, and where.
//!
//! They are never part of a recording: a request that a fault answers reaches no service, and a changed answer is
//! changed behind the recorder.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a fault acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// A request to any service: it gets an error, or no answer.
    Request,
    /// A streamed answer of a model.
    Stream,
    /// What a model answers.
    Answer,
    /// The result of a tool call.
    Tool,
    /// The keyword index.
    Index,
}

/// Declares the kinds: name in files, stage, what happens.
macro_rules! kinds {
    ($($kind:ident $name:literal $stage:ident $about:literal)+) => {
        /// What goes wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum FaultKind {
            $(#[doc = $about] #[serde(rename = $name)] $kind),+
        }

        impl FaultKind {
            /// All kinds, in the order of the documentation.
            pub(crate) const ALL: &[Self] = &[$(Self::$kind),+];

            /// Name in files and reports.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $name),+ }
            }

            /// What it acts on.
            pub(crate) fn stage(self) -> Stage {
                match self { $(Self::$kind => Stage::$stage),+ }
            }
        }
    };
}

kinds! {
    RateLimit "rate-limit" Request "HTTP 429 without `Retry-After`."
    RateLimitSeconds "rate-limit-seconds" Request "HTTP 429 with `Retry-After` in seconds."
    RateLimitMilliseconds "rate-limit-ms" Request "HTTP 429 with `Retry-After-Ms`."
    RateLimitDate "rate-limit-date" Request "HTTP 429 with `Retry-After` as a date."
    Quota "quota" Request "The account's budget is used up."
    ServerError "server-error" Request "HTTP 500."
    Unavailable "unavailable" Request "HTTP 503."
    Overloaded "overloaded" Request "HTTP 529."
    TooLarge "too-large" Request "HTTP 413."
    ContextLength "context-length" Request "The conversation exceeds the model's context window."
    Reset "reset" Request "The connection is reset."
    Stall "stall" Request "No answer within `limits.request`."
    Delay "delay" Request "The answer is delayed by `seconds`."
    CutBeforeToken "cut-before-token" Stream "The stream breaks off before its first token."
    CutAfterToken "cut-after-token" Stream "The stream breaks off after its first token."
    CutInArguments "cut-in-arguments" Stream "The stream breaks off within the arguments of a call."
    NoEndMarker "no-end-marker" Stream "The stream lacks its end marker."
    ErrorInStream "error-in-stream" Stream "An error event after HTTP 200 and the first token."
    NoUsage "no-usage" Answer "The answer does not report its tokens."
    NoToolCall "no-tool-call" Answer "Plain text in place of a tool call."
    WrongTool "wrong-tool" Answer "A call of a tool that was not offered."
    MalformedArguments "malformed-arguments" Answer "A call whose arguments do not fit."
    LengthStop "length-stop" Answer "An answer that the token limit cut off."
    ContentFilter "content-filter" Answer "An answer that a content filter stopped."
    Refusal "refusal" Answer "A refusal."
    ToolFails "tool-fails" Tool "The tool fails."
    ToolHangs "tool-hangs" Tool "The tool does not answer within `limits.request`, and fails."
    ToolEmpty "tool-empty" Tool "The tool returns nothing."
    ToolDuplicates "tool-duplicates" Tool "The tool returns everything twice."
    ToolContradicts "tool-contradicts" Tool "The tool returns passages that contradict each other."
    IndexUnwritable "index-unwritable" Index "The keyword index cannot be written."
}

impl FaultKind {
    /// Whether the same request, sent again, would be answered: a client that retries recovers.
    pub(crate) fn is_transient(self) -> bool {
        use FaultKind as K;
        self.stage() == Stage::Stream
            || matches!(
                self,
                K::RateLimit
                    | K::RateLimitSeconds
                    | K::RateLimitMilliseconds
                    | K::RateLimitDate
                    | K::ServerError
                    | K::Unavailable
                    | K::Overloaded
                    | K::Reset
                    | K::Stall
                    | K::Delay
                    | K::NoUsage
            )
    }
}

/// A declared fault: what goes wrong, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeclaredFault {
    /// What goes wrong.
    pub fault: FaultKind,
    /// The service whose requests count: `model` (default), `search`, `knowledge`, `embeddings`, `managed_retrieval`, or
    /// a service of an external agent by its name. Not for faults of tools and of the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The tool whose calls count, for faults of tools. By default all tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The first request, or tool call, of the trial that it strikes, counted from 1. By default the first.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub call: u32,
    /// How many in a row it strikes; 0 strikes all that follow. By default 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub times: u32,
    /// Only in this lane: `tool-rag.base` or `tool-rag.base.2`. By default in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// Share of the trials that it strikes, above 0 and at most 1, drawn from the seed of each trial. By default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Seconds of `delay`, and of the wait that a 429 asks for. By default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_one(number: &u32) -> bool {
    *number == 1
}

impl DeclaredFault {
    /// A fault of one call: of the first service, or of all tools.
    pub(crate) fn new(fault: FaultKind) -> Self {
        Self { fault, service: None, tool: None, call: 1, times: 1, lane: None, share: None, seconds: None }
    }

    /// Whether it strikes trials of a lane, such as `tool-rag.base.2`.
    pub(crate) fn is_in(&self, lane: &str) -> bool {
        let of = |named: &str| lane.strip_prefix(named).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        self.lane.as_deref().is_none_or(of)
    }

    /// The service that it strikes.
    pub(crate) fn service(&self) -> &str {
        self.service.as_deref().unwrap_or("model")
    }

    /// Whether it strikes the request or call with that number, from 1.
    pub(crate) fn strikes(&self, number: u32) -> bool {
        number >= self.call && (self.times == 0 || number - self.call < self.times)
    }

    /// Where it strikes, in words: `request 2 to model`, `call 1 of search`.
    pub(crate) fn place(&self) -> String {
        let number = if self.times == 0 { format!("{} and later", self.call) } else { self.call.to_string() };
        match self.fault.stage() {
            Stage::Tool => format!("call {number} of {}", self.tool.as_deref().unwrap_or("any tool")),
            Stage::Index => "the keyword index".to_owned(),
            Stage::Request | Stage::Stream | Stage::Answer => format!("request {number} to {}", self.service()),
        }
    }

    /// Why it cannot be meant as written, with the name of the key; `None` if it can.
    pub(crate) fn mistake(&self) -> Option<(&'static str, &'static str)> {
        let stage = self.fault.stage();
        let counted = !matches!(stage, Stage::Tool | Stage::Index);
        let seconds = self.seconds.is_some_and(|seconds| !(0.0..=3600.0).contains(&seconds));
        let share = self.share.is_some_and(|share| !(share > 0.0 && share <= 1.0));
        match () {
            () if self.call == 0 => Some(("call", "calls are counted from 1")),
            () if share => Some(("share", "a share is above 0 and at most 1")),
            () if seconds => Some(("seconds", "from 0 to 3600 seconds")),
            () if self.tool.is_some() && stage != Stage::Tool => Some(("tool", "only faults of tools strike a tool")),
            () if self.service.is_some() && !counted => {
                Some(("service", "faults of tools and of the index strike no service"))
            }
            () if matches!(stage, Stage::Stream | Stage::Answer) && self.service.as_deref() == Some("knowledge") => {
                Some(("service", "a knowledge base is no model"))
            }
            () => None,
        }
    }
}

/// A file of faults, for `--faults`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FaultFile {
    /// The faults; they strike every case of the run, in addition to those that it declares.
    pub faults: Vec<DeclaredFault>,
}
