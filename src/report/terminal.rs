//! The result on a terminal: criteria in a table, what fails them, causes of ERROR, and the evidence.
//!
//! What all rows share stands once, below the table, and a cause stands once, wherever it counts. Below [`NARROW`] columns each
//! criterion takes two lines. Verdicts are always words; colour only underlines them. Every text is made harmless first: a
//! document cannot send escape sequences to the reader's terminal.

use super::{View, figures};
use crate::gate::{CriterionResult, ErrorGroup, Evaluation, Latency, Repeats, Verdict};
use crate::trace::text::{clip, line};
use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Reasons that are listed for one criterion.
const LISTED: usize = 5;

/// Lanes whose times are told, and sources of evidence that are named.
const NAMED: usize = 3;

/// Columns below which a criterion takes two lines.
const NARROW: usize = 100;

/// Columns from which the table has room for the numbers of units, where rows differ in them.
const WIDE: usize = 130;

/// Columns of a criterion's id where it has a line of its own.
const ID: usize = 14;

/// The result in at most `width` columns (80 to 140 suit it), with ANSI colours when `colour` is set.
pub fn terminal(view: &View<'_>, width: usize, colour: bool) -> String {
    let evaluation = view.evaluation;
    let width = width.clamp(60, 160);
    let paint = Paint { colour };
    let mut out = String::new();
    let criteria: Vec<_> = evaluation.criteria.iter().collect();
    out.push_str(&if width < NARROW { lines(&criteria, width, &paint) } else { table(&criteria, width, &paint) });
    shared(&mut out, &criteria, width, &paint);
    if !evaluation.gates.is_empty() {
        let counts = figures::verdict_counts(evaluation.gates.iter());
        let gates = figures::counted(evaluation.gates.len() as u64, "scenario gate");
        let _ = writeln!(out, "\n{gates}: {counts}");
        // A gate that nothing depends on is there for its figure.
        let watched = evaluation.gates.iter().filter(|gate| !gate.required && gate.verdict == Verdict::Pass);
        let watched: Vec<_> = watched.map(|gate| format!("{} {}", name(gate), figures::observed(gate))).collect();
        if !watched.is_empty() {
            wrap(&mut out, &format!("not required: {}", watched.join("; ")), width, "  ");
        }
    }
    let gates = evaluation.gates.iter();
    let unmet = evaluation.criteria.iter().chain(gates).filter(|row| row.verdict != Verdict::Pass);
    // Of selected cases or scenarios only what they decide is told: the table has the others.
    let selected = view.plan.part.as_ref().is_some_and(|part| part.cases || part.scenarios);
    let mut told = BTreeSet::new();
    for row in unmet.filter(|row| row.required || !selected) {
        // Trials that could not be run are told once, with their cause.
        let untried = row.verdict == Verdict::Error && row.errors > 0 && !evaluation.errors.is_empty();
        if !untried {
            unmet_row(&mut out, row, &mut told, width, &paint);
        }
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
    facts(&mut out, evaluation, width);
    let verdict = figures::verdict_of(evaluation.exit_code);
    let mut conclusion = String::new();
    // Which cases are left out stands above, with the rates that they would make.
    let said = evaluation.conclusion.split("; cases left out of: ").next().unwrap_or_default();
    wrap(&mut conclusion, &format!("{said} (exit code {})", evaluation.exit_code), width, "");
    let _ = writeln!(out, "\n{}", paint.as_verdict(verdict, conclusion.trim_end()));
    out
}

/// What the trials rest on, took and cost.
fn facts(out: &mut String, evaluation: &Evaluation, width: usize) {
    if let Some(stopped) = &evaluation.stopped {
        wrap(out, &stopped.sentence, width, "  ");
    }
    for evidence in &evaluation.evidence {
        wrap(out, evidence, width, "  ");
    }
    for note in &evaluation.notes {
        // The trials whose verdict changed are in the report, and those that fail now were told.
        let changed = note.split_once(" came to another verdict when recorded: ");
        let note = changed.map_or_else(|| note.clone(), |(n, _)| format!("{n} came to another verdict when recorded"));
        wrap(out, &format!("note: {note}"), width, "  ");
    }
    times(out, &evaluation.latency, width);
    if let Some(spent) = figures::spent(&evaluation.spending.run) {
        wrap(out, &spent, width, "  ");
    }
    repeats(out, &evaluation.repeats, width);
    for row in &evaluation.grades {
        wrap(out, &figures::grades(row), width, "  ");
    }
}

/// The times of some lanes, in one line each, and where the others are.
fn times(out: &mut String, rows: &[Latency], width: usize) {
    for row in rows.iter().take(NAMED) {
        wrap(out, &format!("time of {}", figures::latency_in_brief(row)), width, "  ");
    }
    if rows.len() > NAMED {
        let more = figures::counted((rows.len() - NAMED) as u64, "more lane");
        wrap(out, &format!("time of {more}: latency.csv"), width, "  ");
    }
}

/// Rates of repeated cases; where nothing ever failed, 100 % again and again tells nothing.
fn repeats(out: &mut String, rows: &[Repeats], width: usize) {
    let (measured, other): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.not_measured.is_empty());
    let always = |row: &&Repeats| row.all.iter().all(|share| *share >= 1.0);
    let (always, measured): (Vec<_>, Vec<_>) = measured.into_iter().partition(always);
    for row in measured {
        wrap(out, &figures::repeats(row), width, "  ");
    }
    if !always.is_empty() {
        let cases = figures::counted(always.iter().map(|row| row.cases).sum(), "case");
        wrap(out, &format!("repeated: {cases} passed in every repetition"), width, "  ");
    }
    if let Some((first, rest)) = other.split_first() {
        let more = if rest.is_empty() { String::new() } else { format!("; likewise {} more", rest.len()) };
        wrap(out, &format!("{}{more}", figures::repeats(first)), width, "  ");
    }
}

