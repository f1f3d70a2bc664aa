//! Writes a project of any size, to measure with.
//!
//! `cargo run --release --example scale -- FOLDER [--cases N] [--repeat N] [--no-recordings]`, then `ragcheck run` in
//! FOLDER. What is in it stands in `generate`. With `--traces N` there is a run folder beside it, FOLDER/run, with so
//! many small traces, for `ragcheck score`: how they are made stands in `clones`.

#![allow(clippy::disallowed_methods, reason = "it makes and reads files of its own")]

mod clones;
mod generate;

use clap::Parser;
use std::path::PathBuf;

/// Writes a project of any size, to measure with.
#[derive(Parser)]
struct Arguments {
    /// Where to; what lies there is overwritten.
    folder: PathBuf,
    /// Cases in five scenario files.
    #[arg(long, default_value_t = 2_000)]
    cases: usize,
    /// Recorded lanes of each case.
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// Scenarios alone, for `ragcheck list`.
    #[arg(long)]
    no_recordings: bool,
    /// Small traces in FOLDER/run, cloned from a few trials; `--cases` and `--repeat` are not looked at.
    #[arg(long)]
    traces: Option<usize>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given = Arguments::parse();
    if let Some(traces) = given.traces {
        return clones::write(&given.folder, traces);
    }
    generate::write(&given.folder, generate::Size { cases: given.cases, repeat: given.repeat, brief: false })?;
    if !given.no_recordings {
        let (opened, plan) = generate::load(&given.folder.canonicalize()?)?;
        generate::record(&opened, &plan, false)?;
    }
    Ok(())
}
