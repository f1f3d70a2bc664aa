//! Renders a history: for a terminal, and as a page with a chart for each figure.
//!
//! A change is always shown by words and a shape, never by a colour alone. Labels, models and names of criteria come
//! from people and providers: they are escaped like all text, and charts contain only numbers.

mod html;
mod terminal;

pub(crate) use html::html;
pub(crate) use terminal::terminal;

use super::figures::{claimed_share, counted, duration, first_names, line_value};
use crate::history::{Change, EDITED, Line, RECENT, Series, Shown, Unit};
use crate::scenario::{Target, parse_target, target_text};
use crate::stats::percent::points;
use crate::trace::text::{listed, quote};
use std::collections::BTreeMap;

/// Pages beside the page of a history.
#[derive(Debug, Clone, Default)]
pub(crate) struct Links {
    /// Whether there is a list of runs.
    pub runs: bool,
    /// Why the history could not be read, or how many of its points are left out; empty if all are shown.
    pub note: String,
    /// Run folder with the report of a point, by the point's identity.
    pub reports: BTreeMap<String, String>,
}

/// Maximum number of scenarios named in a heading.
const NAMED: usize = 4;

/// Labels as text: `release=1.4.0, arm=blue`; empty without labels.
fn labelled(labels: &BTreeMap<String, String>) -> String {
    let pairs = labels.iter().map(|(key, value)| format!("{}={}", quote(key, 40), quote(value, 60)));
    pairs.collect::<Vec<_>>().join(", ")
}

/// Date of a point, its labels, and remarks on its line in the file.
fn when(point: &Shown) -> String {
    let doubt = if point.doubt.is_empty() { String::new() } else { format!(", {}", point.doubt) };
    format!("{}{doubt}", day_and_labels(point))
}

/// Date of a point and its labels.
fn day_and_labels(point: &Shown) -> String {
    let day = quote(point.at.get(..10).unwrap_or(&point.at), 20);
    let labels = if point.labels.is_empty() { String::new() } else { format!(" ({})", labelled(&point.labels)) };
    format!("{day}{labels}")
}

/// Targets that the newest point of a series misses, and times without an answer: `Below target in the latest run: SC-001 89.8 % (target = 100 %)`.
fn missed_targets(series: &Series) -> Option<String> {
    let last = series.points.len().checked_sub(1)?;
    let missed = |line: &&Line| {
        let Some((_, newest)) = line.values.last().filter(|(at, _)| *at == last) else {
            return false;
        };
        match parse_target(&line.target) {
            Ok(Target::AtLeastRate(least)) => *newest < least,
            Ok(Target::AtMostRate(most)) => *newest > most,
            // The line of a time is the share of units below its limit.
            Ok(Target::AtMostTime(_)) => claimed_share(&line.metric).is_some_and(|share| *newest < share),
            Err(_) => false,
        }
    };
    let name = |line: &Line| quote(&line.name, 60);
    let shown = |line: &Line| {
        let newest = line.values.last().map_or_else(String::new, |(_, seen)| line_value(line.unit, *seen));
        format!("{} {newest} (target {})", quote(&line.name, 60), target_text(&line.target))
    };
    let missed: Vec<String> = series.lines.iter().filter(missed).map(shown).collect();
    let missed = (!missed.is_empty()).then(|| format!("Target missed in the latest run: {}", listed(&missed, NAMED)));
    let open: Vec<String> =
        series.lines.iter().filter(|line| line.at(last).is_some_and(f64::is_infinite)).map(name).collect();
    let open = (!open.is_empty()).then(|| format!("No answer in the latest run: {}", listed(&open, NAMED)));
    let both: Vec<String> = missed.into_iter().chain(open).collect();
    (!both.is_empty()).then(|| both.join(". "))
}

/// A value of a line at a point that measured it.
fn seen_at(line: &Line, point: usize) -> Option<String> {
    line.at(point).map(|value| line_value(line.unit, value))
}

/// How many points of a line got no answer; empty if all did.
fn unanswered(line: &Line) -> String {
    match line.unanswered.len() {
        0 => String::new(),
        open => format!(
            "No answer at {open} of {}: too many of their turns got none. They count in no mean and no change.",
            counted((open + line.values.len()) as u64, "point")
        ),
    }
}

/// Short list of a series' scenarios.
fn scenarios(series: &Series) -> String {
    let newest = series.points.iter().rev().map(|point| &point.scenarios).find(|names| !names.is_empty());
    let named = |names: &std::collections::BTreeSet<String>| {
        let first = first_names(names.iter(), NAMED);
        if names.len() > NAMED { format!("{} scenarios: {first}", names.len()) } else { first }
    };
    newest.map_or_else(|| "scenarios unknown".to_owned(), named)
}

