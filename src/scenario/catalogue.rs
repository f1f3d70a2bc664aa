//! The one table of the metrics that criteria may name, with their parameters, as data.
//!
//! What a metric computes is `metric`'s; a test there holds every row against its computation.

use super::diagnostic::did_you_mean;
use super::grammar::{GrammarError, MetricCall, parse_metric};
use super::vocabulary;
use std::collections::BTreeMap;

/// What a metric's target must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// A rate: `>= 95%`.
    Rate,
    /// A time: `<= 10s`. Of a hundred units, so many must stay below it.
    Time(u8),
}

impl Figure {
    /// The share of units that must stay below a time, 0 to 1; `None` for a rate.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Self::Rate => None,
            Self::Time(percent) => Some(f64::from(percent) / 100.0),
        }
    }
}

/// One metric of the catalogue.
#[derive(Debug, Clone, Copy)]
pub struct MetricEntry {
    /// Its name.
    pub name: &'static str,
    /// What it measures, in a sentence.
    pub about: &'static str,
    /// Rate or time.
    pub figure: Figure,
    /// Its parameters; positional arguments fill them in this order.
    pub parameters: &'static [Parameter],
}

/// One parameter of a metric.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub values: Values,
    /// What it is when not given; without one it must be given.
    pub default: Option<&'static str>,
}

/// What a parameter may be.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// A tool's name.
    Tool,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Retry accounts, joined by `+`.
    Accounts,
    /// A number of trials, 2 to 100.
    Trials,
    /// The id of a rubric's item.
    Item,
}

const ACCOUNTS: [&str; 3] = ["transport", "model", "tool"];
const TOOL: Parameter = Parameter { name: "tool", values: Values::Tool, default: None };
const RESPONSE_TOOL: Parameter = Parameter { default: Some("generate_response"), ..TOOL };
const AT: Parameter =
    Parameter { name: "at", values: Values::OneOf(&["first", "after_retry"]), default: Some("after_retry") };
const BY: Parameter =
    Parameter { name: "by", values: Values::OneOf(&["attempt", "episode"]), default: Some("attempt") };
const RETRY_ACCOUNTS: Parameter = Parameter { name: "accounts", values: Values::Accounts, default: Some("model+tool") };

const OF: Parameter = Parameter { name: "of", values: Values::OneOf(&["vital", "all"]), default: Some("vital") };
const ITEM: Parameter = Parameter { name: "item", values: Values::Item, default: None };
const TRIALS: Parameter = Parameter { name: "k", values: Values::Trials, default: None };

const fn rate(name: &'static str, about: &'static str, parameters: &'static [Parameter]) -> MetricEntry {
    MetricEntry { name, about, figure: Figure::Rate, parameters }
}

const fn time(name: &'static str, about: &'static str, percent: u8) -> MetricEntry {
    MetricEntry { name, about, figure: Figure::Time(percent), parameters: &[] }
}

/// All metrics, in the order of the documentation.
pub const METRICS: &[MetricEntry] = &[
    rate(
        "mandatory_call_rate",
        "Queries in which the tool was executed before the answer; with at=first only those that needed no feedback.",
        &[TOOL, AT],
    ),
    rate(
        "first_attempt_rate",
        "Queries whose first attempt at the final step is a valid call of the tool.",
        &[RESPONSE_TOOL],
    ),
    rate(
        "keyword_coverage",
        "Of the queries with an external result, those whose results were all indexed by keywords and read back.",
        &[],
    ),
    rate(
        "satisfaction",
        "Rated answers from both sources whose rater was satisfied; without ratings a proxy that never passes.",
        &[],
    ),
    time("latency_p50", "Time from the user's words to the answer: half of all queries stay below.", 50),
    time("latency_p90", "Time from the user's words to the answer: 90 % of queries stay below.", 90),
    time("latency_p95", "Time from the user's words to the answer: 95 % of queries stay below.", 95),
    time("latency_p99", "Time from the user's words to the answer: 99 % of queries stay below.", 99),
    rate(
        "learned_retrieval",
        "Later related queries that find something only because of keywords indexed earlier.",
        &[],
    ),
    rate(
        "learned_harm",
        "Labelled queries that lose a relevant passage to learned entries, or get an unrelated one; lower is better.",
        &[],
    ),
    rate(
        "retry_recovery",
        "Retries that gave a valid result, by attempt or by episode, on the accounts named.",
        &[BY, RETRY_ACCOUNTS],
    ),
    rate(
        "context_preservation",
        "Conversations of several turns that were shown their whole history and whose context probes all hold.",
        &[],
    ),
    rate("case_pass_rate", "Trials that met everything their case expects.", &[]),
    rate(
        "pass_all",
        "Of k repetitions of one case, all met everything it expects (pass^k); each k repetitions are one unit.",
        &[TRIALS],
    ),
    rate(
        "pass_any",
        "Of k repetitions of one case, any met everything it expects (pass@k); each k repetitions are one unit.",
        &[TRIALS],
    ),
    rate("turn_success_rate", "Queries that got an answer and not an error.", &[]),
    rate("verbatim_query_rate", "Calls of the tool whose query repeats the user's words; lower is better.", &[TOOL]),
    rate(
        "citation_validity",
        "Of the answers with sources, those that name only what the conversation retrieved.",
        &[],
    ),
    rate(
        "citation_provenance",
        "Of the answers that cite, those whose every citation was retrieved, named and shown, none lost, invented or renumbered.",
        &[],
    ),
    rate("citation_precision", "Of the sources that answers with known evidence cite, those that are evidence.", &[]),
    rate("citation_recall", "Of the evidence that cases give, what the answers cite.", &[]),
    rate("nugget_recall", "Of the facts that cases ask of answers, those that the answers hold.", &[OF]),
    rate(
        "grade",
        "Of the answers that a model graded by this item of a rubric (`ragcheck judge`), those that pass; no grades, NOT_MEASURED.",
        &[ITEM],
    ),
    rate("refusal_rate", "Of the queries for which nothing was found, those whose answer claims no source.", &[]),
    rate("combined_sources", "Of the answers for which both sources gave something, those that cite both.", &[]),
    rate("order_violation_rate", "Queries with a tool call out of order; lower is better.", &[]),
    rate("state_machine_conformance", "Trials that make only the moves that their flow's state machine declares.", &[]),
    rate("control_validity", "Control trials, run without history, in which a context probe fails as it must.", &[]),
];

