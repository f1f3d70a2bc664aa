//! YAML as people write it: scenarios, criteria and the project file.
//!
//! [`document`], [`expect`], [`criteria`] and [`project`] are what may be written, one type a file;
//! loading and checking turn text into these and every mistake into a diagnostic with file, line and column.
//! Nothing here runs anything or knows how anything is run.

pub mod criteria;
pub mod document;
pub mod expect;
mod pattern;
pub mod project;

pub use criteria::{Criteria, Criterion, GateKind};
pub use document::{Case, Conversation, Scenario, SequenceStep, Turn, Variant};
pub use expect::{CallExpectation, CallPattern, Expectation};
pub use project::Project;
