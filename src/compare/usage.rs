//! Usage of a case's trials, for side-by-side figures: calls, tokens, times, citations.

use crate::metric::taken::{Taken, plus};
use crate::trace::{Member, Mode, SOURCES, ToolResult, Trace, TurnOutcome, What, is_zero};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// Summed usage of trials, without control arms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Usage {
    /// Queries, those without an answer too.
    pub turns: u64,
    /// Queries that were answered.
    pub answers: u64,
    /// Answers whose sources the trace does not show: they count in neither of the next two.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hidden_sources: u64,
    /// Answers that name a source.
    pub citing: u64,
    /// Sources that answers name.
    pub citations: u64,
    pub model_calls: u64,
    /// Calls of tools, executed or not.
    pub tool_calls: u64,
    /// Input tokens of the model; `None` if a completion does not report them.
    pub input_tokens: Option<u64>,
    /// Output tokens of the model; `None` if a completion does not report them.
    pub output_tokens: Option<u64>,
    /// Answers of services that generate answers: external search, managed retrieval.
    pub service_answers: u64,
    /// Input and output tokens of these services; `None` if an answer does not report them.
    pub service_tokens: Option<u64>,
    /// US dollars; `None` where a price or the tokens of a service are not known.
    pub cost: Option<f64>,
    /// Time of each query whose time was recorded, in microseconds; `u64::MAX` for one without an answer, which a file
    /// holds as `null`.
    #[serde(serialize_with = "times", deserialize_with = "read_times")]
    pub turns_us: Vec<u64>,
    /// Calls that recordings answered in trials with held services; their times are not compared.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held: u64,
    /// Calls in such trials that were not recorded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub new: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            turns: 0,
            answers: 0,
            hidden_sources: 0,
            citing: 0,
            citations: 0,
            model_calls: 0,
            tool_calls: 0,
            input_tokens: Some(0),
            output_tokens: Some(0),
            service_answers: 0,
            service_tokens: Some(0),
            cost: Some(0.0),
            turns_us: Vec::new(),
            held: 0,
            new: 0,
        }
    }
}

impl Usage {
    /// Adds what a trial called, read, wrote and cost in US dollars; its queries are counted separately, see [`Usage::add_turn`].
    pub(super) fn add_calls(&mut self, trace: &Trace, cost: Option<f64>) {
        if let Some(held) = &trace.evidence.held {
            self.held += u64::from(held.answered());
            self.new += u64::from(held.new);
        }
        let calls = self.model_calls + self.service_answers;
        let taken = Taken::of(trace.events.iter().map(|event| &event.what), None);
        self.model_calls += u64::from(taken.model_calls);
        // A source without completions says nothing of their tokens.
        let is_told =
            trace.evidence.mode != Mode::Imported || trace.absent.is_some() && !trace.lacks(Member::Completions);
        let told = |tokens: Option<u64>| tokens.filter(|_| is_told);
        self.input_tokens = plus(self.input_tokens, told(taken.input));
        self.output_tokens = plus(self.output_tokens, told(taken.output));
        for event in &trace.events {
            self.tool_calls += u64::from(matches!(event.what, What::ToolCalled(_)));
            if let Some(result) = event.what.given() {
                self.add_service(result);
            }
        }
        // Without a request there is no cost.
        let asked = self.model_calls + self.service_answers > calls;
        let cost = if asked { cost } else { Some(0.0).filter(|_| is_told) };
        self.cost = self.cost.zip(cost).map(|(sum, more)| sum + more);
    }

    fn add_service(&mut self, result: &ToolResult) {
        let tokens = match result {
            ToolResult::External(found) if found.is_written() => (found.input_tokens, found.output_tokens),
            ToolResult::Search(search) => match search.managed.as_deref() {
                Some(answer) => (answer.input_tokens, answer.output_tokens),
                None => return,
            },
            ToolResult::External(_) | ToolResult::Indexed(_) | ToolResult::Responded | ToolResult::Other(_) => return,
        };
        self.service_answers += 1;
        self.service_tokens = plus(self.service_tokens, plus(tokens.0, tokens.1));
    }

    /// Whether the time of a query was recorded, or there was no query.
    pub(super) fn is_timed(&self) -> bool {
        self.turns == 0 || !self.turns_us.is_empty()
    }

