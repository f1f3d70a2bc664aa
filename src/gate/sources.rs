//! Sources of a figure: replayed, live or imported, from which services, and when.

use super::Source;
use crate::trace::text::quote;
use crate::trace::{ASKED_NOBODY, EDITED, Evidence, Mode};
use std::collections::{BTreeMap, BTreeSet};

/// The sources of some trials.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sources {
    // (mode, recorded from, model) to dates.
    found: BTreeMap<(Mode, String, String), BTreeSet<String>>,
}

impl Sources {
    /// Adds one trial's source.
    pub(super) fn add(&mut self, evidence: &Evidence) {
        // Takes the date alone, with which RFC 3339 begins. Anything else is not a date.
        let date = evidence.recorded_at.as_deref().and_then(|at| at.get(..10)).unwrap_or_default();
        let known = self.found.iter_mut().find(|((mode, from, model), _)| {
            *mode == evidence.mode && *from == evidence.recorded_from && *model == evidence.model
        });
        match known {
            Some((_, dates)) if dates.contains(date) => {}
            Some((_, dates)) => {
                dates.insert(date.to_owned());
            }
            None => {
                let key = (evidence.mode, evidence.recorded_from.clone(), evidence.model.clone());
                self.found.insert(key, BTreeSet::from([date.to_owned()]));
            }
        }
    }

    /// Adds the sources of other trials.
    pub(super) fn absorb(&mut self, other: &Self) {
        for (source, dates) in &other.found {
            self.found.entry(source.clone()).or_default().extend(dates.iter().cloned());
        }
    }

    /// Whether modes differ, such as live and replayed: such figures are never averaged.
    pub(super) fn mixed(&self) -> bool {
        self.found.keys().any(|key| self.found.keys().next().is_some_and(|first| first.0 != key.0))
    }

    /// One line: `REPLAYED, recorded from simulator on 2026-11-21`.
    pub(super) fn line(&self) -> String {
        let mut by_source: BTreeMap<(Mode, &str), BTreeSet<&str>> = BTreeMap::new();
        for ((mode, from, _), dates) in &self.found {
            by_source.entry((*mode, from)).or_default().extend(dates.iter().map(String::as_str));
        }
        let lines: Vec<_> = by_source.iter().map(|((mode, from), dates)| say(*mode, from, dates)).collect();
        lines.join("; ")
    }

    /// One entry per source.
    pub(super) fn list(&self) -> Vec<Source> {
        let entry = |((mode, from, model), dates): (&(Mode, String, String), &BTreeSet<String>)| Source {
            mode: *mode,
            from: from.clone(),
            model: model.clone(),
            dates: dates.iter().filter(|date| !date.is_empty()).cloned().collect(),
        };
        self.found.iter().map(entry).collect()
    }

    /// One entry per source, with its model.
    pub(super) fn entries(&self) -> Vec<String> {
        let entry = |((mode, from, model), dates): (&(Mode, String, String), &BTreeSet<String>)| {
            let said = say(*mode, from, &dates.iter().map(String::as_str).collect());
            // Services without a name have the model of each request.
            if model.is_empty() { said } else { format!("{said} (model {})", quote(model, 80)) }
        };
        // Lists of many are cut off at their end: an edit comes first, and trials that asked nobody last.
        let mut found: Vec<_> = self.found.iter().collect();
        found.sort_by_key(|((_, from, _), _)| (!from.ends_with(EDITED), from == ASKED_NOBODY));
        found.into_iter().map(entry).collect()
    }
}

/// The source of one trial; empty if it has neither a source nor a date because it never ran.
pub(super) fn of_trial(evidence: &Evidence) -> String {
    if evidence.recorded_from == ASKED_NOBODY && evidence.recorded_at.is_none() {
        return String::new();
    }
    let date = evidence.recorded_at.as_deref().and_then(|at| at.get(..10)).unwrap_or_default();
    say(evidence.mode, &evidence.recorded_from, &BTreeSet::from([date]))
}

/// The day of a recording in the words of [`of_trial`]; empty if they name none.
pub(crate) fn day_of(evidence: &str) -> &str {
    let day = evidence.rsplit_once(" on ").map_or("", |(_, day)| day);
    let is_day = day.len() == 10 && day.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if is_day && evidence.starts_with(&Mode::Replay.to_string()) { day } else { "" }
}

