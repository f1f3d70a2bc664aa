//! Tables of trials (one row per trial), criteria (one row per criterion or gate) and violations (one row per unit that
//! fails a criterion), for spreadsheets and data frames; as CSV here, as Parquet by the same columns.
//!
//! Times are whole milliseconds, rates are shares of 0 to 1 with six decimals, unknown figures are empty. A text cell
//! that a spreadsheet would read as a formula is prefixed with an apostrophe; numbers are unchanged. New columns are
//! added last, so that readers by position keep working. The tables of columns also make `docs/reference/csv.md`.

use crate::gate::{CriterionResult, Source, TrialRow, Unshown, Violation, day_of};
use crate::report::formats::encoding::Encoding;
use crate::report::{Format, View};
use crate::scenario::{Target, parse_target};
use crate::stats::percent::{Rounding, rounded};
use crate::trace::columns::{Column, column, decimal_column, flag_column, whole_column};
use crate::trace::text::cell;
use crate::trace::{Arm, CRITERIA_CSV, TRIALS_CSV, VIOLATIONS_CSV};
use std::io::{self, Write};

pub(super) const FORMATS: &[Format] = &[
    Format { name: "csv", file: TRIALS_CSV, write: |view, out| trials(view, out, Encoding::Csv) },
    Format { name: "csv", file: CRITERIA_CSV, write: |view, out| criteria(view, out, Encoding::Csv) },
    Format { name: "csv", file: VIOLATIONS_CSV, write: |view, out| violations(view, out, Encoding::Csv) },
];

/// Meaning of `part`, in every file.
pub(in crate::report) const PART: &str = "which part of the planned run this is, in words; empty for a complete run";
/// Meaning of `recorded_on`.
pub(super) const DAYS: &str = "days of the recordings, `2026-11-22`; several are joined by `; `";

/// Values of one row of `trials.csv`.
pub(crate) struct TrialCells<'a> {
    trial: TrialRow<'a>,
    part: &'a str,
    from: &'a SourceColumns,
}

/// Columns of `trials.csv`.
pub(crate) fn trial_columns<'a>() -> Vec<Column<TrialCells<'a>>> {
    vec![
        column("id", "`scenario/case/flow.variant.repetition`, followed by `.control` for a control arm", |row| {
            cell(&row.trial.id)
        }),
        column("scenario", "the scenario", |row| cell(row.trial.scenario)),
        column("case", "the case", |row| cell(row.trial.case)),
        column("flow", "the agent's flow", |row| cell(row.trial.lane.flow)),
        column("variant", "the variant", |row| cell(row.trial.lane.variant)),
        whole_column("repetition", "the repetition, from 1", |row| Some(row.trial.lane.repetition.into())),
        column("arm", "`main`, or `control` for the same case with history withheld", |row| {
            if row.trial.lane.arm == Arm::Control { "control".into() } else { "main".into() }
        }),
        column("verdict", "PASS, FAIL, NOT_MEASURED or ERROR", |row| row.trial.verdict.as_str().into()),
        whole_column("turns", "number of turns", |row| Some(row.trial.turns.into())),
        whole_column("model_calls", "number of completions of the model", |row| Some(row.trial.model_calls.into())),
        whole_column("tool_calls", "number of tool calls, executed or not", |row| Some(row.trial.tool_calls.into())),
        whole_column("retries_transport", "HTTP attempts after the first", |row| {
            Some(row.trial.retries.transport.into())
        }),
        whole_column("retries_model", "feedback to the model about a missing or invalid call", |row| {
            Some(row.trial.retries.model.into())
        }),
        whole_column("retries_tool", "repeated calls of a tool that failed or rejected its arguments", |row| {
            Some(row.trial.retries.tool.into())
        }),
        whole_column("input_tokens", "input tokens; empty where a service reported none", |row| row.trial.input_tokens),
        whole_column("cached_tokens", "input tokens from the provider's cache; empty where none was reported", |row| {
            row.trial.cached_tokens
        }),
        whole_column("output_tokens", "output tokens; empty where a service reported none", |row| {
            row.trial.output_tokens
        }),
        decimal_column("cost_usd", "US dollars; empty where tokens or a price are unknown", |row| {
            decimal(row.trial.cost).into()
        }),
        whole_column(
            "slowest_turn_ms",
            "time of the slowest turn that ended, in whole milliseconds; empty where it was not recorded",
            |row| row.trial.slowest_turn_us.map(milliseconds),
        ),
        whole_column("took_ms", "time of the trial in whole milliseconds; empty where it was not recorded", |row| {
            let known = row.trial.took_us > 0 || row.trial.slowest_turn_us.is_some();
            known.then(|| milliseconds(row.trial.took_us))
        }),
        column("failed_checks", "expectations that do not hold, in words, joined by `; `", |row| {
            let failed = row.trial.checks.iter().filter(|check| !check.passed).map(|check| check.what.as_str());
            let failed: Vec<_> = failed.chain(row.trial.departures.iter().map(String::as_str)).collect();
            cell(&failed.join("; ")).into_owned().into()
        }),
        column("error", "why the trial could not be run, in words", |row| cell(row.trial.error)),
        column("part", PART, |row| cell(row.part)),
        column("mode", "REPLAYED, LIVE or IMPORTED; of the run", |row| cell(&row.from.mode)),
        column("model", "the requested model; empty for a trial that did not run", |row| cell(row.trial.model)),
        column("recorded_on", "day of its recording, `2026-11-22`; empty without one", |row| {
            day_of(row.trial.evidence).into()
        }),
        column("evidence", "source of the trial's figures, in words", |row| cell(row.trial.evidence)),
        whole_column("draw", "number of the draw that counts", |row| Some(row.trial.draws.earlier.len() as u64 + 1)),
        column("earlier_draws", "verdicts of earlier draws, joined by `; `", |row| {
            cell(&row.trial.draws.earlier.join("; ")).into_owned().into()
        }),
        column(
            "run_again",
            "verdicts of later draws, which do not count; `unknown` for a draw of a run that was killed before it was judged",
            |row| cell(&row.trial.draws.run_again.join("; ")).into_owned().into(),
        ),
        whole_column("replaced_errors", "number of earlier draws that ended in ERROR", |row| {
            Some(row.trial.draws.replaced_errors.into())
        }),
    ]
}

