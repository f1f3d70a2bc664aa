//! What to do: failed criteria and cases, with the commands that show, record or reproduce them.

use super::markup::{escaped, fenced, folded, list};
use super::{LISTED, PROMPT};
use crate::report::to_do::{ToDo, reproduce, subject};
use crate::report::{View, figures};
use std::fmt::Write as _;

/// Rows of the list before the folds.
const TO_DO: usize = 4;

/// What to do: a few rows with the commands that record or show and reproduce the first, then the others in a fold.
pub(super) fn what_fails(view: &View<'_>, found: &[ToDo]) -> Vec<String> {
    if found.is_empty() {
        return Vec::new();
    }
    let (first, rest) = in_brief(found);
    let head = "| | case or criterion | trials | why |\n|---|---|---:|---|\n";
    let row = |one: &&ToDo| {
        let trials = if one.trials > 0 { figures::thousands(one.trials) } else { String::new() };
        format!("| **{}** | {} | {trials} | {} |", one.state.as_str(), escaped(&subject(one)), escaped(&one.why))
    };
    let mut out = head.to_owned();
    list(&mut out, TO_DO, first.iter().map(row));
    if !rest.is_empty() {
        let _ = writeln!(out, "\nand {} more, below", figures::thousands(rest.len() as u64));
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
