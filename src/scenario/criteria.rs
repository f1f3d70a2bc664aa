//! Criteria as written: a metric, a target, a kind.

use super::resolve::resolve_metric;
use crate::platform::words;
use crate::settings::catalogue::MetricEntry;
use crate::trace::{EXTERNAL, IMPORTED};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A criteria file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Criteria {
    /// Purpose of these criteria.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Effect of an INCONCLUSIVE criterion on the exit code.
    #[serde(default)]
    pub undecided: Undecided,
    /// Population that a rate describes.
    #[serde(default)]
    pub estimand: Estimand,
    /// Flows whose criteria are included before those below. Each counts the trials of its flow and of external
    /// agents. A criterion below with the same id replaces it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<String>,
    /// The criteria, in report order.
    pub criteria: Vec<Criterion>,
}

/// Effect of an INCONCLUSIVE criterion on the exit code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Undecided {
    /// Exit code 4.
    #[default]
    Fail,
    /// Exit code 0 where the observed figure reaches the target and a proof is still possible; otherwise 4.
    Warn,
}

/// Population that a rate describes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Estimand {
    /// The same cases, run again.
    #[default]
    FixedSuite,
    /// Unseen queries: clustered by scenario.
    Population,
}

/// One criterion.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    /// Its name, `SC-001` for example.
    pub id: String,
    /// The requirement, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// A metric of the catalogue, with its parameters: `mandatory_call_rate(knowledge)`.
    pub metric: String,
    /// The target: `>= 95%` for a rate, `<= 10s` for a time: the share of units below it decides, and exactly 10 s is not below.
    pub target: String,
    /// How it is decided.
    pub kind: GateKind,
    /// The flow whose trials count, together with those of external agents. Default: trials of every flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// For an invariant: the one-sided 95 % lower bound must reach this too, `>= 95%` for example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<String>,
    /// The unit that the rate is counted over. Default: `unit` where the script determines how many units a
    /// conversation has, `conversation` where the agent's behaviour does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<Per>,
    /// With `per: unit`, where the agent's behaviour determines the number of units: the most that one conversation
    /// can have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
    /// Smallest number of conversations, or of cases with `estimand: population`; fewer are INCONCLUSIVE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_n: Option<u32>,
    /// For `confidence` in a run until decided: how far a rate may miss the target and still pass, `5%` for example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<String>,
    /// Whether the run fails when the criterion does not pass. Default: false for `point`, and without a ratings file for
    /// metrics of human ratings; true for the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Whether it is a self-test: what the flow itself promises, whatever the model and its prompt do. Shown apart from
    /// the other criteria, as counts without a bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub self_test: bool,
    /// Confirms that a target which asks for nothing, or bounds the wrong side for its metric, is intended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub meant: bool,
}

impl Criteria {
    /// Without a ratings file, makes criteria on human ratings optional unless they set `required`.
    pub(super) fn without_ratings(&mut self, metrics: &[&'static MetricEntry]) {
        for row in self.criteria.iter_mut().filter(|row| row.required.is_none()) {
            if resolve_metric(&row.metric, metrics).is_ok_and(|metric| metric.entry.is_rated) {
                row.required = Some(false);
            }
        }
    }
}

impl Criterion {
    /// Whether the run fails when the criterion does not pass.
    pub fn is_required(&self) -> bool {
        self.required.unwrap_or(self.kind != GateKind::Point)
    }

    /// Whether trials of that flow count: those of the criterion's flow, and of external and imported agents, which may
    /// replace any.
    pub(crate) fn counts_flow(&self, flow: &str) -> bool {
        self.flow.as_ref().is_none_or(|own| own == flow || flow == EXTERNAL || flow == IMPORTED)
    }

    /// Default gate of every scenario: each trial meets its case's expectations. A gate on `case_pass_rate`, or one
    /// with the id `cases`, replaces it, and `gates: []` removes it.
    pub fn every_case() -> Self {
        Self {
            id: "cases".into(),
            about: "Every trial meets what its case expects.".into(),
            metric: "case_pass_rate".into(),
            target: ">= 100%".into(),
            kind: GateKind::Invariant,
            required: Some(true),
            ..Self::default()
        }
    }
}

/// The unit that a rate is counted over; the two are different claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// Units: each has the same weight, so long conversations count more.
    Unit,
    /// Conversations: each has the same weight, by the share of its good units.
    Conversation,
}

/// A gate in a scenario: a criterion on that scenario alone.
pub(crate) type Gate = Criterion;

words! {
    /// How a criterion is decided.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum GateKind {
        /// One violation fails it.
        #[default]
        Invariant = "invariant",
        /// The exact one-sided 95 % bound decides.
        Confidence = "confidence",
        /// The observed figure decides. Advisory, and labelled so, unless `required: true`.
        Point = "point",
    }
}
