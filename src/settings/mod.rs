//! What is declared about models, search services, limits and providers: one set of types for all who read it.
//!
//! | question | file |
//! |---|---|
//! | how is a time written | `duration` |
//! | where are keywords kept beyond a run, and for how long | `knowledge` |
//! | which expressions and schemas may people write | `expression`, `argument_schema` |
//! | which model, which search service, within which bounds | `model` |
//! | where is a provider, what does it speak, how does it depart from that | `provider` |
//!
//! These are plain values: what they mean for a request is decided where requests are made.

mod argument_schema;
mod duration;
mod expression;
mod knowledge;
mod model;
mod provider;

pub use argument_schema::{SchemaError, argument_schema, schema_patterns};
pub use duration::{AgeLimit, DurationError, TimeSpan, parse_age, parse_duration, print_duration};
pub use expression::{expression, expression_work};
pub use knowledge::{Forget, KeywordIndexSettings};
pub use model::{Enforcement, Limits, ModelSettings, SearchSettings};
pub use provider::{Auth, PaceLimits, Provider, Quirks};

/// The `kb_id` that stands for the first knowledge base, whatever its own: it is searched when the model names none.
pub const DEFAULT_KB: &str = "default_kb";
