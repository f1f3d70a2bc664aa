//! Terminal output of a run: table of criteria, causes of their failures, causes of ERROR, and evidence.
//!
//! Facts that all rows share are printed once, below the table, and so is each cause. Below 100 columns, each
//! criterion takes two lines. Verdicts are always words; colour is an addition. All text is sanitised first: a document
//! cannot send escape sequences to the terminal.

use super::terminal_lines::{Paint, wrap};
use super::terminal_table::{criteria, name};
use super::{View, figures, to_do};
use crate::gate::{CriterionResult, Evaluation, Latency, Repeats, Verdict};
use crate::trace::EDITED;
use crate::trace::text::{block, line, shell_word};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Maximum number of reasons listed per criterion.
const LISTED: usize = 5;

/// Maximum number of lanes with times, and of sources of evidence.
const NAMED: usize = 3;

/// Renders the result in at most `width` columns (80 to 140 suit it), with ANSI colours if `colour` is set.
pub(crate) fn terminal(view: &View<'_>, width: usize, colour: bool) -> String {
    let evaluation = view.evaluation;
    let width = width.clamp(60, 160);
    let paint = Paint { colour };
    let mut out = String::new();
    // For selected cases or scenarios, only what they decide is shown.
    let selected = view.plan.part.as_ref().is_some_and(|part| part.cases || part.scenarios);
    criteria(&mut out, &evaluation.criteria, selected, width, &paint);
    if !evaluation.gates.is_empty() {
        let counts = figures::verdict_counts(evaluation.gates.iter());
        let gates = figures::counted(evaluation.gates.len() as u64, "scenario gate");
        let _ = writeln!(out, "\n{gates}: {counts}");
        // A gate that does not decide anything is shown for its figure.
        let watched = evaluation.gates.iter().filter(|gate| !gate.required && gate.verdict == Verdict::Pass);
        let watched: Vec<_> = watched.map(|gate| format!("{} {}", name(gate), figures::observed(gate))).collect();
        if !watched.is_empty() {
            wrap(&mut out, &format!("not required: {}", watched.join("; ")), width, "  ");
        }
    }
    if let Some(line) = figures::self_tests(evaluation) {
        wrap(&mut out, &format!("\n{line}"), width, "  ");
    }
    let unmet = evaluation.rows().filter(|row| row.verdict != Verdict::Pass);
    let mut told = BTreeSet::new();
    // Criteria that the selected trials cannot answer are named in the last line.
    let part = view.plan.part.is_some();
    for row in unmet.filter(|row| row.required || !(selected || part && row.not_asked)) {
        // Trials that could not be run are shown once, with their cause.
        let untried = row.verdict == Verdict::Error && row.errors > 0 && !evaluation.errors.is_empty();
        if !untried {
            unmet_row(&mut out, row, &mut told, width, &paint);
        }
    }
    // What did not pass is said above, with the reason.
    let is_of_answers = |row: &&CriterionResult| row.units.contains("answer") && row.out_of_scope > 0;
    let passed = evaluation.rows().filter(|row| row.verdict == Verdict::Pass).filter(is_of_answers);
    let unseen: Vec<String> =
        passed.map(|row| format!("{} {}", name(row), figures::counted(row.out_of_scope, "trial"))).collect();
    if !unseen.is_empty() {
        let _ = writeln!(out);
        wrap(&mut out, &format!("Out of scope: {}", unseen.join("; ")), width, "");
    }
    let left_out = evaluation.criteria.iter().chain(&evaluation.gates).filter(|row| !row.excluded.is_empty());
    let excluded: Vec<_> = left_out.map(excluded).collect();
    if !excluded.is_empty() {
        let _ = writeln!(out);
        wrap(&mut out, &format!("Excluded: {}", excluded.join("; ")), width, "");
    }
    let _ = writeln!(out, "\n{}", figures::trials(evaluation));
    facts(&mut out, evaluation, width);
    let verdict = figures::verdict_of(view.exit_code());
    let mut conclusion = String::new();
    let said = without_excluded(evaluation);
    let said = match view.decided {
        Some(decided) => format!("{}; the criteria alone: exit code {}, {said}", decided.why, evaluation.exit_code),
        None => said.to_owned(),
    };
    wrap(&mut conclusion, &format!("{said} (exit code {})", view.exit_code()), width, "");
    let _ = writeln!(out, "\n{}", paint.as_verdict(verdict, conclusion.trim_end()));
    out
}

