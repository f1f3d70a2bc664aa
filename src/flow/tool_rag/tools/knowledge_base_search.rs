//! `knowledge_base_search {query, kb_id, top_k}`: passages, and what was learned, in one list.

use super::{Refusal, guard, sanitise};
use crate::knowledge::{KeywordIndex, KnowledgeBase, KnowledgeError, LearnedHit};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The name that every knowledge base answers to beside its own.
pub const DEFAULT_KB: &str = "default_kb";

const MAX_QUERY: usize = 500;
const MAX_TOP_K: u64 = 20;
const DEFAULT_TOP_K: u64 = 5;

/// The parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeBaseSearch {
    /// What to look for.
    pub query: String,
    /// Which knowledge base.
    pub kb_id: String,
    /// How many results at most, 1 to 20.
    pub top_k: usize,
}

/// JSON Schema of the arguments.
pub fn schema() -> Value {
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
    pub(super) fn from_arguments(object: &Map<String, Value>) -> Result<Self, Refusal> {
        let raw = object.get("query").and_then(Value::as_str).unwrap_or_default();
        let query = sanitise::line(raw);
        sanitise::length("query", &query, 1, MAX_QUERY)?;
        guard::inspect("query", raw)?;
        let raw = object.get("kb_id").and_then(Value::as_str).unwrap_or(DEFAULT_KB);
        let kb_id = sanitise::line(raw);
        sanitise::length("kb_id", &kb_id, 1, 64)?;
        guard::inspect("kb_id", raw)?;
        // An integer in JSON Schema may be written 5.0.
        let top_k = object.get("top_k").and_then(Value::as_f64).map_or(DEFAULT_TOP_K, |number| number as u64);
        Ok(Self { query, kb_id, top_k: top_k.clamp(1, MAX_TOP_K) as usize })
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundHit {
    /// The passage's id, or the learned entry's.
    pub id: String,
    /// The document's title, or the query that the entry was learned from.
    pub title: String,
    /// The text.
    pub text: String,
    /// The raw score of its index; a learned entry's is its number of matched keywords.
    pub raw_score: f64,
    /// The learned entry behind it, where there is one.
    pub learned: Option<LearnedHit>,
}

/// What one search found.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHits {
    /// What the model is shown, best first.
    pub hits: Vec<FoundHit>,
    /// Ids of what the same search gives without what was learned.
    pub without_learned: Vec<String>,
}

/// Searches the knowledge base and the keyword index. Learned entries stand first and take at most half of the places
/// (rounded up): they matched whole keywords, and the documents still show.
///
/// # Errors
/// When either cannot be searched.
pub async fn run(
    call: &KnowledgeBaseSearch,
    base: &dyn KnowledgeBase,
    keywords: &KeywordIndex,
) -> Result<SearchHits, KnowledgeError> {
    let found = base.search(&call.query, call.top_k).await?;
    let without_learned = found.iter().map(|hit| hit.passage.id.clone()).collect();
    let learned = keywords.find(&call.query)?;
    let places = call.top_k.div_ceil(2);
    let mut hits: Vec<FoundHit> = learned.into_iter().take(places).map(from_learned).collect();
    hits.extend(found.into_iter().map(|hit| FoundHit {
        id: hit.passage.id,
        title: hit.passage.title,
        text: hit.passage.text,
        raw_score: hit.raw_score,
        learned: None,
    }));
    hits.truncate(call.top_k);
    Ok(SearchHits { hits, without_learned })
}

fn from_learned(hit: LearnedHit) -> FoundHit {
    FoundHit {
        id: hit.id.clone(),
        title: hit.record.query.clone(),
        text: hit.record.answer.clone(),
        raw_score: hit.keywords.len() as f64,
        learned: Some(hit),
    }
}

/// Refuses a knowledge base that is not the one at hand.
///
/// # Errors
/// When `kb_id` names neither it nor the default.
pub fn is_known(call: &KnowledgeBaseSearch, base: &dyn KnowledgeBase) -> Result<(), Refusal> {
    if call.kb_id == DEFAULT_KB || call.kb_id == base.id() {
        return Ok(());
    }
    let guidance = format!("Leave `kb_id` out, or use `{DEFAULT_KB}`.");
    Err(Refusal::new("unknown_kb", "there is no knowledge base of that name", guidance))
}

/// A chunk as the model reads it.
#[derive(Serialize)]
struct Chunk<'a> {
    id: &'a str,
    title: &'a str,
    text: &'a str,
    score: f64,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    citations: Option<Vec<&'a str>>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    kb_id: &'a str,
    query: &'a str,
    found: usize,
}

