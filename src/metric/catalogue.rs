//! The metrics by name: what criteria may ask for, and how a name with parameters becomes a metric.
//!
//! `resolve` reads `name`, `name(VALUE)`, `name(VALUE, key=value)`. A parameter that a metric does not know is a
//! mistake and never ignored.

use super::case_pass_rate::CasePassRate;
use super::citation_validity::CitationValidity;
use super::context_preservation::ContextPreservation;
use super::control_validity::ControlValidity;
use super::first_attempt_rate::FirstAttemptRate;
use super::keyword_coverage::KeywordCoverage;
use super::latency::Latency;
use super::learned::{LearnedHarm, LearnedRetrieval};
use super::mandatory_call_rate::{At, MandatoryCallRate};
use super::order_violation_rate::OrderViolationRate;
use super::retry_recovery::{By, RetryRecovery};
use super::satisfaction::Satisfaction;
use super::state_machine_conformance::StateMachineConformance;
use super::turn_success_rate::TurnSuccessRate;
use super::verbatim_query_rate::VerbatimQueryRate;
use super::{Metric, quote};
use crate::trace::Account;

/// One metric of the catalogue, for people.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// How it is written, with all parameters and their defaults.
    pub signature: &'static str,
    /// What it measures, in a sentence.
    pub about: &'static str,
}

const fn entry(name: &'static str, signature: &'static str, about: &'static str) -> Entry {
    Entry { name, signature, about }
}

/// All metrics, in the order of the documentation.
pub const ENTRIES: &[Entry] = &[
    entry(
        "mandatory_call_rate",
        "mandatory_call_rate(TOOL, at=after_retry|first)",
        "Queries in which the tool was executed before the answer; with at=first only those that needed no feedback.",
    ),
    entry(
        "first_attempt_rate",
        "first_attempt_rate(TOOL=generate_response)",
        "Queries whose first attempt at the final step is a valid call of the tool.",
    ),
    entry(
        "keyword_coverage",
        "keyword_coverage",
        "Of the queries with an external result, those whose results were all indexed by keywords and read back.",
    ),
    entry(
        "satisfaction",
        "satisfaction",
        "Rated answers from both sources whose rater was satisfied; without ratings a proxy that never passes.",
    ),
    entry("latency_p50", "latency_p50", "Time from the user's words to the answer: half of all queries stay below."),
    entry("latency_p90", "latency_p90", "Time from the user's words to the answer: 90 % of queries stay below."),
    entry("latency_p95", "latency_p95", "Time from the user's words to the answer: 95 % of queries stay below."),
    entry("latency_p99", "latency_p99", "Time from the user's words to the answer: 99 % of queries stay below."),
    entry(
        "learned_retrieval",
        "learned_retrieval",
        "Later related queries that find something only because of keywords indexed earlier.",
    ),
    entry(
        "learned_harm",
        "learned_harm",
        "Labelled queries that lose a relevant passage to learned entries, or get an unrelated one; lower is better.",
    ),
    entry(
        "retry_recovery",
        "retry_recovery(by=attempt|episode, accounts=model+tool)",
        "Retries that gave a valid result, by attempt or by episode, on the accounts named.",
    ),
    entry(
        "context_preservation",
        "context_preservation",
        "Conversations of several turns that were shown their whole history and whose context probes all hold.",
    ),
    entry("case_pass_rate", "case_pass_rate", "Trials that met everything their case expects."),
    entry("turn_success_rate", "turn_success_rate", "Queries that got an answer and not an error."),
    entry(
        "verbatim_query_rate",
        "verbatim_query_rate(TOOL)",
        "Calls of the tool whose query repeats the user's words; lower is better.",
    ),
    entry(
        "citation_validity",
        "citation_validity",
        "Of the answers with sources, those that name only what the conversation retrieved.",
    ),
    entry("order_violation_rate", "order_violation_rate", "Queries with a tool call out of order; lower is better."),
    entry(
        "state_machine_conformance",
        "state_machine_conformance",
        "Trials that make only the moves that their flow's state machine declares.",
    ),
    entry(
        "control_validity",
        "control_validity",
        "Control trials, run without history, in which a context probe fails as it must.",
    ),
];

