//! Grades answers by a rubric with a model; its traffic is recorded and replayed like any other.
//!
//! [`tasks`](fn@tasks) lists what a run has to grade, a [`Grader`] grades each distinct content once, and [`Tally`]
//! aggregates the grades and compares them with human ratings. Every content is graded twice, with the rubric's items
//! in order and reversed; an item whose two verdicts differ has no verdict. On disk a content is one cassette,
//! `<cassettes>/judge/<content hash>.yaml`. In its header, the lane is the turn that first needed it, and the knowledge
//! is the rubric's hash.
//!
//! Nothing here passes or fails a criterion: a model's opinion is a proxy for human judgement.

mod csv;
mod grade;
mod prompt;
mod reply;
mod table;
mod tally;
mod tasks;

pub(crate) use csv::{columns as judgement_columns, write_csv};
pub(crate) use grade::{FOLDER, Graded, Grader};
pub(crate) use reply::ItemGrade;
pub(crate) use table::table;
pub(crate) use tally::{ItemRow, Tally};
pub(crate) use tasks::{GradingTask, Scope, tasks};
