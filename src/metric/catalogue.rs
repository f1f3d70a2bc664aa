//! Maps the metric names in criteria to their implementations.
//!
//! Each metric's file registers its entry (name, parameters, defaults) beside its computation; `super::metrics!` lists
//! the files.

use super::{Metric, REGISTERED};
use crate::settings::catalogue::{Better, Figure, MetricEntry, Parameter, ResolvedMetric, Units, Values};
use crate::trace::Member;
use std::collections::BTreeMap;

/// One metric: its catalogue entry and its constructor.
pub(crate) struct Registered {
    /// Name and parameters as written in criteria.
    pub entry: MetricEntry,
    /// Builds the metric from these parameters.
    pub make: fn(&ResolvedMetric) -> Metric,
}

impl Registered {
    /// A rate: higher is better, and the script determines its units.
    pub(super) const fn rate(name: &'static str, make: fn(&ResolvedMetric) -> Metric) -> Self {
        let (figure, better, units) = (Figure::Rate, Better::Higher, Units::Planned);
        Self { entry: MetricEntry { name, about: "", figure, better, units, parameters: &[], is_rated: false }, make }
    }

    /// A time, with the percentage of units that must stay below the target.
    pub(super) const fn time(name: &'static str, percent: u8, make: fn(&ResolvedMetric) -> Metric) -> Self {
        let mut metric = Self::rate(name, make).lower_is_better();
        metric.entry.figure = Figure::Time(percent);
        metric
    }

    /// Sets what it measures, in a sentence.
    pub(super) const fn about(mut self, about: &'static str) -> Self {
        self.entry.about = about;
        self
    }

    /// Sets its parameters.
    pub(super) const fn takes(mut self, parameters: &'static [Parameter]) -> Self {
        self.entry.parameters = parameters;
        self
    }

    /// Sets lower as better.
    pub(super) const fn lower_is_better(mut self) -> Self {
        self.entry.better = Better::Lower;
        self
    }

    /// Marks it as based on human ratings.
    pub(super) const fn rated(mut self) -> Self {
        self.entry.is_rated = true;
        self
    }

    /// Sets what determines the number of units per conversation.
    pub(super) const fn counted(mut self, units: Units) -> Self {
        self.entry.units = units;
        self
    }
}

/// A criterion names a metric that no file registers although the catalogue listed it: a bug.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("nothing computes the metric `{0}`")]
pub(crate) struct NotComputed(String);

fn all() -> impl Iterator<Item = &'static Registered> {
    REGISTERED.iter().copied().flatten()
}

/// Entries of all metrics, in the order of the documentation.
pub(crate) fn entries() -> Vec<&'static MetricEntry> {
    all().map(|metric| &metric.entry).collect()
}

/// The members of a published trace that each metric needs, in the order of the documentation. A value of a parameter
/// has a row where it needs others than the default: `mandatory_call_rate(at=first)`.
pub fn members() -> Vec<(String, &'static [Member])> {
    let mut rows = Vec::new();
    for Registered { entry, make } in all() {
        let usual =
            entry.parameters.iter().map(|one| (one.name, one.default.unwrap_or_else(|| one.example()).to_owned()));
        let parameters: BTreeMap<&'static str, String> = usual.collect();
        let with = |name: &'static str, value: &str| {
            let mut parameters = parameters.clone();
            parameters.insert(name, value.to_owned());
            make(&ResolvedMetric { entry, parameters }).members
        };
        let own = make(&ResolvedMetric { entry, parameters: parameters.clone() }).members;
        rows.push((entry.name.to_owned(), own));
        for parameter in entry.parameters {
            let Values::OneOf(words) = parameter.values else { continue };
            let others = words.iter().map(|word| (word, with(parameter.name, word))).filter(|(_, needs)| *needs != own);
            rows.extend(others.map(|(word, needs)| (format!("{}({}={word})", entry.name, parameter.name), needs)));
        }
    }
    rows
}

