//! Makes the events of a trial of a published trace.

use super::{
    Call, Conversation, GivenAnswer, GivenCompletion, GivenSearch, IndexWrite, Origin, Outcome, PublishedTrace, Turn,
};
use crate::plan::ResolvedCase;
use crate::suite::import::conversation::{self, NOT_RECORDED, empty_answer, no_answer};
use crate::suite::import::error::TraceMistake;
use crate::suite::import::record::Told;
use crate::trace::answer::{is_blank, without_reasoning};
use crate::trace::text::quote;
use crate::trace::{
    Answer, Completion, Event, ExternalResult, FlowSearch, Hit, IndexResult, ModelCalled, NamedPassage, PassageText,
    Rejection, Reply, Role, Roles, SOURCES, SearchResult, SourceRef, ToolCalled, ToolOutcome, ToolResult, TurnEnded,
    TurnOutcome, USED_EXTERNAL_KB, USED_INTERNAL_KB, What,
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Events of `trace`, which ran `case`; `roles` are those of its tools.
///
/// # Errors
/// The path of a member that contradicts another one.
pub(in crate::suite::import) fn events(
    trace: &PublishedTrace,
    roles: &Roles,
    case: &ResolvedCase,
) -> Result<Told, TraceMistake> {
    let mut telling = Telling { roles, told: Told::default(), at: (0, 0), completions: 0 };
    if trace.conversations.iter().all(|conversation| conversation.turns.is_empty()) {
        return Err(TraceMistake::new("conversations", "holds no turn"));
    }
    for ((at, conversation), ordinal) in trace.conversations.iter().enumerate().zip(ordinals(trace, case)?) {
        telling.conversation(at, ordinal, conversation)?;
    }
    Ok(telling.told)
}

/// The ordinal of each conversation in the case: by its name if the case has several, else its place.
///
/// # Errors
/// If a name is none of the case, or two conversations are the same.
fn ordinals(trace: &PublishedTrace, case: &ResolvedCase) -> Result<Vec<u32>, TraceMistake> {
    let has_names = !case.is_single();
    let mut taken = BTreeSet::new();
    let ordinal = |(at, conversation): (usize, &Conversation)| {
        let mistake = |why: String| TraceMistake::new(format!("conversations[{at}].name"), why);
        let ordinal = match conversation.name.as_ref().filter(|_| has_names) {
            Some(name) => case.conversations().position(|one| one.name == *name).ok_or_else(|| {
                let known: Vec<&str> = case.conversations().map(|one| one.name.as_str()).collect();
                mistake(format!("is `{}`: the case has {}", quote(name, 80), known.join(", ")))
            })?,
            None => at,
        };
        let is_first = taken.insert(ordinal);
        is_first.then_some(ordinal as u32).ok_or_else(|| mistake("names the conversation of another one".into()))
    };
    trace.conversations.iter().enumerate().map(ordinal).collect()
}

struct Telling<'t> {
    roles: &'t Roles,
    told: Told,
    /// Conversation and turn.
    at: (u32, u32),
    /// Completions so far, and calls that no completion made.
    completions: u32,
}