/// The parameters of one metric as written; what is taken is gone, and what is left over is a mistake.
struct Parameters<'a> {
    signature: &'static str,
    positional: Vec<&'a str>,
    named: Vec<(&'a str, &'a str)>,
}

impl<'a> Parameters<'a> {
    fn read(text: &'a str, signature: &'static str) -> Result<Self, String> {
        let mut found = Self { signature, positional: Vec::new(), named: Vec::new() };
        for part in text.split(',').map(str::trim).filter(|_| !text.trim().is_empty()) {
            match part.split_once('=') {
                Some((key, value)) => found.named.push((key.trim(), value.trim())),
                None if part.is_empty() => return Err(found.mistake("a parameter is empty")),
                None => found.positional.push(part),
            }
        }
        Ok(found)
    }

    fn mistake(&self, what: &str) -> String {
        format!("{what}: write `{}`", self.signature)
    }

    fn tool(&mut self) -> Option<String> {
        (!self.positional.is_empty()).then(|| self.positional.remove(0).to_owned())
    }

    fn required_tool(&mut self) -> Result<String, String> {
        self.tool().ok_or_else(|| self.mistake("the tool is missing"))
    }

    fn take(&mut self, key: &str) -> Option<&'a str> {
        let index = self.named.iter().position(|(name, _)| *name == key)?;
        Some(self.named.remove(index).1)
    }

    fn choice<T: Copy>(&mut self, key: &str, default: T, choices: &[(&str, T)]) -> Result<T, String> {
        let Some(word) = self.take(key) else { return Ok(default) };
        let known = choices.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
        known.ok_or_else(|| self.mistake(&format!("`{key}={}` is not known", quote(word, 40))))
    }

    fn accounts(&mut self) -> Result<Vec<Account>, String> {
        let Some(words) = self.take("accounts") else { return Ok(vec![Account::Model, Account::Tool]) };
        let account = |word: &str| {
            let known = [Account::Transport, Account::Model, Account::Tool].into_iter();
            known
                .into_iter()
                .find(|account| account.as_str() == word.trim())
                .ok_or_else(|| self.mistake(&format!("`{}` is no account (transport, model, tool)", quote(word, 40))))
        };
        words.split('+').map(account).collect()
    }

    fn done(self) -> Result<(), String> {
        match (self.positional.first(), self.named.first()) {
            (Some(word), _) | (None, Some((word, _))) => {
                Err(self.mistake(&format!("the parameter `{}` is not known", quote(word, 40))))
            }
            (None, None) => Ok(()),
        }
    }
}

