//! Catalogues of flows with their tools and prompts, metrics with their parameters, and dialects of providers, for
//! checking input.
//!
//! The caller that loads scenarios passes them in, so that `scenario` imports neither execution nor evaluation. Each
//! flow, metric and dialect defines its entry beside its implementation.

mod dialect;
mod flow;
mod knowledge;
mod metric;

pub(crate) use dialect::DialectEntry;
pub(crate) use flow::{FlowEntry, ToolEntry};
pub(crate) use knowledge::{PassageNames, ServerEntry};
pub(crate) use metric::{ACCOUNTS, Better, Figure, MetricEntry, Parameter, ResolvedMetric, Units, Values};

use crate::platform::distinct;

/// All names that scenarios and criteria may use.
#[derive(Debug, Clone, Default)]
pub struct Catalogues {
    pub flows: Vec<FlowEntry>,
    /// The metrics, in the order of the documentation.
    pub metrics: Vec<&'static MetricEntry>,
    /// The dialects that a provider can declare.
    pub dialects: Vec<DialectEntry>,
    /// The kinds of servers for knowledge bases.
    pub servers: Vec<ServerEntry>,
    /// Names of documents and passages in a knowledge folder; without it no source is checked.
    pub passages: Option<PassageNames>,
}

impl Catalogues {
    pub fn flow(&self, name: &str) -> Option<&FlowEntry> {
        self.flows.iter().find(|flow| flow.name == name)
    }

    pub fn flow_names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.flows.iter().map(|flow| flow.name)
    }

    pub fn dialect(&self, name: &str) -> Option<&DialectEntry> {
        self.dialects.iter().find(|dialect| dialect.name == name)
    }

    /// The prompt texts of all flows, without duplicates.
    pub fn prompts(&self) -> Vec<&'static str> {
        distinct(self.flows.iter().flat_map(|flow| flow.prompts.iter().copied()))
    }
}
