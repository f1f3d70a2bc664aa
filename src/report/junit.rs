//! `junit.xml`: for CI systems that show tests. A suite a scenario with a test a trial, and one suite for the criteria
//! and one for the gates.
//!
//! FAIL is a `failure`; ERROR is an `error`. INCONCLUSIVE and NOT_MEASURED are an `error` where the criterion is
//! required and `skipped` where it is not, for JUnit has no word for them and must not show them as passed. Characters
//! that XML 1.0 does not allow are dropped.

use super::{Format, View};
use crate::gate::{CriterionResult, TrialRow, Verdict};
use std::io::{self, Write};

/// Writes `junit.xml`.
#[derive(Debug, Clone, Copy)]
pub struct Junit;

struct Test {
    name: String,
    seconds: Option<f64>,
    outcome: Option<(&'static str, String, String)>,
}

impl Format for Junit {
    fn name(&self) -> &'static str {
        "junit"
    }

    fn file(&self) -> &'static str {
        "junit.xml"
    }

    fn write(&self, view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
        let evaluation = view.evaluation;
        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        writeln!(out, "<testsuites name=\"ragcheck\">")?;
        suite(out, "criteria", &evaluation.criteria.iter().map(criterion).collect::<Vec<_>>())?;
        suite(out, "gates", &evaluation.gates.iter().map(criterion).collect::<Vec<_>>())?;
        let mut names: Vec<&str> = Vec::new();
        for trial in &evaluation.trials {
            if names.last() != Some(&trial.scenario) && !names.contains(&trial.scenario) {
                names.push(trial.scenario);
            }
        }
        for name in names {
            let tests: Vec<_> =
                evaluation.trials.iter().filter(|one| one.scenario == name).map(|one| trial(&one)).collect();
            suite(out, name, &tests)?;
        }
        writeln!(out, "</testsuites>")
    }
}

fn criterion(row: &CriterionResult) -> Test {
    let name = match &row.scenario {
        Some(scenario) => format!("{scenario}: {}: {}", row.id, row.about),
        None => format!("{}: {}", row.id, row.about),
    };
    let detail: Vec<_> =
        row.violations.iter().map(|one| format!("{}: {}: {}", one.trial, one.unit, one.note)).collect();
    let kind = match row.verdict {
        Verdict::Pass => None,
        Verdict::Fail => Some("failure"),
        Verdict::Error => Some("error"),
        Verdict::NotMeasured if row.not_measured_ok => Some("skipped"),
        Verdict::Inconclusive | Verdict::NotMeasured if row.required => Some("error"),
        Verdict::Inconclusive | Verdict::NotMeasured => Some("skipped"),
    };
    let message = format!("{}: {}", row.verdict.as_str(), row.sentence);
    Test { name, seconds: None, outcome: kind.map(|kind| (kind, message, detail.join("\n"))) }
}

fn trial(trial: &TrialRow<'_>) -> Test {
    let failed = trial.checks.iter().filter(|check| !check.passed);
    let mut lines: Vec<_> = failed.map(|check| format!("{}: {}", check.what, check.seen)).collect();
    lines.extend(trial.departures.iter().cloned());
    let outcome = match trial.verdict {
        Verdict::Pass => None,
        Verdict::Error => Some(("error", trial.error.to_owned(), String::new())),
        Verdict::Fail => Some(("failure", lines.first().cloned().unwrap_or_default(), lines.join("\n"))),
        other => Some(("skipped", other.as_str().to_owned(), String::new())),
    };
    Test { name: trial.id.to_string(), seconds: Some(trial.took_us as f64 / 1e6), outcome }
}

fn suite(out: &mut dyn Write, name: &str, tests: &[Test]) -> io::Result<()> {
    let number = |kind| tests.iter().filter(|test| matches!(&test.outcome, Some((it, ..)) if *it == kind)).count();
    let (failures, errors, skipped) = (number("failure"), number("error"), number("skipped"));
    let name = escaped(name);
    writeln!(
        out,
        "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\">",
        tests.len()
    )?;
    for test in tests {
        write!(out, "    <testcase classname=\"{name}\" name=\"{}\"", escaped(&test.name))?;
        if let Some(seconds) = test.seconds {
            write!(out, " time=\"{seconds:.3}\"")?;
        }
        match &test.outcome {
            None => writeln!(out, "/>")?,
            Some((kind, message, detail)) => {
                writeln!(out, ">\n      <{kind} message=\"{}\">{}</{kind}>", escaped(message), escaped(detail))?;
                writeln!(out, "    </testcase>")?;
            }
        }
    }
    writeln!(out, "  </testsuite>")
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' | '\t' => out.push_str(if character == '\n' { "&#10;" } else { "&#9;" }),
            '\u{fffe}' | '\u{ffff}' => {}
            character if character.is_control() => {}
            character => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{sample, tests::written};

    #[test]
    fn control_characters_are_dropped_and_markup_is_escaped() {
        assert_eq!(escaped("a\u{0}\u{1b}<b a='\"'>&\n"), "a&lt;b a=&apos;&quot;&apos;&gt;&amp;&#10;");
    }

    #[test]
    fn every_opened_element_is_closed_and_nothing_hostile_is_markup() {
        let text = written(&Junit, &sample::run(2).view());
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
        let tests = written(&Junit, &run.view()).matches("<testcase ").count();
        let evaluation = &run.evaluation;
        assert_eq!(tests, evaluation.trials.len() + evaluation.criteria.len() + evaluation.gates.len());
    }

    #[test]
    fn a_required_criterion_without_a_decision_is_an_error_and_never_passes() {
        let run = sample::run(1);
        let row = run.evaluation.criteria.iter().find(|row| row.verdict == Verdict::Inconclusive).expect("sample");
        let with = |required| criterion(&CriterionResult { required, ..row.clone() }).outcome.expect("not passed").0;
        assert_eq!((with(true), with(false)), ("error", "skipped"));
    }
}
