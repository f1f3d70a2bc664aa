//! Exact statistics for small samples: bounds on rates, quantiles, paired and repeated trials.
//!
//! Gates use [`sample`]: Clopper-Pearson ([`rate`]) where units are independent, the bets of [`betting`] where they come
//! in clusters, [`population`] for means over conversations or over cases not seen yet. Wilson intervals are for display only. Times are judged as the
//! Bernoulli claim "below the limit", never as an interpolated quantile ([`quantile`]). Runs that stop when they
//! know enough are judged by [`sequential`], [`stopping`] and [`betting`], never by a bound for a fixed number. Numbers
//! in, numbers out: nothing here knows traces, metrics or verdicts.

pub(crate) mod agreement;
mod beta;
pub(crate) mod betting;
pub(crate) mod change_points;
mod clustered;
pub(crate) mod clusters;
#[cfg(test)]
mod coverage_tests;
pub(crate) mod critical_path;
#[cfg(test)]
mod error_rate_tests;
mod least_favourable;
pub(crate) mod operating;
mod paired;
pub(crate) mod paired_shift;
pub(crate) mod percent;
pub(crate) mod population;
pub(crate) mod power;
pub(crate) mod prediction_powered;
pub(crate) mod quantile;
pub(crate) mod rate;
mod repeats;
pub(crate) mod sample;
pub(crate) mod sequential;
pub(crate) mod signed_rank;
pub(crate) mod stopping;
mod student;

pub(crate) use clustered::clustered;
pub(crate) use clusters::Clusters;
pub(crate) use paired::{benjamini_hochberg, benjamini_hochberg_levels, holm, holm_levels};
#[cfg(test)]
pub(crate) use rate::lower_bound;
pub(crate) use repeats::{pass_all_of, pass_any_of};
pub(crate) use sample::Sample;

/// The error probability of every one-sided bound that decides a gate.
pub(crate) const ALPHA: f64 = 0.05;

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

/// The first of `0..=last` for which `holds`, which holds for all after it.
fn first_of(last: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    let first = if holds(0) { 0 } else { bisect(0, last + 1, holds) };
    (first <= last).then_some(first)
}

/// Halves the span from `low` to `high` until only neighbouring floats are left: `below` holds up to the first and not
/// from the second on.
fn halved(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> (f64, f64) {
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low, high)
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
