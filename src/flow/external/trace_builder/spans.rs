//! Adds what an agent's spans say to the events of its traffic.
//!
//! Traffic decides: completions are taken from it alone, and a run of a tool that it shows counts once, found by the id of
//! the call, or by name and arguments if the span has no id. What only spans show is added: results of calls, tools that
//! no model called, searches, and entries of the trajectory log. A span of a completion says between which model calls
//! the others belong; without one they stand before the last model call of the turn. Their durations are not recorded.

use super::{TraceBuilder, Waiting};
use crate::flow::external::decoder;
use crate::trace::spans::{Deed, Done, Found, Ran, Story};
use crate::trace::{self, FlowSearch, SearchResult, ToolCalled, ToolOutcome, ToolResult, What};
use serde_json::{Value, json};
use std::collections::BTreeSet;

impl TraceBuilder<'_> {
    /// Adds what a story of this turn says; returns what is odd about it, and what contradicts the traffic.
    pub(in crate::flow::external) fn add_spans(&mut self, story: &Story) -> Vec<String> {
        let mut notes = story.notes.clone();
        let seen = self.events.iter().filter(|(_, what)| matches!(what, What::ModelCalled(_))).count();
        let is_completion = |place: &usize| {
            let done = &story.dones[*place];
            !done.is_repeated && matches!(done.deed, Deed::Completed(_))
        };
        let completions: Vec<usize> = (0..story.dones.len()).filter(is_completion).collect();
        let told = completions.len();
        if told > 0 && told != seen {
            notes
                .push(format!("its spans tell {told} completions of the model and its traffic {seen}: traffic counts"));
        }
        let before = |at_ns: u64| {
            let earlier = completions.iter().filter(|place| story.dones[**place].at_ns <= at_ns).count();
            (told == seen).then_some(earlier)
        };
        let adds = |place: &usize| match &story.dones[*place] {
            done if done.is_repeated => false,
            // A search within a run of a tool is the result of that run.
            Done { deed: Deed::Found(_), .. } => {
                !story.around(*place).any(|outer| matches!(story.dones[outer].deed, Deed::Ran(_)))
            }
            done => matches!(done.deed, Deed::Ran(_)),
        };
        let items = story.in_order((0..story.dones.len()).filter(adds).collect());
        let mut taken = BTreeSet::new();
        for place in items {
            let (first, done) = (self.events.len(), &story.dones[place]);
            match &done.deed {
                Deed::Ran(ran) => notes.extend(self.add_run(story, place, ran, &mut taken)),
                Deed::Found(found) => self.add_search(done, found),
                _ => {}
            }
            self.move_to(first, before(done.at_ns), &mut taken);
        }
        for (at, entry) in &story.logged {
            let first = self.events.len();
            self.push(What::Logged(entry.clone()));
            self.move_to(first, before(*at), &mut taken);
        }
        notes
    }

    /// Moves the events from `first` on before the model call with that ordinal in the turn.
    fn move_to(&mut self, first: usize, before: Option<usize>, taken: &mut BTreeSet<usize>) {
        let calls: Vec<usize> = (0..first).filter(|at| matches!(self.events[*at].1, What::ModelCalled(_))).collect();
        let place = match before {
            Some(before) => calls.get(before),
            None => calls.last(),
        };
        let Some(place) = place.copied() else { return };
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
        *taken = taken.iter().copied().map(now).collect();
        self.events.splice(place..place, moved);
    }

    /// Adds a run of a tool; returns what contradicts the traffic.
    fn add_run(&mut self, story: &Story, place: usize, ran: &Ran, taken: &mut BTreeSet<usize>) -> Vec<String> {
        let words = self.words;
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
        let same = |id: &str, tool: &str, own: &Value| match ran.id.as_deref().filter(|_| !id.is_empty()) {
            Some(known) => known == id,
            None => tool == ran.tool && arguments.as_ref().is_none_or(|given| given == own),
        };
        let waiting = self.waiting.iter().position(|call| same(&call.id, &call.tool, &call.arguments));
        if let Some(waiting) = waiting {
            if failed.is_none() && result.is_none() {
                return Vec::new();
            }
            let call = self.waiting.remove(waiting);
            let other = arguments.filter(|given| *given != call.arguments);
            let note = other.map(|_| contradiction(&call.tool, "has other arguments in its span"));
            let outcome = self.outcome_of(&call, inner, failed, result);
            taken.insert(self.events.len());
            self.called(call, outcome);
            return note.into_iter().collect();
        }
        let known = self.events.iter().enumerate().position(|(at, (_, what))| match what {
            What::ToolCalled(call) => !taken.contains(&at) && same(&call.id, &call.tool, &call.arguments),
            _ => false,
        });
        if let Some(known) = known {
            taken.insert(known);
            return self.compare(known, inner, failed.as_deref(), result).into_iter().collect();
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
        taken.insert(self.events.len());
        self.called(call, outcome);
        Vec::new()
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

    /// An outcome, with the base that a span names.
    fn based(&mut self, inner: Option<&Found>, outcome: impl FnOnce(&mut Self) -> ToolOutcome) -> ToolOutcome {
        let mut outcome = outcome(self);
        if let (ToolOutcome::Ok(ToolResult::Search(search)), Some(base)) =
            (&mut outcome, inner.and_then(|found| found.base.as_ref()))
            && search.kb_id.is_empty()
        {
            search.kb_id.clone_from(base);
        }
        outcome
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
            (ToolOutcome::Failed { .. }, None, Some(_)) => Some(contradiction(&tool, "failed, and not by its span")),
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

    /// Adds a search that the agent made by itself, or as the pending call of its search tool.
    fn add_search(&mut self, done: &Done, found: &Found) {
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
            return self.called(call, outcome);
        }
        let hits = documents.as_ref().and_then(decoder::passages);
        let outcome = match (failed, hits) {
            (Some(message), _) => ToolOutcome::Failed { message, retryable: false },
            (None, Some(hits)) => ToolOutcome::Ok(ToolResult::Search(SearchResult {
                query: query.clone(),
                kb_id: found.base.clone().unwrap_or_default(),
                without_learned: hits.iter().map(|hit| hit.id.clone()).collect(),
                hits,
                managed: None,
            })),
            (None, None) => {
                let reason = "the documents in the span of this search are missing, or one of them has no id";
                ToolOutcome::Unseen { reason: reason.to_owned() }
            }
        };
        self.push(What::Searched(FlowSearch { query, outcome, took_us: 0, attempts: Vec::new() }));
    }
}

fn contradiction(tool: &str, what: &str) -> String {
    format!("a call of `{tool}` {what}: traffic counts")
}
