//! A comparison in words: what was seen, by how much, how sure, and what could have been seen.

use super::flips::Flip;
use super::pairing::Pairing;
use super::summary::{CASES, Summary};
use super::{Finding, Row, Scale, times::FEWEST};
use crate::stats::percent::{Rounding, percent, points, points_interval, rounded};
use std::collections::BTreeSet;

/// Cases that a note names.
const NAMED: usize = 5;

/// A difference of rates in points, or of times in per cent, with its sign.
fn change(scale: Scale, value: f64) -> String {
    let unit = if scale == Scale::Rate { "points" } else { "%" };
    format!("{} {unit}", points(value))
}

fn level(scale: Scale, value: f64) -> String {
    if scale == Scale::Rate { percent(value) } else { format!("{value:.2} s") }
}

/// A p-value with three decimals.
pub(super) fn p_value(p: f64) -> String {
    if p < 0.0005 { "p < 0.001".into() } else { format!("p = {p:.3}") }
}

/// `1 case`, `2 cases`.
pub(super) fn count(n: u64, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

/// The sentence of one row; `margin` is the one that counts for it.
pub(super) fn sentence(row: &Row, margin: f64) -> String {
    let (Some(a), Some(b), Some(difference)) = (row.a, row.b, row.difference) else {
        return "not compared: no case has units on both sides".into();
    };
    let cases = count(row.cases, "case", "cases");
    let proxy = if row.proxy { "a stand-in, not a measurement: " } else { "" };
    let Some((p, adjusted)) = row.p.zip(row.p_adjusted) else {
        let both = level(row.scale, a);
        return format!("{proxy}no case changed of {cases}, {both} on both sides; {}", seen(row));
    };
    let interval = row.interval.map_or_else(String::new, |(low, high)| format!(" {}", points_interval(low, high)));
    let correction = if row.gated { "Holm" } else { "not gated, Benjamini-Hochberg" };
    let head = format!(
        "{proxy}{} to {}, {}{interval}, {} ({correction}; {}, {} alone); of {cases} {} better and {} worse",
        level(row.scale, a),
        level(row.scale, b),
        change(row.scale, difference),
        p_value(adjusted),
        row.method,
        p_value(p),
        row.better,
        row.worse
    );
    let allowed = format!(
        "{} {}",
        rounded(margin * 100.0, 1, Rounding::Nearest),
        if row.scale == Scale::Rate { "points" } else { "%" }
    );
    let gain = if row.fewer_is_better { -difference } else { difference };
    match row.finding {
        Finding::Better => format!("{head}: better"),
        Finding::Worse => format!("{head}: worse"),
        Finding::NotWorse => {
            let least = row.least.map_or_else(String::new, |least| format!(" ({} at least)", change(row.scale, least)));
            format!("{head}: not worse by more than {allowed}{least}")
        }
        _ if adjusted < 0.05 && gain < 0.0 => {
            format!("{head}: undecided, worse but not beyond the margin of {allowed}")
        }
        _ => format!("{head}: undecided: {}", seen(row)),
    }
}

/// What could have been seen.
fn seen(row: &Row) -> String {
    match row.visible {
        Some(visible) if row.scale == Scale::Rate => {
            format!("a difference of {:.0} points or more would have been seen (power 80 %)", (visible * 100.0).ceil())
        }
        Some(visible) => {
            format!("{:.0} % slower or more would have been seen (power 80 %)", (visible * 100.0).ceil())
        }
        None if row.cases < FEWEST as u64 => {
            let cases = count(row.cases, "case", "cases");
            format!("{cases} can show no difference, {FEWEST} that differ are the fewest")
        }
        None if row.scale == Scale::Time => "no case tells how much times vary".into(),
        None => "so few cases can hardly show a difference".into(),
    }
}

/// What one side rests on.
pub(super) fn evidence(summary: &Summary) -> String {
    let all = |set: fn(&super::Setting) -> &BTreeSet<String>| -> String {
        let words: BTreeSet<&str> =
            summary.settings.iter().flat_map(|row| set(row).iter().map(String::as_str)).collect();
        words.into_iter().collect::<Vec<_>>().join(", ")
    };
    let (mode, from, models) = (all(|row| &row.modes), all(|row| &row.recorded_from), all(|row| &row.models));
    if mode.is_empty() {
        return "nothing could be run".into();
    }
    let days: BTreeSet<&str> =
        summary.settings.iter().flat_map(|row| row.recorded_on.iter().map(String::as_str)).collect();
    let when = match (days.first(), days.last()) {
        (Some(first), Some(last)) if first != last => format!(" between {first} and {last}"),
        (Some(day), _) => format!(" on {day}"),
        _ => String::new(),
    };
    let recorded = match (mode.as_str(), from.as_str()) {
        (_, "") => "no service was asked".to_owned(),
        ("LIVE", _) => format!("from {from}"),
        _ => format!("recorded from {from}"),
    };
    format!("{mode}, {recorded}{when} (model {models})")
}

/// Sides that are a part of their run, and of what.
pub(super) fn parts(a: &Summary, b: &Summary) -> Vec<String> {
    let sides = [("A", &a.part), ("B", &b.part)].into_iter().filter(|(_, part)| !part.is_empty());
    sides.map(|(side, part)| format!("{side}: {part}")).collect()
}

/// Sides that stopped when they had seen enough: their figures lean towards what made them stop.
pub(super) fn stopped_early(a: &Summary, b: &Summary) -> Vec<String> {
    let sides = [("A", a.stopped), ("B", b.stopped)];
    let warning = |(side, stopped): (&str, Option<super::StoppedEarly>)| {
        let stopped = stopped?;
        Some(format!(
            "{side} was stopped after {} of {} passes, when its gates were decided: its rates lean towards what decided \
             them, and p-values and intervals below take them as if the number of passes had been fixed; for a \
             comparison that holds, run both sides with the same `--repeat`",
            stopped.passes, stopped.max
        ))
    };
    sides.into_iter().filter_map(warning).collect()
}

/// Cases of A that B does not have, or that it could not run at all: what is easiest to drop is what fails.
pub(super) fn dropped(pairing: &Pairing<'_>) -> Vec<String> {
    let mut said = Vec::new();
    if !pairing.only_a.is_empty() {
        let cases = count(pairing.only_a.len() as u64, "case", "cases");
        said.push(format!("B lacks {cases} of A: {}", named(&pairing.only_a)));
    }
    let empty = |of: &super::CaseFigures, other: &super::CaseFigures| of.trials == 0 && other.trials > 0;
    for of in 0..2 {
        let side = if of == 0 { "A" } else { "B" };
        let (mut whole, mut in_part) = (Vec::new(), Vec::new());
        for pair in &pairing.pairs {
            let name = format!("{}/{}", pair.scenario, pair.case);
            let hit: Vec<_> =
                pair.rows.iter().filter(|(a, b)| if of == 0 { empty(a, b) } else { empty(b, a) }).collect();
            if hit.len() == pair.rows.len() {
                whole.push(name);
            } else {
                let variant = |(a, b): &(&super::CaseFigures, &super::CaseFigures)| {
                    format!("{name} ({})", if of == 0 { &a.variant } else { &b.variant })
                };
                in_part.extend(hit.into_iter().map(variant));
            }
        }
        if !whole.is_empty() {
            let cases = count(whole.len() as u64, "case", "cases");
            said.push(format!("{side} ran no trial of {cases} of the other side: {}", named(&whole)));
        }
        if !in_part.is_empty() {
            let lanes = count(in_part.len() as u64, "case and variant", "cases and variants");
            said.push(format!("{side} ran no trial of {lanes} of the other side: {}", named(&in_part)));
        }
    }
    said
}

/// Cases that ran on both sides.
pub(super) fn compared(pairing: &Pairing<'_>) -> u64 {
    let ran = |(a, b): &(&super::CaseFigures, &super::CaseFigures)| a.trials > 0 && b.trials > 0;
    pairing.pairs.iter().filter(|pair| pair.rows.iter().any(ran)).count() as u64
}

/// What could not be compared, side by side.
pub(super) fn missing(a: &Summary, b: &Summary, pairing: &Pairing<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    for (side, summary) in [("A", a), ("B", b)] {
        if summary.errors() > 0 {
            let trials = count(summary.errors(), "trial", "trials");
            notes.push(format!("{trials} of {side} could not be run and are not compared"));
        }
    }
    if !pairing.only_b.is_empty() {
        notes.push(format!("only in B: {}", named(&pairing.only_b)));
    }
    for (side, other, of) in [("A", "B", 0), ("B", "A", 1)] {
        let mut cases = Vec::new();
        let mut repetitions = 0;
        for pair in &pairing.pairs {
            let unpaired = pair.rows.iter().map(|(a, b)| a.paired(b, CASES).unpaired);
            let number: u64 = unpaired.map(|(ours, theirs)| [ours, theirs][of]).sum();
            repetitions += number;
            if number > 0 {
                cases.push(format!("{}/{}", pair.scenario, pair.case));
            }
        }
        if repetitions > 0 {
            let number = count(repetitions, "repetition", "repetitions");
            let are = if repetitions == 1 { "is" } else { "are" };
            notes
                .push(format!("{number} of {side} without a partner in {other} {are} not compared: {}", named(&cases)));
        }
    }
    if !pairing.unmatched.is_empty() {
        notes.push(format!(
            "not compared, for the variants have no name in common (write RUN@variant): {}",
            named(&pairing.unmatched)
        ));
    }
    notes
}

pub(super) fn named(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", "))
}

