//! What the trials of one plan share, opened once and held as data: settings, knowledge, services, budget, agents.
//!
//! [`Trial`] names one trial with what is open for it: `live`, `replay` and `external` are functions over it.

use super::external::{Agents, ExternalSetup};
use super::knowledge::{self, RetrievalServices};
use super::passages::Named;
use super::services::{self, Variables};
use super::{SetupError, environment};
use crate::cassette;
use crate::flow::{self, Flow, Settings};
use crate::knowledge::{KnowledgeSource, KnowledgeSources};
use crate::plan::{Hold, Plan, PlannedScenario, PlannedTrial, ResolvedCase, VariantSettings};
use crate::platform::clock::Clock;
use crate::platform::secrets::{self, Redactor};
use crate::provider::RetryPolicy;
use crate::provider::faults::{Faults, Payload};
use crate::scenario::Loaded;
use crate::settings::DeclaredFault;
use crate::trace::{EXTERNAL, Trace};
use crate::transport::{Budget, LiveTransport, Pace, ServiceKeys};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Everything that the trials of one plan share.
pub struct Opened {
    /// The scenarios that the plan was built from.
    pub(crate) loaded: Arc<Loaded>,
    /// Folder of the cassettes.
    pub cassettes: PathBuf,
    /// Variables that take precedence over the process environment when keys are looked up.
    pub(crate) variables: Variables,
    /// Budget and cancellation of all live trials.
    pub(crate) budget: Arc<Budget>,
    /// Scenarios, by index in the plan, of which only some trials are drawn: earlier recordings of these trials stay,
    /// and a new one is noted beside them.
    pub(crate) in_part: BTreeSet<usize>,
    /// The command that records the lanes again, if it is not `ragcheck run`.
    pub(crate) records: Option<String>,
    /// What the run holds; `None` if it asks every service, and in replays.
    pub(crate) hold: Option<Hold>,
    /// External agents.
    pub(crate) agents: Agents,
    /// Rate limits by provider.
    pub(super) paces: BTreeMap<String, Arc<Pace>>,
    /// Passages that trials found.
    pub(super) passages: Named,
    /// Setups by scenario of the plan, then by variant.
    setups: Vec<BTreeMap<String, Setup>>,
    /// The flows' knowledge bases, by the name that the project gives them.
    sources: Sources,
}

/// Setup shared by the trials of one variant, by kind of agent.
pub(super) enum Setup {
    /// A built-in flow.
    Flow(Box<FlowSetup>),
    Agent(Box<ExternalSetup>),
}

/// Setup of a variant whose agent is a built-in flow.
pub(super) struct FlowSetup {
    pub(super) flow: &'static dyn Flow,
    pub(super) knowledge: KnowledgeSources,
    /// Services that the bases call.
    pub(super) retrieval: RetrievalServices,
    pub(super) settings: Settings,
    pub(super) declared: VariantSettings,
    /// Connections, opened by the first live trial.
    pub(super) live: OnceLock<Result<LiveTransport, SetupError>>,
    /// Keys of finished replays: the requests of the next one begin with the same prompt and tools.
    pub(super) keys: Mutex<Vec<ServiceKeys>>,
}

/// One trial, with its plan and what is open for it.
#[derive(Clone, Copy)]
pub struct Trial<'o> {
    pub(crate) opened: &'o Opened,
    pub(crate) plan: &'o Plan,
    pub(crate) planned: &'o PlannedTrial,
    /// What strikes it beside the faults of its case: the cell of a matrix.
    pub(crate) cell: Option<Strike<'o>>,
}

