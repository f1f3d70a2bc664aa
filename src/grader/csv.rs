//! Writes `judgements.csv`: `grades.jsonl` as a table for spreadsheets and data frames. New columns are added last.

use crate::trace::Grade;
use crate::trace::columns::{Column, column, write_rows};
use crate::trace::text::cell;
use std::io::{self, Write};

/// Columns of `judgements.csv`.
pub(crate) fn columns<'a>() -> Vec<Column<&'a Grade>> {
    vec![
        column("trial", "the trial, `id` in `trials.csv`", |one| cell(&one.trial)),
        column("turn", "the turn, in words", |one| cell(&one.label)),
        column("item", "the item of the rubric; empty for an answer that was not graded", |one| cell(&one.item)),
        column("verdict", "`pass`, `fail`, `inconsistent`, `error` or `not graded`", |one| cell(one.value.as_str())),
        column("evidence", "the words of the answer that decide, as the model quotes them", |one| cell(&one.evidence)),
        column("model", "the model that graded", |one| cell(&one.model)),
        column("reason", "the model's reason, or why there is no grade", |one| cell(&one.reason)),
        column("content", "digest of what was graded", |one| cell(&one.content)),
        column("graded_by", "service that answered: `simulator`, or a provider and its model", |one| cell(&one.from)),
        column("recorded_at", "when the grade was recorded", |one| {
            cell(one.recorded_at.as_deref().unwrap_or_default())
        }),
    ]
}

/// Writes one row per grade.
pub(crate) fn write_csv(out: &mut dyn Write, grades: &[Grade]) -> io::Result<()> {
    write_rows(out, &columns(), grades)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{GRADE_VERSION, GradeKind, GradeValue};

    #[test]
    fn a_quotation_that_a_spreadsheet_would_run_is_led_by_an_apostrophe() {
        let graded = Grade {
            version: GRADE_VERSION,
            trial: "s/a/x".into(),
            conversation: 0,
            turn: 0,
            label: "turn 1".into(),
            answer: String::new(),
            item: "one".into(),
            kind: GradeKind::Model,
            value: GradeValue::Pass,
            evidence: "=HYPERLINK(\"https://example.org\")".into(),
            reason: String::new(),
            model: "j".into(),
            from: String::new(),
            recorded_at: None,
            rubric: String::new(),
            content: "abc".into(),
            of: 0,
        };
        let missing = Grade {
            item: String::new(),
            value: GradeValue::NotGraded,
            evidence: String::new(),
            reason: "this answer was never graded".into(),
            content: "def".into(),
            ..graded.clone()
        };
        let mut text = Vec::new();
        write_csv(&mut text, &[graded, missing]).expect("written");
        let text = String::from_utf8(text).expect("UTF-8");
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows[1], "s/a/x,turn 1,one,pass,\"'=HYPERLINK(\"\"https://example.org\"\")\",j,,abc,,");
        assert_eq!(rows[2], "s/a/x,turn 1,,not graded,,j,this answer was never graded,def,,");
    }
}
