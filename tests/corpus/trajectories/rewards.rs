//! tau-bench's airline conversations: 50 tasks of 4 trials, with the rates that its authors published.

use super::unzipped;
use ragcheck::internals::gate::{Evaluation, Verdict, evaluate};
use ragcheck::internals::suite::import::{Imported, messages};
use ragcheck::internals::trace::{ToolOutcome, What};

const FILE: &str = "tau-bench/gpt-4o-airline.json.gz";

fn imported() -> Imported {
    messages("gpt-4o-airline.json.gz", unzipped(FILE).as_bytes(), None).expect("conversations")
}

fn evaluated(read: &Imported) -> Evaluation {
    evaluate(&read.plan, read.traces.iter().cloned().map(Ok)).expect("a judgement")
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn the_published_rates_come_out() {
    let read = imported();
    let evaluation = evaluated(&read);
    let [found] = <[_; 1]>::try_from(evaluation.repeats).expect("one scenario and variant");
    assert_eq!((found.cases, found.repetitions, found.not_measured.as_str()), (50, 4, ""));
    for (k, (all, any)) in [(0.42, 0.42), (0.2733, 0.5667), (0.22, 0.66), (0.2, 0.72)].into_iter().enumerate() {
        assert!((found.all[k] - all).abs() < 5e-5, "pass^{}: {}", k + 1, found.all[k]);
        assert!((found.any[k] - any).abs() < 5e-5, "pass@{}: {}", k + 1, found.any[k]);
    }
    assert!(found.standard_error.is_some_and(|error| (error - 0.0522).abs() < 5e-5), "{:?}", found.standard_error);
    assert!(found.naive_error.is_some_and(|error| (error - 0.0349).abs() < 5e-5), "{:?}", found.naive_error);
    let passed = evaluation.trials.iter().filter(|trial| trial.verdict == Verdict::Pass).count();
    assert_eq!((passed, evaluation.trials.len(), evaluation.errors.len()), (84, 200, 0));
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn every_message_reaches_the_traces_and_no_time_is_made_up() {
    let read = imported();
    let events = || read.traces.iter().flat_map(|trace| &trace.events);
    let count = |wanted: fn(&What) -> bool| events().filter(|event| wanted(&event.what)).count();
    // 1490 messages of users, of which 149 are closing words; 2454 of the agent; 1164 calls, each with its result.
    assert_eq!(count(|what| matches!(what, What::TurnStarted { .. })), 1490 - 149);
    assert_eq!(count(|what| matches!(what, What::ModelCalled(_))), 2454);
    assert_eq!(
        count(|what| matches!(what, What::ToolCalled(call) if matches!(call.outcome, ToolOutcome::Ok(_)))),
        1164
    );
    assert_eq!(count(|what| matches!(what, What::ToolCalled(call) if !call.arguments.is_object())), 0);
    let evaluation = evaluated(&read);
    assert!(evaluation.turn_times_us.is_empty());
    let answers = &evaluation.criteria[0];
    // The other 51 conversations end with the result of a call, not with words.
    assert_eq!((answers.successes, answers.n), (1290, 1341), "{}", answers.sentence);
    assert!(answers.evidence.starts_with("IMPORTED, from gpt-4o-airline.json.gz"), "{}", answers.evidence);
}
