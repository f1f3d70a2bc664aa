//! The corpus suite: real third-party traffic, trajectories and questions, from the folder that `RAGCHECK_CORPUS` names.
//!
//! `RAGCHECK_CORPUS=FOLDER cargo test --test corpus -- --include-ignored --skip needs_` runs it; `cargo test` shows its tests as ignored.

#![allow(clippy::disallowed_methods, reason = "it makes and reads files of its own")]

use std::path::PathBuf;

mod agents;
mod exchanges;
mod grounding;
mod hostile;
mod hybrid;
mod poison;
#[path = "../suite/ports.rs"]
#[allow(dead_code, reason = "the behaviour suite asks for addresses, too")]
mod ports;
#[path = "../suite/program.rs"]
mod program;
mod published;
mod recorders;
mod retrieval;
#[path = "../suite/scripted_model.rs"]
#[allow(dead_code, reason = "the behaviour suite counts requests, too")]
mod scripted_model;
mod spans;
mod trajectories;
mod vcr;
mod wire;

/// A file or folder of the corpus.
fn part(name: &str) -> PathBuf {
    let folder = std::env::var_os("RAGCHECK_CORPUS").filter(|folder| !folder.is_empty());
    let path = PathBuf::from(folder.expect("RAGCHECK_CORPUS names the folder of the corpus")).join(name);
    assert!(path.exists(), "{} does not exist", path.display());
    path
}
