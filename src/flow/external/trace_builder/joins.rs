//! Which call or search of the traffic a span reports too, so that what both show counts once.
//!
//! The id of a call decides. A run without one, or with an id that the traffic never has, is the call of its tool with its
//! arguments; frameworks put a server's name before that of a tool. A search is the call or search with its query.
//! Without a query it is the first search call of the completion before it, and with another query the one that found the
//! same documents. A search beside a run, not within it, belongs to the run during which it began.

use super::{TraceBuilder, Waiting};
use crate::flow::external::decoder;
use crate::trace::spans::{Found, Operation, Ran, SpanOperation, Story, is_tool};
use crate::trace::{self, Hit, ToolCalled, ToolOutcome, ToolResult, What};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A call or search of the turn.
#[derive(Debug, Clone, Copy)]
pub(super) enum Joined {
    /// A call whose result traffic does not show, by its place among them.
    Waiting(usize),
    /// An event, by its place.
    Event(usize),
}

/// What spans report of an event.
#[derive(Debug, Clone, Copy, Default)]
struct Claim {
    /// When its first span began, in nanoseconds since 1970.
    began: u64,
    /// When its run ended.
    ended: u64,
    by_run: bool,
    by_search: bool,
}

/// What the spans of a turn report so far.
pub(super) struct Joins<'s> {
    /// Ids of calls in runs.
    ids: BTreeSet<&'s str>,
    /// The first search within each operation.
    searches: BTreeMap<usize, &'s Found>,
    /// By event, what spans report of it: a turn may have tens of thousands of them.
    claims: Vec<Option<Claim>>,
}

impl<'s> Joins<'s> {
    pub(super) fn of(story: &'s Story) -> Self {
        let id = |done: &'s SpanOperation| match &done.operation {
            Operation::Ran(ran) => ran.id.as_deref(),
            _ => None,
        };
        let mut searches = BTreeMap::new();
        for (place, done) in story.operations.iter().enumerate().filter(|(_, done)| !done.is_repeated) {
            if let Operation::Found(found) = &done.operation {
                story.around(place).for_each(|outer| _ = searches.entry(outer).or_insert(found));
            }
        }
        Self { ids: story.operations.iter().filter_map(id).collect(), searches, claims: Vec::new() }
    }

    /// The first search within a run.
    pub(super) fn search_in(&self, run: usize) -> Option<&'s Found> {
        self.searches.get(&run).copied()
    }

    /// A run reports the event; `searches` says whether a search within it does, too.
    pub(super) fn ran(&mut self, place: usize, done: &SpanOperation, searches: bool) {
        let claim = self.claim(place, done);
        claim.ended = done.at_ns.saturating_add(done.took_us.saturating_mul(1_000));
        (claim.by_run, claim.by_search) = (true, claim.by_search || searches);
    }

    /// A search reports the event.
    pub(super) fn searched(&mut self, place: usize, done: &SpanOperation) {
        self.claim(place, done).by_search = true;
    }

    fn claim(&mut self, place: usize, done: &SpanOperation) -> &mut Claim {
        self.claims.resize(self.claims.len().max(place + 1), None);
        self.claims[place].get_or_insert(Claim { began: done.at_ns, ..Claim::default() })
    }

    fn at(&self, place: usize) -> Option<&Claim> {
        self.claims.get(place)?.as_ref()
    }

    /// Place of the first event in a range that begins at that time or later by its span.
    pub(super) fn first_since(&self, range: std::ops::Range<usize>, at_ns: u64) -> Option<usize> {
        let mut places = range;
        places.find(|place| self.at(*place).is_some_and(|claim| claim.began >= at_ns))
    }

    /// Follows the last `added` of `all` events, which move before the event at `place`.
    pub(super) fn moved(&mut self, place: usize, added: usize, all: usize) {
        self.claims.resize(all, None);
        let moved = self.claims.split_off(all - added);
        self.claims.splice(place..place, moved);
    }
}

