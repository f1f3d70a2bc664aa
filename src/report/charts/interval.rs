//! Chart of a criterion: observed share, two-sided interval, both one-sided bounds with the deciding one marked, and
//! target.

use crate::gate::{CriterionResult, Interval, Verdict};
use crate::report::figures::{claimed_share, target};
use crate::scenario::Target;
use crate::stats::percent::{self, Rounding, percent, percent_beside, rounded};
use std::fmt::Write as _;

const WIDTH: f64 = 220.0;

/// Values shown in a row, all shares from 0 to 1.
struct Shares {
    low: f64,
    high: f64,
    observed: f64,
    aim: Option<f64>,
    /// One-sided lower and upper bound.
    bounds: [Option<f64>; 2],
    /// Index of the deciding bound (0 is the lower one); `None` if none decides.
    deciding: Option<usize>,
}

impl Shares {
    /// Values of a row; `None` if nothing was measured.
    fn of(row: &CriterionResult) -> Option<Self> {
        let Interval { lower: low, upper: high } = row.interval?;
        if row.n == 0 {
            return None;
        }
        let counted = row.successes as f64 / row.n as f64;
        let timed = matches!(target(row), Some(Target::AtMostTime(_)));
        // For unseen cases, the observed figure is the mean over cases, not the share of units.
        let observed = row.observed.filter(|_| !timed).unwrap_or(counted);
        let aim = match target(row) {
            Some(Target::AtLeastRate(share) | Target::AtMostRate(share)) => Some(share),
            Some(Target::AtMostTime(_)) => claimed_share(&row.metric),
            None => None,
        };
        Some(Self { low, high, observed, aim, bounds: [row.lower, row.upper], deciding: deciding(row) })
    }

    fn all(&self) -> impl Iterator<Item = f64> {
        [Some(self.low), Some(self.high), Some(self.observed), self.aim].into_iter().chain(self.bounds).flatten()
    }
}

/// Deciding bound. A point gate is decided by its figure. An invariant fails by a violation and, without a floor,
/// passes by their absence. INCONCLUSIVE has no deciding bound.
fn deciding(row: &CriterionResult) -> Option<usize> {
    let bounded = match (row.kind.as_str(), row.verdict) {
        ("confidence", Verdict::Pass | Verdict::Fail) => true,
        ("invariant", Verdict::Pass) => !row.floor.is_empty(),
        _ => false,
    };
    // The bound in the text, or the opposite one if the criterion fails.
    bounded.then(|| usize::from(row.bound_text.starts_with("true rate at most")))
}

/// Axis of a table: the narrowest of a few round scales that contains all shares.
pub(in crate::report) fn domain(rows: &[CriterionResult]) -> (f64, f64) {
    let shares: Vec<f64> = rows.iter().filter_map(Shares::of).flat_map(|row| row.all().collect::<Vec<_>>()).collect();
    narrowest(&shares)
}

/// Axis of one row alone: its own shares and its target, with a tenth of room on both sides.
pub(in crate::report) fn zoom(row: &CriterionResult) -> (f64, f64) {
    let shares: Vec<f64> = Shares::of(row).iter().flat_map(|row| row.all().collect::<Vec<_>>()).collect();
    let low = shares.iter().copied().fold(1.0, f64::min);
    let high = shares.iter().copied().fold(0.0, f64::max);
    if low >= high {
        return narrowest(&shares);
    }
    let room = ((high - low) / 10.0).max(0.002);
    ((low - room).max(0.0), (high + room).min(1.0))
}

fn narrowest(shares: &[f64]) -> (f64, f64) {
    const SCALES: [(f64, f64); 6] = [(0.9, 1.0), (0.8, 1.0), (0.5, 1.0), (0.0, 0.1), (0.0, 0.2), (0.0, 0.5)];
    let holds = |(from, to): &(f64, f64)| shares.iter().all(|share| *from <= *share && *share <= *to);
    SCALES.into_iter().find(holds).unwrap_or((0.0, 1.0))
}

