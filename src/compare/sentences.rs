//! A comparison as text: the observed difference, its size, its certainty, and the power.

use super::judged::TURN_TIME;
use super::pairing::Pairing;
use super::summary::{CASES, Summary};
use super::{ComparedCriterion, Finding, LIVE_REPETITIONS, Scale, Span};
use crate::stats::percent::{Rounding, percent, points, points_interval, rounded};
use crate::stats::power::fewest_cases;
use crate::trace::text::{count, listed};
use std::collections::BTreeSet;

/// Largest number of cases that a note names.
pub(super) const NAMED: usize = 5;

/// A difference of rates in points, or of times in per cent, with its sign.
pub(super) fn change(scale: Scale, value: f64) -> String {
    let unit = if scale == Scale::Rate { "points" } else { "%" };
    format!("{} {unit}", points(value))
}

/// A p-value with three decimals.
pub(super) fn p_value(p: f64) -> String {
    if p < 0.0005 { "p < 0.001".into() } else { format!("p = {p:.3}") }
}

/// The sentence of one row; `margin` is the one that counts for it.
pub(super) fn sentence(row: &ComparedCriterion, margin: f64) -> String {
    let Some(difference) = row.difference else {
        return "not compared: no case has units on both sides".into();
    };
    let cases = count(row.cases, "case", "cases");
    let shown = |side: Option<f64>| side.map_or_else(|| "no answer".to_owned(), |value| row.scale.shown(value));
    let proxy = if row.proxy { "a stand-in, not a measurement: " } else { "" };
    let Some((p, adjusted)) = row.p.zip(row.p_adjusted) else {
        return format!("{proxy}no case changed of {cases}, {} on both sides; {}", shown(row.a), seen(row));
    };
    let interval = interval(row);
    let correction = match (row.gated, row.family) {
        (true, 1) => "one required row".to_owned(),
        (true, rows) => format!("Holm over {rows} required rows"),
        (false, rows) => format!("not required, Benjamini-Hochberg over {rows}"),
    };
    let median = if row.key == TURN_TIME { "the median case: " } else { "" };
    let head = format!(
        "{proxy}{median}{} to {}, {}{interval}, {} ({correction}; {}, {} alone); of {cases} {} better and {} worse",
        shown(row.a),
        shown(row.b),
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
            let whom = if row.key == TURN_TIME { "the median case is not worse" } else { "not worse" };
            format!("{head}: {whom} by more than {allowed}{least}")
        }
        _ if row.p.zip(row.level).is_some_and(|(p, level)| p <= level) && gain < 0.0 => {
            format!("{head}: undecided, worse but not beyond the margin of {allowed}")
        }
        _ => format!("{head}: undecided: {}", seen(row)),
    }
}

/// The fewest cases that can show a difference at the first step of the correction.
fn fewest(row: &ComparedCriterion) -> u64 {
    fewest_cases(0.05 / row.family.max(1) as f64)
}

/// The interval of a row, with its level where that is not the usual one; empty without an interval.
pub(super) fn interval(row: &ComparedCriterion) -> String {
    let Some(Span { low, high }) = row.interval else { return String::new() };
    let level = row.level.filter(|level| *level < 0.0499);
    let level = level.map_or_else(String::new, |level| format!(" at {}", percent(1.0 - level)));
    format!(" {}{level}", points_interval(low, high))
}

/// Cases compared, those needed, and the required criteria, if no gated row could show a difference; `None` if one could, or
/// nothing was compared.
pub(super) fn shortage(rows: &[ComparedCriterion]) -> Option<(u64, u64, String)> {
    let gated = || rows.iter().filter(|row| row.gated && row.cases > 0);
    let most = gated().map(|row| row.cases).max()?;
    if gated().any(|row| row.cases >= fewest(row)) {
        return None;
    }
    let required = count(gated().map(|row| row.family).max()?, "required criterion", "required criteria");
    Some((most, gated().map(fewest).max()?, required))
}

