//! Duration of turns, by flow, variant and kind of evidence: quantiles with order-statistic bounds, the stages along
//! the critical path, and the time to the first token of streams.
//!
//! An unanswered turn counts as slower than any other, so that failing fast never looks quick. Turns of one
//! conversation are not independent: bounds are those of clusters. Recorded, live, mixed and simulated times are kept
//! apart and never averaged, because they are evidence of different things. Times of cases that declare a `fault` or
//! expect an error are separate too: deliberate faults say nothing about the agent's speed.

use super::sources::Sources;
use super::{CurvePoint, Source, StageTime};
use crate::metric::TurnView;
use crate::metric::stages::{Stage, TurnTime, first_tokens, turn_times};
use crate::platform::words;
use crate::stats::quantile::{Bounded, Sizes, bounded_in_clusters};
use crate::trace::{ASKED_NOBODY, Evidence, Lane, Mode, Trace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The times of one flow and variant, from one kind of evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// The agent's flow.
    pub flow: String,
    /// The variant.
    pub variant: String,
    /// Who answered: `recorded`, `live`, `simulator`, `mixed` (a provider and the simulator), `simulator, live` or
    /// `mixed, live`; `no service` if none was called; each with `, declared faults` for cases that declare a fault or
    /// expect an error.
    pub kind: String,
    /// Source of the evidence: `REPLAYED, recorded from simulator on 2026-11-21`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// The same, one entry per source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Planned turns of trials that could be run.
    pub turns: u64,
    /// Number of these that ended in an error or never ended: slower than any limit.
    pub unanswered: u64,
    /// p50, p90, p95 and p99 of the time from the user's input to the answer.
    pub quantiles: Vec<Quantile>,
    /// Times of answered turns, ascending; at most 100 points, at equal steps of rank.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<CurvePoint>,
    /// Time by stage along the critical path; empty if a turn does not show how long its parts took.
    pub stages: Vec<StageTime>,
    /// Microseconds of all answered turns: the sum of the stages, if there are any.
    pub answered_us: u64,
    /// From the request to the first token or call of the completion; `None` if nothing was streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token: Option<FirstToken>,
}

/// Suffix of the kind of times for cases that declare a fault.
pub(super) const FAULTS: &str = ", declared faults";

/// Largest number of points of a curve.
const CURVE: usize = 100;

impl Latency {
    /// Whether these are the times of cases that declare a fault.
    pub fn has_declared_faults(&self) -> bool {
        self.kind.ends_with(FAULTS)
    }

    /// Number of answered turns.
    pub fn answered(&self) -> u64 {
        self.turns - self.unanswered
    }
}

/// Times to the first token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FirstToken {
    /// Completions that were streamed.
    pub n: u64,
    /// p50, p90, p95 and p99 over these.
    pub quantiles: Vec<Quantile>,
}

/// One quantile of some times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantile {
    /// Its level, between 0 and 1.
    pub q: f64,
    /// The nearest-rank value, for display.
    pub value: Edge,
    /// One-sided 95 % lower bound.
    pub lower: Edge,
    /// One-sided 95 % upper bound.
    pub upper: Edge,
}

/// A time, or the reason why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// Microseconds.
    Us(u64),
    /// Falls on an unanswered turn: slower than any limit.
    Unanswered,
    /// Too few times for a bound on that side, or the number of times differs between trials and was not planned.
    Unbounded,
}

impl Edge {
    /// Order of lengths: an unanswered or unbounded time is longer than any other.
    pub(crate) fn rank(self) -> u64 {
        if let Self::Us(us) = self { us } else { u64::MAX }
    }

    fn of(us: Option<u64>) -> Self {
        match us {
            None => Self::Unbounded,
            Some(u64::MAX) => Self::Unanswered,
            Some(us) => Self::Us(us),
        }
    }
}

/// Times of one trial.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Timed {
    answered: Vec<TurnTime>,
    unanswered: u64,
    first_tokens: Vec<u64>,
}

impl Timed {
    pub(super) fn of(trace: &Trace, turns: &[TurnView<'_>]) -> Self {
        let answered = turn_times(trace);
        let unanswered = turns.len().saturating_sub(answered.len()) as u64;
        Self { answered, unanswered, first_tokens: first_tokens(trace).collect() }
    }
}

/// Kind of evidence of a trial's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    /// Whether the case declares a fault: such kinds come last.
    faults: bool,
    from: Origin,
}

impl Kind {
    pub(super) fn of(evidence: &Evidence, faults: bool) -> Self {
        Self { faults, from: Origin::of(evidence) }
    }