/// A place in the lists of a turn.
type Place = (&'static str, usize);

impl Telling<'_> {
    fn push(&mut self, what: What) {
        let (conversation, turn) = self.at;
        self.told.events.push(Event { at_us: self.told.took_us, conversation, turn, what });
    }

    fn conversation(&mut self, at: usize, ordinal: u32, conversation: &Conversation) -> Result<(), TraceMistake> {
        self.at = (ordinal, 0);
        let name = conversation.name.clone().unwrap_or_else(|| "main".into());
        let tenant = conversation.tenant.clone();
        self.push(What::ConversationStarted { session: name.clone(), name, tenant });
        for (number, turn) in (0..).zip(&conversation.turns) {
            self.at = (ordinal, number);
            let mistake = |mistake: TraceMistake| mistake.inside(&format!("conversations[{at}].turns[{number}]"));
            self.turn(turn).map_err(mistake)?;
        }
        Ok(())
    }

    fn turn(&mut self, turn: &Turn) -> Result<(), TraceMistake> {
        let linked = Linked::of(turn)?;
        let took_us = micros(turn.took_ms, "took_ms")?;
        if turn.error.is_some() && turn.answer.as_ref().is_some_and(Option::is_some) {
            return Err(TraceMistake::new("error", "is given beside an answer: a turn ends with one of them"));
        }
        self.push(What::TurnStarted { query: turn.message.clone() });
        let first = self.completions;
        let made = turn.completions.as_ref().map_or(0, Vec::len);
        for (list, at) in sequence(turn, &linked)? {
            let path = || format!("{list}[{at}]");
            match list {
                "completions" => {
                    let completion = &turn.completions.as_deref().unwrap_or_default()[at];
                    let what = completed(completion, first + at as u32, turn, at).map_err(|one| one.inside(&path()))?;
                    self.push(what);
                }
                "calls" => {
                    let call = &turn.calls.as_deref().unwrap_or_default()[at];
                    let ordinal = call.completion.unwrap_or((made + at) as u32).saturating_add(first);
                    let what = self.called(call, ordinal, &linked).map_err(|one| one.inside(&path()))?;
                    self.push(what);
                }
                "searches" => {
                    let search = &turn.searches.as_deref().unwrap_or_default()[at];
                    let took_us = micros(search.took_ms, &format!("{}.took_ms", path()))?;
                    let query = search.query.clone().unwrap_or_default();
                    let outcome = match (&search.failed, self.found(search, &query)) {
                        (Some(why), _) => ToolOutcome::Failed { message: why.clone(), retryable: false },
                        (None, Some(result)) => ToolOutcome::Ok(result),
                        (None, None) => ToolOutcome::Unseen { reason: "the trace has no result of it".into() },
                    };
                    self.push(What::Searched(FlowSearch { query, outcome, took_us, attempts: Vec::new() }));
                }
                "feedback" => self.push(What::FedBack(turn.feedback.as_deref().unwrap_or_default()[at].clone())),
                "retries" => self.push(What::Retried(turn.retries.as_deref().unwrap_or_default()[at].clone())),
                "log" => self.push(What::Logged(turn.log.as_deref().unwrap_or_default()[at].clone())),
                "moves" => self.push(What::Moved(turn.moves.as_deref().unwrap_or_default()[at].clone())),
                "degraded" => {
                    let one = turn.degraded.as_deref().unwrap_or_default()[at].clone();
                    self.push(What::Degraded { without: one.without, reason: one.reason });
                }
                _ => self.end(turn, took_us),
            }
        }
        let calls = turn.calls.as_ref().map_or(0, Vec::len);
        self.completions = first.saturating_add((made + calls) as u32);
        self.told.took_us = self.told.took_us.saturating_add(took_us);
        Ok(())
    }

    fn end(&mut self, turn: &Turn, took_us: u64) {
        let outcome = match (&turn.answer, &turn.error) {
            (_, Some(error)) => TurnOutcome::Failed { kind: error.kind.clone(), message: error.message.clone() },
            (Some(Some(answer)), None) if is_blank(without_reasoning(&answer.text)) => empty_answer(),
            (Some(Some(answer)), None) => TurnOutcome::Answered(answered(answer)),
            // A turn that took time and has no answer has failed.
            (Some(None), None) if took_us > 0 => no_answer(),
            _ => return,
        };
        let history = turn.history.iter().flatten().map(|message| digest(message)).collect();
        self.push(What::TurnEnded(TurnEnded { took_us, outcome, history, reply: turn.reply.clone() }));
    }

    fn called(&mut self, call: &Call, ordinal: u32, linked: &Linked<'_>) -> Result<What, TraceMistake> {
        let id = call.id.clone().unwrap_or_default();
        let arguments = call.arguments.clone().unwrap_or_default();
        let search = linked.searches.get(id.as_str());
        let result = match (search, linked.writes.get(id.as_str())) {
            (Some(search), _) => {
                let asked = || arguments.get("query").and_then(Value::as_str).unwrap_or_default().to_owned();
                self.found(search, &search.query.clone().unwrap_or_else(asked))
            }
            (None, Some(write)) => Some(ToolResult::Indexed(IndexResult {
                result: write.result.clone(),
                keywords: write.keywords.clone(),
                merged: write.merged.clone(),
                read_back: write.read_back.clone().unwrap_or_default(),
            })),
            (None, None) => None,
        };
        let own = || call.result.clone().map(ToolResult::other);
        let responds = self.roles.get(&call.tool) == Some(&Role::Respond);
        let result = result.or_else(own).map(|result| if responds { ToolResult::Responded } else { result });
        let reason = call.reason.clone().unwrap_or_default();
        let rejection =
            |cause: &str| Rejection { cause: cause.into(), reason: reason.clone(), guidance: String::new() };
        let failed = search.and_then(|search| search.failed.clone());
        let outcome = match (call.outcome, result, failed) {
            (Some(Outcome::Rejected), ..) => ToolOutcome::Rejected(rejection("rejected")),
            (Some(Outcome::OutOfOrder), ..) => ToolOutcome::OutOfOrder(rejection("order")),
            (Some(Outcome::Failed), ..) => ToolOutcome::Failed { message: reason, retryable: false },
            (None, _, Some(message)) => ToolOutcome::Failed { message, retryable: false },
            (_, Some(result), _) => ToolOutcome::Ok(result),
            (Some(Outcome::Ok), None, _) if responds => ToolOutcome::Ok(ToolResult::Responded),
            (Some(Outcome::Ok), None, _) => ToolOutcome::Ok(ToolResult::Other(ToolResult::UNSHOWN.into())),
            (None, None, None) => {
                ToolOutcome::Unseen { reason: "the trace has neither its outcome nor its result".into() }
            }
        };
        let took_us = micros(call.took_ms, "took_ms")?;
        let tool = call.tool.clone();
        let (call, began_us, attempts) = (ordinal, None, Vec::new());
        Ok(What::ToolCalled(ToolCalled { call, id, tool, arguments, outcome, began_us, took_us, attempts }))
    }

    /// The result of a search, if the trace has a part of it.
    fn found(&mut self, search: &GivenSearch, query: &str) -> Option<ToolResult> {
        if search.kind == Origin::External {
            return Some(ToolResult::External(ExternalResult {
                result: search.id.clone().unwrap_or_default(),
                query: query.to_owned(),
                answer: search.answer.clone().unwrap_or_default(),
                citations: search.pages.clone().unwrap_or_default(),
                model: search.model.clone().unwrap_or_else(|| NOT_RECORDED.into()),
                input_tokens: search.input_tokens,
                cached_tokens: search.cached_tokens,
                output_tokens: search.output_tokens,
            }));
        }
        // A base or a managed answer shows that the search gave a result, with or without its passages.
        let is_shown = search.passages.is_some()
            || search.base.is_some()
            || search.managed.is_some()
            || search.without_learned.is_some();
        if !is_shown {
            return None;
        }
        let base = search.base.clone().unwrap_or_else(|| NOT_RECORDED.into());
        let mut hits = Vec::new();
        for passage in search.passages.iter().flatten() {
            let (title, text) = (passage.title.clone().unwrap_or_default(), passage.text.clone().unwrap_or_default());
            hits.push(Hit {
                id: passage.id.clone(),
                title: title.clone(),
                raw_score: passage.score.unwrap_or_default(),
                excerpt: text.chars().take(Hit::EXCERPT).collect(),
                learned: passage.learned.clone(),
                ..Hit::default()
            });
            if passage.learned.is_none() && !text.is_empty() {
                let (base, id) = (base.clone(), passage.id.clone());
                self.told.passages.push(Arc::new(NamedPassage::of(PassageText { base, id, title, text })));
            }
        }
        Some(ToolResult::Search(SearchResult {
            query: query.to_owned(),
            kb_id: base,
            hits,
            without_learned: search.without_learned.clone().unwrap_or_default(),
            beside: String::new(),
            managed: search.managed.clone(),
        }))
    }
}

