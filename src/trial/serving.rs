//! A variant outside any case: the context in which `serve` runs a turn.

use super::services::LiveAccess;
use super::settings::environment;
use super::stages::RecordedStages;
use super::{Setup, SetupError, TrialRunner, Variables};
use crate::cassette::LocalTimes;
use crate::flow::{self, AgentContext, Flow};
use crate::knowledge::KeywordIndex;
use crate::plan::{Plan, PlannedTrial, trial_seed};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Overrides model names with the variables that their flows read (`OPENAI_MODEL`, for example), if set. Used live and
/// by `serve`, never for recordings. A flow that reads no variable keeps its variant's model.
pub(crate) fn name_models(plan: &mut Plan, variables: &Variables) {
    for variant in plan.scenarios.iter_mut().flat_map(|scenario| &mut scenario.variants) {
        let variable = flow::by_name(&variant.flow).and_then(|flow| flow.description().model_variable);
        let named = variable.and_then(|variable| super::services::variable(variables, variable));
        if let (Some(named), Some(settings)) = (named, &mut variant.settings) {
            settings.model.name = named;
        }
    }
}

impl PlannedTrial {
    /// Trial for one turn of a session, with the name and seed of the session.
    #[must_use]
    pub fn of_session(&self, session: &str, turn: u32) -> Self {
        let id = format!("served/{session}/{turn}");
        Self { seed: trial_seed(self.seed, &id), id, ..self.clone() }
    }
}

impl TrialRunner {
    /// Flow of a trial's variant; `None` for an external agent.
    pub fn flow_of(&self, trial: &PlannedTrial) -> Option<&'static dyn Flow> {
        self.setup(trial).map(|setup| setup.flow)
    }

    /// Model of a trial's variant: `provider/model`.
    pub fn model_name(&self, trial: &PlannedTrial) -> String {
        self.declared(trial).map_or_else(String::new, |declared| declared.model.price_name())
    }

    /// Project folder.
    pub fn root(&self) -> &Path {
        &self.loaded.root
    }

    /// The keyword index that the project declares, if any.
    pub fn keyword_index(&self) -> Option<KeywordIndex> {
        let declared = self.loaded.project.keyword_index.as_ref()?;
        Some(KeywordIndex::declared(&self.loaded.root, declared))
    }

    /// Time limit of a turn.
    pub fn turn_limit(&self, trial: &PlannedTrial) -> Duration {
        self.setup(trial).map_or(Duration::from_mins(2), |setup| *setup.declared.limits.turn)
    }

    /// Context of a turn against the providers, with its own keyword index, which the caller may replace.
    ///
    /// # Errors
    /// `SetupError` if a provider cannot be used.
    pub fn context(&self, trial: &PlannedTrial) -> Result<AgentContext, SetupError> {
        let unknown = || SetupError::Flow { file: "the plan".into(), flow: trial.lane.flow.clone() };
        let Some(Setup::Flow(setup)) = self.found(trial) else { return Err(unknown()) };
        let LiveAccess { clock, transport } = self.access(trial, None, setup)?;
        let stages = Arc::new(RecordedStages::noting(Arc::new(LocalTimes::recording()), Arc::clone(&clock)));
        environment(&self.loaded.project, trial, setup, &transport, &clock, stages, trial.seed)
    }
}
