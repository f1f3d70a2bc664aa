//! Criteria as written: a metric, a target, a kind.

use super::resolve::resolve_metric;
use crate::settings::catalogue::MetricEntry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A criteria file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Criteria {
    /// What these criteria are for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// What an INCONCLUSIVE criterion does.
    #[serde(default)]
    pub undecided: Undecided,
    /// What a rate is a statement about.
    #[serde(default)]
    pub estimand: Estimand,
    /// Flows whose own criteria are taken over, before those below; each counts the trials of its flow, and of
    /// agents that run elsewhere. One that is written below with the same id stands in its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<String>,
    /// The criteria, in the order of the report.
    pub criteria: Vec<Criterion>,
}

/// What an INCONCLUSIVE criterion does to the exit code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Undecided {
    /// Exit code 4.
    #[default]
    Fail,
    /// Exit code 0 where the observed figure reaches the target and can still be shown; otherwise 4.
    Warn,
}

/// What a rate is a statement about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Estimand {
    /// These cases, run again.
    #[default]
    FixedSuite,
    /// Queries not seen yet: clustered by scenario.
    Population,
}

/// One criterion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    /// Its name, `SC-001` for example.
    pub id: String,
    /// What it asks, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// A metric of the catalogue, with its parameters: `mandatory_call_rate(knowledge)`.
    pub metric: String,
    /// The target: `>= 95%` for a rate, `<= 10s` for a time.
    pub target: String,
    /// How it is judged.
    pub kind: GateKind,
    /// The flow whose trials it counts, with those of agents that run elsewhere; trials of every flow where nothing is
    /// written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// For an invariant: the one-sided 95 % lower bound must reach this too, `>= 95%` for example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<String>,
    /// What the rate is counted over. Where nothing is written: `unit` where the script says how many units a conversation
    /// has, `conversation` where what the agent does says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<Per>,
    /// With `per: unit`, where what the agent does says how many units a conversation has: the most that one can have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
    /// Fewer conversations than this, or cases with `estimand: population`, are INCONCLUSIVE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_n: Option<u32>,
    /// For `confidence` in a run until decided: how far on the wrong side of the target a rate may pass, `5%` for example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<String>,
    /// Whether the run fails when it does not pass; where nothing is written, `point` is advisory and the others are
    /// required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Says that a target which asks nothing, or looks the other way than its metric, is meant.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub meant: bool,
}

impl Criteria {
    /// What becomes of criteria on people's ratings where there are none: they are required only if they say so.
    pub(super) fn without_ratings(&mut self, metrics: &[&'static MetricEntry]) {
        for row in self.criteria.iter_mut().filter(|row| row.required.is_none()) {
            if resolve_metric(&row.metric, metrics).is_ok_and(|metric| metric.entry.is_rated) {
                row.required = Some(false);
            }
        }
    }
}

impl Criterion {
    /// Whether the run fails when it does not pass.
    pub fn is_required(&self) -> bool {
        self.required.unwrap_or(self.kind != GateKind::Point)
    }

    /// The gate of every scenario that does not write `gates` about its cases: each trial meets what its case expects.
    /// A gate on `case_pass_rate`, or one with the id `cases`, replaces it, and `gates: []` removes it.
    pub fn every_case() -> Self {
        Self {
            id: "cases".into(),
            about: "Every trial meets what its case expects.".into(),
            metric: "case_pass_rate".into(),
            target: ">= 100%".into(),
            kind: GateKind::Invariant,
            flow: None,
            floor: None,
            per: None,
            most: None,
            min_n: None,
            margin: None,
            required: Some(true),
            meant: false,
        }
    }
}

/// What a rate is counted over: two different claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// Units: each counts the same, so long conversations count more.
    Unit,
    /// Conversations: each counts the same, by the share of its own units.
    Conversation,
}

/// A gate in a scenario: a criterion on that scenario alone.
pub(crate) type Gate = Criterion;

/// How a criterion is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateKind {
    /// One violation fails it.
    Invariant,
    /// The exact one-sided 95 % bound decides.
    Confidence,
    /// The observed figure decides; advisory, and labelled so, unless `required: true`.
    Point,
}
