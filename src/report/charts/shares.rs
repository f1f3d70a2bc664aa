//! Shares of a whole as one bar with a colour each; the title names them.

use crate::stats::percent::percent;
use std::fmt::Write as _;

const WIDTH: f64 = 220.0;

/// Draws shares of 0 to 1, in the given order.
pub(in crate::report) fn shares(names: &[&str], shares: &[f64]) -> String {
    let mut svg = format!("<svg class=\"shares\" viewBox=\"0 0 {WIDTH:.0} 12\" role=\"img\"><title>");
    let said: Vec<String> =
        names.iter().zip(shares).map(|(name, share)| format!("{} {}", super::escaped(name), percent(*share))).collect();
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
