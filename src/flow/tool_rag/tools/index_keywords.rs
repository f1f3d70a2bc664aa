//! `index_keywords {keywords, query, perplexity_result_id}`: stores an external answer under keywords for later
//! searches.
//!
//! Three to ten keywords of 2 to 50 characters. Each names a subject (no stop words, no generic words, none that occurs
//! in much of the knowledge base), is a term and not a sentence, and shares a concept with the answer: a word in any
//! form or spelling, an abbreviation, a compound. One in three may be a synonym that occurs in no document. Keywords
//! that differ only in case, spaces or plural count once.

use super::INDEX_KEYWORDS;
use crate::flow::tool_rag::ToolRag;
use crate::flow::tools::{Declaration, Output, Refusal, Scope, Tool, ToolError, guard, sanitise};
use crate::knowledge::{Concepts, ExternalRecord, Indexed, KnowledgeBases, tokenize};
use crate::platform::secrets;
use crate::trace::{IndexResult, Role, ToolResult};
use serde_json::{Map, Value, json};

pub(super) static TOOL: Tool<ToolRag> = Tool {
    declaration: Declaration::new(INDEX_KEYWORDS, Role::Index, schema).offered_with(|services| services.search),
    run: |arguments, scope| Box::pin(run(arguments, scope)),
};

const LEAST: usize = 3;
const MOST: usize = 10;
const SHORTEST: usize = 2;
const LONGEST: usize = 50;
const MAX_QUERY: usize = 1_000;

/// Maximum number of words of a keyword; a longer one is a sentence, which no later question repeats.
const MOST_WORDS: usize = 5;
/// Fraction of passages above which a keyword is too common.
const COMMON: f64 = 0.25;
/// Maximum fraction of a call's keywords that may be synonyms, which share no word with the answer.
const SYNONYMS: f64 = 0.34;

/// Generic words, sorted; a keyword of only these and stop words would match everything.
const GENERIC: &[&str] = &[
    "answer", "answers", "article", "articles", "best", "case", "cases", "citation", "content", "current", "data",
    "date", "detail", "details", "document", "documents", "example", "examples", "fact", "facts", "general", "good",
    "guide", "help", "important", "info", "information", "item", "items", "keyword", "keywords", "kind", "knowledge",
    "latest", "list", "many", "misc", "much", "new", "news", "number", "overview", "page", "part", "people", "point",
    "points", "problem", "query", "question", "questions", "recent", "reference", "report", "research", "result",
    "results", "search", "site", "source", "sources", "stuff", "summary", "text", "thing", "things", "time", "tip",
    "tips", "today", "topic", "topics", "type", "types", "update", "updates", "use", "user", "various", "way", "ways",
    "web", "website", "word", "words", "world", "year", "years",
];

/// The parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct IndexKeywords {
    /// The keywords, normalised.
    keywords: Vec<String>,
    /// The query that the keywords belong to.
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

/// Whether a normalised keyword is too generic to name a subject.
pub fn is_generic(keyword: &str) -> bool {
    tokenize::words(keyword)
        .iter()
        .all(|word| tokenize::is_stop_word(word) || GENERIC.binary_search(&word.as_str()).is_ok())
}

impl IndexKeywords {
    fn from_arguments(object: &Map<String, Value>) -> Result<Self, Refusal> {
        let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
        let query = guard::line("query", text("query"), MAX_QUERY)?;
        let result = guard::line("perplexity_result_id", text("perplexity_result_id"), 64)?;
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
        let words = tokenize::words(&keyword).len();
        if words > MOST_WORDS || keyword.contains("://") {
            let reason = format!("the keyword \"{}\" is too specific", shown(&keyword));
            let guidance = "Use terms of one to four words that a related question would hold too; no sentences, no \
                            addresses.";
            return Err(Refusal::new("too_specific", reason, guidance));
        }
        keywords.push(keyword);
    }
    let given = keywords.len();
    let distinct = tokenize::distinct_keywords(keywords.iter().map(String::as_str));
    let keywords: Vec<String> = distinct.into_iter().map(|(keyword, _)| keyword).collect();
    if !(LEAST..=MOST).contains(&keywords.len()) {
        let count = keywords.len();
        let repeats = if count < given { "; case, spaces and plurals do not make another keyword" } else { "" };
        let reason = format!("{count} different keywords were given{repeats}");
        return Err(Refusal::new("length", reason, format!("Give {LEAST} to {MOST} different keywords.")));
    }
    Ok(keywords)
}