/// Results of more criteria and scenario gates than this are shown in brief if they pass.
const LONG: usize = 40;

/// The result of a large suite that passes, in four lines; `None` for any other, which [`terminal`] renders.
pub(crate) fn terminal_brief(view: &View<'_>, width: usize) -> Option<String> {
    let evaluation = view.evaluation;
    let rows = || evaluation.criteria.iter().chain(&evaluation.gates);
    // What was held is part of the result.
    if view.exit_code() != 0 || view.decided.is_some() || evaluation.held.is_some() || rows().count() <= LONG {
        return None;
    }
    let mut out = String::new();
    let _ = writeln!(out, "{}", figures::trials(evaluation));
    let (criteria, gates) = (evaluation.criteria.iter(), evaluation.gates.iter());
    let _ = writeln!(
        out,
        "{}: {}; {}: {}",
        if criteria.len() == 1 { "1 criterion".to_owned() } else { format!("{} criteria", criteria.len()) },
        figures::verdict_counts(criteria),
        figures::counted(gates.len() as u64, "scenario gate"),
        figures::verdict_counts(gates)
    );
    let width = width.clamp(60, 160);
    for evidence in evaluation.evidence.iter().filter(|from| from.contains(EDITED)) {
        wrap(&mut out, evidence, width, "  ");
    }
    wrap(&mut out, &format!("{} (exit code 0)", without_excluded(evaluation)), width, "");
    let _ = writeln!(out, "each criterion with its bound, evidence and times: add --verbose, or open the report");
    Some(out)
}

/// The conclusion without the criteria with excluded cases, its last part: the terminal lists these apart, with the rates
/// that they would give.
fn without_excluded(evaluation: &Evaluation) -> &str {
    let whole = evaluation.conclusion.as_str();
    let has_excluded = evaluation.rows().any(|row| row.required && !row.excluded.is_empty());
    let parts = whole.rsplit_once("; cases left out of: ").filter(|_| has_excluded);
    parts.map_or(whole, |(said, _)| said)
}

/// Each trial in plan order, with verdict, length and, if it did not pass, why.
pub(crate) fn each_trial(view: &View<'_>, colour: bool) -> String {
    let paint = Paint { colour };
    let mut out = String::new();
    for trial in view.evaluation.trials.iter() {
        let why = match trial.verdict {
            Verdict::Pass => String::new(),
            Verdict::Error => format!("  {}", trial.error),
            _ => format!("  {}", to_do::why(&trial)),
        };
        let (gap, took) =
            (" ".repeat(13_usize.saturating_sub(trial.verdict.as_str().len())), figures::duration(trial.took_us));
        let verdict = paint.verdict(trial.verdict);
        let _ = writeln!(out, "{verdict}{gap}{took:>9}  {}", line(&format!("{}{why}", trial.id)));
    }
    out + "\n"
}

/// Items of each state that the list shows on a terminal.
const TO_DO: usize = 3;

/// Facts that change the commands of the list and are not part of the run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known<'a> {
    /// Folder of the run, if it is not the newest.
    pub(crate) folder: Option<&'a str>,
    /// The command, as typed, that runs again what did not pass.
    pub(crate) again: Option<&'a str>,
}

