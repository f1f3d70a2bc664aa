//! Exact statistics for small samples: bounds on rates, quantiles, paired and repeated trials.
//!
//! Gates use Clopper-Pearson bounds ([`rate`]); Wilson intervals are for display only. Times are judged as the
//! Bernoulli claim "below the limit", never as an interpolated quantile ([`quantile`]). Numbers in, numbers out:
//! nothing here knows traces, metrics or verdicts.

mod beta;
mod clustered;
mod paired;
pub mod quantile;
pub mod rate;
mod repeats;

pub use clustered::{Clustered, clustered};
pub use paired::{holm, mcnemar_exact};
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
