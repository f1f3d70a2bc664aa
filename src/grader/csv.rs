//! `judgements.csv`: one row for each graded turn and item, for spreadsheets and data frames.
//!
//! `verdict` is `pass`, `fail`, `inconsistent` or `error`; a turn that was not graded at all has one row with the
//! verdict `not judged` and no item. New columns come last.

use super::grade::Graded;
use super::tasks::GradingTask;
use crate::trace::TrialError;
use crate::trace::text::cell;
use std::io::{self, Write};

const COLUMNS: [&str; 8] = ["trial", "turn", "item", "verdict", "evidence", "model", "reason", "content"];

/// One turn with the hash of its content and what came of grading it.
pub type Outcome<'a> = (&'a GradingTask, &'a str, &'a Result<Graded, TrialError>);

/// Writes the rows of all turns; `model` is the one that judged.
///
/// # Errors
/// When writing fails.
pub fn write_csv<'a>(
    out: &mut dyn Write,
    model: &str,
    outcomes: impl IntoIterator<Item = Outcome<'a>>,
) -> io::Result<()> {
    let mut rows = ::csv::Writer::from_writer(out);
    rows.write_record(COLUMNS)?;
    let mut row = |task: &GradingTask, item: &str, verdict: &str, quote: &str, reason: &str, hash: &str| {
        let cells = [&task.trial, &task.turn, item, verdict, quote, model, reason, hash];
        rows.write_record(cells.map(|text| cell(text).into_owned()))
    };
    for (task, hash, outcome) in outcomes {
        match outcome {
            Err(why) => row(task, "", "not judged", "", &why.message, hash)?,
            Ok(graded) => {
                for item in &graded.items {
                    row(task, &item.item, item.grade.as_str(), &item.quote, &item.reason, hash)?;
                }
            }
        }
    }
    rows.flush()
}

#[cfg(test)]
mod tests {
    use super::super::prompt::tests::content;
    use super::super::reply::{Grade, ItemGrade};
    use super::*;
    use crate::trace::TrialErrorKind;

    #[test]
    fn a_quotation_that_a_spreadsheet_would_run_is_led_by_an_apostrophe() {
        let task = GradingTask { trial: "s/a/x".into(), turn: "turn 1".into(), model: "m".into(), content: content() };
        let quote = "=HYPERLINK(\"https://example.org\")".to_owned();
        let items = vec![ItemGrade { item: "one".into(), grade: Grade::Pass, quote, reason: String::new() }];
        let graded = Ok(Graded { items, from: String::new(), recorded_at: None });
        let message = "this answer was never judged".to_owned();
        let missing =
            Err(TrialError { kind: TrialErrorKind::LaneMissing, cause: message.clone(), message, detail: Vec::new() });
        let mut text = Vec::new();
        write_csv(&mut text, "j", [(&task, "abc", &graded), (&task, "def", &missing)]).expect("written");
        let text = String::from_utf8(text).expect("UTF-8");
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows[1], "s/a/x,turn 1,one,pass,\"'=HYPERLINK(\"\"https://example.org\"\")\",j,,abc");
        assert_eq!(rows[2], "s/a/x,turn 1,,not judged,,j,this answer was never judged,def");
    }
}
