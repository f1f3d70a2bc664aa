//! Table of calls: one row per call of a model, a tool, a search or a declared service, in the order of the trials.

use crate::trace::columns::{Column, column, whole_column};
use crate::trace::text::cell;
use crate::trace::{Event, Reply, Trace, What};
use std::rc::Rc;

/// Values of one row.
pub(crate) struct CallCells {
    trial: Rc<str>,
    number: usize,
    event: Event,
}

pub(crate) fn rows(trace: Trace) -> impl Iterator<Item = CallCells> {
    let trial: Rc<str> = trace.trial.into();
    let is_call = |event: &Event| {
        matches!(event.what, What::ModelCalled(_) | What::ToolCalled(_) | What::Searched(_) | What::Requested(_))
    };
    let calls = trace.events.into_iter().filter(is_call);
    (1..).zip(calls).map(move |(number, event)| CallCells { trial: Rc::clone(&trial), number, event })
}

/// Columns of the table.
pub(crate) fn columns() -> Vec<Column<CallCells>> {
    vec![
        column("trial", "the trial, `id` in `trials.csv`", |row| cell(&row.trial)),
        whole_column("call", "its number within the trial, from 1", |row| Some(row.number as u64)),
        whole_column("conversation", "the conversation within the trial, from 1", |row| {
            Some(u64::from(row.event.conversation) + 1)
        }),
        whole_column("turn", "the turn within the conversation, from 1", |row| Some(u64::from(row.event.turn) + 1)),
        column("kind", "`model`, `tool`, `search` (by the flow) or `request` (to a declared service)", |row| {
            match &row.event.what {
                What::ModelCalled(_) => "model",
                What::ToolCalled(_) => "tool",
                What::Searched(_) => "search",
                _ => "request",
            }
            .into()
        }),
        column("name", "the tool, the service, or the model that answered", |row| match &row.event.what {
            What::ModelCalled(one) => match &one.reply {
                Reply::Completion(done) => cell(&done.model),
                Reply::Failure { .. } => cell(one.service.as_deref().unwrap_or("model")),
            },
            What::ToolCalled(one) => cell(&one.tool),
            What::Requested(one) => cell(&one.service),
            _ => "search".into(),
        }),
        column(
            "outcome",
            "`ok`, `failed`, and of tools `rejected` (arguments), `out_of_order` or `unseen` (the evidence does not show it)",
            |row| row.outcome().into(),
        ),
        column(
            "arguments",
            "the arguments of a tool as JSON, the query of a search, or method and path of a request",
            |row| match &row.event.what {
                What::ToolCalled(one) => cell(&one.arguments.to_string()).into_owned().into(),
                What::Searched(one) => cell(&one.query),
                What::Requested(one) => cell(&format!("{} {}", one.method, one.path)).into_owned().into(),
                _ => "".into(),
            },
        ),
        whole_column("at_us", "its begin, in microseconds from that of the trial", |row| Some(row.event.at_us)),
        whole_column("took_us", "its duration in microseconds", |row| Some(row.took_us())),
        whole_column("attempts", "number of HTTP attempts", |row| Some(row.event.what.attempts().len() as u64)),
        whole_column("status", "HTTP status of the last attempt; empty without an answer", |row| {
            row.event.what.attempts().last()?.status.map(u64::from)
        }),
        whole_column("input_tokens", "input tokens; empty where none were reported", |row| {
            row.event.what.completion()?.input_tokens
        }),
        whole_column(
            "cached_tokens",
            "input tokens from the provider's cache; empty where none were reported",
            |row| row.event.what.completion()?.cached_tokens,
        ),
        whole_column("output_tokens", "output tokens; empty where none were reported", |row| {
            row.event.what.completion()?.output_tokens
        }),
        column("finish", "why a completion stopped", |row| {
            row.event.what.completion().map_or("".into(), |done| cell(&done.finish))
        }),
    ]
}

impl CallCells {
    fn outcome(&self) -> &'static str {
        match &self.event.what {
            What::ToolCalled(one) => one.outcome.word(),
            What::Searched(one) => one.outcome.word(),
            What::Requested(one) if one.failed.is_some() => "failed",
            What::ModelCalled(_) if self.event.what.completion().is_none() => "failed",
            _ => "ok",
        }
    }

    fn took_us(&self) -> u64 {
        match &self.event.what {
            What::ModelCalled(one) => one.took_us,
            What::ToolCalled(one) => one.took_us,
            What::Searched(one) => one.took_us,
            What::Requested(one) => one.took_us,
            _ => 0,
        }
    }
}
