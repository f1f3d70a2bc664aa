//! Charts of the HTML pages, as small inline SVG.
//!
//! | file | chart |
//! |---|---|
//! | `interval` | the figure of a criterion with its bounds and target, on the axis that all rows of a table share |
//! | `curve` | shares of turns answered within a time, a curve a variant |
//! | `shares` | shares of one whole, as one bar |
//! | `graph` | the moves of a state machine |
//! | `forest` | a difference with its interval, on the axis that all rows share |
//! | `trend` | a figure over time |
//! | `moments` | no chart: where moments stand on an axis of time |
//!
//! Colours come from classes in `page.css`, so one chart works in light, dark and print mode; whatever a colour shows
//! is also shown by a shape, a dash or a word. Each chart has a `<title>` that describes it. Numbers and fixed words
//! are inserted unescaped, any other text through [`escaped`].

mod curve;
mod forest;
mod graph;
mod interval;
mod moments;
mod shares;
mod trend;

pub(super) use curve::{Curve, MOST as CURVES, curves};
pub(super) use forest::{forest, reach};
pub(super) use graph::graph;
pub(super) use interval::{domain, interval, zoom};
pub(super) use shares::shares;
pub(super) use trend::{Beside, trend};

/// Escapes text for an SVG element or attribute.
fn escaped(text: &str) -> String {
    html_escape::encode_double_quoted_attribute(&crate::trace::text::line(text)).into_owned()
}

/// Width of the coordinates in [`stretched`].
const STRETCH: f64 = 1000.0;

/// A place from 0 to 1 as a share of the width, so that a chart without a `viewBox` is drawn for the width that it gets and its text
/// keeps its size. Lines, circles and text take such places; what joins several goes into [`stretched`].
fn across(place: f64) -> String {
    format!("{:.2}%", 100.0 * place)
}

/// Opens the part of such a chart whose paths are stretched to its width: x from 0 to [`STRETCH`], y as outside.
fn stretched(height: f64) -> String {
    format!(
        "<svg viewBox=\"0 0 {STRETCH:.0} {height:.0}\" preserveAspectRatio=\"none\" width=\"100%\" height=\"{height:.0}\">"
    )
}

/// Next of 1, 1.25, 2, 2.5, 4, 5 or 10 times a power of ten.
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
    #[test]
    fn text_in_a_chart_is_text() {
        assert_eq!(super::escaped("<b a=\"1\">&\u{1b}[2J"), "&lt;b a=&quot;1&quot;&gt;&amp;\u{fffd}[2J");
    }
}
