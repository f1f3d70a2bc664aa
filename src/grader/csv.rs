//! Writes `judgements.csv`: `grades.jsonl` as a table for spreadsheets and data frames.
//!
//! `verdict` is `pass`, `fail`, `inconsistent` or `error`; an ungraded answer has one row with the verdict `not graded`
//! and no item. New columns are added last.

use crate::trace::Grade;
use crate::trace::text::cell;
use std::io::{self, Write};

const COLUMNS: [&str; 10] =
    ["trial", "turn", "item", "verdict", "evidence", "model", "reason", "content", "graded_by", "recorded_at"];

/// Writes one row per grade.
///
/// # Errors
/// If writing fails.
pub(crate) fn write_csv(out: &mut dyn Write, grades: &[Grade]) -> io::Result<()> {
    let mut rows = ::csv::Writer::from_writer(out);
    rows.write_record(COLUMNS)?;
    for one in grades {
        let cells = [
            &one.trial,
            &one.label,
            &one.item,
            one.value.as_str(),
            &one.evidence,
            &one.model,
            &one.reason,
            &one.content,
            &one.from,
            one.recorded_at.as_deref().unwrap_or_default(),
        ];
        rows.write_record(cells.map(|text| cell(text).into_owned()))?;
    }
    rows.flush()
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