/// What most rows have in common, if any.
fn common(rows: &[&CriterionResult], of: impl Fn(&CriterionResult) -> String) -> Option<String> {
    let values: Vec<String> = rows.iter().map(|row| of(row)).collect();
    let times = |value: &String| values.iter().filter(|other| *other == value).count();
    let most = values.iter().max_by_key(|value| times(value))?;
    (times(most) * 2 > values.len()).then(|| most.clone())
}

fn evidence(row: &CriterionResult) -> String {
    line(&figures::rests_on(row))
}

fn name(row: &CriterionResult) -> String {
    line(&figures::name(row))
}

/// What is asked, and on what it rests where most others rest on something else.
fn what(row: &CriterionResult, usual: Option<&String>) -> String {
    let about = line(if row.about.is_empty() { &row.metric } else { &row.about });
    let own = evidence(row);
    if usual.is_none_or(|usual| *usual == own) || own == "–" { about } else { format!("{about} [{own}]") }
}

fn word(row: &CriterionResult) -> String {
    if row.required { row.verdict.as_str().into() } else { format!("({})", row.verdict.as_str()) }
}

/// Two lines a criterion.
fn lines(rows: &[&CriterionResult], width: usize, paint: &Paint) -> String {
    let mut out = String::new();
    let usual = common(rows, evidence);
    for row in rows {
        let (id, verdict) = (clip(&name(row), ID - 1).into_owned(), word(row));
        let room = width.saturating_sub(ID + verdict.chars().count() + 1);
        let about = clip(&what(row, usual.as_ref()), room).into_owned();
        let _ = writeln!(out, "{}", paint.last_word(&format!("{id:<ID$}{about:<room$} {verdict}")));
        let figures = format!(
            "{}, {}, target {}, n {}",
            figures::observed(row),
            figures::bound(row),
            row.target,
            figures::units(row)
        );
        let figures = line(&figures);
        let _ = writeln!(out, "{:ID$}{}", "", clip(&figures, width - ID));
    }
    out
}

