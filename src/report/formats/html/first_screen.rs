//! The first screen after "What to do": what to know before trusting the verdict, what is closest to failing, and tiles for speed,
//! tokens and change.

use super::model::anchored;
use crate::gate::{CriterionResult, Evaluation, Verdict};
use crate::report::figures::{self, counted};
use crate::report::{View, charts};
use crate::scenario::Target;
use crate::settings::price::dollars;
use crate::trace::text::clip;
use serde::Serialize;

/// Passing criteria that are listed as closest to failing.
const CLOSEST: usize = 3;
/// Rows of a tile.
const ROWS: usize = 3;
/// Names in a sentence.
const NAMED: usize = 4;
/// A gate on so few conversations shows little, whatever its verdict.
const THIN: u64 = 2;

/// The parts of the first screen.
#[derive(Serialize)]
pub(super) struct FirstScreen {
    doubts: Vec<Doubt>,
    closest: Vec<Near>,
    tiles: Vec<Tile>,
}

/// Something to know before the verdict is trusted.
#[derive(Serialize)]
struct Doubt {
    what: String,
    /// Anchor of the criterion, if it is about one.
    href: String,
    why: String,
}

/// A passing criterion with little room to its target.
#[derive(Serialize)]
struct Near {
    href: String,
    name: String,
    observed: String,
    target: String,
    chart: String,
}

/// A few figures under one title.
#[derive(Serialize)]
struct Tile {
    title: &'static str,
    rows: Vec<(String, String)>,
    more: String,
    href: &'static str,
}

/// Builds the first screen.
pub(super) fn first_screen(view: &View<'_>) -> FirstScreen {
    FirstScreen { doubts: doubts(view.evaluation), closest: closest(view.evaluation), tiles: tiles(view) }
}

fn doubts(evaluation: &Evaluation) -> Vec<Doubt> {
    let mut found = Vec::new();
    for (anchor, row) in anchored(evaluation) {
        let doubt = |what: String, why: String| Doubt { what, href: format!("#{anchor}"), why };
        let (name, sentence) = (figures::name(row), clip(&row.sentence, 220).into_owned());
        match row.verdict {
            Verdict::NotMeasured if row.not_measured_ok || !row.required => {
                found.push(doubt(format!("{name} is not measured"), sentence));
            }
            Verdict::Inconclusive if !row.required => found.push(doubt(format!("{name} is not decided"), sentence)),
            _ => {}
        }
        if !row.excluded.is_empty() {
            let cases = counted(row.excluded.len() as u64, "case");
            let with =
                if row.with_excluded.is_empty() { String::new() } else { format!("with them {}", row.with_excluded) };
            found.push(doubt(format!("{name} leaves out {cases}"), with));
        }
    }
    let conversations =
        |row: &CriterionResult| if row.distinct > 0 { row.distinct.min(row.clusters) } else { row.clusters };
    let thin = |row: &&CriterionResult| {
        row.required && row.verdict == Verdict::Pass && row.n > 0 && (1..=THIN).contains(&conversations(row))
    };
    let thin: Vec<String> = anchored(evaluation).map(|(_, row)| row).filter(thin).map(figures::name).collect();
    if !thin.is_empty() {
        let rows = counted(thin.len() as u64, "passing gate");
        let what = format!("{rows} with at most {THIN} different conversations");
        found.push(Doubt { what, href: "#gates".into(), why: figures::first_names(thin.iter(), NAMED) });
    }
    let notes = evaluation.notes.iter().take(ROWS);
    found.extend(notes.map(|note| Doubt {
        what: clip(note, 300).into_owned(),
        href: String::new(),
        why: String::new(),
    }));
    found
}

/// Room of a passing criterion between the figure that decides and the target, as a share of what the target leaves.
fn room(row: &CriterionResult) -> Option<f64> {
    let (figure, aim, ceiling) = match figures::target(row)? {
        Target::AtLeastRate(aim) => (row.lower.filter(|_| row.kind == "confidence").or(row.observed)?, aim, false),
        Target::AtMostRate(aim) => (row.upper.filter(|_| row.kind == "confidence").or(row.observed)?, aim, true),
        Target::AtMostTime(_) => (row.lower?, figures::claimed_share(&row.metric)?, false),
    };
    let left = if ceiling { aim } else { 1.0 - aim };
    let room = if ceiling { aim - figure } else { figure - aim };
    (left > 1e-9).then(|| room / left)
}

fn closest(evaluation: &Evaluation) -> Vec<Near> {
    let passing = anchored(evaluation).filter(|(_, row)| row.required && row.verdict == Verdict::Pass);
    let mut found: Vec<_> = passing.filter_map(|(anchor, row)| Some((room(row)?, anchor, row))).collect();
    found.sort_by(|one, other| one.0.total_cmp(&other.0));
    let near = |(_, anchor, row): (f64, String, &CriterionResult)| Near {
        href: format!("#{anchor}"),
        name: figures::name(row),
        observed: format!("{}, {}", figures::observed_in_brief(row), figures::bound(row)),
        target: figures::goal(row),
        chart: charts::interval(row, charts::zoom(row)).unwrap_or_default(),
    };
    found.into_iter().take(CLOSEST).map(near).collect()
}

