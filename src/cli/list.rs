//! `ragcheck list`: lists the trials that would run.

use super::arguments::{List, Printed};
use super::estimate;
use super::exit::Exit;
use super::output::{self, Problem};
use super::select::{load, selection};
use crate::plan::{Plan, PlannedTrial};
use crate::scenario::Loaded;
use crate::suite::evaluation::{self, Estimate, RecordedPasses, turns};
use crate::suite::recordings::{self, RequestPart, lane_file, start_lanes};
use crate::trace::text::plural;
use crate::trial::Opened;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// One trial that would run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListedTrial {
    /// Trial id.
    pub trial: String,
    /// Scenario name.
    pub scenario: String,
    /// Case name.
    pub case: String,
    /// `flow.variant.n`, followed by `.control` for a control arm.
    pub lane: String,
    /// Number of turns in all its conversations.
    pub turns: usize,
    /// Whether the trial has a recording.
    pub recorded: bool,
    /// Parts of its first request that have changed since, so that a replay would miss: `system prompt`, `question` and
    /// others; `recording`, if that is broken or was edited. Later requests are compared by a run only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub would_miss: Vec<String>,
}

/// The trials that would run; with `--estimate` beside what they would take.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Listing {
    Trials(Vec<ListedTrial>),
    Estimated(Box<EstimatedTrials>),
}

/// What `--estimate` prints.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct EstimatedTrials {
    /// The trials that would run.
    trials: Vec<ListedTrial>,
    /// Requests and cost of a live run, and the smallest difference that it could show.
    estimate: Estimate,
}

/// The planned trials, in order. `cassettes` overrides the project's folder.
pub fn rows(loaded: &Loaded, plan: &Plan, cassettes: Option<&Path>) -> Vec<ListedTrial> {
    let row = |trial: &PlannedTrial| {
        let scenario = &plan.scenarios[trial.scenario];
        let case = &scenario.cases[trial.case].case;
        ListedTrial {
            trial: trial.id.clone(),
            scenario: scenario.name.clone(),
            case: case.case.clone(),
            lane: trial.lane.to_string(),
            turns: turns(plan, trial),
            recorded: lane_file(loaded, cassettes, &trial.id).is_file(),
            would_miss: Vec::new(),
        }
    };
    plan.trials.iter().map(row).collect()
}

/// An aligned table, with totals in the last line.
pub fn text(rows: &[ListedTrial]) -> String {
    let cells = |row: &ListedTrial| {
        let recorded = match row.would_miss[..] {
            [] if row.recorded => "yes".to_owned(),
            [] => "no".to_owned(),
            _ if row.would_miss == [RequestPart::Recording.as_str()] => {
                "would miss: recording broken or edited".to_owned()
            }
            _ => format!("would miss: {} changed", row.would_miss.join(", ")),
        };
        [row.scenario.clone(), row.case.clone(), row.lane.clone(), row.turns.to_string(), recorded]
    };
    let header = ["SCENARIO", "CASE", "LANE", "TURNS", "RECORDED"].map(str::to_owned);
    let table: Vec<[String; 5]> = std::iter::once(header).chain(rows.iter().map(cells)).collect();
    let width = |column: usize| table.iter().map(|row| row[column].len()).max().unwrap_or_default();
    let widths = [width(0), width(1), width(2), width(3)];
    let mut out = String::new();
    for [scenario, case, lane, turns, recorded] in &table {
        let [first, second, third, fourth] = widths;
        let _ = writeln!(out, "{scenario:first$}  {case:second$}  {lane:third$}  {turns:>fourth$}  {recorded}");
    }
    let cases = rows.chunk_by(|one, other| one.scenario == other.scenario && one.case == other.case).count();
    let recorded = rows.iter().filter(|row| row.recorded).count();
    let turns: usize = rows.iter().map(|row| row.turns).sum();
    let (trials, cases, turns) = (plural(rows.len(), "trial"), plural(cases, "case"), plural(turns, "turn"));
    let missing = rows.iter().filter(|row| !row.would_miss.is_empty()).count();
    let missing = if missing > 0 { format!(", {missing} of them would miss") } else { String::new() };
    let _ = writeln!(out, "\n{trials} of {cases}, {turns}, {recorded} recorded{missing}");
    if recorded > 0 {
        out.push_str("RECORDED compares the first request of each trial of a built-in flow; `ragcheck run` compares all requests.\n");
    }
    out
}

/// A line on the recorded starts of agents' processes; empty if there are none.
fn recorded_starts(names: &[String]) -> String {
    let what = plural(names.len(), "recorded start");
    if names.is_empty() { String::new() } else { format!("{what} of an agent's process: {}\n", names.join(", ")) }
}

/// Runs `ragcheck list`.
///
/// # Errors
/// All mistakes in the files, or that nothing is selected.
pub(super) fn run(given: &List) -> Result<Exit, Problem> {
    let suite = load(&given.select)?;
    let (plan, recorded) = suite.plan(&selection(&given.select), given.select.seed)?;
    recorded.iter().filter_map(RecordedPasses::note).for_each(|note| output::remark(&note));
    let loaded = suite.loaded();
    let mut rows = rows(loaded, &plan, None);
    // A project that cannot be opened is explained by `check` and `run`.
    let opened = Opened::new(Arc::clone(loaded), &plan);
    for (index, parts) in opened.iter().flat_map(|opened| recordings::would_miss(opened, &plan)) {
        rows[index].would_miss = parts.into_iter().map(|part| part.as_str().to_owned()).collect();
    }
    let cassettes = loaded.root.join(&loaded.project.cassettes);
    let starts: Vec<String> =
        start_lanes(&plan, &cassettes).into_iter().filter(|lane| lane.path.is_file()).map(|lane| lane.name).collect();
    let human = text(&rows) + &recorded_starts(&starts);
    let estimate = if given.estimate { Some(evaluation::estimate(&opened?, &plan)) } else { None };
    if given.format == Printed::Human {
        output::result(&(human + &estimate.as_ref().map(estimate::text).unwrap_or_default()));
        return Ok(Exit::Passed);
    }
    let listing = match estimate {
        None => Listing::Trials(rows),
        Some(estimate) => Listing::Estimated(Box::new(EstimatedTrials { trials: rows, estimate })),
    };
    output::result(&(serde_json::to_string_pretty(&listing).unwrap_or_default() + "\n"));
    Ok(Exit::Passed)
}