fn answered(answer: &GivenAnswer) -> Answer {
    let kind = |origin| if origin == Origin::Internal { "internal" } else { "external" };
    let sources = answer.sources.iter().flatten().map(|source| SourceRef {
        kind: kind(source.kind).into(),
        id: source.id.clone(),
        title: source.title.clone(),
        number: source.number,
    });
    let unseen = [
        (SOURCES, answer.sources.is_none()),
        (USED_INTERNAL_KB, answer.used_internal_kb.is_none()),
        (USED_EXTERNAL_KB, answer.used_external_kb.is_none()),
    ];
    Answer {
        text: without_reasoning(&answer.text).to_owned(),
        sources: sources.collect(),
        confidence: answer.confidence,
        used_internal_kb: answer.used_internal_kb.unwrap_or_default(),
        used_external_kb: answer.used_external_kb.unwrap_or_default(),
        refused: answer.refused.unwrap_or_default(),
        unseen: unseen.into_iter().filter(|(_, is)| *is).map(|(name, _)| name.to_owned()).collect(),
        traceable: false,
    }
}

fn completed(given: &GivenCompletion, ordinal: u32, turn: &Turn, at: usize) -> Result<What, TraceMistake> {
    let own = |call: &&Call| call.completion.is_some_and(|completion| completion as usize == at);
    let reply = match &given.error {
        Some(error) => Reply::Failure { kind: error.kind.clone(), message: error.message.clone() },
        None => Reply::Completion(Completion {
            model: given.model.clone().unwrap_or_else(|| NOT_RECORDED.into()),
            text: given.text.clone().unwrap_or_default(),
            refusal: given.refusal.clone(),
            calls: turn.calls.iter().flatten().filter(own).map(|call| call.tool.clone()).collect(),
            finish: given.finish.clone().unwrap_or_else(|| NOT_RECORDED.into()),
            input_tokens: given.input_tokens,
            cached_tokens: given.cached_tokens,
            cache_write_tokens: given.cache_write_tokens,
            output_tokens: given.output_tokens,
        }),
    };
    let called = conversation::completed(ordinal, micros(given.took_ms, "took_ms")?, reply);
    Ok(What::ModelCalled(ModelCalled {
        shown: given.shown.iter().flatten().map(|message| digest(message)).collect(),
        tool_choice: given.tool_choice.clone().unwrap_or_else(|| NOT_RECORDED.into()),
        ..called
    }))
}

