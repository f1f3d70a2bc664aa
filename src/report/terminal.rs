//! The result on a terminal: criteria in a table, what fails them, causes of ERROR, and the evidence.
//!
//! Verdicts are always words; colour only underlines them. Every text is made harmless first: a document cannot send
//! escape sequences to the reader's terminal.

use super::{View, figures};
use crate::gate::{CriterionResult, ErrorGroup, Repeats, Verdict};
use crate::trace::text::{clip, line};
use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width};
use std::fmt::Write as _;

/// Reasons that are listed for one criterion.
const LISTED: usize = 5;

/// Rows of times that are told.
const TIMED: usize = 4;

/// Characters of a name in the column of evidence.
const RESTS_ON: usize = 14;

/// Columns below which the table of criteria has no room for where its figures come from.
const NARROW: usize = 100;

/// The result in at most `width` columns (80 to 140 suit it), with ANSI colours when `colour` is set.
pub fn terminal(view: &View<'_>, width: usize, colour: bool) -> String {
    let evaluation = view.evaluation;
    let width = width.clamp(60, 160);
    let paint = Paint { colour };
    let mut out = String::new();
    out.push_str(&table(evaluation.criteria.iter().collect(), width, &paint));
    // A gate that nothing depends on is there for its figure.
    let open: Vec<_> = evaluation.gates.iter().filter(|gate| gate.verdict != Verdict::Pass || !gate.required).collect();
    if !evaluation.gates.is_empty() {
        let counts = figures::verdict_counts(evaluation.gates.iter());
        let gates = figures::counted(evaluation.gates.len() as u64, "scenario gate");
        let _ = writeln!(out, "\n{gates}: {counts}");
        out.push_str(&table(open.clone(), width, &paint));
    }
    let unmet = evaluation.criteria.iter().chain(open).filter(|row| row.verdict != Verdict::Pass);
    // Of selected cases only what they decide is told: the table has the others.
    let selected = view.plan.part.as_ref().is_some_and(|part| part.cases);
    let unmet = unmet.filter(|row| row.required || !selected);
    for row in unmet {
        unmet_row(&mut out, row, width, &paint);
    }
    for group in &evaluation.errors {
        error(&mut out, group, width, &paint);
    }
    let excluded: Vec<_> = evaluation.criteria.iter().filter(|row| !row.excluded.is_empty()).map(excluded).collect();
    if !excluded.is_empty() {
        let _ = writeln!(out);
        wrap(&mut out, &format!("Excluded: {}", excluded.join("; ")), width, "");
    }
    let trials = figures::tally(evaluation).into_iter();
    let trials: Vec<_> = trials.map(|(verdict, n)| format!("{} {}", figures::count(n), verdict.as_str())).collect();
    let total = figures::counted(evaluation.trials.len() as u64, "trial");
    let split = if trials.is_empty() { String::new() } else { format!(": {}", trials.join(", ")) };
    let _ = writeln!(out, "\n{total}{split}");
    if let Some(stopped) = &evaluation.stopped {
        wrap(&mut out, &stopped.sentence, width, "  ");
    }
    for evidence in &evaluation.evidence {
        wrap(&mut out, evidence, width, "  ");
    }
    for note in &evaluation.notes {
        wrap(&mut out, &format!("note: {note}"), width, "  ");
    }
    for row in evaluation.latency.iter().take(TIMED) {
        wrap(&mut out, &format!("time of {}", figures::latency(row)), width, "  ");
    }
    if evaluation.latency.len() > TIMED {
        let more = evaluation.latency.len() - TIMED;
        wrap(&mut out, &format!("time of {more} more lanes and kinds of evidence: latency.csv"), width, "  ");
    }
    if let Some(spent) = figures::spent(&evaluation.spending.run) {
        wrap(&mut out, &spent, width, "  ");
    }
    let (measured, other): (Vec<_>, Vec<_>) = evaluation.repeats.iter().partition(|row| row.not_measured.is_empty());
    // Where nothing ever failed, rates of 100 % again and again tell nothing.
    let always = |row: &&Repeats| row.all.iter().all(|share| *share >= 1.0);
    let (always, measured): (Vec<_>, Vec<_>) = measured.into_iter().partition(always);
    for row in measured {
        wrap(&mut out, &figures::repeats(row), width, "  ");
    }
    if !always.is_empty() {
        let rows: Vec<_> = always.into_iter().map(figures::repeated).collect();
        wrap(&mut out, &format!("every repetition of every case passed: {}", rows.join("; ")), width, "  ");
    }
    match other.as_slice() {
        [] => {}
        [one] => wrap(&mut out, &figures::repeats(one), width, "  "),
        [one, rest @ ..] => {
            let more = format!("{}; likewise {} more", figures::repeats(one), rest.len());
            wrap(&mut out, &more, width, "  ");
        }
    }
    for row in &evaluation.grades {
        wrap(&mut out, &figures::grades(row), width, "  ");
    }
    let verdict = match evaluation.exit_code {
        0 => Verdict::Pass,
        1 => Verdict::Fail,
        4 => Verdict::Inconclusive,
        _ => Verdict::Error,
    };
    let mut conclusion = String::new();
    let said = format!("{} (exit code {})", evaluation.conclusion, evaluation.exit_code);
    wrap(&mut conclusion, &said, width, "");
    let _ = writeln!(out, "\n{}", paint.as_verdict(verdict, conclusion.trim_end()));
    out
}