impl MetricEntry {
    /// How it is written, with all parameters and their defaults: `mandatory_call_rate(TOOL, at=after_retry|first)`.
    pub fn signature(&self) -> String {
        let parameters: Vec<String> = self.parameters.iter().map(Parameter::signature).collect();
        if parameters.is_empty() { self.name.to_owned() } else { format!("{}({})", self.name, parameters.join(", ")) }
    }
}

/// A metric of the catalogue with every parameter filled in.
#[derive(Debug, Clone)]
pub struct ResolvedMetric {
    /// Its entry.
    pub entry: &'static MetricEntry,
    /// Every parameter, by name.
    pub parameters: BTreeMap<&'static str, String>,
}

impl ResolvedMetric {
    /// The value of a parameter; empty for a name that the metric does not have.
    pub fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }
}

/// Parses a metric as written and fills in what is not given.
///
/// # Errors
/// An unknown name with the nearest known one, or what is wrong with a parameter, each with its place.
pub fn resolve_metric(text: &str) -> Result<ResolvedMetric, GrammarError> {
    let call = parse_metric(text)?;
    let Some(entry) = METRICS.iter().find(|entry| entry.name == call.name) else {
        let known = METRICS.iter().map(|entry| entry.name);
        let start = text.chars().take_while(|letter| letter.is_whitespace()).count();
        let error = GrammarError::new(format!("unknown metric `{}`", call.name), start, call.name.chars().count());
        return Err(error.label(did_you_mean(&call.name, known)));
    };
    let mut parameters = BTreeMap::new();
    fill(text, &call, entry, &mut parameters)?;
    for parameter in entry.parameters {
        match (parameters.contains_key(parameter.name), parameter.default) {
            (true, _) => {}
            (false, Some(default)) => {
                parameters.insert(parameter.name, default.to_owned());
            }
            (false, None) => {
                let message = format!("`{}` needs its argument `{}`", entry.name, parameter.name);
                let example = format!("for example `{}({})`", entry.name, parameter.example());
                return Err(GrammarError::new(message, 0, text.chars().count()).label(example));
            }
        }
    }
    Ok(ResolvedMetric { entry, parameters })
}

fn fill(
    text: &str,
    call: &MetricCall,
    entry: &'static MetricEntry,
    parameters: &mut BTreeMap<&'static str, String>,
) -> Result<(), GrammarError> {
    let mut from = text.find('(').map_or(0, |at| at + 1);
    for (index, argument) in call.arguments.iter().enumerate() {
        let first = argument.key.as_deref().unwrap_or(&argument.value);
        let start = text.get(from..).and_then(|rest| rest.find(first)).map_or(from, |at| from + at);
        let value_at = text.get(start..).and_then(|rest| rest.find(&argument.value)).map_or(start, |at| start + at);
        let offset = |byte: usize| text.get(..byte).map_or(0, |before| before.chars().count());
        let known = || entry.parameters.iter().map(|parameter| parameter.name);
        let parameter = match &argument.key {
            Some(key) => entry.parameters.iter().find(|parameter| parameter.name == key),
            None => entry.parameters.get(index),
        };
        let Some(parameter) = parameter else {
            let message = format!("`{}` has no argument `{first}`", entry.name);
            return Err(GrammarError::new(message, offset(start), first.len()).label(did_you_mean(first, known())));
        };
        if let Err(label) = parameter.accepts(&argument.value) {
            let message = format!("`{}` cannot be `{}`", parameter.name, argument.value);
            return Err(GrammarError::new(message, offset(value_at), argument.value.len()).label(label));
        }
        if parameters.insert(parameter.name, argument.value.clone()).is_some() {
            let message = format!("`{}` is given twice", parameter.name);
            return Err(GrammarError::new(message, offset(start), first.len()));
        }
        from = text.get(value_at..).and_then(|rest| rest.find(',')).map_or(text.len(), |at| value_at + at + 1);
    }
    Ok(())
}

