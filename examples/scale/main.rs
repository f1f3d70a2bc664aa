//! Writes a project of any size, to measure with.
//!
//! `cargo run --release --example scale -- FOLDER [--cases N] [--repeat N] [--no-recordings]`, then `ragcheck run` in
//! FOLDER. What is in it stands in `generate`.

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
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given = Arguments::parse();
    generate::write(&given.folder, generate::Size { cases: given.cases, repeat: given.repeat })?;
    if !given.no_recordings {
        let (factory, plan) = generate::load(&given.folder.canonicalize()?)?;
        generate::record(&factory, &plan)?;
    }
    Ok(())
}
