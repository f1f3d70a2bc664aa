//! Creates a history point from a run's traces and verdicts.

use super::{ANSWERED_VERSION, Conditions, POINT_VERSION, Point, RUN_AGAIN, Rate, Times, mode_word};
use crate::gate::{Evaluation, Verdict};
use crate::stats::quantile::nearest_rank;
use crate::trace::{Mode, Trace, TrialEnd};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Reason why a run has no point in the history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPoint {
    /// This many of its trials are in ERROR.
    #[error("{0} of its trials could not be run")]
    Errors(u64),
    /// Nothing was run.
    #[error("it has no trials")]
    NoTrials,
    /// It was imported.
    #[error("imported conversations have no time of their own")]
    Imported,
    /// Live and replayed figures are never averaged.
    #[error("it has both live and replayed trials")]
    MixedModes,
    /// Recordings answered part of the calls.
    #[error("services were held (--hold): older answers and new ones stand side by side in it")]
    Held,
}

/// Collects the sources of a run's traces; independent of their order.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    trials: BTreeMap<String, String>,
    lanes: BTreeSet<String>,
    modes: BTreeSet<Mode>,
    models: BTreeSet<String>,
    answered_by: BTreeSet<String>,
    scenarios: BTreeSet<String>,
    latest: Option<String>,
    errors: u64,
    held: bool,
}

impl Gather {
    /// Adds one trial.
    pub(crate) fn add(&mut self, trace: &Trace) {
        if trace.end != TrialEnd::Completed {
            self.errors += 1;
            return;
        }
        let evidence = &trace.evidence;
        self.held |= evidence.held.is_some();
        let recorded = evidence.recorded_at.clone().unwrap_or_default();
        // A replay uses the times of its recording, but another build may sum them differently.
        let took = if evidence.mode == Mode::Replay { String::new() } else { trace.took_us.to_string() };
        let parts = [&recorded, &evidence.recorded_from, &evidence.model, &took].map(String::as_str).join("\u{1f}");
        self.trials.insert(trace.trial.clone(), parts);
        self.lanes.insert(format!("{}/{}/{}.{}", trace.scenario, trace.case, trace.lane.flow, trace.lane.variant));
        self.scenarios.insert(trace.scenario.clone());
        self.modes.insert(evidence.mode);
        self.models.insert(evidence.model.clone());
        self.answered_by.extend(evidence.answered_by().map(str::to_owned));
        self.latest = self.latest.take().max(evidence.recorded_at.clone());
    }

    /// The identity of the run's point, shared with every replay of what it recorded.
    pub(crate) fn identity(&self) -> String {
        digest(&mut self.trials.iter().map(|(trial, parts)| format!("{trial}\u{1f}{parts}")))
    }

    /// Returns the run's point. `now` is the time of a live run (RFC 3339, UTC); a recording has a time already.
    ///
    /// # Errors
    /// Reason why the run has no point: nothing was run, a trial is in ERROR, it was imported, services were held, or live and replayed
    /// trials are mixed.
    pub(crate) fn finish(
        self,
        evaluation: &Evaluation,
        now: &str,
        concurrency: u16,
        mut labels: BTreeMap<String, String>,
    ) -> Result<Point, NoPoint> {
        if !evaluation.part.is_empty() {
            labels.insert("part".to_owned(), evaluation.part.clone());
        }
        let redrawn = evaluation.redrawn;
        if redrawn.run_again > 0 {
            let words = format!("{} trials, {} PASS; first draws count", redrawn.run_again, redrawn.run_again_passed);
            labels.insert(RUN_AGAIN.to_owned(), words);
        }
        if redrawn.failed_before > 0 {
            labels.insert("drawn anew".to_owned(), format!("{} trials that were FAIL", redrawn.failed_before));
        }
        if redrawn.replaced_errors > 0 {
            labels.insert("outages run again".to_owned(), redrawn.replaced_errors.to_string());
        }
        if self.errors > 0 {
            return Err(NoPoint::Errors(self.errors));
        }
        if self.held {
            return Err(NoPoint::Held);
        }
        let mode = match self.modes.iter().copied().collect::<Vec<_>>().as_slice() {
            [] => return Err(NoPoint::NoTrials),
            [Mode::Imported] => return Err(NoPoint::Imported),
            [mode] => *mode,
            _ => return Err(NoPoint::MixedModes),
        };
        let id = self.identity();
        let conditions = Conditions {
            mode: mode_word(mode),
            models: self.models,
            answered_by: self.answered_by,
            concurrency,
            cases: digest(&mut self.lanes.into_iter()),
        };
        let times = times(evaluation);
        let answered = times.is_none_or(|times| times.p95_us.is_some());
        Ok(Point {
            version: if answered { ANSWERED_VERSION } else { POINT_VERSION },
            id,
            at: self.latest.unwrap_or_else(|| now.to_owned()),
            conditions,
            labels,
            scenarios: self.scenarios,
            trials: evaluation.trials.len() as u64,
            rates: rates(evaluation),
            times,
            doubt: "",
        })
    }
}

