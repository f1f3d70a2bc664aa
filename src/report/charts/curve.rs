//! Share of turns answered within a time: one empirical curve per variant, limits as lines, and a bin for unanswered
//! turns at the right of the axis. Drawn for any width, see [`super::across`].

use super::{across, escaped, round_step};
use crate::gate::CurvePoint;
use crate::report::figures::{duration, thousands};
use crate::stats::percent::percent;
use std::fmt::Write as _;

const HEIGHT: f64 = 262.0;
/// Share of the width at which the time axis ends.
const RIGHT: f64 = 0.86;
/// Share of the width at which the bin of unanswered turns begins.
const BIN: f64 = 0.9;
const TOP: f64 = 22.0;
const BASE: f64 = 222.0;
/// Maximum number of curves in a chart; the table beside it has all.
pub(in crate::report) const MOST: usize = 8;

/// Response times of one variant.
#[derive(Debug, Clone)]
pub(in crate::report) struct Curve<'a> {
    pub name: String,
    /// Answered turns, ascending: a time in microseconds, and the number of turns that took at most this time.
    pub points: &'a [CurvePoint],
    /// Number of turns, including unanswered ones.
    pub turns: u64,
    /// Number of unanswered turns.
    pub unanswered: u64,
}

/// Draws the chart; `limits` are times in microseconds. `None` if no turn was answered.
pub(in crate::report) fn curves(curves: &[Curve<'_>], limits: &[u64]) -> Option<String> {
    let shown: Vec<_> = curves.iter().filter(|one| one.turns > 0).take(MOST).collect();
    let longest = shown.iter().filter_map(|one| one.points.last()).map(|point| point.took_us).max()?;
    let limit = limits.iter().copied().max().unwrap_or(0);
    let step = round_step(longest.max(limit).max(4) as f64 * 1.02 / 4.0);
    let reach = step * 4.0;
    let x = |us: f64| us / reach * RIGHT;
    let y = |share: f64| BASE - share * (BASE - TOP);
    let mut svg = format!("<svg class=\"curves\" height=\"{HEIGHT:.0}\" role=\"img\"><title>");
    svg.push_str("Share of turns answered within a time. ");
    for one in &shown {
        let _ = write!(svg, "{}: {} turns, {} without an answer. ", escaped(&one.name), one.turns, one.unanswered);
    }
    svg.push_str("</title>");
    for (share, label) in [(0.0, "0 %"), (0.5, "50 %"), (0.95, "95 %"), (1.0, "")] {
        let at = y(share);
        let _ = write!(
            svg,
            "<line class=\"grid\" x2=\"100%\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text x=\"-6\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            at + 4.0
        );
    }
    let end = across(RIGHT);
    let _ = write!(svg, "<line class=\"axis\" x2=\"{end}\" y1=\"{BASE:.0}\" y2=\"{BASE:.0}\"/>");
    for tick in 0..=4 {
        let us = step * f64::from(tick);
        let class = if tick % 2 == 1 { " class=\"tick-odd\"" } else { "" };
        let anchor = if tick == 4 { "end" } else { "middle" };
        let _ = write!(
            svg,
            "<text{class} x=\"{}\" y=\"241\" text-anchor=\"{anchor}\">{}</text>",
            across(x(us)),
            duration(us as u64)
        );
    }
    let _ = write!(
        svg,
        "<rect class=\"bin\" x=\"{}\" y=\"{TOP:.0}\" width=\"{}\" height=\"{:.0}\"/>",
        across(BIN),
        across(1.0 - BIN),
        BASE - TOP
    );
    svg.push_str("<text x=\"100%\" y=\"257\" text-anchor=\"end\">no answer</text>");
    for us in limits {
        let at = x(*us as f64);
        let (shift, anchor) = if at > RIGHT * 0.6 { (-5, "end") } else { (5, "start") };
        let _ = write!(
            svg,
            "<line class=\"target\" x1=\"{at}\" x2=\"{at}\" y1=\"{:.0}\" y2=\"{BASE:.0}\"/>\
             <text class=\"mark\" x=\"{at}\" dx=\"{shift}\" y=\"12\" text-anchor=\"{anchor}\">limit {}</text>",
            TOP - 14.0,
            duration(*us),
            at = across(at)
        );
    }
    let mut lost = String::new();
    let _ = write!(svg, "{}", super::stretched(HEIGHT));
    for (place, one) in shown.iter().enumerate() {
        let share = |turns: u64| turns as f64 / one.turns as f64;
        let mut line = format!("M0 {BASE:.1}");
        for CurvePoint { took_us, turns } in one.points {
            let _ = write!(line, "H{:.1}V{:.1}", super::STRETCH * x(*took_us as f64), y(share(*turns)));
        }
        let _ = write!(line, "H{:.1}", super::STRETCH * RIGHT);
        let _ = write!(svg, "<path class=\"curve curve-{}\" d=\"{line}\"/>", place + 1);
        if one.unanswered > 0 {
            let slot = (1.0 - BIN) / shown.len() as f64;
            let (at, answered) = (across(BIN + slot * (place as f64 + 0.5)), share(one.turns - one.unanswered));
            let _ = write!(
                lost,
                "<line class=\"curve lost curve-{}\" x1=\"{at}\" x2=\"{at}\" y1=\"{:.1}\" y2=\"{:.1}\"><title>{}: {} of {} without an answer, {}</title></line>",
                place + 1,
                y(answered),
                y(1.0),
                escaped(&one.name),
                thousands(one.unanswered),
                thousands(one.turns),
                percent(share(one.unanswered)),
            );
        }
    }
    Some(svg + "</svg>" + &lost + "</svg>")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(svg: &str) -> Vec<f64> {
        let paths = svg.split("class=\"curve curve-").skip(1).filter_map(|part| part.split(" d=\"").nth(1));
        let last = |path: &str| path.split('"').next()?.rsplit('V').next()?.split('H').next()?.parse().ok();
        paths.filter_map(last).collect()
    }

    #[test]
    fn a_curve_ends_at_the_share_that_was_answered_and_the_bin_holds_the_others() {
        let points = [(1, 1), (2, 2), (8, 3)].map(|(s, turns)| CurvePoint { took_us: s * 1_000_000, turns });
        let whole = Curve { name: "a.<b>".into(), points: &points, turns: 3, unanswered: 0 };
        let part = Curve { turns: 4, unanswered: 1, ..whole.clone() };
        let svg = curves(&[whole.clone(), part], &[10_000_000]).expect("answered");
        assert_eq!(ends(&svg), [TOP, BASE - 0.75 * (BASE - TOP)]);
        assert_eq!(svg.matches("curve lost").count(), 1);
        assert!(svg.contains("limit 10.00 s") && svg.contains("1 of 4 without an answer, 25.0 %"), "{svg}");
        assert!(!svg.contains("<b>"), "{svg}");
        assert_eq!(curves(&[Curve { points: &[], unanswered: 3, ..whole }], &[]), None);
    }
}
