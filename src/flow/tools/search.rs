//! Shared parts of tools that search a knowledge base: the search with its attempts and time, and the record of its
//! hits.

use super::{Failure, Output, Sent, ToolError};
use crate::flow::AgentContext;
use crate::knowledge::{Found, KnowledgeBase, Passage, Search, excerpt};
use crate::provider::faults::contradiction;
use crate::provider::{Attempt, SearchAnswer};
use crate::trace::{CitedPage, ExternalResult, Hit, SearchResult, ToolResult};
use serde_json::{Value, json};
use std::time::Duration;

/// Characters of a passage in the trace; the run folder holds the whole passage.
pub(in crate::flow) const EXCERPT: usize = Hit::EXCERPT;

/// A finished search whose time has not been booked yet.
pub(in crate::flow) struct Searched {
    /// Passages found, best first.
    pub(in crate::flow) found: Result<Vec<Found>, ToolError>,
    /// Exchanges of the search; empty for a base in this process.
    pub(in crate::flow) attempts: Vec<Attempt>,
    /// When the local work began.
    pub(in crate::flow) began: Duration,
}

/// Searches `base` and leaves booking its time to the caller, for a tool that does more local work.
pub(in crate::flow) async fn search(
    env: &AgentContext,
    base: &dyn KnowledgeBase,
    query: &str,
    top_k: usize,
) -> Searched {
    let mut began = env.clock.now();
    let Search { result, attempts } = base.search(query, top_k).await;
    if !attempts.is_empty() {
        // The time of an exchange is recorded with it, and is not local work.
        began = env.clock.now();
    }
    let found = result.map_err(|error| ToolError::of_search(error, attempts.clone()));
    let found = found.map(|mut found| {
        if let Some(faults) = &env.faults {
            faults.change(&mut found, contradicting);
            if let Some(best) = found.first_mut() {
                faults.poison(&mut best.passage.text);
            }
        }
        found
    });
    Searched { found, attempts, began }
}

/// A passage that contradicts another.
fn contradicting(found: &Found) -> Found {
    let Found { passage, raw_score } = found.clone();
    let (id, text) = (format!("{}-other", passage.id), contradiction(&passage.text));
    Found { passage: Passage { id, text, ..passage }, raw_score }
}

/// Passages of `base`, best first, and the exchanges of the search.
pub(in crate::flow) async fn passages(
    env: &AgentContext,
    base: &dyn KnowledgeBase,
    query: &str,
    top_k: usize,
) -> Result<(Vec<Found>, Vec<Attempt>), ToolError> {
    let Searched { found, attempts, began } = search(env, base, query, top_k).await;
    env.spend("knowledge", began).await;
    Ok((found?, attempts))
}

/// Failure of a search without a base: `message` is for the record, `reason` for the model.
pub(in crate::flow) fn no_base(message: &str, reason: &str) -> ToolError {
    let failure = Failure::of("tool_failed", reason.to_owned(), ["Go on without it."; 2]);
    ToolError::Failed(Box::new(Failure {
        message: message.to_owned(),
        model_cause: "failed",
        transient: false,
        ..failure
    }))
}

/// A passage in the form of the trace.
pub(in crate::flow) fn hit(found: &Found) -> Hit {
    Hit {
        id: found.passage.id.clone(),
        title: found.passage.title.clone(),
        raw_score: found.raw_score,
        excerpt: excerpt(&found.passage.text, EXCERPT),
        ..Hit::default()
    }
}

/// An external service's answer in the form of the trace, under the id and for the query of the call.
pub(in crate::flow) fn external_answer(result: String, query: String, found: SearchAnswer) -> ExternalResult {
    ExternalResult {
        result,
        query,
        answer: found.text,
        citations: found.citations.into_iter().map(|one| CitedPage { title: one.title, url: one.url }).collect(),
        model: found.model,
        input_tokens: found.usage.input,
        cached_tokens: found.usage.cached,
        output_tokens: found.usage.output,
    }
}

/// The output of a search without learned entries; `message` is for the model.
pub(in crate::flow) fn output(
    query: String,
    kb_id: String,
    hits: Vec<Hit>,
    message: String,
    attempts: Vec<Attempt>,
) -> Output {
    Output { result: result(query, kb_id, hits), message, sent: Sent { service: "knowledge", attempts } }
}

/// The result of a search without learned entries.
pub(in crate::flow) fn result(query: String, kb_id: String, hits: Vec<Hit>) -> ToolResult {
    ToolResult::Search(SearchResult::of(query, kb_id, hits))
}

/// The score of a passage in a tool message depends only on its rank, 1 for the first, so that adding an unrelated
/// document changes no message.
pub(in crate::flow) fn score_of_rank(rank: u32) -> f64 {
    (100.0 / f64::from(rank)).round() / 100.0
}

/// The tool message of passages that are numbered from 1. It is JSON, so that no text can pose as the next passage.
pub(in crate::flow) fn numbered(chunks: impl Iterator<Item = Value>) -> String {
    let chunks: Vec<Value> = chunks.collect();
    if chunks.is_empty() {
        return json!({"chunks": chunks, "note": "Nothing was found."}).to_string();
    }
    json!({ "chunks": chunks }).to_string()
}
