//! `junit.xml` for CI systems that show tests: one suite per scenario with a test per trial, one suite for the
//! criteria, and one for the gates; and one with a failing test if the run fails for a reason that no
//! other test shows.
//!
//! FAIL is a `failure`; ERROR is an `error`. INCONCLUSIVE and NOT_MEASURED are an `error` if the criterion is required
//! and `skipped` if not, because JUnit has no status for them and they must not show as passed. In a run with exit code 0,
//! all of them are `skipped` except ERROR: CI systems fail a job for one test. Characters that XML 1.0 does not allow are
//! left out.

use crate::gate::{CriterionResult, TrialRow, Verdict};
use crate::platform::distinct;
use crate::report::{Format, View, figures};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::io::{self, Write};
use std::time::Duration;

pub(super) const FORMATS: &[Format] = &[Format { name: "junit", file: "junit.xml", write }];

/// Writes `junit.xml`.
fn write(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let evaluation = view.evaluation;
    let mut report = Report::new("ragcheck");
    let passes = view.exit_code() == 0;
    let of = |rows: &[CriterionResult]| rows.iter().map(|row| criterion(row, passes)).collect::<Vec<_>>();
    let mut suites = vec![suite("criteria", of(&evaluation.criteria)), suite("gates", of(&evaluation.gates))];
    if !evaluation.self_tests.is_empty() {
        suites.push(suite("self-tests", of(&evaluation.self_tests)));
    }
    let before = suites.len();
    for name in distinct(evaluation.trials.iter().map(|trial| trial.scenario)) {
        let own = evaluation.trials.iter().filter(|one| one.scenario == name);
        suites.push(suite(name, own.map(|one| trial(&one, passes))));
    }
    let fails = suites.iter().any(|suite| suite.failures + suite.errors > 0);
    if !passes && (view.decided.is_some() || !fails) {
        suites.insert(before, suite("exit code", std::iter::once(exit(view))));
    }
    report.add_test_suites(suites);
    report.serialize(out).map_err(io::Error::other)
}

fn suite(name: &str, tests: impl IntoIterator<Item = TestCase>) -> TestSuite {
    let mut suite = TestSuite::new(name);
    suite.add_test_cases(tests.into_iter().map(|mut test| {
        test.set_classname(name);
        test
    }));
    suite
}

/// The test of an exit code that the other tests do not show.
fn exit(view: &View<'_>) -> TestCase {
    let kind = if view.exit_code() == 1 { NonSuccessKind::Failure } else { NonSuccessKind::Error };
    let status = not_passed(TestCaseStatus::non_success(kind), view.why(), "");
    TestCase::new(format!("exit code {}", view.exit_code()), status)
}

/// A test that did not pass; the message is the first line of the reason, the description the rest.
fn not_passed(mut status: TestCaseStatus, message: &str, detail: &str) -> TestCaseStatus {
    status.set_message(message);
    if !detail.is_empty() {
        status.set_description(detail);
    }
    status
}

/// Maximum number of violations listed in a criterion's test.
const LISTED: usize = 100;

fn criterion(row: &CriterionResult, passes: bool) -> TestCase {
    let name = match &row.scenario {
        Some(scenario) => format!("{scenario}: {}: {}", row.id, row.about),
        None => format!("{}: {}", row.id, row.about),
    };
    let status = match row.verdict {
        Verdict::Pass => return TestCase::new(name, TestCaseStatus::success()),
        Verdict::Fail if row.required && !passes => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Verdict::Error if row.required || !passes => TestCaseStatus::non_success(NonSuccessKind::Error),
        Verdict::NotMeasured if row.not_measured_ok => TestCaseStatus::skipped(),
        Verdict::Inconclusive | Verdict::NotMeasured if row.required && !passes => {
            TestCaseStatus::non_success(NonSuccessKind::Error)
        }
        // A criterion that does not decide the exit code must not fail a pipeline.
        _ => TestCaseStatus::skipped(),
    };
    let detail: Vec<_> =
        row.violations.iter().take(LISTED).map(|one| format!("{}: {}: {}", one.trial, one.unit, one.note)).collect();
    let message = format!("{}: {}", figures::verdict(row), row.sentence);
    TestCase::new(name, not_passed(status, &message, &detail.join("\n")))
}

