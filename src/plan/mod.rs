//! Plans trials from scenarios, and stores them as `plan.json`.

mod build;
mod case;
mod difference;
mod hold;
mod order;
mod partition;
mod published;
mod selected;
mod selection;
mod stored;
mod subject;
mod trials;
mod variant;

pub use build::{build, trial_seed};
pub(crate) use case::ResolvedCase;
pub(crate) use difference::differences;
pub use hold::{Hold, OnNew};
pub(crate) use order::interleaved;
pub use partition::Partition;
pub(crate) use selected::{ChangedRecordings, Part, Typed, in_mode};
pub use selection::Selection;
pub(crate) use trials::{Planned, Trials};
pub(crate) use variant::{NamedRetrieval, PlannedVariant, VariantSettings};

use crate::scenario::external::ExternalAgent;
use crate::scenario::{Criteria, Criterion};
use crate::settings::price::Prices;
use crate::trace::{self, EXTERNAL, Lane, MeasuredAgreement, Mode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of `plan.json` that this build writes, and the newest that it reads. It also reads older ones:
///
/// | version | what was new |
/// |---|---|
/// | 1 | a fixed number of trials |
/// | 2 | [`Plan::stopping`]: a build that assumed a fixed number of trials would compute invalid bounds |
/// | 3 | trials may be runs of repeats, see [`Trials`] |
/// | 4 | variants resolved, each with its flow; cases in steps of conversations |
/// | 5 | criteria count units or conversations: an older build would treat an observed number of units as planned |
pub(crate) const PLAN_VERSION: u32 = 5;

/// Plans of more trials are written as runs of repeats.
const LISTED: usize = 20_000;

/// Error probability of a run until decided: for passing a gate whose rate is too low, per gate, and for failing any
/// gate whose rate is high enough, over all gates.
pub(crate) const STOPPING_ALPHA: f64 = 0.05;

/// Everything that evaluation needs in addition to the traces.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Format version.
    pub version: u32,
    /// Mode of the traces of trials that ended normally; `None` in plans of older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The selection behind a partial plan; `None` for a whole suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// What was typed to select this run; `None` if nothing was, and in plans of older builds. The plan's id does not
    /// depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typed: Option<Typed>,
    /// What a live or recording run holds; `None` if it asks every service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// The partition of the planned trials that this run takes; `None` if it takes all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<Partition>,
    /// The run's seed.
    pub seed: u64,
    /// The scenarios, with expectations resolved.
    pub scenarios: Vec<PlannedScenario>,
    /// The planned trials, in order; with a stopping design pass by pass, and the last ones may not be needed.
    #[schemars(with = "Vec<trials::Entry>")]
    pub trials: Trials,
    /// Places in `trials` in the order in which a live run started them; empty if that is plan order, and
    /// in every replay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<u32>,
    /// The stopping design; `None` if the run executes every planned trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<Stopping>,
    /// The criteria on the whole run.
    pub criteria: Criteria,
    /// Criteria that may measure nothing, by id.
    pub not_measured_ok: Vec<String>,
    /// The flows' state machines, by flow.
    #[schemars(with = "BTreeMap<String, trace::state_machine::Machine>")]
    pub machines: BTreeMap<String, serde_json::Value>,
    /// The flows' fixed prompts, filled in, by `role:digest` as traces name messages. Older readers ignore it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prompts: BTreeMap<String, String>,
    /// Hashes of the knowledge bases of the flows when the run began, by the names that the project gives them; of a base
    /// on a server, the hash of its declaration. Older builds wrote none, and the plan's id does not depend on them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub knowledge: BTreeMap<String, String>,
    /// Human ratings: trial to satisfied. `None` when there is no ratings file.
    pub ratings: Option<BTreeMap<String, bool>>,
    /// Measured agreement of a model's grades with people; `None` if not measured, and then no grade decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<MeasuredAgreement>,
    /// Rewards of imported conversations, 0 to 1, by trial. A reward decides its trial.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rewards: BTreeMap<String, f64>,
    /// Prices of models and search services, by `provider/model`, at planning time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: Prices,
    /// All requirements of the project, with short descriptions, for the coverage table.
    pub requirements: BTreeMap<String, String>,
    /// Sources of requirements, where the project states them: a document, a ticket.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requirement_sources: BTreeMap<String, String>,
    /// What shows requirements, where the project states it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requirement_evidence: BTreeMap<String, RequirementEvidence>,
    /// Recordings that differ from those at a commit (on a pull request, its base); `None` if not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_recordings: Option<ChangedRecordings>,
    /// Digest of the plan without `order`, `typed` and `partition`, repeated in every trace of the run: equal plans have equal ids. Empty
    /// before the plan is written, and in plans of older builds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
}

/// Design of a run until decided: complete passes, each one repetition of every selected case, with a test of the
/// gates after each. The condition of each gate follows from its criterion.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stopping {
    /// Largest number of passes.
    pub max_passes: u32,
    /// Largest probability of ever passing a gate whose true rate is below its target (less its margin).
    pub alpha_pass: f64,
    /// Largest probability of ever failing any required gate whose true rate reaches its target, shared among them.
    pub alpha_fail: f64,
}

impl Plan {
    /// The criteria on the whole run, then the gates with the places of their scenarios.
    pub fn criteria_and_gates(&self) -> impl Iterator<Item = (Option<usize>, &Criterion)> {
        let whole = self.criteria.criteria.iter().map(|written| (None, written));
        let gates = self.scenarios.iter().enumerate();
        whole.chain(gates.flat_map(|(at, of)| of.gates.iter().map(move |gate| (Some(at), gate))))
    }