    pub(super) fn name(self) -> String {
        let from = self.from.as_str();
        if self.faults { format!("{from}{FAULTS}") } else { from.to_owned() }
    }
}

words! {
    /// Who answered.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    enum Origin {
        // Recordings answered some calls and services the others, now or when it was recorded.
        Held = "held: recorded and live times together",
        Live = "live",
        Mixed = "mixed",
        MixedLive = "mixed, live",
        NoService = "no service",
        Recorded = "recorded",
        Simulator = "simulator",
        SimulatorLive = "simulator, live",
    }
}

impl Origin {
    fn of(evidence: &Evidence) -> Self {
        if evidence.recorded_from == ASKED_NOBODY {
            return Self::NoService;
        }
        if evidence.held.as_ref().is_some_and(|held| held.answered() > 0) {
            return Self::Held;
        }
        let simulated = |who: &str| who == "simulator" || who.starts_with("simulator ");
        let mut who = evidence.recorded_from.split(", ");
        let (all, any) = (who.clone().all(simulated), who.any(simulated));
        match (evidence.mode == Mode::Live, all, any) {
            (false, true, _) => Self::Simulator,
            (false, false, true) => Self::Mixed,
            (false, false, false) => Self::Recorded,
            (true, true, _) => Self::SimulatorLive,
            (true, false, true) => Self::MixedLive,
            (true, false, false) => Self::Live,
        }
    }
}

#[derive(Debug, Default)]
struct Group {
    /// Times with the number of their trial; the largest number for an unanswered turn.
    times_us: Vec<(u64, u32)>,
    unanswered: u64,
    answered_us: u64,
    stages_us: BTreeMap<Stage, u64>,
    /// Whether a turn does not show how long its parts took.
    unstaged: bool,
    first_tokens: Vec<(u64, u32)>,
    trials: u32,
    /// Whether conversations are of a log, which had as many turns as their users wanted.
    logged: bool,
    sources: Sources,
}

/// Aggregates trials; independent of their order.
#[derive(Debug, Default)]
pub(super) struct Latencies(BTreeMap<(bool, String, String, Origin), Group>);

impl Latencies {
    pub(super) fn add(&mut self, lane: &Lane, kind: Kind, evidence: &Evidence, timed: Timed) {
        let key = (kind.faults, lane.flow.clone(), lane.variant.clone(), kind.from);
        let group = self.0.entry(key).or_default();
        let trial = group.trials;
        group.trials += 1;
        group.logged |= evidence.mode == Mode::Imported;
        if timed.unanswered > 0 || !timed.answered.is_empty() {
            group.sources.add(evidence);
        }
        group.unanswered += timed.unanswered;
        group.times_us.extend((0..timed.unanswered).map(|_| (u64::MAX, trial)));
        group.first_tokens.extend(timed.first_tokens.into_iter().map(|us| (us, trial)));
        for turn in timed.answered {
            group.times_us.push((turn.took_us, trial));
            group.answered_us = group.answered_us.saturating_add(turn.took_us);
            group.unstaged |= turn.stages_us.is_empty();
            for (stage, more) in turn.stages_us {
                let sum = group.stages_us.entry(stage).or_default();
                *sum = sum.saturating_add(more);
            }
        }
    }

    pub(super) fn finish(self) -> Vec<Latency> {
        let row = |((faults, flow, variant, from), group): ((bool, String, String, Origin), Group)| {
            let n = group.first_tokens.len() as u64;
            Latency {
                flow,
                variant,
                kind: Kind { faults, from }.name(),
                evidence: group.sources.line(),
                sources: group.sources.list(),
                turns: group.times_us.len() as u64,
                unanswered: group.unanswered,
                curve: curve(&group.times_us),
                quantiles: quantiles(group.times_us, if group.logged { Sizes::Observed } else { Sizes::Planned }),
                answered_us: group.answered_us,
                stages: if group.unstaged { BTreeMap::new() } else { group.stages_us }
                    .into_iter()
                    .map(|(stage, took_us)| StageTime { stage, took_us })
                    .collect(),
                first_token: (n > 0)
                    .then(|| FirstToken { n, quantiles: quantiles(group.first_tokens, Sizes::Observed) }),
            }
        };
        self.0.into_iter().map(row).filter(|row| row.turns > 0).collect()
    }
}

