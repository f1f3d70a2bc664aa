//! Terminal output of a comparison: differing settings, a row per criterion, and flipped cases with commands to inspect
//! them.

use super::taken::taken_line;
use super::{SAME, Shown, differs};
use crate::compare::{ComparedCriterion, Finding, Flip, Scale};
use crate::gate::note_in_words;
use crate::report::figures::{counted, thousands};
use crate::report::terminal_lines::wrap;
use crate::report::terminal_table;
use crate::stats::percent::{points, points_interval};
use crate::trace::text::{block, clip, line};
use comfy_table::{ColumnConstraint, Width};
use std::fmt::Write as _;
use std::path::Path;

/// Maximum number of flips listed.
const LISTED: usize = 20;

/// Renders the comparison in at most `width` columns, with ANSI colours if `colour` is set.
pub(crate) fn terminal(shown: &Shown<'_>, width: usize, colour: bool) -> String {
    let found = shown.comparison;
    let width = width.clamp(60, 160);
    let mut out = String::new();
    let names = found.names();
    let heads = heads(names, width);
    for (name, side) in heads.iter().zip([&found.a, &found.b]) {
        let errors = if side.errors > 0 { format!(", {} in ERROR", thousands(side.errors)) } else { String::new() };
        let trials = counted(side.trials, "trial");
        let part = if side.part.is_empty() { String::new() } else { format!(" PART ({}):", side.part) };
        let label = if *name == side.label { String::new() } else { format!("  {}", side.label) };
        wrap(&mut out, &format!("{name}{label}:{part} {}, {trials}{errors}", side.evidence), width, "");
    }
    let _ = writeln!(out);
    for warning in &found.warnings {
        wrap(&mut out, &format!("WARNING  {warning}"), width, "");
    }
    if found.differences.is_empty() && found.prompts.is_empty() {
        wrap(&mut out, SAME, width, "");
    }
    for row in &found.differences {
        wrap(&mut out, &format!("DIFFERS  {}", differs(row, names)), width, "");
    }
    for prompt in &found.prompts {
        wrap(&mut out, &format!("DIFFERS  prompt `{}` ({})", prompt.name, prompt.scenarios.join(", ")), width, "");
        for changed in prompt.lines.iter().filter(|line| !line.starts_with("@@")) {
            let _ = writeln!(out, "  {}", clip(&line_of(changed), width - 2));
        }
    }
    for note in &found.notes {
        wrap(&mut out, &format!("note: {note}"), width, "");
    }
    let _ = writeln!(out);
    out.push_str(&table(&found.rows, &heads, width, colour));
    let bare: Vec<&str> =
        found.rows.iter().filter(|row| row.finding == Finding::NotCompared).map(|row| row.key.as_str()).collect();
    if !bare.is_empty() {
        wrap(&mut out, &format!("not compared, without units on both sides: {}", bare.join(", ")), width, "");
    }
    for row in &found.taken {
        wrap(&mut out, &taken_line(row, names), width, "  ");
    }
    let said = |row: &&ComparedCriterion| !matches!(row.finding, Finding::NoDiscordance | Finding::NotCompared);
    for row in found.rows.iter().filter(said) {
        let _ = writeln!(out, "\n{} {}", paint(row, colour), line(&row.key));
        wrap(&mut out, &row.sentence, width, "  ");
    }
    if !found.flips.is_empty() {
        let worse = found.flips.iter().filter(|flip| flip.worse).count();
        let better = found.flips.len() - worse;
        let _ = writeln!(out, "\nCases that flipped: {worse} worse, {better} better");
    }
    flips(&mut out, &found.flips, shown.folders, width);
    if !found.changes.is_empty() {
        let worse = found.changes.iter().filter(|one| one.worse).count();
        let better = found.changes.len() - worse;
        let _ = writeln!(out, "\nCases that pass less or more often: {worse} worse, {better} better");
    }
    flips(&mut out, &found.changes, shown.folders, width);
    let _ = writeln!(out);
    wrap(&mut out, &found.conclusion, width, "");
    out
}

/// A line of a prompt, with its leading sign and spaces.
fn line_of(text: &str) -> String {
    block(text).replace('\n', " ")
}

/// Headings of both sides: their names, or A and B where these are too long for a column.
pub(in crate::report) fn heads(names: [&str; 2], width: usize) -> [String; 2] {
    let [a, b] = names.map(line);
    let room = if width < 100 { 9 } else { 16 };
    if a.chars().count().max(b.chars().count()) <= room { [a, b] } else { ["A".into(), "B".into()] }
}

