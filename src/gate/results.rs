//! Compact storage of every trial's result: a run may have a million trials.
//!
//! Names are stored once for all trials of a case in a variant, and equal lists of checks once for all trials that
//! share them (as all that pass do). Rare values (departures, an error, an unusual id) are stored separately. Results
//! are read as a [`TrialRow`].

use super::row::{LaneRow, TrialRow};
use super::{Draws, RetryCounts, TrialResult, Verdict};
use crate::metric::Check;
use crate::trace::Arm;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Values shared by the trials of one case in one variant and arm.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Names {
    scenario: Box<str>,
    case: Box<str>,
    flow: Box<str>,
    variant: Box<str>,
    arm: Arm,
}

impl Names {
    fn are(&self, result: &TrialResult) -> bool {
        *self.case == *result.case
            && *self.variant == *result.lane.variant
            && self.arm == result.lane.arm
            && *self.scenario == *result.scenario
            && *self.flow == *result.lane.flow
    }
}

/// Values that few trials have.
#[derive(Debug, Clone, Default)]
struct Rare {
    /// An id that cannot be derived from the names.
    id: Option<Box<str>>,
    departures: Vec<String>,
    error: String,
    draws: Draws,
}

/// Evidence of a trial, and the requested model.
type Source = (Box<str>, Box<str>);

/// Marks an absent value: no result in a slot, no number, nothing rare.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Packed {
    /// [`NONE`] while the slot is empty.
    names: u32,
    checks: u32,
    rare: u32,
    /// [`NONE`] if there is no evidence.
    evidence: u32,
    repetition: u32,
    turns: u32,
    model_calls: u32,
    tool_calls: u32,
    retries: RetryCounts,
    // u64::MAX is an unknown number, NaN an unknown cost.
    tokens: [u64; 3],
    cost: f64,
    slowest_turn_us: u64,
    took_us: u64,
    verdict: Verdict,
}

const EMPTY: Packed = Packed {
    names: NONE,
    checks: NONE,
    rare: NONE,
    evidence: NONE,
    repetition: 0,
    turns: 0,
    model_calls: 0,
    tool_calls: 0,
    retries: RetryCounts { transport: 0, model: 0, tool: 0 },
    tokens: [u64::MAX; 3],
    cost: f64::NAN,
    slowest_turn_us: u64::MAX,
    took_us: 0,
    verdict: Verdict::Error,
};

/// The results of a run's trials, in plan order.
#[derive(Debug, Clone, Default)]
pub struct TrialResults {
    packed: Vec<Packed>,
    names: Vec<Names>,
    known_names: HashMap<Names, u32>,
    checks: Vec<Arc<[Check]>>,
    known_checks: HashMap<Arc<[Check]>, u32>,
    rare: Vec<Rare>,
    evidence: Vec<Source>,
    known_evidence: HashMap<Source, u32>,
    /// The names of the last result, which usually fit the next one.
    last: u32,
}

impl TrialResults {
    /// Creates `number` empty slots.
    pub(super) fn slots(number: usize) -> Self {
        Self { packed: vec![EMPTY; number], ..Self::default() }
    }

    /// All results, unpacked.
    #[cfg(test)]
    pub(crate) fn to_vec(&self) -> Vec<TrialResult> {
        let written = serde_json::to_string(self).expect("is written");
        serde_json::from_str(&written).expect("is read")
    }

