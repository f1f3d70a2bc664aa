//! Writes `trials.csv` (one row per trial), `criteria.csv` (one row per criterion or gate) and `violations.csv` (one
//! row per unit that fails a criterion) for spreadsheets and data frames. `docs/reference/csv.md` describes every
//! column.
//!
//! Times are whole milliseconds, rates are shares of 0 to 1 with six decimals, unknown figures are empty. A text cell
//! that a spreadsheet would read as a formula is prefixed with an apostrophe; numbers are unchanged. New columns are
//! added last, so that readers by position keep working. `part` names the selection of a partial run; it is empty for a
//! whole one.

use crate::gate::{CriterionResult, Source, Unshown};
use crate::report::{Format, View};
use crate::scenario::{Target, parse_target};
use crate::stats::percent::{Rounding, rounded};
use crate::trace::text::cell;
use crate::trace::{Arm, CRITERIA_CSV, TRIALS_CSV, VIOLATIONS_CSV};
use std::borrow::Cow;
use std::io::{self, Write};

pub(super) const FORMATS: &[&dyn Format] = &[&TrialsCsv, &CriteriaCsv, &ViolationsCsv];

/// Writes `trials.csv`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrialsCsv;

/// Writes `criteria.csv`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CriteriaCsv;

/// Writes `violations.csv`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ViolationsCsv;

const TRIAL_COLUMNS: [&str; 31] = [
    "id",
    "scenario",
    "case",
    "flow",
    "variant",
    "repetition",
    "arm",
    "verdict",
    "turns",
    "model_calls",
    "tool_calls",
    "retries_transport",
    "retries_model",
    "retries_tool",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "cost_usd",
    "slowest_turn_ms",
    "took_ms",
    "failed_checks",
    "error",
    "part",
    "mode",
    "model",
    "recorded_on",
    "evidence",
    "draw",
    "earlier_draws",
    "run_again",
    "replaced_errors",
];

const CRITERION_COLUMNS: [&str; 38] = [
    "id",
    "scenario",
    "metric",
    "kind",
    "target",
    "required",
    "verdict",
    "n",
    "successes",
    "observed",
    "lower",
    "upper",
    "excluded_n",
    "errors",
    "evidence",
    "sentence",
    "part",
    "clusters",
    "distinct",
    "target_op",
    "target_value",
    "unit",
    "observed_rate",
    "observed_seconds",
    "interval_lower",
    "interval_upper",
    "mode",
    "model",
    "recorded_on",
    "recorded_from",
    "unshown",
    "floor",
    "min_n",
    "run_again",
    "run_again_passed",
    "per",
    "per_unit",
    "per_conversation",
];

const VIOLATION_COLUMNS: [&str; 15] = [
    "criterion",
    "scenario",
    "trial",
    "case",
    "flow",
    "variant",
    "repetition",
    "unit",
    "reason",
    "required",
    "verdict",
    "mode",
    "model",
    "recorded_on",
    "part",
];

impl Format for TrialsCsv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn file(&self) -> &'static str {
        TRIALS_CSV
    }

    fn write(&self, view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut rows = ::csv::Writer::from_writer(out);
        rows.write_record(TRIAL_COLUMNS)?;
        let from = SourceColumns::of(&view.evaluation.sources);
        for trial in &view.evaluation.trials {
            let failed: Vec<_> =
                trial.checks.iter().filter(|check| !check.passed).map(|check| check.what.as_str()).collect();
            let failed = failed.into_iter().chain(trial.departures.iter().map(String::as_str)).collect::<Vec<_>>();
            let arm = if trial.lane.arm == Arm::Control { "control" } else { "main" };
            let row: [Cow<'_, str>; 31] = [
                cell(&trial.id),
                cell(trial.scenario),
                cell(trial.case),
                cell(trial.lane.flow),
                cell(trial.lane.variant),
                trial.lane.repetition.to_string().into(),
                arm.into(),
                trial.verdict.as_str().into(),
                trial.turns.to_string().into(),
                trial.model_calls.to_string().into(),
                trial.tool_calls.to_string().into(),
                trial.retries.transport.to_string().into(),
                trial.retries.model.to_string().into(),
                trial.retries.tool.to_string().into(),
                whole(trial.input_tokens).into(),
                whole(trial.cached_tokens).into(),
                whole(trial.output_tokens).into(),
                decimal(trial.cost).into(),
                milliseconds(trial.slowest_turn_us).into(),
                milliseconds(trial.took_us).into(),
                cell(&failed.join("; ")).into_owned().into(),
                cell(trial.error),
                cell(&view.evaluation.part),
                cell(&from.mode),
                cell(trial.model),
                cell(&from.dates),
                cell(trial.evidence),
                (trial.draws.earlier.len() + 1).to_string().into(),
                cell(&trial.draws.earlier.join("; ")).into_owned().into(),
                cell(&trial.draws.run_again.join("; ")).into_owned().into(),
                trial.draws.replaced_errors.to_string().into(),
            ];
            rows.write_record(row.iter().map(AsRef::as_ref))?;
        }
        rows.flush()
    }
}

impl Format for CriteriaCsv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn file(&self) -> &'static str {
        CRITERIA_CSV
    }

    fn write(&self, view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut rows = ::csv::Writer::from_writer(out);
        rows.write_record(CRITERION_COLUMNS)?;
        for row in view.evaluation.criteria.iter().chain(&view.evaluation.gates) {
            let part = cell(&view.evaluation.part);
            // Columns added after `part` follow it.
            let cells = criterion(row);
            let (before, after) = cells.split_at(16);
            rows.write_record(before.iter().chain([&part]).chain(after).map(AsRef::as_ref))?;
        }
        rows.flush()
    }
}

