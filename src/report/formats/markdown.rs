//! `report.md`: a short report for a pull request's summary and comment.
//!
//! At most 25 lines, then folds. First the exit code with what decided it, the counts, what to do with failed criteria before
//! failed cases, and the commands. Folds: the rest of that list, changes against the base, prompts, criteria, gates, times and
//! cost. Text is escaped for GitHub: no markup, mention, issue link or automatic link survives. The report fits into a comment:
//! sections that do not fit are left out, and a line says so.

use crate::compare::Comparison;
use crate::gate::{CriterionResult, SpentBy, Verdict};
use crate::report::comparison::taken;
use crate::report::to_do::{ToDo, reproduce, subject, to_do};
use crate::report::{Format, View, figures};
use crate::trace::text;
use std::fmt::Write as _;
use std::io::{self, Write};

pub(super) const FORMATS: &[&dyn Format] = &[&Markdown];

/// Writes `report.md`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Markdown;

/// Maximum lines before the folds.
#[cfg(test)]
const FIRST: usize = 25;
/// Rows of the list before the folds.
const TO_DO: usize = 4;
/// Maximum characters of the conclusion of a comparison.
const CONCLUSION: usize = 900;
/// Maximum rows of a list or table.
const LISTED: usize = 20;
/// Maximum rows of a table of criteria.
const CRITERIA: usize = 60;
/// Maximum number of prompt differences, lines per prompt, and characters per line.
const PROMPT: (usize, usize, usize) = (5, 60, 300);
/// Maximum bytes of the report: GitHub limits a comment to 65,536 characters.
const MOST: usize = 60_000;

impl Format for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn file(&self) -> &'static str {
        "report.md"
    }

    fn write(&self, view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
        let evaluation = view.evaluation;
        let found = to_do(view);
        let mut sections = vec![format!("### ragcheck: exit code {}\n\n", view.exit_code())];
        if let Some(decided) = view.decided {
            let criteria = format!("; the criteria alone: exit code {}", evaluation.exit_code);
            sections.push(format!("{}{criteria}\n\n", escaped(&decided.why)));
        }
        sections.push(format!("{}\n\n", escaped(&evaluation.conclusion)));
        let compared = view
            .comparison
            .map(|found| format!("\nAgainst the base: {}", escaped_up_to(&found.conclusion, CONCLUSION)));
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
}

/// What each self-test promises, and how often it held.
fn self_tests(rows: &[CriterionResult]) -> String {
    let mut out = String::new();
    list(&mut out, LISTED, rows.iter().map(|row| format!("- {}", escaped(&figures::self_test(row)))));
    out
}

