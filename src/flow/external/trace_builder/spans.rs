//! Adds what an agent's spans say to the events of its traffic.
//!
//! Traffic decides: completions are taken from it alone, and a run of a tool that it shows counts once, found by the id of
//! the call, or by name and arguments if the span has no id. What only spans show is added: results of calls, tools that
//! no model called, searches, and entries of the trajectory log. A span of a completion says between which model calls
//! the others belong; without one they stand before the last model call of the turn. Their durations are not recorded.
//! What a span says of a call or search that traffic shows is counted in [`Shown`].

use super::{TraceBuilder, Waiting};
use crate::flow::digest;
use crate::flow::external::decoder;
use crate::provider::chat::Role;
use crate::trace::spans::{Deed, Done, Found, Ran, Story};
use crate::trace::{
    self, FlowSearch, Learned, Logged, Rejection, SearchResult, ToolCalled, ToolOutcome, ToolResult, What,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Conversation of a learned entry that is not known yet.
pub(in crate::flow::external) const OF_NO_CONVERSATION: u32 = u32::MAX;

/// Events that spans report too, by their place, with the time at which their span began.
type Taken = BTreeMap<usize, u64>;

/// How far the clocks of two spans of one process may differ, in nanoseconds.
const RESOLUTION: u64 = 1_000_000;

/// How many calls and searches of a turn have in their spans what traffic never shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::flow::external) struct Shown {
    /// Whether a span has `ragcheck.outcome`.
    pub says_outcomes: bool,
    /// Calls with it.
    pub outcomes: usize,
    /// Searches with `ragcheck.without_learned`.
    pub without_learned: usize,
    /// Searches with the name of what was searched.
    pub bases: usize,
}