impl TraceBuilder<'_> {
    /// The call that a run with these arguments is.
    pub(super) fn call_of_run(&self, ran: &Ran, arguments: Option<&Value>, joins: &Joins) -> Option<Joined> {
        let own = ran.id.as_deref();
        let is_known = own.is_some_and(|own| self.waiting.iter().any(|call| call.id == own) || self.has_called(own));
        let is_external = self.role(&ran.tool) == trace::Role::External;
        let same = |id: &str, tool: &str, given: &Value| {
            if own == Some(id) {
                return true;
            }
            let is_part = arguments.is_some() && (is_tool(tool, &ran.tool) || is_tool(&ran.tool, tool));
            if is_known || joins.ids.contains(id) || !(tool == ran.tool || is_part) {
                return false;
            }
            match arguments {
                // A search of the agent's own is known by its request, which may say more than the query.
                _ if id.is_empty() && is_external => {
                    let asked = arguments.map(decoder::query).unwrap_or_default();
                    decoder::query(given).contains(&asked)
                }
                Some(arguments) => arguments == given,
                None => own.is_none() || id.is_empty(),
            }
        };
        let waiting = self.waiting.iter().position(|call| same(&call.id, &call.tool, &call.arguments));
        let event = || {
            self.events.iter().enumerate().position(|(place, (_, what))| match what {
                What::ToolCalled(call) => {
                    let by_run = joins.at(place).is_some_and(|claim| claim.by_run);
                    !by_run && same(&call.id, &call.tool, &call.arguments)
                }
                _ => false,
            })
        };
        waiting.map(Joined::Waiting).or_else(|| event().map(Joined::Event))
    }

    fn has_called(&self, id: &str) -> bool {
        self.events.iter().any(|(_, what)| matches!(what, What::ToolCalled(call) if call.id == id))
    }

    /// The call or search that a search with these hits is; `asked` is the ordinal of the completion before it, if spans
    /// show the completions.
    pub(super) fn call_of_search(
        &self,
        done: &SpanOperation,
        query: &str,
        hits: &[Hit],
        asked: Option<i64>,
        joins: &Joins,
    ) -> Option<Joined> {
        let follows = |completion: u32| asked.is_none_or(|asked| asked == i64::from(completion));
        let is_asked = |tool: &str, given: &Value, completion: u32| {
            self.role(tool) == trace::Role::Knowledge
                && if query.is_empty() { follows(completion) } else { decoder::query(given) == query }
        };
        let waits = |call: &Waiting| is_asked(&call.tool, &call.arguments, call.completion);
        if let Some(place) = self.waiting.iter().position(waits) {
            return Some(Joined::Waiting(place));
        }
        let by_query = |what: &What| match what {
            What::ToolCalled(call) if self.role(&call.tool) == trace::Role::External => {
                !query.is_empty() && decoder::query(&call.arguments).contains(query)
            }
            What::ToolCalled(call) => is_asked(&call.tool, &call.arguments, call.call),
            What::Searched(search) => search.query.contains(query),
            _ => false,
        };
        let by_documents = |what: &What| match what {
            What::ToolCalled(ToolCalled { call, outcome: ToolOutcome::Ok(ToolResult::Search(known)), .. }) => {
                !hits.is_empty() && follows(*call) && ids(hits) == ids(&known.hits)
            }
            _ => false,
        };
        let free = |fits: &dyn Fn(&What) -> bool| {
            let mut events = self.events.iter().enumerate();
            events.position(|(place, (_, what))| joins.at(place).is_none() && fits(what))
        };
        let beside = || {
            let during = |place: &usize| {
                joins.at(*place).is_some_and(|claim| {
                    let within = claim.began <= done.at_ns && done.at_ns <= claim.ended;
                    claim.by_run && !claim.by_search && within && by_query(&self.events[*place].1)
                })
            };
            (0..joins.claims.len()).find(during)
        };
        free(&by_query).or_else(beside).or_else(|| free(&by_documents)).map(Joined::Event)
    }
}

/// The ids of passages.
pub(super) fn ids(hits: &[Hit]) -> BTreeSet<&str> {
    hits.iter().map(|hit| hit.id.as_str()).collect()
}
