//! Adds what an agent's spans say to the events of its traffic.
//!
//! Traffic decides: completions are taken from it alone, and a run or a search that it shows counts once (`joins`). What
//! only spans show is added: results of calls, tools that no model called, searches, and entries of the trajectory log. A span of a completion says between which model calls
//! the others belong; without one they stand before the last model call of the turn. Their durations are not recorded.
//! What a span says of a call or search that traffic shows is counted in [`Shown`].

use super::joins::{Joined, Joins, ids};
use super::{TraceBuilder, Waiting};
use crate::flow::digest;
use crate::flow::external::decoder;
use crate::provider::chat::Role;
use crate::trace::spans::{Found, Operation, Ran, SpanOperation, Story};
use crate::trace::text::quote;
use crate::trace::{
    self, FlowSearch, Learned, Logged, Rejection, Reply, SearchResult, ToolCalled, ToolOutcome, ToolResult, What,
};
use serde_json::{Value, json};

/// Conversation of a learned entry that is not known yet.
pub(in crate::flow::external) const OF_NO_CONVERSATION: u32 = u32::MAX;

/// Characters of a name in a note.
const LONGEST_NAME: usize = 60;

/// How far the clocks of two spans of one process may differ, in nanoseconds.
const RESOLUTION: u64 = 1_000_000;

/// How many calls and searches of a turn have in their spans what traffic never shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::flow::external) struct Shown {
    /// Whether a span is of the agent, a run of a tool or a search: instrumented clients alone show none of these.
    pub says_work: bool,
    /// Whether a span has `ragcheck.outcome`.
    pub says_outcomes: bool,
    /// Calls with it.
    pub outcomes: usize,
    /// Spans that lost what may be a call or a search.
    pub lost: usize,
    /// Searches with `ragcheck.without_learned`.
    pub without_learned: usize,
    /// Searches with the name of what was searched.
    pub bases: usize,
}

