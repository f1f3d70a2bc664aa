//! Misses that follow from an answer of an earlier turn: the agent sends it back as history.

use super::cause::note_in_words;
use super::examine::Examiner;
use crate::metric::grounding::FactLookup;
use crate::metric::turns::turns;
use crate::metric::{Check, TrialView, TurnView, expectation};
use crate::plan::PlannedTrial;
use crate::trace::{Arm, Trace, TrialError, TrialErrorKind, TurnOutcome};

impl Examiner<'_> {
    /// The error of a trial that passed when it was recorded, and whose `miss` follows an answer that its turn does not
    /// expect, with that check; `None` if the answers before it are the expected ones.
    pub(super) fn after_answer(
        &self,
        trial: &PlannedTrial,
        trace: &Trace,
        miss: &TrialError,
    ) -> Option<(TrialError, Check)> {
        let passed = trace.evidence.noted_verdict.as_deref() == Some("PASS");
        if miss.kind != TrialErrorKind::CassetteMiss || !passed || trial.lane.arm == Arm::Control {
            return None;
        }
        let scenario = &self.plan.scenarios[trial.scenario];
        // What the whole case expects is open while a turn is missing.
        let mut case = scenario.cases[trial.case].clone();
        (case.case.expect, case.case.asks_nothing) = (None, false);
        let conversation = trace.events.last()?.conversation;
        let mut answered = turns(&case.case, trace);
        answered.retain(|turn| turn.conversation == conversation && is_answered(turn));
        let view = TrialView {
            plan: self.plan,
            trial,
            scenario,
            case: &case,
            trace,
            turns: &answered,
            checks: &[],
            departures: None,
            grades: &[],
            passages: &[],
            facts: &FactLookup::default(),
        };
        let checks = expectation::checks(&view, &self.patterns[trial.scenario][trial.case]);
        let of_answer = |what: &str| what.split_once(": ").is_some_and(|(_, what)| what.starts_with("answer."));
        let mut failed = checks.into_iter().filter(|check| !check.passed && check.unknown.is_none());
        let failed = failed.find(|check| of_answer(&check.what))?;
        Some((miss.after(note_in_words(&format!("{}: {}", failed.what, failed.seen)), []), failed))
    }
}

fn is_answered(turn: &TurnView<'_>) -> bool {
    turn.ended().is_some_and(|ended| matches!(ended.outcome, TurnOutcome::Answered(_)))
}

#[cfg(test)]
mod tests {
    use crate::gate::{Evaluation, evaluate};
    use crate::metric::sample::{plan, story};
    use crate::trace::{TrialEnd, TrialError};

    const CASES: &str = "[{case: a, turns: [{ask: q, expect: {answer: {contains: ['17:30']}}}, {ask: r}]}]";

    /// The evaluation of a trial whose second turn misses after this answer, and whose recording came to `verdict`.
    fn missed(answer: &str, verdict: &str) -> Evaluation {
        let plan = plan(CASES, "[]", 1);
        let told = story(&plan, 0).turn("q").answer(answer, &[]).turn("r");
        let mut trace = told.error("message 2 (assistant) changed");
        trace.evidence.noted_verdict = Some(verdict.to_owned());
        if let TrialEnd::Error(miss) = &mut trace.end {
            let vars = "  friday: {at: '/messages/2/content'}";
            let lines = ["- 17:30", "re-record: ragcheck run", TrialError::GENERATED, vars];
            miss.detail = lines.map(str::to_owned).to_vec();
        }
        evaluate(&plan, std::iter::once(Ok(trace))).expect("judged")
    }

    #[test]
    fn a_miss_after_an_answer_that_its_turn_does_not_expect_begins_with_the_expectation_and_proposes_nothing() {
        let found = missed("From 9:00 to 20:00.", "PASS");
        let [error] = &found.errors[..] else { panic!("{:?}", found.errors) };
        assert_eq!(error.kind, "turn failed");
        let begin = "turn 1: expected \"17:30\", which is not in the answer; the answer says: From 9:00 to 20:00.";
        assert_eq!(error.message, begin);
        let after = "so a later request is not recorded: miss: message 2 (assistant) changed";
        assert_eq!(error.detail, [after, "- 17:30"]);
        let shown: Vec<String> = found.trials.iter().map(|trial| trial.checks[0].what.clone()).collect();
        assert_eq!(shown, ["turn 1: answer.contains: 17:30"], "what `show` begins with");
        for (answer, verdict) in [("From 9:00 to 17:30.", "PASS"), ("From 9:00 to 20:00.", "FAIL")] {
            let found = missed(answer, verdict);
            assert_eq!((&*found.errors[0].kind, found.errors[0].detail.len()), ("cassette miss", 4), "{answer}");
        }
    }
}
