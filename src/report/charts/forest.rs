//! A difference between two sides with its interval, on an axis shared by all rows of one scale; zero is in the middle.

use std::fmt::Write as _;

const WIDTH: f64 = 220.0;

/// Half-width of an axis that covers these differences and the ends of their intervals.
pub(in crate::report) fn reach(differences: impl Iterator<Item = f64>) -> f64 {
    let most = differences.map(f64::abs).filter(|size| size.is_finite()).fold(0.0, f64::max);
    [0.05, 0.1, 0.2, 0.5, 1.0].into_iter().find(|reach| most <= *reach).unwrap_or(most)
}

/// Draws one difference: `margin` is the tolerated loss, and `class` sets colour and shape of the mark by the finding.
pub(in crate::report) fn forest(
    difference: f64,
    interval: Option<(f64, f64)>,
    margin: f64,
    reach: f64,
    class: &'static str,
) -> String {
    let x = |value: f64| 8.0 + (value.clamp(-reach, reach) + reach) / (2.0 * reach) * (WIDTH - 16.0);
    let said = |value: f64| crate::stats::percent::points(value);
    let mut svg =
        format!("<svg class=\"forest {class}\" viewBox=\"0 0 {WIDTH:.0} 40\" role=\"img\"><title>Difference ");
    svg.push_str(&said(difference));
    if let Some((low, high)) = interval {
        let _ = write!(svg, ", 95 % interval {} to {}", said(low), said(high));
    }
    let (middle, least) = (x(0.0), x(-margin));
    let _ = write!(
        svg,
        ", axis {} to {}</title><rect class=\"margin\" x=\"{:.1}\" y=\"2\" width=\"{:.1}\" height=\"24\"/>\
         <path class=\"axis\" d=\"M8 26H{:.0}M{middle:.1} 0v30\"/>",
        said(-reach),
        said(reach),
        least,
        x(margin) - least,
        WIDTH - 8.0
    );
    if let Some((low, high)) = interval {
        let (from, to) = (x(low), x(high));
        let _ = write!(svg, "<path class=\"whisker\" d=\"M{from:.1} 14H{to:.1}M{from:.1} 10v8M{to:.1} 10v8\"/>");
    }
    let at = x(difference);
    let mark = match class {
        "pass" => format!("M{at:.1} 8l6 11h-12z"),
        "fail" => format!("M{at:.1} 20l6 -11h-12z"),
        _ => format!("M{at:.1} 8.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z"),
    };
    let _ = write!(
        svg,
        "<path class=\"point\" d=\"{mark}\"/><text x=\"8\" y=\"39\">{}</text>\
         <text x=\"{middle:.1}\" y=\"39\" text-anchor=\"middle\">0</text>\
         <text x=\"{:.0}\" y=\"39\" text-anchor=\"end\">{}</text></svg>",
        said(-reach),
        WIDTH - 8.0,
        said(reach)
    );
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_holds_every_row_and_nothing_stands_in_its_middle() {
        let reaches = [reach([0.02, -0.08].into_iter()), reach([2.5].into_iter()), reach(std::iter::empty())];
        assert_eq!(reaches.map(|reach| reach.to_string()), ["0.1", "2.5", "0.05"]);
        let svg = forest(-0.08, Some((-0.15, -0.01)), 0.02, 0.2, "fail");
        assert!(svg.contains("<title>Difference -8.0, 95 % interval -15.0 to -1.0"), "{svg}");
        assert!(svg.contains("M110.0 0v30") && svg.contains("class=\"forest fail\""), "{svg}");
    }
}
