//! `index_keywords {keywords, query, perplexity_result_id}`: keeps an external answer under words that find it again.
//!
//! Three to ten keywords of 2 to 50 characters, each different from the others, from the whole query, and from words
//! that would fit any text.

use super::INDEX_KEYWORDS;
use crate::flow::tool_rag::memory::TurnState;
use crate::flow::tools::{Declaration, Output, Refusal, Scope, Tool, ToolError, guard, sanitise};
use crate::knowledge::{Indexed, tokenize};
use crate::trace::{IndexResult, Role, ToolResult};
use serde_json::{Map, Value, json};

/// The tool.
pub(super) static TOOL: Tool<TurnState> = Tool {
    declaration: Declaration::offered_with(INDEX_KEYWORDS, Role::Index, schema, |services| services.search),
    run: |arguments, scope| Box::pin(run(arguments, scope)),
};

const LEAST: usize = 3;
const MOST: usize = 10;
const SHORTEST: usize = 2;
const LONGEST: usize = 50;
const MAX_QUERY: usize = 1_000;

/// Words that would fit any text, sorted; a keyword made of these and stop words alone finds everything.
const GENERIC: &[&str] = &[
    "answer",
    "answers",
    "article",
    "articles",
    "best",
    "case",
    "cases",
    "citation",
    "content",
    "current",
    "data",
    "date",
    "detail",
    "details",
    "document",
    "documents",
    "example",
    "examples",
    "fact",
    "facts",
    "general",
    "good",
    "guide",
    "help",
    "important",
    "info",
    "information",
    "item",
    "items",
    "keyword",
    "keywords",
    "kind",
    "knowledge",
    "latest",
    "list",
    "many",
    "misc",
    "much",
    "new",
    "news",
    "number",
    "overview",
    "page",
    "part",
    "people",
    "point",
    "points",
    "problem",
    "query",
    "question",
    "questions",
    "recent",
    "reference",
    "report",
    "research",
    "result",
    "results",
    "search",
    "site",
    "source",
    "sources",
    "stuff",
    "summary",
    "text",
    "thing",
    "things",
    "time",
    "tip",
    "tips",
    "today",
    "topic",
    "topics",
    "type",
    "types",
    "update",
    "updates",
    "use",
    "user",
    "various",
    "way",
    "ways",
    "web",
    "website",
    "word",
    "words",
    "world",
    "year",
    "years",
];

/// The parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct IndexKeywords {
    /// The keywords, normalised.
    keywords: Vec<String>,
    /// The query that they belong to.
    query: String,
    /// The external answer that they describe.
    result: String,
}

/// JSON Schema of the arguments.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "keywords": {"type": "array", "minItems": LEAST, "maxItems": MOST,
                         "items": {"type": "string", "minLength": SHORTEST, "maxLength": LONGEST},
                         "description": "Terms that someone with a related question would use."},
            "query": {"type": "string", "minLength": 1, "maxLength": MAX_QUERY,
                      "description": "The user's question that led to the external answer."},
            "perplexity_result_id": {"type": "string", "minLength": 1, "maxLength": 64,
                                     "description": "The result_id of the external answer."}
        },
        "required": ["keywords", "query", "perplexity_result_id"],
        "additionalProperties": false
    })
}

/// Whether a normalised keyword says nothing about any subject.
pub fn is_generic(keyword: &str) -> bool {
    tokenize::words(keyword)
        .iter()
        .all(|word| tokenize::is_stop_word(word) || GENERIC.binary_search(&word.as_str()).is_ok())
}

impl IndexKeywords {
    fn from_arguments(object: &Map<String, Value>) -> Result<Self, Refusal> {
        let raw_query = object.get("query").and_then(Value::as_str).unwrap_or_default();
        let query = sanitise::line(raw_query);
        sanitise::length("query", &query, 1, MAX_QUERY)?;
        guard::inspect("query", raw_query)?;
        let raw_result = object.get("perplexity_result_id").and_then(Value::as_str).unwrap_or_default();
        let result = sanitise::line(raw_result);
        sanitise::length("perplexity_result_id", &result, 1, 64)?;
        guard::inspect("perplexity_result_id", raw_result)?;
        let given = object.get("keywords").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let keywords = checked_keywords(given, &query)?;
        Ok(Self { keywords, query, result })
    }
}

