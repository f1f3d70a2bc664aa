//! Charts as inline SVG: the interval of a rate and the distribution of turn times.
//!
//! They hold numbers and fixed words only, so they go into the page unescaped. Colours come from classes in
//! `style.css`; each chart has a `<title>` that says in words what it shows.

use crate::gate::CriterionResult;
use crate::percent::{self, Rounding, percent, rounded};
use crate::report::figures::{claimed_share, duration, target};
use crate::scenario::Target;
use crate::stats::quantile::nearest_rank;
use std::fmt::Write as _;

const INTERVAL_WIDTH: f64 = 220.0;

/// Wilson interval, observed share, one-sided bound and target of one criterion; `None` when nothing was measured.
pub(super) fn interval(row: &CriterionResult) -> Option<String> {
    let (low, high) = row.interval?;
    if row.n == 0 {
        return None;
    }
    let counted = row.successes as f64 / row.n as f64;
    let timed = matches!(target(row), Some(Target::AtMostTime(_)));
    // For cases not seen yet the observed figure is the mean of the cases, not the share of the units.
    let observed = row.observed.filter(|_| !timed).unwrap_or(counted);
    let aim = match target(row) {
        Some(Target::AtLeastRate(share) | Target::AtMostRate(share)) => Some(share),
        Some(Target::AtMostTime(_)) => claimed_share(&row.metric),
        None => None,
    };
    // The bound that decides: the opposite one where the criterion fails.
    let bound = if row.bound_text.starts_with("true rate at most") { row.upper } else { row.lower };
    let shown = [Some(low), Some(high), Some(observed), aim, bound];
    let (left, right) = domain(shown.into_iter().flatten());
    let x = |share: f64| 8.0 + (share - left) / (right - left) * (INTERVAL_WIDTH - 16.0);
    let mut svg = String::new();
    let _ = write!(svg, "<svg class=\"interval\" viewBox=\"0 0 {INTERVAL_WIDTH:.0} 46\" role=\"img\"><title>");
    let interval = if row.sample_text.is_empty() && row.clusters == row.n { "Wilson interval" } else { "interval" };
    let _ = write!(svg, "Observed {}, 95 % {interval} {}", percent(observed), percent::interval(low, high));
    if bound.is_some() {
        let _ = write!(svg, ", one-sided bound {}", crate::report::figures::bound(row));
    }
    if let Some(aim) = aim {
        let _ = write!(svg, ", target {}", percent(aim));
    }
    let _ = write!(svg, ", n = {}</title>", row.n);
    let whole = |share: f64| rounded(share * 100.0, 0, Rounding::Nearest);
    let (from, to) = (x(left), x(right));
    let _ = write!(svg, "<path class=\"axis\" d=\"M{from:.1} 30H{to:.1}M{from:.1} 27v6M{to:.1} 27v6\"/>");
    let _ = write!(
        svg,
        "<rect class=\"range\" x=\"{:.1}\" y=\"14\" width=\"{:.1}\" height=\"8\" rx=\"4\"/>",
        x(low),
        (x(high) - x(low)).max(1.5)
    );
    if let Some(bound) = bound {
        let _ = write!(svg, "<path class=\"bound\" d=\"M{:.1} 10v16\"/>", x(bound));
    }
    if let Some(aim) = aim {
        let at = x(aim);
        let _ = write!(
            svg,
            "<path class=\"target\" d=\"M{at:.1} 3v30\"/><path class=\"flag\" d=\"M{at:.1} 0l4 4l-4 4l-4 -4z\"/>"
        );
    }
    let _ = write!(svg, "<circle class=\"seen\" cx=\"{:.1}\" cy=\"18\" r=\"4.5\"/>", x(observed));
    let _ = write!(svg, "<text x=\"{from:.1}\" y=\"44\">{} %</text>", whole(left));
    let _ = write!(svg, "<text x=\"{to:.1}\" y=\"44\" text-anchor=\"end\">{} %</text></svg>", whole(right));
    Some(svg)
}

/// The narrowest of a few round scales that holds all shares.
fn domain(shares: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    const SCALES: [(f64, f64); 6] = [(0.9, 1.0), (0.8, 1.0), (0.5, 1.0), (0.0, 0.1), (0.0, 0.2), (0.0, 0.5)];
    let holds = |(from, to): &(f64, f64)| shares.clone().all(|share| *from <= share && share <= *to);
    SCALES.into_iter().find(holds).unwrap_or((0.0, 1.0))
}

/// A marked time in the distribution.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    /// What it is: `p95`, `limit 10.00 s`.
    pub label: String,
    /// Where, in microseconds.
    pub at_us: u64,
    /// Whether it is a limit rather than something observed.
    pub limit: bool,
}

