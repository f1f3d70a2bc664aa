//! YAML as people write it: scenarios, criteria and the project file.
//!
//! [`document`], [`expect`], [`criteria`] and [`project`] are what may be written, one type a file;
//! loading and checking turn text into these and every mistake into a diagnostic with file, line and column.
//! Nothing here runs anything or knows how anything is run.

pub mod catalogue;
mod check;
mod check_case;
mod check_criteria;
mod check_expect;
pub mod criteria;
pub mod diagnostic;
pub mod document;
pub mod expect;
mod files;
pub mod grammar;
mod load;
mod node;
mod pattern;
pub mod project;
mod ratings;
mod repair;
pub mod schema;
mod shape;
pub mod vocabulary;
mod yaml;

pub use catalogue::{ResolvedMetric, resolve_metric};
pub use diagnostic::{Diagnostic, Place, Severity};
pub use files::find_root;
pub use grammar::{MetricCall, Target, parse_duration, parse_metric, parse_target};
pub use load::{Examined, Loaded, LoadedScenario, examine, load};

pub use criteria::{Criteria, Criterion, GateKind};
pub use document::{Case, Conversation, Scenario, SequenceStep, Turn, Variant};
pub use expect::{CallExpectation, CallPattern, Expectation};
pub use project::Project;