/// What strikes the trial of a cell.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Strike<'o> {
    Fault(&'o DeclaredFault),
    /// An instruction in what its model reads.
    Poison(&'o Payload),
}

impl Opened {
    /// Opens the knowledge and resolves the settings of every scenario of `plan`, which was built from `loaded`. Only
    /// trials of this plan can be run.
    ///
    /// # Errors
    /// `SetupError` for the first thing that cannot be opened or resolved.
    pub fn new(loaded: Arc<Loaded>, plan: &Plan) -> Result<Self, SetupError> {
        // What an agent gets by the names of secrets is as secret as what the environment has by them.
        let targets = loaded.scenarios.iter().filter_map(|one| one.scenario.target.as_ref());
        let given = targets.flat_map(|target| &target.env).filter(|(name, value)| secrets::looks_secret(name, value));
        secrets::declare(given.map(|(name, value)| (name.clone(), value.clone())));
        let mut sources = BTreeMap::new();
        let setups = plan.scenarios.iter().map(|scenario| setups(&loaded, scenario, &mut sources));
        Ok(Self {
            setups: setups.collect::<Result<_, _>>()?,
            cassettes: loaded.root.join(&loaded.project.cassettes),
            paces: services::paces(&loaded.project, plan.partition.map_or(1, |partition| partition.of)),
            loaded,
            variables: Variables::new(),
            budget: Arc::default(),
            records: None,
            hold: None,
            agents: Agents::default(),
            passages: Named::default(),
            sources,
            in_part: BTreeSet::new(),
        })
    }

    /// Whether the trial's recording is the one that a replayed trace was made from.
    pub(crate) fn has_recording_of(&self, trace: &Trace) -> bool {
        let path = cassette::path(&self.cassettes, &trace.scenario, &trace.case, &trace.lane);
        let recorded = trace.evidence.recorded_at.as_deref().and_then(|at| at.parse().ok());
        recorded.is_some() && recorded == cassette::recorded_at(&path)
    }

    /// One trial of the plan.
    pub fn trial<'o>(&'o self, plan: &'o Plan, planned: &'o PlannedTrial) -> Trial<'o> {
        Trial { opened: self, plan, planned, cell: None }
    }

    /// State machines of every flow of the plan, as stored in `plan.json`.
    pub fn machines(&self) -> BTreeMap<String, serde_json::Value> {
        let setups = self.setups.iter().flat_map(BTreeMap::values);
        let flows = setups.filter_map(|setup| if let Setup::Flow(setup) = setup { Some(setup.flow) } else { None });
        flows
            .map(|flow| (flow.description().name.to_owned(), serde_json::to_value(flow.machine()).unwrap_or_default()))
            .collect()
    }

    /// Adds to a plan what is opened for it: state machines, prompts and the hashes of knowledge bases.
    pub(crate) fn describe(&self, plan: &mut Plan) {
        (plan.machines, plan.prompts) = (self.machines(), self.prompts());
        let nobody = knowledge::without_services(RetryPolicy::default());
        plan.knowledge =
            self.sources.iter().map(|(name, source)| (name.clone(), source.open(&nobody).hash())).collect();
    }

    /// The fixed prompts of the plan's flows, filled in, by their digests in traces.
    fn prompts(&self) -> BTreeMap<String, String> {
        let setups = self.setups.iter().flat_map(BTreeMap::values);
        let flows = setups.filter_map(|setup| if let Setup::Flow(setup) = setup { Some(setup) } else { None });
        let texts = flows.flat_map(|setup| setup.settings.prompts.fixed_texts());
        texts.map(|one| (one.digest.clone(), one.text.clone())).collect()
    }

    /// Setups of every scenario of the plan.
    pub(super) fn setups<'o>(
        &'o self,
        plan: &'o Plan,
    ) -> impl Iterator<Item = (&'o PlannedScenario, &'o BTreeMap<String, Setup>)> {
        plan.scenarios.iter().zip(&self.setups)
    }

    pub(super) fn setup(&self, planned: &PlannedTrial) -> Option<&Setup> {
        self.setups.get(planned.scenario)?.get(&planned.lane.variant)
    }

    /// Setup of a trial's flow; `None` for an external agent.
    pub(super) fn flow(&self, planned: &PlannedTrial) -> Option<&FlowSetup> {
        if let Setup::Flow(setup) = self.setup(planned)? { Some(setup) } else { None }
    }

    /// Setup of a trial's external agent.
    pub(super) fn agent(&self, planned: &PlannedTrial) -> Option<&ExternalSetup> {
        if let Setup::Agent(setup) = self.setup(planned)? { Some(setup) } else { None }
    }

    /// Settings that a trial's variant declares.
    pub(crate) fn declared(&self, planned: &PlannedTrial) -> Option<&VariantSettings> {
        self.setup(planned).map(Setup::declared)
    }

    /// Redacts every key that the project file names and that is set, and the likely keys of the environment.
    pub(crate) fn redactor(&self) -> Redactor {
        services::redactor(&self.loaded.project, &self.variables)
    }

    /// A warning that names the variables with keys that are too short or too plain to be redacted.
    pub(crate) fn unredacted_keys(&self) -> Option<String> {
        let found = services::unredacted(&self.loaded.project, &self.variables);
        let names: Vec<String> = found.into_iter().map(|name| format!("`{name}`")).collect();
        (!names.is_empty()).then(|| {
            format!(
                "warning: not redacted, because ordinary texts hold such a value: {} (fewer than 4 characters, or a word or \
                 number of fewer than 8). Use another value if it is a secret",
                names.join(", ")
            )
        })
    }

    /// A path relative to the project, for messages.
    pub(super) fn shown<'p>(&self, path: &'p Path) -> &'p Path {
        path.strip_prefix(&self.loaded.root).unwrap_or(path)
    }
}