/// `1 case is`, `6 cases are`.
pub(super) fn cases_are(cases: u64) -> String {
    count(cases, "case is", "cases are")
}

/// Reason why no gated row could be shown to be worse; `None` if one could, or nothing was compared.
pub(super) fn too_few(rows: &[ComparedCriterion]) -> Option<String> {
    let (cases, needed, required) = shortage(rows)?;
    let cases = count(cases, "case", "cases");
    Some(format!(
        "no regression can be shown: {cases} compared, and with {required} at least {needed} are needed (all of them worse); \
         compare {needed} cases or more, or require fewer criteria",
    ))
}

/// Reason why a flip between live runs proves nothing.
pub(super) fn too_few_repetitions(repetitions: u64) -> String {
    format!(
        "a flip between live runs needs {LIVE_REPETITIONS} repetitions of each case on both sides, and a case has {}: \
         one that passes 9 times in 10 flips by luck; run both sides with `--repeat {LIVE_REPETITIONS}`, or compare replays",
        count(repetitions, "trial", "trials")
    )
}

/// The smallest visible difference.
pub(super) fn seen(row: &ComparedCriterion) -> String {
    match row.visible {
        Some(visible) if row.scale == Scale::Rate => {
            format!("a difference of {:.0} points or more would have been seen (power 80 %)", (visible * 100.0).ceil())
        }
        Some(visible) => {
            format!("{:.0} % slower or more would have been seen (power 80 %)", (visible * 100.0).ceil())
        }
        None if row.cases < fewest(row) => {
            let of = if row.family > 1 { format!(" in one of {} criteria", row.family) } else { String::new() };
            format!(
                "{} too few to show a difference{of}: at least {} are needed, all changed in the same direction",
                cases_are(row.cases),
                fewest(row)
            )
        }
        None if row.scale == Scale::Time => "the smallest slowdown that would have been seen is not known".into(),
        None => "so few cases can hardly show a difference".into(),
    }
}

/// Source of one side's evidence.
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
    let models = if models.is_empty() { models } else { format!(" (model {models})") };
    format!("{mode}, {recorded}{when}{models}")
}

/// Names of both sides in sentences: the variants of one run, otherwise the labels; A and B if these are equal.
pub(super) fn names<'l>(a: &'l str, b: &'l str) -> [&'l str; 2] {
    match (a.rsplit_once('@'), b.rsplit_once('@')) {
        _ if a == b => ["A", "B"],
        (Some((run, one)), Some((other, two))) if run == other => [one, two],
        _ => [a, b],
    }
}

/// Names of two summaries, see [`names`].
pub(super) fn names_of<'l>(a: &'l Summary, b: &'l Summary) -> [&'l str; 2] {
    names(&a.label, &b.label)
}

/// Warnings about partial runs.
pub(super) fn parts(a: &Summary, b: &Summary) -> Vec<String> {
    let sides = names_of(a, b).into_iter().zip([&a.part, &b.part]).filter(|(_, part)| !part.is_empty());
    sides.map(|(side, part)| format!("{side}: {part}")).collect()
}

/// Warnings about sides that stopped early: their figures are biased towards the result that stopped them.
pub(super) fn stopped_early(a: &Summary, b: &Summary) -> Vec<String> {
    let sides = names_of(a, b).into_iter().zip([a.stopped, b.stopped]);
    let warning = |(side, stopped): (&str, Option<super::StoppedEarly>)| {
        let stopped = stopped?;
        Some(format!(
            "{side} was stopped after {} of {} passes, when its gates were decided: its rates lean towards what decided \
             them, and p-values and intervals below take them as if the number of passes had been fixed; for a \
             comparison that holds, run both sides with the same `--repeat`",
            stopped.passes, stopped.max
        ))
    };
    sides.filter_map(warning).collect()
}

