//! `knowledge_base_search {query, kb_id, top_k}`: passages and learned entries, in one list.

use super::KNOWLEDGE_BASE_SEARCH;
use crate::flow::tool_rag::ToolRag;
use crate::flow::tools::search::{self, EXCERPT, Searched};
use crate::flow::tools::{Declaration, Output, Refusal, Scope, Sent, Tool, ToolError, guard};
use crate::knowledge::{DEFAULT_KB, Found, KnowledgeBases, LearnedHit, excerpt};
use crate::trace::{Hit, Learned, Role, SearchResult, ToolResult};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

pub(super) static TOOL: Tool<ToolRag> = Tool {
    declaration: Declaration::new(KNOWLEDGE_BASE_SEARCH, Role::Knowledge, schema),
    run: |arguments, scope| Box::pin(run(arguments, scope)),
};

const MAX_QUERY: usize = 500;
const MAX_TOP_K: u64 = 20;
const DEFAULT_TOP_K: u64 = 5;

/// The parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KnowledgeBaseSearch {
    query: String,
    kb_id: String,
    /// Maximum number of results, 1 to 20.
    top_k: usize,
}

/// JSON Schema of the arguments.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "maxLength": MAX_QUERY,
                      "description": "Search words tailored to the documents, not the user's sentence."},
            "kb_id": {"type": "string", "default": DEFAULT_KB, "minLength": 1, "maxLength": 64,
                      "description": "Which knowledge base to search."},
            "top_k": {"type": "integer", "default": DEFAULT_TOP_K, "minimum": 1, "maximum": MAX_TOP_K,
                      "description": "How many results to return."}
        },
        "required": ["query"],
        "additionalProperties": false
    })
}

impl KnowledgeBaseSearch {
    fn from_arguments(object: &Map<String, Value>) -> Result<Self, Refusal> {
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        let query = guard::line("query", text("query").unwrap_or_default(), MAX_QUERY)?;
        let kb_id = guard::line("kb_id", text("kb_id").unwrap_or(DEFAULT_KB), 64)?;
        // JSON Schema allows an integer to be written as 5.0.
        let top_k = object.get("top_k").and_then(Value::as_f64).map_or(DEFAULT_TOP_K, |number| number as u64);
        Ok(Self { query, kb_id, top_k: top_k.clamp(1, MAX_TOP_K) as usize })
    }
}

/// What a search gives.
#[derive(Debug, Clone, PartialEq)]
struct SearchHits {
    /// Hits shown to the model, best first, with their whole text. A learned entry has the query from which it was learned
    /// as its title, and the number of matched keywords as its score.
    hits: Vec<(Hit, String)>,
    /// Ids that the same search returns without learned entries.
    without_learned: Vec<String>,
}

/// Searches the knowledge base and the keyword index.
async fn run(arguments: &Map<String, Value>, scope: Scope<'_, ToolRag>) -> Result<Output, ToolError> {
    let call = KnowledgeBaseSearch::from_arguments(arguments)?;
    let env = scope.env;
    let base = env.knowledge.get(&call.kb_id).ok_or_else(|| unknown_base(&env.knowledge))?;
    let Searched { found, attempts, began } = search::search(env, &**base, &call.query, call.top_k).await;
    let found = found.and_then(|found| Ok(combined(&call, found, env.keywords.find(&call.query)?)));
    env.spend("knowledge", began).await;
    let found = found?;
    let citable = &mut scope.memory.citable;
    citable.searched = true;
    citable.internal.extend(found.hits.iter().map(|(hit, _)| hit.id.clone()));
    let learned = || found.hits.iter().filter_map(|(hit, _)| hit.learned.as_ref());
    citable.external.extend(learned().flat_map(|learned| learned.urls.iter().cloned()));
    // A search is one use of a keyword, however many answers it found through it.
    let used: BTreeSet<&String> = learned().flat_map(|learned| &learned.keywords).collect();
    // A failure to count uses must not fail the search.
    let _ = env.keywords.note_use(used, env.clock.wall());
    let message = for_model(&call, &found);
    let hits = found.hits.into_iter().map(|(hit, _)| hit).collect();
    let (query, kb_id, without_learned) = (call.query, call.kb_id, found.without_learned);
    let result = SearchResult { without_learned, ..SearchResult::of(query, kb_id, hits) };
    Ok(Output { result: ToolResult::Search(result), message, sent: Sent { service: "knowledge", attempts } })
}

