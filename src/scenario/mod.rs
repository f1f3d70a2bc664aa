//! User-written YAML: scenarios, criteria and the project file.
//!
//! | question | files |
//! |---|---|
//! | what can be written | `document`, `case_table`, `knowledge`, `expect`, `external`, `criteria`, `project`, `rubric`, `grammar`, `resolve`, `names`, `pattern`, `schema` |
//! | which files, and how are they read | `files`, `load`, `load_scenario`, `read_files`, `named_file`, `tables`, `lines`, `repair`, `ratings`, `prices` |
//! | what is wrong, and where | `shape` for form; for meaning `check` and `check_…`, one for each subject, `commas`; `diagnostic` |
//!
//! Nothing here runs anything or knows how anything is run.

pub(crate) mod case_table;
mod check;
mod check_case;
mod check_criteria;
mod check_expect;
mod check_external;
mod check_knowledge;
mod check_managed;
mod check_possible;
mod check_services;
mod check_sources;
mod check_vars;
mod commas;
pub(crate) mod criteria;
pub(crate) mod diagnostic;
pub(crate) mod document;
mod either;
pub mod expect;
pub(crate) mod external;
mod files;
pub(crate) mod grammar;
mod knowledge;
mod lines;
mod load;
mod load_scenario;
mod named_file;
mod names;
mod pattern;
mod prices;
pub(crate) mod project;
pub(crate) mod ratings;
mod read_files;
mod repair;
mod resolve;
pub(crate) mod rubric;
pub(crate) mod schema;
mod shape;
mod tables;

pub(crate) use check_criteria::ReadCriterion;
#[cfg(test)]
pub(crate) use diagnostic::Place;
pub(crate) use diagnostic::{Diagnostic, Severity};
pub(crate) use files::find_root;
pub(crate) use grammar::{Target, parse_target, target_text};
pub(crate) use knowledge::KnowledgeNames;
#[cfg(test)]
pub(crate) use load::CasePlace;
pub use load::{Loaded, load};
pub(crate) use load::{LoadedScenario, load_for_runner, load_project, load_report, load_rubric};
pub(crate) use resolve::resolve_metric;

pub(crate) use criteria::{Criteria, Criterion, GateKind};
pub use document::{Case, SequenceStep};
pub(crate) use document::{Conversation, KeywordIndexState, Scenario, Turn};
pub(crate) use expect::{CallExpectation, CallPattern, Expectation};
pub(crate) use project::{Project, Requirement};
pub(crate) use repair::mistakes_of_shape;
pub(crate) use rubric::{Rubric, RubricEvidence};
