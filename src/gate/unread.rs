//! External agents of whose replies none can be read: the set-up is wrong, so their trials are in ERROR, not FAIL.

use super::examine::Examined;
use super::{EvaluationError, Verdict};
use crate::plan::Plan;
use crate::trace::{EXTERNAL, Mode, Trace, TrialError, TrialErrorKind, TurnOutcome};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Kind of a turn's failure when the agent's reply has no answer where the scenario says.
const ANSWER_MISSING: &str = "answer_missing";

/// Whether the replies in a trial of an external agent could be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Replies {
    /// No external agent, or no reply.
    #[default]
    None,
    /// At least one.
    Read,
    /// None: why the first could not be.
    Unread(String),
}

impl Replies {
    pub(super) fn of(trace: &Trace) -> Self {
        if trace.lane.flow != EXTERNAL || trace.evidence.mode == Mode::Imported {
            return Self::None;
        }
        let mut found = Self::None;
        for event in &trace.events {
            let Some(end) = event.what.ended() else { continue };
            match (&end.outcome, &found) {
                (TurnOutcome::Answered(_), _) => return Self::Read,
                (TurnOutcome::Failed { kind, message }, Self::None) if kind == ANSWER_MISSING => {
                    found = Self::Unread(message.clone());
                }
                _ => {}
            }
        }
        found
    }
}

/// Trials without a readable reply, held back until another trial of their scenario has one, or the run ends. A run
/// until decided closes no pass before.
#[derive(Debug)]
pub(crate) struct Unread<'p> {
    plan: &'p Plan,
    held: BTreeMap<usize, Vec<(Examined, Option<Trace>)>>,
    /// Scenarios with a readable reply.
    read: BTreeSet<usize>,
}

impl<'p> Unread<'p> {
    /// Holds nothing yet.
    pub(crate) fn new(plan: &'p Plan) -> Self {
        Self { plan, held: BTreeMap::new(), read: BTreeSet::new() }
    }

    /// Whether a trial has to be held back.
    ///
    /// # Errors
    /// If it is held back already.
    pub(crate) fn holds(&self, examined: &Examined) -> Result<bool, EvaluationError> {
        let scenario = examined.trial.scenario;
        if self.held.get(&scenario).is_some_and(|held| held.iter().any(|(one, _)| one.place == examined.place)) {
            return Err(EvaluationError::Twice(examined.trial.id.clone()));
        }
        let failed = examined.error.is_none() && examined.result.verdict == Verdict::Fail;
        let unread = failed && matches!(examined.replies, Replies::Unread(_));
        Ok(unread && !self.read.contains(&scenario))
    }

    /// Whether any trial is held back.
    pub(crate) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Holds a trial back.
    pub(crate) fn hold(&mut self, examined: Examined, trace: Option<Trace>) {
        self.held.entry(examined.trial.scenario).or_default().push((examined, trace));
    }

    /// The trials that count as FAIL because a reply in this trial could be read.
    pub(crate) fn released_by(&mut self, examined: &Examined) -> Vec<(Examined, Option<Trace>)> {
        let scenario = examined.trial.scenario;
        let first = examined.replies == Replies::Read && self.read.insert(scenario);
        if first { self.held.remove(&scenario).unwrap_or_default() } else { Vec::new() }
    }

    /// The trials that are still held back at the end of the run, in ERROR.
    pub(crate) fn rest(self) -> impl Iterator<Item = Examined> {
        let plan = self.plan;
        self.held.into_values().flatten().map(|(examined, _)| in_error(examined, plan))
    }
}

fn in_error(mut examined: Examined, plan: &Plan) -> Examined {
    let scenario = &plan.scenarios[examined.trial.scenario];
    let answer = scenario.agent.as_ref().map_or("/answer", |agent| agent.target.answer.as_str());
    let why = match std::mem::take(&mut examined.replies) {
        Replies::Unread(why) => why,
        Replies::None | Replies::Read => String::new(),
    };
    let message = format!("no reply of the agent could be read in this run. {why}");
    examined.result.verdict = Verdict::Error;
    examined.result.error.clone_from(&message);
    // The verdict noted at recording time could not know the rest of the run.
    examined.evidence.noted_verdict = None;
    examined.error = Some(TrialError {
        kind: TrialErrorKind::ReplyUnread,
        cause: format!("{}: no reply could be read", scenario.name),
        message,
        detail: vec![if why.contains(" is no JSON: ") {
            "write the reply as JSON in UTF-8, without `NaN` and without half a surrogate pair".to_owned()
        } else {
            format!(
                "`target.answer` is `{answer}` in {}: it must name the place of the answer's text in the reply; or the address is another's",
                scenario.file
            )
        }],
    });
    examined.units.clear();
    examined
}
