//! What happens without a call of the model: calls that the agent writes into the conversation as if the model had made them,
//! searches whose passages it puts into the prompt, and searches that the provider makes itself.

use super::completions::words;
use super::{TraceBuilder, Waiting};
use crate::flow::external::decoder;
use crate::flow::external::evidence::{self, Retrieved};
use crate::flow::external::groups::Group;
use crate::provider::chat::{ChatRequest, Message, Role};
use crate::provider::mcp::Ran;
use crate::provider::observed;
use crate::provider::wire::hosted::{self, HostedCall};
use crate::trace::{self, FlowSearch, SearchResult, ToolCalled, ToolOutcome, ToolResult, What};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// Reason for the outcome of a search that the agent made by itself and does not show.
const UNSEEN_SEARCH: &str = "the reply names sources, the model was offered no search tool, and no prompt shows a source by \
                             its name or text: what the agent found by itself is not shown";
/// The same, where a prompt shows the numbers of the reply.
const UNREAD_SEARCH: &str = "a prompt holds the numbers of the reply, but no passage can be read in it: what the agent found \
                             by itself is not shown";

impl TraceBuilder<'_> {
    /// Adds the calls that the provider made within a completion, and its searches whose tools have no role.
    pub(super) fn hosted(&mut self, group: &Group, completion: u32) {
        let Some(Ok(response)) = group.passed.last().map(|one| &one.result) else { return };
        let dialect = group.request.profile.name;
        let answer = observed::document(dialect, &response.headers, &response.body).unwrap_or_default();
        self.of_provider.extend(hosted::offered(dialect, &answer));
        for hosted in hosted::calls(dialect, &answer) {
            if hosted.searches() && self.role(&hosted.tool) == trace::Role::None {
                self.searched_by_provider(&hosted);
            }
            let HostedCall { id, tool, arguments, ran } = hosted;
            self.ids.insert(id, self.made.len());
            self.made.push((tool.clone(), arguments.clone()));
            // It has no id, because no later message answers it.
            let call = Waiting { ran, ..Waiting::new(self.at, completion, (String::new(), tool, arguments)) };
            let unshown = || ToolOutcome::Ok(ToolResult::Other(ToolResult::UNSHOWN.into()));
            let outcome = if call.ran.is_some() { self.ran(&call) } else { unshown() };
            // A failure of the provider's tool is no mistake of the model that the agent could correct.
            let slipped = self.slipped;
            self.called(call, outcome);
            self.slipped = slipped;
        }
    }

    /// Adds a search that the provider made by a tool without a role.
    fn searched_by_provider(&mut self, call: &HostedCall) {
        let query = self.query();
        let search = if let Some(Ran::Done(result)) = &call.ran {
            decoder::search(query.clone(), String::new(), &self.words.body(result))
        } else {
            None
        };
        let outcome = match (search, &call.ran) {
            (Some(search), _) => ToolOutcome::Ok(ToolResult::Search(search)),
            (None, Some(Ran::Failed(why))) => ToolOutcome::Failed { message: self.words.text(why), retryable: true },
            (None, _) => {
                self.hidden_retrieval = true;
                let tool = &call.tool;
                ToolOutcome::Unseen {
                    reason: format!("the provider searched by itself ({tool}), and what it found is not read"),
                }
            }
        };
        self.push(What::Searched(FlowSearch { query, outcome, took_us: 0, attempts: Vec::new() }));
    }

    /// What the user asked in this turn.
    fn query(&self) -> String {
        let asked = self.known.iter().rev().find(|(role, _)| *role == Role::User);
        asked.map_or_else(String::new, |(_, said)| said.clone())
    }

    /// Adds the calls that a request shows with a result after the user's last message, and that no completion of the turn
    /// made: a search that the agent forces by writing it into the conversation.
    pub(super) fn written_calls(&mut self, asked: &ChatRequest) {
        let from = asked.messages.iter().rposition(|message| message.role == Role::User).map_or(0, |last| last + 1);
        let said = &asked.messages[from..];
        let query = self.query();
        let said_now = from.checked_sub(1).is_some_and(|last| asked.messages[last].content.contains(query.trim()));
        let answered =
            |id: &String| said.iter().any(|message| message.role == Role::Tool && message.answers.as_ref() == Some(id));
        for call in said.iter().flat_map(|message| &message.calls) {
            let made = (call.name.clone(), decoder::document(&call.arguments));
            // Some frameworks write a model's call under another id.
            if !answered(&call.id) || self.ids.contains_key(&call.id) || self.made.contains(&made) {
                continue;
            }
            if self.is_of_earlier_turn(&call.id, &made, said_now) {
                continue;
            }
            let completion = self.completions.saturating_sub(1);
            self.ids.insert(call.id.clone(), self.made.len());
            self.made.push(made.clone());
            let (tool, arguments) = made;
            self.waiting.push(Waiting::new(self.at, completion, (call.id.clone(), tool, arguments)));
        }
    }

    /// Whether a call is that of an earlier turn: its result is a late one, or the history of earlier turns has it. The
    /// history decides only where the user's words of this turn do not stand before the call: they may have approved another.
    fn is_of_earlier_turn(&self, id: &str, (tool, arguments): &(String, Value), said_now: bool) -> bool {
        let is_known = |what: &&What| match what {
            What::ToolCalled(call) => call.id == *id && call.tool == *tool && call.arguments == *arguments,
            _ => false,
        };
        self.is_late(id) || !said_now && self.earlier.iter().any(is_known)
    }

    /// Keeps what a request tells the model, except the conversation itself: passages may stand in it.
    pub(super) fn told(&mut self, messages: &[Message]) {
        let own = |said: &String| !self.known.iter().any(|(_, known)| known == said) && !self.prompts.contains(said);
        let told = messages.iter().filter(|message| matches!(message.role, Role::System | Role::User));
        let new: Vec<String> = told.flat_map(words).filter(own).collect();
        self.prompts.extend(new);
    }

    /// Whether a tool only gives the answer: by its role or, without one, because the reply is all that followed its call.
    fn answers(&self, tool: &str) -> bool {
        let is_last = |call: &Waiting| call.tool == tool && call.completion + 1 == self.completions;
        match self.role(tool) {
            trace::Role::Respond => true,
            trace::Role::None => !self.worked.contains(tool) && self.waiting.iter().any(is_last),
            _ => false,
        }
    }

    /// Adds the search of an agent that called no search tool, by the sources of its reply and by its prompts.
    pub(super) fn searched_alone(&mut self, text: &str, body: &Value) {
        let first = self.events.iter().position(|(_, what)| matches!(what, What::ModelCalled(_)));
        let retrieves = |tool: &String| matches!(self.role(tool), trace::Role::Knowledge | trace::Role::External);
        let has_tools = self.offered.iter().flatten().any(|tool| !self.answers(tool));
        // Calls of a model without tools are those that its texts show, whose results stand in the prompt.
        let searched = |tool: &String| if has_tools { retrieves(tool) } else { !self.answers(tool) };
        let is_other = |(_, what): &(Duration, What)| match what {
            What::ToolCalled(call) => searched(&call.tool),
            other => matches!(other, What::Searched(_)),
        };
        let others = self.waiting.iter().any(|call| searched(&call.tool)) || self.events.iter().any(is_other);
        let Some(first) = first.filter(|_| !others) else { return };
        let could_search = self.offered.iter().flatten().any(retrieves);
        let query = self.query();
        let replied = self.replied(body);
        let names_sources = replied.and_then(Value::as_array).is_some_and(|sources| !sources.is_empty());
        // Whoever can search may be told the names of what there is to find.
        let hits = match evidence::retrieved(replied, &self.prompts, !could_search) {
            Some(Retrieved::Shown(list)) => decoder::passages(&list),
            Some(Retrieved::Replied(_)) | None => None,
        };
        let outcome = match hits {
            Some(hits) => {
                self.prompted = true;
                ToolOutcome::Ok(ToolResult::Search(SearchResult::of(query.clone(), String::new(), hits)))
            }
            None if could_search => return,
            None => match self.tells_numbers(text) {
                Some(true) => self.unseen_search(UNREAD_SEARCH),
                told if names_sources && (!has_tools || told.is_none()) => self.unseen_search(UNSEEN_SEARCH),
                _ => return,
            },
        };
        let at = self.events.get(first).map_or(Duration::ZERO, |(at, _)| *at);
        self.events
            .insert(first, (at, What::Searched(FlowSearch { query, outcome, took_us: 0, attempts: Vec::new() })));
    }

    fn unseen_search(&mut self, reason: &str) -> ToolOutcome {
        self.hidden_retrieval = true;
        ToolOutcome::Unseen { reason: reason.to_owned() }
    }

    /// Whether prompts hold all numbers of a reply that neither the conversation nor a result of the turn holds; `None` if
    /// there are none.
    fn tells_numbers(&self, reply: &str) -> Option<bool> {
        let results = self.events.iter().filter_map(|(_, what)| match what {
            What::ToolCalled(ToolCalled { outcome: ToolOutcome::Ok(ToolResult::Other(result)), .. }) => {
                Some(result.to_string())
            }
            _ => None,
        });
        let said = self.known.iter().map(|(_, said)| said.clone());
        let old: BTreeSet<String> = said.chain(results).flat_map(|text| evidence::numbers(&text)).collect();
        let new: BTreeSet<String> = evidence::numbers(reply).difference(&old).cloned().collect();
        let told: BTreeSet<String> = self.prompts.iter().flat_map(|prompt| evidence::numbers(prompt)).collect();
        (!new.is_empty()).then(|| new.is_subset(&told))
    }

    /// Whether the agent searched by itself, and its prompt shows what it found.
    pub(in crate::flow::external) fn searched_before(&self, role: trace::Role) -> bool {
        role == trace::Role::Knowledge && self.prompted
    }
}
