//! Exact statistics for small samples: bounds on rates, quantiles, paired and repeated trials.
//!
//! Gates use Clopper-Pearson bounds ([`rate`]); Wilson intervals are for display only. Times are judged as the
//! Bernoulli claim "below the limit", never as an interpolated quantile ([`quantile`]). Runs that stop when they
//! know enough are judged by [`sequential`] and [`stopping`], never by a bound for a fixed number. Numbers in,
//! numbers out: nothing here knows traces, metrics or verdicts.

pub mod agreement;
mod beta;
pub mod bootstrap;
pub mod change_points;
mod clustered;
#[cfg(test)]
mod coverage;
pub mod critical_path;
pub mod effect;
pub mod operating;
mod paired;
pub mod permutation;
pub mod power;
pub mod prediction_powered;
pub mod quantile;
pub mod rate;
mod repeats;
pub mod sequential;
pub mod signed_rank;
pub mod stopping;
mod student;

pub use clustered::{Clustered, clustered};
pub use paired::{benjamini_hochberg, holm, mcnemar_exact};
pub use rate::{lower_bound, upper_bound};
pub use repeats::{pass_all_of, pass_any_of};

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
