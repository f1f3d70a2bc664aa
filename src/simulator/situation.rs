//! State of a conversation, read from its messages at every request, because the simulator keeps none.
//!
//! The turn begins with the user's last message. Messages of the controller look like those of the user or the system;
//! they are recognised because they name a tool, or follow the result of one. Tool results are read by their usual
//! names: passages in a list, an answer with citations, an error, or text alone. Their texts are data, never
//! instructions.

use super::habit::Step;
use super::perplexity::text_of;
use crate::provider::chat::{Message, Role};
use crate::provider::tool_result;
use serde_json::Value;
use std::collections::BTreeMap;

/// One passage in a search result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Id for citations.
    pub id: String,
    /// Its document's title.
    pub title: String,
    pub text: String,
    /// Whether it is a learned entry.
    pub learned: bool,
    /// Number by which an answer's text cites it, if it has one.
    pub number: Option<u64>,
}

/// An external answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct External {
    /// Id for indexing keywords.
    pub result: String,
    pub query: String,
    /// The text.
    pub answer: String,
    /// Title and address of its citations.
    pub citations: Vec<(String, String)>,
}

/// State of the current turn.
#[derive(Debug, Clone, Default)]
pub(super) struct Situation {
    /// Whether the knowledge base returned a result, with or without chunks.
    pub searched: bool,
    pub chunks: Vec<Chunk>,
    /// Embeds of the artifacts that it created.
    pub embeds: Vec<String>,
    /// Whether the chunks suffice.
    pub sufficient: bool,
    pub external: Option<External>,
    /// Whether the external search was given up.
    pub search_down: bool,
    /// Whether keywords are indexed.
    pub indexed: bool,
    /// Failures of the external search.
    pub search_failures: u32,
    /// Number of completions for each step.
    pub tried: BTreeMap<Step, u32>,
    /// Number of controller messages about each step.
    pub told: BTreeMap<Step, u32>,
}

/// Decides whether chunks answer the question.
pub(super) type Judge<'a> = &'a dyn Fn(&[Chunk]) -> bool;

/// Attempts at one step before the model continues without it.
const PATIENCE: u32 = 3;

/// Index of the user's last question; `None` if there is none.
pub(super) fn question_at(messages: &[Message]) -> Option<usize> {
    let first = messages.iter().position(|message| message.role == Role::User)?;
    messages
        .iter()
        .enumerate()
        .rev()
        .find(|(at, message)| {
            let names_a_tool = || Step::tools().any(|tool| message.content.contains(tool));
            let is_feedback = || names_a_tool() || follows_a_result(&messages[..*at]);
            message.role == Role::User && (*at == first || !is_feedback())
        })
        .map(|(at, _)| at)
}

/// Whether the last message is the result of a call after which the turn goes on.
fn follows_a_result(before: &[Message]) -> bool {
    let Some(Message { answers: Some(id), .. }) = before.last() else { return false };
    let calls = before.iter().rev().flat_map(|message| &message.calls);
    let called = calls.into_iter().find(|call| call.id == *id);
    called.is_some_and(|call| Step::of_tool(&call.name) != Some(Step::Respond))
}

impl Situation {
    /// Reads the turn that begins with `messages[0]`, the question. `offers` says which tools exist; `retries_search`
    /// says whether a failed external search is retried if the error allows it.
    pub(super) fn read(
        messages: &[Message],
        offers: &dyn Fn(Step) -> bool,
        judge: Judge<'_>,
        retries_search: bool,
    ) -> Self {
        let mut state = Self::default();
        let mut calls: BTreeMap<&str, (&str, &str, bool)> = BTreeMap::new();
        for message in messages.iter().skip(1) {
            let step = state.step(offers);
            match message.role {
                Role::Assistant => {
                    *state.tried.entry(step).or_default() += 1;
                    for call in &message.calls {
                        calls.insert(&call.id, (&call.name, &call.arguments, state.searched));
                    }
                }
                Role::Tool => {
                    let known = message.answers.as_deref().and_then(|id| calls.get(id));
                    if let Some((name, arguments, in_order)) = known {
                        state.take(name, arguments, &message.content, *in_order, judge, retries_search);
                    }
                }
                Role::User | Role::System => *state.told.entry(step).or_default() += 1,
            }
        }
        state
    }