/// Learned entries come first and take at most half of the places (rounded up): they matched whole keywords, and
/// documents still have room.
fn combined(call: &KnowledgeBaseSearch, found: Vec<Found>, learned: Vec<LearnedHit>) -> SearchHits {
    let without_learned = found.iter().map(|hit| hit.passage.id.clone()).collect();
    let places = call.top_k.div_ceil(2);
    let mut hits: Vec<(Hit, String)> = learned.into_iter().take(places).map(from_learned).collect();
    hits.extend(found.into_iter().map(|found| (search::hit(&found), found.passage.text)));
    hits.truncate(call.top_k);
    SearchHits { hits, without_learned }
}

fn from_learned(LearnedHit { id, record, keywords }: LearnedHit) -> (Hit, String) {
    let (title, raw_score, excerpt) = (record.query, keywords.len() as f64, excerpt(&record.answer, EXCERPT));
    let urls = record.citations.into_iter().map(|(_, url)| url).collect();
    let learned = Learned { result: record.result, conversation: record.conversation, keywords, urls };
    (Hit { id, title, raw_score, excerpt, learned: Some(learned), ..Hit::default() }, record.answer)
}

/// Refuses an unknown knowledge base and lists the known ones.
fn unknown_base(known: &KnowledgeBases) -> Refusal {
    let names: Vec<String> = known.names().into_iter().map(|name| format!("`{name}`")).collect();
    let guidance = match names.as_slice() {
        [] => "No knowledge base can be searched: go on without one.".to_owned(),
        [only] => format!("Leave `kb_id` out, or use {only}."),
        several => format!("Leave `kb_id` out, or use one of {}.", several.join(", ")),
    };
    Refusal::new("unknown_kb", "there is no knowledge base of that name", guidance)
}

/// The tool message: chunks with ids and a score by rank only, so that adding an unrelated document changes no message.
fn for_model(call: &KnowledgeBaseSearch, found: &SearchHits) -> String {
    let chunks: Vec<Value> = (1..).zip(&found.hits).map(|(rank, (hit, text))| chunk(rank, hit, text)).collect();
    let metadata = json!({"kb_id": call.kb_id, "query": call.query, "found": chunks.len()});
    let mut message = json!({"chunks": chunks, "metadata": metadata});
    if found.hits.is_empty() {
        message["note"] = json!("Nothing was found. Other words may help; otherwise the knowledge base has no answer.");
    }
    message.to_string()
}