fn trial(trial: &TrialRow<'_>, passes: bool) -> TestCase {
    let failed = trial.checks.iter().filter(|check| !check.passed);
    let mut lines: Vec<_> = failed.map(|check| format!("{}: {}", check.what, check.seen)).collect();
    lines.extend(trial.departures.iter().cloned());
    let failure = |kind| TestCaseStatus::non_success(kind);
    let status = match trial.verdict {
        Verdict::Pass => TestCaseStatus::success(),
        Verdict::Error => not_passed(failure(NonSuccessKind::Error), trial.error, ""),
        Verdict::Fail => {
            let first = lines.first().cloned().unwrap_or_default();
            if passes {
                not_passed(
                    TestCaseStatus::skipped(),
                    &format!("{}: {first}", trial.verdict.as_str()),
                    &lines.join("\n"),
                )
            } else {
                not_passed(failure(NonSuccessKind::Failure), &first, &lines.join("\n"))
            }
        }
        other => not_passed(TestCaseStatus::skipped(), other.as_str(), ""),
    };
    let mut test = TestCase::new(trial.id.to_string(), status);
    test.set_time(Duration::from_micros(trial.took_us));
    test
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{DecidedExit, sample, tests::written};

    #[test]
    fn every_opened_element_is_closed_and_nothing_hostile_is_markup() {
        let text = written(&FORMATS[0], &sample::run(2).view());
        let mut open = Vec::new();
        for tag in text.split('<').skip(1) {
            let tag = tag.split('>').next().expect("a tag has an end");
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name));
            } else if !tag.ends_with('/') && !tag.starts_with('?') {
                open.push(tag.split(' ').next().expect("a name"));
            }
            assert!(!tag.starts_with("img") && !tag.starts_with("script"), "{tag}");
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn each_trial_and_each_criterion_is_one_test() {
        let run = sample::run(2);
        let tests = written(&FORMATS[0], &run.view()).matches("<testcase ").count();
        let evaluation = &run.evaluation;
        assert_eq!(tests, evaluation.trials.len() + evaluation.criteria.len() + evaluation.gates.len());
    }

    #[test]
    fn a_run_that_fails_by_more_than_its_criteria_has_a_test_that_fails() {
        let run = sample::run(2);
        let with = |exit_code| {
            let decided = DecidedExit { exit_code, why: "the test runner ended with exit code 7".into() };
            written(&FORMATS[0], &View { decided: Some(&decided), ..run.view() })
        };
        for (exit_code, element) in [(1, "failure"), (3, "error")] {
            let test = format!("<testcase name=\"exit code {exit_code}\" classname=\"exit code\">");
            let text = with(exit_code);
            let (_, after) = text.split_once(&test).expect("a test");
            let message = format!("<{element} message=\"the test runner ended with exit code 7\"");
            assert!(after.trim_start().starts_with(&message), "{after:.200}");
        }
        let passing = with(0);
        assert!(!passing.contains("<failure") && !passing.contains("exit code"), "a run that passes fails no test");
        assert!(passing.contains("<skipped message=\"FAIL: "), "{passing}");
    }

    #[test]
    fn a_run_fails_a_test_exactly_if_it_does_not_pass() {
        let mut run = sample::passing();
        let text = |run: &sample::Run| written(&FORMATS[0], &run.view());
        let red = |text: &str| text.contains("<failure") || text.contains("<error");
        assert!(!red(&text(&run)));
        (run.evaluation.exit_code, run.evaluation.conclusion) = (1, "no gate is required, so nothing was shown".into());
        let failing = text(&run);
        assert!(failing.contains("<failure message=\"no gate is required, so nothing was shown\""), "{failing}");
        assert_eq!(failing.matches("<failure").count(), 1, "{failing}");
        // `undecided: warn` lets a gate through that is met and not shown.
        run.evaluation.exit_code = 0;
        let undecided = sample::run(1).evaluation.criteria.into_iter();
        let undecided = undecided.filter(|row| row.verdict == Verdict::Inconclusive);
        run.evaluation.criteria.extend(undecided.map(|row| CriterionResult { required: true, ..row }));
        let through = text(&run);
        assert!(!red(&through) && through.contains("INCONCLUSIVE"), "{through}");
    }

    #[test]
    fn a_required_criterion_without_a_decision_is_an_error_and_never_passes() {
        let run = sample::run(1);
        let row = run.evaluation.criteria.iter().find(|row| row.verdict == Verdict::Inconclusive).expect("sample");
        let with = |required| criterion(&CriterionResult { required, ..row.clone() }, false).status;
        assert!(matches!(with(true), TestCaseStatus::NonSuccess { kind: NonSuccessKind::Error, .. }));
        assert!(matches!(with(false), TestCaseStatus::Skipped { .. }));
        let failed = |required| CriterionResult { required, verdict: Verdict::Fail, ..row.clone() };
        let fails = |required| criterion(&failed(required), false).status;
        assert!(matches!(fails(true), TestCaseStatus::NonSuccess { kind: NonSuccessKind::Failure, .. }));
        assert!(matches!(fails(false), TestCaseStatus::Skipped { .. }));
    }
}