/// Refuses keywords that occur in much of the knowledge base or are unrelated to the answer.
///
/// # Errors
/// The first unsuitable keyword, and why.
fn fits(call: &IndexKeywords, record: &ExternalRecord, bases: &KnowledgeBases) -> Result<(), Refusal> {
    let titles = record.citations.iter().map(|(title, _)| title.as_str());
    let about = [record.answer.as_str(), &record.query, &record.question, &call.query].into_iter().chain(titles);
    let concepts = Concepts::of(about);
    let foreign: Vec<&String> = call.keywords.iter().filter(|keyword| !concepts.share(keyword)).collect();
    let few = foreign.len() as f64 <= call.keywords.len() as f64 * SYNONYMS;
    for keyword in &call.keywords {
        let share = bases.share_holding(keyword);
        if let Some(share) = share.filter(|share| *share > COMMON) {
            let percent = (share * 100.0).round();
            let reason =
                format!("the keyword \"{}\" is too generic: {percent} % of all passages hold it", shown(keyword));
            let guidance = "Replace it by a term that tells this answer from others, or narrow it by a second word.";
            return Err(Refusal::new("generic_keyword", reason, guidance));
        }
        // A word that the documents use names one of their subjects; a word that they lack may be a synonym.
        let is_synonym = few && share == Some(0.0);
        if foreign.contains(&keyword) && !is_synonym {
            let reason = format!("the keyword \"{}\" shares no word with the answer or its question", shown(keyword));
            let guidance = "Take keywords from the external answer and the question that led to it.";
            return Err(Refusal::new("unrelated_keyword", reason, guidance));
        }
    }
    Ok(())
}

fn shown(keyword: &str) -> String {
    secrets::beginning(keyword, LONGEST)
}