/// What to do, for the end of a terminal's output; `None` if there is nothing to do. Commands are not wrapped.
pub(crate) fn what_to_do(view: &View<'_>, known: Known<'_>, width: usize, colour: bool) -> Option<String> {
    let found = to_do::to_do(view);
    let lines = to_do::lines(&found, TO_DO);
    if lines.is_empty() {
        return None;
    }
    let paint = Paint { colour };
    let mut out = format!("\n{}\n", paint.as_verdict(figures::verdict_of(view.exit_code()), "What to do"));
    for one in lines {
        match one {
            to_do::Line::Head(words) => wrap(&mut out, &words, width.clamp(60, 160), ""),
            to_do::Line::Words(words) => wrap(&mut out, &words, width.clamp(60, 160), "  "),
            to_do::Line::Detail(detail) => {
                for detail in block(detail).lines() {
                    let _ = writeln!(out, "  {detail}");
                }
            }
            to_do::Line::Command(help) => {
                let shown = help.command.strip_prefix("ragcheck show ").zip(known.folder);
                let command = match (shown, known.again) {
                    (Some((trial, folder)), _) => {
                        format!("ragcheck show {}", shell_word(&format!("{folder}/{}", trial.trim_matches('\''))))
                    }
                    (None, Some(again)) if help.is_resume() => again.to_owned(),
                    (None, _) => help.command.clone(),
                };
                let _ = writeln!(out, "  {}: {}", help.purpose, line(&command));
                if !help.cost.is_empty() {
                    wrap(&mut out, &help.cost, width.clamp(60, 160), "    ");
                }
            }
        }
    }
    Some(out)
}

/// Evidence, times and cost of the trials.
fn facts(out: &mut String, evaluation: &Evaluation, width: usize) {
    if let Some(stopped) = &evaluation.stopped {
        wrap(out, &stopped.sentence, width, "  ");
    }
    for evidence in &evaluation.evidence {
        wrap(out, evidence, width, "  ");
    }
    for note in &evaluation.notes {
        // Trials with a changed verdict are in the report, and those that fail now are shown above.
        let changed = note.split_once(" had another verdict when recorded: ");
        let note = changed.map_or_else(|| note.clone(), |(n, _)| format!("{n} had another verdict when recorded"));
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

/// Times of some lanes, one line each, and a reference to the others.
fn times(out: &mut String, rows: &[Latency], width: usize) {
    let (faulty, usual): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.has_declared_faults());
    for row in usual.iter().take(NAMED) {
        wrap(out, &format!("time of {}", figures::latency_in_brief(row)), width, "  ");
    }
    if usual.len() > NAMED {
        let more = figures::counted((usual.len() - NAMED) as u64, "more lane");
        wrap(out, &format!("time of {more}: latency.csv"), width, "  ");
    }
    if !faulty.is_empty() {
        let turns = figures::counted(faulty.iter().map(|row| row.turns).sum(), "turn");
        let told = format!(
            "time of {turns} of cases with a declared fault or an expected error: latency.csv; criteria on times count them \
             too, except for cases that are left out"
        );
        wrap(out, &told, width, "  ");
    }
}

/// Rates of repeated cases; omitted if nothing failed, because all would be 100 %.
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

/// Sentence of a row without the figures in the table.
fn reason(row: &CriterionResult) -> &str {
    let seen = format!("{}; ", row.seen_text);
    row.sentence.strip_prefix(&seen).filter(|_| row.scenario.is_none()).unwrap_or(&row.sentence)
}

/// A row that does not pass, with causes not shown for earlier rows.
fn unmet_row(
    out: &mut String,
    row: &CriterionResult,
    told: &mut BTreeSet<(String, String)>,
    width: usize,
    paint: &Paint,
) {
    let optional = if row.required { "" } else { " (for information)" };
    let mut text = String::new();
    let head = format!("{} {}{optional}: {}", row.verdict.as_str(), name(row), reason(row));
    wrap(&mut text, &head, width, "");
    let painted = text.replacen(row.verdict.as_str(), &paint.verdict(row.verdict), 1);
    let _ = write!(out, "\n{painted}");
    // A proxy's failures do not affect the criterion: the HTML report lists them. Failed cases and a single cause are on the
    // list of what to do.
    let listed_below =
        row.required && row.verdict == Verdict::Fail && (row.metric == "case_pass_rate" || row.causes.len() == 1);
    let causes = if row.proxy || listed_below { &[][..] } else { &row.causes[..] };
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
        // The first one in full if the reason is shortened, and nothing twice.
        let full = first.note != cause.reason && !first.note.is_empty();
        let first = if full { format!("{place}: {}", first.note) } else { place };
        let times = figures::thousands(cause.units);
        wrap(out, &format!("- {times} × {}, first in {first}", cause.reason), width, "  ");
    }
    if listed > LISTED {
        let more = figures::counted((listed - LISTED) as u64, "other reason");
        let _ = writeln!(out, "  and {more}: violations.csv");
    }
    if before > 0 {
        let _ = writeln!(out, "  and {} given above", figures::counted(before, "reason"));
    }
    if row.errors > 0 && !row.sentence.contains(" in ERROR ") {
        let _ = writeln!(out, "  {} in ERROR would have counted", figures::counted(row.errors, "trial"));
    }
}

