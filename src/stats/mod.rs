//! Exact statistics for small samples: bounds on rates, quantiles, paired and repeated trials.
//!
//! Gates use [`sample`]: Clopper-Pearson ([`rate`]) where units are independent, the bet of [`betting`] where they come
//! in clusters, [`population`] for cases not seen yet. Wilson intervals are for display only. Times are judged as the
//! Bernoulli claim "below the limit", never as an interpolated quantile ([`quantile`]). Runs that stop when they
//! know enough are judged by [`sequential`], [`stopping`] and [`betting`], never by a bound for a fixed number. Numbers
//! in, numbers out: nothing here knows traces, metrics or verdicts.

pub mod agreement;
mod beta;
pub mod betting;
pub mod bootstrap;
pub mod change_points;
mod clustered;
pub mod clusters;
#[cfg(test)]
mod coverage;
pub mod critical_path;
pub mod effect;
#[cfg(test)]
mod error_rates;
pub mod operating;
mod paired;
pub mod paired_shift;
pub mod percent;
pub mod permutation;
pub mod population;
pub mod power;
pub mod prediction_powered;
pub mod quantile;
pub mod rate;
mod repeats;
pub mod sample;
pub mod sequential;
pub mod signed_rank;
pub mod stopping;
mod student;

pub use clustered::{Clustered, clustered};
pub use clusters::Clusters;
pub use paired::{benjamini_hochberg, holm, mcnemar_exact};
pub use rate::{lower_bound, upper_bound};
pub use repeats::{pass_all_of, pass_any_of};
pub use sample::Sample;

/// The error probability of every one-sided bound that decides a gate.
pub const ALPHA: f64 = 0.05;

/// The least number above `low` and up to `high` for which `holds`, which holds for `high`, not for `low`, and for all
/// numbers after the first for which it does.
fn bisect(mut low: u64, mut high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while high - low > 1 {
        let middle = u64::midpoint(low, high);
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// Beyond so many [`fewest`] gives up.
const FURTHEST: u64 = 100_000_000;

/// The smallest number from 1 for which `holds`, given that it holds for all larger ones too; `None` when no number
/// does, up to a hundred million.
fn fewest(holds: impl Fn(u64) -> bool) -> Option<u64> {
    let mut high = 1_u64;
    while !holds(high) {
        high = high.checked_mul(2).filter(|next| *next <= FURTHEST)?;
    }
    Some(bisect(high / 2, high, holds))
}
