//! Calls of earlier turns whose result reaches the model in this one: a call that the user had to approve, or whose result was
//! the answer itself. Each is one call, of the turn in which it ran; a result that is sent again is not read again.

use super::{TraceBuilder, Waiting, last_call};
use crate::flow::external::decoder;
use crate::flow::external::evidence::places_alone;
use crate::provider::chat::{ChatRequest, Message, Role, ToolCall};
use crate::provider::tool_result::leaves;
use crate::trace::{ToolCalled, ToolOutcome};
use serde_json::Value;

/// Least letters and digits of a distinctive value: a short number stands in many texts.
const LEAST_DISTINCTIVE: usize = 4;

/// The result of a call of an earlier turn.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::flow::external) struct LateResult {
    /// Ordinal of the completion that asked for the call.
    pub call: u32,
    /// The call's id.
    pub id: String,
    /// The tool and the arguments with which it ran.
    pub ran_as: (String, Value),
    /// The turn in which it ran.
    pub ran: Ran,
}

/// The turn in which a call with a late result ran.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::flow::external) enum Ran {
    /// The one that asked for it, with that outcome.
    Before(ToolOutcome),
    /// This one.
    Now,
    /// Either.
    Unknown,
}

impl TraceBuilder<'_> {
    /// Reads the results of the calls that earlier turns left open from a request.
    pub(super) fn late_results(&mut self, asked: &ChatRequest) {
        for mut call in std::mem::take(&mut self.open) {
            let Some((place, made)) = self.late_result(&asked.messages, &call) else {
                self.open.push(call);
                continue;
            };
            call.shown_as(made);
            let outcome = self.outcome_in(&asked.messages[place], &call);
            let ran = if call.is_requested() { Ran::Now } else { self.ran_in(&asked.messages, place, &outcome) };
            self.came_late(call, outcome, ran);
        }
    }

    /// Adds the open calls that ran in this turn, though no request to the model shows it.
    pub(super) fn late_runs(&mut self) {
        let (ran, open) = std::mem::take(&mut self.open).into_iter().partition(Waiting::is_requested);
        self.open = open;
        for call in ran {
            let outcome = match &call.found {
                Some(found) => ToolOutcome::Ok(self.external(&call, &Value::Null, found.clone())),
                None => self.ran(&call),
            };
            if !outcome.is_unseen() {
                self.came_late(call, outcome, Ran::Now);
            }
        }
    }

    fn came_late(&mut self, call: Waiting, outcome: ToolOutcome, ran: Ran) {
        let ran_as = (call.tool.clone(), call.arguments.clone());
        self.late.push(LateResult { call: call.completion, id: call.id.clone(), ran_as, ran: ran.clone() });
        if !matches!(ran, Ran::Before(_)) {
            self.called(call, outcome);
        }
    }

    /// Whether this turn showed the result of a call of that id which an earlier turn had left open.
    pub(super) fn is_late(&self, id: &str) -> bool {
        self.late.iter().any(|late| late.id == id)
    }

    /// The call of an earlier turn with that id, if a span shows that it ran in this one.
    pub(super) fn ran_now(&mut self, id: &str) -> Option<Waiting> {
        if let Some(late) = self.late.iter_mut().find(|late| late.id == id) {
            late.ran = Ran::Now;
        } else {
            let place = self.open.iter().position(|call| call.id == id)?;
            let call = self.open.remove(place);
            let ran_as = (call.tool, call.arguments);
            self.late.push(LateResult { call: call.completion, id: call.id, ran_as, ran: Ran::Now });
        }
        let earlier = self.earlier.iter().find_map(|what| what.tool_call().filter(|call| call.id == id));
        earlier.map(|call| Waiting::again(self.at, call))
    }

    /// Place of the message with the result of an open call, and the call as the messages show it. As ids may repeat, it answers
    /// a call of that tool and arguments, behind the results of equal calls that were made before. Where no message makes that
    /// call, the user or a guard changed it: then it answers a call that no model asked for.
    fn late_result<'m>(&self, messages: &'m [Message], call: &Waiting) -> Option<(usize, &'m ToolCall)> {
        let answered = |place: usize| {
            let is_answer = messages[place].role == Role::Tool && messages[place].answers.as_ref() == Some(&call.id);
            is_answer.then(|| last_call(&messages[..place], &call.id)).flatten().map(|made| (place, made))
        };
        let is_answered = |made: &&ToolCalled| {
            let is_before = made.call < call.completion && !made.outcome.is_unseen();
            is_before && made.id == call.id && made.tool == call.tool && made.arguments == call.arguments
        };
        let calls = || self.earlier.iter().filter_map(|what| what.tool_call());
        let mut all = (0..messages.len()).filter_map(answered);
        if messages.iter().flat_map(|message| &message.calls).any(|made| made.id == call.id && call.is_made_by(made)) {
            return all.filter(|(_, made)| call.is_made_by(made)).nth(calls().filter(is_answered).count());
        }
        all.find(|(_, made)| {
            let is_known = |known: &ToolCalled| known.id == made.id && Waiting::again(self.at, known).is_made_by(made);
            !calls().any(is_known) && !self.is_of_model(made)
        })
    }

    /// The turn in which a call ran whose result stands at that place. The words behind it come first: the agent's say that the
    /// turn that asked for it did, none that this one did. The user's leave it open: then an answer that says what only the
    /// result can have said, or a failure, is of the turn that asked for it, as what the user refuses runs in no turn. Where
    /// such an answer is contradicted by the lack of words, it is either.
    fn ran_in(&self, messages: &[Message], place: usize, outcome: &ToolOutcome) -> Ran {
        let result = &messages[place].content;
        let answers = || self.known.iter().filter(|(role, _)| *role == Role::Assistant).map(|(_, said)| said);
        let is_new = |value: &str| !messages[..place].iter().any(|earlier| holds(earlier, value));
        let is_said = |value: &str| answers().any(|said| places_alone(value, said).next().is_some()) && is_new(value);
        let document = decoder::document(result);
        let values = leaves(&document).into_iter().filter_map(|leaf| match leaf {
            Value::String(text) => Some(text.trim().to_owned()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        });
        let mut distinctive = values.filter(|value| {
            let is_long = value.chars().filter(|letter| letter.is_alphanumeric()).count() >= LEAST_DISTINCTIVE;
            is_long && value.contains(|letter: char| letter.is_ascii_digit() || letter == ' ')
        });
        let is_answer = |said: &String| !said.trim().is_empty() && said.trim() == result.trim();
        let follows = |role: Role| {
            let says =
                |message: &Message| message.role == role && message.calls.is_empty() && !message.content.is_empty();
            messages[place + 1..].iter().any(says)
        };
        let failed = matches!(outcome, ToolOutcome::Failed { .. });
        if follows(Role::Assistant) {
            return Ran::Before(outcome.clone());
        }
        let answer_shows_result = answers().any(is_answer) || distinctive.any(|value| is_said(&value));
        match follows(Role::User) {
            true if answer_shows_result || failed => Ran::Before(outcome.clone()),
            false if !answer_shows_result => Ran::Now,
            _ => Ran::Unknown,
        }
    }
}

/// Whether a message says a value, or calls a tool with it.
fn holds(message: &Message, value: &str) -> bool {
    message.content.contains(value) || message.calls.iter().any(|call| call.arguments.contains(value))
}
