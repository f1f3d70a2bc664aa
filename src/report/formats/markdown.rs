//! `report.md`: a short report for a pull request's comment.
//!
//! The verdict, the criteria, the gates that do not pass, causes of ERROR and the first trials that failed. Text is
//! escaped for GitHub: no markup, no mention, no issue link and no automatic link survives.

use crate::gate::{CriterionResult, Verdict};
use crate::report::{Format, View, figures};
use crate::trace::text;
use std::io::{self, Write};

pub(super) const FORMATS: &[&dyn Format] = &[&Markdown];

/// Writes `report.md`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Markdown;

/// Trials that are listed one by one.
const LISTED: usize = 20;

impl Format for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn file(&self) -> &'static str {
        "report.md"
    }

    fn write(&self, view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
        let evaluation = view.evaluation;
        writeln!(out, "### ragcheck: exit code {}\n", evaluation.exit_code)?;
        writeln!(out, "{}\n", escaped(&evaluation.conclusion))?;
        if let Some(stopped) = &evaluation.stopped {
            writeln!(out, "- {}", escaped(&stopped.sentence))?;
        }
        for evidence in &evaluation.evidence {
            writeln!(out, "- {}", escaped(evidence))?;
        }
        for note in &evaluation.notes {
            writeln!(out, "- note: {}", escaped(note))?;
        }
        for row in &evaluation.grades {
            writeln!(out, "- {}", escaped(&figures::grades(row)))?;
        }
        for row in evaluation.repeats.iter().filter(|row| row.not_measured.is_empty()) {
            writeln!(out, "- {}", escaped(&figures::repeats(row)))?;
        }
        times_and_cost(view, out)?;
        table(out, "Criteria", evaluation.criteria.iter())?;
        let passed = evaluation.gates.iter().filter(|gate| gate.verdict == Verdict::Pass).count();
        if !evaluation.gates.is_empty() {
            writeln!(
                out,
                "\n{passed} of {} passed.",
                figures::counted(evaluation.gates.len() as u64, "scenario gate")
            )?;
        }
        table(out, "Gates that do not pass", evaluation.gates.iter().filter(|gate| gate.verdict != Verdict::Pass))?;
        if !evaluation.errors.is_empty() {
            writeln!(out, "\n#### Trials that could not be run\n")?;
            for group in &evaluation.errors {
                let number = figures::counted(group.trials.len() as u64, "trial");
                writeln!(out, "- {} × {}: {}", number, escaped(&group.kind), escaped(&group.message))?;
            }
        }
        failing(view, out)
    }
}

fn times_and_cost(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let evaluation = view.evaluation;
    for row in evaluation.latency.iter().take(LISTED) {
        writeln!(out, "- Time of {}", escaped(&figures::latency(row)))?;
    }
    let said = |spent| figures::spent(spent).unwrap_or_else(|| format!("not measured: {}", spent.not_measured));
    if !evaluation.spending.is_empty() {
        writeln!(out, "- Tokens and cost: {}", escaped(&said(&evaluation.spending.run)))?;
    }
    let variants = &evaluation.spending.variants;
    for (name, spent) in variants.iter().take(LISTED).filter(|_| variants.len() > 1) {
        writeln!(out, "  - {}: {}", escaped(name), escaped(&said(spent)))?;
    }
    Ok(())
}

fn table<'a>(out: &mut dyn Write, title: &str, rows: impl Iterator<Item = &'a CriterionResult>) -> io::Result<()> {
    for (index, row) in rows.enumerate() {
        if index == 0 {
            writeln!(out, "\n#### {title}\n")?;
            writeln!(out, "| | Criterion | n | Observed | 95 % bound | Target |\n|---|---|---:|---|---|---|")?;
        }
        let name = match &row.scenario {
            Some(scenario) => format!("{scenario}: {}", row.id),
            None => row.id.clone(),
        };
        writeln!(
            out,
            "| {} **{}** | {} {} | {} | {} | {} | {} |",
            mark(row.verdict),
            escaped(row.verdict.as_str()),
            escaped(&name),
            escaped(&row.about),
            figures::units(row),
            escaped(&figures::observed(row)),
            escaped(&figures::bound(row)),
            escaped(&row.target),
        )?;
    }
    Ok(())
}

fn failing(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let failing: Vec<_> = view.evaluation.trials.iter().filter(|trial| trial.verdict == Verdict::Fail).collect();
    if failing.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n#### Trials that failed\n")?;
    for trial in failing.iter().take(LISTED) {
        let check = trial.checks.iter().find(|check| !check.passed);
        let why = match (check, trial.departures.first()) {
            (Some(check), _) if check.seen.is_empty() => check.what.clone(),
            (Some(check), _) => format!("{}, seen: {}", check.what, check.seen),
            (None, Some(departure)) => departure.clone(),
            (None, None) => "no check failed".into(),
        };
        writeln!(out, "- {}: {}", escaped(&trial.id), escaped(&why))?;
    }
    if failing.len() > LISTED {
        writeln!(out, "- and {} more", figures::count((failing.len() - LISTED) as u64))?;
    }
    Ok(())
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
    let line = text::line(words);
    let mut out = String::with_capacity(line.len() + 8);
    let mut before = ' ';
    for character in text::clip(&line, 300).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // A zero-width space ends what would become a mention, an issue or a link.
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
    use crate::report::{sample, tests::written};

    #[test]
    fn no_markup_mention_or_link_survives() {
        let shown = escaped("<img src=x>|`a`\n@root see #12 and https://evil.example www.evil.example [x](y)");
        assert!(!shown.contains('<') && !shown.contains('\n'));
        for live in ["@root", "#12", "://", "www.e", " [", "](", " |"] {
            assert!(!shown.contains(live), "{live} in {shown}");
        }
    }

    #[test]
    fn at_most_twenty_failing_trials_are_listed_and_the_rest_is_counted() {
        let run = sample::run(30);
        let text = written(&Markdown, &run.view());
        let failing = run.evaluation.trials.iter().filter(|trial| trial.verdict == Verdict::Fail).count();
        assert!(failing > LISTED);
        assert!(text.contains(&format!("and {} more", failing - LISTED)));
    }

    #[test]
    fn tokens_are_told_and_a_cost_without_a_price_is_not_measured() {
        let mut run = sample::run(2);
        let text = written(&Markdown, &run.view());
        assert!(text.contains("tokens read") && text.contains("cost NOT\\_MEASURED: the plan does not say"), "{text}");
        run.evaluation.spending.run.output_tokens = None;
        let text = written(&Markdown, &run.view());
        assert!(text.contains("- Tokens and cost: not measured: the plan does not say"), "{text}");
    }

    #[test]
    fn each_criterion_is_one_row_of_the_table() {
        let run = sample::run(1);
        let text = written(&Markdown, &run.view());
        let failing_gates = run.evaluation.gates.iter().filter(|gate| gate.verdict != Verdict::Pass).count();
        let rows = text.lines().filter(|line| line.starts_with("| ") && line.contains("**")).count();
        assert_eq!(rows, run.evaluation.criteria.len() + failing_gates);
    }
}
