//! `pass_all(k)` and `pass_any(k)`: groups of k repetitions of a case in which all, or any, met every expectation.
//!
//! pass^k (Yao et al. 2024) and pass@k (Chen et al. 2021) as a claim that a gate can bound: repetitions 1 to k of a
//! case are one unit, k + 1 to 2k the next. Units share no trial, so the exact bounds of a rate hold. With k
//! repetitions of each case the observed rate is the published estimator; with more it has the same mean. A criterion
//! does not pass while some repetitions fill no unit.

use super::catalogue::Registered;
use super::{Group, Metric, case_pass_rate};
use crate::settings::catalogue::{Parameter, ResolvedMetric, Values};

const TRIALS: Parameter = Parameter { name: "k", values: Values::Count, default: None };

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[
    Registered::rate("pass_all", |asked| metric(Group { size: size(asked), all: true }))
        .about("Of k repetitions of one case, all met everything it expects (pass^k); each k repetitions are one unit.")
        .takes(&[TRIALS]),
    Registered::rate("pass_any", |asked| metric(Group { size: size(asked), all: false }))
        .about("Of k repetitions of one case, any met everything it expects (pass@k); each k repetitions are one unit.")
        .takes(&[TRIALS]),
];

/// Repetitions per unit; the parameter was validated when read.
fn size(asked: &ResolvedMetric) -> u32 {
    asked.parameter("k").parse().unwrap_or(1)
}

fn metric(group: Group) -> Metric {
    Metric { group: Some(group), ..Metric::new("groups of repetitions of a case", case_pass_rate::observe) }
}