/// Cases of A that B lacks or could not run at all: failing cases are the easiest to drop.
pub(super) fn dropped(pairing: &Pairing<'_>, names: [&str; 2]) -> Vec<String> {
    let mut said = Vec::new();
    if !pairing.only_a.is_empty() {
        let cases = count(pairing.only_a.len() as u64, "case", "cases");
        said.push(format!("{} lacks {cases} of {}: {}", names[1], names[0], listed(&pairing.only_a, NAMED)));
    }
    let empty = |of: &super::CaseFigures, other: &super::CaseFigures| of.lacks_results_of(other);
    for (of, side) in names.into_iter().enumerate() {
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
            said.push(format!("{side} has no result of {cases} of the other side: {}", listed(&whole, NAMED)));
        }
        if !in_part.is_empty() {
            let lanes = count(in_part.len() as u64, "case and variant", "cases and variants");
            said.push(format!("{side} has no result of {lanes} of the other side: {}", listed(&in_part, NAMED)));
        }
    }
    said
}

/// Number of cases of A, or of variants of a case, that B lacks or did not measure. Those in ERROR count as errors.
pub(super) fn lacking(pairing: &Pairing<'_>) -> u64 {
    let rows = pairing.pairs.iter().flat_map(|pair| &pair.rows);
    let unmeasured = rows.filter(|(a, b)| b.lacks_results_of(a) && b.errors == 0).count();
    (pairing.only_a.len() + unmeasured) as u64
}

/// Cases that ran on both sides.
pub(super) fn compared(pairing: &Pairing<'_>) -> u64 {
    let ran = |(a, b): &(&super::CaseFigures, &super::CaseFigures)| a.trials > 0 && b.trials > 0;
    pairing.pairs.iter().filter(|pair| pair.rows.iter().any(ran)).count() as u64
}

/// What could not be compared, side by side.
pub(super) fn missing(a: &Summary, b: &Summary, pairing: &Pairing<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let [older, newer] = names_of(a, b);
    for (side, summary) in [(older, a), (newer, b)] {
        if summary.errors() > 0 {
            let trials = count(summary.errors(), "trial", "trials");
            notes.push(format!("{trials} of {side} could not be run and are not compared"));
        }
    }
    if !pairing.only_b.is_empty() {
        notes.push(format!("only in {newer}: {}", listed(&pairing.only_b, NAMED)));
    }
    for (side, other, of) in [(older, newer, 0), (newer, older, 1)] {
        let mut cases = Vec::new();
        let mut repetitions = 0;
        for pair in &pairing.pairs {
            let unpaired = pair.rows.iter().map(|(a, b)| a.paired(b, CASES, pair.logged).unpaired);
            let number: u64 = unpaired.map(|(ours, theirs)| [ours, theirs][of]).sum();
            repetitions += number;
            if number > 0 {
                cases.push(format!("{}/{}", pair.scenario, pair.case));
            }
        }
        if repetitions > 0 {
            let number = count(repetitions, "repetition", "repetitions");
            let are = if repetitions == 1 { "is" } else { "are" };
            let by = if Summary::one_is_logged(a, b) { ", drawn by chance" } else { "" };
            notes.push(format!(
                "{number} of {side} without a partner in {other} {are} not compared{by}: {}",
                listed(&cases, NAMED)
            ));
        }
    }
    if !pairing.unmatched.is_empty() {
        notes.push(format!(
            "not compared, for the variants have no name in common (write RUN@variant): {}",
            listed(&pairing.unmatched, NAMED)
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_name_a_few_and_count_the_rest() {
        let names: Vec<String> = (1..8).map(|n| format!("c{n}")).collect();
        assert_eq!(listed(&names, NAMED), "c1, c2, c3, c4, c5 and 2 more");
        assert_eq!(listed(&names[..2], NAMED), "c1, c2");
    }

    #[test]
    fn p_values_have_three_decimals_and_are_never_0() {
        assert_eq!([0.0385, 0.0002, 1.0].map(p_value), ["p = 0.038", "p < 0.001", "p = 1.000"]);
    }
}
