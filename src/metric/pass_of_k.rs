//! `pass_all(k)` and `pass_any(k)`: k repetitions of one case that all, or any of which, met everything it expects.
//!
//! pass^k (Yao et al. 2024) and pass@k (Chen et al. 2021) as a claim that a gate can bound: repetitions 1 to k of a case
//! are one unit, k + 1 to 2k the next. Units share no trial, so the exact bounds of a rate hold; with k repetitions of
//! each case the observed rate is the published estimator, with more it has the same mean. While
//! repetitions that fill no unit are left over, such a criterion does not pass.

use super::case_pass_rate::CasePassRate;
use super::catalogue::Registered;
use super::{Group, Metric, Observation, TrialView};
use crate::settings::catalogue::{MetricEntry, Parameter, ResolvedMetric, Values};

const TRIALS: Parameter = Parameter { name: "k", values: Values::Count, default: None };

/// What criteria may name.
pub(super) const ENTRIES: &[Registered] = &[
    Registered {
        entry: MetricEntry::rate(
            "pass_all",
            "Of k repetitions of one case, all met everything it expects (pass^k); each k repetitions are one unit.",
            &[TRIALS],
        ),
        make: |asked| Box::new(PassOfK { group: Group { size: size(asked), all: true } }),
    },
    Registered {
        entry: MetricEntry::rate(
            "pass_any",
            "Of k repetitions of one case, any met everything it expects (pass@k); each k repetitions are one unit.",
            &[TRIALS],
        ),
        make: |asked| Box::new(PassOfK { group: Group { size: size(asked), all: false } }),
    },
];

/// See the module.
#[derive(Debug)]
pub(super) struct PassOfK {
    /// Which repetitions make a unit, and what it takes.
    pub group: Group,
}

/// How many repetitions make a unit; the parameter was checked when it was read.
fn size(asked: &ResolvedMetric) -> u32 {
    asked.parameter("k").parse().unwrap_or(1)
}

impl Metric for PassOfK {
    fn units(&self) -> &'static str {
        "groups of repetitions of a case"
    }

    fn group(&self) -> Option<Group> {
        Some(self.group)
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        CasePassRate.observe(view)
    }
}