/// Whether no gated row compares anything.
pub(super) fn nothing_compared(rows: &[Row]) -> bool {
    !rows.iter().any(|row| row.gated && row.finding != Finding::NotCompared)
}

/// The whole comparison in one sentence.
pub(super) fn conclusion(rows: &[Row], flips: &[Flip], cases: u64) -> String {
    let keys = |finding: Finding| -> Vec<&str> {
        rows.iter().filter(|row| row.gated && row.finding == finding).map(|row| row.key.as_str()).collect()
    };
    let over = format!("over {}", count(cases, "case", "cases"));
    let (worse, better, undecided) = (keys(Finding::Worse), keys(Finding::Better), keys(Finding::Undecided));
    let flipped = flips.iter().filter(|flip| flip.worse).count() as u64;
    let gained = flips.len() as u64 - flipped;
    let cases = if flips.is_empty() {
        "no case passes more or less often".to_owned()
    } else {
        format!("{} less often and {gained} more often", count(flipped, "case passes", "cases pass"))
    };
    let verdict = if nothing_compared(rows) {
        "nothing that is required was compared, so nothing is known of a regression".to_owned()
    } else if !worse.is_empty() {
        format!("B is worse than A in {}", worse.join(", "))
    } else if !better.is_empty() {
        format!("B is better than A in {} and nowhere shown to be worse", better.join(", "))
    } else if !undecided.is_empty() {
        format!("no regression is shown; inconclusive: {}", undecided.join(", "))
    } else {
        "no regression is shown".to_owned()
    };
    // Where nothing is shown, what could have been shown belongs beside it.
    let open = worse.is_empty() && better.is_empty();
    let reach = rows.iter().find(|row| row.key == CASES && open).map(|row| format!("; {}", seen(row)));
    format!("{verdict} ({over}): {cases}{}", reach.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_name_a_few_and_count_the_rest() {
        let names: Vec<String> = (1..8).map(|n| format!("c{n}")).collect();
        assert_eq!(named(&names), "c1, c2, c3, c4, c5 and 2 more");
        assert_eq!(named(&names[..2]), "c1, c2");
    }

    #[test]
    fn p_values_have_three_decimals_and_are_never_0() {
        assert_eq!([0.0385, 0.0002, 1.0].map(p_value), ["p = 0.038", "p < 0.001", "p = 1.000"]);
    }
}