#[derive(Serialize)]
struct Told<'a> {
    chunks: Vec<Chunk<'a>>,
    metadata: Metadata<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// The tool message: chunks with ids and a score that depends on rank alone, so that an unrelated new document changes
/// no message.
pub fn for_model(call: &KnowledgeBaseSearch, found: &SearchHits) -> String {
    let nothing = "Nothing was found. Other words may help; otherwise the knowledge base has no answer.";
    let told = Told {
        chunks: (1..).zip(&found.hits).map(|(rank, hit)| chunk(rank, hit)).collect(),
        metadata: Metadata { kb_id: &call.kb_id, query: &call.query, found: found.hits.len() },
        note: found.hits.is_empty().then_some(nothing),
    };
    // Text, numbers and lists always serialise.
    serde_json::to_string(&told).unwrap_or_default()
}

fn chunk(rank: u32, hit: &FoundHit) -> Chunk<'_> {
    let cited = hit.learned.as_ref().map(|learned| &learned.record.citations);
    Chunk {
        id: &hit.id,
        title: &hit.title,
        text: &hit.text,
        score: score_of_rank(rank),
        kind: if hit.learned.is_some() { "learned" } else { "document" },
        citations: cited.map(|cited| cited.iter().map(|(_, url)| url.as_str()).collect()),
    }
}

fn score_of_rank(rank: u32) -> f64 {
    (100.0 / f64::from(rank)).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{VirtualClock, block_on};
    use crate::knowledge::{Corpus, Embedded, ExternalRecord, Passage};

    fn base() -> Embedded {
        let passage = |n: u32, text: &str| Passage { id: format!("doc#{n}"), title: "Doc".into(), text: text.into() };
        let passages = vec![passage(1, "tariff one"), passage(2, "tariff two"), passage(3, "tariff three")];
        Embedded::open(Corpus::of("desk", passages), None).expect("opens")
    }

    fn call(query: &str, top_k: usize) -> KnowledgeBaseSearch {
        KnowledgeBaseSearch { query: query.into(), kb_id: DEFAULT_KB.into(), top_k }
    }

    fn search(call: &KnowledgeBaseSearch, index: &KeywordIndex) -> SearchHits {
        let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        block_on(&clock, run(call, &base(), index)).expect("no deadlock").expect("searches")
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
        };
        index.index(&record, &["tariff".into()], "q", jiff::Timestamp::UNIX_EPOCH).expect("indexes");
        let call = call("tariff", 2);
        let found = search(&call, &index);
        assert_eq!(found.without_learned, ["doc#1", "doc#2"]);
        assert!(found.hits[0].learned.is_some());
        assert_eq!(found.hits.len(), 2);
        assert_eq!(found.hits[1].id, "doc#1");
        let told: Value = serde_json::from_str(&for_model(&call, &found)).expect("is JSON");
        assert_eq!(told["chunks"][0]["kind"], "learned");
        assert_eq!(told["chunks"][0]["citations"][0], "https://example.org/t");
    }

    #[test]
    fn the_model_sees_scores_that_depend_on_rank_alone() {
        let call = call("tariff two", 3);
        let told: Value =
            serde_json::from_str(&for_model(&call, &search(&call, &KeywordIndex::in_memory()))).expect("is JSON");
        let scores: Vec<_> = told["chunks"].as_array().expect("is a list").iter().map(|c| c["score"].clone()).collect();
        assert_eq!(scores, [json!(1.0), json!(0.5), json!(0.33)]);
    }

    #[test]
    fn nothing_found_is_said_and_another_knowledge_base_is_refused() {
        let nothing = call("zeppelin", 3);
        assert!(for_model(&nothing, &search(&nothing, &KeywordIndex::in_memory())).contains("Nothing was found"));
        let other = KnowledgeBaseSearch { kb_id: "payroll".into(), ..call("a", 1) };
        assert_eq!(is_known(&other, &base()).expect_err("is refused").cause, "unknown_kb");
        assert!(is_known(&KnowledgeBaseSearch { kb_id: "desk".into(), ..call("a", 1) }, &base()).is_ok());
    }
}
