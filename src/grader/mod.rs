//! A model that grades answers by a rubric, recorded and replayed like any other traffic.
//!
//! [`tasks`](fn@tasks) finds what there is to grade in a run, a [`Grader`] has each distinct [`Content`] graded once, [`Tally`]
//! adds up and sets the grades beside human ratings. Every content is put twice, the rubric's items in order and
//! reversed; an item whose verdict depends on that has none. On disk a content is one cassette,
//! `<cassettes>/judge/<content hash>.yaml`, whose header names the turn that first needed it as its lane and the
//! rubric's hash in place of the knowledge.
//!
//! Nothing here passes or fails a criterion: a model's opinion is a proxy for what people think.

mod csv;
mod grade;
mod prompt;
mod reply;
mod table;
mod tally;
mod tasks;

pub(crate) use csv::write_csv;
pub(crate) use grade::{Graded, Grader};
pub(crate) use reply::ItemGrade;
pub(crate) use table::table;
pub(crate) use tally::Tally;
pub(crate) use tasks::{GradingTask, Scope, tasks};
