//! A comparison as text: the observed difference, its size, its certainty, and the power.

use super::flips::Flip;
use super::judged::TURN_TIME;
use super::pairing::Pairing;
use super::summary::{CASES, Summary};
use super::{ComparedCriterion, Comparison, Figure, Finding, LIVE_REPETITIONS, Scale, Span, Unit};
use crate::stats::percent::{Rounding, percent, points, points_interval, rounded};
use crate::stats::power::fewest_cases;
use std::collections::BTreeSet;

/// Largest difference, as a share, that the interval may hold where two sides are said not to differ.
const UNSEEN: f64 = 0.1;
/// Largest number of cases that a note names.
const NAMED: usize = 5;

/// A difference of rates in points, or of times in per cent, with its sign.
pub(super) fn change(scale: Scale, value: f64) -> String {
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
pub(super) fn sentence(row: &ComparedCriterion, margin: f64) -> String {
    let (Some(a), Some(b), Some(difference)) = (row.a, row.b, row.difference) else {
        return "not compared: no case has units on both sides".into();
    };
    let cases = count(row.cases, "case", "cases");
    let proxy = if row.proxy { "a stand-in, not a measurement: " } else { "" };
    let Some((p, adjusted)) = row.p.zip(row.p_adjusted) else {
        let both = level(row.scale, a);
        return format!("{proxy}no case changed of {cases}, {both} on both sides; {}", seen(row));
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
fn interval(row: &ComparedCriterion) -> String {
    let Some(Span { low, high }) = row.interval else { return String::new() };
    let level = row.level.filter(|level| *level < 0.0499);
    let level = level.map_or_else(String::new, |level| format!(" at {}", percent(1.0 - level)));
    format!(" {}{level}", points_interval(low, high))
}

/// Cases compared, those needed, and the required criteria, if no gated row could show a difference; `None` if one could, or
/// nothing was compared.
fn shortage(rows: &[ComparedCriterion]) -> Option<(u64, u64, String)> {
    let gated = || rows.iter().filter(|row| row.gated && row.cases > 0);
    let most = gated().map(|row| row.cases).max()?;
    if gated().any(|row| row.cases >= fewest(row)) {
        return None;
    }
    let required = count(gated().map(|row| row.family).max()?, "required criterion", "required criteria");
    Some((most, gated().map(fewest).max()?, required))
}

/// `1 case is`, `6 cases are`.
fn cases_are(cases: u64) -> String {
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
fn seen(row: &ComparedCriterion) -> String {
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
        None if row.scale == Scale::Time => "no case shows how much times vary".into(),
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
        said.push(format!("{} lacks {cases} of {}: {}", names[1], names[0], named(&pairing.only_a)));
    }
    let empty = |of: &super::CaseFigures, other: &super::CaseFigures| of.trials == 0 && other.trials > 0;
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
    let [older, newer] = names_of(a, b);
    for (side, summary) in [(older, a), (newer, b)] {
        if summary.errors() > 0 {
            let trials = count(summary.errors(), "trial", "trials");
            notes.push(format!("{trials} of {side} could not be run and are not compared"));
        }
    }
    if !pairing.only_b.is_empty() {
        notes.push(format!("only in {newer}: {}", named(&pairing.only_b)));
    }
    for (side, other, of) in [(older, newer, 0), (newer, older, 1)] {
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
pub(super) fn nothing_compared(rows: &[ComparedCriterion]) -> bool {
    !rows.iter().any(|row| row.gated && row.finding != Finding::NotCompared)
}

/// What someone who must choose between A and B learns from the required rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// B is worse in one of them: do not ship it.
    Worse,
    /// B is better in one of them and worse in none: ship it.
    Better,
    /// A difference can be neither shown nor excluded.
    Undecided,
    /// Nothing differs beyond the margin.
    NoDifference,
    /// Nothing that is required was compared.
    NotCompared,
}

/// The decision that the required rows support.
pub(super) fn decision(rows: &[ComparedCriterion]) -> Decision {
    let any = |finding: Finding| rows.iter().any(|row| row.gated && row.finding == finding);
    // That no case changed excludes only what lies outside the interval.
    let open = |row: &ComparedCriterion| {
        row.finding == Finding::NoDiscordance
            && row.interval.is_none_or(|span| span.low < -UNSEEN || span.high > UNSEEN)
    };
    if nothing_compared(rows) {
        Decision::NotCompared
    } else if any(Finding::Worse) {
        Decision::Worse
    } else if any(Finding::Better) {
        Decision::Better
    } else if shortage(rows).is_some() || any(Finding::Undecided) || rows.iter().any(|row| row.gated && open(row)) {
        Decision::Undecided
    } else {
        Decision::NoDifference
    }
}

/// Which side is better, in which criteria and by how much, and whether B can be shipped: the one verdict that every page and
/// command prints.
pub(super) fn verdict(rows: &[ComparedCriterion], [a, b]: [&str; 2]) -> String {
    let of =
        |gated: bool, finding: Finding| rows.iter().filter(move |row| row.gated == gated && row.finding == finding);
    let by = |row: &ComparedCriterion| {
        let change = row.difference.map_or_else(String::new, |value| format!(" {}", change(row.scale, value)));
        format!("{}{change}{}", row.key, interval(row))
    };
    let keys = |rows: &mut dyn Iterator<Item = &ComparedCriterion>| rows.map(by).collect::<Vec<_>>().join(", ");
    let (worse, better) = (keys(&mut of(true, Finding::Worse)), keys(&mut of(true, Finding::Better)));
    let mut said = vec![match decision(rows) {
        Decision::NotCompared => "undecided: nothing that is required was compared".to_owned(),
        Decision::Worse if better.is_empty() => format!("{b} is worse than {a} in {worse}: do not ship {b}"),
        Decision::Worse => {
            format!("{b} is worse than {a} in {worse} and better in {better}: do not ship {b} with that loss")
        }
        Decision::Better => {
            format!("{b} is better than {a} in {better}, and worse in nothing that is required: ship {b}")
        }
        Decision::Undecided => match shortage(rows) {
            Some((cases, needed, required)) => {
                format!(
                    "undecided between {a} and {b}: {} too few to show a difference in {required}, at least {needed} are \
                     needed",
                    cases_are(cases)
                )
            }
            None if of(true, Finding::Undecided).next().is_none() => {
                let most = rows.iter().filter(|row| row.gated).map(|row| row.cases).max().unwrap_or_default();
                format!(
                    "undecided between {a} and {b}: no case differs in a required criterion, and {} too few to exclude a \
                     difference of 10 points",
                    cases_are(most)
                )
            }
            None => format!("undecided between {a} and {b}: no required criterion is clearly better or worse"),
        },
        Decision::NoDifference => {
            format!("{a} and {b} do not differ by 10 points or more in what is required: either can be shipped")
        }
    }];
    for (finding, words) in [(Finding::NotWorse, "not worse beyond the margin"), (Finding::Undecided, "inconclusive")] {
        let found: Vec<&str> = of(true, finding).map(|row| row.key.as_str()).collect();
        if !found.is_empty() {
            said.push(format!("{words}: {}", found.join(", ")));
        }
    }
    // Advisory findings are reported too: a gate may have been forgotten.
    for (finding, word) in [(Finding::Worse, "worse"), (Finding::Better, "better")] {
        if of(false, finding).next().is_some() {
            said.push(format!("not required and {word}: {}", keys(&mut of(false, finding))));
        }
    }
    said.join("; ")
}

/// Cases that pass on one side alone, and those that pass more or less often.
fn changed(flips: &[Flip], changes: &[Flip], [a, b]: [&str; 2]) -> String {
    let both = |all: &[Flip]| {
        let worse = all.iter().filter(|one| one.worse).count() as u64;
        (worse, all.len() as u64 - worse)
    };
    if flips.is_empty() && changes.is_empty() {
        return "no case passes more or less often".to_owned();
    }
    let ((lost, won), (fewer, more)) = (both(flips), both(changes));
    let mut said = Vec::new();
    if !flips.is_empty() {
        said.push(format!("{} in {a} and never in {b}, {won} the other way", count(lost, "case passes", "cases pass")));
    }
    if !changes.is_empty() {
        said.push(format!("{} less often in {b}, {more} more often", count(fewer, "case passes", "cases pass")));
    }
    said.join("; ")
}

/// The whole comparison in one sentence.
pub(super) fn conclusion(found: &Comparison) -> String {
    let names = found.names();
    let verdict = verdict(&found.rows, names);
    let over = format!("over {}", count(found.cases, "case", "cases"));
    // The smallest detectable difference: of all cases where nothing is found, otherwise of the first row left open.
    let shown = |row: &ComparedCriterion| row.gated && matches!(row.finding, Finding::Worse | Finding::Better);
    let reach = if shortage(&found.rows).is_some() {
        None
    } else if found.rows.iter().any(shown) {
        let open = found.rows.iter().find(|row| row.gated && row.finding == Finding::Undecided);
        open.map(|row| format!("; in {} {}", row.key, seen(row)))
    } else {
        found.rows.iter().find(|row| row.key == CASES).map(|row| format!("; {}", seen(row)))
    };
    let mut changed = changed(&found.flips, &found.changes, names);
    if !found.flips.is_empty() && found.rows.iter().any(|row| row.key == CASES && !row.gated) {
        changed.push_str(" (whether whole cases pass is not required)");
    }
    let reach = reach.unwrap_or_default();
    format!("{verdict} ({over}): {changed}{reach}{}", spent(&found.taken, names))
}

/// Tokens, cost and times of B against A: `; b takes 9.1 % more input tokens than a, cost not known, turn p95 of x 1.60 s in a,
/// 1.70 s in b (6.3 % slower)`.
fn spent(taken: &[Figure], [a, b]: [&str; 2]) -> String {
    let of = |row: &Figure| Some((row.cells.first()?.value?, row.cells.get(1)?.value?));
    let share = |(a, b): (f64, f64), more: &str, less: &str| match b - a {
        // Sums of the same prices in another order differ in their last bits.
        gap if gap.abs() <= 1e-12 * a.abs().max(b.abs()) => None,
        gap if a > 0.0 => Some(format!(
            "{} % {}",
            points((gap / a).abs()).trim_start_matches('+'),
            if gap > 0.0 { more } else { less }
        )),
        _ => Some(more.to_owned()),
    };
    let (mut said, mut tokens) = (Vec::new(), Vec::new());
    for row in taken.iter().filter(|row| row.unit != Unit::Seconds) {
        let dollars = row.unit == Unit::Dollars;
        match of(row) {
            None => said.push(format!("{} not known on both sides", row.key)),
            Some(both) if dollars => {
                said.push(
                    share(both, "higher", "lower").map_or("the same cost".into(), |gap| format!("{} {gap}", row.key)),
                );
            }
            Some(both) => match share(both, "more", "fewer") {
                None => said.push(format!("the same {}", row.key)),
                Some(gap) => tokens.push(format!("{gap} {}", row.key)),
            },
        }
    }
    if !tokens.is_empty() {
        said.insert(0, format!("{b} takes {} than {a}", tokens.join(" and ")));
    }
    if !taken.is_empty() && !taken.iter().any(|row| row.unit == Unit::Dollars) {
        said.push("cost not known".to_owned());
    }
    let times = taken.iter().filter(|row| row.unit == Unit::Seconds);
    let times: Vec<_> = times.filter_map(|row| Some((row, of(row).filter(|(a, _)| *a > 0.0)?))).collect();
    let most = |(_, (a, b)): &&(&Figure, (f64, f64))| (b / a).ln().abs();
    if let Some((row, (before, after))) = times.iter().max_by(|one, other| most(one).total_cmp(&most(other))) {
        let more = if times.len() > 1 { format!(", the most of {}", times.len()) } else { String::new() };
        said.push(match share((*before, *after), "slower", "faster") {
            None => "turn p95 the same".to_owned(),
            Some(gap) => format!("{} {before:.2} s in {a}, {after:.2} s in {b} ({gap}{more})", row.key),
        });
    } else if !taken.is_empty() {
        said.push("turn p95 not known".to_owned());
    }
    said.iter().enumerate().map(|(place, one)| format!("{}{one}", if place == 0 { "; " } else { ", " })).collect()
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
    fn tokens_cost_and_times_name_the_side_that_takes_more() {
        let figure = |key: &str, unit, a: f64, b: f64| Figure {
            key: key.to_owned(),
            about: String::new(),
            unit,
            cells: [a, b].map(|value| crate::compare::Cell { value: Some(value), ..Default::default() }).into(),
        };
        let taken = [
            figure("input tokens", Unit::Number, 2_329.0, 2_206.0),
            figure("output tokens", Unit::Number, 100.0, 110.0),
            figure("turn p95", Unit::Seconds, 1.6, 1.7),
        ];
        let said = "; plain takes 5.3 % fewer input tokens and 10.0 % more output tokens than guarded, cost not known, turn p95 1.60 s \
                    in guarded, 1.70 s in plain (6.2 % slower)";
        assert_eq!(spent(&taken, ["guarded", "plain"]), said);
        let same = [figure("input tokens", Unit::Number, 5.0, 5.0), figure("cost", Unit::Dollars, 2.0, 1.0)];
        assert_eq!(spent(&same, ["a", "b"]), "; the same input tokens, cost 50.0 % lower, turn p95 not known");
    }

    #[test]
    fn that_no_case_changed_decides_only_where_the_interval_excludes_a_difference_of_ten_points() {
        let side = |label: &str, cases: usize| {
            let names: Vec<String> = (0..cases).map(|index| format!("c{index}")).collect();
            let rows: Vec<_> = names.iter().map(|name| (name.as_str(), 1, 1)).collect();
            crate::compare::sample::summary(label, &rows)
        };
        for (cases, decided) in [(1, Decision::Undecided), (6, Decision::Undecided), (300, Decision::NoDifference)] {
            let found = crate::compare::compare(&side("a", cases), &side("b", cases), 0.02).expect("comparable");
            assert_eq!(found.decision(), decided, "{cases} cases: {}", found.conclusion);
        }
    }

    #[test]
    fn p_values_have_three_decimals_and_are_never_0() {
        assert_eq!([0.0385, 0.0002, 1.0].map(p_value), ["p = 0.038", "p < 0.001", "p = 1.000"]);
    }
}