/// One row a criterion.
fn table(rows: &[&CriterionResult], width: usize, paint: &Paint) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let usual = common(rows, evidence);
    let numbers = width >= WIDE && rows.iter().any(|row| figures::units(row) != figures::units(rows[0]));
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width).unwrap_or(160));
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
            line(&row.target),
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

/// Once, below the table, what all rows share, or most.
fn shared(out: &mut String, rows: &[&CriterionResult], width: usize, paint: &Paint) {
    let mut said = Vec::new();
    if let Some(evidence) = common(rows, evidence).filter(|evidence| evidence != "–") {
        let but =
            if rows.iter().any(|row| self::evidence(row) != evidence) { " unless a row says otherwise" } else { "" };
        said.push(format!("evidence: {evidence}{but}"));
    }
    if let Some(first) =
        rows.first().filter(|first| rows.iter().all(|row| figures::units(row) == figures::units(first)))
    {
        said.push(format!("n: {}", figures::units(first)));
    }
    if rows.iter().any(|row| !row.required) {
        said.push("verdict in brackets: not required, does not change the exit code".to_owned());
    }
    if !said.is_empty() {
        let mut text = String::new();
        wrap(&mut text, &said.join("; "), width, "");
        for line in text.lines() {
            let _ = writeln!(out, "{}", paint.dim(line));
        }
    }
}

/// The sentence of a row without the figures that stand in the table.
fn reason(row: &CriterionResult) -> &str {
    let sample = if row.sample_text.is_empty() { String::new() } else { format!(" ({})", row.sample_text) };
    let seen = format!("{}{sample}, {}; ", row.observed_text, row.bound_text);
    row.sentence.strip_prefix(&seen).filter(|_| row.scenario.is_none()).unwrap_or(&row.sentence)
}

