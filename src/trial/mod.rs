//! Builds what a trial needs, and runs a case in it.
//!
//! Replay, live and record differ in clock, transport and source of local times; flow, environment, tools and knowledge
//! are the same. Nothing here decides which trials run, or judges them.

mod agents;
mod cost;
mod drift;
mod drive;
mod external;
mod external_setup;
mod heard;
mod keys;
mod keyword_index;
mod knowledge;
mod live;
mod managed_key;
mod model;
mod outage;
#[cfg(test)]
mod outage_forms;
mod passages;
pub(crate) mod proxy;
mod recording;
mod replay;
mod resend;
pub(crate) mod run;
mod services;
mod serving;
mod settings;
mod stages;
pub(crate) mod trust;

pub(crate) use agents::{Contact, NoContact};
pub(crate) use cost::Spending;
pub(crate) use drift::Part;
pub(crate) use knowledge::{knowledge_access, without_services};
pub(crate) use live::stopping_design;
pub(crate) use model::ModelAccess;
pub(crate) use recording::{Recorder, RecordingError, Subject};
pub(crate) use resend::{Resend, ResendError, documents};
pub(crate) use services::{Variables, read_variables};
pub(crate) use serving::name_models;

use crate::flow::{self, Flow, Settings};
use crate::knowledge::{KnowledgeSource, KnowledgeSources};
use crate::plan::{Plan, PlannedScenario, PlannedTrial, VariantSettings};
use crate::scenario::Loaded;
use crate::trace::{ASKED_NOBODY, EXTERNAL, Evidence, Mode, NamedPassage, Roles, Trace, TrialEnd, version_of};
use crate::transport::{Budget, LiveError, LiveTransport, Pace};
pub(crate) use external::Doing;
use external_setup::ExternalSetup;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Why trials cannot be built.
#[derive(Debug, Clone, thiserror::Error)]
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
    /// The environment variable of a provider's key is not set.
    #[error(
        "provider `{provider}` needs its key in the environment variable {variable}: set it, or name a file that does with --env-file"
    )]
    Key {
        /// The provider's name in the project file.
        provider: String,
        /// The variable.
        variable: String,
    },
    /// A provider's key may not be sent to its address.
    #[error("provider `{provider}`: {reason}")]
    Distrust {
        /// The provider's name in the project file.
        provider: String,
        /// Why.
        reason: trust::Distrust,
    },
    /// An external agent was not allowed on the command line.
    #[error("{file}: {reason}")]
    Agent {
        /// The scenario's file.
        file: String,
        /// Why it may not be called.
        reason: trust::Distrust,
    },
    /// Live services cannot be set up.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// The flow is unknown.
    #[error("{file}: no flow is called `{flow}`")]
    Flow {
        /// The scenario's file.
        file: String,
        /// The flow as written.
        flow: String,
    },
    /// A setting is invalid.
    #[error("{file}: {reason}")]
    Settings {
        /// The scenario's file.
        file: String,
        /// Why.
        reason: String,
    },
}

/// Result of one trial.
#[derive(Debug)]
pub struct Finished {
    /// Trace of the trial.
    pub trace: Trace,
    /// Recorded exchanges of its lane that no request used, as messages.
    pub unused: Vec<String>,
    /// Full passages that its searches found; the trace refers to them by name.
    pub passages: Vec<Arc<NamedPassage>>,
    /// Trace of a later draw, if `trace` is the first draw, which counts.
    pub again: Option<Box<Trace>>,
    /// What the process of an external agent printed, redacted; `None` for other agents.
    pub printed: Option<String>,
}

impl Finished {
    /// A result that consists of a trace only.
    pub fn of(trace: Trace) -> Self {
        Self { trace, unused: Vec::new(), passages: Vec::new(), again: None, printed: None }
    }
}

/// Settings shared by all trials of one scenario and variant.
pub(crate) struct VariantSetup {
    flow: &'static dyn Flow,
    knowledge: KnowledgeSources,
    /// Services that the bases call.
    asked: knowledge::Asked,
    settings: Settings,
    declared: VariantSettings,
    live: OnceLock<Result<LiveTransport, SetupError>>,
}

