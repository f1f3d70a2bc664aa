//! Output of `ragcheck list --estimate` below the trials.

use crate::settings::price::dollars;
use crate::stats::ALPHA;
use crate::stats::percent::{Rounding, at_least, rounded};
use crate::stats::power::fewest_cases;
use crate::suite::evaluation::{Estimate, Money, Requests};
use crate::trace::text::{count, line, plural, quote};
use std::fmt::Write as _;

/// The cost as text; `without` is the number of trials of cases without a recording.
fn money(given: &Money, without: usize) -> String {
    let mut said = Vec::new();
    if let Some(amount) = given.dollars {
        said.push(format!("about {}", dollars(amount)));
        if without > 0 {
            said.push(format!("{} of cases without a recording not counted", plural(without, "trial")));
        }
    }
    if !given.unpriced.is_empty() {
        let models: Vec<String> = given.unpriced.iter().map(|model| quote(model, 60)).collect();
        said.push(format!("not measured: no price known for {}", models.join(", ")));
    }
    if given.untold > 0 {
        let requests = plural(given.untold as usize, "recorded request");
        said.push(format!("not measured for {requests} whose tokens were not reported"));
    }
    if said.is_empty() { "not measured: nothing was recorded".to_owned() } else { said.join("; ") }
}

/// The lines below the table of trials.
pub(super) fn text(estimate: &Estimate) -> String {
    let mut out = String::from("\nA live run of this would send\n");
    let row = |out: &mut String, requests: &Requests, about: &str, from: &str| {
        if requests.trials > 0 {
            let (model, search) = (requests.model.round(), requests.search.round());
            let trials = plural(requests.trials, "trial");
            let _ = writeln!(out, "  {about}{model} model and {search} search requests in {trials}, {from}");
        }
    };
    row(&mut out, &estimate.recorded, "", "as in their recordings");
    row(&mut out, &estimate.alike, "about ", "by the recorded lanes of the same cases");
    row(
        &mut out,
        &estimate.bounded,
        "at most ",
        "by the limits of the flow and one search a completion, HTTP retries aside",
    );
    if let Some(passes) = estimate.passes {
        let _ = writeln!(out, "  or fewer: it goes by complete passes, {passes} at most, and stops when it is decided");
    }
    let _ = writeln!(out, "  money: {}", money(&estimate.money, estimate.bounded.trials));
    let _ = writeln!(
        out,
        "\nIt could show, against another run of it ({}, {} each; 80 % power, 5 % two-sided)",
        plural(estimate.cases, "case"),
        plural(estimate.repetitions, "trial"),
    );
    for one in &estimate.visible {
        let what = if one.estimand == "population" { "cases not seen yet" } else { "these cases" };
        let declared = if one.declared { ", which the criteria are about" } else { "" };
        let said = one.difference.map_or_else(
            || match fewest_cases(ALPHA) {
                fewest if (estimate.cases as u64) < fewest => {
                    let cases = count(estimate.cases as u64, "case is", "cases are");
                    format!("{cases} too few to show a difference, {fewest} are needed")
                }
                _ => "no difference of two rates".to_owned(),
            },
            |seen| format!("a difference of {} points or more", rounded(seen * 100.0, 1, Rounding::Up)),
        );
        let _ = writeln!(out, "  for {what} (`{}`{declared}): {said}", one.estimand);
    }
    let _ = writeln!(
        out,
        "  assuming that {}",
        if estimate.repetitions == 1 {
            "2 % of the cases get worse by chance (one case not seen yet varies with variance 0.01)"
        } else {
            "repetitions of a case vary as a rate of 91 % does (variance 0.08; between cases not seen yet 0.01)"
        }
    );
    let _ = writeln!(
        out,
        "and by itself: a rate over its {} to be at least {}, if none of them failed",
        plural(estimate.turns, "turn"),
        at_least(estimate.without_failure)
    );
    let family = estimate.criteria.iter().map(|row| row.family).max().unwrap_or(1);
    let heading = format!(
        "Criterion by criterion, by what their recordings measure (points: difference from another run, 80 % power,\n\
         after the correction for {})",
        plural(family as usize, "required row")
    );
    out += &table(&heading, estimate.criteria.iter().map(|row| (&row.key, &row.sentence)));
    let heading =
        "Gate by gate, before anything runs (each conversation counted as one unit; one without a unit shows nothing)";
    out + &table(heading, estimate.prospects.iter().map(|row| (&row.key, &row.sentence)))
}

/// A heading, and a line for each key; empty without rows.
fn table<'r>(heading: &str, rows: impl Iterator<Item = (&'r String, &'r String)> + Clone) -> String {
    let Some(width) = rows.clone().map(|(key, _)| key.chars().count()).max() else { return String::new() };
    let width = width.min(40);
    let lines = rows.map(|(key, sentence)| format!("  {:width$}  {sentence}\n", line(key)));
    format!("\n{heading}\n{}", lines.collect::<String>())
}