/// Searches and index writes of a turn, by the id of their call.
struct Linked<'t> {
    searches: BTreeMap<&'t str, &'t GivenSearch>,
    writes: BTreeMap<&'t str, &'t IndexWrite>,
}

impl<'t> Linked<'t> {
    /// # Errors
    /// If an id names no call, or several, or a call has several searches or writes.
    fn of(turn: &'t Turn) -> Result<Self, TraceMistake> {
        let mut ids: BTreeMap<&str, usize> = BTreeMap::new();
        for id in turn.calls.iter().flatten().filter_map(|call| call.id.as_deref()) {
            *ids.entry(id).or_default() += 1;
        }
        let known = |id: &str, path: String, again: bool| match ids.get(id) {
            None => Err(TraceMistake::new(path, "names no call of its turn")),
            Some(2..) => Err(TraceMistake::new(path, "names several calls of its turn: give each an id")),
            Some(_) if again => Err(TraceMistake::new(path, "names a call that another one names")),
            Some(_) => Ok(()),
        };
        let mut linked = Self { searches: BTreeMap::new(), writes: BTreeMap::new() };
        for (at, search) in turn.searches.iter().flatten().enumerate() {
            let Some(id) = search.call.as_deref() else { continue };
            let again = linked.searches.insert(id, search).is_some();
            known(id, format!("searches[{at}].call"), again)?;
        }
        for (at, write) in turn.index_writes.iter().flatten().enumerate() {
            let again =
                linked.writes.insert(&write.call, write).is_some() || linked.searches.contains_key(&*write.call);
            known(&write.call, format!("index_writes[{at}].call"), again)?;
        }
        Ok(linked)
    }
}

