//! `ragcheck` runs the agent flows of a retrieval-augmented assistant against recorded or live model
//! traffic, evaluates the traces against success criteria, and reports.
//!
//! The command line does what a library user can do: load a suite, run it, read its verdicts.
//!
//! ```
//! use ragcheck::gate::Verdict;
//! use ragcheck::suite::{RunOptions, Suite};
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
//! It replays recordings ([`suite::Mode::Replay`], the default): no network, no keys, the same bytes each time. The run
//! folder that it writes is read again by [`evaluation::score`](fn@evaluation::score), which needs nothing else.
//!
//! Three layers: *input* (`scenario`, `plan`) makes trials; *execution* (`clock` to `run`) turns a trial into a
//! trace; *verdict* (`metric` to `report`) reads traces. Execution and verdict never import each other; `recordings`,
//! `evaluation` and `suite` join them. `ARCHITECTURE.md` has the table, `tests/suite/imports.rs` guards it.

#![cfg_attr(not(test), warn(unreachable_pub))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make and read files of their own"))]

pub mod bounds;
pub mod cassette;
pub mod catalogue;
mod character_references;
pub mod chat;
pub mod cli;
pub mod clock;
pub mod compare;
pub mod evaluation;
pub mod files;
pub mod flow;
pub mod gate;
pub mod grader;
pub mod history;
pub mod import;
pub mod knowledge;
pub mod loopback;
pub mod metric;
pub mod percent;
pub mod plan;
pub mod price;
pub mod provider;
pub mod proxy;
pub mod recordings;
pub mod report;
pub mod run;
pub mod scenario;
pub mod secrets;
pub mod serve;
pub mod settings;
pub mod simulator;
pub mod starter;
pub mod state_machine;
pub mod stats;
pub mod suite;
pub mod trace;
pub mod transport;
pub mod trial;
mod yaml;

/// The tables that scenarios are loaded with: what flows and metrics declare about themselves.
pub fn catalogues() -> catalogue::Catalogues {
    catalogue::Catalogues {
        flows: flow::entries(),
        metrics: metric::catalogue::entries(),
        dialects: provider::wire::entries(),
        passages: Some(knowledge::NAMES),
    }
}