/// Values of one row of `criteria.csv`.
pub(crate) struct CriterionCells<'a> {
    result: &'a CriterionResult,
    self_test: bool,
    part: &'a str,
    target: [String; 3],
    from: SourceColumns,
}

impl CriterionCells<'_> {
    fn is_time(&self) -> bool {
        self.target[2] == "s"
    }

    /// The observed share; for a time, the share within the limit.
    fn rate(&self) -> Option<f64> {
        let result = self.result;
        match (result.n, self.is_time()) {
            (0, _) => None,
            (n, true) => Some(result.successes as f64 / n as f64),
            (_, false) => result.observed,
        }
    }
}

/// Columns of `criteria.csv`.
pub(crate) fn criterion_columns<'a>() -> Vec<Column<CriterionCells<'a>>> {
    vec![
        column("id", "the criterion; for a gate of a scenario, its name there", |row| cell(&row.result.id)),
        column("scenario", "the scenario of a gate; empty for a criterion that counts all scenarios", |row| {
            cell(row.result.scenario.as_deref().unwrap_or_default())
        }),
        column("metric", "what is counted", |row| cell(&row.result.metric)),
        column("kind", "`invariant`, `confidence` or `point`", |row| cell(&row.result.kind)),
        column("target", "the target as written", |row| cell(&row.result.target)),
        flag_column("required", "whether it decides the exit code: `true` or `false`", |row| row.result.required),
        column("verdict", "PASS, FAIL, INCONCLUSIVE, NOT_MEASURED or ERROR", |row| row.result.verdict.as_str().into()),
        whole_column("n", "number of measured units", |row| Some(row.result.n)),
        whole_column("successes", "successes as the metric counts them; for a time, units within the limit", |row| {
            Some(row.result.successes)
        }),
        decimal_column("observed", "the observed figure in the target's unit", |row| {
            decimal(row.result.observed).into()
        }),
        decimal_column(
            "lower",
            "one-sided lower bound on the rate, rounded down. 95 %, unless it can only make a `confidence` criterion FAIL: \
             those 5 % are shared among the required ones of the run",
            |row| bound(row.result.lower, Rounding::Down).into(),
        ),
        decimal_column("upper", "one-sided upper bound on the rate, rounded up; its level as for `lower`", |row| {
            bound(row.result.upper, Rounding::Up).into()
        }),
        whole_column("excluded_n", "units of excluded cases", |row| {
            Some(row.result.excluded.iter().map(|excluded| excluded.n).sum())
        }),
        whole_column("errors", "trials in ERROR that would have counted", |row| Some(row.result.errors)),
        column("evidence", "source of the figure, in words", |row| cell(&row.result.evidence)),
        column("sentence", "the verdict in words", |row| cell(&row.result.sentence)),
        column("part", PART, |row| cell(row.part)),
        whole_column("clusters", "independent units: trials, or cases", |row| Some(row.result.clusters)),
        whole_column("distinct", "different conversations among them", |row| Some(row.result.distinct)),
        column("target_op", "operator of the target: `>=`, `<=` or `=`", |row| row.target[0].as_str().into()),
        decimal_column("target_value", "number of the target", |row| row.target[1].as_str().into()),
        column("unit", "unit of the target: `share` (0 to 1) or `s`", |row| row.target[2].as_str().into()),
        decimal_column("observed_rate", "the observed share, 0 to 1; for a time, the share within the limit", |row| {
            decimal(row.rate()).into()
        }),
        decimal_column("observed_seconds", "the observed time in seconds; empty for a rate", |row| {
            decimal(row.result.observed.filter(|_| row.is_time())).into()
        }),
        decimal_column("interval_lower", "lower end of the two-sided 95 % interval, for display", |row| {
            bound(row.result.interval.map(|both| both.lower), Rounding::Down).into()
        }),
        decimal_column("interval_upper", "upper end of the same interval", |row| {
            bound(row.result.interval.map(|both| both.upper), Rounding::Up).into()
        }),
        column("mode", "REPLAYED, LIVE or IMPORTED; several are joined by `; `", |row| cell(&row.from.mode)),
        column("model", "the models as requested, joined by `; `", |row| cell(&row.from.model)),
        column("recorded_on", DAYS, |row| cell(&row.from.dates)),
        column("recorded_from", "services that answered, joined by `; `", |row| cell(&row.from.services)),
        column("unshown", "of an INCONCLUSIVE one: `met` (and not proven), `below target` or `cannot pass`", |row| {
            row.result.unshown.map_or("", Unshown::as_str).into()
        }),
        column("floor", "the floor as written; empty without one", |row| cell(&row.result.floor)),
        whole_column("min_n", "the least number of trials or cases as written; empty without one", |row| {
            row.result.min_n.map(u64::from)
        }),
        whole_column(
            "run_again",
            "trials with units that were run again since; every figure is of their first draw",
            |row| Some(row.result.run_again),
        ),
        whole_column("run_again_passed", "how many of these passed when last run", |row| {
            Some(row.result.run_again_passed)
        }),
        column("per", "what the rate counts: `unit` or `conversation` ([verdicts](../why/verdicts.md))", |row| {
            cell(&row.result.per)
        }),
        decimal_column("per_unit", "observed share of all units", |row| decimal(row.result.per_unit).into()),
        decimal_column("per_conversation", "observed mean of the shares of the conversations", |row| {
            decimal(row.result.per_conversation).into()
        }),
        flag_column("self_test", "whether it tests what the flow itself promises: `true` or `false`", |row| {
            row.self_test
        }),
        decimal_column(
            "corrected",
            "the observed share corrected for the grader's errors, which decides; empty without",
            |row| decimal(row.result.corrected.and_then(|one| one.rate)).into(),
        ),
        decimal_column("grader_f", "share of the answers that people fail and the grader passes", |row| {
            decimal(row.result.corrected.map(|one| one.f)).into()
        }),
        decimal_column("grader_g", "share of the answers that people pass and the grader fails", |row| {
            decimal(row.result.corrected.map(|one| one.g)).into()
        }),
    ]
}

