//! `report.md`: a short report for a pull request's summary and comment.
//!
//! At most 25 lines, then folds. First the exit code with what decided it, the counts, what to do with failed criteria before
//! failed cases, and the commands. Folds: the rest of that list, changes against the base, prompts, criteria, gates, times and
//! cost. Text is escaped for GitHub: no markup, mention, issue link or automatic link survives. The report fits into a comment:
//! sections that do not fit are left out, and a line says so.

mod markup;
#[cfg(test)]
mod tests;
mod to_do;

use crate::compare::Comparison;
use crate::gate::{CriterionResult, SpentBy, Verdict};
use crate::report::comparison::taken;
use crate::report::to_do::to_do;
use crate::report::{Format, View, figures};
use markup::{escaped, escaped_up_to, fenced, folded, list};
use std::fmt::Write as _;
use std::io::{self, Write};
use to_do::what_fails;

pub(super) const FORMATS: &[Format] = &[Format { name: "markdown", file: "report.md", write }];

/// Maximum lines before the folds.
#[cfg(test)]
const FIRST: usize = 25;
/// Maximum characters of a conclusion.
const CONCLUSION: usize = 900;
/// Maximum rows of a list or table.
const LISTED: usize = 20;
/// Maximum rows of a table of criteria.
const CRITERIA: usize = 60;
/// Maximum number of prompt differences, lines per prompt, and characters per line.
const PROMPT: (usize, usize, usize) = (5, 60, 300);
/// Maximum bytes of the report: GitHub limits a comment to 65,536 characters.
const MOST: usize = 60_000;

/// Writes `report.md`.
fn write(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let evaluation = view.evaluation;
    let found = to_do(view);
    let mut sections = vec![format!("### ragcheck: exit code {}\n\n", view.exit_code())];
    if let Some(decided) = view.decided {
        let criteria = format!("; the criteria alone: exit code {}", evaluation.exit_code);
        sections.push(format!("{}{criteria}\n\n", escaped(&decided.why)));
    }
    sections.push(format!("{}\n\n", escaped_up_to(&evaluation.conclusion, CONCLUSION)));
    // Names of criteria may fill the conclusion, whose end says which recordings changed.
    if let Some(changed) = &view.plan.changed_recordings
        && evaluation.conclusion.chars().count() > CONCLUSION
    {
        sections.push(format!("{}\n\n", escaped_up_to(&changed.words(), CONCLUSION)));
    }
    let compared =
        view.comparison.map(|found| format!("\nAgainst the base: {}", escaped_up_to(&found.conclusion, CONCLUSION)));
    sections.push(format!("{}{}\n\n", escaped(&figures::sums(evaluation)), compared.unwrap_or_default()));
    sections.extend(what_fails(view, &found));
    sections.push(changed(view.comparison));
    sections.extend(view.comparison.into_iter().flat_map(prompts));
    let counts = figures::verdict_counts(evaluation.criteria.iter());
    sections.push(folded(&format!("Criteria: {counts}"), &table(evaluation.criteria.iter())));
    let open = evaluation.gates.iter().filter(|gate| gate.verdict != Verdict::Pass);
    let counts = figures::verdict_counts(evaluation.gates.iter());
    sections.push(folded(&format!("Scenario gates that do not pass; all of them: {counts}"), &table(open)));
    if let Some(line) = figures::self_tests(evaluation) {
        sections.push(folded(&line, &self_tests(&evaluation.self_tests)));
    }
    sections.push(folded("Evidence, times and cost", &facts(view)));
    let (mut room, mut left_out) = (MOST, false);
    for section in &sections {
        match room.checked_sub(section.len()) {
            Some(rest) => {
                room = rest;
                out.write_all(section.as_bytes())?;
            }
            None => left_out = true,
        }
    }
    if left_out {
        writeln!(
            out,
            "\nSome of the report is left out here, for it would not fit into a comment: `index.html` has it all."
        )?;
    }
    Ok(())
}

/// What each self-test promises, and how often it held.
fn self_tests(rows: &[CriterionResult]) -> String {
    let mut out = String::new();
    list(&mut out, LISTED, rows.iter().map(|row| format!("- {}", escaped(&figures::self_test(row)))));
    out
}