fn table(rows: Vec<&CriterionResult>, width: usize, paint: &Paint) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width).unwrap_or(160));
    // Without room for all, what the lines below the table say anyway is left out.
    let narrow = width < NARROW;
    let mut header = vec!["id", "what", "n", "observed", "95 % bound", "target", "evidence", "verdict"];
    if narrow {
        header.retain(|name| *name != "evidence");
    }
    table.set_header(header);
    for row in &rows {
        let name = match &row.scenario {
            Some(scenario) => format!("{scenario}: {}", row.id),
            None => row.id.clone(),
        };
        let what = if row.about.is_empty() { &row.metric } else { &row.about };
        let verdict = if row.required { row.verdict.as_str().into() } else { format!("({})", row.verdict.as_str()) };
        let mut cells = vec![
            clip(&line(&name), 40).into_owned(),
            clip(&line(what), 120).into_owned(),
            figures::units(row),
            line(&figures::observed(row)),
            line(&figures::bound(row)),
            line(&row.target),
            brief(&line(&figures::rests_on(row))),
            verdict,
        ];
        if narrow {
            cells.remove(6);
        }
        table.add_row(cells);
    }
    let columns = table.column_count();
    for (index, column) in table.column_iter_mut().enumerate() {
        let (last, gap) = (index + 1 == columns, if narrow { 1 } else { 2 });
        column.set_padding((0, if last { 0 } else { gap }));
        match index {
            1 => {}
            0 => {
                let (lower, upper) = (Width::Fixed(if narrow { 13 } else { 8 }), Width::Fixed(24));
                column.set_constraint(ColumnConstraint::Boundaries { lower, upper });
            }
            2 | 3 if narrow => {
                column.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(11)));
            }
            6 if !last => {
                // A date is never broken.
                let (lower, upper) = (Width::Fixed(12), Width::Fixed(RESTS_ON as u16));
                column.set_constraint(ColumnConstraint::Boundaries { lower, upper });
            }
            2 | 5 | 6 | 7 => {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
            _ => {
                column.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(20)));
            }
        }
    }
    let mut out = String::new();
    for (index, row) in table.lines().enumerate() {
        let row = row.trim_end();
        let _ =
            if index == 0 { writeln!(out, "{}", paint.dim(row)) } else { writeln!(out, "{}", paint.last_word(row)) };
    }
    if rows.iter().any(|row| !row.required) {
        let _ = writeln!(out, "{}", paint.dim("(verdict in brackets: not required, does not change the exit code)"));
    }
    out
}

fn unmet_row(out: &mut String, row: &CriterionResult, width: usize, paint: &Paint) {
    let name = row.scenario.as_ref().map_or_else(|| row.id.clone(), |scenario| format!("{scenario}: {}", row.id));
    let _ = writeln!(out, "\n{} {}", paint.verdict(row.verdict), line(&name));
    wrap(out, &row.sentence, width, "  ");
    // A proxy's misses say nothing about the criterion: the HTML report lists them.
    let causes = if row.proxy { &[][..] } else { &row.causes[..] };
    for cause in causes.iter().take(LISTED) {
        let first = &cause.first;
        let place = format!("{}, {}", first.trial, first.unit);
        // The first one in full where the reason leaves something out, and nothing twice.
        let full = first.note != cause.reason && !first.note.is_empty();
        let first = if full { format!("{place}: {}", first.note) } else { place };
        let times = figures::count(cause.units);
        wrap(out, &format!("- {times} × {}, first in {first}", cause.reason), width, "  ");
    }
    if causes.len() > LISTED {
        let more = figures::counted((causes.len() - LISTED) as u64, "other reason");
        let _ = writeln!(out, "  and {more}: violations.csv");
    }
    if row.errors > 0 && !row.sentence.contains(" in ERROR ") {
        let _ = writeln!(out, "  {} in ERROR would have counted", figures::counted(row.errors, "trial"));
    }
}

