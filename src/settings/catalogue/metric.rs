//! What metrics declare about themselves: their names, parameters and figures, as criteria write them.

use crate::trace::Role;
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

/// Which way a metric gets better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better: `>=`.
    Higher,
    /// Less is better: `<=`.
    Lower,
}

/// What says how many units of a metric a conversation has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Units {
    /// The script, whatever the agent does: its turns, what is expected of them, one for the trial.
    Planned,
    /// What the agent does; at most one for each turn.
    OfTurns,
    /// What the agent does; at most one for each completion that the limits allow.
    OfCompletions,
    /// What the agent does, and nothing limits it.
    Unlimited,
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct MetricEntry {
    /// Its name.
    pub name: &'static str,
    /// What it measures, in a sentence.
    pub about: &'static str,
    /// Rate or time.
    pub figure: Figure,
    /// Which way is better; a target that looks the other way is an error unless it is meant.
    pub better: Better,
    /// What says how many units a conversation has.
    pub units: Units,
    /// Its parameters; positional arguments fill them in this order.
    pub parameters: &'static [Parameter],
    /// Whether people's ratings are its units: without a file of them nothing is measured, and nothing is required unless a
    /// criterion says so.
    pub is_rated: bool,
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
    /// A tool's name, or a role, which stands for every tool that plays it.
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

/// The retry accounts, as [`Values::Accounts`] takes them.
pub(crate) const ACCOUNTS: [&str; 3] = ["transport", "model", "tool"];

impl MetricEntry {
    /// A rate.
    pub const fn rate(name: &'static str, about: &'static str, parameters: &'static [Parameter]) -> Self {
        let (figure, better, units) = (Figure::Rate, Better::Higher, Units::Planned);
        Self { name, about, figure, better, units, parameters, is_rated: false }
    }

    /// The same, where less is better.
    #[must_use]
    pub const fn lower_is_better(self) -> Self {
        Self { better: Better::Lower, ..self }
    }

    /// The same of people's ratings.
    #[must_use]
    pub const fn rated(self) -> Self {
        Self { is_rated: true, ..self }
    }

    /// The same, where what the agent does says how many units a conversation has.
    #[must_use]
    pub const fn counted(self, units: Units) -> Self {
        Self { units, ..self }
    }

    /// A time of which so many units in a hundred must stay below the target.
    pub const fn time(name: &'static str, about: &'static str, percent: u8) -> Self {
        let (figure, better, units) = (Figure::Time(percent), Better::Lower, Units::Planned);
        Self { name, about, figure, better, units, parameters: &[], is_rated: false }
    }

    /// How it is written, with all parameters and their defaults: `mandatory_call_rate(TOOL, at=after_retry|first)`.
    pub fn signature(&self) -> String {
        let parameters: Vec<String> = self.parameters.iter().map(Parameter::signature).collect();
        if parameters.is_empty() { self.name.to_owned() } else { format!("{}({})", self.name, parameters.join(", ")) }
    }
}

impl Parameter {
    /// `tool`: a tool's name or a role, with that default.
    pub const fn tool(default: Option<&'static str>) -> Self {
        Self { name: "tool", values: Values::Tool, default }
    }

    /// One of these words, with that default.
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

    /// A value that it takes.
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

/// A metric with every parameter filled in.
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