/// Returns the metric that a criterion names.
///
/// # Errors
/// [`NotComputed`] for a name that is not in [`entries`].
pub(crate) fn resolve(asked: &ResolvedMetric) -> Result<Metric, NotComputed> {
    let name = asked.entry.name;
    let found = all().find(|metric| metric.entry.name == name);
    found.map(|metric| (metric.make)(asked)).ok_or_else(|| NotComputed(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::resolve_metric;
    use crate::settings::catalogue::{Figure, Units};
    use std::collections::BTreeSet;

    #[test]
    fn the_page_on_verdicts_lists_the_metrics_that_count_conversations_by_default() {
        let page = include_str!("../../docs/why/verdicts.md");
        let list = page.split("Counted per conversation by default:").nth(1).and_then(|rest| rest.split('.').next());
        let listed: BTreeSet<&str> = list.expect("a list").split('`').skip(1).step_by(2).collect();
        let counted = entries().into_iter().filter(|entry| entry.units != Units::Planned).map(|entry| entry.name);
        assert_eq!(listed, counted.collect(), "the list in docs/why/verdicts.md");
    }

    #[test]
    fn the_page_on_traces_lists_the_members_that_each_metric_needs() {
        let page = include_str!("../../docs/reference/trace.md");
        let rows = page.split("\n| metric | members |\n|---|---|\n").nth(1).expect("a table").lines();
        let listed = rows.take_while(|row| row.starts_with('|')).map(|row| row.split('`').skip(1).step_by(2).collect());
        let needed = members().into_iter();
        let needed: Vec<Vec<String>> = needed
            .map(|(name, needs)| [name].into_iter().chain(needs.iter().map(|one| one.path().into())).collect())
            .collect();
        assert_eq!(listed.collect::<Vec<Vec<&str>>>(), needed, "the table in docs/reference/trace.md");
    }

    #[test]
    fn an_unknown_outcome_hides_what_a_call_must_have_run_for() {
        for (written, reads) in [
            ("mandatory_call_rate(lookup)", true),
            ("first_attempt_rate", true),
            ("forced_retrieval_rate", true),
            ("rewritten_query_rate(lookup)", true),
            ("verbatim_query_rate(lookup)", false),
            ("distinct_query_rate", false),
        ] {
            let metric = resolve(&resolve_metric(written, &entries()).expect(written)).expect(written);
            assert_eq!(metric.reads_outcomes, reads, "{written}");
        }
    }

    #[test]
    fn every_entry_is_computed_and_measures_what_it_says() {
        for entry in entries() {
            let needed = match entry.signature() {
                signature if signature.contains("TOOL") => "(lookup)",
                signature if signature.contains("(k=") => "(k=3)",
                signature if signature.contains("(item=") => "(grounded)",
                _ => "",
            };
            let asked = resolve_metric(&format!("{}{needed}", entry.name), &entries()).expect(entry.name);
            let metric = resolve(&asked).expect(entry.name);
            match entry.figure {
                Figure::Rate => {}
                Figure::Time(percent) => {
                    assert!((metric.quantile * 100.0 - f64::from(percent)).abs() < 1e-9, "{}", entry.name);
                    assert_eq!(entry.name, format!("latency_p{percent}"), "the one time there is");
                }
            }
        }
    }

    #[test]
    fn every_word_that_a_parameter_takes_makes_another_metric() {
        let units = |text: &str| resolve(&resolve_metric(text, &entries()).expect(text)).expect(text).units;
        assert_ne!(units("retry_recovery(by=attempt)"), units("retry_recovery(by=episode)"));
        assert_ne!(units("nugget_recall(of=vital)"), units("nugget_recall(of=all)"));
    }

    #[test]
    fn every_metric_stands_once_and_its_signature_shows_how_to_write_it() {
        let names: BTreeSet<_> = entries().iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), entries().len());
        let shown = |name| entries().iter().find(|entry| entry.name == name).map(|entry| entry.signature());
        assert_eq!(shown("latency_p90").as_deref(), Some("latency_p90"));
        for written in [
            "mandatory_call_rate(TOOL, at=after_retry|first)",
            "first_attempt_rate(tool=respond)",
            "retry_recovery(by=attempt|episode, accounts=model+tool)",
        ] {
            assert_eq!(shown(written.split('(').next().unwrap_or_default()).as_deref(), Some(written));
        }
    }
}