impl VariantSetup {
    /// Adds the tools offered to the flow, and the roles of declared tools, to a trace.
    fn tell_tools(&self, trace: &mut Trace) {
        trace.roles = crate::flow::roles(self.flow);
        trace.offered = Some(self.settings.prompts.tools().iter().map(|tool| tool.name.clone()).collect());
    }
}

/// Setup shared by the trials of one variant, by kind of agent.
enum Setup {
    /// A built-in flow.
    Flow(Box<VariantSetup>),
    /// An external agent.
    Agent(Box<ExternalSetup>),
}

/// Builds and runs the trials of one plan.
pub struct TrialRunner {
    loaded: Arc<Loaded>,
    cassettes: PathBuf,
    variables: Variables,
    budget: Arc<Budget>,
    paces: BTreeMap<String, Arc<Pace>>,
    /// Setups by scenario of the plan, then by variant.
    setups: Vec<BTreeMap<String, Setup>>,
    agents: agents::Agents,
    /// Passages that trials found.
    found: passages::Named,
    /// Scenarios, by index in the plan, of which only some trials are drawn.
    in_part: BTreeSet<usize>,
}

impl TrialRunner {
    /// Opens the knowledge and resolves the settings of every scenario of `plan`, which was built from `loaded`. Only
    /// trials of this plan can be run.
    ///
    /// # Errors
    /// [`SetupError`] for the first thing that cannot be opened or resolved.
    pub fn new(loaded: Arc<Loaded>, plan: &Plan) -> Result<Self, SetupError> {
        let mut sources = BTreeMap::new();
        let setups = plan.scenarios.iter().map(|scenario| setups(&loaded, scenario, &mut sources));
        let setups = setups.collect::<Result<_, _>>()?;
        let cassettes = loaded.root.join(&loaded.project.cassettes);
        let paces = services::paces(&loaded.project);
        Ok(Self {
            loaded,
            cassettes,
            variables: Variables::new(),
            budget: Arc::default(),
            paces,
            setups,
            agents: agents::Agents::default(),
            found: passages::Named::default(),
            in_part: BTreeSet::new(),
        })
    }

    /// Sets a budget that all live trials share.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = Arc::new(budget);
        self
    }

    /// Marks scenarios, by index in the plan, of which only some trials are drawn: earlier recordings of these trials
    /// stay, and a new one is noted beside them.
    #[must_use]
    pub fn drawing_in_part(mut self, scenarios: BTreeSet<usize>) -> Self {
        self.in_part = scenarios;
        self
    }

    /// Budget and cancellation shared by all live trials.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Sets variables that take precedence over the process environment when keys are looked up.
    #[must_use]
    pub fn with_variables(mut self, variables: Variables) -> Self {
        self.variables = variables;
        self
    }

    /// Checks that all external agents were allowed on the command line; replay requires this too.
    ///
    /// # Errors
    /// [`SetupError::Agent`] for the first that was not allowed.
    pub fn agents_named(&self, plan: &Plan) -> Result<(), SetupError> {
        for (scenario, setups) in plan.scenarios.iter().zip(&self.setups) {
            for setup in setups.values() {
                if let Setup::Agent(setup) = setup {
                    let file = || scenario.file.clone();
                    setup.may_be_called().map_err(|reason| SetupError::Agent { file: file(), reason })?;
                }
            }
        }
        Ok(())
    }

    /// State machines of every flow of the plan, as stored in `plan.json`.
    pub fn machines(&self) -> BTreeMap<String, serde_json::Value> {
        let setups = self.setups.iter().flat_map(BTreeMap::values);
        let flows = setups.filter_map(|setup| if let Setup::Flow(setup) = setup { Some(setup.flow) } else { None });
        flows
            .map(|flow| (flow.description().name.to_owned(), serde_json::to_value(flow.machine()).unwrap_or_default()))
            .collect()
    }

    fn found(&self, trial: &PlannedTrial) -> Option<&Setup> {
        self.setups.get(trial.scenario)?.get(&trial.lane.variant)
    }

    fn setup(&self, trial: &PlannedTrial) -> Option<&VariantSetup> {
        if let Setup::Flow(setup) = self.found(trial)? { Some(setup) } else { None }
    }

    fn agent(&self, trial: &PlannedTrial) -> Option<&ExternalSetup> {
        if let Setup::Agent(setup) = self.found(trial)? { Some(setup) } else { None }
    }

    /// Settings that a trial's variant declares.
    fn declared(&self, trial: &PlannedTrial) -> Option<&VariantSettings> {
        Some(match self.found(trial)? {
            Setup::Flow(setup) => &setup.declared,
            Setup::Agent(setup) => &setup.declared,
        })
    }

    /// A path relative to the project, for messages.
    fn shown<'p>(&self, path: &'p Path) -> &'p Path {
        recording::below(&self.loaded.root, path)
    }

    /// Folder of the cassettes.
    pub fn cassettes(&self) -> &Path {
        &self.cassettes
    }
}