/// Values of one row of `violations.csv`.
pub(crate) struct ViolationCells<'a> {
    result: &'a CriterionResult,
    violation: &'a Violation,
    part: &'a str,
    from: &'a SourceColumns,
}

impl<'a> ViolationCells<'a> {
    /// A part of the trial's id: scenario, case, flow, variant or repetition, by its place.
    fn place(&self, at: usize) -> &'a str {
        let mut parts = self.violation.trial.splitn(3, '/');
        match at {
            0 | 1 => parts.nth(at),
            _ => parts.nth(2).and_then(|lane| lane.split('.').nth(at - 2)),
        }
        .unwrap_or_default()
    }
}

/// Columns of `violations.csv`.
pub(crate) fn violation_columns<'a>() -> Vec<Column<ViolationCells<'a>>> {
    vec![
        column("criterion", "the violated criterion, `id` in `criteria.csv`", |row| cell(&row.result.id)),
        column("scenario", "scenario of the trial", |row| cell(row.place(0))),
        column("trial", "the trial, `id` in `trials.csv`", |row| cell(&row.violation.trial)),
        column("case", "case of the trial", |row| cell(row.place(1))),
        column("flow", "flow of the trial", |row| cell(row.place(2))),
        column("variant", "variant of the trial", |row| cell(row.place(3))),
        whole_column("repetition", "repetition of the trial, from 1", |row| row.place(4).parse().ok()),
        column("unit", "turn, call or passage within the trial", |row| cell(&row.violation.unit)),
        column("reason", "the reason, in words", |row| cell(&row.violation.note)),
        flag_column("required", "whether the criterion decides the exit code: `true` or `false`", |row| {
            row.result.required
        }),
        column("verdict", "verdict of the criterion", |row| row.result.verdict.as_str().into()),
        column("mode", "REPLAYED, LIVE or IMPORTED; several are joined by `; `", |row| cell(&row.from.mode)),
        column("model", "the models as requested, joined by `; `", |row| cell(&row.from.model)),
        column("recorded_on", DAYS, |row| cell(&row.from.dates)),
        column("part", PART, |row| cell(row.part)),
    ]
}