/// Table with a row per criterion, in at most `width` columns.
pub(in crate::report) fn table(rows: &[ComparedCriterion], [a, b]: &[String; 2], width: usize, colour: bool) -> String {
    let mut table = terminal_table::empty(width);
    // The sentences below have p, too: the column is left out where names would be cut for it.
    let keep = |place: usize| width >= 100 || place != 4;
    let header = ["criterion", a.as_str(), b.as_str(), "difference [interval]", "p, corrected", "cases", "finding"];
    table.set_header(header.into_iter().enumerate().filter(|(place, _)| keep(*place)).map(|(_, cell)| cell));
    for row in rows {
        let level = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| row.scale.shown(value));
        let finding = if row.gated { row.finding.as_str().to_owned() } else { format!("({})", row.finding.as_str()) };
        let cells = [
            clip(&line(&row.key), 32).into_owned(),
            level(row.a),
            level(row.b),
            difference(row),
            row.p_adjusted.map_or_else(|| "–".into(), p),
            thousands(row.cases),
            finding,
        ];
        table.add_row(cells.into_iter().enumerate().filter(|(place, _)| keep(*place)).map(|(_, cell)| cell));
    }
    let last = table.column_count().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index == last { 0 } else { 2 }));
        column.set_constraint(match index {
            0 => ColumnConstraint::UpperBoundary(Width::Fixed(34)),
            _ => ColumnConstraint::ContentWidth,
        });
    }
    let mut out = String::new();
    for (index, text) in table.lines().enumerate() {
        let text = text.trim_end();
        let row = index.checked_sub(1).and_then(|index| rows.get(index));
        let text = match row {
            Some(row) if colour && text.ends_with(row.finding.as_str()) => {
                let head = &text[..text.len() - row.finding.as_str().len()];
                format!("{head}{}", paint(row, true))
            }
            None if colour => format!("\u{1b}[2m{text}\u{1b}[0m"),
            _ => text.to_owned(),
        };
        let _ = writeln!(out, "{text}");
    }
    if rows.iter().any(|row| row.level.is_some_and(|level| level < 0.0499)) {
        let levels = "(intervals at the level that decides the row, as p is corrected; 95 % where one row is tested)";
        wrap(&mut out, levels, width, "");
    }
    if rows.iter().any(|row| !row.gated) {
        wrap(&mut out, "(finding in brackets: not required, or a stand-in; never a regression)", width, "");
    }
    out
}

pub(super) fn difference(row: &ComparedCriterion) -> String {
    let Some(value) = row.difference else { return "–".into() };
    let unit = if row.scale == Scale::Rate { "" } else { " %" };
    let interval = row.interval.map_or_else(String::new, |span| format!(" {}", points_interval(span.low, span.high)));
    format!("{}{unit}{interval}", points(value))
}

pub(super) fn p(value: f64) -> String {
    if value < 0.0005 { "< 0.001".into() } else { format!("{value:.3}") }
}

fn paint(row: &ComparedCriterion, colour: bool) -> String {
    let word = row.finding.as_str();
    let code = match row.finding {
        Finding::Better => "32",
        Finding::Worse => "1;31",
        Finding::Undecided => "33",
        _ => "36",
    };
    if colour { format!("\u{1b}[{code}m{word}\u{1b}[0m") } else { word.to_owned() }
}

fn flips(out: &mut String, found: &[Flip], folders: (Option<&Path>, Option<&Path>), width: usize) {
    for one in found.iter().take(LISTED) {
        flip(out, one, folders, width);
    }
    if found.len() > LISTED {
        let _ = writeln!(out, "  and {} more", found.len() - LISTED);
    }
}

fn flip(out: &mut String, flip: &Flip, folders: (Option<&Path>, Option<&Path>), width: usize) {
    let word = if flip.worse { "worse " } else { "better" };
    let variants = if flip.variant_a == flip.variant_b {
        flip.variant_a.clone()
    } else {
        format!("{} and {}", flip.variant_a, flip.variant_b)
    };
    let counts = flip.counts();
    let why = if flip.why.is_empty() { String::new() } else { format!("; {}", note_in_words(&flip.why)) };
    wrap(out, &format!("{word} {} ({variants}): {counts}{why}", flip.case), width, "  ");
    for (folder, trial) in [(folders.0, &flip.trial_a), (folders.1, &flip.trial_b)] {
        if let Some((folder, trial)) = folder.zip(trial.as_ref()) {
            // Not wrapped: a command to copy.
            let _ = writeln!(out, "         ragcheck show {}/{}", line(&folder.display().to_string()), line(trial));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Pages;
    use std::collections::BTreeMap;

    fn text(width: usize, colour: bool) -> String {
        let found = super::super::tests::worse();
        let none = BTreeMap::new();
        let folders = (Some(Path::new("reports/a")), Some(Path::new("reports/b")));
        terminal(
            &Shown { comparison: &found, folders, conversations: (&none, &none), pages: Pages::default() },
            width,
            colour,
        )
    }

    #[test]
    fn a_flip_has_a_command_for_each_conversation() {
        let text = text(110, false);
        assert!(text.contains("ragcheck show reports/a/s/c2/tool-rag.base.1"), "{text}");
        assert!(text.contains("ragcheck show reports/b/s/c2/tool-rag.base.1"), "{text}");
        assert!(text.contains("Cases that flipped: 8 worse, 0 better"), "{text}");
    }

    #[test]
    fn at_80_columns_the_table_is_whole_and_nothing_but_commands_and_prompts_is_longer() {
        let found = super::super::tests::worse();
        let text = text(80, false);
        let long = |line: &&str| line.chars().count() > 80 && !line.contains("ragcheck show");
        assert_eq!(text.lines().find(long), None, "{text}");
        for row in found.rows.iter().filter(|row| row.cases > 0) {
            assert!(text.contains(row.finding.as_str()), "{text}");
        }
        assert!(text.contains("b is worse than a in cases -80.0 points"), "{text}");
    }

    #[test]
    fn hostile_text_commands_no_terminal() {
        let text = text(100, false);
        assert!(!text.chars().any(|letter| letter.is_control() && letter != '\n'), "{text:?}");
        assert!(!text.contains('\u{202e}'));
    }

    #[test]
    fn findings_are_words_and_colour_only_underlines_them() {
        let plain = text(110, false);
        assert!(plain.lines().any(|line| line.starts_with("cases") && line.ends_with("worse")), "{plain}");
        assert!(text(110, true).contains("\u{1b}[1;31mworse\u{1b}[0m"));
    }
}
