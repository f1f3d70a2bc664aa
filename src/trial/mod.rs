//! The one factory that builds what a trial needs, and the driver that runs a case in it.
//!
//! Replay, live and record differ in clock, transport and where local times come from; flow, environment, tools and
//! knowledge are the same. Nothing here decides which trials run, or judges them.

mod cost;
mod drift;
mod drive;
mod external;
mod external_setup;
mod live;
mod model;
mod replay;
mod resend;
mod services;
mod settings;
mod stages;

pub use cost::Spending;
pub use drift::{Part, Standing};
pub use model::ModelAccess;
pub use resend::{Resend, documents};
pub use services::{Variables, read_variables};

use crate::flow::{self, Flow, Settings};
use crate::knowledge::{self, Declared, KnowledgeSource, KnowledgeSources};
use crate::plan::{Plan, PlannedTrial};
use crate::proxy::Proxy;
use crate::scenario::{Case, Loaded, LoadedScenario};
use crate::trace::{EXTERNAL, Evidence, Mode, Roles, TRACE_VERSION, Trace, TrialEnd};
use crate::transport::{Budget, LiveTransport, Pace};
pub use external::Doing;
use external_setup::ExternalSetup;
use settings::ServiceSettings;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Why no trial can be built.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The knowledge folder cannot be read.
    #[error("{file}: knowledge `{folder}`: {reason}")]
    Knowledge {
        /// The scenario's file.
        file: String,
        /// The folder as written.
        folder: String,
        /// Why.
        reason: String,
    },
    /// A provider cannot be used.
    #[error("provider `{provider}`: {reason}")]
    Provider {
        /// Its name in the project file.
        provider: String,
        /// Why, and what to do.
        reason: String,
    },
    /// No such flow.
    #[error("{file}: no flow is called `{flow}`")]
    Flow {
        /// The scenario's file.
        file: String,
        /// The flow as written.
        flow: String,
    },
    /// A setting that does not fit.
    #[error("{file}: {reason}")]
    Settings {
        /// The scenario's file.
        file: String,
        /// Why.
        reason: String,
    },
}

/// What one trial came to.
#[derive(Debug)]
pub struct Finished {
    /// What it did.
    pub trace: Trace,
    /// Recordings of its lane that nothing asked for, in words.
    pub unused: Vec<String>,
}

/// What is shared by the trials of one scenario and variant.
pub(crate) struct VariantSetup {
    flow: &'static dyn Flow,
    knowledge: KnowledgeSources,
    settings: Settings,
    services: ServiceSettings,
    live: OnceLock<Result<LiveTransport, String>>,
}

impl VariantSetup {
    /// Tells in a trace which tools the flow was offered, and the roles of those that it declares.
    fn tell_tools(&self, trace: &mut Trace) {
        trace.roles = crate::flow::entry(self.flow).roles();
        trace.offered = Some(self.settings.prompts.tools().iter().map(|tool| tool.name.clone()).collect());
    }
}

/// The kind of knowledge base that a folder of the project is.
const EMBEDDED: &str = "embedded";

/// Builds and runs trials.
pub struct TrialRunner {
    loaded: Arc<Loaded>,
    cassettes: PathBuf,
    variables: Variables,
    budget: Arc<Budget>,
    paces: BTreeMap<String, Arc<Pace>>,
    setups: BTreeMap<(String, String), VariantSetup>,
    outside: BTreeMap<String, ExternalSetup>,
    proxies: tokio::sync::Mutex<BTreeMap<SocketAddr, Arc<Proxy>>>,
    turnstile: Arc<tokio::sync::Mutex<()>>,
}