/// Bars of a histogram of `sorted` durations (microseconds, ascending) with `marks`; the last bar holds all longer
/// ones.
pub(super) fn histogram(sorted: &[u64], marks: &[Mark]) -> Option<String> {
    const BARS: usize = 32;
    const WIDTH: f64 = 720.0;
    const HEIGHT: f64 = 250.0;
    const BASE: f64 = 206.0;
    // Turns without an answer are longer than any other, and have no place among the bars.
    let (sorted, unanswered) = sorted.split_at(sorted.partition_point(|us| *us < u64::MAX));
    let longest = *sorted.last()?;
    let limit = marks.iter().filter(|mark| mark.limit).map(|mark| mark.at_us).max().unwrap_or(0);
    let reach = nearest_rank(sorted, 0.995).unwrap_or(longest).max(limit).max(1);
    let step = round_step(reach as f64 * 1.08 / BARS as f64);
    let mut bars = [0u64; BARS];
    for &us in sorted {
        bars[((us as f64 / step) as usize).min(BARS - 1)] += 1;
    }
    let most = bars.iter().copied().max().unwrap_or(1).max(1);
    let x = |us: f64| 44.0 + (us / step / BARS as f64).min(1.0) * (WIDTH - 60.0);
    let y = |number: u64| BASE - number as f64 / most as f64 * (BASE - 64.0);
    let mut svg = format!("<svg class=\"hist\" viewBox=\"0 0 {WIDTH:.0} {HEIGHT:.0}\" role=\"img\"><title>");
    let _ = write!(svg, "Distribution of {} turn times, longest {}", sorted.len(), duration(longest));
    if !unanswered.is_empty() {
        let _ = write!(svg, ", {} more without an answer", unanswered.len());
    }
    for mark in marks {
        let _ = write!(svg, ", {} {}", mark.label, duration(mark.at_us));
    }
    svg.push_str("</title>");
    for number in [most, most / 2] {
        if number > 0 {
            let at = y(number);
            let _ = write!(
                svg,
                "<path class=\"grid\" d=\"M44 {at:.1}H{:.1}\"/>\
                 <text x=\"38\" y=\"{:.1}\" text-anchor=\"end\">{number}</text>",
                WIDTH - 16.0,
                at + 4.0
            );
        }
    }
    let bar = (WIDTH - 60.0) / BARS as f64;
    for (index, &number) in bars.iter().enumerate().filter(|(_, number)| **number > 0) {
        let (from, to) = (index as f64 * step, (index + 1) as f64 * step);
        let late = limit > 0 && from >= limit as f64;
        let range = if index == BARS - 1 {
            format!("from {}", duration(from as u64))
        } else {
            format!("{} to {}", duration(from as u64), duration(to as u64))
        };
        let class = if late { "bar late" } else { "bar" };
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\">\
             <title>{range}: {number}</title></rect>",
            x(from) + 1.0,
            y(number),
            bar - 2.0,
            BASE - y(number),
        );
    }
    let _ = write!(svg, "<path class=\"axis\" d=\"M44 {BASE:.0}H{:.0}\"/>", WIDTH - 16.0);
    for tick in 0..=4 {
        let us = step * BARS as f64 / 4.0 * f64::from(tick);
        let anchor = if tick == 4 { "end" } else { "middle" };
        let _ =
            write!(svg, "<text x=\"{:.1}\" y=\"226\" text-anchor=\"{anchor}\">{}</text>", x(us), duration(us as u64));
    }
    for (place, mark) in marks.iter().enumerate() {
        let at = x(mark.at_us as f64);
        let (class, top) = if mark.limit { ("target", 10.0) } else { ("quantile", 14.0 + 15.0 * place as f64) };
        let (shift, anchor) =
            if at > WIDTH * if mark.limit { 0.8 } else { 0.93 } { (-5.0, "end") } else { (5.0, "start") };
        let _ = write!(
            svg,
            "<path class=\"{class}\" d=\"M{at:.1} {top:.0}V{BASE:.0}\"/>\
             <text class=\"mark\" x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"{anchor}\">{}</text>",
            at + shift,
            top + 9.0,
            mark.label,
        );
    }
    svg.push_str("</svg>");
    Some(svg)
}

/// Shares of 0 to 1 as one bar, in the order given; the title names them.
pub(super) fn shares(names: &[&str], shares: &[f64]) -> String {
    const WIDTH: f64 = 220.0;
    let mut svg = format!("<svg class=\"shares\" viewBox=\"0 0 {WIDTH:.0} 12\" role=\"img\"><title>");
    let said: Vec<String> =
        names.iter().zip(shares).map(|(name, share)| format!("{name} {}", percent(*share))).collect();
    let _ = write!(svg, "{}</title>", said.join(", "));
    let mut from = 0.0;
    for (place, share) in shares.iter().enumerate() {
        let width = share * WIDTH;
        if width > 0.0 {
            let _ = write!(
                svg,
                "<rect class=\"stage-{}\" x=\"{from:.2}\" y=\"0\" width=\"{width:.2}\" height=\"12\"/>",
                place % 8 + 1
            );
        }
        from += width;
    }
    svg.push_str("</svg>");
    svg
}

/// The next of 1, 2, 2.5 or 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.max(1.0).log10().floor());
    [1.0, 1.25, 2.0, 2.5, 4.0, 5.0, 10.0]
        .into_iter()
        .map(|nice| nice * power)
        .find(|nice| *nice >= step)
        .unwrap_or(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;
    use proptest::prelude::*;

    #[test]
    fn a_scale_is_as_narrow_as_the_shares_allow() {
        assert_eq!(domain([0.95, 0.99].into_iter()), (0.9, 1.0));
        assert_eq!(domain([0.2, 0.41].into_iter()), (0.0, 0.5));
        assert_eq!(domain([0.2, 0.9].into_iter()), (0.0, 1.0));
    }

    #[test]
    fn the_interval_says_in_words_what_it_shows_and_nothing_measured_has_none() {
        let run = sample::run(1);
        let rows = &run.evaluation.criteria;
        let svg = interval(&rows[1]).expect("measured");
        assert!(svg.contains("<title>Observed 99.4 %") && svg.contains("target 95.0 %, n = 164"), "{svg}");
        assert_eq!(interval(&rows[3]), None);
    }

    proptest! {
        #[test]
        fn every_duration_is_in_some_bar(mut times in proptest::collection::vec(0u64..60_000_000, 1..80)) {
            times.sort_unstable();
            let svg = histogram(&times, &[]).expect("not empty");
            let bars = svg.split("</title></rect>").filter_map(|part| part.rsplit(": ").next()?.parse::<usize>().ok());
            prop_assert_eq!(bars.sum::<usize>(), times.len());
        }
    }
}