fn error(out: &mut String, group: &ErrorGroup, width: usize, paint: &Paint) {
    let number = figures::counted(group.trials.len() as u64, "trial");
    let _ = writeln!(out, "\n{} {} ({number})", paint.verdict(Verdict::Error), line(&group.kind));
    wrap(out, &group.message, width, "  ");
    for detail in &group.detail {
        let detail = crate::trace::text::block(detail);
        for detail in detail.lines() {
            // Not wrapped: it may be a command to copy.
            let _ = writeln!(out, "  {detail}");
        }
    }
    if let Some(first) = group.trials.first() {
        let rest = group.trials.len() - 1;
        let more = if rest == 0 { String::new() } else { format!(" and {} more", figures::count(rest as u64)) };
        wrap(out, &format!("in {first}{more}"), width, "  ");
    }
}

fn excluded(row: &CriterionResult) -> String {
    let units: u64 = row.excluded.iter().map(|one| one.n).sum();
    let cases = figures::counted(row.excluded.len() as u64, "case");
    let with = if row.with_excluded.is_empty() { String::new() } else { format!(", with them {}", row.with_excluded) };
    format!("{} {cases} ({} {}){with}", row.id, figures::count(units), row.units)
}

/// Writes `words` on lines of at most `width` characters, each behind `indent`.
pub(super) fn wrap(out: &mut String, words: &str, width: usize, indent: &str) {
    let words = line(words);
    let room = width.saturating_sub(indent.chars().count()).max(20);
    let mut row = String::new();
    for word in words.split(' ') {
        if !row.is_empty() && row.chars().count() + 1 + word.chars().count() > room {
            let _ = writeln!(out, "{indent}{row}");
            row.clear();
        }
        if !row.is_empty() {
            row.push(' ');
        }
        row.push_str(word);
    }
    let _ = writeln!(out, "{indent}{row}");
}

struct Paint {
    colour: bool,
}

impl Paint {
    fn dim(&self, text: &str) -> String {
        if self.colour { format!("\u{1b}[2m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn verdict(&self, verdict: Verdict) -> String {
        self.as_verdict(verdict, verdict.as_str())
    }

    fn as_verdict(&self, verdict: Verdict, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match verdict {
            Verdict::Pass => "32",
            Verdict::Fail => "1;31",
            Verdict::Inconclusive => "33",
            Verdict::NotMeasured => "36",
            Verdict::Error => "1;35",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Colours the verdict that a row of the table ends with.
    fn last_word(&self, row: &str) -> String {
        let (rest, word) = row.rsplit_once(' ').unwrap_or(("", row));
        let bare = word.trim_matches(['(', ')']);
        let verdicts = [Verdict::Pass, Verdict::Fail, Verdict::Inconclusive, Verdict::NotMeasured, Verdict::Error];
        match verdicts.into_iter().find(|verdict| verdict.as_str() == bare) {
            Some(verdict) if self.colour => format!("{rest} {}", self.as_verdict(verdict, word)),
            _ => row.to_owned(),
        }
    }
}

/// The evidence of a row in the width of its column: a long name is cut, for it stands in full below the table.
fn brief(evidence: &str) -> String {
    let Some((mode, rest)) = evidence.split_once(' ') else { return evidence.to_owned() };
    match rest.rsplit_once(' ') {
        Some((who, when)) => format!("{mode} {} {when}", clip(who, RESTS_ON)),
        None => format!("{mode} {}", clip(rest, RESTS_ON)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn every_criterion_stands_there_with_its_verdict_in_words_at_any_width() {
        let run = sample::run(2);
        for width in [80, 110] {
            let text = terminal(&run.view(), width, false);
            for row in &run.evaluation.criteria {
                let shown = text.lines().find(|line| line.starts_with(&row.id)).expect("one line a criterion");
                assert!(shown.trim_end_matches(')').ends_with(row.verdict.as_str()), "{shown}");
            }
            assert_eq!(text.lines().next().is_some_and(|head| head.contains("evidence")), width == 110, "{text}");
        }
    }

    #[test]
    fn lines_keep_to_the_width_that_was_asked_for() {
        let run = sample::run(2);
        for width in [80, 100, 140] {
            let text = terminal(&run.view(), width, false);
            // The longest trial id of the sample has 59 characters: no word is wider than the narrowest width.
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{widest:?} at {width}:\n{text}");
        }
    }

    #[test]
    fn nothing_commands_the_terminal_without_colour() {
        let run = sample::run(2);
        let text = terminal(&run.view(), 100, false);
        assert!(!text.chars().any(|character| character.is_control() && character != '\n'));
        assert!(terminal(&run.view(), 100, true).contains("\u{1b}[1;31mFAIL\u{1b}[0m"));
    }

    #[test]
    fn one_cause_of_error_is_one_message_with_the_number_of_trials() {
        let run = sample::run(4);
        let text = terminal(&run.view(), 100, false);
        let group = &run.evaluation.errors[0];
        assert_eq!(text.matches(&group.kind).count(), 1);
        assert!(text.contains(&format!("({} trials)", group.trials.len())));
    }
}
