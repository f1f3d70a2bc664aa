//! Terminal output of a comparison of variants: a table of figures, and a table of findings for each pair.

use super::{corrected, shown};
use crate::compare::{ComparedCriterion, Figure, Finding, Variants};
use crate::report::figures::{counted, thousands};
use crate::report::terminal_lines::wrap;
use crate::report::{comparison, terminal_table};
use crate::trace::text::{clip, line};
use comfy_table::CellAlignment;
use std::fmt::Write as _;

/// Renders the comparison in at most `width` columns, with ANSI colours if `colour` is set.
pub(crate) fn terminal(found: &Variants, width: usize, colour: bool) -> String {
    let width = width.clamp(60, 160);
    let mut out = String::new();
    let part = if found.part.is_empty() { String::new() } else { format!(" PART ({})", found.part) };
    let cases = counted(found.cases.len() as u64, "case");
    wrap(
        &mut out,
        &format!("{}:{part} {} over {cases}", found.run, counted(found.variants.len() as u64, "variant")),
        width,
        "",
    );
    for one in &found.variants {
        let errors = if one.errors > 0 { format!(", {} in ERROR", thousands(one.errors)) } else { String::new() };
        let about = if one.about.is_empty() { String::new() } else { format!(" {}", one.about) };
        let trials = counted(one.trials, "trial");
        wrap(&mut out, &format!("{} ({}):{about} {}, {trials}{errors}", one.name, one.flow, one.evidence), width, "  ");
    }
    for warning in &found.warnings {
        wrap(&mut out, &format!("WARNING  {warning}"), width, "");
    }
    let _ = writeln!(out);
    out.push_str(&table(found, width, colour));
    unknown(&mut out, found, width);
    for pair in &found.pairs {
        let [a, b] = pair.names();
        let heads = comparison::heads([a, b], width);
        let _ = writeln!(out, "\n{} against {}", line(b), line(a));
        if heads[0] != line(a) {
            let _ = writeln!(out, "A {}, B {}", line(a), line(b));
        }
        for note in &pair.notes {
            wrap(&mut out, &format!("note: {note}"), width, "");
        }
        out.push_str(&comparison::table(&pair.rows, &heads, width, colour));
    }
    let _ = writeln!(out);
    wrap(&mut out, &corrected(found), width, "");
    for pair in &found.pairs {
        let shown = |row: &&ComparedCriterion| matches!(row.finding, Finding::Better | Finding::Worse);
        for row in pair.rows.iter().filter(shown) {
            let [a, b] = pair.names();
            wrap(&mut out, &format!("{b} against {a}, {}: {}", row.key, row.sentence), width, "");
        }
    }
    let _ = writeln!(out);
    wrap(&mut out, &found.conclusion, width, "");
    out
}

/// A row per figure, a column per variant.
fn table(found: &Variants, width: usize, colour: bool) -> String {
    let mut table = terminal_table::empty(width);
    let names = found.variants.iter().map(|one| clip(&line(&one.name), 24).into_owned());
    table.set_header([String::new()].into_iter().chain(names));
    for figure in &found.figures {
        let cells = figure.cells.iter().map(|cell| {
            // A share is shown with successes and units; a mean without.
            let counts = cell.counts.filter(|_| figure.unit == crate::compare::Unit::Share);
            let counts = counts.map_or_else(String::new, |counts| {
                format!(" ({}/{})", thousands(counts.numerator), thousands(counts.denominator))
            });
            format!("{}{counts}", shown(figure.unit, cell))
        });
        table.add_row([clip(&line(&figure.key), 32).into_owned()].into_iter().chain(cells));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut out = String::new();
    for (index, text) in table.lines().enumerate() {
        let text = text.trim_end();
        let _ = if index == 0 && colour { writeln!(out, "\u{1b}[2m{text}\u{1b}[0m") } else { writeln!(out, "{text}") };
    }
    out
}

/// Explains figures shown as a dash.
fn unknown(out: &mut String, found: &Variants, width: usize) {
    for Figure { key, cells, .. } in &found.figures {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for (variant, cell) in found.variants.iter().zip(cells).filter(|(_, cell)| !cell.not_measured.is_empty()) {
            match reasons.iter_mut().find(|(why, _)| *why == cell.not_measured) {
                Some((_, names)) => names.push(&variant.name),
                None => reasons.push((&cell.not_measured, vec![&variant.name])),
            }
        }
        for (why, names) in reasons {
            wrap(out, &format!("{key} of {}: NOT_MEASURED, {why}", names.join(", ")), width, "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_by_variant_and_each_pair_has_its_findings() {
        let text = terminal(&super::super::tests::found(), 110, false);
        let row = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{text}"));
        let cells: Vec<&str> = row("cases").split_whitespace().collect();
        assert_eq!(cells, ["cases", "100.0", "%", "(8/8)", "0.0", "%", "(0/8)"]);
        assert!(row("model calls").ends_with("3.0"), "{text}");
        assert!(text.contains("b against a") && text.contains("worse"), "{text}");
        assert!(text.contains("service tokens of a, b: NOT_MEASURED, no service was asked for an answer"), "{text}");
        assert!(text.contains("Holm over 1 required row;"), "{text}");
    }

    #[test]
    fn hostile_text_commands_no_terminal() {
        let text = terminal(&super::super::tests::found(), 100, false);
        assert!(!text.chars().any(|letter| letter.is_control() && letter != '\n'), "{text:?}");
        assert!(!text.contains('\u{202e}'));
    }
}
