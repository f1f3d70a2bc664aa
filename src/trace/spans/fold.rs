//! Operations that two spans report count once: the one that counts gets what only the other says.

use super::meaning::{Completed, Found, Operation, Ran, is_tool};
use super::messages::{Call, Said, plain};
use super::parsed;
use super::story::{SpanOperation, Story, middle};
use crate::trace::text::plural;
use serde_json::Value;
use std::collections::BTreeMap;

impl Story {
    /// Marks operations that two spans report: the one that counts gets what only the other says.
    pub(super) fn fold(&mut self) {
        self.fold_within();
        self.fold_same_answers();
        self.fold_runs(is_side_by_side);
        self.fold_ranked();
    }

    /// Marks all runs of a tool for one call but the last, also those that came one after the other: for who knows of the
    /// calls from elsewhere.
    pub(crate) fn fold_retries(&mut self) {
        self.fold_runs(|_, _| true);
    }

    /// Runs of a tool for one call: the last counts, and it has the searches of all.
    fn fold_runs(&mut self, is_one: fn(&SpanOperation, &SpanOperation) -> bool) {
        let mut known: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for later in 0..self.operations.len() {
            let Operation::Ran(Ran { id: Some(id), .. }) = &self.operations[later].operation else { continue };
            let same = known.entry(id.clone()).or_default();
            let earlier = same.iter().rposition(|place| {
                is_one(&self.operations[*place], &self.operations[later]) && self.is_run_again(*place, later)
            });
            let place = earlier.map(|earlier| std::mem::replace(&mut same[earlier], later));
            let Some(place) = place else {
                same.push(later);
                continue;
            };
            counts.insert(place, later);
            self.operations[place].is_repeated = true;
            let earlier = self.operations[place].operation.clone();
            if let (Operation::Ran(last), Operation::Ran(earlier)) = (&mut self.operations[later].operation, earlier) {
                run(last, earlier);
            }
        }
        if counts.is_empty() {
            return;
        }
        self.notes
            .push(format!("{} with the call of a later one, which counts", plural(counts.len(), "run of a tool")));
        for place in counts.keys().rev().copied().collect::<Vec<_>>() {
            let last = counts.get(&counts[&place]).copied();
            counts.entry(place).and_modify(|later| *later = last.unwrap_or(*later));
        }
        for within in self.operations.iter_mut().filter_map(|done| done.within.as_mut()) {
            *within = counts.get(within).copied().unwrap_or(*within);
        }
    }

    fn is_run_again(&self, place: usize, later: usize) -> bool {
        let (one, other) = (&self.operations[place], &self.operations[later]);
        let (Operation::Ran(earlier), Operation::Ran(last)) = (&one.operation, &other.operation) else { return false };
        !one.is_repeated
            && !other.is_repeated
            && earlier.tool == last.tool
            && (earlier.arguments == last.arguments || earlier.arguments.is_none() || last.arguments.is_none())
            && !self
                .completions()
                .map(middle)
                .any(|middle| one.at_ns.min(other.at_ns) < middle && middle <= one.at_ns.max(other.at_ns))
    }

    /// What ranks the results of the search before it is a part of that search.
    fn fold_ranked(&mut self) {
        for place in 0..self.operations.len() {
            let Operation::Found(ranked) = &self.operations[place].operation else { continue };
            if !ranked.ranks || self.operations[place].is_repeated {
                continue;
            }
            let is_same = |found: &Found| {
                !found.ranks && (ranked.query.is_none() || found.query.is_none() || ranked.query == found.query)
            };
            let before = (0..place).rev().map(|at| (at, &self.operations[at])).filter(|(_, done)| !done.is_repeated);
            let search = before.take_while(|(_, done)| !matches!(done.operation, Operation::Completed(_))).find_map(
                |(at, done)| matches!(&done.operation, Operation::Found(found) if is_same(found)).then_some(at),
            );
            let Some(search) = search else { continue };
            let documents = ranked.documents.clone();
            self.operations[place].is_repeated = true;
            if let Operation::Found(found) = &mut self.operations[search].operation {
                found.documents = documents.or(found.documents.take());
            }
        }
    }

