//! What one tool call does: refused, out of order, or run, and recorded either way.

use super::policy::{Progress, Seen, out_of_order};
use super::tools::{self as tool, Call};
use super::turn::Turn;
use crate::chat::ToolCall;
use crate::flow::tool_rag::tools::{GENERATE_RESPONSE, INDEX_KEYWORDS, KNOWLEDGE_BASE_SEARCH, PERPLEXITY_SEARCH};
use crate::flow::tool_rag::tools::{generate_response, index_keywords, knowledge_base_search, perplexity_search};
use crate::flow::tools::{Refusal, error_for_model};
use crate::flow::{Abort, prompts};
use crate::knowledge::{ExternalRecord, KnowledgeError};
use crate::provider::{self, ProviderError};
use crate::trace::{
    Answer, ExternalResult, Hit, IndexResult, Learned, Rejection, SearchResult, SourceRef, ToolOutcome, ToolResult,
    What,
};
use std::time::Duration;

/// Characters of a hit's text that go to the trace.
const EXCERPT: usize = 160;

/// A call, with what was known when the model made it.
pub(super) struct Made<'a> {
    pub(super) call: &'a ToolCall,
    /// Ordinal of the completion.
    pub(super) completion: u32,
    /// How far the turn was.
    pub(super) before: &'a Progress,
    /// The completion holds no other call.
    pub(super) alone: bool,
}

/// What came of a call.
struct Done {
    outcome: ToolOutcome,
    /// The tool message.
    told: String,
    attempts: Vec<provider::Attempt>,
    /// What moves the state machine.
    on: &'static str,
    answer: Option<Answer>,
    /// Why it failed or was refused; `None` when it gave a result or did not run.
    cause: Option<&'static str>,
}

impl Done {
    fn ok(result: ToolResult, told: String, on: &'static str) -> Self {
        Self { outcome: ToolOutcome::Ok(result), told, attempts: Vec::new(), on, answer: None, cause: None }
    }
}

/// Takes one call to its end; gives back the answer of an accepted response.
pub(super) async fn take(turn: &mut Turn<'_>, made: &Made<'_>, seen: &mut Seen) -> Result<Option<Answer>, Abort> {
    let from = turn.progress.state();
    let tool = made.call.name.as_str();
    let offered = tool::NAMES.into_iter().find(|name| *name == tool && turn.env.settings.prompts.offers(name));
    let read = tool::read(tool, &made.call.arguments);
    let at = turn.env.clock.now();
    turn.tool_begins(at, made.completion, made.call, &read.arguments);

    let mut done = if offered.is_none() {
        rejected(turn, tool, unknown(turn, tool))
    } else if let Some(reason) = out_of_order(made.before, tool, made.alone) {
        seen.out_of_order = true;
        seen.response_before_keywords |= tool == GENERATE_RESPONSE && made.alone && made.before.searched;
        disordered(turn, tool, reason)
    } else if turn.retries.failures(tool) > turn.env.settings.limits.tool_retries {
        let guidance = "Go on with what you have, and say in the answer what is missing.";
        rejected(
            turn,
            tool,
            Refusal::new("retries_exhausted", format!("`{tool}` takes no further calls now"), guidance),
        )
    } else {
        match read.call {
            Err(refusal) => rejected(turn, tool, refusal),
            Ok(Call::KnowledgeBaseSearch(call)) => search(turn, &call).await,
            Ok(Call::PerplexitySearch(call)) => ask_outside(turn, &call).await?,
            Ok(Call::IndexKeywords(call)) => index(turn, &call).await,
            Ok(Call::GenerateResponse(call)) => respond(turn, call),
        }
    };

    let answer = done.answer.take();
    let cause = done.cause;
    let ran_out_of_order = matches!(done.outcome, ToolOutcome::OutOfOrder(_));
    turn.tool_ends(done.outcome, done.told, &done.attempts);
    // An accepted response ends the turn: that transition is the loop's.
    if answer.is_none() {
        turn.moved(from, done.on);
    }
    if tool == PERPLEXITY_SEARCH {
        turn.book_transport("search", &done.attempts);
    }
    if offered.is_none() || ran_out_of_order || cause == Some("retries_exhausted") {
        return Ok(None);
    }
    book(turn, tool, cause);
    let used_up = turn.retries.failures(tool) > turn.env.settings.limits.tool_retries;
    match tool {
        KNOWLEDGE_BASE_SEARCH => {
            seen.knowledge_called = true;
            seen.knowledge_refused = !turn.progress.searched && used_up;
        }
        INDEX_KEYWORDS if used_up && !turn.progress.keywords_due.is_empty() => {
            let from = turn.progress.state();
            turn.progress.give_up_keywords();
            turn.moved(from, "keywords_given_up");
        }
        GENERATE_RESPONSE => {
            seen.response_invalid = cause;
            seen.answered = answer.is_some();
        }
        _ => {}
    }
    Ok(answer)
}

