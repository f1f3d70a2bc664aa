//! Members of a published trace that a source of traces may lack. A metric names those that it needs, and measures
//! nothing in a trace without one of them.

use super::{EXTERNAL, Event, Mode, Trace, TurnEnded, TurnOutcome, What};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Declares each member with its path in the published trace and what it shows.
macro_rules! members {
    ($($name:ident = $path:literal, $shows:literal;)*) => {
        /// A member of a published trace, by its path.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum Member {
            $(
                #[doc = concat!("Shows ", $shows, ".")]
                #[serde(rename = $path)]
                $name,
            )*
        }

        impl Member {
            /// All members, in the order of the document.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Its path in the published trace.
            pub fn path(self) -> &'static str {
                match self { $(Self::$name => $path,)* }
            }

            /// What it shows, as a part of a sentence.
            pub fn shows(self) -> &'static str {
                match self { $(Self::$name => $shows,)* }
            }
        }
    };
}

members! {
    Tenant = "conversations[].tenant", "which tenant asked";
    Completions = "turns[].completions", "what the model was asked";
    Shown = "turns[].completions[].shown", "which messages the model was shown";
    ToolChoice = "turns[].completions[].tool_choice", "what the model was made to call";
    TookParts = "turns[].completions[].took_ms", "how long completions, calls and searches took";
    Calls = "turns[].calls", "which tools an agent called";
    CallsOfCompletions = "turns[].calls[].completion", "which completion made a call";
    Arguments = "turns[].calls[].arguments", "what an agent called its tools with";
    Outcomes = "turns[].calls[].outcome", "which calls an agent refused as out of order";
    Passages = "turns[].searches[].passages", "what an agent's searches found";
    WithoutLearned = "turns[].searches[].without_learned", "what an agent's search would find without learned keywords";
    Bases = "turns[].searches[].base", "whose knowledge base an agent searched";
    Managed = "turns[].searches[].managed", "what an agent makes of the answers of its retrieval service";
    IndexWrites = "turns[].index_writes[].read_back", "what an agent's keyword index holds";
    Feedback = "turns[].feedback", "which messages to the model are the agent's own feedback";
    Retries = "turns[].retries", "which calls were retries";
    Moves = "turns[].moves", "which states an agent went through";
    Machine = "machine", "which moves an agent's state machine declares";
    Log = "turns[].log", "what an agent logs of its steps";
    Sequence = "turns[].sequence", "when the agent wrote feedback and log entries";
    Answers = "turns[].answer", "how turns ended";
    Sources = "turns[].answer.sources", "what an agent's answers cite";
    Claims = "turns[].answer.used_internal_kb", "what an agent's answers claim to use";
    Refusals = "turns[].answer.refused", "which answers the agent declares to be refusals";
    Took = "turns[].took_ms", "how long turns took";
    History = "turns[].history", "what an agent keeps of a conversation";
    Replies = "turns[].reply", "the body of the agent's reply";
}

/// What the traffic of an external agent does not show.
const NOT_IN_TRAFFIC: &[Member] = &[
    Member::Outcomes,
    Member::WithoutLearned,
    Member::Bases,
    Member::Managed,
    Member::IndexWrites,
    Member::Moves,
    Member::Log,
    Member::Claims,
    Member::Refusals,
];

impl Member {
    /// What a list of messages does not show, and that member.
    pub(crate) fn not_in_messages_and(member: Self) -> Vec<Self> {
        Self::ALL.iter().copied().filter(|one| !IN_MESSAGES.contains(one) || *one == member).collect()
    }

    /// What else shows it of an external agent, if anything does.
    pub(crate) fn shown_by(self) -> Option<&'static str> {
        Some(match self {
            Self::Outcomes => "spans with `ragcheck.outcome`",
            Self::WithoutLearned => "spans with `ragcheck.without_learned`",
            Self::Bases => "spans with `gen_ai.data_source.id`",
            Self::Log => "span events `ragcheck.thought`, `ragcheck.reflection`, …",
            Self::IndexWrites => "a `probe`",
            Self::Calls | Self::Passages => "the spans that `target.spans` expects",
            _ => return None,
        })
    }
}