    /// Completions with one answer that two instrumentations report side by side: the longer one counts. A client's own
    /// span need not be within that of its instrumentation. Ids of answers need not differ: some servers have one for all.
    fn fold_same_answers(&mut self) {
        let end =
            |done: &SpanOperation| done.at_ns.saturating_add(done.took_us.saturating_add(1).saturating_mul(1_000));
        // Those of each id that may still last: operations come by their begin, and the longer ones first.
        let mut lasting: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for place in 0..self.operations.len() {
            let inner = &self.operations[place];
            let Operation::Completed(Completed { id: Some(id), .. }) = &inner.operation else { continue };
            if inner.is_repeated || !inner.is_timed {
                continue;
            }
            let same = lasting.entry(id.clone()).or_default();
            same.retain(|outer| end(&self.operations[*outer]) >= inner.at_ns);
            let is_same = |outer: &&usize| {
                let outer = &self.operations[**outer];
                let is_one = match (&outer.operation, &inner.operation) {
                    (Operation::Completed(outer), Operation::Completed(inner)) => agree(outer, inner),
                    _ => false,
                };
                is_one && outer.failed.is_some() == inner.failed.is_some() && end(inner) <= end(outer)
            };
            let Some(outer) = same.iter().find(is_same).copied() else {
                same.push(place);
                continue;
            };
            self.merge(outer, place);
        }
    }

    /// Deeds that two instrumentations report, one around the other: the outer one counts.
    fn fold_within(&mut self) {
        self.fold_completions();
        for place in 0..self.operations.len() {
            let done = self.operations[place].clone();
            let same = self.around(place).find(|outer| match (&self.operations[*outer].operation, &done.operation) {
                (Operation::Found(_), Operation::Found(_)) => true,
                (Operation::Ran(outer), Operation::Ran(inner)) => {
                    (outer.tool == inner.tool || is_tool(&outer.tool, &inner.tool))
                        && (outer.id == inner.id || outer.id.is_none() || inner.id.is_none())
                        && (done.is_mcp || outer.id.is_some() && outer.id == inner.id || !differ(outer, inner))
                }
                _ => false,
            });
            let Some(outer) = same else { continue };
            self.operations[place].is_repeated = true;
            match (&mut self.operations[outer].operation, done.operation) {
                (Operation::Found(outer), Operation::Found(inner)) => {
                    *outer = Found {
                        query: outer.query.take().or(inner.query),
                        base: outer.base.take().or(inner.base),
                        documents: outer.documents.take().or(inner.documents),
                        without_learned: outer.without_learned.take().or(inner.without_learned),
                        learned: outer.learned.take().or(inner.learned),
                        ranks: outer.ranks && inner.ranks,
                    }
                }
                (Operation::Ran(outer), Operation::Ran(inner)) => {
                    // What the tool's server got is what ran.
                    if differ(outer, &inner) {
                        outer.arguments.clone_from(&inner.arguments);
                    }
                    run(outer, inner);
                }
                _ => {}
            }
        }
    }