impl TrialRunner {
    /// Opens the knowledge and resolves the settings of every scenario of `loaded`.
    ///
    /// # Errors
    /// [`SetupError`] for the first thing that cannot be opened or resolved.
    pub fn new(loaded: Arc<Loaded>) -> Result<Self, SetupError> {
        let mut prepared: BTreeMap<String, Arc<dyn KnowledgeSource>> = BTreeMap::new();
        let (mut setups, mut outside) = (BTreeMap::new(), BTreeMap::new());
        let cache = loaded.root.join(".ragcheck");
        for written in &loaded.scenarios {
            let scenario = &written.scenario;
            if scenario.flow == EXTERNAL {
                outside.insert(scenario.scenario.clone(), ExternalSetup::of(written)?);
                continue;
            }
            let source = if let Some(source) = prepared.get(&scenario.knowledge) {
                Arc::clone(source)
            } else {
                let unusable = |reason: String| SetupError::Knowledge {
                    file: written.file.clone(),
                    folder: scenario.knowledge.clone(),
                    reason,
                };
                let folder = loaded.root.join(&loaded.project.knowledge);
                let declared = Declared { place: &scenario.knowledge, knowledge: &folder, cache: Some(&cache) };
                let backend = knowledge::backend(EMBEDDED).ok_or_else(|| unusable(format!("no backend {EMBEDDED}")))?;
                let source = backend.prepare(declared).map_err(|error| unusable(error.to_string()))?;
                prepared.insert(scenario.knowledge.clone(), Arc::clone(&source));
                source
            };
            let knowledge = KnowledgeSources::new(vec![(scenario.knowledge.clone(), source)]);
            let flow = flow::by_name(&scenario.flow)
                .ok_or_else(|| SetupError::Flow { file: written.file.clone(), flow: scenario.flow.clone() })?;
            for variant in written.prompts.keys().cloned() {
                let (settings, services) = settings::resolve(flow, written, &variant)?;
                let setup =
                    VariantSetup { flow, knowledge: knowledge.clone(), settings, services, live: OnceLock::new() };
                setups.insert((scenario.scenario.clone(), variant), setup);
            }
        }
        let cassettes = loaded.root.join(&loaded.project.cassettes);
        let paces = services::paces(&loaded.project);
        Ok(Self {
            loaded,
            cassettes,
            variables: Variables::new(),
            budget: Arc::default(),
            paces,
            setups,
            outside,
            proxies: tokio::sync::Mutex::default(),
            turnstile: Arc::default(),
        })
    }

    /// With a bound on what all its live trials may spend together.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = Arc::new(budget);
        self
    }

    /// What all live trials share: how much was spent, and whether the run is to end.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// With variables that win over those of the process: keys are looked up among them.
    #[must_use]
    pub fn with_variables(mut self, variables: Variables) -> Self {
        self.variables = variables;
        self
    }

    /// The state machines of every flow that `plan` uses, as `plan.json` carries them.
    pub fn machines(&self) -> BTreeMap<String, serde_json::Value> {
        self.setups
            .values()
            .map(|setup| {
                let machine = serde_json::to_value(setup.flow.machine()).unwrap_or_default();
                (setup.flow.name().to_owned(), machine)
            })
            .collect()
    }

    fn setup(&self, trial: &PlannedTrial, written: &LoadedScenario) -> Option<&VariantSetup> {
        self.setups.get(&(written.scenario.scenario.clone(), trial.lane.variant.clone()))
    }

    fn written<'a>(&'a self, plan: &Plan, trial: &PlannedTrial) -> Option<&'a LoadedScenario> {
        let name = &plan.scenarios.get(trial.scenario)?.name;
        self.loaded.scenarios.iter().find(|written| written.scenario.scenario == *name)
    }

    /// A path as messages write it: below the project.
    fn shown<'p>(&self, path: &'p Path) -> &'p Path {
        path.strip_prefix(&self.loaded.root).unwrap_or(path)
    }

    /// Where cassettes are.
    pub fn cassettes(&self) -> &Path {
        &self.cassettes
    }
}

/// A trace around what a trial left: shared by all ways to run one.
fn trace_of(plan: &Plan, trial: &PlannedTrial, evidence: Evidence, end: TrialEnd) -> Trace {
    let (scenario, case) = names(plan, trial);
    Trace {
        version: TRACE_VERSION,
        trial: trial.id.clone(),
        scenario,
        case,
        lane: trial.lane.clone(),
        seed: trial.seed,
        evidence,
        roles: Roles::new(),
        offered: None,
        end,
        took_us: 0,
        events: Vec::new(),
    }
}

fn names(plan: &Plan, trial: &PlannedTrial) -> (String, String) {
    plan.scenarios.get(trial.scenario).map_or_else(Default::default, |scenario| {
        let case = scenario.cases.get(trial.case).map(|planned| planned.case.case.clone());
        (scenario.name.clone(), case.unwrap_or_default())
    })
}

fn case_of<'a>(plan: &'a Plan, trial: &PlannedTrial) -> Option<&'a Case> {
    plan.scenarios.get(trial.scenario)?.cases.get(trial.case).map(|planned| &planned.case)
}

/// Evidence of a trial that never ran.
fn no_evidence(mode: Mode, model: &str) -> Evidence {
    Evidence {
        mode,
        recorded_from: "nothing".into(),
        recorded_at: None,
        model: model.to_owned(),
        knowledge: String::new(),
        earlier_takes: Vec::new(),
    }
}
