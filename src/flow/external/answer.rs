//! Builds the answer of a turn from the agent's reply and the call of its answering tool, and names what neither shows.

use super::decoder;
use super::trace_builder::TraceBuilder;
use crate::trace::citations::one_spelling;
use crate::trace::{self, Answer, ToolResult, What};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

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
        let kinds = self.kinds();
        let kind_of = |id: &str| kinds.get(&one_spelling(id)).copied();
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

    /// The names of sources, in one spelling, with the kind of what gave each first, in this turn or before it.
    fn kinds(&self) -> BTreeMap<Cow<'_, str>, &'static str> {
        let mut kinds = BTreeMap::new();
        let results = self.earlier.iter().copied().chain(self.events.iter().map(|(_, what)| what));
        for (kind, name) in results.filter_map(What::given).flat_map(ToolResult::names) {
            kinds.entry(one_spelling(name)).or_insert(kind);
        }
        kinds
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
