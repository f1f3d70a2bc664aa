//! The command line: what was typed, one file a subcommand, exit codes.
//!
//! Results go to stdout, everything else to stderr. A subcommand returns an [`Exit`]; `main` turns it into the
//! process's exit code and prints nothing itself.

mod arguments;
mod cassette;
pub mod check;
mod compare;
pub mod diagnostic;
mod estimate;
mod exit;
mod explain;
mod history;
mod import;
mod judge;
mod keywords;
mod knowledge;
pub mod list;
mod output;
mod recording_age;
mod report;
mod run;
pub mod schema;
mod score;
mod select;
mod show;
mod simulate;

pub use exit::Exit;

use arguments::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;

/// Parses the arguments of the process, does what they say, and reports the exit code.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let exit = match arguments.command {
        Command::Run(given) => run::run(&given),
        Command::Check(given) => check::run(&given),
        Command::List(given) => list::run(&given),
        Command::Score(given) => score::run(&given),
        Command::Judge(given) => judge::run(&given),
        Command::Compare(given) => compare::run(&given),
        Command::History(given) => history::run(&given),
        Command::Report(given) => report::run(&given),
        Command::Show(given) => show::run(&given),
        Command::Explain(given) => explain::run(&given),
        Command::Simulate(given) => simulate::run(&given),
        Command::Knowledge(given) => knowledge::run(&given),
        Command::Keywords(given) => keywords::run(&given),
        Command::Cassette(given) => cassette::run(&given),
        Command::Schema(given) => schema::run(&given),
    };
    exit.unwrap_or_else(|problem| {
        output::problem(&problem);
        Exit::Usage
    })
    .into()
}