impl Format for ViolationsCsv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn file(&self) -> &'static str {
        VIOLATIONS_CSV
    }

    fn write(&self, view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut rows = ::csv::Writer::from_writer(out);
        rows.write_record(VIOLATION_COLUMNS)?;
        for row in view.evaluation.criteria.iter().chain(&view.evaluation.gates) {
            let from = SourceColumns::of(&row.sources);
            for violation in &row.violations {
                let mut parts = violation.trial.splitn(3, '/');
                let (scenario, case, lane) = (
                    parts.next().unwrap_or_default(),
                    parts.next().unwrap_or_default(),
                    parts.next().unwrap_or_default(),
                );
                let mut lane = lane.split('.');
                let (flow, variant, repetition) =
                    (lane.next().unwrap_or_default(), lane.next().unwrap_or_default(), lane.next().unwrap_or_default());
                let cells: [Cow<'_, str>; 15] = [
                    cell(&row.id),
                    cell(scenario),
                    cell(&violation.trial),
                    cell(case),
                    cell(flow),
                    cell(variant),
                    cell(repetition),
                    cell(&violation.unit),
                    cell(&violation.note),
                    row.required.to_string().into(),
                    row.verdict.as_str().into(),
                    cell(&from.mode),
                    cell(&from.model),
                    cell(&from.dates),
                    cell(&view.evaluation.part),
                ];
                rows.write_record(cells.iter().map(AsRef::as_ref))?;
            }
        }
        rows.flush()
    }
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

fn criterion(row: &CriterionResult) -> [Cow<'_, str>; 37] {
    let [op, value, unit] = target(&row.target);
    let seconds = unit == "s";
    let rate = if row.n == 0 {
        None
    } else if seconds {
        Some(row.successes as f64 / row.n as f64)
    } else {
        row.observed
    };
    let from = SourceColumns::of(&row.sources);
    [
        cell(&row.id),
        cell(row.scenario.as_deref().unwrap_or_default()),
        cell(&row.metric),
        cell(&row.kind),
        cell(&row.target),
        row.required.to_string().into(),
        row.verdict.as_str().into(),
        row.n.to_string().into(),
        row.successes.to_string().into(),
        decimal(row.observed).into(),
        bound(row.lower, Rounding::Down).into(),
        bound(row.upper, Rounding::Up).into(),
        row.excluded.iter().map(|excluded| excluded.n).sum::<u64>().to_string().into(),
        row.errors.to_string().into(),
        cell(&row.evidence),
        cell(&row.sentence),
        row.clusters.to_string().into(),
        row.distinct.to_string().into(),
        op.into(),
        value.into(),
        unit.into(),
        decimal(rate).into(),
        decimal(row.observed.filter(|_| seconds)).into(),
        bound(row.interval.map(|both| both.lower), Rounding::Down).into(),
        bound(row.interval.map(|both| both.upper), Rounding::Up).into(),
        cell(&from.mode).into_owned().into(),
        cell(&from.model).into_owned().into(),
        cell(&from.dates).into_owned().into(),
        cell(&from.services).into_owned().into(),
        row.unshown.map_or("", Unshown::as_str).into(),
        cell(&row.floor),
        row.min_n.map(|least| least.to_string()).unwrap_or_default().into(),
        row.run_again.to_string().into(),
        row.run_again_passed.to_string().into(),
        cell(&row.per),
        decimal(row.per_unit).into(),
        decimal(row.per_conversation).into(),
    ]
}

fn milliseconds(us: u64) -> String {
    (us / 1_000 + u64::from(us % 1_000 >= 500)).to_string()
}

fn whole(number: Option<u64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

fn decimal(number: Option<f64>) -> String {
    number.map(|number| format!("{number:.6}")).unwrap_or_default()
}

/// A bound with six decimals, rounded in the conservative direction.
fn bound(share: Option<f64>, rounding: Rounding) -> String {
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
        let rows = read(&written(&TrialsCsv, &run.view()));
        assert_eq!(rows[0], TRIAL_COLUMNS);
        assert_eq!(rows.len(), run.evaluation.trials.len() + 1);
        for (row, trial) in rows[1..].iter().zip(&run.evaluation.trials) {
            assert_eq!(row[7], trial.verdict.as_str());
            let rests = if trial.verdict == crate::gate::Verdict::Error { "" } else { "REPLAYED, recorded from " };
            assert!(row[26].starts_with(rests), "{row:?}");
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
        let rows = read(&written(&ViolationsCsv, &run.view()));
        assert_eq!(rows[0], VIOLATION_COLUMNS);
        let results = || run.evaluation.criteria.iter().chain(&run.evaluation.gates);
        assert_eq!(rows.len() - 1, results().map(|row| row.violations.len()).sum::<usize>());
        let first = results().flat_map(|row| &row.violations).next().expect("the sample has one");
        assert_eq!((rows[1][2].as_str(), rows[1][7].as_str()), (first.trial.as_str(), first.unit.as_str()));
        assert!(rows[1][2].starts_with(&format!("{}/{}/{}.{}.", rows[1][1], rows[1][3], rows[1][4], rows[1][5])));
    }

    #[test]
    fn criteria_and_gates_have_one_row_each_with_empty_cells_for_unknown_figures() {
        let run = sample::run(1);
        let rows = read(&written(&CriteriaCsv, &run.view()));
        assert_eq!(rows[0], CRITERION_COLUMNS);
        assert_eq!(rows.len(), run.evaluation.criteria.len() + run.evaluation.gates.len() + 1);
        let unmeasured = rows.iter().find(|row| row[6] == "NOT_MEASURED").expect("the sample has one");
        assert_eq!((unmeasured[7].as_str(), unmeasured[9].as_str()), ("0", ""));
    }
}
