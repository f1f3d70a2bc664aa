//! Cases by variants: for each scenario, a grid of cells with shape and colour; a cell opens its worst trial.

use super::model::{Badge, badge, worst_first};
use super::to_do::link;
use crate::gate::{TrialResults, Verdict};
use crate::report::figures::{counted, thousands};
use crate::trace::Arm;
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum number of cases in all grids; the table of trials has all.
const CASES: usize = 300;
/// Maximum number of columns in a grid.
const VARIANTS: usize = 24;

/// Cases of one scenario.
#[derive(Serialize)]
pub(super) struct Grid {
    scenario: String,
    summary: String,
    variants: Vec<String>,
    rows: Vec<GridRow>,
    more: usize,
    more_variants: usize,
    open: bool,
}

#[derive(Serialize)]
struct GridRow {
    case: String,
    /// `None` if the variant does not run the case.
    cells: Vec<Option<Cell>>,
}

#[derive(Serialize)]
struct Cell {
    verdict: Badge,
    href: String,
    /// Passed trials of all trials; empty for a single one.
    figure: String,
}

/// Results of one case in one variant.
struct CellResults {
    worst: Verdict,
    trial: String,
    passed: u64,
    trials: u64,
}

#[derive(Default)]
struct Scenario {
    /// Variants and cases in order of appearance.
    variants: Vec<String>,
    cases: Vec<String>,
    places: BTreeMap<String, usize>,
    found: BTreeMap<(usize, usize), CellResults>,
}

/// Grids of a run, scenarios in plan order, worst cases first.
pub(super) fn grids(trials: &TrialResults) -> Vec<Grid> {
    let mut names: Vec<String> = Vec::new();
    let mut scenarios: BTreeMap<String, Scenario> = BTreeMap::new();
    for trial in trials {
        if !scenarios.contains_key(trial.scenario) {
            names.push(trial.scenario.to_owned());
        }
        let scenario = scenarios.entry(trial.scenario.to_owned()).or_default();
        let control = if trial.lane.arm == Arm::Control { " (control)" } else { "" };
        let variant = format!("{}.{}{control}", trial.lane.flow, trial.lane.variant);
        let column = scenario.variants.iter().position(|one| *one == variant).unwrap_or_else(|| {
            scenario.variants.push(variant);
            scenario.variants.len() - 1
        });
        let known = scenario.places.get(trial.case).copied();
        let row = known.unwrap_or_else(|| {
            scenario.cases.push(trial.case.to_owned());
            scenario.places.insert(trial.case.to_owned(), scenario.cases.len() - 1);
            scenario.cases.len() - 1
        });
        let passed = u64::from(trial.verdict == Verdict::Pass);
        let new = || CellResults { worst: trial.verdict, trial: trial.id.clone().into_owned(), passed: 0, trials: 0 };
        let found = scenario.found.entry((row, column)).or_insert_with(new);
        if worst_first(trial.verdict) < worst_first(found.worst) {
            (found.worst, found.trial) = (trial.verdict, trial.id.into_owned());
        }
        found.passed += passed;
        found.trials += 1;
    }
    let mut room = CASES;
    names.into_iter().filter_map(|name| Some(grid(scenarios.remove(&name)?, name, &mut room))).collect()
}

fn grid(scenario: Scenario, name: String, room: &mut usize) -> Grid {
    let Scenario { variants, cases, mut found, .. } = scenario;
    let worst = |row: usize| {
        let own = found.range((row, 0)..(row + 1, 0));
        own.map(|(_, found)| worst_first(found.worst)).min().unwrap_or(u8::MAX)
    };
    let mut order: Vec<(u8, usize)> = (0..cases.len()).map(|row| (worst(row), row)).collect();
    order.sort_unstable();
    let not_passed = order.iter().filter(|(worst, _)| *worst < worst_first(Verdict::Pass)).count();
    let listed = order.len().min(*room);
    *room -= listed;
    let columns = variants.len().min(VARIANTS);
    let cell = |found: CellResults| Cell {
        verdict: badge(found.worst),
        href: link(&found.trial).href,
        figure: if found.trials > 1 { format!("{}/{}", found.passed, found.trials) } else { String::new() },
    };
    let rows: Vec<GridRow> = order
        .into_iter()
        .take(listed)
        .map(|(_, row)| GridRow {
            case: cases[row].clone(),
            cells: (0..columns).map(|column| found.remove(&(row, column)).map(cell)).collect(),
        })
        .collect();
    let shape = format!("{} × {}", counted(cases.len() as u64, "case"), counted(variants.len() as u64, "variant"));
    Grid {
        scenario: name,
        summary: match not_passed {
            0 => format!("{shape}, all pass"),
            number => format!("{shape}, {} not all passed", thousands(number as u64)),
        },
        more: cases.len() - listed,
        more_variants: variants.len() - columns,
        variants: variants.into_iter().take(columns).collect(),
        rows,
        open: not_passed > 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn a_cell_is_the_worst_of_its_trials_and_opens_it_and_the_worst_cases_come_first() {
        let run = sample::run(3);
        let found = grids(&run.evaluation.trials);
        assert_eq!(found.len(), 2);
        let edge = &found[1];
        assert_eq!(edge.rows[0].case, "flow-temperature", "an ERROR is the worst");
        assert_eq!(edge.variants, ["tool-rag.base", "tool-rag.forced"]);
        let cell = edge.rows[0].cells[0].as_ref().expect("it ran");
        assert_eq!((cell.verdict.word, cell.figure.as_str()), ("ERROR", "0/2"));
        assert_eq!(cell.href, "#trial=edge-cases/flow-temperature/tool-rag.base.1");
        assert_eq!(edge.summary, "3 cases × 2 variants, 2 not all passed");
        let passed = edge.rows[2].cells[1].as_ref().expect("it ran");
        assert_eq!((passed.verdict.word, passed.figure.as_str()), ("PASS", ""));
    }
}
