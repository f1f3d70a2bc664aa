//! Criteria of a run on a terminal: a table, or two lines each if there is no room.

use super::figures;
use super::terminal_lines::{Paint, wrap};
use crate::gate::{CriterionResult, Verdict};
use crate::trace::text::{clip, line};
use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width};
use std::fmt::Write as _;

/// Below this number of columns, a criterion takes two lines.
const NARROW: usize = 100;

/// From this number of columns on, the table shows numbers of units, if they differ between rows.
const WIDE: usize = 130;

/// Conversations hardly differ if at most one in so many is different.
const FEW: u64 = 10;

/// Evidence of a row without measurements.
const NOTHING: &str = "–";

/// Columns of a criterion's id in the two-line form.
const ID: usize = 14;

/// Renders the criteria, and below them what all share. For `selected` cases or scenarios, rows without measurements
/// that decide nothing are only named.
pub(super) fn criteria(out: &mut String, rows: &[CriterionResult], selected: bool, width: usize, paint: &Paint) {
    let idle = |row: &&CriterionResult| {
        let nothing = row.n == 0 && row.errors == 0 && row.excluded.is_empty() && row.verdict == Verdict::NotMeasured;
        selected && !row.required && nothing
    };
    let (idle, rows): (Vec<_>, Vec<_>) = rows.iter().partition(idle);
    out.push_str(&if width < NARROW { lines(&rows, width, paint) } else { table(&rows, width, paint) });
    let mut below = String::new();
    shared(&mut below, &rows, width);
    if !idle.is_empty() {
        let names: Vec<String> = idle.into_iter().map(name).collect();
        wrap(&mut below, &format!("nothing to measure here: {}", names.join(", ")), width, "");
    }
    for line in below.lines() {
        let _ = writeln!(out, "{}", paint.dim(line));
    }
}

/// Most frequent evidence of the rows that have evidence.
fn usual_evidence(rows: &[&CriterionResult]) -> Option<String> {
    let values: Vec<String> = rows.iter().map(|row| evidence(row)).filter(|evidence| evidence != NOTHING).collect();
    let times = |value: &String| values.iter().filter(|other| *other == value).count();
    let most = values.iter().max_by_key(|value| times(value))?;
    (times(most) * 2 > values.len()).then(|| most.clone())
}

fn evidence(row: &CriterionResult) -> String {
    line(&figures::evidence(row))
}

pub(super) fn name(row: &CriterionResult) -> String {
    line(&figures::name(row))
}

/// Requirement of a row, and its evidence if it differs from the usual one.
fn what(row: &CriterionResult, usual: Option<&String>) -> String {
    let about = line(if row.about.is_empty() { &row.metric } else { &row.about });
    let own = evidence(row);
    if usual.is_none_or(|usual| *usual == own) || own == NOTHING { about } else { format!("{about} [{own}]") }
}

fn word(row: &CriterionResult) -> String {
    let word = figures::verdict(row);
    if row.required { word.into() } else { format!("({word})") }
}

/// Two lines per criterion.
fn lines(rows: &[&CriterionResult], width: usize, paint: &Paint) -> String {
    let mut out = String::new();
    let usual = usual_evidence(rows);
    for row in rows {
        let (id, verdict) = (clip(&name(row), ID - 1).into_owned(), word(row));
        let room = width.saturating_sub(ID + verdict.chars().count() + 1);
        let about = clip(&what(row, usual.as_ref()), room).into_owned();
        let _ = writeln!(out, "{}", paint.last_word(&format!("{id:<ID$}{about:<room$} {verdict}")));
        let figures = format!(
            "{}, {}, target {}, n {}",
            figures::observed(row),
            figures::bound(row),
            figures::goal(row),
            figures::units(row)
        );
        let figures = line(&figures);
        let _ = writeln!(out, "{:ID$}{}", "", clip(&figures, width - ID));
    }
    out
}

/// An empty table without lines, as wide as the terminal.
pub(super) fn empty(width: usize) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width).unwrap_or(160));
    table
}