    /// The next step of the turn.
    pub(super) fn step(&self, offers: &dyn Fn(Step) -> bool) -> Step {
        let open = |step: Step| offers(step) && self.attempt(step) < PATIENCE;
        if !self.searched && open(Step::Knowledge) {
            Step::Knowledge
        } else if self.external.is_none() && !self.search_down && !self.sufficient && open(Step::External) {
            Step::External
        } else if self.external.is_some() && !self.indexed && open(Step::Index) {
            Step::Index
        } else {
            Step::Respond
        }
    }

    /// Number of earlier attempts at the step in this turn.
    pub(super) fn attempt(&self, step: Step) -> u32 {
        let count = |counts: &BTreeMap<Step, u32>| counts.get(&step).copied().unwrap_or(0);
        count(&self.tried).max(count(&self.told))
    }

    fn take(&mut self, tool: &str, arguments: &str, content: &str, in_order: bool, judge: Judge<'_>, retries: bool) {
        let value = tool_result::document(content);
        let problem = Problem::of(&value);
        match (Step::of_tool(tool), problem) {
            (Some(Step::Knowledge), None) => {
                self.searched = true;
                self.chunks.extend(chunks(&value));
                self.embeds.extend(embed(&value));
                self.sufficient = judge(&self.chunks);
            }
            (Some(Step::Knowledge), Some(Problem::Failed { retryable })) => self.searched = !retryable,
            (Some(Step::External), None) => self.external = Some(external(&value, arguments)),
            (Some(Step::External), Some(Problem::Failed { retryable })) if in_order => {
                self.search_failures += 1;
                self.search_down = !(retryable && retries) || self.search_failures > 1;
            }
            (Some(Step::Index), None) => self.indexed = true,
            _ => {}
        }
    }
}

/// Reason why a call returned nothing.
enum Problem {
    /// The call was invalid; a corrected one may work.
    Rejected,
    Failed {
        retryable: bool,
    },
}

impl Problem {
    fn of(result: &Value) -> Option<Self> {
        let (_, retryable) = match result {
            Value::Null => return Some(Self::Rejected),
            other => tool_result::error(other)?,
        };
        let error = result.get("error").unwrap_or(result);
        let cause = error.get("cause").and_then(Value::as_str).unwrap_or_default();
        match retryable {
            _ if REJECTIONS.contains(&cause) => Some(Self::Rejected),
            None if error.get("guidance").is_some() => Some(Self::Rejected),
            said => Some(Self::Failed { retryable: said.unwrap_or_default() }),
        }
    }
}

/// Causes of errors in the call, not in the tool.
const REJECTIONS: [&str; 9] = [
    "unknown_tool", "not_json", "double_encoded", "not_an_object", "schema", "length", "hostile", "order", "unknown_kb",
];

/// The passages of a result; words without names are one passage without an id.
fn chunks(value: &Value) -> Vec<Chunk> {
    if let Some(found) = tool_result::passages(value) {
        let chunk = |found: tool_result::Passage<'_>| {
            let kind = found.item.get("kind").and_then(Value::as_str);
            let learned = kind == Some("learned") || found.id.starts_with("learned:");
            let number = found.item.get("number").and_then(Value::as_u64);
            Chunk { title: found.title.to_owned(), text: found.text.to_owned(), learned, id: found.id, number }
        };
        return found.into_iter().map(chunk).collect();
    }
    let text = said(value);
    let chunk = || Chunk { id: String::new(), title: String::new(), text: text.clone(), learned: false, number: None };
    if text.trim().is_empty() { Vec::new() } else { vec![chunk()] }
}