/// What the traffic of an external agent does not show, without those that its spans `show`.
pub(crate) fn not_in_traffic_but(show: &BTreeSet<Member>) -> Vec<Member> {
    NOT_IN_TRAFFIC.iter().copied().filter(|member| !show.contains(member)).collect()
}

/// Why a trial with held services has no times.
const HELD_TIMES: &str = "recordings answered part of the calls (--hold), and their times are not added to live ones";

/// What a list of messages shows; it lacks all other members.
const IN_MESSAGES: &[Member] = &[Member::Calls, Member::Arguments, Member::Completions, Member::Answers];

impl Trace {
    /// Whether its source lacks that member.
    pub fn lacks(&self, member: Member) -> bool {
        match &self.absent {
            Some(absent) => absent.contains(&member),
            None if self.evidence.mode == Mode::Imported => !IN_MESSAGES.contains(&member),
            None => self.lane.flow == EXTERNAL && NOT_IN_TRAFFIC.contains(&member),
        }
    }

    /// The reason why outcomes cannot be judged in an imported trace whose source says of no call whether it ran: with a
    /// call of which nothing else shows it.
    pub(crate) fn unknown_outcomes(&self) -> Option<String> {
        let unknown = |event: &Event| matches!(&event.what, What::ToolCalled(call) if call.outcome.is_unseen());
        let told = self.evidence.mode == Mode::Imported && self.absent.is_some();
        (told && self.events.iter().any(unknown)).then(|| self.not_shown(&[Member::Outcomes])).flatten()
    }

    /// Notes that it carries that member after all, from another source than its usual one.
    pub(crate) fn reveal(&mut self, member: Member) {
        let lacked = Member::ALL.iter().filter(|one| self.lacks(**one) && **one != member).copied().collect();
        self.absent = Some(lacked);
    }

    /// Whether its source does not say how long that turn took: one that got no answer may lack its time.
    pub(crate) fn is_untimed(&self, end: &TurnEnded) -> bool {
        let is_answered = matches!(end.outcome, TurnOutcome::Answered(_));
        self.evidence.mode == Mode::Imported && end.took_us == 0 && !is_answered
    }

    /// Whether a recording answered some of its calls and services the others.
    pub(crate) fn is_held(&self) -> bool {
        self.evidence.held.as_ref().is_some_and(|held| held.answered() > 0)
    }

    /// The reason why nothing can be said of the first of `members` that it lacks: `traffic does not show what an
    /// agent's keyword index holds (turns[].index_writes[].read_back)`.
    ///
    /// Nothing can be said of times in which recordings answered part of the calls: their times are of another day.
    pub fn not_shown(&self, members: &[Member]) -> Option<String> {
        if members.contains(&Member::Took) && self.is_held() {
            return Some(HELD_TIMES.to_owned());
        }
        members.iter().find(|member| self.lacks(**member)).map(|member| self.unshown(*member))
    }

    /// The reason why nothing can be said of that member.
    pub(crate) fn unshown(&self, member: Member) -> String {
        let source = match (self.evidence.mode, &self.absent) {
            (Mode::Imported, None) => "messages do",
            (Mode::Live | Mode::Replay, _) if self.lane.flow == EXTERNAL => "traffic does",
            _ => "the trace does",
        };
        let external = self.evidence.mode != Mode::Imported && self.lane.flow == EXTERNAL;
        let others = member.shown_by().filter(|_| external).map(|by| format!("; {by} would")).unwrap_or_default();
        // Calls are absent only where spans were expected, and a turn had none of the agent's work or one could not be read.
        let source = if external && self.lacks(Member::Calls) {
            "spans of its work are missing, and traffic alone does"
        } else {
            source
        };
        format!("{source} not show {} ({}){others}", member.shows(), member.path())
    }
}