fn excluded(row: &CriterionResult) -> String {
    let units: u64 = row.excluded.iter().map(|one| one.n).sum();
    let cases = figures::counted(row.excluded.len() as u64, "case");
    let with = if row.with_excluded.is_empty() { String::new() } else { format!(", with them {}", row.with_excluded) };
    format!("{} {cases} ({} {}){with}", name(row), figures::thousands(units), row.units)
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
                assert!(shown.trim_end_matches(')').ends_with(figures::verdict(row)), "{shown}");
            }
            assert_eq!(text.lines().next().is_some_and(|head| head.contains("verdict")), width == 110, "{text}");
        }
    }

    #[test]
    fn a_criterion_on_answers_that_passes_says_of_how_many_trials_it_counts_nothing() {
        let mut run = sample::run(1);
        let row = &mut run.evaluation.criteria[0];
        (row.verdict, row.units, row.out_of_scope) = (Verdict::Pass, "answers with facts".to_owned(), 3);
        let words = format!("Out of scope: {} 3 trials", row.id);
        let text = terminal(&run.view(), 110, false);
        assert!(text.lines().any(|line| line == words), "{text}");
    }

    #[test]
    fn the_excluded_cases_alone_are_cut_off_whatever_a_criterion_is_called() {
        let mut run = sample::run(1);
        let said = "1 passed; NOT_MEASURED as declared: a; cases left out of: b; 1 recording CHANGED";
        assert!(run.evaluation.criteria[1].required && !run.evaluation.criteria[1].excluded.is_empty());
        run.evaluation.conclusion = format!("{said}; cases left out of: A (1 case)");
        assert_eq!(without_excluded(&run.evaluation), said);
        run.evaluation.criteria[1].excluded.clear();
        run.evaluation.conclusion = said.to_owned();
        assert_eq!(without_excluded(&run.evaluation), said, "it is the name of a criterion");
    }

    #[test]
    fn at_80_columns_no_target_is_cut_and_only_commands_are_longer() {
        let run = sample::run(2);
        let text = terminal(&run.view(), 80, false);
        // Those that pass are on one line.
        for row in run.evaluation.criteria.iter().filter(|row| row.verdict != Verdict::Pass) {
            assert!(text.contains(&figures::goal(row)), "{}: {}", row.id, row.target);
        }
        let long = |line: &&str| line.chars().count() > 80 && !line.contains("ragcheck ");
        assert_eq!(text.lines().find(long), None, "{text}");
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
        // A required one is on the list of what to do.
        row.required = false;
        row.causes = vec![Cause { reason: "answer.contains".into(), units: 2, trials: 2, first }];
        let (row, cause) = (row.clone(), row.causes[0].clone());
        run.evaluation.gates.push(CriterionResult { id: "again".into(), scenario: Some("s".into()), ..row });
        let text = terminal(&run.view(), 160, false);
        let printed = format!("× {}, first in {}", cause.reason, cause.first.trial);
        assert_eq!(text.matches(&printed).count(), 1, "{text}");
        assert!(text.contains("FAIL s: again") && text.contains("given above"), "{text}");
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
        let list = what_to_do(&run.view(), Known::default(), 100, false).expect("there is something to do");
        let text = terminal(&run.view(), 100, false) + &list;
        let group = &run.evaluation.errors[0];
        assert_eq!(text.matches(&group.kind).count(), 1, "{text}");
        assert!(text.contains(&format!("({} trials)", group.trials.len())));
    }
}