/// Members that say something, the first one that does.
const SAYING: [&str; 12] = [
    "answer", "text", "content", "summary", "snippet", "result", "output", "results", "data", "chunks", "passages",
    "documents",
];

/// Words of a result: a text, a text inside an object, or a list of texts.
fn said(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(said).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n"),
        Value::Object(members) => {
            let mut found = SAYING.into_iter().filter_map(|name| members.get(name)).map(said);
            found.find(|text| !text.is_empty()).unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// The embed of a result's artifact, if there is one.
fn embed(value: &Value) -> Option<String> {
    let artifact = value.get("response_artifact")?;
    let version = artifact.get("version").and_then(Value::as_u64)?;
    Some(format!("«artifact_content:{}:{version}»", text_of(artifact, "filename")))
}

fn external(value: &Value, arguments: &str) -> External {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or(Value::Null);
    let mut lists = ["citations", "sources", "results"].into_iter().filter_map(|name| value.get(name)?.as_array());
    let listed = lists.find(|list| !list.is_empty()).map_or(&[][..], Vec::as_slice);
    let citations = listed
        .iter()
        .map(|citation| match citation.as_str() {
            Some(url) => (String::new(), url.to_owned()),
            None => (text_of(citation, "title"), text_of(citation, "url")),
        })
        .filter(|(_, url)| !url.is_empty())
        .collect();
    External {
        result: tool_result::result_id(value).unwrap_or_default(),
        query: text_of(&arguments, "query"),
        answer: said(value),
        citations,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::chat::ToolCall;

    fn call(id: &str, name: &str) -> Message {
        let calls = vec![ToolCall { id: id.into(), name: name.into(), arguments: r#"{"query":"q"}"#.into() }];
        Message { role: Role::Assistant, content: String::new(), calls, answers: None, passthrough: None }
    }

    fn next(messages: &[Message]) -> (Step, u32) {
        let offers = |_| true;
        let state = Situation::read(messages, &offers, &|chunks| !chunks.is_empty(), true);
        let step = state.step(&offers);
        (step, state.attempt(step))
    }

    #[test]
    fn the_steps_follow_what_the_tools_gave() {
        let mut dialogue = vec![Message::text(Role::User, "q")];
        assert_eq!(next(&dialogue), (Step::Knowledge, 0));
        dialogue.push(call("1", "knowledge_base_search"));
        dialogue.push(Message::tool_result("1", r#"{"chunks":[]}"#));
        assert_eq!(next(&dialogue), (Step::External, 0));
        dialogue.push(call("2", "perplexity_search"));
        dialogue.push(Message::tool_result("2", r#"{"result_id":"result-1","answer":"a","citations":[]}"#));
        assert_eq!(next(&dialogue), (Step::Index, 0));
        dialogue.push(call("3", "index_keywords"));
        dialogue.push(Message::tool_result("3", r#"{"error":{"cause":"generic_keyword","guidance":"be specific"}}"#));
        assert_eq!(next(&dialogue), (Step::Index, 1));
        dialogue.push(call("4", "index_keywords"));
        dialogue.push(Message::tool_result("4", r#"{"indexed":true}"#));
        assert_eq!(next(&dialogue), (Step::Respond, 0));
    }

    #[test]
    fn feedback_is_not_taken_for_a_question() {
        let dialogue = vec![
            Message::text(Role::System, "rules"),
            Message::text(Role::User, "What is frost?"),
            Message::text(Role::Assistant, "Cold."),
            Message::text(Role::User, "Call knowledge_base_search first."),
        ];
        assert_eq!(question_at(&dialogue), Some(1));
        assert_eq!(next(&dialogue[1..]), (Step::Knowledge, 1));
        let other = Message::text(Role::User, "`nuclia_rag` was not called.");
        assert_eq!(question_at(&[&dialogue[..3], &[other]].concat()), Some(1), "a tool of another flow");
    }

    #[test]
    fn a_call_that_came_too_early_does_not_count_as_an_outage() {
        let dialogue = vec![
            Message::text(Role::User, "q"),
            call("1", "perplexity_search"),
            Message::tool_result("1", r#"{"error":{"retryable":false,"message":"search first"}}"#),
            call("2", "knowledge_base_search"),
            Message::tool_result("2", r#"{"chunks":[]}"#),
        ];
        assert_eq!(next(&dialogue), (Step::External, 0));
    }

    #[test]
    fn an_outage_is_tried_again_once_only_if_that_may_help() {
        let mut dialogue = vec![
            Message::text(Role::User, "q"),
            call("1", "knowledge_base_search"),
            Message::tool_result("1", r#"{"chunks":[]}"#),
            call("2", "perplexity_search"),
        ];
        let mut gone = dialogue.clone();
        gone.push(Message::tool_result("2", r#"{"error":{"retryable":false}}"#));
        assert_eq!(next(&gone), (Step::Respond, 0));
        dialogue.push(Message::tool_result("2", r#"{"error":{"retryable":true}}"#));
        assert_eq!(next(&dialogue), (Step::External, 1));
        dialogue.push(call("3", "perplexity_search"));
        dialogue.push(Message::tool_result("3", r#"{"error":{"retryable":true}}"#));
        assert_eq!(next(&dialogue), (Step::Respond, 0));
    }

    #[test]
    fn results_are_read_in_the_shapes_that_agents_use() {
        let found = |content: &str| {
            let messages = [
                Message::text(Role::User, "q"),
                call("1", "knowledge_base_search"),
                Message::tool_result("1", content),
            ];
            let state = Situation::read(&messages, &|_| true, &|chunks| !chunks.is_empty(), true);
            assert!(state.searched, "{content}");
            state.chunks.into_iter().map(|chunk| (chunk.id, chunk.text)).collect::<Vec<_>>()
        };
        let pair = |id: &str| vec![(id.to_owned(), "6 bar".to_owned())];
        for (content, id) in [
            (r#"{"chunks":[{"id":"pump#1","text":"6 bar"}]}"#, "pump#1"),
            (r#"[{"page_content":"6 bar","metadata":{"source":"pump.md"}}]"#, "pump.md"),
            (r#"{"result":{"documents":[{"filename":"pump.md","content":"6 bar"}]}}"#, "pump.md"),
            ("6 bar", ""),
            (r#"["6 bar"]"#, ""),
            (r#"{"output":"6 bar"}"#, ""),
        ] {
            assert_eq!(found(content), pair(id), "{content}");
        }
        for content in ["[]", "", r#"{"found":0}"#, "Error: the index is down", r#"{"error":"down"}"#] {
            assert_eq!(found(content), [], "{content}");
        }
    }

    #[test]
    fn an_answer_of_the_web_is_read_with_its_pages() {
        let page = ("Tides".to_owned(), "https://t".to_owned());
        for (content, pages) in [
            (r#"{"id":7,"answer":"At 14:20.","sources":[{"title":"Tides","url":"https://t"}]}"#, vec![page]),
            ("At 14:20.", Vec::new()),
        ] {
            let read = external(&tool_result::document(content), r#"{"query":"tide"}"#);
            assert_eq!((read.answer.as_str(), read.query.as_str(), read.citations), ("At 14:20.", "tide", pages));
        }
    }

    #[test]
    fn what_the_user_says_after_a_result_is_feedback_unless_the_turn_has_ended() {
        let after = |tool: &str| {
            let dialogue = [
                Message::text(Role::User, "What is frost?"),
                call("1", tool),
                Message::tool_result("1", "[]"),
                Message::text(Role::User, "Go on."),
            ];
            question_at(&dialogue)
        };
        assert_eq!((after("knowledge_base_search"), after("generate_response")), (Some(0), Some(3)));
    }
}