fn tiles(view: &View<'_>) -> Vec<Tile> {
    let evaluation = view.evaluation;
    let mut lanes: Vec<_> = evaluation.latency.iter().filter(|row| !row.has_declared_faults()).collect();
    // Slowest first: an unanswered p95 is the longest.
    let p95 = |row: &crate::gate::Latency| {
        row.quantiles.iter().find(|one| (one.q - 0.95).abs() < 1e-9).map(|one| one.value.rank())
    };
    lanes.sort_by_key(|row| std::cmp::Reverse(p95(row)));
    let more = lanes.len().saturating_sub(ROWS);
    let speed = lanes
        .iter()
        .take(ROWS)
        .map(|row| (format!("{}.{}", row.flow, row.variant), figures::middle_and_p95(row, |_| String::new())));
    let mut tiles = Vec::new();
    if !lanes.is_empty() {
        let more = if more > 0 { format!("{} faster", counted(more as u64, "lane")) } else { String::new() };
        tiles.push(Tile { title: "Speed, slowest first", rows: speed.collect(), more, href: "#latency" });
    }
    let spent = &evaluation.spending.run;
    if spent.trials > 0 {
        let cost = spent.cost.map_or_else(|| "not measured".to_owned(), dollars);
        let mut rows = vec![("all".to_owned(), format!("{}; cost {cost}", figures::tokens(evaluation)))];
        let variants = &evaluation.spending.variants;
        let more = variants.len().saturating_sub(ROWS - 1);
        if variants.len() > 1 {
            rows.extend(variants.iter().take(ROWS - 1).map(|one| {
                let known = |tokens: Option<u64>| tokens.map_or_else(|| "unknown".to_owned(), figures::thousands);
                let (input, output) = (known(one.spent.input_tokens), known(one.spent.output_tokens));
                (one.name.clone(), format!("{input} in, {output} out"))
            }));
        }
        let more = if variants.len() > 1 && more > 0 { counted(more as u64, "more variant") } else { String::new() };
        tiles.push(Tile { title: "Tokens and cost", rows, more, href: "#spending" });
    }
    let change = |rows, href| Tile { title: "Change since another run", rows, more: String::new(), href };
    tiles.push(match view.comparison {
        Some(found) => {
            let rows = vec![(found.a.label.clone(), clip(&found.conclusion, 600).into_owned())];
            Tile { title: "Change against the base", ..change(rows, "comparison.html") }
        }
        None if view.pages.comparison => {
            change(vec![("compared".into(), "see the comparison".into())], "comparison.html")
        }
        None => {
            let command = "ragcheck compare --previous";
            change(
                vec![("nothing is compared yet; to compare with the run before:".into(), command.into())],
                "../index.html",
            )
        }
    });
    tiles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Excluded;
    use crate::report::sample;

    #[test]
    fn excluded_cases_and_gates_on_two_conversations_are_told_before_the_verdict_is_trusted() {
        let mut run = sample::run(2);
        let row = &mut run.evaluation.criteria[0];
        row.excluded = vec![Excluded { case: "a/b".into(), reason: "r".into(), n: 3, successes: 1 }];
        row.with_excluded = "41/44 = 93.2 %".into();
        let name = figures::name(row);
        let row = &mut run.evaluation.gates[0];
        (row.required, row.verdict, row.n, row.clusters, row.distinct) = (true, Verdict::Pass, 9, 9, 2);
        let gate = figures::name(row);
        let found = doubts(&run.evaluation);
        let of = |what: &str| found.iter().find(|one| one.what.contains(what)).unwrap_or_else(|| panic!("{what}"));
        assert_eq!(of(&format!("{name} leaves out 1 case")).why, "with them 41/44 = 93.2 %");
        assert!(of("at most 2 different conversations").why.contains(&gate));
    }

    #[test]
    fn the_criterion_with_least_room_to_its_target_is_the_closest() {
        let mut run = sample::run(2);
        let mut row = run.evaluation.criteria.iter().find(|row| row.interval.is_some()).expect("one").clone();
        (row.verdict, row.required, row.kind, row.target) = (Verdict::Pass, true, "confidence".into(), ">= 90%".into());
        let with = |id: &str, lower: f64| CriterionResult { id: id.into(), lower: Some(lower), ..row.clone() };
        run.evaluation.criteria = vec![with("far", 0.98), with("near", 0.905), with("middle", 0.95)];
        run.evaluation.gates.clear();
        let names: Vec<String> = closest(&run.evaluation).into_iter().map(|near| near.name).collect();
        assert_eq!(names, ["near", "middle", "far"]);
    }
}
