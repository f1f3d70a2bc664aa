//! What is served: a flow with the settings of a scenario's variant. Each session is a further trial of it.

use crate::flow::{self, AgentContext, Flow};
use crate::knowledge::KeywordIndex;
use crate::plan::{PlannedTrial, trial_seed};
use crate::trial::{Opened, SetupError, context};
use std::path::PathBuf;
use std::time::Duration;

/// A variant of a scenario, opened to be served.
pub(crate) struct Served {
    opened: Opened,
    settings: PlannedTrial,
}

impl Served {
    /// Serves the flow of `settings`, a trial of the opened plan.
    pub(crate) fn new(opened: Opened, settings: PlannedTrial) -> Self {
        Self { opened, settings }
    }

    /// The flow; `None` for an external agent.
    pub(super) fn flow(&self) -> Option<&'static dyn Flow> {
        flow::by_name(&self.settings.lane.flow)
    }

    /// The model: `provider/model`.
    pub(crate) fn model_name(&self) -> String {
        self.opened.declared(&self.settings).map_or_else(String::new, |declared| declared.model.price_name())
    }

    /// Usual folder of the service's state.
    pub(crate) fn usual_state(&self) -> PathBuf {
        self.opened.loaded.root.join(".ragcheck/serve").join(&self.settings.lane.flow)
    }

    /// The keyword index that the project declares, if any.
    pub(super) fn keyword_index(&self) -> Option<KeywordIndex> {
        let declared = self.opened.loaded.project.keyword_index.as_ref()?;
        Some(KeywordIndex::declared(&self.opened.loaded.root, declared))
    }

    /// Time limit of a turn.
    pub(super) fn turn_limit(&self) -> Duration {
        self.opened.declared(&self.settings).map_or(Duration::from_mins(2), |declared| *declared.limits.turn)
    }

    /// Context of one turn of a session, with the name and seed of the session.
    ///
    /// # Errors
    /// [`SetupError`] if a provider cannot be used.
    pub(super) fn context(&self, session: &str, turn: u32) -> Result<AgentContext, SetupError> {
        let id = format!("served/{session}/{turn}");
        let trial = PlannedTrial { seed: trial_seed(self.settings.seed, &id), id, ..self.settings.clone() };
        context(&self.opened, &trial)
    }
}