impl TraceBuilder<'_> {
    /// Adds what a story of this turn says; returns what is odd about it, and what contradicts the traffic.
    pub(in crate::flow::external) fn add_spans(&mut self, story: &Story) -> Vec<String> {
        let mut notes = story.notes.clone();
        let seen = self.events.iter().filter(|(_, what)| matches!(what, What::ModelCalled(_))).count();
        let told = story.completions().count();
        self.shown.says_outcomes |= story.has_outcomes;
        if told > 0 && told != seen {
            notes
                .push(format!("its spans tell {told} completions of the model and its traffic {seen}: traffic counts"));
        }
        let before = |at_ns: u64| (told == seen).then(|| story.completions_before(at_ns));
        let adds = |place: &usize| match &story.dones[*place] {
            done if done.is_repeated => false,
            // A search within a run of a tool is the result of that run.
            Done { deed: Deed::Found(_), .. } => {
                !story.around(*place).any(|outer| matches!(story.dones[outer].deed, Deed::Ran(_)))
            }
            done => matches!(done.deed, Deed::Ran(_)),
        };
        let items = story.in_order((0..story.dones.len()).filter(adds).collect());
        let mut taken = Taken::new();
        for place in items {
            let (first, done) = (self.events.len(), &story.dones[place]);
            match &done.deed {
                Deed::Ran(ran) => notes.extend(self.add_run(story, place, ran, &mut taken)),
                Deed::Found(found) => notes.extend(self.add_search(done, found, &mut taken)),
                _ => {}
            }
            self.move_to(first, before(done.at_ns), None, &mut taken);
        }
        for (at, entry) in &story.logged {
            let first = self.events.len();
            let entry = self.with_digests(entry.clone());
            // Within the resolution of clocks, a thought comes before what it leads to, and the rest after it.
            let ends = if matches!(entry, Logged::Thought { .. }) { 0 } else { RESOLUTION };
            let begins = if ends == 0 { at.saturating_sub(RESOLUTION) } else { *at };
            self.push(What::Logged(entry));
            self.move_to(first, before(*at), Some(begins + ends), &mut taken);
        }
        notes
    }

    /// Moves the events from `first` on before the model call with that ordinal in the turn, and before the first run
    /// that began at `begun` or later.
    fn move_to(&mut self, first: usize, before: Option<usize>, begun: Option<u64>, taken: &mut Taken) {
        let calls: Vec<usize> = (0..first).filter(|at| matches!(self.events[*at].1, What::ModelCalled(_))).collect();
        let place = match before {
            Some(before) => calls.get(before),
            None => calls.last(),
        };
        let last = calls.iter().rev().find(|call| place.is_none_or(|place| *call < place)).map_or(0, |call| call + 1);
        let run = |(known, at_ns): (&usize, &u64)| begun.is_some_and(|begun| *at_ns >= begun).then_some(*known);
        let run = taken.range(last..place.copied().unwrap_or(first)).find_map(run);
        let Some(place) = run.or(place.copied()) else { return };
        let mut moved = self.events.split_off(first);
        let at = self.events[place].0;
        for (own, _) in &mut moved {
            *own = (*own).min(at);
        }
        let added = moved.len();
        let now = |known: usize| match known {
            known if known >= first => place + known - first,
            known if known >= place => known + added,
            known => known,
        };
        *taken = taken.iter().map(|(known, at_ns)| (now(*known), *at_ns)).collect();
        self.events.splice(place..place, moved);
    }

    /// Adds a run of a tool; returns what contradicts the traffic.
    fn add_run(&mut self, story: &Story, place: usize, ran: &Ran, taken: &mut Taken) -> Vec<String> {
        let (words, at_ns) = (self.words, story.dones[place].at_ns);
        let arguments = ran.arguments.as_ref().map(|value| words.body(value));
        let inner = story.dones.iter().enumerate().find_map(|(at, done)| match &done.deed {
            Deed::Found(found) if !done.is_repeated && story.around(at).any(|outer| outer == place) => Some(found),
            _ => None,
        });
        let documents =
            inner.and_then(|found| found.documents.as_ref()).filter(|found| decoder::passages(found).is_some());
        let has_passages = ran.result.as_ref().is_some_and(|result| decoder::passages(result).is_some());
        let result = if has_passages { ran.result.as_ref() } else { documents.or(ran.result.as_ref()) };
        let result = result.map(|value| words.body(value));
        let failed = story.dones[place].failed.as_ref().map(|why| words.text(why));
        self.shown.outcomes += usize::from(ran.outcome.is_some());
        let refused = ran.outcome.as_deref().filter(|outcome| matches!(*outcome, "refused" | "out_of_order"));
        let is_external = self.role(&ran.tool) == trace::Role::External;
        let same = |id: &str, tool: &str, own: &Value| match ran.id.as_deref().filter(|_| !id.is_empty()) {
            Some(known) => known == id,
            // A search of the agent's own is known by its request, which may say more than the query.
            None if id.is_empty() && is_external && tool == ran.tool => {
                let asked = arguments.as_ref().map(decoder::query).unwrap_or_default();
                decoder::query(own).contains(&asked)
            }
            None => tool == ran.tool && arguments.as_ref().is_none_or(|given| given == own),
        };
        let waiting = self.waiting.iter().position(|call| same(&call.id, &call.tool, &call.arguments));
        if let Some(waiting) = waiting {
            if failed.is_none() && result.is_none() && refused.is_none() {
                return Vec::new();
            }
            let call = self.waiting.remove(waiting);
            let other = arguments.filter(|given| *given != call.arguments);
            let note = other.map(|_| contradiction(&call.tool, "has other arguments in its span"));
            let outcome = self.outcome_of(&call, inner, failed, result);
            let outcome = refused.map_or_else(|| outcome.clone(), |how| not_run(how, &outcome));
            taken.insert(self.events.len(), at_ns);
            self.called(call, outcome);
            return note.into_iter().collect();
        }
        let known = self.events.iter().enumerate().position(|(at, (_, what))| match what {
            What::ToolCalled(call) => !taken.contains_key(&at) && same(&call.id, &call.tool, &call.arguments),
            _ => false,
        });
        if let Some(known) = known {
            taken.insert(known, at_ns);
            let other = match &self.events[known].1 {
                What::ToolCalled(call) if !call.id.is_empty() => arguments.filter(|given| *given != call.arguments),
                _ => None,
            };
            let other = other.map(|_| contradiction(&ran.tool, "has other arguments in its span"));
            let notes = other.into_iter().chain(self.compare(known, inner, failed.as_deref(), result));
            let notes: Vec<String> = notes.collect();
            let refusal = refused.and_then(|how| self.refuse(known, how));
            return notes.into_iter().chain(refusal).collect();
        }
        let call = Waiting {
            at: self.at,
            completion: self.completions.saturating_sub(1),
            id: ran.id.clone().unwrap_or_default(),
            tool: ran.tool.clone(),
            arguments: arguments.unwrap_or_default(),
            attempts: Vec::new(),
            found: None,
            ran: None,
        };
        let outcome = self.outcome_of(&call, inner, failed, result);
        let outcome = refused.map_or_else(|| outcome.clone(), |how| not_run(how, &outcome));
        taken.insert(self.events.len(), at_ns);
        self.called(call, outcome);
        Vec::new()
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
            (None, Some(result)) => self.based(inner, |telling| telling.outcome(call, result)),
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
                let ids = |hits: &[trace::Hit]| hits.iter().map(|hit| hit.id.clone()).collect::<BTreeSet<_>>();
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
                    let waiting =
                        Waiting { at, completion, id, tool, arguments, attempts: Vec::new(), found: None, ran: None };
                    let found = self.based(inner, |telling| telling.outcome(&waiting, result));
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
    fn add_search(&mut self, done: &Done, found: &Found, taken: &mut Taken) -> Vec<String> {
        let at_ns = done.at_ns;
        let query = self.words.text(found.query.as_deref().unwrap_or_default());
        let documents = found.documents.as_ref().map(|list| self.words.body(list));
        let failed = done.failed.as_ref().map(|why| self.words.text(why));
        let asked = |call: &Waiting, roles: &Self| {
            roles.role(&call.tool) == trace::Role::Knowledge && decoder::query(&call.arguments) == query
        };
        if let Some(place) = self.waiting.iter().position(|call| asked(call, self)) {
            let call = self.waiting.remove(place);
            let outcome =
                self.outcome_of(&call, Some(found), failed, documents.map(|list| json!({ "documents": list })));
            taken.insert(self.events.len(), at_ns);
            self.called(call, outcome);
            return Vec::new();
        }
        // A search that traffic shows, as a call with its result or as a request, counts once.
        let known = self.events.iter().enumerate().position(|(at, (_, what))| match what {
            What::ToolCalled(call) if !taken.contains_key(&at) => match self.role(&call.tool) {
                trace::Role::Knowledge => decoder::query(&call.arguments) == query,
                trace::Role::External => !query.is_empty() && decoder::query(&call.arguments).contains(&query),
                _ => false,
            },
            _ => false,
        });
        if let Some(known) = known {
            taken.insert(known, at_ns);
            let documents = documents.map(|list| json!({ "documents": list }));
            return match &self.events[known].1 {
                What::ToolCalled(call) if self.role(&call.tool) == trace::Role::External => Vec::new(),
                _ => self.compare(known, Some(found), failed.as_deref(), documents).into_iter().collect(),
            };
        }
        let hits = documents.as_ref().and_then(decoder::passages);
        let outcome = match (failed, hits) {
            (Some(message), _) => ToolOutcome::Failed { message, retryable: false },
            (None, Some(hits)) => {
                let without_learned = hits.iter().map(|hit| hit.id.clone()).collect();
                let kb_id = String::new();
                let mut search = SearchResult { query: query.clone(), kb_id, without_learned, hits, managed: None };
                self.complete(&mut search, found);
                ToolOutcome::Ok(ToolResult::Search(search))
            }
            (None, None) => {
                let reason = "the documents in the span of this search are missing, or one of them has no id";
                ToolOutcome::Unseen { reason: reason.to_owned() }
            }
        };
        self.push(What::Searched(FlowSearch { query, outcome, took_us: 0, attempts: Vec::new() }));
        Vec::new()
    }
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
