//! Prometheus counters since the start of the service, without names of sessions or tenants.

use crate::platform::lock::lock;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::time::Duration;

/// Upper bounds of the buckets for a turn's duration, in seconds.
const CLASSES: [f64; 8] = [0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 120.0];

#[derive(Debug, Default)]
struct Counts {
    requests: BTreeMap<u16, u64>,
    turns: BTreeMap<String, u64>,
    within: [u64; CLASSES.len()],
    seconds: f64,
    measured: u64,
    under_way: u64,
}

/// The counters of one service.
#[derive(Debug, Default)]
pub(super) struct Counters(Mutex<Counts>);

/// A running turn, until it is dropped.
pub(super) struct UnderWay<'c>(&'c Counters);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        lock(&self.0.0).under_way -= 1;
    }
}

impl Counters {
    /// Counts a request answered with that status.
    pub(super) fn answered(&self, status: u16) {
        *lock(&self.0).requests.entry(status).or_default() += 1;
    }

    /// Counts the start of a turn.
    pub(super) fn begin(&self) -> UnderWay<'_> {
        lock(&self.0).under_way += 1;
        UnderWay(self)
    }

    /// Counts the end of a turn: `answered` or the kind of its error, and its duration.
    pub(super) fn turn(&self, end: &str, took: Duration) {
        let mut counts = lock(&self.0);
        *counts.turns.entry(end.to_owned()).or_default() += 1;
        counts.measured += 1;
        counts.seconds += took.as_secs_f64();
        for (class, within) in CLASSES.iter().zip(&mut counts.within) {
            *within += u64::from(took.as_secs_f64() <= *class);
        }
    }

    /// All counters in Prometheus' text format, with the number of lines missing from the service's log.
    pub(super) fn text(&self, flow: &str, lost: u64) -> String {
        let counts = lock(&self.0);
        let mut out = String::new();
        let head = |name: &str, kind: &str, help: &str| {
            format!("# HELP ragcheck_{name} {help}\n# TYPE ragcheck_{name} {kind}\n")
        };
        out += &head("requests_total", "counter", "HTTP requests by status.");
        for (status, count) in &counts.requests {
            let _ = writeln!(out, "ragcheck_requests_total{{status=\"{status}\"}} {count}");
        }
        out += &head("turns_total", "counter", "Turns by how they ended.");
        for (end, count) in &counts.turns {
            let end: String = end.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect();
            let _ = writeln!(out, "ragcheck_turns_total{{flow=\"{flow}\",end=\"{end}\"}} {count}");
        }
        out += &head("turn_seconds", "histogram", "Time of a turn.");
        for (class, count) in CLASSES.iter().zip(&counts.within) {
            let _ = writeln!(out, "ragcheck_turn_seconds_bucket{{le=\"{class}\"}} {count}");
        }
        let Counts { measured, seconds, under_way, .. } = &*counts;
        let _ = writeln!(out, "ragcheck_turn_seconds_bucket{{le=\"+Inf\"}} {measured}");
        let _ = writeln!(out, "ragcheck_turn_seconds_sum {seconds}\nragcheck_turn_seconds_count {measured}");
        out += &head("turns_under_way", "gauge", "Turns under way.");
        let _ = writeln!(out, "ragcheck_turns_under_way {under_way}");
        out += &head("log_lines_lost_total", "counter", "Lines of the event log that could not be written.");
        let _ = writeln!(out, "ragcheck_log_lines_lost_total {lost}");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_counted_by_status_end_and_time() {
        let counters = Counters::default();
        counters.answered(200);
        counters.answered(200);
        counters.answered(404);
        counters.turn("answered", Duration::from_millis(700));
        counters.turn("no_tool_call", Duration::from_secs(3));
        let under_way = counters.begin();
        let text = counters.text("two-stage", 4);
        for line in [
            "ragcheck_requests_total{status=\"200\"} 2",
            "ragcheck_requests_total{status=\"404\"} 1",
            "ragcheck_turns_total{flow=\"two-stage\",end=\"answered\"} 1",
            "ragcheck_turn_seconds_bucket{le=\"0.5\"} 0",
            "ragcheck_turn_seconds_bucket{le=\"1\"} 1",
            "ragcheck_turn_seconds_bucket{le=\"+Inf\"} 2",
            "ragcheck_turn_seconds_sum 3.7",
            "ragcheck_turns_under_way 1",
            "ragcheck_log_lines_lost_total 4",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line} in\n{text}");
        }
        drop(under_way);
        assert!(counters.text("two-stage", 0).contains("ragcheck_turns_under_way 0"));
    }
}
