//! Writes `requirements.csv`: one row per requirement, with how it is shown.

use super::{Encoding, PART};
use crate::gate::{CaseCounts, RequirementCoverage, RequirementState};
use crate::report::{Format, View};
use crate::trace::REQUIREMENTS_CSV;
use crate::trace::columns::{Column, column, whole_column};
use crate::trace::text::cell;
use std::io::{self, Write};

pub(super) const FORMATS: &[Format] =
    &[Format { name: "csv", file: REQUIREMENTS_CSV, write: |view, out| requirements(view, out, Encoding::Csv) }];

/// The state of requirements that were not examined, in words.
pub(in crate::report) const NOT_EXAMINED: &str = "not examined: ragcheck mutate";

/// Values of one row.
pub(crate) struct RequirementCells<'a> {
    coverage: &'a RequirementCoverage,
    part: &'a str,
}

impl RequirementCells<'_> {
    fn sum(&self, count: fn(&CaseCounts) -> u32) -> u64 {
        self.coverage.cases.iter().map(|case| u64::from(count(case))).sum()
    }
}

/// Columns of `requirements.csv`.
pub(crate) fn columns<'a>() -> Vec<Column<RequirementCells<'a>>> {
    vec![
        column("id", "the requirement", |row| cell(&row.coverage.id)),
        column("about", "the requirement in a few words", |row| cell(&row.coverage.about)),
        column("source", "its source as the project states it", |row| cell(&row.coverage.source)),
        column(
            "state",
            "`asserted`, `recorded only`, `tested outside runs`, `named only`, or `not examined: ragcheck mutate` \
             ([mutants](../how-to/mutate.md))",
            |row| row.coverage.state.map_or(NOT_EXAMINED, RequirementState::as_str).into(),
        ),
        column("why", "what keeps it from being asserted, or the tests that show it", |row| cell(&row.coverage.why)),
        column("cases", "cases that name it, joined by `; `", |row| {
            let cases: Vec<&str> = row.coverage.cases.iter().map(|case| case.case.as_str()).collect();
            cell(&cases.join("; ")).into_owned().into()
        }),
        whole_column("passed", "trials of these cases that passed", |row| Some(row.sum(|case| case.passed))),
        whole_column("trials", "trials of these cases that were run", |row| Some(row.sum(|case| case.trials))),
        column("part", PART, |row| cell(row.part)),
    ]
}

/// Writes `requirements.csv` or `requirements.parquet`.
pub(super) fn requirements(view: &View<'_>, out: &mut dyn Write, encoding: Encoding) -> io::Result<()> {
    let part = view.evaluation.part.as_str();
    let rows = view.evaluation.requirements.iter().map(|coverage| RequirementCells { coverage, part });
    encoding.write(out, &columns(), rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{sample, tests::written};

    #[test]
    fn a_requirement_that_was_not_examined_says_so_and_an_examined_one_has_its_state() {
        let mut run = sample::run(1);
        let first = &mut run.evaluation.requirements[0];
        (first.state, first.why) = (Some(RequirementState::TestedOutsideRuns), "=a::test".into());
        let text = written(&FORMATS[0], &run.view());
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows[0], columns().iter().map(|column| column.name).collect::<Vec<_>>().join(","));
        assert_eq!(
            rows[1],
            "FR-002,Knowledge base search,,tested outside runs,'=a::test,heat-pumps/defrost-cycle; \
             edge-cases/hostile-words,4,8,"
        );
        assert!(rows[3].starts_with("FR-014,Citations of both kept to the end,,not examined: ragcheck mutate,"));
    }
}