/// Draws a row on the axis from `left` to `right`; `None` if nothing was measured.
pub(in crate::report) fn interval(row: &CriterionResult, (left, right): (f64, f64)) -> Option<String> {
    let shown = Shares::of(row)?;
    let x = |share: f64| 8.0 + (share - left) / (right - left) * (WIDTH - 16.0);
    let mut svg = String::new();
    let _ = write!(svg, "<svg class=\"interval\" viewBox=\"0 0 {WIDTH:.0} 46\" role=\"img\"><title>");
    let interval = if row.sample_text.is_empty() && row.clusters == row.n { "Wilson interval" } else { "interval" };
    let (low, high) = (shown.low, shown.high);
    let few = matches!(target(row), Some(Target::AtMostRate(_)));
    let observed = shown.aim.map_or_else(|| percent(shown.observed), |aim| percent_beside(shown.observed, (aim, few)));
    let _ = write!(svg, "Observed {observed}, 95 % {interval} {}", percent::interval(low, high));
    let words = [("lower", Rounding::Down), ("upper", Rounding::Up)];
    for (place, (bound, (word, rounding))) in shown.bounds.into_iter().zip(words).enumerate() {
        let Some(bound) = bound else { continue };
        let decides = if Some(place) == shown.deciding { ", which decides" } else { "" };
        let _ = write!(svg, ", one-sided {word} bound {} %{decides}", rounded(bound * 100.0, 1, rounding));
    }
    if let Some(aim) = shown.aim {
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
    for (place, bound) in shown.bounds.into_iter().enumerate() {
        let Some(at) = bound.map(x) else { continue };
        if Some(place) == shown.deciding {
            let way = if place == 0 { "l6 -4v8z" } else { "l-6 -4v8z" };
            let _ = write!(
                svg,
                "<path class=\"bound\" d=\"M{at:.1} 9v18\"/><path class=\"decides\" d=\"M{at:.1} 8{way}\"/>"
            );
        } else {
            let _ = write!(svg, "<path class=\"bound other\" d=\"M{at:.1} 12v12\"/>");
        }
    }
    if let Some(at) = shown.aim.map(x) {
        let _ = write!(
            svg,
            "<path class=\"target\" d=\"M{at:.1} 3v30\"/><path class=\"flag\" d=\"M{at:.1} 0l4 4l-4 4l-4 -4z\"/>"
        );
    }
    let _ = write!(svg, "<circle class=\"seen\" cx=\"{:.1}\" cy=\"18\" r=\"4.5\"/>", x(shown.observed));
    let _ = write!(svg, "<text x=\"{from:.1}\" y=\"44\">{} %</text>", whole(left));
    let _ = write!(svg, "<text x=\"{to:.1}\" y=\"44\" text-anchor=\"end\">{} %</text></svg>", whole(right));
    Some(svg)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn an_axis_is_as_narrow_as_all_rows_allow() {
        assert_eq!(narrowest(&[0.95, 0.99]), (0.9, 1.0));
        assert_eq!(narrowest(&[0.2, 0.41]), (0.0, 0.5));
        assert_eq!(narrowest(&[0.2, 0.9]), (0.0, 1.0));
        let run = sample::run(1);
        assert_eq!(domain(&run.evaluation.criteria), (0.0, 1.0), "SC-006 is far below the others");
        assert_eq!(domain(&run.evaluation.criteria[1..3]), (0.9, 1.0));
    }

    #[test]
    fn the_interval_says_in_words_what_it_shows_and_nothing_measured_has_none() {
        let run = sample::run(1);
        let rows = &run.evaluation.criteria;
        let svg = interval(&rows[1], (0.0, 1.0)).expect("measured");
        assert!(svg.contains("<title>Observed 99.4 %") && svg.contains("target 95.0 %, n = 164"), "{svg}");
        assert_eq!(svg.matches("which decides").count(), 1, "{svg}");
        assert_eq!(svg.matches("class=\"decides\"").count(), 1, "{svg}");
        assert_eq!(interval(&rows[3], (0.0, 1.0)), None);
    }

    #[test]
    fn the_observed_share_in_words_is_on_the_side_of_its_target() {
        let run = sample::run(1);
        let row = |target: &str, observed: f64| {
            let target = target.to_owned();
            interval(
                &CriterionResult { target, observed: Some(observed), ..run.evaluation.criteria[1].clone() },
                (0.0, 1.0),
            )
        };
        for (target, observed, said) in
            [(">= 95%", 0.9496, "94.96 %"), (">= 95%", 0.95, "95.0 %"), ("<= 5%", 0.0504, "5.04 %")]
        {
            let svg = row(target, observed).expect("measured");
            assert!(svg.contains(&format!("<title>Observed {said}, ")), "{svg}");
        }
    }

    #[test]
    fn no_bound_is_marked_where_none_decides() {
        let run = sample::run(1);
        let row = |kind: &str, verdict, floor: &str| CriterionResult {
            kind: kind.into(),
            verdict,
            floor: floor.into(),
            ..run.evaluation.criteria[1].clone()
        };
        let marked = |row: &CriterionResult| {
            let svg = interval(row, (0.0, 1.0)).expect("measured");
            assert_eq!(svg.contains("which decides"), svg.contains("class=\"decides\""), "{svg}");
            svg.contains("class=\"decides\"")
        };
        assert!(marked(&row("confidence", Verdict::Pass, "")) && marked(&row("confidence", Verdict::Fail, "")));
        assert!(marked(&row("invariant", Verdict::Pass, ">= 95%")), "its floor is what the bound has to reach");
        for undecided in [
            row("confidence", Verdict::Inconclusive, ""),
            row("invariant", Verdict::Pass, ""),
            row("invariant", Verdict::Fail, ">= 95%"),
            row("point", Verdict::Pass, ""),
            row("confidence", Verdict::Error, ""),
        ] {
            assert!(!marked(&undecided), "{} {:?}", undecided.kind, undecided.verdict);
        }
    }
}