/// Result of the comparison with the base, with tokens, cost and times.
fn changed(comparison: Option<&Comparison>) -> String {
    let Some(found) = comparison else { return String::new() };
    let mut out = String::new();
    let warnings = found.warnings.iter().map(|warning| format!("- warning: {}", escaped(warning)));
    let differences = found.differences.iter().map(|row| {
        let of = if row.scenarios.is_empty() { String::new() } else { format!(" ({})", row.scenarios.join(", ")) };
        format!("- {}: {} → {}{}", escaped(&row.what), escaped(&row.a), escaped(&row.b), escaped(&of))
    });
    list(&mut out, LISTED, warnings.chain(differences));
    if !found.taken.is_empty() {
        out.push_str("\n| | base | now | difference |\n|---|---:|---:|---:|\n");
        list(
            &mut out,
            LISTED,
            found.taken.iter().map(|row| {
                let [name, base, now, difference] = taken(row).map(|text| escaped(&text));
                format!("| {name} | {base} | {now} | {difference} |")
            }),
        );
    }
    folded("What changed against the base", &out)
}

/// Every prompt that differs, collapsed.
fn prompts(found: &Comparison) -> Vec<String> {
    let (most, lines, _) = PROMPT;
    let section = |change: &crate::compare::PromptChange| {
        let (fence, shown) = fenced(change.lines.iter().take(lines).map(String::as_str));
        let more = change.lines.len().saturating_sub(lines);
        let more = if more > 0 { format!("and {more} more lines\n\n") } else { String::new() };
        let summary = format!("<details><summary>The prompt {} changed</summary>", escaped(&change.name));
        format!("{summary}\n\n{fence}diff\n{shown}{fence}\n\n{more}</details>\n\n")
    };
    found.prompts.iter().take(most).map(section).collect()
}

/// Evidence, notes, grades, repeats, times and cost.
fn facts(view: &View<'_>) -> String {
    let evaluation = view.evaluation;
    let stopped = evaluation.stopped.iter().map(|stopped| stopped.sentence.clone());
    let notes = evaluation.notes.iter().map(|note| format!("note: {note}"));
    let repeats = evaluation.repeats.iter().filter(|row| row.not_measured.is_empty());
    let mut out = String::new();
    let said = stopped.chain(evaluation.evidence.iter().take(LISTED).cloned()).chain(notes.take(LISTED));
    let said = said.chain(evaluation.grades.iter().take(LISTED).map(figures::grades));
    for line in said.chain(repeats.take(LISTED).map(figures::repeats)) {
        let _ = writeln!(out, "- {}", escaped(&line));
    }
    out + &times_and_cost(view)
}

fn times_and_cost(view: &View<'_>) -> String {
    let evaluation = view.evaluation;
    let mut out = String::new();
    for row in evaluation.latency.iter().take(LISTED) {
        let _ = writeln!(out, "- Time of {}", escaped(&figures::latency(row)));
    }
    let said = |spent| figures::spent(spent).unwrap_or_else(|| format!("not measured: {}", spent.not_measured));
    if !evaluation.spending.is_empty() {
        let _ = writeln!(out, "- Tokens and cost: {}", escaped(&said(&evaluation.spending.run)));
    }
    let variants = &evaluation.spending.variants;
    for SpentBy { name, spent } in variants.iter().take(LISTED).filter(|_| variants.len() > 1) {
        let _ = writeln!(out, "  - {}: {}", escaped(name), escaped(&said(spent)));
    }
    out
}

fn table<'a>(rows: impl Iterator<Item = &'a CriterionResult>) -> String {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return String::new();
    }
    let mut out = "| | Criterion | n | Observed | 95 % bound | Target |\n|---|---|---:|---|---|---|\n".to_owned();
    let row = |row: &CriterionResult| {
        format!(
            "| {} **{}**{} | {} {} | {} | {} | {} | {} |",
            mark(row.verdict),
            escaped(figures::verdict(row)),
            if row.required { "" } else { ", for information" },
            escaped(&figures::name(row)),
            escaped(&row.about),
            figures::units(row),
            escaped(&figures::observed(row)),
            escaped(&figures::bound(row)),
            escaped(&figures::goal(row)),
        )
    };
    list(&mut out, CRITERIA, rows.map(row));
    out
}

fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "✅",
        Verdict::Fail => "❌",
        Verdict::Inconclusive => "❔",
        Verdict::NotMeasured => "⚪",
        Verdict::Error => "⚠️",
    }
}