/// Books the call as a retry where it is one. Responses are retried on the model account alone.
fn book(turn: &mut Turn<'_>, tool: &str, cause: Option<&str>) {
    let booked = if tool == GENERATE_RESPONSE {
        turn.retries.settle(tool, cause.is_none())
    } else {
        turn.retries.called(tool, cause)
    };
    if let Some(retried) = booked {
        turn.push(turn.env.clock.now(), What::Retried(retried));
    }
}

fn unknown(turn: &Turn<'_>, tool: &str) -> Refusal {
    let names: Vec<&str> = turn.env.settings.prompts.tools().iter().map(|tool| tool.name.as_str()).collect();
    Refusal::unknown_tool(tool, &names)
}

fn rejected(turn: &Turn<'_>, tool: &str, refusal: Refusal) -> Done {
    let retryable = refusal.cause != "retries_exhausted" && has_tries(turn, tool);
    let told = error_for_model(refusal.cause, &refusal.reason, &refusal.guidance, retryable);
    let cause = Some(refusal.cause);
    let outcome = ToolOutcome::Rejected(rejection(refusal));
    Done { outcome, told, attempts: Vec::new(), on: "call_rejected", answer: None, cause }
}

fn disordered(turn: &Turn<'_>, tool: &str, reason: &str) -> Done {
    let step = turn.progress.next_step();
    let guidance = turn.env.settings.prompts.feedback(prompts::ORDER, tool, step.name(), reason);
    let refusal = Refusal::new("order", reason, guidance);
    let told = refusal.for_model();
    let outcome = ToolOutcome::OutOfOrder(rejection(refusal));
    Done { outcome, told, attempts: Vec::new(), on: "out_of_order", answer: None, cause: None }
}

fn rejection(refusal: Refusal) -> Rejection {
    Rejection { cause: refusal.cause.into(), reason: refusal.reason, guidance: refusal.guidance }
}

/// Whether a call of `tool` that fails now may be tried again.
fn has_tries(turn: &Turn<'_>, tool: &str) -> bool {
    turn.retries.failures(tool) < turn.env.settings.limits.tool_retries
}

/// Local work is done: its time counts, noted or replayed.
async fn spend(turn: &Turn<'_>, stage: &'static str, began: Duration) {
    let real = turn.env.clock.now().saturating_sub(began);
    turn.env.stages.spent(stage, real).await;
}

/// A tool of our own failed: told without the details of the machine.
fn broken(turn: &mut Turn<'_>, tool: &'static str, error: &KnowledgeError, on: &'static str) -> Done {
    let retryable = has_tries(turn, tool);
    let message = error.to_string();
    turn.tool_failed(tool, &message, !retryable);
    let told = error_for_model("failed", "the tool failed", "Try once more, or go on without it.", retryable);
    let outcome = ToolOutcome::Failed { message, retryable };
    Done { outcome, told, attempts: Vec::new(), on, answer: None, cause: Some("tool_failed") }
}

async fn search(turn: &mut Turn<'_>, call: &tool::KnowledgeBaseSearch) -> Done {
    let env = turn.env;
    if let Err(refusal) = knowledge_base_search::is_known(call, &*env.knowledge) {
        return rejected(turn, KNOWLEDGE_BASE_SEARCH, refusal);
    }
    let began = env.clock.now();
    let found = knowledge_base_search::run(call, &*env.knowledge, &env.keywords).await;
    spend(turn, "knowledge", began).await;
    turn.progress.searched = true;
    let found = match found {
        Ok(found) => found,
        Err(error) => return broken(turn, KNOWLEDGE_BASE_SEARCH, &error, "knowledge_failed"),
    };
    turn.tool_worked(KNOWLEDGE_BASE_SEARCH);
    turn.conversation.citable.searched = true;
    turn.conversation.citable.internal.extend(found.hits.iter().map(|hit| hit.id.clone()));
    let used = found.hits.iter().filter_map(|hit| hit.learned.as_ref()).flat_map(|learned| &learned.keywords);
    // Counting uses is housekeeping: a search that worked does not fail by it.
    let _ = env.keywords.note_use(used, env.clock.wall());
    let told = knowledge_base_search::for_model(call, &found);
    let on = if found.hits.is_empty() { "knowledge_empty" } else { "knowledge_found" };
    let hits = found.hits.into_iter().map(hit).collect();
    let (query, kb_id) = (call.query.clone(), call.kb_id.clone());
    let result = SearchResult { query, kb_id, hits, without_learned: found.without_learned };
    Done::ok(ToolResult::Search(result), told, on)
}

fn hit(found: knowledge_base_search::FoundHit) -> Hit {
    let learned = found.learned.map(|learned| Learned {
        result: learned.record.result,
        conversation: learned.record.conversation,
        keywords: learned.keywords,
    });
    let excerpt = found.text.chars().take(EXCERPT).collect();
    Hit { id: found.id, title: found.title, raw_score: found.raw_score, excerpt, learned }
}

