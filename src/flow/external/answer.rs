//! Builds the answer of a turn from the agent's reply and the call of its answering tool, and names what neither shows.

use super::decoder;
use super::trace_builder::TraceBuilder;
use crate::trace::citations::one_spelling;
use crate::trace::{self, Answer, Hit, ToolResult, What};
use serde_json::Value;

/// Default place of the sources in the reply of an agent without an answering tool.
const USUAL_SOURCES: &str = "/sources";

impl TraceBuilder<'_> {
    /// Sources in the reply: at the place that the scenario names, or at the default place if the agent called no
    /// answering tool.
    pub(super) fn replied<'b>(&self, body: &'b Value) -> Option<&'b Value> {
        match self.sources {
            Some(pointer) => body.pointer(pointer),
            None => body.pointer(USUAL_SOURCES).filter(|_| self.response.is_none()),
        }
    }

    pub(super) fn answer(&self, text: String, body: &Value) -> Answer {
        let nothing = Value::Null;
        let response = self.response.as_ref().unwrap_or(&nothing);
        let said = |name: &str| response.get(name).and_then(Value::as_bool);
        let confidence = ["confidence_score", "confidence"].into_iter().find_map(|name| response.get(name)?.as_f64());
        let kind_of = |id: &str| self.kind_of(id);
        let replied = self.replied(body).and_then(|list| decoder::replied_sources(list, &kind_of));
        let mut unseen = Vec::new();
        // The names in an answering tool's arguments may differ from those of the passages.
        let traceable = replied.is_some() && !self.hidden_retrieval && self.has_tool_of(trace::Role::Knowledge);
        let from_tool = self.sources.is_none() && self.response.is_some();
        if replied.is_none() && !from_tool {
            unseen.push(trace::SOURCES.to_owned());
        }
        // A reply that lists no source uses none, whatever was searched.
        let none = self.response.is_none() && self.replied(body).and_then(Value::as_array).is_some_and(Vec::is_empty);
        let named = |kind: &str| replied.iter().flatten().any(|source| source.kind == kind);
        let mut used = |member: &str, role: trace::Role, kind: &str| {
            if let Some(said) = said(member) {
                return said;
            }
            let used = !none && (self.used(role) || named(kind));
            // A search that the agent makes by itself leaves no trace except in the sources.
            let alone = role == trace::Role::Knowledge && replied.is_none() && !self.has_tool_of(role);
            if !used && !none && (alone || self.is_unseen(role)) {
                unseen.push(member.to_owned());
            }
            used
        };
        let used_internal_kb = used(trace::USED_INTERNAL_KB, trace::Role::Knowledge, "internal");
        let used_external_kb = used(trace::USED_EXTERNAL_KB, trace::Role::External, "external");
        let sources =
            replied.unwrap_or_else(|| if from_tool { decoder::sources(response, &kind_of) } else { Vec::new() });
        Answer { text, sources, confidence, used_internal_kb, used_external_kb, unseen, traceable, ..Answer::default() }
    }

    /// The kind of what gave a source of that name first, in this turn or before it.
    fn kind_of(&self, id: &str) -> Option<&'static str> {
        let id = one_spelling(id);
        let results = self.earlier.iter().copied().chain(self.events.iter().map(|(_, what)| what));
        results.filter_map(What::given).find_map(|result| match result {
            ToolResult::Search(search) => {
                let is_it = |hit: &Hit| one_spelling(&hit.id) == id;
                let urls = search.hits.iter().filter_map(|hit| hit.learned.as_ref()).flat_map(|learned| &learned.urls);
                let learned = || urls.into_iter().any(|url| one_spelling(url) == id).then_some("external");
                if search.hits.iter().any(is_it) { Some("internal") } else { learned() }
            }
            ToolResult::External(found) => {
                let mut names = found.citations.iter().map(|page| &page.url).chain([&found.result]);
                names.any(|name| one_spelling(name) == id).then_some("external")
            }
            ToolResult::Indexed(_) | ToolResult::Responded | ToolResult::Other(_) => None,
        })
    }

    /// Whether a tool of that role was offered or called in this turn, or a prompt shows what was found without one.
    fn has_tool_of(&self, role: trace::Role) -> bool {
        self.searched_before(role)
            || self.offered.iter().flatten().chain(&self.of_provider).any(|tool| self.role(tool) == role)
            || self.used(role)
            || self.is_unseen(role)
    }

    /// Whether a call of a tool of that role has no visible result.
    fn is_unseen(&self, role: trace::Role) -> bool {
        self.events.iter().any(|(_, what)| match what {
            What::ToolCalled(call) => call.outcome.is_unseen() && self.role(&call.tool) == role,
            _ => false,
        })
    }

    fn used(&self, role: trace::Role) -> bool {
        self.searched_before(role) || self.worked.iter().any(|tool| self.role(tool) == role)
    }
}