/// The elements of a turn, in order.
///
/// # Errors
/// If `sequence` names an element twice, not at all, or one that is not there; or a call names such a completion.
fn sequence(turn: &Turn, linked: &Linked<'_>) -> Result<Vec<Place>, TraceMistake> {
    let (completions, calls) =
        (turn.completions.as_ref().map_or(0, Vec::len), turn.calls.as_deref().unwrap_or_default());
    for (at, call) in calls.iter().enumerate() {
        if call.completion.is_some_and(|completion| turn.completions.is_some() && completion as usize >= completions) {
            return Err(TraceMistake::new(format!("calls[{at}].completion"), "names no completion of its turn"));
        }
    }
    let alone = |search: &GivenSearch| search.call.as_ref().is_none_or(|id| !linked.searches.contains_key(id.as_str()));
    let searches = turn.searches.iter().flatten().enumerate().filter(|(_, search)| alone(search));
    let mut places: Vec<Place> = searches.map(|(at, _)| ("searches", at)).collect();
    let of = |wanted: Option<usize>| {
        let own = move |call: &Call| call.completion.map(|one| one as usize).filter(|one| *one < completions) == wanted;
        (0..).zip(calls).filter(move |(_, call)| own(call)).map(|(at, _)| ("calls", at))
    };
    places.extend(of(None));
    for at in 0..completions {
        places.push(("completions", at));
        places.extend(of(Some(at)));
    }
    let lists = [
        ("feedback", turn.feedback.as_ref().map_or(0, Vec::len)),
        ("retries", turn.retries.as_ref().map_or(0, Vec::len)),
        ("degraded", turn.degraded.as_ref().map_or(0, Vec::len)),
        ("log", turn.log.as_ref().map_or(0, Vec::len)),
        ("moves", turn.moves.as_ref().map_or(0, Vec::len)),
    ];
    places.extend(lists.into_iter().flat_map(|(list, number)| (0..number).map(move |at| (list, at))));
    places.push(("answer", 0));
    let Some(given) = &turn.sequence else { return Ok(places) };
    let named = |(list, at): &Place| if *list == "answer" { "answer".into() } else { format!("{list}[{at}]") };
    let mut open: BTreeMap<String, Place> = places.iter().map(|place| (named(place), *place)).collect();
    let all: BTreeSet<String> = open.keys().cloned().collect();
    let mut ordered = Vec::new();
    for (at, name) in given.iter().enumerate() {
        let why = if all.contains(name) { "names an element a second time" } else { "names no element of its turn" };
        ordered.push(open.remove(name).ok_or_else(|| TraceMistake::new(format!("sequence[{at}]"), why))?);
    }
    // The answer ends a turn unless it is named elsewhere.
    ordered.extend(open.remove("answer"));
    match open.pop_first() {
        Some((name, _)) => Err(TraceMistake::new("sequence", format!("lacks `{name}`"))),
        None => Ok(ordered),
    }
}

/// Milliseconds as microseconds; 0 if they are absent.
fn micros(millis: Option<f64>, path: &str) -> Result<u64, TraceMistake> {
    match millis {
        None => Ok(0),
        // A year is more than any turn takes.
        Some(millis) if (0.0..3.2e10).contains(&millis) => Ok((millis * 1_000.0).round() as u64),
        Some(_) => Err(TraceMistake::new(path, "is not a duration in milliseconds")),
    }
}

/// `role:content` with the content replaced by the first 12 hex digits of its SHA-256, unless it is such a digest.
fn digest(message: &str) -> String {
    let (role, content) = message.split_once(':').unwrap_or(("user", message));
    let is_digest = content.len() == 12 && content.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_digest { message.to_owned() } else { format!("{role}:{}", &hex::encode(Sha256::digest(content))[..12]) }
}