    /// The scenario of a trial.
    pub fn scenario_of(&self, trial: &PlannedTrial) -> Option<&PlannedScenario> {
        self.scenarios.get(trial.scenario)
    }

    /// The case of a trial.
    pub fn case_of(&self, trial: &PlannedTrial) -> Option<&ResolvedCase> {
        self.scenario_of(trial)?.cases.get(trial.case).map(|planned| &planned.case)
    }

    /// The variant of a trial.
    pub fn variant_of(&self, trial: &PlannedTrial) -> Option<&PlannedVariant> {
        self.scenario_of(trial)?.variant(&trial.lane.variant)
    }

    /// Places of a pass's trials, `from` to `to`, in the order in which a live run starts them.
    pub fn start_order(&self, from: usize, to: usize) -> Vec<usize> {
        let drawn = self.order.get(from..to).unwrap_or_default().iter().map(|place| *place as usize);
        let drawn: Vec<usize> = drawn.filter(|place| (from..to).contains(place)).collect();
        if drawn.len() == to - from { drawn } else { (from..to).collect() }
    }

    /// `plan.json`: with a list of trials, or with runs of repeats where the list would be long.
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        self.json(LISTED)
    }

    /// Like [`Plan::to_json`], with a list of at most `listed` trials.
    pub(crate) fn json(&self, listed: usize) -> serde_json::Result<Vec<u8>> {
        if self.trials.number() <= listed {
            return serde_json::to_vec_pretty(self);
        }
        let trials = self.trials.in_runs(self.seed);
        serde_json::to_vec_pretty(&Self { trials, ..self.clone() })
    }

    /// Whether two plans are known to search other knowledge.
    pub(crate) fn searches_another(&self, other: &Self) -> bool {
        let known = !self.knowledge.is_empty() && !other.knowledge.is_empty();
        known && self.knowledge != other.knowledge
    }

    /// The sealed text of `plan.json` (see [`trace::seal`]), without keys in its texts; also sets the plan's id, which the
    /// traces must carry.
    pub fn stored(&mut self, clean: impl Fn(&[u8]) -> Vec<u8>) -> serde_json::Result<Vec<u8>> {
        if let Some(mut published) = self.without_keys() {
            let text = published.sealed(clean)?;
            self.id = published.id;
            return Ok(text);
        }
        self.sealed(clean)
    }

    fn sealed(&mut self, clean: impl Fn(&[u8]) -> Vec<u8>) -> serde_json::Result<Vec<u8>> {
        let (order, typed, partition) = (std::mem::take(&mut self.order), self.typed.take(), self.partition.take());
        let knowledge = std::mem::take(&mut self.knowledge);
        self.id = String::new();
        let seal = |text: Vec<u8>| {
            let text = String::from_utf8(clean(&text)).unwrap_or_default();
            trace::seal(&text)
        };
        let (_, id) = seal(self.to_json()?);
        (self.id, self.order, self.typed, self.partition, self.knowledge) = (id, order, typed, partition, knowledge);
        Ok(seal(self.to_json()?).0.into_bytes())
    }

    /// The trials in parts that run one after another: passes, or a single part without a stopping design.
    pub fn passes(&self) -> impl Iterator<Item = &[PlannedTrial]> {
        let whole = self.stopping.is_none();
        self.trials.chunk_by(move |one, next| whole || one.lane.repetition == next.lane.repetition)
    }
}

/// One scenario of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "stored::Scenario")]
#[schemars(!from)]
pub struct PlannedScenario {
    /// Its name.
    pub name: String,
    /// Its file, relative to the project, with forward slashes.
    pub file: String,
    /// Its purpose.
    pub about: String,
    /// The external agent, if a variant's flow is `external`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<ExternalAgent>,
    /// Its knowledge bases by `kb_id`, as the scenario names them; empty for an external agent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub knowledge: BTreeMap<String, String>,
    /// Its variants, in order.
    pub variants: Vec<PlannedVariant>,
    /// Its cases, each with the scenario's `covers` and `excluded_from`.
    pub cases: Vec<PlannedCase>,
    /// Gates on this scenario alone. Includes `case_pass_rate` of 100 % unless the scenario writes another, or
    /// `gates: []`.
    pub gates: Vec<crate::scenario::criteria::Gate>,
}

impl PlannedScenario {
    pub fn variant(&self, name: &str) -> Option<&PlannedVariant> {
        self.variants.iter().find(|variant| variant.name == name)
    }
}

/// What shows a requirement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequirementEvidence {
    /// Defects of `ragcheck mutate` that take its evidence away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defects: Vec<String>,
    /// Tests that show it outside of runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
}

/// One case of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedCase {
    /// The table whose row makes the case, relative to the project's folder; `None` for a case in its scenario's
    /// file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The line of that file where the case begins, from 1.
    pub line: u32,
    /// The case, resolved.
    pub case: ResolvedCase,
    /// For an imported case, the key by which its conversations count as having the same input as others; empty if
    /// the case has an input.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub input: String,
}

/// One trial of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedTrial {
    /// `scenario/case/flow.variant.n`.
    pub id: String,
    /// Index into [`Plan::scenarios`].
    pub scenario: usize,
    /// Index into that scenario's cases.
    pub case: usize,
    /// Flow, variant, repetition, arm.
    pub lane: Lane,
    /// hash(run seed, trial id).
    pub seed: u64,
}

impl PlannedTrial {
    /// Whether the trial's agent runs outside ragcheck.
    pub fn is_external(&self) -> bool {
        self.lane.flow == EXTERNAL
    }
}