fn say(mode: Mode, from: &str, dates: &BTreeSet<&str>) -> String {
    let unasked = from == ASKED_NOBODY;
    // A long name is shortened, and not what marks it.
    let from = match from.strip_suffix(EDITED) {
        Some(name) => format!("{} {EDITED}", quote(name.trim_end(), 80)),
        None => quote(from, 80),
    };
    if mode != Mode::Replay {
        return if unasked { format!("{mode}, no service was asked") } else { format!("{mode}, from {from}") };
    }
    let dated: Vec<_> = dates.iter().filter(|date| !date.is_empty()).collect();
    let when = match (dated.first(), dated.last()) {
        (Some(first), Some(last)) if first != last => format!("between {first} and {last}"),
        (Some(day), _) => format!("on {day}"),
        _ => "on an unknown date".to_owned(),
    };
    if unasked {
        return format!("{mode}, no service was asked, recorded {when}");
    }
    format!("{mode}, recorded from {from} {when}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(mode: Mode, from: &str, at: Option<&str>) -> Evidence {
        Evidence { recorded_at: at.map(Into::into), ..Evidence::new(mode, from.into(), "m-1") }
    }

    #[test]
    fn a_trial_that_asked_no_service_says_so() {
        let mut sources = Sources::default();
        sources.add(&evidence(Mode::Replay, ASKED_NOBODY, Some("2026-11-21T10:00:00Z")));
        assert_eq!(sources.line(), "REPLAYED, no service was asked, recorded on 2026-11-21");
        sources.add(&evidence(Mode::Replay, "simulator", Some("2026-11-21T10:00:00Z")));
        assert!(sources.line().ends_with("; REPLAYED, recorded from simulator on 2026-11-21"), "{}", sources.line());
        let mut live = Sources::default();
        live.add(&evidence(Mode::Live, ASKED_NOBODY, None));
        assert_eq!(live.line(), "LIVE, no service was asked");
    }

    #[test]
    fn a_long_name_is_cut_and_its_mark_stays_and_comes_first() {
        let long = "openai gpt-6-luna, organisation acme-research-production, region eu-west-1, deployment blue 0 1";
        let mut sources = Sources::default();
        sources.add(&evidence(Mode::Replay, "a simulator", None));
        sources.add(&evidence(Mode::Replay, &format!("{long} {EDITED}"), None));
        let said = "… (edited by hand) on an unknown date";
        assert!(sources.entries()[0].contains(said) && sources.line().contains(said), "{}", sources.line());
        assert!(
            of_trial(&evidence(Mode::Replay, &format!("m {EDITED}"), None)).contains(" from m (edited by hand) on ")
        );
    }

    #[test]
    fn the_day_of_a_trial_is_that_of_its_recording() {
        let told = |mode, from, at| day_of(&of_trial(&evidence(mode, from, at))).to_owned();
        assert_eq!(told(Mode::Replay, "simulator", Some("2026-11-21T10:00:00Z")), "2026-11-21");
        assert_eq!(told(Mode::Replay, ASKED_NOBODY, Some("2026-11-21T10:00:00Z")), "2026-11-21");
        assert_eq!(told(Mode::Replay, "made on 2026-11-01", None), "");
        assert_eq!(told(Mode::Live, "made on 2026-11-01", None), "");
        assert_eq!(told(Mode::Replay, ASKED_NOBODY, None), "");
    }

    #[test]
    fn sources_are_named_once_with_their_days() {
        let mut sources = Sources::default();
        sources.add(&evidence(Mode::Replay, "simulator", Some("2026-11-21T10:00:00Z")));
        sources.add(&evidence(Mode::Replay, "simulator", Some("2026-11-21T12:00:00Z")));
        assert_eq!(sources.line(), "REPLAYED, recorded from simulator on 2026-11-21");
        sources.add(&evidence(Mode::Replay, "simulator", Some("2026-11-02T12:00:00Z")));
        sources.add(&evidence(Mode::Replay, "acme", None));
        assert_eq!(
            sources.line(),
            "REPLAYED, recorded from acme on an unknown date; \
             REPLAYED, recorded from simulator between 2026-11-02 and 2026-11-21"
        );
        assert!(!sources.mixed());
        sources.add(&evidence(Mode::Live, "acme", None));
        assert!(sources.mixed());
        assert_eq!(sources.entries().last().map(String::as_str), Some("LIVE, from acme (model m-1)"));
        let mut unnamed = Sources::default();
        unnamed.add(&Evidence { model: String::new(), ..evidence(Mode::Live, "acme", None) });
        assert_eq!(unnamed.entries(), ["LIVE, from acme"]);
    }
}