/// Text shown if no change could be detected, however large.
const TOO_FEW: &str = "Too few points to find a change.";

/// Whether a series has too few points for a change of any size to be found, and none was.
fn cannot_change(series: &Series) -> bool {
    series.lines.iter().all(|line| found_nothing(line) == TOO_FEW)
}

/// Statement that a line did not change, with the smallest detectable step.
fn found_nothing(line: &Line) -> String {
    let size = |step: f64| match line.unit {
        Unit::Rate if step < 0.001 => "0.1 points".to_owned(),
        Unit::Rate => format!("{:.1} points", 100.0 * step),
        Unit::Time => duration(step.round() as u64),
    };
    let seen = line.detectable.filter(|step| line.unit == Unit::Time || *step < 1.0);
    match (line.changes.is_empty(), seen) {
        (true, Some(step)) => {
            format!(
                "No change that lasts. A step of {} that began {RECENT} points ago would be found half of the time.",
                size(step)
            )
        }
        (true, None) => TOO_FEW.to_owned(),
        (false, Some(step)) => {
            format!("Another step of {} that began {RECENT} points ago would be found half of the time.", size(step))
        }
        (false, None) => String::new(),
    }
}

/// Labels that a run gives itself.
const OWN: [&str; 4] = ["part", "run again", "drawn anew", "outages run again"];

/// The change of a series to read first, in one sentence: `turn p95 is 47.0 % slower since release 1.21 (2026-03-07)`. Losses come
/// before gains, then newer changes before older ones.
struct Headline {
    sentence: String,
    /// Index of its line.
    line: usize,
    /// Further lines with a lasting change.
    more: usize,
}

fn headline(series: &Series) -> Option<Headline> {
    let changed = series.lines.iter().enumerate().filter_map(|(at, line)| Some((at, line, line.changes.last()?)));
    let worse = |line: &Line, change: &Change| {
        let rises = change.after > change.before;
        rises == (line.unit == Unit::Time || matches!(parse_target(&line.target), Ok(Target::AtMostRate(_))))
    };
    let size = |change: &Change| (change.after / change.before.max(1e-9)).max(1e-9).ln().abs();
    let first = changed.clone().max_by(|(_, one, a), (_, other, b)| {
        let newer = a.point.cmp(&b.point);
        worse(one, a).cmp(&worse(other, b)).then(newer).then(size(a).total_cmp(&size(b)))
    })?;
    let (at, line, change) = first;
    let by = match (line.unit, change.after > change.before) {
        (Unit::Time, true) => format!("{} % slower", rounded_points(change.after / change.before - 1.0)),
        (Unit::Time, false) => format!("{} % faster", rounded_points(1.0 - change.after / change.before)),
        (Unit::Rate, true) => format!("{} points higher", rounded_points(change.after - change.before)),
        (Unit::Rate, false) => format!("{} points lower", rounded_points(change.before - change.after)),
    };
    let (before, after) = (line_value(line.unit, change.before), line_value(line.unit, change.after));
    let name = quote(&line.name, 60);
    let sentence = format!("{name} is {by} since {}: mean {before} before, {after} since", since(series, change.point));
    Some(Headline { sentence, line: at, more: changed.count() - 1 })
}

/// A positive difference in points or per cent, without a sign.
fn rounded_points(value: f64) -> String {
    points(value).replace('+', "")
}

/// The label that is new at a point, with its day; the day alone without one.
fn since(series: &Series, point: usize) -> String {
    let (now, before) = (&series.points[point], point.checked_sub(1).map(|before| &series.points[before].labels));
    let day = quote(now.at.get(..10).unwrap_or(&now.at), 20);
    let new = |(key, value): &(&String, &String)| {
        !OWN.contains(&key.as_str()) && before.is_none_or(|before| before.get(*key) != Some(*value))
    };
    match now.labels.iter().find(new) {
        Some((key, value)) => format!("{} {} ({day})", quote(key, 40), quote(value, 60)),
        None => day,
    }
}

/// Conditions of a series in one line.
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