/// Writes at most `most` lines and a fifth of the size limit, then the number of omitted lines.
fn list(out: &mut String, most: usize, lines: impl Iterator<Item = String>) {
    let (mut written, mut more, before) = (0, 0, out.len());
    for line in lines {
        if written < most && more == 0 && out.len() + line.len() < before + MOST / 5 {
            let _ = writeln!(out, "{line}");
            written += 1;
        } else {
            more += 1;
        }
    }
    if more > 0 {
        let _ = writeln!(out, "\nand {} more", figures::count(more));
    }
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

/// The rows before the folds, with the first of each rank among them, and the others.
fn in_brief(found: &[ToDo]) -> (Vec<&ToDo>, Vec<&ToDo>) {
    let mut rows: Vec<&ToDo> = found.iter().collect();
    rows.sort_by_key(|one| one.state.in_brief());
    let begins = |place: &usize| *place == 0 || rows[*place].state.in_brief() != rows[*place - 1].state.in_brief();
    let (mut shown, others): (Vec<usize>, Vec<usize>) = (0..rows.len()).partition(begins);
    shown.extend(others);
    shown.truncate(TO_DO);
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for (place, one) in rows.into_iter().enumerate() {
        if shown.contains(&place) { &mut first } else { &mut rest }.push(one);
    }
    (first, rest)
}

/// A fold; empty if it has no text.
fn folded(title: &str, text: &str) -> String {
    if text.trim().is_empty() {
        return String::new();
    }
    format!("<details><summary>{}</summary>\n\n{}\n\n</details>\n\n", escaped(title), text.trim())
}

/// What to do: a few rows with the commands that record or show and reproduce the first, then the others in a fold.
fn what_fails(view: &View<'_>, found: &[ToDo]) -> Vec<String> {
    if found.is_empty() {
        return Vec::new();
    }
    let (first, rest) = in_brief(found);
    let head = "| | case or criterion | trials | why |\n|---|---|---:|---|\n";
    let row = |one: &&ToDo| {
        let trials = if one.trials > 0 { figures::count(one.trials) } else { String::new() };
        format!("| **{}** | {} | {trials} | {} |", one.state.as_str(), escaped(&subject(one)), escaped(&one.why))
    };
    let mut out = head.to_owned();
    list(&mut out, TO_DO, first.iter().map(row));
    if !rest.is_empty() {
        let _ = writeln!(out, "\nand {} more, below", figures::count(rest.len() as u64));
    }
    let block = |title: &str, commands: &[String]| {
        let (fence, lines) = fenced(commands.iter().map(String::as_str));
        format!("\n{title}:\n\n{fence}sh\n{lines}{fence}\n")
    };
    let record = found.iter().find(|one| one.state.is_untried() && !one.commands.is_empty());
    let commands = |one: &ToDo| {
        one.commands.iter().filter(|help| help.is_of_several()).map(|help| help.command.clone()).collect::<Vec<_>>()
    };
    let mut again: Vec<String> = reproduce(view, found).into_iter().collect();
    let shown = found.iter().find(|one| one.commands.iter().any(|help| help.purpose == "see it"));
    for help in shown.into_iter().flat_map(|one| &one.commands).filter(|help| !help.is_of_several()) {
        again.extend((!again.contains(&help.command)).then(|| help.command.clone()));
    }
    let again = if again.is_empty() { String::new() } else { block("Reproduce it", &again) };
    let mut later = String::new();
    match record {
        Some(one) => {
            let help = one.commands.iter().find(|help| !help.cost.is_empty()).unwrap_or(&one.commands[0]);
            let title = format!("{}{} ({})", help.purpose[..1].to_uppercase(), &help.purpose[1..], escaped(&help.cost));
            out += &block(&title, &commands(one));
            later += &again;
        }
        None => out += &again,
    }
    if !rest.is_empty() {
        let mut text = head.to_owned();
        list(&mut text, LISTED, rest.iter().map(row));
        later = format!("{text}\n{later}");
    }
    let details = found.iter().filter(|one| !one.detail.is_empty()).take(TO_DO).map(|one| {
        let (fence, lines) = fenced(one.detail.iter().take(PROMPT.1).map(String::as_str));
        format!("{}: {}\n\n{fence}diff\n{lines}{fence}\n\n", escaped(&one.name), escaped(&one.why))
    });
    later += &details.collect::<String>();
    vec![out + "\n", folded("More on what to do", &later)]
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

/// A fence longer than any run of backticks in the lines, so that nothing in them ends the block; and the lines.
fn fenced<'l>(lines: impl Iterator<Item = &'l str>) -> (String, String) {
    let mut block = String::new();
    for line in lines {
        let line = text::block(line).replace('\n', " ");
        block.push_str(&text::clip(&line, PROMPT.2));
        block.push('\n');
    }
    let longest = block.split(|one| one != '`').map(str::len).max().unwrap_or(0);
    ("`".repeat(longest.max(2) + 1), block)
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

/// One line of at most 300 characters in which GitHub finds no markup, mention, reference or link.
fn escaped(words: &str) -> String {
    escaped_up_to(words, 300)
}

fn escaped_up_to(words: &str, most: usize) -> String {
    let line = text::line(words);
    let mut out = String::with_capacity(line.len() + 8);
    let mut before = ' ';
    for character in text::clip(&line, most).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // A zero-width space breaks a mention, an issue reference or a link.
            '@' | '#' => out.extend([character, '\u{200b}']),
            ':' => out.push_str(":\u{200b}"),
            '.' if before.eq_ignore_ascii_case(&'w') => out.push_str(".\u{200b}"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '(' | ')' | '|' | '~' | '!' | '$' | '{' | '}' => {
                out.extend(['\\', character]);
            }
            _ => out.push(character),
        }
        before = character;
    }
    out.replace(":\u{200b} ", ": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{compare, sample::summary};
    use crate::report::{DecidedExit, sample, tests::written};

    #[test]
    fn no_markup_mention_or_link_survives() {
        let shown = escaped("<img src=x>|`a`\n@root see #12 and https://evil.example www.evil.example [x](y)");
        assert!(!shown.contains('<') && !shown.contains('\n'));
        for live in ["@root", "#12", "://", "www.e", " [", "](", " |"] {
            assert!(!shown.contains(live), "{live} in {shown}");
        }
    }

    #[test]
    fn each_failing_case_is_a_row_with_its_trials_and_the_commands_that_reproduce_it_follow() {
        let text = written(&Markdown, &sample::run(30).view());
        assert!(text.contains("| **FAILS** | heat-pumps/skips-the-manual | 30 |"), "{text}");
        assert!(text.contains("```sh\nragcheck ") && text.contains("\nragcheck show "), "{text}");
        assert!(!text.contains("against the base"), "nothing was compared: {text}");
    }

    #[test]
    fn at_most_twenty_five_lines_stand_before_the_folds_and_no_failed_criterion_is_left_out_for_cases() {
        let mut run = sample::run(40);
        let group = run.evaluation.errors[0].clone();
        for kind in ["cassette miss", "provider error", "lane missing"] {
            run.evaluation.errors.push(crate::gate::ErrorGroup { kind: kind.to_owned(), ..group.clone() });
        }
        let found = regression("a prompt");
        let decided = DecidedExit { exit_code: 3, why: "trials could not be run".into() };
        let failed = run.evaluation.criteria.iter().find(|row| row.verdict == Verdict::Fail && row.required);
        let name = escaped(&failed.expect("one fails").key());
        for view in [View { comparison: Some(&found), decided: Some(&decided), ..run.view() }, run.view()] {
            let text = written(&Markdown, &view);
            let first = text.split("<details>").next().expect("a beginning");
            assert!(first.lines().count() <= FIRST, "{}:\n{first}", first.lines().count());
            assert!(first.contains("ragcheck cassette refresh --missed --yes"), "{first}");
            assert!(text.contains(&format!("| {name}, ")), "with what it requires: {text}");
        }
        run.evaluation.errors.clear();
        let text = written(&Markdown, &run.view());
        let first = text.split("<details>").next().expect("a beginning");
        assert!(first.contains(&format!("| **FAILS** | {name}, ")), "{first}");
    }

    #[test]
    fn rows_beyond_twenty_are_counted() {
        let mut out = String::new();
        list(&mut out, LISTED, (0..LISTED + 7).map(|row| row.to_string()));
        assert_eq!(out.lines().count(), LISTED + 2);
        assert!(out.ends_with("\n\nand 7 more\n"), "{out}");
    }

    #[test]
    fn what_changed_comes_first_with_tokens_money_and_p95_of_the_base_and_of_now() {
        let run = sample::run(1);
        let found = regression("```\n::stop-commands::x\n@everyone");
        let text = written(&Markdown, &View { comparison: Some(&found), ..run.view() });
        let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} in {text}"));
        assert!(at("Against the base: ") < at("| **REGRESSED** | cases |") && at("REGRESSED") < at("Criteria: "));
        assert!(at("| **REGRESSED**") < at("What changed against the base"));
        at("| | base | now | difference |");
        at("| input tokens | 1,000 | 1,200 | +200, +20.0 % |");
        at("| cost | \\$2.50 | \\$2.50 | the same |");
        at("| turn p95 of tool-rag.base | 1.00 s | 1.00 s | the same |");
        at("````diff\n@@");
    }

    #[test]
    fn the_whole_fits_into_a_comment_however_long_the_texts_and_ends_no_block_early() {
        let mut run = sample::run(40);
        let long = "&[@everyone](https://x.example) ```\n".repeat(400);
        for error in 0..500 {
            let trials = vec![format!("{long}{error}")];
            run.evaluation.errors.push(crate::gate::ErrorGroup {
                kind: long.clone(),
                message: long.clone(),
                detail: vec![long.clone(); 9],
                trials,
            });
        }
        run.evaluation.notes = vec![long.clone(); 300];
        run.evaluation.evidence = vec![long.clone(); 300];
        let found = regression(&long);
        let text = written(&Markdown, &View { comparison: Some(&found), ..run.view() });
        assert!(text.len() < 65_536, "{}", text.len());
        assert!(text.contains("**REGRESSED**") && text.contains("\nand 5"), "{text}");
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
    }

    /// Ten cases that passed and fail now, with a prompt of these words and more expensive tokens.
    fn regression(prompt: &str) -> Comparison {
        let names: Vec<String> = (0..10).map(|case| format!("c{case}")).collect();
        let rows = |passed| names.iter().map(|name| (name.as_str(), passed, 1)).collect::<Vec<_>>();
        let (mut a, mut b) = (summary("a", &rows(1)), summary("b", &rows(0)));
        for side in [&mut a, &mut b] {
            side.settings[0].recorded_from = ["acme m".to_owned()].into();
        }
        b.settings[0].prompts.insert("system".into(), prompt.into());
        b.cases[0].usage.as_mut().expect("kept").input_tokens = Some(300);
        compare(&a, &b, 0.02).expect("comparable")
    }

    #[test]
    fn the_heading_is_the_exit_code_of_the_run_with_what_decided_it() {
        let run = sample::run(1);
        let alone = run.evaluation.exit_code;
        assert!(written(&Markdown, &run.view()).starts_with(&format!("### ragcheck: exit code {alone}\n\n")));
        let decided = DecidedExit { exit_code: 0, why: "--fail-on flip: no case fails that passed".into() };
        let text = written(&Markdown, &View { decided: Some(&decided), ..run.view() });
        let begins =
            "### ragcheck: exit code 0\n\n--fail-on flip: no case fails that passed; the criteria alone: exit code";
        assert!(text.starts_with(&format!("{begins} {alone}\n\n")), "{text}");
    }

    #[test]
    fn tokens_are_told_and_a_cost_without_a_price_is_not_measured() {
        let mut run = sample::run(2);
        let text = written(&Markdown, &run.view());
        assert!(text.contains("input tokens") && text.contains("cost NOT\\_MEASURED: the plan does not say"), "{text}");
        run.evaluation.spending.run.output_tokens = None;
        let text = written(&Markdown, &run.view());
        assert!(text.contains("- Tokens and cost: not measured: the plan does not say"), "{text}");
    }

    #[test]
    fn each_criterion_is_one_row_of_the_table() {
        let run = sample::run(1);
        let text = written(&Markdown, &run.view());
        let failing_gates = run.evaluation.gates.iter().filter(|gate| gate.verdict != Verdict::Pass).count();
        let marked =
            |line: &&str| ["✅", "❌", "❔", "⚪", "⚠️"].iter().any(|mark| line.starts_with(&format!("| {mark}")));
        let rows = text.lines().filter(marked).count();
        assert_eq!(rows, run.evaluation.criteria.len() + failing_gates);
    }
}