    /// Adds one query of a trace: how it ended and after how long, if that was recorded; `None` for one that never ended.
    /// Returns what was added to the times.
    pub(super) fn add_turn(&mut self, trace: &Trace, ended: Option<(&TurnOutcome, u64)>) -> Option<u64> {
        self.turns += 1;
        let lacks_times = trace.lacks(Member::Took) || trace.lacks(Member::Answers);
        let is_timed = trace.evidence.mode != Mode::Imported || !lacks_times;
        let answered = ended.and_then(|(outcome, took_us)| Some((outcome.answer()?, took_us)));
        let time = is_timed.then(|| answered.map_or(u64::MAX, |(_, took_us)| took_us));
        self.turns_us.extend(time);
        if let Some((answer, _)) = answered {
            self.answers += 1;
            let hidden = trace.lacks(Member::Sources) || answer.hides(SOURCES);
            self.hidden_sources += u64::from(hidden && answer.sources.is_empty());
            self.citing += u64::from(!answer.sources.is_empty());
            self.citations += answer.sources.len() as u64;
        }
        time
    }

    /// Answers whose sources are known.
    pub(super) fn shown_answers(&self) -> u64 {
        self.answers.saturating_sub(self.hidden_sources)
    }

    /// Adds the usage of other trials.
    pub(super) fn add(&mut self, other: &Self) {
        self.turns += other.turns;
        self.answers += other.answers;
        self.hidden_sources += other.hidden_sources;
        self.citing += other.citing;
        self.citations += other.citations;
        self.model_calls += other.model_calls;
        self.tool_calls += other.tool_calls;
        self.input_tokens = plus(self.input_tokens, other.input_tokens);
        self.output_tokens = plus(self.output_tokens, other.output_tokens);
        self.service_answers += other.service_answers;
        self.service_tokens = plus(self.service_tokens, other.service_tokens);
        self.cost = self.cost.zip(other.cost).map(|(sum, more)| sum + more);
        self.turns_us.extend(&other.turns_us);
        self.held += other.held;
        self.new += other.new;
    }

    /// Whether no figure is larger than `most`, and no part larger than its whole.
    pub(super) fn is_possible(&self, most: u64) -> bool {
        let calls =
            [self.model_calls, self.tool_calls, self.service_answers, self.citations, self.turns, self.held, self.new];
        let tokens = [self.input_tokens, self.output_tokens, self.service_tokens];
        calls.into_iter().chain(tokens.into_iter().flatten()).all(|figure| figure <= most)
            && self.citing <= self.shown_answers()
            && self.hidden_sources <= self.answers
            && self.answers <= self.turns
            && self.turns_us.len() as u64 <= self.turns
            && self.turns_us.iter().filter(|time| **time != u64::MAX).all(|time| *time <= most)
            && self.cost.is_none_or(|cost| (0.0..=most as f64).contains(&cost))
    }
}

/// A time as a file holds it.
fn written(time: u64) -> Option<u64> {
    Some(time).filter(|time| *time != u64::MAX)
}

fn times<S: Serializer>(times: &[u64], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(times.iter().map(|time| written(*time)))
}

fn read_times<'de, D: Deserializer<'de>>(text: D) -> Result<Vec<u64>, D::Error> {
    let times = Vec::<Option<u64>>::deserialize(text)?;
    Ok(times.into_iter().map(|time| time.unwrap_or(u64::MAX)).collect())
}

pub(super) fn times_by_repetition<S: Serializer>(all: &BTreeMap<u32, Vec<u64>>, out: S) -> Result<S::Ok, S::Error> {
    let list = |times: &[u64]| times.iter().map(|time| written(*time)).collect::<Vec<_>>();
    out.collect_map(all.iter().map(|(number, times)| (number, list(times))))
}

pub(super) fn read_times_by_repetition<'de, D: Deserializer<'de>>(
    text: D,
) -> Result<BTreeMap<u32, Vec<u64>>, D::Error> {
    let all = BTreeMap::<u32, Vec<Option<u64>>>::deserialize(text)?;
    let read = |times: Vec<Option<u64>>| times.into_iter().map(|time| time.unwrap_or(u64::MAX)).collect();
    Ok(all.into_iter().map(|(number, times)| (number, read(times))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::sample::{good, plan};
    use crate::trace::Answer;

    #[test]
    fn an_answer_whose_sources_are_unseen_is_no_answer_without_sources() {
        let mut trace = good(&plan("[{case: one, ask: q}]", "[]", 1), 0);
        let hidden = |trace: &Trace, unseen: &[&str]| {
            let unseen = unseen.iter().map(|member| (*member).to_owned()).collect();
            let mut usage = Usage::default();
            usage.add_turn(trace, Some((&TurnOutcome::Answered(Answer { unseen, ..Answer::default() }), 1)));
            (usage.answers, usage.hidden_sources, usage.shown_answers())
        };
        assert_eq!(hidden(&trace, &[]), (1, 0, 1));
        assert_eq!(hidden(&trace, &[SOURCES]), (1, 1, 0));
        trace.evidence.mode = Mode::Imported;
        assert_eq!(hidden(&trace, &[]), (1, 1, 0), "messages have no list of sources");
    }
}
