//! The corpus suite: real third-party traffic, trajectories and questions, from the folder that `RAGCHECK_CORPUS` names.
//!
//! Without the variable every test says that it was skipped; with a folder that is not there they fail.

use std::path::PathBuf;

mod exchanges;
mod hostile;
mod published;
mod retrieval;
mod trajectories;
mod vcr;
mod wire;

/// A file or folder of the corpus; `None`, with a word about it, when nobody asked for the corpus.
#[expect(clippy::print_stdout, reason = "a skipped suite must say so")]
fn part(name: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("RAGCHECK_CORPUS").filter(|folder| !folder.is_empty()) else {
        println!("skipped: RAGCHECK_CORPUS is not set, {name} was not read");
        return None;
    };
    let path = PathBuf::from(folder).join(name);
    assert!(path.exists(), "{} is not there", path.display());
    Some(path)
}
