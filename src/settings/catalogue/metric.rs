//! Catalogue entries of metrics: names, parameters and figures, as written in criteria.

use crate::trace::Role;
use std::collections::BTreeMap;

/// Kind of a metric's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// A rate: `>= 95%`.
    Rate,
    /// A time: `<= 10s`. The number is the percentage of units that must stay below it.
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

/// Direction in which a metric improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Higher is better: `>=`.
    Higher,
    /// Lower is better: `<=`.
    Lower,
}

/// What determines the number of a metric's units per conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Units {
    /// The script, regardless of the agent: its turns, its expectations, or one for the trial.
    Planned,
    /// The agent's behaviour; at most one per turn.
    OfTurns,
    /// The agent's behaviour; at most one per completion that the limits allow.
    OfCompletions,
    /// The agent's behaviour, without a limit.
    Unlimited,
}

#[derive(Debug, Clone, Copy)]
pub struct MetricEntry {
    pub name: &'static str,
    /// What it measures, in a sentence.
    pub about: &'static str,
    /// Rate or time.
    pub figure: Figure,
    /// The direction of improvement; a target in the other direction is an error unless it is `meant`.
    pub better: Better,
    /// What determines the number of units per conversation.
    pub units: Units,
    /// Its parameters; positional arguments fill them in this order.
    pub parameters: &'static [Parameter],
    /// Whether its units are human ratings: without a ratings file nothing is measured, and it is required only if a
    /// criterion says so.
    pub is_rated: bool,
}

/// One parameter of a metric.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    pub name: &'static str,
    /// Its accepted values.
    pub values: Values,
    /// Its default; without one it is mandatory.
    pub default: Option<&'static str>,
}

/// Accepted values of a parameter.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// A tool's name, or a role, which means every tool with that role.
    Tool,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Retry accounts, joined by `+`.
    Accounts,
    /// A number, 2 to 100.
    Count,
    /// The id of a rubric's item.
    Item,
}

/// The retry accounts accepted by [`Values::Accounts`].
pub(crate) const ACCOUNTS: [&str; 3] = ["transport", "model", "tool"];

impl MetricEntry {
    /// Its notation with all parameters and their defaults: `mandatory_call_rate(TOOL, at=after_retry|first)`.
    pub fn signature(&self) -> String {
        let parameters: Vec<String> = self.parameters.iter().map(Parameter::signature).collect();
        if parameters.is_empty() { self.name.to_owned() } else { format!("{}({})", self.name, parameters.join(", ")) }
    }
}

impl Parameter {
    /// The parameter `tool`: a tool's name or a role, with that default.
    pub const fn tool(default: Option<&'static str>) -> Self {
        Self { name: "tool", values: Values::Tool, default }
    }

    /// A parameter that accepts one of these words, with that default.
    pub const fn one_of(name: &'static str, words: &'static [&'static str], default: &'static str) -> Self {
        Self { name, values: Values::OneOf(words), default: Some(default) }
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

    /// An accepted value, for examples.
    pub fn example(&self) -> &'static str {
        match self.values {
            Values::Tool => Role::Knowledge.as_str(),
            Values::OneOf(words) => words.first().copied().unwrap_or_default(),
            Values::Accounts => "model+tool",
            Values::Count => "4",
            Values::Item => "grounded",
        }
    }
}

/// A metric with all its parameters.
#[derive(Debug, Clone)]
pub struct ResolvedMetric {
    pub entry: &'static MetricEntry,
    /// Every parameter, by name.
    pub parameters: BTreeMap<&'static str, String>,
}

impl ResolvedMetric {
    /// The value of a parameter; empty for an unknown name.
    pub fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }
}