/// Stores the answer under the keywords.
async fn run(arguments: &Map<String, Value>, scope: Scope<'_, ToolRag>) -> Result<Output, ToolError> {
    let call = IndexKeywords::from_arguments(arguments)?;
    let (env, received) = (scope.env, &scope.memory.received);
    let Some(record) = received.iter().find(|record| record.result == call.result) else {
        let known: Vec<&str> = received.iter().map(|record| record.result.as_str()).collect();
        let guidance = format!("Use the result_id of an external answer of this conversation: {}.", known.join(", "));
        let reason = "`perplexity_result_id` names no external answer of this conversation";
        return Err(Refusal::new("unknown_result", reason, guidance).into());
    };
    fits(&call, record, &env.knowledge)?;
    let began = env.clock.now();
    let indexed = env.keywords.index(record, &call.keywords, &call.query, env.clock.wall());
    env.spend("keywords", began).await;
    let indexed = indexed?;
    let message = for_model(&indexed);
    let Indexed { keywords, merged, read_back } = indexed;
    let result = IndexResult { result: record.result.clone(), keywords, merged, read_back };
    Ok(Output::local(ToolResult::Indexed(result), message))
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
    use crate::knowledge::{Corpus, Embedded, Passage};
    use std::sync::Arc;

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
        assert_eq!(check(&["Grid tariff", "levy", "GRID  TARIFFS"]), Err("length"));
        assert_eq!(check(&["the price that a grid sets each month", "levy", "grid"]), Err("too_specific"));
        assert_eq!(check(&["https://example.org/levy", "levy", "grid"]), Err("too_specific"));
        assert_eq!(check(&["How will the grid tariff change next year?", "levy", "grid"]), Err("full_query"));
        assert_eq!(check(&["grid tariff", "levy", "'; drop table keywords; --"]), Err("hostile"));
        let many: Vec<String> = (0..11).map(|n| format!("levy {n}")).collect();
        assert_eq!(check(&many.iter().map(String::as_str).collect::<Vec<_>>()), Err("length"));
    }

    #[test]
    fn repeats_within_a_call_merge_and_the_first_spelling_stays() {
        let kept = vec!["grid tariffs".to_owned(), "levy".into(), "feed-in".into()];
        assert_eq!(check(&["Grid Tariffs", "levy", "grid  tariff", "feed-in", "LEVY"]), Ok(kept));
    }

    fn call(keywords: &[&str]) -> IndexKeywords {
        let keywords = keywords.iter().map(|&keyword| keyword.to_owned()).collect();
        IndexKeywords { keywords, query: "pollination of tomatoes".into(), result: "result-1".into() }
    }

    fn record() -> ExternalRecord {
        ExternalRecord {
            session: "s".into(),
            conversation: 0,
            result: "result-1".into(),
            query: "bumblebees in greenhouses".into(),
            answer: "Bumblebee hives pollinate tomatoes from 12 °C.".into(),
            citations: vec![("Koppert guide".into(), "https://example.org/hives".into())],
            question: "Which insects help in winter?".into(),
            question_id: "question:1".into(),
        }
    }

    fn base(holding: usize) -> KnowledgeBases {
        let text = |n: usize| if n < holding { "tomato seeds" } else { "frost fleece" };
        let passage = |n: usize| Passage { id: format!("doc#{n}"), title: "Doc".into(), text: text(n).into() };
        let corpus = Corpus::of("desk", (0..40).map(passage).collect());
        KnowledgeBases::new(vec![("desk".to_owned(), Arc::new(Embedded::open(corpus, None).expect("opens")))])
    }

    #[test]
    fn keywords_share_a_word_with_the_answer_its_citations_or_its_question() {
        let fits = |keyword: &str| fits(&call(&[keyword]), &record(), &base(1)).map_err(|refusal| refusal.cause);
        for keyword in ["bumblebee hive", "pollinating insects", "winter insects", "koppert", "greenhouse"] {
            assert_eq!(fits(keyword), Ok(()), "{keyword}");
        }
        assert_eq!(fits("heat pump"), Err("unrelated_keyword"));
        assert_eq!(fits("hi-fi"), Err("unrelated_keyword"));
    }

    #[test]
    fn one_keyword_in_three_may_be_a_synonym_where_no_document_holds_it() {
        let fits = |keywords: &[&str]| fits(&call(keywords), &record(), &base(1)).map_err(|refusal| refusal.cause);
        assert_eq!(fits(&["bumblebee hive", "greenhouse", "humble-bees"]), Ok(()));
        assert_eq!(fits(&["bumblebee hive", "greenhouse", "frost fleece"]), Err("generic_keyword"));
        assert_eq!(fits(&["bumblebee hive", "greenhouse", "seeds"]), Err("unrelated_keyword"), "a document holds it");
        assert_eq!(fits(&["bumblebee hive", "humble-bees", "drone"]), Err("unrelated_keyword"), "two of three");
    }

    #[test]
    fn a_keyword_that_stands_in_many_passages_is_generic() {
        let cause = |holding| fits(&call(&["tomatoes"]), &record(), &base(holding)).map_err(|refusal| refusal.cause);
        assert_eq!(cause(10), Ok(()));
        assert_eq!(cause(11), Err("generic_keyword"));
        let narrowed = fits(&call(&["tomato pollination"]), &record(), &base(40));
        assert_eq!(narrowed, Ok(()), "no passage holds both words");
    }
}