/// Writes `trials.csv` or `trials.parquet`.
pub(super) fn trials(view: &View<'_>, out: &mut dyn Write, encoding: Encoding) -> io::Result<()> {
    let (part, from) = (view.evaluation.part.as_str(), SourceColumns::of(&view.evaluation.sources));
    let rows = view.evaluation.trials.iter().map(|trial| TrialCells { trial, part, from: &from });
    encoding.write(out, &trial_columns(), rows)
}

/// Writes `criteria.csv` or `criteria.parquet`.
pub(super) fn criteria(view: &View<'_>, out: &mut dyn Write, encoding: Encoding) -> io::Result<()> {
    let gates = (view.evaluation.criteria.len() + view.evaluation.gates.len()) as u64;
    let rows = (0..).zip(view.evaluation.rows()).map(|(place, result)| CriterionCells {
        result,
        self_test: place >= gates,
        part: &view.evaluation.part,
        target: target(&result.target),
        from: SourceColumns::of(&result.sources),
    });
    encoding.write(out, &criterion_columns(), rows)
}

/// Writes `violations.csv` or `violations.parquet`.
pub(super) fn violations(view: &View<'_>, out: &mut dyn Write, encoding: Encoding) -> io::Result<()> {
    let part = view.evaluation.part.as_str();
    let results = view.evaluation.rows();
    let results: Vec<_> = results.map(|result| (result, SourceColumns::of(&result.sources))).collect();
    let rows = results.iter().flat_map(|(result, from)| {
        result.violations.iter().map(move |violation| ViolationCells { result, violation, part, from })
    });
    encoding.write(out, &violation_columns(), rows)
}

/// Sources of figures, as columns; several are joined by `; `.
pub(super) struct SourceColumns {
    mode: String,
    pub(super) model: String,
    pub(super) dates: String,
    services: String,
}

impl SourceColumns {
    pub(super) fn of(sources: &[Source]) -> Self {
        let joined = |each: &dyn Fn(&Source) -> Vec<String>| {
            let mut words: Vec<String> = sources.iter().flat_map(each).filter(|word| !word.is_empty()).collect();
            words.sort();
            words.dedup();
            words.join("; ")
        };
        Self {
            mode: joined(&|source| vec![source.mode.to_string()]),
            model: joined(&|source| vec![source.model.clone()]),
            dates: joined(&|source| source.dates.clone()),
            services: joined(&|source| vec![source.from.clone()]),
        }
    }
}