/// The metric that `text` names, parameters filled in.
///
/// # Errors
/// In words for people: an unknown name with the nearest known one, or what is wrong with a parameter.
pub fn resolve(text: &str) -> Result<Box<dyn Metric>, String> {
    let text = text.trim();
    let (name, inside) = match text.split_once('(') {
        None => (text, ""),
        Some((name, rest)) => {
            let inside = rest.strip_suffix(')').filter(|inside| !inside.contains(['(', ')']));
            let inside = inside.ok_or_else(|| format!("`{}`: the parentheses do not match", quote(text, 80)))?;
            (name.trim(), inside)
        }
    };
    let Some(entry) = ENTRIES.iter().find(|entry| entry.name == name) else { return Err(unknown(name)) };
    let mut parameters = Parameters::read(inside, entry.signature)?;
    let metric: Box<dyn Metric> = match entry.name {
        "mandatory_call_rate" => Box::new(MandatoryCallRate {
            tool: parameters.required_tool()?,
            at: parameters.choice("at", At::AfterRetry, &[("first", At::First), ("after_retry", At::AfterRetry)])?,
        }),
        "first_attempt_rate" => {
            Box::new(FirstAttemptRate { tool: parameters.tool().unwrap_or_else(|| "generate_response".into()) })
        }
        "keyword_coverage" => Box::new(KeywordCoverage),
        "satisfaction" => Box::new(Satisfaction),
        "latency_p50" => Box::new(Latency { quantile: 0.50 }),
        "latency_p90" => Box::new(Latency { quantile: 0.90 }),
        "latency_p95" => Box::new(Latency { quantile: 0.95 }),
        "latency_p99" => Box::new(Latency { quantile: 0.99 }),
        "learned_retrieval" => Box::new(LearnedRetrieval),
        "learned_harm" => Box::new(LearnedHarm),
        "retry_recovery" => Box::new(RetryRecovery {
            by: parameters.choice("by", By::Attempt, &[("attempt", By::Attempt), ("episode", By::Episode)])?,
            accounts: parameters.accounts()?,
        }),
        "context_preservation" => Box::new(ContextPreservation),
        "case_pass_rate" => Box::new(CasePassRate),
        "turn_success_rate" => Box::new(TurnSuccessRate),
        "verbatim_query_rate" => Box::new(VerbatimQueryRate { tool: parameters.required_tool()? }),
        "citation_validity" => Box::new(CitationValidity),
        "order_violation_rate" => Box::new(OrderViolationRate),
        "state_machine_conformance" => Box::new(StateMachineConformance),
        "control_validity" => Box::new(ControlValidity),
        _ => return Err(unknown(name)),
    };
    parameters.done()?;
    Ok(metric)
}

fn unknown(name: &str) -> String {
    let nearest = ENTRIES
        .iter()
        .map(|entry| (strsim::normalized_damerau_levenshtein(entry.name, name), entry.name))
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .filter(|(likeness, _)| *likeness > 0.5);
    let known: Vec<_> = ENTRIES.iter().map(|entry| entry.name).collect();
    let name = quote(name, 60);
    match nearest {
        Some((_, close)) => format!("unknown metric `{name}`: did you mean `{close}`? known: {}", known.join(", ")),
        None => format!("unknown metric `{name}`; known: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_scenarios_may_name_is_what_is_measured() {
        let sorted = |mut names: Vec<&'static str>| {
            names.sort_unstable();
            names
        };
        let written = crate::scenario::catalogue::METRICS.iter().map(|entry| entry.name).collect();
        assert_eq!(sorted(written), sorted(ENTRIES.iter().map(|entry| entry.name).collect()));
    }

    #[test]
    fn every_entry_can_be_resolved_and_no_name_stands_twice() {
        for entry in ENTRIES {
            let written =
                if entry.signature.contains("TOOL") { format!("{}(x)", entry.name) } else { entry.name.into() };
            assert!(resolve(&written).is_ok(), "{written}");
            assert_eq!(ENTRIES.iter().filter(|other| other.name == entry.name).count(), 1);
        }
    }

    #[test]
    fn parameters_are_read_in_any_spacing() {
        assert!(resolve(" mandatory_call_rate( knowledge_base_search , at = first ) ").is_ok());
        assert!(resolve("retry_recovery(by=episode, accounts=transport+tool)").is_ok());
        assert!((resolve("latency_p99").expect("known").quantile() - 0.99).abs() < 1e-12);
    }

    #[test]
    fn mistakes_are_named_with_what_to_write() {
        for (text, part) in [
            ("latncy_p95", "did you mean `latency_p95`"),
            ("mandatory_call_rate", "the tool is missing"),
            ("mandatory_call_rate(x, at=last)", "`at=last` is not known"),
            ("case_pass_rate(x)", "`x` is not known"),
            ("retry_recovery(by=attempt, speed=3)", "`speed` is not known"),
            ("retry_recovery(accounts=model+moon)", "`moon` is no account"),
            ("retry_recovery(by=attempt,)", "a parameter is empty"),
            ("retry_recovery(", "parentheses"),
        ] {
            let message = resolve(text).err().expect(text);
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
