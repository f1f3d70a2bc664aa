//! Settings of models, search services, limits and providers: one set of types for all modules that read them.
//!
//! | question | file |
//! |---|---|
//! | how is a time written | `duration` |
//! | what goes wrong on purpose, and where | `fault` |
//! | which limits hold for expressions and JSON Schemas | `expression`, `json_schema` |
//! | which base has vectors, local or on a server; where are keywords kept beyond a run | `knowledge` |
//! | which managed retrieval service, how is it called, how are its answers used | `managed` |
//! | which model, which search service, within which bounds | `model` |
//! | when is a model turned off | `model_end` |
//! | which services may fail | `optional` |
//! | where is a provider, what does it speak, how does it deviate | `provider` |
//!
//! These are plain values; the code that makes requests interprets them.

pub(crate) mod catalogue;
mod duration;
mod expression;
pub(crate) mod fault;
mod json_schema;
mod knowledge;
mod language;
mod managed;
mod model;
mod model_end;
mod optional;
pub(crate) mod price;
mod provider;

pub(crate) use duration::{AgeLimit, TimeSpan, parse_age, parse_duration};
pub(crate) use expression::{expression, expression_work, longest_found};
pub(crate) use fault::{DeclaredFault, FaultKind};
pub(crate) use json_schema::{JsonSchema, SchemaError, Violation, misspelt_keyword, schema_keywords, schema_patterns};
pub use knowledge::KnowledgeBaseSettings;
pub(crate) use knowledge::{EmbeddingSettings, Forget, KeywordIndexSettings, ServerAddress};
pub(crate) use language::Language;
#[cfg(test)]
pub(crate) use managed::TemplateParameter;
pub(crate) use managed::{ManagedRetrievalSettings, QUERY};
pub(crate) use model::{Enforcement, Limits, ModelSettings, SearchSettings};
pub(crate) use model_end::{CHECKED, is_date, model_end};
pub(crate) use optional::OptionalService;
pub use provider::{Auth, PaceLimits};
pub(crate) use provider::{Provider, Quirks};

/// The `kb_id` of the first knowledge base, in addition to its name: it is searched when the model names none.
pub const DEFAULT_KB: &str = "default_kb";
