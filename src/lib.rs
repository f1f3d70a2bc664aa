//! `ragcheck` runs the agent flows of a retrieval-augmented assistant against recorded or live model
//! traffic, judges the traces against success criteria, and reports.
//!
//! Three layers: *input* (`scenario`, `plan`) makes trials; *execution* (`clock` to `run`) turns a trial into a
//! trace; *verdict* (`metric` to `report`) reads traces. Execution and verdict never import each other:
//! `ARCHITECTURE.md` has the table, `tests/suite/imports.rs` guards it.

pub mod cassette;
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
pub mod report;
pub mod run;
pub mod scenario;
pub mod settings;
pub mod simulator;
pub mod state_machine;
pub mod stats;
pub mod trace;
pub mod transport;
pub mod trial;