impl Parameter {
    fn accepts(&self, value: &str) -> Result<(), String> {
        let one_of = |known: &mut dyn Iterator<Item = &'static str>| {
            let known: Vec<&str> = known.collect();
            if known.contains(&value) { Ok(()) } else { Err(did_you_mean(value, known)) }
        };
        match self.values {
            Values::Tool => one_of(&mut vocabulary::tools()),
            Values::OneOf(words) => one_of(&mut words.iter().copied()),
            Values::Accounts => match value.split('+').find(|word| !ACCOUNTS.contains(word)) {
                Some(word) => Err(format!("{}, joined by `+`", did_you_mean(word, ACCOUNTS))),
                None => Ok(()),
            },
            Values::Trials => match value.parse::<u32>() {
                Ok(2..=100) => Ok(()),
                _ => Err("a number of trials from 2 to 100".to_owned()),
            },
            Values::Item => {
                let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
                if !value.is_empty() && value.chars().all(plain) {
                    Ok(())
                } else {
                    Err("the id of a rubric's item: lower-case letters, digits and hyphens".to_owned())
                }
            }
        }
    }

    fn signature(&self) -> String {
        match (self.values, self.default) {
            (Values::Tool, None) => "TOOL".to_owned(),
            (Values::OneOf(words), Some(default)) => {
                let others = words.iter().filter(|word| **word != default).map(|word| format!("|{word}"));
                format!("{}={default}{}", self.name, others.collect::<String>())
            }
            (_, Some(default)) => format!("{}={default}", self.name),
            (_, None) => format!("{}={}", self.name, self.example()),
        }
    }

    fn example(&self) -> &'static str {
        match self.values {
            Values::Tool => "knowledge_base_search",
            Values::OneOf(words) => words.first().copied().unwrap_or_default(),
            Values::Accounts => "model+tool",
            Values::Trials => "4",
            Values::Item => "grounded",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_filled_in() {
        let metric = resolve_metric("mandatory_call_rate(knowledge_base_search)").expect("a metric");
        assert_eq!(metric.parameters["at"], "after_retry");
        assert_eq!(resolve_metric("first_attempt_rate").expect("a metric").parameters["tool"], "generate_response");
        let retries = resolve_metric("retry_recovery(by=episode, accounts=transport+tool)").expect("a metric");
        assert_eq!(
            (retries.parameters["by"].as_str(), retries.parameters["accounts"].as_str()),
            ("episode", "transport+tool")
        );
    }

    #[test]
    fn wrong_names_and_arguments_point_at_themselves() {
        let place = |text: &str| resolve_metric(text).map_err(|error| (error.start, error.length)).expect_err("wrong");
        assert_eq!(place("latency_p59"), (0, 11));
        assert_eq!(place("mandatory_call_rate"), (0, 19));
        assert_eq!(place("mandatory_call_rate(knowledge_base)"), (20, 14));
        assert_eq!(place("mandatory_call_rate(perplexity_search, at=fist)"), (42, 4));
        assert_eq!(place("retry_recovery(wrong=attempt)"), (15, 5));
        assert_eq!(place("retry_recovery(accounts=model+user)"), (24, 10));
        assert_eq!(place("keyword_coverage(x)"), (17, 1));
        assert_eq!((place("pass_all"), place("pass_all(k=1)")), ((0, 8), (11, 1)));
        assert_eq!(place("retry_recovery(attempt, by=attempt)"), (24, 2));
    }

    #[test]
    fn every_metric_stands_once_and_its_signature_shows_how_to_write_it() {
        let names: std::collections::BTreeSet<_> = METRICS.iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), METRICS.len());
        let shown = |name| METRICS.iter().find(|entry| entry.name == name).map(MetricEntry::signature);
        assert_eq!(shown("latency_p90").as_deref(), Some("latency_p90"));
        for written in [
            "mandatory_call_rate(TOOL, at=after_retry|first)",
            "first_attempt_rate(tool=generate_response)",
            "retry_recovery(by=attempt|episode, accounts=model+tool)",
        ] {
            assert_eq!(shown(written.split('(').next().unwrap_or_default()).as_deref(), Some(written));
        }
    }

    #[test]
    fn every_default_is_a_value_that_its_parameter_takes() {
        for parameter in METRICS.iter().flat_map(|entry| entry.parameters) {
            assert!(parameter.default.is_none_or(|value| parameter.accepts(value).is_ok()), "{parameter:?}");
            assert!(parameter.accepts(parameter.example()).is_ok(), "{parameter:?}");
        }
    }
}
