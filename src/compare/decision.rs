//! What a comparison decides, in one sentence: the same on every page and from every command.

use super::flips::Flip;
use super::sentences::{cases_are, change, interval, seen, shortage};
use super::summary::CASES;
use super::{ComparedCriterion, Comparison, Figure, Finding, Unit};
use crate::stats::percent::points;
use crate::trace::text::count;
use std::collections::BTreeSet;

/// Largest difference, as a share, that the interval may hold where two sides are said not to differ.
const UNSEEN: f64 = 0.1;

/// Whether no gated row compares anything.
pub(super) fn nothing_compared(rows: &[ComparedCriterion]) -> bool {
    !rows.iter().any(|row| row.gated && row.finding != Finding::NotCompared)
}

/// What someone who must choose between A and B learns from the required rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// B is worse in one of them: do not ship it.
    Worse,
    /// B is better in one of them, and in the others a loss is excluded or no case changed: ship it.
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
        // That a loss is not shown does not exclude it.
        if any(Finding::Undecided) { Decision::Undecided } else { Decision::Better }
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
        Decision::Undecided if !better.is_empty() => {
            let open = keys(&mut of(true, Finding::Undecided));
            format!("undecided: {b} is better than {a} in {better}, and a loss is not excluded in {open}")
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
        let is_said = finding == Finding::Undecided && worse.is_empty() && !better.is_empty();
        if !found.is_empty() && !is_said {
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
        // A case of several variants is one.
        let of =
            |worse: bool| all.iter().filter(|one| one.worse == worse).map(|one| &one.case).collect::<BTreeSet<_>>();
        (of(true).len() as u64, of(false).len() as u64)
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
        found.rows.iter().find(|row| row.key == CASES && row.cases > 0).map(|row| format!("; {}", seen(row)))
    };
    let mut changed = match found.paired.as_slice() {
        [] => "no case has a pass or a fail on both sides".to_owned(),
        _ => changed(&found.flips, &found.changes, names),
    };
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
        gap if a > 0.0 => {
            Some(format!("{} % {}", points((gap / a).abs()).replace('+', ""), if gap > 0.0 { more } else { less }))
        }
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
    let times: Vec<_> = times.filter_map(|row| Some((row, of(row)?))).collect();
    // A time of 0 has no logarithm: the clock's own step stands for it.
    let most = |(_, (a, b)): &&(&Figure, (f64, f64))| (b.max(1e-6) / a.max(1e-6)).ln().abs();
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
        let time = |a, b| spent(&[figure("turn p95", Unit::Seconds, a, b)], ["a", "b"]);
        assert_eq!(time(0.0, 0.0), "; cost not known, turn p95 the same");
        assert_eq!(time(1.0, 900.0), "; cost not known, turn p95 1.00 s in a, 900.00 s in b (> 9999 % slower)");
    }

    #[test]
    fn b_is_shipped_for_a_gain_only_where_no_loss_of_another_required_row_is_left_open() {
        let row = |key: &str, finding| ComparedCriterion {
            key: key.into(),
            gated: true,
            cases: 20,
            finding,
            ..ComparedCriterion::default()
        };
        let of = |other| {
            let rows = [row("TIME", Finding::Better), row("TASK", other)];
            (decision(&rows), verdict(&rows, ["A", "B"]))
        };
        assert_eq!(
            of(Finding::Undecided),
            (
                Decision::Undecided,
                "undecided: B is better than A in TIME, and a loss is not excluded in TASK".to_owned()
            )
        );
        for held in [Finding::NotWorse, Finding::NoDiscordance, Finding::Better] {
            assert_eq!(of(held).0, Decision::Better);
        }
        assert_eq!(of(Finding::Worse).0, Decision::Worse);
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
}
