//! Summaries from a few numbers, for tests of the comparison.

use super::RepetitionCounts;
use super::collect::cases_row;
use super::summary::{BASELINE_VERSION, CASES, CaseFigures, Setting, Summary, TrialOutcome};
use super::usage::Usage;
use crate::settings::Enforcement;

/// A run of the scenario `s`: a case a row, with trials passed and trials run, the failing ones last.
pub(crate) fn summary(label: &str, cases: &[(&str, u64, u64)]) -> Summary {
    let set = |word: &str| [word.to_owned()].into();
    let figures = cases.iter().map(|(case, passed, trials)| CaseFigures {
        scenario: "s".into(),
        case: (*case).into(),
        variant: "base".into(),
        trials: *trials,
        passed: *passed,
        errors: 0,
        times: [].into(),
        turn_us: Some(2_000_000),
        units: [(CASES.to_owned(), (*passed, *trials).into())].into(),
        repetitions: [(
            CASES.to_owned(),
            (1..=*trials)
                .map(|number| RepetitionCounts {
                    repetition: number as u32,
                    successes: u64::from(number <= *passed),
                    n: 1,
                })
                .collect(),
        )]
        .into(),
        text: "t".into(),
        expected: "e".into(),
        copy_of: String::new(),
        trials_run: (1..=*trials)
            .map(|repetition| TrialOutcome {
                id: format!("s/{case}/tool-rag.base.{repetition}"),
                repetition: repetition as u32,
                passed: repetition <= *passed,
                why: if repetition <= *passed { String::new() } else { "it was wrong".into() },
            })
            .collect(),
        usage: Some(Usage {
            turns: *trials,
            answers: *trials,
            citing: *passed,
            citations: 2 * passed,
            model_calls: 3 * trials,
            tool_calls: 2 * trials,
            input_tokens: Some(100 * trials),
            output_tokens: Some(20 * trials),
            cost: Some(0.25 * *trials as f64),
            turns_us: (1..=*trials).map(|number| number * 1_000_000).collect(),
            ..Usage::default()
        }),
    });
    Summary {
        version: BASELINE_VERSION,
        label: label.into(),
        criteria: vec![cases_row()],
        gates: Some([("s".to_owned(), ">= 100%, confidence".to_owned())].into()),
        settings: vec![Setting {
            scenario: "s".into(),
            variant: "base".into(),
            flow: "tool-rag".into(),
            enforcement: Some(Enforcement::Feedback),
            provider: Some("simulator".into()),
            modes: set("REPLAYED"),
            recorded_from: set("simulator"),
            recorded_on: set("2026-11-21"),
            models: set("sim-1"),
            knowledge: set("k"),
            system_prompts: set("d"),
            ..Setting::default()
        }],
        cases: figures.collect(),
        stopped: None,
        part: String::new(),
        doubt: String::new(),
    }
}