/// A change as text: `changed at 2026-03-02 (release=1.5.0): mean 97.1 % before, 90.2 % since (-6.9 points, p 0.0012)`.
fn changed(series: &Series, line: &Line, change: &Change) -> String {
    let relative = match line.unit {
        Unit::Rate => format!("{} points", points(change.after - change.before)),
        Unit::Time => format!("{} %", points(change.after / change.before - 1.0)),
    };
    let point = &series.points[change.point];
    let edited = if point.doubt == EDITED { format!(", {EDITED}") } else { String::new() };
    let p = if change.p < 1e-4 { "p below 0.0001".to_owned() } else { format!("p {:.4}", change.p) };
    format!(
        "changed at {}{edited}: mean {} before, {} since ({relative}, {p})",
        day_and_labels(point),
        line_value(line.unit, change.before),
        line_value(line.unit, change.after),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Conditions;
    use crate::report::figures::together;
    use std::collections::BTreeSet;

    /// A series of twelve points with a change at the seventh, and hostile texts.
    pub(super) fn series() -> Vec<Series> {
        let labels = BTreeMap::from([("release".to_owned(), "<script>alert(1)</script>\u{1b}[2J".to_owned())]);
        let points = (0..12).map(|day| {
            let labels = if day == 6 { labels.clone() } else { BTreeMap::new() };
            let scenarios = BTreeSet::from(["refunds".to_owned()]);
            let doubt = if day == 2 { crate::history::EDITED } else { "" };
            Shown { id: format!("p{day}"), at: format!("2026-03-{:02}T08:00:00Z", day + 1), labels, scenarios, doubt }
        });
        let line = |name: &str, target: &str, unit, low: f64, high: f64| Line {
            name: name.into(),
            target: target.into(),
            intervals: if unit == Unit::Rate { (0..12).map(|day| (day, 0.8, 0.99)).collect() } else { Vec::new() },
            values: (0..12).map(|day| (day, if day < 6 { low } else { high })).collect(),
            changes: vec![Change { point: 6, before: low, after: high, p: 1e-9 }],
            ..Line::new(unit)
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
        assert!(said.contains("mean 97.0 % before, 90.0 % since (-7.0 points, p below 0.0001)"), "{said}");
        assert!(!said.contains('\u{1b}'), "{said}");
        let time = changed(&series[0], &series[0].lines[1], &series[0].lines[1].changes[0]);
        assert!(time.contains("+50.0 %"), "{time}");
    }

    #[test]
    fn the_headline_is_the_newest_loss_with_its_label_and_its_chart_comes_first() {
        let mut series = series();
        let found = headline(&series[0]).expect("two lines change");
        assert!(found.sentence.starts_with("turn p95 is 50.0 % slower since release "), "{}", found.sentence);
        assert!(found.sentence.ends_with("(2026-03-07): mean 4.00 s before, 6.00 s since"), "{}", found.sentence);
        assert_eq!((found.line, found.more), (1, 1));
        assert!(terminal(&series, 100).starts_with("turn p95 is 50.0 % slower since release "));
        let page = String::from_utf8(html(&series, &Links::default()).expect("a page")).expect("text");
        let (head, body) = page.split_once("</h1>").expect("a heading");
        assert!(head.contains("Turn p95 is 50.0\u{a0}% slower since release"), "{head}");
        let at = |words: &str| body.find(words).unwrap_or_else(|| panic!("{words}"));
        assert!(at("<strong><bdi>turn p95</bdi>") < at("<strong><bdi>SC-002</bdi>"));

        // A gain is no reason to look first, and a label that every run has says nothing.
        series[0].lines[1].changes[0] = Change { point: 6, before: 6e6, after: 4e6, p: 1e-9 };
        series[0].points.iter_mut().for_each(|point| point.labels = [("release".into(), "1.4".into())].into());
        let found = headline(&series[0]).expect("a change");
        assert_eq!(found.sentence, "SC-002 is 7.0 points lower since 2026-03-07: mean 97.0 % before, 90.0 % since");
        series[0].lines[0].target = "<= 5%".into();
        assert!(headline(&series[0]).expect("a change").sentence.starts_with("turn p95 is 33.3 % faster"));
        series[0].lines.iter_mut().for_each(|line| line.changes.clear());
        assert!(headline(&series[0]).is_none());
    }

    #[test]
    fn the_limit_of_a_time_criterion_is_the_target_line_of_that_time() {
        let mut series = series();
        let line = &mut series[0].lines[0];
        (line.metric, line.target) = ("latency_p95".into(), "<= 5s".into());
        let page = String::from_utf8(html(&series, &Links::default()).expect("a page")).expect("text");
        assert_eq!(page.matches("target 5.00 s").count(), 2, "title and line of turn p95");
    }

    #[test]
    fn the_page_is_self_contained_and_hostile_words_stay_words() {
        let page = String::from_utf8(html(&series(), &Links::default()).expect("a page")).expect("text");
        assert!(!page.contains("<script") && page.contains("&lt;script"), "{page}");
        assert!(!page.contains("m\"onclick"));
        assert!(page.contains("Content-Security-Policy") && !page.contains("http://") && !page.contains("https://"));
        assert_eq!(page.matches("<svg class=\"trend\"").count(), 2, "one chart a line");
        assert_eq!(page.matches("class=\"band\"").count(), 1, "times have no interval");
        assert_eq!(page.matches("target 95.0 %").count(), 2, "title and line: a time without a target has no line");
        assert!(page.contains(">2026-03-01</text>") && page.contains(">2026-03-12</text>"), "the days of the ends");
        assert!(page.contains("href=\"#s1-p7\"") && page.contains("id=\"s1-p7\""), "a change leads to its point");
        assert!(page.contains("changed at 2026-03-07"));
        assert_eq!(html(&series(), &Links::default()).expect("a page"), page.as_bytes(), "same bytes");
    }

    #[test]
    fn a_point_leads_to_its_report_where_one_lies_beside_the_page_and_nowhere_else() {
        let page = |links: &Links| String::from_utf8(html(&series(), links).expect("a page")).expect("text");
        let without = page(&Links::default());
        assert!(!without.contains("report</a>") && !without.contains("./index.html"), "{without}");
        let reports = BTreeMap::from([("p3".to_owned(), "a b\"<c".to_owned()), ("gone".to_owned(), "x".to_owned())]);
        let with = page(&Links { runs: true, reports, ..Links::default() });
        assert_eq!(with.matches(">report</a>").count(), 1, "{with}");
        assert_eq!(with.matches("a%20b%22%3Cc/index.html").count(), 3, "its row and its point on both lines");
        assert!(
            with.contains("href=\"./a%20b%22%3Cc/index.html\"") && with.contains("href=\"./index.html\""),
            "{with}"
        );
    }

    #[test]
    fn targets_that_the_newest_run_misses_are_named_beside_the_headline() {
        let series = series();
        let said = missed_targets(&series[0]).expect("one");
        assert_eq!(said, "Target missed in the latest run: SC-002 90.0 % (target ≥ 95 %)");
        let page = String::from_utf8(html(&series, &Links::default()).expect("a page")).expect("text");
        assert!(page.contains(&together(&said)) && terminal(&series, 100).contains(&said), "{page}");
    }

    #[test]
    fn the_newest_time_is_that_of_the_newest_run_which_got_no_answer() {
        let mut series = series();
        let line = &mut series[0].lines[1];
        line.changes.clear();
        line.values.truncate(9);
        line.unanswered = vec![9, 10, 11];
        let text = terminal(&series, 160);
        assert!(text.contains("turn p95: first 4.00 s, newest no answer, mean 4.67 s"), "{text}");
        assert!(text.contains("No answer at 3 of 12 points"), "{text}");
        assert!(text.contains("No answer in the latest run: turn p95"), "{text}");
        let page = String::from_utf8(html(&series, &Links::default()).expect("a page")).expect("text");
        assert!(page.contains("No answer at 3 of 12 points") && page.contains("to no answer, changes: 0"), "{page}");
        assert_eq!(page.matches(": no answer\"").count(), 3, "a mark for each point: {page}");
        series[0].lines[1].values.clear();
        assert!(terminal(&series, 160).contains("turn p95: first no answer, newest no answer\n"));
    }

    #[test]
    fn one_point_and_two_are_drawn_and_say_that_they_are_too_few() {
        for number in [1, 2] {
            let mut series = series();
            series[0].points.truncate(number);
            for line in &mut series[0].lines {
                line.changes.clear();
                line.values.truncate(number);
                line.intervals.truncate(number);
            }
            let page = String::from_utf8(html(&series, &Links::default()).expect("a page")).expect("text");
            assert_eq!(page.matches("aria-label=\"2026-").count(), 2 * number, "a circle for each point of both lines");
            assert!(page.contains("Too few points to find a change.") && !page.contains("NaN"), "{page}");
            assert!(page.contains(", too few to find a change</h1>"), "the heading claims no steadiness: {page}");
        }
    }

    #[test]
    fn a_line_without_a_change_says_which_step_would_have_shown() {
        let mut series = series();
        let line = &mut series[0].lines[0];
        (line.changes, line.detectable) = (Vec::new(), Some(0.0421));
        let said = found_nothing(line);
        assert!(said.contains("4.2 points that began 6 points ago would be found half of the time"), "{said}");
    }

    #[test]
    fn the_terminal_shows_each_line_with_its_changes_and_an_empty_history_says_how_to_fill_it() {
        let text = terminal(&series(), 100);
        assert!(text.contains("SC-002") && text.contains("turn p95") && text.contains("changed at"), "{text}");
        assert!(!text.contains('\u{1b}') && text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(terminal(&[], 100).contains("--mode live"));
        assert!(String::from_utf8(html(&[], &Links::default()).expect("a page")).expect("text").contains("no point"));
    }
}
