//! Calls of a run with held services: what the recordings answered, what was new, and what acted all the same.

use super::TrialResult;
use crate::metric::taken::{Charged, Taken};
use crate::plan::{Plan, PlannedTrial};
use crate::settings::price::dollars;
use crate::trace::text::{count, listed, quote};
use crate::trace::{Attempt, HeldCalls, ToolOutcome, Trace, What};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of tools and cases that a line names.
const NAMED: usize = 5;

/// Calls of a run with held services.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldRun {
    /// Services and groups of services that were held, as typed.
    pub services: Vec<String>,
    /// Calls to them, and calls before the turn of `--from`.
    pub calls: u64,
    /// Calls that a recording answered, the forced ones included.
    pub held: u64,
    /// Calls among them that a recording answered by position, although their request differs.
    pub forced: u64,
    /// Calls that were not recorded and went to the service.
    pub new: u64,
    /// Cases with such calls, as `scenario/case`.
    pub new_in: Vec<String>,
    /// US dollars for the calls that no recording answered; `None` if part of it is unknown.
    pub cost_usd: Option<f64>,
    /// Days on which the recordings that answered were made, in order.
    pub recorded_on: Vec<String>,
    /// Calls of tools that ran inside the agent and cannot be held, by tool.
    pub acted: BTreeMap<String, u64>,
}

/// The same of one trial.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct HeldTrial {
    calls: Option<HeldCalls>,
    cost: Option<f64>,
    acted: BTreeMap<String, u64>,
}

impl HeldTrial {
    pub(super) fn of(plan: &Plan, trial: &PlannedTrial, trace: &Trace) -> Self {
        let Some(calls) = trace.evidence.held.clone() else { return Self::default() };
        let charged = Charged::of(plan, trial.scenario, &trial.lane.variant);
        let events = || trace.events.iter().map(|event| &event.what);
        let paid = events().filter(|what| !what.attempts().last().is_some_and(Attempt::is_held));
        let mut acted = BTreeMap::new();
        for what in events() {
            if let What::ToolCalled(called) = what
                && called.attempts.is_empty()
                && !matches!(called.outcome, ToolOutcome::Rejected(_) | ToolOutcome::OutOfOrder(_))
            {
                *acted.entry(called.tool.clone()).or_default() += 1;
            }
        }
        Self { calls: Some(calls), cost: Taken::of(paid, Some(&charged)).cost, acted }
    }
}

/// Sums trials, independent of their order.
#[derive(Debug, Default)]
pub(super) struct HeldSum {
    run: Option<HeldRun>,
    services: BTreeSet<String>,
    cases: BTreeSet<String>,
    days: BTreeSet<String>,
}

impl HeldSum {
    pub(super) fn add(&mut self, trial: HeldTrial, result: &TrialResult) {
        let Some(calls) = trial.calls else { return };
        let run = self.run.get_or_insert_with(|| HeldRun { cost_usd: Some(0.0), ..HeldRun::default() });
        run.held += u64::from(calls.answered());
        run.forced += u64::from(calls.forced);
        run.new += u64::from(calls.new);
        run.cost_usd = run.cost_usd.zip(trial.cost).map(|(sum, more)| sum + more);
        for (tool, n) in trial.acted {
            *run.acted.entry(tool).or_default() += n;
        }
        if calls.new > 0 {
            self.cases.insert(format!("{}/{}", result.scenario, result.case));
        }
        let day = calls.recorded_at.as_deref().and_then(|at| at.get(..10)).filter(|_| calls.answered() > 0);
        self.days.extend(day.map(str::to_owned));
        self.services.extend(calls.services);
    }

    pub(super) fn finish(self) -> Option<HeldRun> {
        let Self { run, services, cases, days } = self;
        let mut run = run?;
        run.calls = run.held + run.new;
        (run.services, run.new_in) = (services.into_iter().collect(), cases.into_iter().collect());
        run.recorded_on = days.into_iter().collect();
        Some(run)
    }
}

impl HeldRun {
    /// The lines of the report: `held 212 of 240 calls; 28 new, in 6 cases; $0.41`, and which tools acted.
    pub(super) fn lines(&self) -> Vec<String> {
        let forced = if self.forced > 0 { format!(" ({} forced)", self.forced) } else { String::new() };
        let mut line = format!("held {} of {}{forced}", self.held, count(self.calls, "call", "calls"));
        if self.new > 0 {
            line += &format!("; {} new, in {}", self.new, count(self.new_in.len() as u64, "case", "cases"));
        }
        line += &match self.cost_usd {
            Some(cost) => format!("; {}", dollars(cost)),
            None => "; cost not measured".to_owned(),
        };
        let named = self.services.iter().map(|name| quote(name, 40)).collect::<Vec<_>>().join(", ");
        if !named.is_empty() {
            line += &format!(" (held: {named}");
            line += &match (self.recorded_on.first(), self.recorded_on.last()) {
                (Some(first), Some(last)) if first != last => format!(", recorded between {first} and {last})"),
                (Some(day), _) => format!(", recorded on {day})"),
                _ => ")".to_owned(),
            };
        }
        let acted = self.acted.iter().map(|(tool, n)| format!("{} ({n})", quote(tool, 60)));
        let acted = (!self.acted.is_empty())
            .then(|| format!("not held, because they run inside the agent: {}", listed(acted, NAMED)));
        std::iter::once(line).chain(acted).collect()
    }
}