impl TraceBuilder<'_> {
    /// Adds what a story of this turn says; returns what is odd about it, and what contradicts the traffic.
    pub(in crate::flow::external) fn add_spans(&mut self, story: &mut Story) -> Vec<String> {
        let models: Vec<&str> = self.events.iter().filter_map(|(_, what)| model(what)).collect();
        let seen = models.len();
        story.keep_completions(seen, &models);
        // Traffic shows how often the model called a tool.
        story.fold_retries();
        let story = &*story;
        let mut notes = story.notes.clone();
        let told = story.completions().count();
        self.shown.says_outcomes |= story.has_outcomes;
        self.shown.lost += story.lost;
        self.shown.says_work |=
            story.operations.iter().any(|done| !matches!(done.operation, Operation::Completed(_) | Operation::Vectors));
        if told > 0 && told != seen {
            notes
                .push(format!("its spans tell {told} completions of the model and its traffic {seen}: traffic counts"));
        }
        let ordered = story.completions_in_order();
        let before = |at_ns: u64| (told == seen).then(|| ordered.partition_point(|middle| *middle <= at_ns));
        let adds = |place: &usize| match &story.operations[*place] {
            done if done.is_repeated => false,
            // A search within a run of a tool is the result of that run.
            SpanOperation { operation: Operation::Found(_), .. } => {
                !story.around(*place).any(|outer| matches!(story.operations[outer].operation, Operation::Ran(_)))
            }
            done => matches!(done.operation, Operation::Ran(_)),
        };
        let items = story.in_order((0..story.operations.len()).filter(adds).collect());
        let mut joins = Joins::of(story);
        let calls = self.events.iter().enumerate().filter(|(_, (_, what))| model(what).is_some());
        let mut calls: Vec<usize> = calls.map(|(place, _)| place).collect();
        // The ordinal of the completion before a time.
        let completions = i64::from(self.completions);
        let asked = |at_ns| Some(completions - 1 - i64::try_from(seen.saturating_sub(before(at_ns)?)).ok()?);
        for place in items {
            let (first, done) = (self.events.len(), &story.operations[place]);
            match &done.operation {
                Operation::Ran(ran) => notes.extend(self.add_run(story, place, ran, &mut joins)),
                Operation::Found(found) => notes.extend(self.add_search(done, found, asked(done.at_ns), &mut joins)),
                _ => {}
            }
            self.move_to(first, before(done.at_ns), None, (&mut joins, &mut calls));
        }
        for (at, entry) in &story.logged {
            let first = self.events.len();
            let entry = self.with_digests(entry.clone());
            // Within the resolution of clocks, a thought comes before what it leads to, and the rest after it.
            let ends = if matches!(entry, Logged::Thought { .. }) { 0 } else { RESOLUTION };
            let begins = if ends == 0 { at.saturating_sub(RESOLUTION) } else { *at };
            self.push(What::Logged(entry));
            self.move_to(first, before(*at), Some(begins + ends), (&mut joins, &mut calls));
        }
        notes
    }

    /// Moves the events from `first` on before the model call with that ordinal in the turn, and before the first run
    /// that began at `begun` or later. `calls` are the places of the model calls.
    fn move_to(
        &mut self,
        first: usize,
        before: Option<usize>,
        begun: Option<u64>,
        (joins, calls): (&mut Joins, &mut Vec<usize>),
    ) {
        if first == self.events.len() {
            return;
        }
        let place = match before {
            Some(before) => calls.get(before),
            None => calls.last(),
        };
        let last = calls.iter().rev().find(|call| place.is_none_or(|place| *call < place)).map_or(0, |call| call + 1);
        let run = begun.and_then(|begun| joins.first_since(last..place.copied().unwrap_or(first), begun));
        let Some(place) = run.or(place.copied()) else { return };
        let mut moved = self.events.split_off(first);
        let at = self.events[place].0;
        for (own, _) in &mut moved {
            *own = (*own).min(at);
        }
        let added = moved.len();
        joins.moved(place, added, first + added);
        calls.iter_mut().filter(|call| **call >= place).for_each(|call| *call += added);
        self.events.splice(place..place, moved);
    }

    /// Adds a run of a tool; returns what contradicts the traffic.
    fn add_run(&mut self, story: &Story, place: usize, ran: &Ran, joins: &mut Joins) -> Vec<String> {
        let (words, done) = (self.words, &story.operations[place]);
        let arguments = ran.arguments.as_ref().map(|value| words.body(value));
        let inner = joins.search_in(place);
        let documents =
            inner.and_then(|found| found.documents.as_ref()).filter(|found| decoder::passages(found).is_some());
        let has_passages = ran.result.as_ref().is_some_and(|result| decoder::passages(result).is_some());
        let result = if has_passages { ran.result.as_ref() } else { documents.or(ran.result.as_ref()) };
        let result = result.map(|value| words.body(value));
        let failed = done.failed.as_ref().map(|why| words.text(why));
        let mut notes = Vec::new();
        match ran.outcome.as_deref() {
            None => {}
            Some("ok" | "failed" | "refused" | "out_of_order") => self.shown.outcomes += 1,
            Some(other) => notes.push(format!(
                "`ragcheck.outcome` of a run of `{}` is `{}`, which is none of `ok`, `failed`, `refused` and `out_of_order`",
                quote(&ran.tool, LONGEST_NAME),
                quote(&words.text(other), LONGEST_NAME)
            )),
        }
        let by_agent = (ran.outcome.as_deref() == Some("failed")).then(|| {
            let error = result.as_ref().and_then(decoder::error);
            error.map_or_else(|| "the agent says that it failed".to_owned(), |(message, _)| message)
        });
        let failed = failed.or(by_agent);
        let refused = ran.outcome.as_deref().filter(|outcome| matches!(*outcome, "refused" | "out_of_order"));
        let call = match self.call_of_run(ran, arguments.as_ref(), joins) {
            Some(Joined::Event(known)) => {
                joins.ran(known, done, inner.is_some());
                self.ran_now(ran.id.as_deref().unwrap_or_default());
                let other = match &self.events[known].1 {
                    What::ToolCalled(call) if !call.id.is_empty() => arguments.filter(|given| *given != call.arguments),
                    _ => None,
                };
                let other = other.map(|_| contradiction(&ran.tool, "has other arguments in its span"));
                notes.extend(other.into_iter().chain(self.compare(known, inner, failed.as_deref(), result)));
                notes.extend(refused.and_then(|how| self.refuse(known, how)));
                return notes;
            }
            Some(Joined::Waiting(_)) if failed.is_none() && result.is_none() && refused.is_none() => return notes,
            Some(Joined::Waiting(waiting)) => self.waiting.remove(waiting),
            None => {
                let id = ran.id.clone().unwrap_or_default();
                self.ran_now(&id).unwrap_or_else(|| {
                    let call = (id, ran.tool.clone(), arguments.clone().unwrap_or_default());
                    Waiting::new(self.at, self.completions.saturating_sub(1), call)
                })
            }
        };
        let other = arguments.filter(|given| *given != call.arguments);
        notes.extend(other.map(|_| contradiction(&call.tool, "has other arguments in its span")));
        let outcome = self.outcome_of(&call, inner, failed, result);
        let outcome = refused.map_or_else(|| outcome.clone(), |how| not_run(how, &outcome));
        joins.ran(self.events.len(), done, inner.is_some());
        self.called(call, outcome);
        notes
    }

    /// Notes that a call which traffic shows to have failed did not run; returns what contradicts the traffic.
    fn refuse(&mut self, place: usize, how: &str) -> Option<String> {
        let What::ToolCalled(call) = &mut self.events[place].1 else { return None };
        if matches!(call.outcome, ToolOutcome::Ok(_)) {
            return Some(contradiction(&call.tool, &format!("is {how} in its span, and has a result")));
        }
        call.outcome = not_run(how, &call.outcome);
        None
    }

    fn outcome_of(
        &mut self,
        call: &Waiting,
        inner: Option<&Found>,
        failed: Option<String>,
        result: Option<Value>,
    ) -> ToolOutcome {
        match (failed, result) {
            (Some(message), _) => ToolOutcome::Failed { message, retryable: false },
            (None, Some(result)) => self.based(inner, |builder| builder.outcome(call, result)),
            (None, None) => ToolOutcome::Unseen { reason: "the span of this run does not hold its result".to_owned() },
        }
    }

    /// An outcome, with what the span of a search says of it.
    fn based(&mut self, inner: Option<&Found>, outcome: impl FnOnce(&mut Self) -> ToolOutcome) -> ToolOutcome {
        let mut outcome = outcome(self);
        if let (ToolOutcome::Ok(ToolResult::Search(search)), Some(found)) = (&mut outcome, inner) {
            self.complete(search, found);
        }
        outcome
    }

    /// Adds to a search what only its span says.
    fn complete(&mut self, search: &mut SearchResult, found: &Found) {
        if let Some(base) = &found.base {
            self.shown.bases += 1;
            if search.kb_id.is_empty() {
                search.kb_id.clone_from(base);
            }
        }
        if let Some(without) = &found.without_learned {
            self.shown.without_learned += 1;
            search.without_learned.clone_from(without);
        }
        for hit in &mut search.hits {
            let Some(origin) = found.learned.as_ref().and_then(|learned| learned.get(&hit.id)) else { continue };
            let result = origin["result"].as_str().map(|result| self.words.text(result)).unwrap_or_default();
            let texts = |name: &str| -> Vec<String> {
                let list = origin[name].as_array().into_iter().flatten();
                list.filter_map(|text| Some(self.words.text(text.as_str()?))).collect()
            };
            let (keywords, urls) = (texts("keywords"), texts("urls"));
            hit.learned = Some(Learned { result, conversation: OF_NO_CONVERSATION, keywords, urls });
        }
    }

    /// Names the messages of an entry by their digests, as model calls do: agents name them by their texts.
    fn with_digests(&self, mut entry: Logged) -> Logged {
        let shown = |known: &str| {
            self.events.iter().any(|(_, what)| match what {
                What::ModelCalled(called) => called.shown.iter().any(|one| one == known),
                _ => false,
            })
        };
        let named = |text: &mut String| {
            if !shown(text) {
                let roles = [Role::System, Role::User, Role::Tool, Role::Assistant];
                let plain = self.words.text(text);
                let known = roles.map(|role| digest(role, &plain)).into_iter().find(|one| shown(one));
                *text = known.unwrap_or_else(|| digest(Role::System, &plain));
            }
        };
        match &mut entry {
            Logged::Reflection { shown, .. } | Logged::Noted { shown, .. } | Logged::Grounding { shown, .. } => {
                named(shown);
            }
            Logged::Compacted { keeps, .. } => keeps.iter_mut().for_each(named),
            _ => {}
        }
        entry
    }

    /// Compares a call that traffic shows with the span of its run. Documents complete a result without passages.
    fn compare(
        &mut self,
        place: usize,
        inner: Option<&Found>,
        failed: Option<&str>,
        result: Option<Value>,
    ) -> Option<String> {
        let What::ToolCalled(call) = self.events[place].1.clone() else { return None };
        let ToolCalled { call: completion, id, tool, arguments, outcome, .. } = call;
        let is_knowledge = self.role(&tool) == trace::Role::Knowledge;
        match (&outcome, failed, result) {
            (ToolOutcome::Ok(_), Some(why), _) => {
                Some(contradiction(&tool, &format!("failed by its span ({why}), and has a result")))
            }
            (ToolOutcome::Failed { .. }, None, Some(result)) if decoder::error(&result).is_none() => {
                Some(contradiction(&tool, "failed, and not by its span"))
            }
            (ToolOutcome::Ok(ToolResult::Search(known)), None, _) => {
                let found = inner?;
                let listed = found.documents.as_ref().map(|list| self.words.body(list));
                let listed = listed.as_ref().and_then(decoder::passages);
                let differs = listed.is_some_and(|listed| ids(&listed) != ids(&known.hits));
                let mut search = known.clone();
                self.complete(&mut search, found);
                if let What::ToolCalled(call) = &mut self.events[place].1 {
                    call.outcome = ToolOutcome::Ok(ToolResult::Search(search));
                }
                differs.then(|| contradiction(&tool, "found other documents in its span"))
            }
            (ToolOutcome::Ok(ToolResult::Other(known)), None, Some(result)) => {
                if is_knowledge && decoder::passages(&result).is_some() {
                    let at = self.events[place].0;
                    let waiting = Waiting::new(at, completion, (id, tool, arguments));
                    let found = self.based(inner, |builder| builder.outcome(&waiting, result));
                    if let What::ToolCalled(call) = &mut self.events[place].1 {
                        call.outcome = found;
                    }
                    return None;
                }
                let other = ToolResult::other(result) != ToolResult::Other(known.clone());
                other.then(|| contradiction(&tool, "has another result in its span"))
            }
            _ => None,
        }
    }

    /// Adds a search that the agent made by itself, or as a call of its search tool; returns what contradicts the traffic.
    fn add_search(
        &mut self,
        done: &SpanOperation,
        found: &Found,
        asked: Option<i64>,
        joins: &mut Joins,
    ) -> Vec<String> {
        let query = self.words.text(found.query.as_deref().unwrap_or_default());
        let documents = found.documents.as_ref().map(|list| self.words.body(list));
        let failed = done.failed.as_ref().map(|why| self.words.text(why));
        let hits = documents.as_ref().and_then(decoder::passages);
        let joined = self.call_of_search(done, &query, hits.as_deref().unwrap_or_default(), asked, joins);
        let result = documents.map(|list| json!({ "documents": list }));
        let known = match joined {
            // No span says more of it than the traffic.
            Some(Joined::Waiting(_)) if failed.is_none() && result.is_none() => return Vec::new(),
            Some(Joined::Waiting(place)) => {
                let call = self.waiting.remove(place);
                let outcome = self.outcome_of(&call, Some(found), failed, result);
                joins.searched(self.events.len(), done);
                self.called(call, outcome);
                return Vec::new();
            }
            Some(Joined::Event(known)) => Some(known),
            None => None,
        };
        if let Some(known) = known {
            joins.searched(known, done);
            if let What::ToolCalled(call) = &self.events[known].1 {
                if self.role(&call.tool) == trace::Role::External {
                    return Vec::new();
                }
                let other = !query.is_empty() && decoder::query(&call.arguments) != query;
                let other = other.then(|| contradiction(&call.tool, "has another query in its span"));
                let differs = self.compare(known, Some(found), failed.as_deref(), result);
                return other.into_iter().chain(differs).collect();
            }
        }
        let outcome = match (failed, hits) {
            (Some(message), _) => ToolOutcome::Failed { message, retryable: false },
            (None, Some(hits)) => {
                let mut search = SearchResult::of(query.clone(), String::new(), hits);
                self.complete(&mut search, found);
                ToolOutcome::Ok(ToolResult::Search(search))
            }
            (None, None) => {
                let reason = "the documents in the span of this search are missing, or one of them has no id";
                ToolOutcome::Unseen { reason: reason.to_owned() }
            }
        };
        match known.map(|known| &mut self.events[known].1) {
            // Traffic shows that vectors were asked for, and not what was found, with them or without.
            Some(What::Searched(search)) => {
                if matches!(outcome, ToolOutcome::Ok(_)) || search.outcome.is_unseen() && !outcome.is_unseen() {
                    search.outcome = outcome;
                }
            }
            _ => self.push(What::Searched(FlowSearch { query, outcome, took_us: 0, attempts: Vec::new() })),
        }
        Vec::new()
    }
}

/// The model that answered; empty if it failed.
fn model(what: &What) -> Option<&str> {
    let What::ModelCalled(called) = what else { return None };
    Some(match &called.reply {
        Reply::Completion(completion) => completion.model.as_str(),
        Reply::Failure { .. } => "",
    })
}

/// The outcome of a call that did not run, by what the agent says of it and what its result was otherwise.
fn not_run(how: &str, outcome: &ToolOutcome) -> ToolOutcome {
    let reason = match outcome {
        ToolOutcome::Failed { message, .. } => message.clone(),
        _ => String::new(),
    };
    let rejection = |cause: &str| Rejection { cause: cause.to_owned(), reason, guidance: String::new() };
    match how {
        "out_of_order" => ToolOutcome::OutOfOrder(rejection("order")),
        _ => ToolOutcome::Rejected(rejection("refused")),
    }
}

fn contradiction(tool: &str, what: &str) -> String {
    format!("a call of `{tool}` {what}: traffic counts")
}
