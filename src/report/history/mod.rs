//! A history shown: on a terminal, and as a page of its own with a chart for each figure.
//!
//! A change is always words and a shape, never a colour alone. Labels, models and names of criteria come from people
//! and providers: they are escaped like everything else, and charts hold numbers only.

mod html;
mod terminal;

pub use html::html;
pub use terminal::terminal;

use super::figures::duration;
use crate::history::{Change, Line, Series, Unit};
use crate::percent::{percent, points};
use crate::trace::text::quote;
use std::collections::BTreeMap;

/// A value of a line, for people.
fn value(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Rate => percent(value),
        Unit::Time => duration(value.round() as u64),
    }
}

/// `release=1.4.0, arm=blue`; empty without labels.
fn labelled(labels: &BTreeMap<String, String>) -> String {
    let pairs = labels.iter().map(|(key, value)| format!("{}={}", quote(key, 40), quote(value, 60)));
    pairs.collect::<Vec<_>>().join(", ")
}

/// The day of a point, and its labels behind it.
fn when((at, labels): &(String, BTreeMap<String, String>)) -> String {
    let day = quote(at.get(..10).unwrap_or(at), 20);
    if labels.is_empty() { day } else { format!("{day} ({})", labelled(labels)) }
}

/// The conditions of a series in one line.
fn conditions(series: &Series) -> String {
    let listed = |words: &std::collections::BTreeSet<String>| {
        words.iter().map(|word| quote(word, 60)).collect::<Vec<_>>().join(", ")
    };
    let found = &series.conditions;
    let what = if found.mode == "REPLAYED" { "RECORDED" } else { found.mode.as_str() };
    format!(
        "{what}, model {}, answered by {}, {} at a time",
        listed(&found.models),
        listed(&found.answered_by),
        super::figures::counted(u64::from(found.concurrency), "trial")
    )
}

/// A change in words: `changed at 2026-03-02 (release=1.5.0): 97.1 % to 90.2 %`.
fn changed(series: &Series, line: &Line, change: &Change) -> String {
    let relative = match line.unit {
        Unit::Rate => format!("{} points", points(change.after - change.before)),
        Unit::Time => format!("{} %", points(change.after / change.before - 1.0)),
    };
    let p = if change.p < 1e-4 { "p below 0.0001".to_owned() } else { format!("p {:.4}", change.p) };
    format!(
        "changed at {}: {} to {} on average ({relative}, {p})",
        when(&series.points[change.point]),
        value(line.unit, change.before),
        value(line.unit, change.after),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Conditions;
    use std::collections::BTreeSet;

    /// A series of twelve points with a change at the seventh and hostile words.
    pub(super) fn series() -> Vec<Series> {
        let labels = BTreeMap::from([("release".to_owned(), "<script>alert(1)</script>\u{1b}[2J".to_owned())]);
        let points = (0..12).map(|day| {
            let labels = if day == 6 { labels.clone() } else { BTreeMap::new() };
            (format!("2026-03-{:02}T08:00:00Z", day + 1), labels)
        });
        let line = |name: &str, target: &str, unit, low: f64, high: f64| Line {
            name: name.into(),
            target: target.into(),
            metric: String::new(),
            unit,
            intervals: if unit == Unit::Rate { (0..12).map(|day| (day, 0.8, 0.99)).collect() } else { Vec::new() },
            values: (0..12).map(|day| (day, if day < 6 { low } else { high })).collect(),
            changes: vec![Change { point: 6, before: low, after: high, p: 1e-9 }],
        };
        vec![Series {
            conditions: Conditions {
                mode: "LIVE".into(),
                models: BTreeSet::from(["m\"onclick=1".into()]),
                answered_by: BTreeSet::from(["acme".into()]),
                concurrency: 4,
                cases: "c".into(),
            },
            points: points.collect(),
            lines: vec![line("SC-002", ">= 95%", Unit::Rate, 0.97, 0.9), line("turn p95", "", Unit::Time, 4e6, 6e6)],
        }]
    }

    #[test]
    fn a_change_says_when_by_how_much_and_what_it_was_called() {
        let series = series();
        let said = changed(&series[0], &series[0].lines[0], &series[0].lines[0].changes[0]);
        assert!(said.starts_with("changed at 2026-03-07 (release="), "{said}");
        assert!(said.contains("97.0 % to 90.0 % on average (-7.0 points, p below 0.0001)"), "{said}");
        assert!(!said.contains('\u{1b}'), "{said}");
        let time = changed(&series[0], &series[0].lines[1], &series[0].lines[1].changes[0]);
        assert!(time.contains("+50.0 %"), "{time}");
    }

    #[test]
    fn the_page_is_self_contained_and_hostile_words_stay_words() {
        let page = String::from_utf8(html(&series()).expect("a page")).expect("text");
        assert!(!page.contains("<script") && page.contains("&lt;script"), "{page}");
        assert!(!page.contains("m\"onclick"));
        assert!(page.contains("Content-Security-Policy") && !page.contains("http://") && !page.contains("https://"));
        assert_eq!(page.matches("<svg class=\"trend\"").count(), 2, "one chart a line");
        assert_eq!(page.matches("class=\"band\"").count(), 1, "times have no interval");
        assert_eq!(page.matches("target 95.0 %").count(), 1, "a time without a target has no line");
        assert!(page.contains(">2026-03-01</text>") && page.contains(">2026-03-12</text>"), "the days of the ends");
        assert!(page.contains("href=\"#s1-p7\"") && page.contains("id=\"s1-p7\""), "a change leads to its point");
        assert!(page.contains("changed at 2026-03-07"));
        assert_eq!(html(&series()).expect("a page"), page.as_bytes(), "same bytes");
    }

    #[test]
    fn the_terminal_shows_each_line_with_its_changes_and_an_empty_history_says_how_to_fill_it() {
        let text = terminal(&series(), 100);
        assert!(text.contains("SC-002") && text.contains("turn p95") && text.contains("changed at"), "{text}");
        assert!(!text.contains('\u{1b}') && text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(terminal(&[], 100).contains("--mode live"));
        assert!(String::from_utf8(html(&[]).expect("a page")).expect("text").contains("no point"));
    }
}