/// A row that does not pass, with the causes that no row before it had.
fn unmet_row(
    out: &mut String,
    row: &CriterionResult,
    told: &mut BTreeSet<(String, String)>,
    width: usize,
    paint: &Paint,
) {
    let optional = if row.required { "" } else { " (not required)" };
    let mut text = String::new();
    let head = format!("{} {}{optional}: {}", row.verdict.as_str(), name(row), reason(row));
    wrap(&mut text, &head, width, "");
    let painted = text.replacen(row.verdict.as_str(), &paint.verdict(row.verdict), 1);
    let _ = write!(out, "\n{painted}");
    // A proxy's misses say nothing about the criterion: the HTML report lists them.
    let causes = if row.proxy { &[][..] } else { &row.causes[..] };
    let (mut listed, mut before) = (0, 0);
    for cause in causes {
        let first = &cause.first;
        if !told.insert((first.trial.clone(), cause.reason.clone())) {
            before += 1;
            continue;
        }
        listed += 1;
        if listed > LISTED {
            continue;
        }
        let place = format!("{}, {}", first.trial, first.unit);
        // The first one in full where the reason leaves something out, and nothing twice.
        let full = first.note != cause.reason && !first.note.is_empty();
        let first = if full { format!("{place}: {}", first.note) } else { place };
        let times = figures::count(cause.units);
        wrap(out, &format!("- {times} × {}, first in {first}", cause.reason), width, "  ");
    }
    if listed > LISTED {
        let more = figures::counted((listed - LISTED) as u64, "other reason");
        let _ = writeln!(out, "  and {more}: violations.csv");
    }
    if before > 0 {
        let _ = writeln!(out, "  and {} told above", figures::counted(before, "reason"));
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

/// The words of a text; what is to be copied is one word, a command in backticks and `--limit name=value`, unless it is longer
/// than `room` characters.
fn unbroken(text: &str, room: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    for word in text.split(' ') {
        let fits = words.last().is_some_and(|last| last.chars().count() + 1 + word.chars().count() <= room);
        let option =
            words.last().is_some_and(|last| last.starts_with("--") && !last.contains('=')) && word.contains('=');
        match words.last_mut().filter(|_| (open || option) && fits) {
            Some(last) => {
                last.push(' ');
                last.push_str(word);
            }
            None => words.push(word.to_owned()),
        }
        open ^= word.matches('`').count() % 2 == 1;
    }
    words
}

/// Writes `words` on lines of at most `width` characters, each behind `indent`.
pub(super) fn wrap(out: &mut String, words: &str, width: usize, indent: &str) {
    let words = line(words);
    let room = width.saturating_sub(indent.chars().count()).max(20);
    let mut row = String::new();
    for word in unbroken(&words, room) {
        if !row.is_empty() && row.chars().count() + 1 + word.chars().count() > room {
            let _ = writeln!(out, "{indent}{row}");
            row.clear();
        }
        if !row.is_empty() {
            row.push(' ');
        }
        row.push_str(&word);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Cause;
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
            assert_eq!(text.lines().next().is_some_and(|head| head.contains("verdict")), width == 110, "{text}");
        }
    }

    #[test]
    fn what_all_rows_share_stands_once_and_below_100_columns_a_criterion_takes_two_lines() {
        let run = sample::run(2);
        for width in [80, 100, 140] {
            let text = terminal(&run.view(), width, false);
            assert_eq!(text.matches("evidence: ").count(), 1, "{text}");
            assert_eq!(text.matches("verdict in brackets").count(), 1, "{text}");
        }
        let text = terminal(&run.view(), 80, false);
        let rows = text.lines().take_while(|line| !line.starts_with("evidence: ")).count();
        assert_eq!(rows, 2 * run.evaluation.criteria.len(), "{text}");
    }

    #[test]
    fn a_cause_that_several_rows_share_is_printed_once() {
        let mut run = sample::run(2);
        let row = run.evaluation.criteria.iter_mut().find(|row| row.verdict == Verdict::Fail);
        let row = row.expect("the sample has a criterion that fails");
        let first = row.violations[0].clone();
        row.causes = vec![Cause { reason: "answer.contains".into(), units: 2, trials: 2, first }];
        let (row, cause) = (row.clone(), row.causes[0].clone());
        run.evaluation.gates.push(CriterionResult { id: "again".into(), scenario: Some("s".into()), ..row });
        let text = terminal(&run.view(), 160, false);
        let printed = format!("× {}, first in {}", cause.reason, cause.first.trial);
        assert_eq!(text.matches(&printed).count(), 1, "{text}");
        assert!(text.contains("FAIL s: again") && text.contains("told above"), "{text}");
    }

    #[test]
    fn a_command_in_backticks_stays_on_one_line() {
        let mut out = String::new();
        wrap(&mut out, "say so with `ragcheck run --trust KEY=127.0.0.1:80` or not at all", 40, "");
        assert_eq!(out, "say so with\n`ragcheck run --trust KEY=127.0.0.1:80`\nor not at all\n");
        let mut out = String::new();
        wrap(&mut out, "it is too large; raise it with --limit trace-size=64MiB", 35, "");
        assert_eq!(out, "it is too large; raise it with\n--limit trace-size=64MiB\n");
        let long = format!("`{}`", "word ".repeat(40));
        let mut out = String::new();
        wrap(&mut out, &long, 40, "");
        assert!(out.lines().all(|line| line.chars().count() <= 41), "{out}");
    }

    #[test]
    fn the_terminal_at_80_100_and_140_columns() {
        let run = sample::run(2);
        insta::with_settings!({snapshot_path => "../../snapshots", prepend_module_to_snapshot => false}, {
            for width in [80, 100, 140] {
                insta::assert_snapshot!(format!("terminal-at-{width}-columns"), terminal(&run.view(), width, false));
            }
        });
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