    /// Whether completions within another one are the same: they overlap, and nothing that both say differs.
    fn is_one(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.operations[one], &self.operations[other]);
        match (&one.operation, &other.operation) {
            (Operation::Completed(said), Operation::Completed(also)) => {
                is_side_by_side(one, other) && agree(said, also)
            }
            _ => false,
        }
    }

    fn merge(&mut self, outer: usize, inner: usize) {
        self.operations[inner].is_repeated = true;
        let inner = self.operations[inner].operation.clone();
        if let (Operation::Completed(outer), Operation::Completed(inner)) =
            (&mut self.operations[outer].operation, inner)
        {
            complete(outer, inner);
        }
    }

    /// Gives the last of several completions what only the one around them says.
    fn give(&mut self, outer: usize, several: &[usize]) {
        let Operation::Completed(outer) = self.operations[outer].operation.clone() else { return };
        let mut known = Vec::new();
        for place in several {
            if let Operation::Completed(inner) = &self.operations[*place].operation {
                known.extend(calls(inner.output.as_ref()));
            }
        }
        let last = several.last().map(|last| &mut self.operations[*last].operation);
        if let Some(Operation::Completed(last)) = last {
            last.output = with_calls(last.output.take(), outer.output, &known);
        }
    }

    /// Completions within others: one is the same by another instrumentation, and gives what only it says. What is around
    /// several is none: a function of the agent that asks its model more than once.
    fn fold_completions(&mut self) {
        let is_completion = |place: &usize| matches!(self.operations[*place].operation, Operation::Completed(_));
        let mut places: Vec<usize> = (0..self.operations.len()).filter(is_completion).collect();
        let outer: BTreeMap<usize, usize> = places
            .iter()
            .filter_map(|place| Some((*place, self.around(*place).find(|at| at != place && is_completion(at))?)))
            .collect();
        // From the inside.
        let depth = |place: &usize| std::iter::successors(Some(*place), |at| outer.get(at).copied()).take(100).count();
        places.sort_by_cached_key(|place| std::cmp::Reverse(depth(place)));
        let mut within: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for place in places {
            let mut several: Vec<usize> = Vec::new();
            let mut inner = within.remove(&place).unwrap_or_default();
            inner.sort_unstable();
            for inner in inner {
                match several.iter().find(|known| self.is_one(**known, inner)) {
                    Some(known) => self.merge(*known, inner),
                    None => several.push(inner),
                }
            }
            let counted = if let [] | [_] = several.as_slice() {
                for inner in several {
                    self.merge(place, inner);
                }
                vec![place]
            } else {
                self.operations[place].is_repeated = true;
                self.give(place, &several);
                several
            };
            if let Some(outer) = outer.get(&place) {
                within.entry(*outer).or_default().extend(counted);
            }
        }
    }
}

/// Whether two runs say other values of one argument; one of them may be shortened.
fn differ(one: &Ran, other: &Ran) -> bool {
    let named = |ran: &Ran| ran.arguments.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
    let (one, other) = (named(one), named(other));
    let is_same = |one: &Value, other: &Value| {
        let (short, long) = (plain(one), plain(other));
        let is_short = |short: &str, long: &str| {
            let begins = short.strip_suffix('…').or_else(|| short.strip_suffix("..."));
            begins.is_some_and(|begins| long.starts_with(begins))
        };
        parsed(one) == parsed(other) || is_short(&short, &long) || is_short(&long, &short)
    };
    one.iter().any(|(name, value)| other.get(name).is_some_and(|known| !is_same(known, value)))
}

/// Whether two runs of one call may be one: they overlap in time, or their times are unknown.
fn is_side_by_side(one: &SpanOperation, other: &SpanOperation) -> bool {
    let (first, second) = if one.at_ns <= other.at_ns { (one, other) } else { (other, one) };
    let end = first.at_ns.saturating_add(first.took_us.saturating_mul(1_000));
    !(one.is_timed && other.is_timed) || first.at_ns == second.at_ns || second.at_ns < end
}