/// One row per criterion.
fn table(rows: &[&CriterionResult], width: usize, paint: &Paint) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let usual = usual_evidence(rows);
    let numbers = width >= WIDE && rows.iter().any(|row| figures::units(row) != figures::units(rows[0]));
    let mut table = empty(width);
    let mut header = vec!["id", "what", "observed", "95 % bound", "target"];
    header.extend(numbers.then_some("n"));
    header.push("verdict");
    table.set_header(header);
    for row in rows {
        let mut cells = vec![
            clip(&name(row), 40).into_owned(),
            clip(&what(row, usual.as_ref()), 120).into_owned(),
            line(&figures::observed_in_brief(row)),
            line(&figures::bound(row)),
            line(&figures::goal(row)),
        ];
        cells.extend(numbers.then(|| figures::units(row)));
        cells.push(word(row));
        table.add_row(cells);
    }
    let columns = table.column_count();
    for (index, column) in table.column_iter_mut().enumerate() {
        let last = index + 1 == columns;
        column.set_padding((0, if last { 0 } else { 2 }));
        match index {
            1 => {}
            0 => {
                let (lower, upper) = (Width::Fixed(8), Width::Fixed(24));
                column.set_constraint(ColumnConstraint::Boundaries { lower, upper });
            }
            2 => {
                column.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(26)));
            }
            3 => {
                column.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(20)));
            }
            _ => {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
    }
    let mut out = String::new();
    for (index, row) in table.lines().enumerate() {
        let row = row.trim_end();
        let _ =
            if index == 0 { writeln!(out, "{}", paint.dim(row)) } else { writeln!(out, "{}", paint.last_word(row)) };
    }
    out
}

/// Facts shared by all or most rows, printed once below the table.
fn shared(out: &mut String, rows: &[&CriterionResult], width: usize) {
    let mut said = Vec::new();
    if let Some(evidence) = usual_evidence(rows) {
        let but = if rows.iter().any(|row| ![&*evidence, NOTHING].contains(&&*self::evidence(row))) {
            " unless a row says otherwise"
        } else {
            ""
        };
        said.push(format!("evidence: {evidence}{but}"));
    }
    if let Some(first) =
        rows.first().filter(|first| rows.iter().all(|row| figures::units(row) == figures::units(first)))
    {
        said.push(format!("n: {}", figures::units(first)));
    } else if (NARROW..WIDE).contains(&width) {
        // There is no room for all numbers of units; those that show much less than they seem to are named.
        let few = rows.iter().filter(|row| row.distinct > 0 && row.distinct * FEW <= row.clusters.min(row.n));
        let few: Vec<String> = few.map(|row| format!("{} {}", name(row), figures::units(row))).collect();
        said.extend((!few.is_empty()).then(|| format!("conversations that hardly differ: {}", few.join("; "))));
    }
    if rows.iter().any(|row| !row.required) {
        said.push("verdict in brackets: not required, does not change the exit code".to_owned());
    }
    if !said.is_empty() {
        wrap(out, &said.join("; "), width, "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn equal_conversations_are_named_at_every_width() {
        let run = sample::run(2);
        let mut rows = run.evaluation.criteria.clone();
        let row = rows.iter_mut().find(|row| row.n > 0).expect("a row with units");
        (row.n, row.clusters, row.distinct) = (30, 30, 1);
        let (id, rows) = (row.id.clone(), rows);
        for width in [80, 100, 120, 129, 130, 160] {
            let mut out = String::new();
            criteria(&mut out, &rows, false, width, &Paint { colour: false });
            let text = out.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains("30, 1 different"), "{id} at {width}:\n{out}");
        }
    }

    #[test]
    fn of_a_selection_what_has_nothing_to_measure_is_named_and_the_evidence_of_the_others_stands_once() {
        let run = sample::run(2);
        let mut rows = run.evaluation.criteria.clone();
        let (measured, idle) = rows.split_at_mut(2);
        for row in idle.iter_mut() {
            (row.n, row.errors, row.required, row.verdict) = (0, 0, false, Verdict::NotMeasured);
            row.excluded.clear();
            row.evidence.clear();
        }
        let usual = evidence(&measured[0]);
        assert_ne!(usual, NOTHING);
        let (ids, others) = (idle.len(), idle.iter().map(|row| row.id.clone()).collect::<Vec<_>>().join(", "));
        assert!(ids > measured.len(), "most rows rest on nothing");
        let written = |selected: bool, rows: &[CriterionResult]| {
            let mut out = String::new();
            criteria(&mut out, rows, selected, 140, &Paint { colour: false });
            out
        };
        for selected in [true, false] {
            let text = written(selected, &rows);
            assert_eq!(text.matches(&usual).count(), 1, "{text}");
            assert_eq!(text.contains("nothing to measure here: "), selected, "{text}");
        }
        let text = written(true, &rows).replace('\n', " ");
        assert!(text.contains(&format!("nothing to measure here: {others}")), "{text}");
        rows[2].required = true;
        let text = written(true, &rows);
        assert!(text.lines().any(|line| line.starts_with(&rows[2].id)), "what is required is never left out: {text}");
    }
}