/// Prepared knowledge bases by name.
type Sources = BTreeMap<String, Arc<dyn KnowledgeSource>>;

/// Setups of a scenario's variants.
fn setups(
    loaded: &Loaded,
    scenario: &PlannedScenario,
    sources: &mut Sources,
) -> Result<BTreeMap<String, Setup>, SetupError> {
    let wrong = |reason: String| SetupError::Settings { file: scenario.file.clone(), reason };
    let mut setups = BTreeMap::new();
    for variant in &scenario.variants {
        let unknown = || wrong(format!("the plan does not say what variant `{}` comes to", variant.name));
        let declared = variant.settings.clone().ok_or_else(unknown)?;
        let setup = if variant.flow == EXTERNAL {
            let agent = scenario.agent.as_ref().ok_or_else(|| wrong("`target` is missing".into()))?;
            Setup::Agent(Box::new(
                ExternalSetup::of(agent, &variant.name, declared).map_err(|why| wrong(why.to_string()))?,
            ))
        } else {
            let flow = flow::by_name(&variant.flow)
                .ok_or_else(|| SetupError::Flow { file: scenario.file.clone(), flow: variant.flow.clone() })?;
            let settings = settings::resolve(flow, &declared)
                .map_err(|why| wrong(format!("variant `{}`: {why}", variant.name)))?;
            let knowledge = knowledge::sources(loaded, scenario, sources)?;
            let named = declared.managed_retrieval.as_ref().filter(|_| flow.description().managed_retrieval);
            let named = named.map(|named| named.name.as_str());
            let asked = knowledge::Asked::of(&loaded.project, scenario, named)?;
            Setup::Flow(Box::new(VariantSetup { flow, knowledge, asked, settings, declared, live: OnceLock::new() }))
        };
        setups.insert(variant.name.clone(), setup);
    }
    Ok(setups)
}

/// Builds the trace of a trial from its events and end, whichever way it was run.
fn trace_of(plan: &Plan, trial: &PlannedTrial, evidence: Evidence, end: TrialEnd) -> Trace {
    let (scenario, case) = names(plan, trial);
    Trace {
        version: version_of(&[]),
        plan: plan.id.clone(),
        trial: trial.id.clone(),
        scenario,
        case,
        lane: trial.lane.clone(),
        seed: trial.seed,
        evidence,
        roles: declared_roles(plan, trial),
        offered: None,
        notes: Vec::new(),
        passages: Vec::new(),
        end,
        took_us: 0,
        events: Vec::new(),
    }
}

/// Roles of the tools that a trial's agent declares, known even if the trial ends before it begins.
fn declared_roles(plan: &Plan, trial: &PlannedTrial) -> Roles {
    let agent = || Some(plan.scenario_of(trial)?.agent.as_ref()?.roles.by_tool());
    let flow = crate::flow::by_name(&trial.lane.flow).map(crate::flow::roles);
    flow.or_else(agent).unwrap_or_default()
}

/// Names of a trial's scenario and case.
fn names(plan: &Plan, trial: &PlannedTrial) -> (String, String) {
    let scenario = plan.scenario_of(trial).map(|scenario| scenario.name.clone());
    let case = plan.case_of(trial).map(|case| case.case.clone());
    (scenario.unwrap_or_default(), case.unwrap_or_default())
}

/// Evidence of a trial that never ran.
fn no_evidence(mode: Mode, model: &str) -> Evidence {
    Evidence {
        mode,
        recorded_from: ASKED_NOBODY.into(),
        recorded_at: None,
        model: model.to_owned(),
        knowledge: String::new(),
        earlier_takes: Vec::new(),
        noted_verdict: None,
        run_again: Vec::new(),
        replaced_errors: 0,
    }
}