impl Setup {
    pub(super) fn declared(&self) -> &VariantSettings {
        match self {
            Self::Flow(setup) => &setup.declared,
            Self::Agent(setup) => &setup.declared,
        }
    }
}

impl FlowSetup {
    /// Adds the tools offered to the flow, and the roles of declared tools, to a trace.
    pub(super) fn describe_tools(&self, trace: &mut Trace) {
        trace.roles = flow::roles(self.flow);
        trace.offered = Some(self.settings.prompts.tools().iter().map(|tool| tool.name.clone()).collect());
    }
}

impl<'o> Trial<'o> {
    /// The trial's case.
    pub(super) fn case(self) -> Option<&'o ResolvedCase> {
        self.plan.case_of(self.planned)
    }

    /// Names of its scenario and case.
    pub(super) fn names(self) -> (String, String) {
        let scenario = self.plan.scenario_of(self.planned).map(|scenario| scenario.name.clone());
        (scenario.unwrap_or_default(), self.case().map(|case| case.case.clone()).unwrap_or_default())
    }

    pub(crate) fn with_cell(self, cell: Strike<'o>) -> Self {
        Self { cell: Some(cell), ..self }
    }

    /// The faults that strike it; `None` if none does.
    pub(super) fn faults(self, clock: &Arc<dyn Clock>) -> Option<Arc<Faults>> {
        let of_case = self.case().map(|case| case.faults.as_slice()).unwrap_or_default();
        let (fault, poison) = match self.cell {
            Some(Strike::Fault(fault)) => (Some(fault), None),
            Some(Strike::Poison(payload)) => (None, Some(payload)),
            None => (None, None),
        };
        let declared: Vec<DeclaredFault> = of_case.iter().chain(fault).cloned().collect();
        let limit = self.opened.declared(self.planned).map_or(Duration::ZERO, |declared| *declared.limits.request);
        let lane = self.planned.lane.to_string();
        Faults::of(&declared, poison, (&self.planned.id, &lane), self.planned.seed, clock, limit)
    }

    /// The fault that its case asks of a simulator.
    pub(super) fn fault(self) -> Option<&'o str> {
        self.case()?.fault.as_deref()
    }
}

/// Prepared knowledge bases by name.
pub(super) type Sources = BTreeMap<String, Arc<dyn KnowledgeSource>>;

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
                ExternalSetup::of(agent, &variant.name, declared, &loaded.project)
                    .map_err(|why| wrong(why.to_string()))?,
            ))
        } else {
            let flow = flow::by_name(&variant.flow)
                .ok_or_else(|| SetupError::Flow { file: scenario.file.clone(), flow: variant.flow.clone() })?;
            let settings = environment::resolve(flow, &declared)
                .map_err(|why| wrong(format!("variant `{}`: {why}", variant.name)))?;
            let knowledge = knowledge::sources(loaded, scenario, sources)?;
            let named = declared.managed_retrieval.as_ref().filter(|_| flow.description().managed_retrieval);
            let retrieval = RetrievalServices::of(&loaded.project, scenario, named.map(|named| named.name.as_str()))?;
            Setup::Flow(Box::new(FlowSetup {
                flow,
                knowledge,
                retrieval,
                settings,
                declared,
                live: OnceLock::new(),
                keys: Mutex::default(),
            }))
        };
        setups.insert(variant.name.clone(), setup);
    }
    Ok(setups)
}