fn chunk(rank: u32, hit: &Hit, text: &str) -> Value {
    let kind = if hit.learned.is_some() { "learned" } else { "document" };
    let score = search::score_of_rank(rank);
    let mut chunk = json!({"id": hit.id, "title": hit.title, "text": text, "score": score, "kind": kind});
    if let Some(learned) = &hit.learned {
        chunk["citations"] = json!(learned.urls);
    }
    chunk
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::{Corpus, Embedded, ExternalRecord, KeywordIndex, KnowledgeBase, Passage};
    use crate::platform::clock::{VirtualClock, block_on};
    use std::sync::Arc;

    fn base(id: &str) -> Embedded {
        let passage = |n: u32, text: &str| Passage { id: format!("doc#{n}"), title: "Doc".into(), text: text.into() };
        let passages = vec![passage(1, "tariff one"), passage(2, "tariff two"), passage(3, "tariff three")];
        Embedded::open(Corpus::of(id, passages), None).expect("opens")
    }

    fn call(query: &str, top_k: usize) -> KnowledgeBaseSearch {
        KnowledgeBaseSearch { query: query.into(), kb_id: DEFAULT_KB.into(), top_k }
    }

    fn search(call: &KnowledgeBaseSearch, index: &KeywordIndex) -> SearchHits {
        let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        let base = base("desk");
        let found = block_on(&clock, base.search(&call.query, call.top_k)).expect("no deadlock");
        combined(call, found.result.expect("searches"), index.find(&call.query).expect("finds"))
    }

    fn cause(arguments: &Value) -> &'static str {
        let object = arguments.as_object().expect("is an object");
        KnowledgeBaseSearch::from_arguments(object).expect_err("is refused").cause
    }

    #[test]
    fn defaults_are_filled_in_and_texts_are_sanitised() {
        let arguments = json!({"query": " battery  range "});
        let read = KnowledgeBaseSearch::from_arguments(arguments.as_object().expect("is an object")).expect("passes");
        assert_eq!(read, KnowledgeBaseSearch { query: "battery range".into(), kb_id: "default_kb".into(), top_k: 5 });
    }

    #[test]
    fn empty_and_hostile_parameters_are_refused() {
        assert_eq!(cause(&json!({"query": "  "})), "length");
        assert_eq!(cause(&json!({"query": "x' UNION SELECT password FROM users --"})), "hostile");
        assert_eq!(cause(&json!({"query": "battery", "kb_id": "../../etc/passwd"})), "hostile");
    }

    #[test]
    fn learned_entries_stand_first_and_the_list_without_them_is_kept() {
        let index = KeywordIndex::in_memory();
        let record = ExternalRecord {
            session: "s".into(),
            conversation: 0,
            result: "result-1".into(),
            query: "grid tariff".into(),
            answer: "It fell.".into(),
            citations: vec![("T".into(), "https://example.org/t".into())],
            question: "What does the grid cost?".into(),
            question_id: "question:1".into(),
        };
        index.index(&record, &["tariff".into()], "q", jiff::Timestamp::UNIX_EPOCH).expect("indexes");
        let call = call("tariff", 2);
        let found = search(&call, &index);
        assert_eq!(found.without_learned, ["doc#1", "doc#2"]);
        assert!(found.hits[0].0.learned.is_some());
        assert_eq!(found.hits.len(), 2);
        assert_eq!(found.hits[1].0.id, "doc#1");
        let message: Value = serde_json::from_str(&for_model(&call, &found)).expect("is JSON");
        assert_eq!(message["chunks"][0]["kind"], "learned");
        assert_eq!(message["chunks"][0]["citations"][0], "https://example.org/t");
    }

    #[test]
    fn the_model_sees_scores_that_depend_on_rank_alone() {
        let call = call("tariff two", 3);
        let message: Value =
            serde_json::from_str(&for_model(&call, &search(&call, &KeywordIndex::in_memory()))).expect("is JSON");
        let scores: Vec<_> =
            message["chunks"].as_array().expect("is a list").iter().map(|c| c["score"].clone()).collect();
        assert_eq!(scores, [json!(1.0), json!(0.5), json!(0.33)]);
    }

    #[test]
    fn nothing_found_is_said() {
        let nothing = call("zeppelin", 3);
        assert!(for_model(&nothing, &search(&nothing, &KeywordIndex::in_memory())).contains("Nothing was found"));
    }

    #[test]
    fn an_unknown_knowledge_base_is_refused_with_the_names_of_those_that_there_are() {
        let refusal = unknown_base(&KnowledgeBases::new(vec![("desk".to_owned(), Arc::new(base("desk")))]));
        assert_eq!(
            (refusal.cause, refusal.guidance.as_str()),
            ("unknown_kb", "Leave `kb_id` out, or use `default_kb`.")
        );
        let named = |name: &str| (name.to_owned(), Arc::new(base(name)) as Arc<dyn KnowledgeBase>);
        let refusal = unknown_base(&KnowledgeBases::new(vec![named("north"), named("south")]));
        assert_eq!(refusal.guidance, "Leave `kb_id` out, or use one of `north`, `south`.");
        assert!(unknown_base(&KnowledgeBases::default()).guidance.contains("go on without one"));
    }
}
