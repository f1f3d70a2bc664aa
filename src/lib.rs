//! `ragcheck` runs the agent flows of a retrieval-augmented assistant against recorded or live model
//! traffic, evaluates the traces against success criteria, and reports.
//!
//! The command line does what a library user can do: load a suite, run it, read its verdicts.
//!
//! ```
//! use ragcheck::{RunOptions, Suite, Verdict};
//!
//! let reports = tempfile::tempdir()?;
//! let suite = Suite::load(".".as_ref(), &["scenarios/context.yaml".into()], None)?;
//! let options = RunOptions { reports: Some(reports.path().to_owned()), ..RunOptions::default() };
//! let run = suite.run(&options)?;
//! for gate in &run.evaluated.evaluation.gates {
//!     assert_eq!(gate.verdict, Verdict::Pass, "{} of {}: {}", gate.successes, gate.n, gate.about);
//! }
//! assert!(run.folder.join("index.html").exists());
//! # assert!(!run.evaluated.evaluation.gates.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It replays recordings ([`Mode::Replay`], the default): no network, no keys, the same bytes each time. The run
//! folder that it writes is read again by [`score`], which needs nothing else.
//!
//! | to | use |
//! |---|---|
//! | run a suite | [`Suite::load`], [`Suite::run`] with [`RunOptions`] |
//! | read results | [`score`], [`EvaluatedRun::evaluation`] |
//! | read and write traces | [`read_traces`], [`write_trace`], [`Trace`] |
//! | test an agent of your own | a scenario with `flow: external`: the agent runs as it is, in any language |
//! | add a flow, knowledge server, metric, dialect or format | a file and a line of a table in this crate: "To add a …" in `ARCHITECTURE.md` |
//!
//! The last row is no API. A table that is compiled in lets tests compare it with its folder, and the schemas, help and
//! pages of documentation follow it.
//!
//! Three layers: *input* (`scenario`, `plan`) makes trials; *execution* (`transport` to `trial`) turns a trial into a
//! trace; *verdict* (`metric` to `report`) reads traces. Execution and verdict never import each other; `suite` joins
//! them. `ARCHITECTURE.md` has the table, `tests/suite/imports.rs` guards it.

#![forbid(unsafe_code)]
// Behind the closed door nothing reaches what only tests and benches use.
#![cfg_attr(not(any(test, front_door_only)), warn(unreachable_pub))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make and read files of their own"))]
mod cassette;
mod cli;
mod compare;
mod flow;
mod gate;
mod grader;
mod history;
#[cfg(not(front_door_only))]
#[doc(hidden)]
pub mod internals;
mod knowledge;
mod metric;
mod plan;
mod platform;
mod provider;
mod report;
mod scenario;
mod serve;
mod settings;
mod simulator;
mod stats;
mod suite;
mod trace;
mod transport;
mod trial;

#[doc(hidden)]
pub use cli::{look_at_stdout, main as command_line};
pub use gate::{Evaluation, Verdict};
pub use plan::{Hold, OnNew, Partition, Selection};
pub use suite::evaluation::{EvaluatedRun, score};
pub use suite::{FinishedRun, Mode, Progress, RunOptions, Suite, SuiteError};
pub use trace::{Event, Lane, Trace, What, read_traces, write_trace};

/// The tables that scenarios are loaded with: what flows and metrics declare about themselves.
pub(crate) fn catalogues() -> settings::catalogue::Catalogues {
    settings::catalogue::Catalogues {
        flows: flow::entries(),
        metrics: metric::catalogue::entries(),
        dialects: provider::wire::entries(),
        servers: knowledge::servers(),
        passages: Some(knowledge::NAMES),
    }
}
