//! Builds one request of `react`: its messages, what is left out if they are too long, and whether it may be sent.

use super::machine::State;
use super::notices::Notice;
use super::policy::Happened;
use super::tools::{self, SEARCH};
use super::{React, budget, compaction, prompts};
use crate::flow::turn::{Completed, Reply, Turn};
use crate::flow::{Abort, digest};
use crate::provider::chat::{Message, Role, ToolCall, ToolChoice, ToolDefinition};
use crate::trace::{Logged, What};
use serde_json::json;
use std::sync::Arc;

impl Turn<'_, React> {
    /// Calls the model in the current state; `None` if the request was not sent or failed.
    pub(super) async fn request(
        &mut self,
        tool_choice: ToolChoice,
        tools: Arc<[ToolDefinition]>,
    ) -> Result<Option<Completed>, Abort> {
        self.present();
        let offered = budget::of_tools(&tools);
        let mut shown = offered + budget::of_messages(self.messages());
        if shown >= self.budget().compacts_at() && !self.own.progress.short {
            self.compact(offered);
            self.present();
            shown = offered + budget::of_messages(self.messages());
        }
        if self.model_calls_used_up().is_some() || !self.budget().allows(self.memory.usage, shown) {
            self.take(Happened::BudgetUsedUp)?;
            return Ok(None);
        }
        if self.own.progress.state == State::Thinking {
            let grounding = self.shown().last().cloned().unwrap_or_default();
            self.log(Logged::Grounding { step: self.own.progress.steps + 1, shown: grounding });
        }
        match self.complete(tools, tool_choice).await? {
            Reply::Completion(completion) => {
                let wrote = budget::of_text(&completion.text)
                    + completion.calls.iter().map(|call| budget::of_text(&call.arguments)).sum::<u64>();
                let usage = (completion.usage.input.unwrap_or(shown), completion.usage.output.unwrap_or(wrote));
                self.own.usage = self.own.usage.and(usage.0, usage.1);
                self.memory.usage = self.memory.usage.and(usage.0, usage.1);
                let (session_input, session_output) = (self.memory.usage.input, self.memory.usage.output);
                self.log(Logged::Used { input: usage.0, output: usage.1, session_input, session_output });
                Ok(Some(completion))
            }
            Reply::Unavailable(why) => {
                let state = self.own.progress.state;
                self.own.broken_off = why;
                if state != State::Reflecting && !self.own.progress.short {
                    let without = "earlier parts of the conversation".into();
                    let reason = self.own.broken_off.clone();
                    self.push(self.env.clock.now(), What::Degraded { without, reason });
                    self.notice(&Notice::ShorterContext { cause: self.own.broken_off.clone() });
                }
                self.log_failure("model_unavailable");
                self.take(Happened::ModelFailed)?;
                Ok(None)
            }
        }
    }

    /// Tokens of the first request of the turn, estimated.
    pub(super) fn first_request(&mut self) -> u64 {
        self.present();
        budget::of_tools(&self.offered(Some(SEARCH))) + budget::of_messages(self.messages())
    }

    /// Sets the messages of this state: what is kept of the session, the question, the state of the turn, and the
    /// current call with its result. Finished steps are included only as summaries.
    fn present(&mut self) {
        let env = self.env;
        let prompts = &env.settings.prompts;
        let state = self.own.progress.state;
        let mut messages = self.kept();
        messages.push(Message::text(Role::User, self.own.query.as_str()));
        if state == State::Answering {
            messages.extend(self.relevant_passages());
            messages.push(Message::text(Role::System, prompts::synthesis(prompts, &self.own)));
        } else {
            messages.extend(self.own.exchange.iter().cloned());
            let spent = (self.budget(), self.memory.usage);
            let grounding = prompts::grounding(prompts, &self.own, &self.memory.unavailable, spent);
            messages.push(Message::text(Role::System, grounding));
        }
        if state == State::Reflecting {
            let kind = self.own.progress.failures.last().map_or("", |kind| kind.name());
            messages.push(Message::text(Role::System, prompts::failure(prompts, kind, &self.own.trouble)));
        }
        let prompt = if state == State::Answering { prompts::ANSWER_SYSTEM } else { prompts::SYSTEM };
        self.show(prompt, !self.own.progress.short, messages);
    }

    /// Messages that must never be lost: the user's decisions and preferences, and the lessons from failures.
    pub(super) fn kept(&self) -> Vec<Message> {
        let prompts = &self.env.settings.prompts;
        let notes = self.memory.notes.iter().map(|note| Message::text(Role::User, prompts::note(prompts, note)));
        let lessons = self.memory.reflections.iter();
        let lessons = lessons.map(|lesson| Message::text(Role::System, prompts::reflection(prompts, lesson)));
        notes.chain(lessons).collect()
    }

    /// The sources of the answer, as the result of one search; empty if there are none.
    fn relevant_passages(&self) -> Vec<Message> {
        if self.own.relevant.is_empty() {
            return Vec::new();
        }
        let query = self.own.queries.join("; ");
        let arguments =
            json!({"reasoning": "All relevant passages.", "query": query, "approach": "direct"}).to_string();
        let call = ToolCall { id: "relevant".into(), name: SEARCH.into(), arguments };
        let asked = Message { calls: vec![call], ..Message::text(Role::Assistant, "") };
        vec![asked, Message::tool_result("relevant", tools::for_model(&self.own.relevant))]
    }

    /// Compacts older turns of the history, or reports once per history that it cannot.
    pub(super) fn compact(&mut self, offered: u64) {
        let history = &self.conversation.history;
        if self.own.incompressible == Some(history.len()) {
            return;
        }
        let whole = offered + budget::of_messages(self.messages());
        let beside = whole.saturating_sub(budget::of_messages(history));
        let keeps = self.kept().iter().map(|message| digest(message.role, &message.content)).collect();
        match compaction::compact(history, beside) {
            Ok(compacted) => {
                let (before, after) = (compacted.before, compacted.after);
                self.log(Logged::Compacted { before, after, done: true, keeps });
                self.conversation.history = compacted.history;
            }
            Err(compaction::CannotCompact { before, after }) => {
                self.log(Logged::Compacted { before, after, done: false, keeps });
                self.own.incompressible = Some(self.conversation.history.len());
                self.notice(&Notice::FullContext);
            }
        }
    }

    /// The tools of a request: one of them, or all.
    pub(super) fn offered(&self, only: Option<&str>) -> Arc<[ToolDefinition]> {
        let all = self.env.settings.prompts.tools();
        match only {
            Some(name) => all.iter().filter(|tool| tool.name == name).cloned().collect(),
            None => Arc::clone(all),
        }
    }
}