async fn ask_outside(turn: &mut Turn<'_>, call: &tool::PerplexitySearch) -> Result<Done, Abort> {
    let env = turn.env;
    let (Some(service), Some(settings)) = (&env.search, &env.settings.search) else {
        turn.retries.exhaust(PERPLEXITY_SEARCH);
        let refusal = unknown(turn, PERPLEXITY_SEARCH);
        return Ok(rejected(turn, PERPLEXITY_SEARCH, refusal));
    };
    let attempted = perplexity_search::run(call, &**service, &settings.name).await;
    let done = match attempted.result {
        Err(ProviderError::Miss(miss)) => return Err(Abort::Miss(miss)),
        Err(ProviderError::Failed { kind, status, message }) => {
            let retryable = kind.is_transient() && has_tries(turn, PERPLEXITY_SEARCH);
            let status = status.map_or(String::new(), |status| format!(", HTTP {status}"));
            let words: String = message.chars().filter(|letter| !letter.is_control()).take(200).collect();
            let message = format!("the external service failed ({}{status}): {words}", kind.as_str());
            turn.tool_failed(PERPLEXITY_SEARCH, &message, !retryable);
            if !retryable {
                turn.retries.exhaust(PERPLEXITY_SEARCH);
            }
            let guidance = if retryable {
                "Try once more, or answer from the knowledge base alone and say what is missing."
            } else {
                "Answer from the knowledge base alone and say what is missing."
            };
            let reason = format!("the external service failed ({}{status})", kind.as_str());
            let told = error_for_model(kind.as_str(), &reason, guidance, retryable);
            let outcome = ToolOutcome::Failed { message, retryable };
            let (attempts, cause) = (attempted.attempts, Some(kind.as_str()));
            Done { outcome, told, attempts, on: "external_failed", answer: None, cause }
        }
        Ok(answer) => {
            turn.tool_worked(PERPLEXITY_SEARCH);
            let result = format!("result-{}", turn.conversation.received.len() + 1);
            let told = perplexity_search::for_model(&result, call, &answer);
            let citations: Vec<(String, String)> =
                answer.citations.into_iter().map(|citation| (citation.title, citation.url)).collect();
            turn.conversation.citable.asked = true;
            turn.conversation.citable.external.extend(citations.iter().map(|(_, url)| url.clone()));
            turn.conversation.received.push(ExternalRecord {
                session: turn.conversation.session.clone(),
                conversation: turn.conversation.ordinal,
                result: result.clone(),
                query: call.query.clone(),
                answer: answer.text.clone(),
                citations: citations.clone(),
            });
            turn.progress.external_arrived(&result);
            let (query, model) = (call.query.clone(), answer.model);
            let usage = answer.usage;
            let result = ExternalResult {
                result,
                query,
                answer: answer.text,
                citations,
                model,
                input_tokens: usage.input,
                cached_tokens: usage.cached,
                output_tokens: usage.output,
            };
            Done { attempts: attempted.attempts, ..Done::ok(ToolResult::External(result), told, "external_answered") }
        }
    };
    Ok(done)
}

async fn index(turn: &mut Turn<'_>, call: &tool::IndexKeywords) -> Done {
    let Some(record) = turn.conversation.received.iter().find(|record| record.result == call.result).cloned() else {
        let known: Vec<&str> = turn.conversation.received.iter().map(|record| record.result.as_str()).collect();
        let guidance = format!("Use the result_id of an external answer of this conversation: {}.", known.join(", "));
        let reason = "`perplexity_result_id` names no external answer of this conversation";
        return rejected(turn, INDEX_KEYWORDS, Refusal::new("unknown_result", reason, guidance));
    };
    let began = turn.env.clock.now();
    let done = index_keywords::run(call, &turn.env.keywords, &record, turn.env.clock.wall());
    spend(turn, "keywords", began).await;
    match done {
        Err(error) => broken(turn, INDEX_KEYWORDS, &error, "keywords_failed"),
        Ok(indexed) => {
            turn.tool_worked(INDEX_KEYWORDS);
            turn.progress.indexed(&record.result);
            let told = index_keywords::for_model(&indexed);
            let (keywords, merged, read_back) = (indexed.keywords, indexed.merged, indexed.read_back);
            let result = IndexResult { result: record.result, keywords, merged, read_back };
            Done::ok(ToolResult::Indexed(result), told, "keywords_indexed")
        }
    }
}

fn respond(turn: &Turn<'_>, call: tool::GenerateResponse) -> Done {
    if let Err(refusal) = generate_response::agrees(&call, &turn.conversation.citable) {
        return rejected(turn, GENERATE_RESPONSE, refusal);
    }
    let source = |source: generate_response::Source| SourceRef {
        kind: source.kind.as_str().into(),
        id: source.id,
        title: source.title,
    };
    let answer = Answer {
        text: call.answer,
        sources: call.sources.into_iter().map(source).collect(),
        confidence: call.confidence,
        used_internal_kb: call.used_internal_kb,
        used_external_kb: call.used_external_kb,
    };
    let told = generate_response::for_model();
    Done { answer: Some(answer), ..Done::ok(ToolResult::Responded, told, "answered") }
}