fn checked_keywords<'a>(given: impl Iterator<Item = &'a str>, query: &str) -> Result<Vec<String>, Refusal> {
    let whole_query = tokenize::words(query);
    let mut keywords: Vec<String> = Vec::new();
    for raw in given {
        let keyword = tokenize::normalised_keyword(&sanitise::line(raw));
        let count = keyword.chars().count();
        if !(SHORTEST..=LONGEST).contains(&count) {
            let reason = format!("the keyword \"{}\" has {count} characters", shown(&keyword));
            let guidance = format!("Use keywords of {SHORTEST} to {LONGEST} characters: a term of one to four words.");
            return Err(Refusal::new("length", reason, guidance));
        }
        guard::inspect("keywords", raw)?;
        if is_generic(&keyword) {
            let reason = format!("the keyword \"{}\" is too generic", shown(&keyword));
            let guidance = "Replace it by a term of the subject itself: a name, a product, a regulation, or a noun \
                            with the word that narrows it.";
            return Err(Refusal::new("generic_keyword", reason, guidance));
        }
        if whole_query.len() > 4 && tokenize::words(&keyword) == whole_query {
            let guidance = "Name the single concepts of the answer instead of repeating the question.";
            return Err(Refusal::new("full_query", "a keyword repeats the whole query", guidance));
        }
        if keywords.contains(&keyword) {
            let reason = format!("the keyword \"{}\" is given twice", shown(&keyword));
            return Err(Refusal::new(
                "duplicate_keyword",
                reason,
                "Give each keyword once; letter case does not count.",
            ));
        }
        keywords.push(keyword);
    }
    if !(LEAST..=MOST).contains(&keywords.len()) {
        let reason = format!("{} keywords were given", keywords.len());
        return Err(Refusal::new("length", reason, format!("Give {LEAST} to {MOST} keywords.")));
    }
    Ok(keywords)
}

fn shown(keyword: &str) -> String {
    keyword.chars().take(LONGEST).collect()
}

/// Keeps the answer under the keywords.
async fn run(arguments: &Map<String, Value>, scope: Scope<'_, TurnState>) -> Result<Output, ToolError> {
    let call = IndexKeywords::from_arguments(arguments)?;
    let (env, received) = (scope.env, &scope.state.memory.received);
    let Some(record) = received.iter().find(|record| record.result == call.result) else {
        let known: Vec<&str> = received.iter().map(|record| record.result.as_str()).collect();
        let guidance = format!("Use the result_id of an external answer of this conversation: {}.", known.join(", "));
        let reason = "`perplexity_result_id` names no external answer of this conversation";
        return Err(Refusal::new("unknown_result", reason, guidance).into());
    };
    let began = env.clock.now();
    let indexed = env.keywords.index(record, &call.keywords, &call.query, env.clock.wall());
    env.spend("keywords", began).await;
    let indexed = indexed?;
    let told = for_model(&indexed);
    let Indexed { keywords, merged, read_back } = indexed;
    let result = IndexResult { result: record.result.clone(), keywords, merged, read_back };
    Ok(Output::local(ToolResult::Indexed(result), told))
}

/// The tool message.
fn for_model(done: &Indexed) -> String {
    json!({
        "indexed": done.read_back.len() == done.keywords.len(),
        "merged": done.merged.len(),
        "keyword_count": done.keywords.len()
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keywords: &[&str]) -> Result<Vec<String>, &'static str> {
        let query = "how will the grid tariff change next year";
        checked_keywords(keywords.iter().copied(), query).map_err(|refusal| refusal.cause)
    }

    #[test]
    fn generic_words_are_sorted_so_that_they_can_be_searched() {
        assert!(GENERIC.is_sorted());
    }

    #[test]
    fn good_keywords_come_back_normalised() {
        assert_eq!(
            check(&["Grid  Tariff", "EEG 2027", "feed-in"]),
            Ok(vec!["grid tariff".into(), "eeg 2027".into(), "feed-in".into()])
        );
    }

    #[test]
    fn each_rule_refuses_with_its_own_cause() {
        assert_eq!(check(&["grid tariff", "levy"]), Err("length"));
        assert_eq!(check(&["grid tariff", "x", "levy"]), Err("length"));
        assert_eq!(check(&["grid tariff", &"y".repeat(51), "levy"]), Err("length"));
        assert_eq!(check(&["grid tariff", "the latest information", "levy"]), Err("generic_keyword"));
        assert_eq!(check(&["Grid tariff", "levy", "GRID  TARIFF"]), Err("duplicate_keyword"));
        assert_eq!(check(&["How will the grid tariff change next year?", "levy", "grid"]), Err("full_query"));
        assert_eq!(check(&["grid tariff", "levy", "'; drop table keywords; --"]), Err("hostile"));
        let many: Vec<String> = (0..11).map(|n| format!("levy {n}")).collect();
        assert_eq!(check(&many.iter().map(String::as_str).collect::<Vec<_>>()), Err("length"));
    }
}
