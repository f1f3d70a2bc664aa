//! YAML as people write it: scenarios, criteria and the project file.
//!
//! | question | files |
//! |---|---|
//! | what may be written | `document`, `case_table`, `expect`, `external`, `criteria`, `project`, `rubric`, `grammar`, `resolve`, `names`, `schema` |
//! | which files, and how are they read | `files`, `load`, `read_files`, `named_file`, `tables`, `lines`, `repair`, `ratings`, `prices` |
//! | what is wrong, and where | `shape`, `check`, `check_case`, `check_expect`, `check_external`, `check_criteria`, `check_knowledge`, `check_managed`, `diagnostic` |
//!
//! Nothing here runs anything or knows how anything is run.

pub mod case_table;
mod check;
mod check_case;
mod check_criteria;
mod check_expect;
mod check_external;
mod check_knowledge;
mod check_managed;
mod check_per;
mod check_possible;
mod check_sources;
pub mod criteria;
pub mod diagnostic;
pub mod document;
pub mod expect;
pub mod external;
mod files;
pub mod grammar;
mod knowledge;
mod lines;
mod load;
mod load_scenario;
mod named_file;
mod names;
mod pattern;
mod prices;
pub mod project;
mod ratings;
mod read_files;
mod repair;
mod resolve;
pub mod rubric;
pub mod schema;
mod shape;
mod tables;

pub use check_criteria::{CriterionError, ReadCriterion};
pub use diagnostic::{Diagnostic, Place, Severity};
pub use files::find_root;
pub use grammar::{MetricCall, Target, parse_floor, parse_metric, parse_target};
pub use knowledge::KnowledgeNames;
pub use load::{CasePlace, Examined, Loaded, LoadedScenario, examine, load, load_project, load_rubric};
pub use resolve::resolve_metric;

pub use criteria::{Criteria, Criterion, GateKind};
pub use document::{Case, Conversation, KeywordIndexState, Scenario, SequenceStep, Turn, Variant};
pub use expect::{CallExpectation, CallPattern, Expectation};
pub use project::Project;
pub use repair::mistakes_of_shape;
pub use rubric::{Rubric, RubricEvidence, RubricItem};