/// Digest of those texts in that order: sixteen hexadecimal digits.
fn digest(parts: &mut dyn Iterator<Item = String>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hex::encode(&hash.finalize()[..8])
}

fn rates(evaluation: &Evaluation) -> Vec<Rate> {
    let rows = evaluation.criteria.iter().chain(&evaluation.gates);
    let measured = rows.filter(|row| row.n > 0 && row.verdict != Verdict::Error && !row.proxy);
    let rate = |row: &crate::gate::CriterionResult| Rate {
        key: row.key(),
        metric: row.metric.clone(),
        target: row.target.clone(),
        successes: row.successes,
        n: row.n,
    };
    measured.map(rate).collect()
}

/// Times of the turns in which nothing fails on purpose. `None` if recorded and simulated ones are mixed: they are never
/// averaged.
fn times(evaluation: &Evaluation) -> Option<Times> {
    let (mut all, mut rest) = (Vec::new(), evaluation.turn_times_us.as_slice());
    let mut kinds = BTreeSet::new();
    for counted in &evaluation.turn_kinds {
        let (these, later) = rest.split_at_checked(usize::try_from(counted.turns).ok()?)?;
        rest = later;
        if counted.is_usual() {
            kinds.insert(&counted.kind);
            all.extend_from_slice(these);
        }
    }
    if kinds.len() > 1 {
        return None;
    }
    all.sort_unstable();
    let answered = |time: u64| (time != u64::MAX).then_some(time);
    let (p50, p95) = nearest_rank(&all, 0.5).zip(nearest_rank(&all, 0.95))?;
    Some(Times { n: all.len() as u64, p50_us: answered(p50), p95_us: answered(p95) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{KindCount, evaluate};
    use crate::metric::sample::{good, plan, story};

    fn point(recorded_at: &str, criteria: &str, live: bool) -> Result<Point, NoPoint> {
        let plan = plan("[{case: a, ask: q}, {case: b, ask: q}]", criteria, 2);
        let traces: Vec<Trace> = (0..4)
            .map(|place| {
                let mut trace = good(&plan, place);
                trace.evidence.recorded_at = Some(recorded_at.into());
                if live {
                    (trace.evidence.mode, trace.evidence.recorded_at) = (Mode::Live, None);
                }
                trace
            })
            .collect();
        let mut gather = Gather::default();
        for trace in &traces {
            gather.add(trace);
        }
        let evaluation = evaluate(&plan, traces.into_iter().map(Ok)).expect("judged");
        gather.finish(&evaluation, "2026-11-22T08:00:00Z", 4, BTreeMap::new())
    }

    const RATE: &str = "[{id: A, metric: turn_success_rate, target: '>= 90%', kind: confidence}]";

    #[test]
    fn a_recording_is_one_point_whatever_it_is_judged_by() {
        let first = point("2026-11-21T08:00:00Z", RATE, false).expect("a point");
        let judged_otherwise = point("2026-11-21T08:00:00Z", "[]", false).expect("a point");
        assert_eq!((first.id.as_str(), first.at.as_str()), (judged_otherwise.id.as_str(), "2026-11-21T08:00:00Z"));
        assert_eq!((first.rates.len(), first.rates[0].successes, first.rates[0].n), (1, 4, 4));
        let taken_again = point("2026-11-22T08:00:00Z", RATE, false).expect("a point");
        assert_ne!(taken_again.id, first.id);
        assert_eq!(taken_again.conditions, first.conditions);
    }

    #[test]
    fn a_live_run_has_the_time_that_it_was_made_at_and_conditions_of_its_own() {
        let live = point("", RATE, true).expect("a point");
        assert_eq!(live.at, "2026-11-22T08:00:00Z");
        assert_ne!(live.conditions, point("2026-11-21T08:00:00Z", RATE, false).expect("a point").conditions);
    }

    #[test]
    fn recorded_and_simulated_times_are_not_averaged() {
        let plan = plan("[{case: a, ask: q}]", "[]", 2);
        let mut traces = vec![good(&plan, 0), good(&plan, 1)];
        let times_of = |traces: &[Trace]| times(&evaluate(&plan, traces.iter().cloned().map(Ok)).expect("judged"));
        assert_eq!(times_of(&traces).map(|times| times.n), Some(2));
        traces[1].evidence.recorded_from = "openai gpt-5".into();
        assert_eq!(times_of(&traces), None);
    }

    #[test]
    fn times_of_declared_faults_are_left_out_and_the_others_kept() {
        let plan = plan("[{case: a, ask: q}]", "[]", 2);
        let traces = [good(&plan, 0), good(&plan, 1)];
        let mut evaluation = evaluate(&plan, traces.into_iter().map(Ok)).expect("judged");
        let of_kind = |kind: &str| KindCount { kind: kind.to_owned(), turns: 1 };
        evaluation.turn_kinds = vec![of_kind("recorded"), of_kind("recorded, declared faults")];
        assert_eq!(times(&evaluation).map(|times| times.n), Some(1));
    }

    #[test]
    fn a_run_whose_p95_got_no_answer_keeps_its_p50_and_says_so() {
        let plan = plan("[{case: a, ask: q}]", "[]", 10);
        let of = |unanswered: usize| {
            let traces = (0..10).map(|place| {
                let story = story(&plan, place).turn("q");
                let fails = place < unanswered;
                Ok(if fails { story.fail("timeout").done() } else { story.deliver("so", &[], 2_000_000).done() })
            });
            times(&evaluate(&plan, traces).expect("judged")).expect("ten turns")
        };
        assert_eq!(of(0), Times { n: 10, p50_us: Some(2_000_000), p95_us: Some(2_000_000) });
        assert_eq!(of(2), Times { n: 10, p50_us: Some(2_000_000), p95_us: None });
        assert_eq!(of(9), Times { n: 10, p50_us: None, p95_us: None });
    }

    #[test]
    fn a_run_with_trials_in_error_is_no_point() {
        let plan = plan("[{case: a, ask: q}]", "[]", 1);
        let mut trace = good(&plan, 0);
        trace.end = TrialEnd::Error(crate::trace::TrialError {
            kind: crate::trace::TrialErrorKind::Provider,
            message: "down".into(),
            cause: "down".into(),
            detail: Vec::new(),
        });
        let mut gather = Gather::default();
        gather.add(&trace);
        let evaluation = evaluate(&plan, std::iter::once(Ok(trace))).expect("judged");
        let refused = gather.finish(&evaluation, "2026-11-22T08:00:00Z", 4, BTreeMap::new());
        assert_eq!(refused, Err(NoPoint::Errors(1)));
    }
}