    /// Number of results.
    pub fn len(&self) -> usize {
        self.packed.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// The verdict at `place`, if there is a result.
    pub(super) fn verdict(&self, place: usize) -> Option<Verdict> {
        self.packed.get(place).filter(|packed| packed.names != NONE).map(|packed| packed.verdict)
    }

    /// Keeps the first `number`.
    pub(super) fn truncate(&mut self, number: usize) {
        self.packed.truncate(number);
    }

    /// Stores a result in the slot at `place`, which must exist.
    pub(super) fn put(&mut self, place: usize, result: TrialResult) {
        let packed = self.pack(result);
        self.packed[place] = packed;
    }

    fn pack(&mut self, result: TrialResult) -> Packed {
        let names = self.names_of(&result);
        let unusual = format!("{}/{}/{}", result.scenario, result.case, result.lane) != result.id;
        let rare = unusual || !result.departures.is_empty() || !result.error.is_empty() || !result.draws.is_empty();
        let tokens = [result.input_tokens, result.cached_tokens, result.output_tokens];
        let packed = Packed {
            names,
            checks: self.checks_of(result.checks),
            evidence: self.evidence_of(&result.evidence, &result.model),
            rare: if rare { self.rare.len() as u32 } else { NONE },
            repetition: result.lane.repetition,
            turns: result.turns,
            model_calls: result.model_calls,
            tool_calls: result.tool_calls,
            retries: result.retries,
            tokens: tokens.map(|number| number.unwrap_or(u64::MAX)),
            cost: result.cost.unwrap_or(f64::NAN),
            slowest_turn_us: result.slowest_turn_us.unwrap_or(u64::MAX),
            took_us: result.took_us,
            verdict: result.verdict,
        };
        if rare {
            let id = unusual.then(|| result.id.into_boxed_str());
            self.rare.push(Rare { id, departures: result.departures, error: result.error, draws: result.draws });
        }
        packed
    }

    fn names_of(&mut self, result: &TrialResult) -> u32 {
        if self.names.get(self.last as usize).is_some_and(|names| names.are(result)) {
            return self.last;
        }
        let names = Names {
            scenario: result.scenario.as_str().into(),
            case: result.case.as_str().into(),
            flow: result.lane.flow.as_str().into(),
            variant: result.lane.variant.as_str().into(),
            arm: result.lane.arm,
        };
        self.last = *self.known_names.entry(names.clone()).or_insert(self.names.len() as u32);
        if self.last as usize == self.names.len() {
            self.names.push(names);
        }
        self.last
    }

    /// The number of a source; a run has few distinct ones.
    fn evidence_of(&mut self, text: &str, model: &str) -> u32 {
        if text.is_empty() && model.is_empty() {
            return NONE;
        }
        let source = (text.into(), model.into());
        let number = *self.known_evidence.entry(source).or_insert(self.evidence.len() as u32);
        if number as usize == self.evidence.len() {
            self.evidence.push((text.into(), model.into()));
        }
        number
    }

    fn checks_of(&mut self, checks: Vec<Check>) -> u32 {
        if checks.is_empty() {
            return NONE;
        }
        if let Some(number) = self.known_checks.get(checks.as_slice()) {
            return *number;
        }
        let (checks, number): (Arc<[Check]>, u32) = (checks.into(), self.checks.len() as u32);
        // Lists with a failed check describe observations and are rarely equal.
        if checks.iter().all(|check| check.passed) {
            self.known_checks.insert(Arc::clone(&checks), number);
        }
        self.checks.push(checks);
        number
    }

    /// The result at `place`; `None` if there is none.
    pub fn get(&self, place: usize) -> Option<TrialRow<'_>> {
        let packed = self.packed.get(place)?;
        let names = self.names.get(packed.names as usize)?;
        let rare = self.rare.get(packed.rare as usize);
        let source = self.evidence.get(packed.evidence as usize);
        let known = |number: u64| (number != u64::MAX).then_some(number);
        let lane =
            LaneRow { flow: &names.flow, variant: &names.variant, repetition: packed.repetition, arm: names.arm };
        let id = match rare.and_then(|rare| rare.id.as_deref()) {
            Some(id) => Cow::Borrowed(id),
            None => Cow::Owned(format!("{}/{}/{lane}", names.scenario, names.case)),
        };
        Some(TrialRow {
            id,
            scenario: &names.scenario,
            case: &names.case,
            lane,
            verdict: packed.verdict,
            checks: self.checks.get(packed.checks as usize).map_or(&[], |checks| checks),
            departures: rare.map_or(&[], |rare| &rare.departures),
            error: rare.map_or("", |rare| &rare.error),
            turns: packed.turns,
            model_calls: packed.model_calls,
            tool_calls: packed.tool_calls,
            retries: packed.retries,
            input_tokens: known(packed.tokens[0]),
            cached_tokens: known(packed.tokens[1]),
            output_tokens: known(packed.tokens[2]),
            cost: (!packed.cost.is_nan()).then_some(packed.cost),
            slowest_turn_us: known(packed.slowest_turn_us),
            took_us: packed.took_us,
            evidence: source.map_or("", |(evidence, _)| evidence),
            model: source.map_or("", |(_, model)| model),
            draws: rare.map_or_else(Cow::default, |rare| Cow::Borrowed(&rare.draws)),
        })
    }

