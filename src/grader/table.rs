//! Terminal table of the tally, with a note that it is not a verdict.

use super::tally::{Beside, ItemRow};
use crate::stats::percent::{interval, percent};
use crate::stats::rate::wilson;
use std::fmt::Write as _;

/// One line per item, followed by the comparison with human ratings, if any; `rated` says whether the run has them.
pub(crate) fn table(rows: &[ItemRow], rated: bool) -> String {
    let width = rows.iter().map(|row| name(row).len()).max().unwrap_or(0).max(4);
    let mut out = format!("{:width$}  {:>5}  {:>7}  {:18}  no verdict\n", "item", "turns", "pass", "95 % (Wilson)");
    for row in rows {
        let (rate, range) = figures(row);
        let line = format!("{:width$}  {:>5}  {rate:>7}  {range:18}  {}", name(row), row.n, unsettled(row));
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out.push('\n');
    out.push_str(&beside_people(rows, width, rated));
    out
}

fn name(row: &ItemRow) -> &str {
    row.item.as_deref().unwrap_or("all items")
}

fn figures(row: &ItemRow) -> (String, String) {
    if row.n == 0 {
        return ("-".to_owned(), "nothing measured".to_owned());
    }
    let (low, high) = wilson(row.passed as f64, row.n as f64);
    (percent(row.passed as f64 / row.n as f64), interval(low, high))
}

fn unsettled(row: &ItemRow) -> String {
    let parts = [(row.inconsistent, "by order"), (row.errors, "unusable")];
    let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!("{count} {why}"));
    parts.collect::<Vec<_>>().join(", ")
}

fn beside_people(rows: &[ItemRow], width: usize, rated: bool) -> String {
    if rows.iter().all(|row| row.beside.is_none()) {
        let why = if rated {
            "No trial that was judged here has a human rating"
        } else {
            "The run has no human ratings (`ratings` in ragcheck.yaml names the file)"
        };
        return format!(
            "{why}: these rates are a proxy for the satisfaction of people, and never a verdict on SC-004.\n"
        );
    }
    let mut out = format!(
        "Beside human ratings of whole trials (yes/no: judge/person):\n{:width$}  {:>6}  {:>7}  {:>6}  {:>6}  {:>6}  {:>5}  {:>5}  {:>5}  {:>5}  satisfied, from both\n",
        "item", "yes/yes", "yes/no", "no/yes", "no/no", "agree", "kappa", "AC1", "sens.", "spec."
    );
    for (row, beside) in rows.iter().filter_map(|row| Some((row, row.beside.as_ref()?))) {
        let table = &beside.table;
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        let _ = writeln!(
            out,
            "{:width$}  {:>7}  {:>6}  {:>6}  {:>6}  {:>6}  {:>5}  {:>5}  {:>5}  {:>5}  {}",
            name(row),
            table.both,
            table.judge_only,
            table.human_only,
            table.neither,
            number(table.agreement()),
            number(table.kappa().map(|kappa| kappa.value)),
            number(table.ac1()),
            number(table.sensitivity()),
            number(table.specificity()),
            estimated(beside)
        );
    }
    out.push_str(
        "The last column is prediction-powered: the judge's rate corrected by what it gets wrong beside people. It holds if the rated\ntrials are a random sample; a grade without a verdict counts as failed. SC-004 itself rests on the ratings alone.\n",
    );
    out
}

fn estimated(beside: &Beside) -> String {
    let Some(found) = beside.estimate else { return "not estimable".to_owned() };
    let (low, high) = (found.low.max(0.0), found.high.min(1.0));
    let share = percent(found.value.clamp(0.0, 1.0));
    let alone = if beside.unrated == 0 { ", people alone" } else { "" };
    let without = beside.without_verdict;
    let of = if without > 0 { format!(", {without} of them without a verdict") } else { String::new() };
    let rated = beside.table.total() + without as u64;
    format!("{share} ({}{alone}; {rated} rated{of})", interval(low, high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::agreement::Confusion;

    fn row(passed: u64, n: u64, beside: Option<Beside>) -> ItemRow {
        ItemRow { item: Some("grounded".into()), passed, n, inconsistent: 2, errors: 0, beside }
    }

    #[test]
    fn without_ratings_the_table_says_that_it_is_a_proxy() {
        let shown = table(&[row(38, 40, None)], false);
        assert!(shown.contains("grounded     40   95.0 %  83.4 % to 98.7 %    2 by order\n"), "{shown}");
        assert!(shown.contains("a proxy for the satisfaction of people, and never a verdict on SC-004"));
        assert!(table(&[row(1, 1, None)], true).starts_with("item"));
    }

    #[test]
    fn nothing_measured_is_no_rate() {
        assert!(table(&[row(0, 0, None)], false).contains("grounded      0        -  nothing measured    2 by order"));
    }

    #[test]
    fn with_ratings_the_table_shows_the_whole_confusion() {
        let table_of = Confusion { both: 45, judge_only: 5, human_only: 10, neither: 40 };
        let shown = table(
            &[row(50, 100, Some(Beside { table: table_of, without_verdict: 0, unrated: 0, estimate: None }))],
            true,
        );
        assert!(shown.contains("0.85   0.70   0.70   0.82   0.89  not estimable"), "{shown}");
        assert!(!shown.contains("proxy"), "{shown}");
    }
}