/// A target as operator, number and unit: `>=`, 0.95, `share`; `<=`, 10, `s`.
fn target(text: &str) -> [String; 3] {
    let number = |value: f64| format!("{value:.6}").trim_end_matches('0').trim_end_matches('.').to_owned();
    let exact = if text.trim_start().starts_with('=') { Some("=") } else { None };
    match parse_target(text) {
        Ok(Target::AtLeastRate(rate)) => [exact.unwrap_or(">=").into(), number(rate), "share".into()],
        Ok(Target::AtMostRate(rate)) => [exact.unwrap_or("<=").into(), number(rate), "share".into()],
        Ok(Target::AtMostTime(limit)) => ["<=".into(), number(limit.as_secs_f64()), "s".into()],
        Err(_) => Default::default(),
    }
}

fn milliseconds(us: u64) -> u64 {
    us / 1_000 + u64::from(us % 1_000 >= 500)
}

pub(in crate::report) fn decimal(number: Option<f64>) -> String {
    number.map(|number| format!("{number:.6}")).unwrap_or_default()
}

/// A bound with six decimals, rounded in the conservative direction.
pub(in crate::report) fn bound(share: Option<f64>, rounding: Rounding) -> String {
    share.map(|share| rounded(share, 6, rounding)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{sample, tests::written};

    fn read(text: &str) -> Vec<Vec<String>> {
        let mut reader = ::csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
        reader.records().map(|row| row.expect("a row").iter().map(str::to_owned).collect()).collect()
    }

    #[test]
    fn each_trial_has_one_row_under_the_named_columns() {
        let run = sample::run(2);
        let rows = read(&written(&FORMATS[0], &run.view()));
        assert_eq!(rows[0], trial_columns().iter().map(|column| column.name).collect::<Vec<_>>());
        assert_eq!(rows.len(), run.evaluation.trials.len() + 1);
        for (row, trial) in rows[1..].iter().zip(run.evaluation.trials.iter()) {
            assert_eq!(row[7], trial.verdict.as_str());
            let rests = if trial.verdict == crate::gate::Verdict::Error { "" } else { "REPLAYED, recorded from " };
            assert!(row[26].starts_with(rests), "{row:?}");
            assert_eq!(row[25], if row[26].is_empty() { "" } else { "2026-11-21" }, "{row:?}");
            assert!(!row.iter().any(|cell| cell.starts_with(['=', '@', '\t', '\r'])), "{row:?}");
        }
    }

    #[test]
    fn targets_are_an_operator_a_number_and_a_unit() {
        let parts = |text: &str| target(text).join("|");
        assert_eq!(parts(">= 95%"), ">=|0.95|share");
        assert_eq!(parts("= 100%"), "=|1|share");
        assert_eq!(parts("<= 5%"), "<=|0.05|share");
        assert_eq!(parts("<= 10s"), "<=|10|s");
    }

    #[test]
    fn each_violation_is_a_row_with_its_criterion_trial_and_reason() {
        let run = sample::run(2);
        let rows = read(&written(&FORMATS[2], &run.view()));
        assert_eq!(rows[0], violation_columns().iter().map(|column| column.name).collect::<Vec<_>>());
        let results = || run.evaluation.rows();
        assert_eq!(rows.len() - 1, results().map(|row| row.violations.len()).sum::<usize>());
        let first = results().flat_map(|row| &row.violations).next().expect("the sample has one");
        assert_eq!((rows[1][2].as_str(), rows[1][7].as_str()), (first.trial.as_str(), first.unit.as_str()));
        assert!(rows[1][2].starts_with(&format!("{}/{}/{}.{}.", rows[1][1], rows[1][3], rows[1][4], rows[1][5])));
    }

    #[test]
    fn criteria_and_gates_have_one_row_each_with_empty_cells_for_unknown_figures() {
        let run = sample::run(1);
        let rows = read(&written(&FORMATS[1], &run.view()));
        assert_eq!(rows[0], criterion_columns().iter().map(|column| column.name).collect::<Vec<_>>());
        assert_eq!(rows.len(), run.evaluation.criteria.len() + run.evaluation.gates.len() + 1);
        let unmeasured = rows.iter().find(|row| row[6] == "NOT_MEASURED").expect("the sample has one");
        assert_eq!((unmeasured[7].as_str(), unmeasured[9].as_str()), ("0", ""));
    }
}