/// Whether nothing that both completions say differs. Tokens of a cache may be counted in the input of one alone.
fn agree(one: &Completed, other: &Completed) -> bool {
    fn both<T>(one: Option<T>, other: Option<T>, is_same: impl Fn(T, T) -> bool) -> bool {
        one.zip(other).is_none_or(|(one, other)| is_same(one, other))
    }
    fn words(said: &[Said], is_meant: fn(&Said) -> bool) -> Vec<&str> {
        said.iter().filter(|one| is_meant(one)).map(|one| one.text.trim()).filter(|text| !text.is_empty()).collect()
    }
    fn calls(said: &[Said]) -> Vec<(&str, &Value)> {
        said.iter().flat_map(|one| &one.calls).map(|call| (call.tool.as_str(), &call.arguments)).collect()
    }
    let is_same = |one: &[&str], other: &[&str]| one.is_empty() || other.is_empty() || one == other;
    let of_cache = |one: &Completed| one.cached_tokens.unwrap_or(0).saturating_add(one.cache_write_tokens.unwrap_or(0));
    let cache = of_cache(one).max(of_cache(other));
    both(one.input.as_deref(), other.input.as_deref(), |one, other| {
        is_same(&words(one, Said::is_user), &words(other, Said::is_user))
    }) && both(one.output.as_deref(), other.output.as_deref(), |one, other| {
        calls(one) == calls(other) && is_same(&words(one, Said::is_agent), &words(other, Said::is_agent))
    }) && both(one.input_tokens, other.input_tokens, |one, other| [0, cache].contains(&one.abs_diff(other)))
        && both(one.output_tokens, other.output_tokens, |one, other| one == other)
}

fn run(outer: &mut Ran, inner: Ran) {
    *outer = Ran {
        tool: std::mem::take(&mut outer.tool),
        id: outer.id.take().or(inner.id),
        arguments: outer.arguments.take().or(inner.arguments),
        result: outer.result.take().or(inner.result),
        outcome: outer.outcome.take().or(inner.outcome),
    };
}

/// The messages of the outer span, unless they are empty and the inner one has some.
fn with_words(outer: Option<Vec<Said>>, inner: Option<Vec<Said>>) -> Option<Vec<Said>> {
    match (outer, inner) {
        (Some(outer), Some(inner)) if is_empty(&outer) => Some(inner),
        (outer, inner) => outer.or(inner),
    }
}

fn is_empty(said: &[Said]) -> bool {
    said.iter().all(|one| one.text.trim().is_empty() && one.calls.is_empty())
}

fn calls(said: Option<&Vec<Said>>) -> Vec<Call> {
    said.into_iter().flatten().flat_map(|one| &one.calls).cloned().collect()
}

/// An output with the calls of another one that are not `known`, or less often.
fn with_calls(output: Option<Vec<Said>>, other: Option<Vec<Said>>, known: &[Call]) -> Option<Vec<Said>> {
    let mut more = calls(other.as_ref());
    let count = |calls: &[Call], tool: &str| calls.iter().filter(|call| call.tool == tool).count();
    let all = more.clone();
    more.retain(|call| {
        let is_it = |one: &Call| !call.id.is_empty() && one.id == call.id || one.arguments == call.arguments;
        let is_known = known.iter().any(|one| one.tool == call.tool && is_it(one));
        !is_known && count(known, &call.tool) < count(&all, &call.tool)
    });
    match (output, other) {
        (output, Some(mut other)) if output.as_deref().is_none_or(is_empty) => {
            for one in &mut other {
                one.calls.retain(|call| more.contains(call));
            }
            Some(other)
        }
        (Some(mut said), _) if !more.is_empty() => {
            said.push(Said { role: "assistant".to_owned(), calls: more, ..Said::default() });
            Some(said)
        }
        (output, _) => output,
    }
}

fn complete(outer: &mut Completed, inner: Completed) {
    *outer = Completed {
        id: outer.id.take().or(inner.id),
        model: std::mem::take(&mut outer.model),
        input: with_words(outer.input.take(), inner.input),
        output: {
            let known = calls(outer.output.as_ref());
            with_calls(outer.output.take(), inner.output, &known)
        },
        finish: outer.finish.take().or(inner.finish),
        unread: outer.unread.take().or(inner.unread),
        input_tokens: outer.input_tokens.or(inner.input_tokens),
        cached_tokens: outer.cached_tokens.or(inner.cached_tokens),
        cache_write_tokens: outer.cache_write_tokens.or(inner.cache_write_tokens),
        output_tokens: outer.output_tokens.or(inner.output_tokens),
    };
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
