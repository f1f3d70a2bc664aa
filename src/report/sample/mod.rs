//! A synthetic run for the tests of every format: all verdicts, errors, and texts that try to break out of their
//! context.
//!
//! Six cases are repeated `copies` times. Words vary with case and repetition (a small congruential generator), so that
//! repeated text does not make sizes look too small.

mod script;
mod verdicts;

use super::{Beside, Searchable, TimelineBuilder, Timelines, View};
use crate::gate::{Evaluation, Verdict, evaluate};
use crate::plan::{Plan, PlannedCase, PlannedScenario, PlannedTrial, PlannedVariant, ResolvedCase};
use crate::trace::{Arm, Lane, Trace};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Markup, a formula, a direction override and an escape sequence in one text.
pub const HOSTILE: &str =
    "</script><img src=x onerror=alert(1)> =cmd|' /C calc'!A0 \u{202e}gnp.exe\u{1b}[2J 🧨 {{ 7 * 7 }}";

/// Everything that a [`View`] borrows, and the underlying traces.
pub struct Run {
    pub plan: Plan,
    pub evaluation: Evaluation,
    pub timelines: Timelines,
    pub traces: Vec<Trace>,
}

impl Run {
    pub fn view(&self) -> View<'_> {
        View {
            plan: &self.plan,
            evaluation: &self.evaluation,
            timelines: &self.timelines,
            comparison: None,
            decided: None,
            pages: crate::report::Pages::default(),
        }
    }
}

const CASES: [(&str, &str, Verdict); 6] = [
    ("defrost-cycle", "The manual answers it: no external search.", Verdict::Pass),
    ("grant-this-year", "The manual cannot know: external search, keywords, one rate limit.", Verdict::Pass),
    ("skips-the-manual", "The model answers from memory, twice.", Verdict::Fail),
    ("hostile-words", "Documents and the model try to break the page.", Verdict::Fail),
    ("flow-temperature", "Its cassette lacks an exchange.", Verdict::Error),
    ("follow-up", "The second question needs the first.", Verdict::Pass),
];

/// A run of six cases, each repeated `copies` times.
pub fn run(copies: usize) -> Run {
    let mut traces = Vec::new();
    let mut trials = Vec::new();
    let mut planned = Vec::new();
    for (case, (name, _, verdict)) in CASES.iter().enumerate() {
        for repetition in 1..=copies {
            let variant = if repetition % 2 == 0 { "forced" } else { "base" };
            let lane = Lane {
                flow: "tool-rag".into(),
                variant: variant.into(),
                repetition: repetition as u32,
                arm: Arm::Main,
            };
            let scenario = if case < 3 { "heat-pumps" } else { "edge-cases" };
            let id = format!("{scenario}/{name}/{lane}");
            let seed = (case * 100_003 + repetition) as u64;
            let trace = script::trace(&id, scenario, name, &lane, seed, case);
            trials.push(verdicts::result(&trace, *verdict, case));
            planned.push(PlannedTrial { id, scenario: case / 3, case: case % 3, lane, seed });
            traces.push(trace);
        }
    }
    let plan = Plan {
        version: 1,
        seed: 7,
        scenarios: vec![scenario("heat-pumps", 0..3), scenario("edge-cases", 3..6)],
        trials: planned.into(),
        ..Plan::default()
    };
    let evaluated = evaluate(&plan, traces.iter().cloned().map(Ok)).expect("the sample can be judged");
    let evaluation = Evaluation {
        turn_kinds: evaluated.turn_kinds,
        latency: evaluated.latency,
        spending: evaluated.spending,
        ..verdicts::evaluation(trials, evaluated.turn_times_us)
    };
    let mut builder = TimelineBuilder::default();
    for (trace, result) in traces.iter().zip(&evaluation.trials.to_vec()) {
        builder.add(Some(trace), Beside::default(), result);
        builder.add_searchable(Searchable::of(trace), result);
    }
    Run { plan, evaluation, timelines: builder.finish(), traces }
}

/// A run of which nothing but what passes is left.
pub fn passing() -> Run {
    let mut run = run(1);
    let evaluation = &mut run.evaluation;
    for rows in [&mut evaluation.criteria, &mut evaluation.gates] {
        rows.retain(|row| row.verdict == Verdict::Pass);
    }
    (evaluation.trials, evaluation.errors, evaluation.exit_code) = (Arc::default(), Vec::new(), 0);
    run
}

fn scenario(name: &str, cases: std::ops::Range<usize>) -> PlannedScenario {
    let case = |(case, about, _): &(&str, &str, Verdict)| -> ResolvedCase {
        serde_json::from_value(json!({"case": case, "about": about, "turns": [{"ask": "?"}]})).expect("a case")
    };
    PlannedScenario {
        name: name.into(),
        file: format!("scenarios/{name}.yaml"),
        about: "Questions to a service manual.".into(),
        agent: None,
        knowledge: BTreeMap::new(),
        variants: [("base", ""), ("forced", "enforcement: forced")]
            .map(|(name, about)| PlannedVariant::named(name, about, "tool-rag"))
            .to_vec(),
        cases: CASES[cases]
            .iter()
            .map(|row| PlannedCase { table: None, line: 9, case: case(row), input: String::new() })
            .collect(),
        gates: Vec::new(),
    }
}