    /// Iterates over all results in plan order.
    pub fn iter(&self) -> TrialRows<'_> {
        self.within(0..self.len())
    }

    /// Iterates over the results at some places in plan order.
    pub(crate) fn within(&self, places: Range<usize>) -> TrialRows<'_> {
        TrialRows { results: self, places: places.start..places.end.min(self.len()) }
    }
}

/// Iterator over the results of a run, in plan order.
#[derive(Debug, Clone)]
pub struct TrialRows<'a> {
    results: &'a TrialResults,
    places: Range<usize>,
}

impl<'a> Iterator for TrialRows<'a> {
    type Item = TrialRow<'a>;

    fn next(&mut self) -> Option<TrialRow<'a>> {
        self.places.find_map(|place| self.results.get(place))
    }
}

impl<'a> IntoIterator for &'a TrialResults {
    type Item = TrialRow<'a>;
    type IntoIter = TrialRows<'a>;

    fn into_iter(self) -> TrialRows<'a> {
        self.iter()
    }
}

impl FromIterator<TrialResult> for TrialResults {
    fn from_iter<I: IntoIterator<Item = TrialResult>>(results: I) -> Self {
        let mut all = Self::default();
        for result in results {
            let packed = all.pack(result);
            all.packed.push(packed);
        }
        all
    }
}

impl PartialEq for TrialResults {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Serialize for TrialResults {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for TrialResults {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = TrialResults;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of trials")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<TrialResults, A::Error> {
                let mut all = TrialResults::default();
                while let Some(result) = list.next_element::<TrialResult>()? {
                    let packed = all.pack(result);
                    all.packed.push(packed);
                }
                Ok(all)
            }
        }
        deserializer.deserialize_seq(Read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::evaluate;
    use crate::metric::sample::{good, plan, story};

    fn results() -> Vec<TrialResult> {
        let plan = plan("[{case: a, ask: q, control: true}, {case: b, ask: q}]", "[]", 2);
        let traces = (0..plan.trials.len()).skip(1).map(|place| {
            Ok(if place == 4 { story(&plan, place).turn("q").fail("timeout").done() } else { good(&plan, place) })
        });
        let evaluated = evaluate(&plan, traces).expect("a judgement");
        let mut results = evaluated.trials.to_vec();
        results[1].id = "elsewhere".into();
        results[1].departures = vec!["turn 1: lost".into()];
        (results[2].cost, results[2].cached_tokens, results[2].input_tokens) = (Some(0.25), Some(0), None);
        results
    }

    #[test]
    fn what_is_packed_comes_out_as_it_went_in_and_reads_as_a_list_of_results() {
        let results = results();
        let packed: TrialResults = results.iter().cloned().collect();
        assert_eq!(packed.to_vec(), results);
        let written = serde_json::to_string_pretty(&packed).expect("JSON");
        assert_eq!(written, serde_json::to_string_pretty(&results).expect("JSON"));
        assert_eq!(serde_json::from_str::<TrialResults>(&written).expect("read"), packed);
    }

    #[test]
    fn trials_that_pass_share_names_and_checks() {
        let plan = plan("[{case: a, ask: q}]", "[]", 50);
        let traces = (0..50).map(|place| Ok(good(&plan, place)));
        let trials = evaluate(&plan, traces).expect("a judgement").trials;
        assert_eq!((trials.names.len(), trials.checks.len(), trials.rare.len()), (1, 1, 0));
        assert!(size_of::<Packed>() <= 96);
    }

    #[test]
    fn a_plan_in_runs_is_judged_like_its_list() {
        let rate = "[{id: T, metric: turn_success_rate, target: '>= 90%', kind: confidence}]";
        let mut plan = plan("[{case: a, ask: q, control: true}, {case: b, ask: q}]", rate, 12);
        for trial in plan.trials.iter_mut() {
            trial.seed = crate::plan::trial_seed(plan.seed, &trial.id);
        }
        let runs: crate::plan::Plan = serde_json::from_slice(&plan.json(0).expect("JSON")).expect("read");
        let told = || {
            (0..plan.trials.len()).rev().filter(|place| place % 7 != 0).map(|place| {
                Ok(if place % 5 == 0 {
                    story(&plan, place).turn("q").fail("timeout").done()
                } else {
                    good(&plan, place)
                })
            })
        };
        let (listed, in_runs) = (evaluate(&plan, told()).expect("judged"), evaluate(&runs, told()).expect("judged"));
        assert_eq!(listed.errors[0].trials.len(), 6);
        assert_eq!(listed, in_runs);
    }
}
