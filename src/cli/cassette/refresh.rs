//! `ragcheck cassette refresh`: re-records trials that need it, after showing the estimated cost.

use super::arguments::Refresh;
use crate::cli::arguments::{Detail, Printed};
use crate::cli::exit::Exit;
use crate::cli::output::{self, Problem};
use crate::cli::run;
use crate::cli::select::{bounded, load, selection};
use crate::plan::Selection;
use crate::settings::price::dollars;
use crate::suite::recordings::{self, RefreshCost, Spending};
use crate::suite::{Mode, RunOptions};
use crate::trace::text::plural;
use crate::trial::{Opened, external};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write as _};
use std::sync::Arc;

/// Runs `ragcheck cassette refresh`.
///
/// # Errors
/// All mistakes in the files, or a missing confirmation of the cost.
pub(super) fn run(given: &Refresh) -> Result<Exit, Problem> {
    let suite = load(&given.select)?;
    let selected = selection(&given.select);
    let plan = suite.plan_passes(&selected, given.select.seed, None)?;
    let project = &suite.loaded().project;
    let options = bounded(&given.bounds, &given.select, project)?;
    let opened = Opened::new(Arc::clone(suite.loaded()), &plan)?;
    if given.missed {
        external::agents_named(&opened, &plan).map_err(|why| why.to_string())?;
    }
    let found = recordings::refresh(&opened, &plan, given.missed, options.ages.filter(|_| given.stale))
        .map_err(|why| format!("the replay stopped: {why}"))?;
    let cost = found.cost(&opened, &plan);
    let announced = announcement(&found, &cost, project.prices.is_empty());
    if found.trials.is_empty() || given.dry_run {
        let lanes = found.trials.iter().map(|index| plan.trials[*index].id.clone()).collect();
        let RefreshCost { spending, estimated, unknown } = cost;
        let due = Due { checked: plan.trials.len(), lanes, reasons: found.reasons, spending, estimated, unknown };
        output::data(given.format, &due, |due| match due.lanes.len() {
            0 => format!("nothing to record again: {} checked\n", plural(due.checked, "lane")),
            _ => format!("{announced}\n"),
        })?;
        return Ok(Exit::Passed);
    }
    output::remark(&announced);
    if !given.yes && !confirmed()? {
        output::remark("nothing was recorded");
        return Ok(Exit::Passed);
    }
    let trials = found.trials.iter().map(|index| plan.trials[*index].id.clone()).collect();
    drop(opened);
    let options =
        RunOptions { mode: Mode::Record, selection: Selection { trials: Some(trials), ..selected }, ..options };
    let detail = if given.format == Printed::Json { Detail::Json } else { Detail::Brief };
    let (done, exit) = run::carry_out(&suite, &options, detail, None)?;
    run::write_reports(&given.report, &done.evaluated)?;
    Ok(exit)
}

/// Lanes to record again, as `--dry-run` prints them, or none.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Due {
    /// Number of lanes that were checked.
    pub checked: usize,
    /// Trials whose lanes are to be recorded again.
    pub lanes: Vec<String>,
    /// Why, with the number of lanes.
    pub reasons: BTreeMap<&'static str, usize>,
    /// What it takes, as recorded before.
    pub spending: Spending,
    /// Lanes without a sound recording, counted as the mean of the others.
    pub estimated: usize,
    /// Lanes that are not counted: nothing of their scenario was recorded before.
    pub unknown: usize,
}

/// Announces the number of lanes with reasons, the number of calls, and the estimated cost.
fn announcement(found: &recordings::Refresh, cost: &RefreshCost, no_prices: bool) -> String {
    let RefreshCost { spending, estimated, unknown } = cost;
    let reasons: Vec<String> = found.reasons.iter().map(|(why, count)| format!("{count} {why}")).collect();
    let mut lines = vec![format!("{} to record again: {}", plural(found.trials.len(), "lane"), reasons.join(", "))];
    let calls = |number: u64, what| plural(number as usize, what);
    let vectors = match spending.embedding_calls {
        0 => String::new(),
        number => format!(" and {}", calls(number, "embeddings call")),
    };
    lines.push(format!(
        "about {} and {}{vectors}, as recorded before",
        calls(spending.model_calls, "model call"),
        calls(spending.search_calls, "search call")
    ));
    if *estimated > 0 {
        lines.push(format!(
            "  {} without a sound recording counted as the mean of the others",
            plural(*estimated, "lane")
        ));
    }
    if *unknown > 0 {
        lines
            .push(format!("  {} not counted: nothing of their scenario was recorded before", plural(*unknown, "lane")));
    }
    if !no_prices && (spending.dollars > 0.0 || spending.unpriced.is_empty()) {
        lines.push(format!("about {}", dollars(spending.dollars)));
    }
    if !spending.unpriced.is_empty() {
        let models: Vec<&str> = spending.unpriced.iter().map(String::as_str).collect();
        lines.push(format!("cost not measured for {}: no price in ragcheck.yaml (`prices`)", models.join(", ")));
    }
    if spending.untold > 0 {
        lines.push(format!("cost not measured for {}: no token usage was reported", calls(spending.untold, "call")));
    }
    lines.join("\n")
}

/// Asks for confirmation at the terminal.
fn confirmed() -> Result<bool, Problem> {
    if !std::io::stdin().is_terminal() {
        return Err(Problem::Words("not interactive: pass `--yes` to record these lanes again".into()));
    }
    let _ = write!(anstream::stderr(), "record them? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|why| format!("the answer cannot be read: {why}"))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