/// Answered times, thinned: each point represents all ranks since the previous one.
fn curve(values: &[(u64, u32)]) -> Vec<CurvePoint> {
    let mut sorted: Vec<u64> = values.iter().map(|(us, _)| *us).filter(|us| *us != u64::MAX).collect();
    sorted.sort_unstable();
    let steps = sorted.len().min(CURVE);
    let rank = |step: usize| (step * sorted.len()).div_ceil(steps);
    let point = |rank: usize| CurvePoint { took_us: sorted[rank - 1], turns: rank as u64 };
    let mut points: Vec<CurvePoint> = (1..=steps).map(rank).map(point).collect();
    // Of equal times only the last rank is needed.
    points.reverse();
    points.dedup_by_key(|point| point.took_us);
    points.reverse();
    points
}

fn quantiles(values: Vec<(u64, u32)>, sizes: Sizes) -> Vec<Quantile> {
    let edges = |found: Bounded| Quantile {
        q: found.q,
        value: Edge::of(Some(found.value)),
        lower: Edge::of(found.lower),
        upper: Edge::of(found.upper),
    };
    bounded_in_clusters(values, sizes).into_iter().map(edges).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::evaluate;
    use crate::metric::sample::{good, plan, story};
    use crate::trace::What;

    const CASES: &str = "[{case: a, ask: q}]";

    #[test]
    fn turns_without_an_answer_are_longer_than_any_other_and_twenty_bound_no_p95() {
        let plan = plan(CASES, "[]", 20);
        let traces = (0..20).map(|place| {
            let story = story(&plan, place).turn("q");
            let us = 1_000_000 * (place as u64 + 1);
            Ok(if place < 18 { story.deliver("so", &[], us).done() } else { story.fail("timeout").done() })
        });
        let evaluated = evaluate(&plan, traces).expect("judged");
        let [row] = evaluated.latency.as_slice() else { panic!("one row: {:?}", evaluated.latency) };
        assert_eq!((row.turns, row.unanswered, row.kind.as_str()), (20, 2, "simulator"));
        let found: Vec<_> = row.quantiles.iter().map(|one| (one.value, one.lower, one.upper)).collect();
        assert_eq!(found[0], (Edge::Us(10_000_000), Edge::Us(6_000_000), Edge::Us(15_000_000)));
        assert_eq!(found[2], (Edge::Unanswered, Edge::Us(17_000_000), Edge::Unbounded));
        assert_eq!(row.answered_us, (1..=18).sum::<u64>() * 1_000_000);
        assert_eq!(row.answered_us, row.stages.iter().map(|one| one.took_us).sum::<u64>());
    }

    #[test]
    fn a_curve_has_few_points_and_ends_with_all_answered_turns() {
        let times: Vec<(u64, u32)> = (0..1_000).map(|turn| (turn * 10, 0)).chain([(u64::MAX, 0)]).collect();
        let curve = |values: &[(u64, u32)]| -> Vec<(u64, u64)> {
            curve(values).into_iter().map(|point| (point.took_us, point.turns)).collect()
        };
        let found = curve(&times);
        assert_eq!((found.len(), found[0], found[CURVE - 1]), (CURVE, (90, 10), (9_990, 1_000)));
        assert_eq!(curve(&[(7, 0), (5, 0), (7, 1)]), [(5, 1), (7, 3)]);
        assert_eq!(curve(&[(u64::MAX, 0)]), []);
    }

    #[test]
    fn live_recorded_mixed_and_simulated_times_stand_apart() {
        let plan = plan(CASES, "[]", 5);
        let mut traces: Vec<_> = (0..5).map(|place| good(&plan, place)).collect();
        traces[1] = story(&plan, 1).turn("q").deliver("so", &[], 7).live().done();
        traces[2].evidence.recorded_from = "openai gpt-5".into();
        traces[3].evidence.recorded_from = "openai gpt-5 (model), simulator (search)".into();
        traces[4].evidence.recorded_from = "simulator (model), simulator (search)".into();
        let evaluated = evaluate(&plan, traces.into_iter().map(Ok)).expect("judged");
        let found: Vec<_> = evaluated.latency.iter().map(|row| (row.kind.as_str(), row.turns)).collect();
        assert_eq!(found, [("mixed", 1), ("recorded", 1), ("simulator", 2), ("simulator, live", 1)]);
        let kinds: Vec<_> = evaluated.turn_kinds.iter().map(|one| (one.kind.as_str(), one.turns)).collect();
        let expected = [("simulator", 1), ("simulator, live", 1), ("recorded", 1), ("mixed", 1), ("simulator", 1)];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn cases_that_declare_a_fault_stand_apart_and_last() {
        let cases = "[{case: a, ask: q, expect: {error: {kind: timeout}}}, {case: b, ask: q}]";
        let expected = plan(cases, "[]", 2).scenarios[0].cases[0].case.fails_on_purpose();
        assert!(expected, "an error that a case expects is no time of the agent either");
        let cases = "[{case: a, ask: q, fault: model-down}, {case: b, ask: q}]";
        let plan = plan(cases, "[]", 2);
        let traces = (0..plan.trials.len()).map(|place| {
            let faulty = plan.trials.at(place).is_some_and(|trial| trial.case == 0);
            Ok(if faulty { story(&plan, place).turn("q").fail("timeout").done() } else { good(&plan, place) })
        });
        let evaluated = evaluate(&plan, traces).expect("judged");
        let found: Vec<_> =
            evaluated.latency.iter().map(|row| (row.kind.as_str(), row.turns, row.unanswered)).collect();
        assert_eq!(found, [("simulator", 2, 0), ("simulator, declared faults", 2, 2)]);
        let kinds: BTreeMap<&str, u64> = evaluated.turn_kinds.iter().fold(BTreeMap::new(), |mut all, one| {
            *all.entry(one.kind.as_str()).or_default() += one.turns;
            all
        });
        assert_eq!(kinds, [("simulator", 2), ("simulator, declared faults", 2)].into());
    }

    #[test]
    fn a_trial_that_asked_no_service_is_no_recording_of_one_and_each_row_says_what_it_rests_on() {
        let plan = plan(CASES, "[]", 2);
        let mut traces: Vec<_> = (0..2).map(|place| good(&plan, place)).collect();
        traces[1].evidence.recorded_from = ASKED_NOBODY.into();
        let evaluated = evaluate(&plan, traces.into_iter().map(Ok)).expect("judged");
        let found: Vec<_> = evaluated.latency.iter().map(|row| (row.kind.as_str(), row.evidence.as_str())).collect();
        let [("no service", nobody), ("simulator", simulated)] = found[..] else { panic!("{found:?}") };
        assert!(nobody.starts_with("REPLAYED, no service was asked, recorded on "), "{nobody}");
        assert!(simulated.starts_with("REPLAYED, recorded from simulator on "), "{simulated}");
        let told: Vec<_> = evaluated.trials.iter().map(|trial| trial.evidence.to_owned()).collect();
        assert_eq!(told, [simulated, nobody]);
    }

    #[test]
    fn turns_of_one_conversation_bound_a_quantile_less_than_as_many_conversations() {
        let rows = |cases: &str, trials: u32, turns: usize| {
            let plan = plan(cases, "[]", trials);
            let traces = (0..trials as usize).map(|place| {
                let begun = story(&plan, place);
                Ok((0..turns).fold(begun, |story, _| story.turn("q").deliver("so", &[], 1_000_000)).done())
            });
            evaluate(&plan, traces).expect("judged").latency.remove(0)
        };
        let alone = rows(CASES, 60, 1);
        let together = rows("[{case: a, turns: [{ask: q}, {ask: q}, {ask: q}]}]", 20, 3);
        assert_eq!((alone.turns, together.turns), (60, 60));
        assert_eq!((alone.quantiles[2].upper, together.quantiles[2].upper), (Edge::Us(1_000_000), Edge::Unbounded));
    }

    #[test]
    fn conversations_of_a_log_that_differ_in_length_bound_no_quantile() {
        let plan = plan(CASES, "[]", 60);
        let bound = |mode: Mode| {
            let traces = (0..60).map(|place| {
                let turns = if place == 59 { 8 } else { 1 };
                let begun = story(&plan, place);
                let mut trace = (0..turns).fold(begun, |story, _| story.turn("q").deliver("so", &[], 1_000_000)).done();
                (trace.evidence.mode, trace.absent) = (mode, Some(Vec::new()));
                Ok(trace)
            });
            evaluate(&plan, traces).expect("judged").latency[0].quantiles[0].upper
        };
        assert_eq!([Mode::Replay, Mode::Imported].map(bound), [Edge::Us(1_000_000), Edge::Unbounded]);
    }

    #[test]
    fn the_time_to_the_first_token_is_of_streams_alone() {
        let plan = plan(CASES, "[]", 2);
        let mut traces: Vec<_> = (0..2).map(|place| good(&plan, place)).collect();
        assert_eq!(evaluate(&plan, traces.clone().into_iter().map(Ok)).expect("judged").latency[0].first_token, None);
        for event in &mut traces[1].events {
            if let What::ModelCalled(called) = &mut event.what {
                called.first_token_us = Some(250_000);
            }
        }
        let evaluated = evaluate(&plan, traces.into_iter().map(Ok)).expect("judged");
        let found = evaluated.latency[0].first_token.as_ref().expect("streamed");
        assert_eq!(
            (found.n, found.quantiles[0].value, found.quantiles[0].upper),
            (1, Edge::Us(250_000), Edge::Unbounded)
        );
    }
}
