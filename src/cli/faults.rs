//! `ragcheck faults`: strikes each passing case with each fault, or poisons what its model reads, and shows what became of
//! it.

use super::amount::money;
use super::arguments::{Printed, Select};
use super::exit::Exit;
use super::output::{self, Problem};
use super::payloads::payloads;
use super::progress::ProgressLine;
use super::select::{load, selection, variables};
use crate::platform::{files, secrets};
use crate::settings::FaultKind;
use crate::settings::price::dollars;
use crate::suite::faults::{Cell, CellVerdict, FaultMatrix, Strikes};
use crate::suite::{Mode, RunOptions};
use crate::trace::columns::{Column, column, write_rows};
use crate::trace::text::{cell, line, plural};
use clap::Args;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Failed cells that are listed.
const SHOWN: usize = 20;

#[derive(Debug, Clone, Args)]
pub(super) struct Faults {
    #[command(flatten)]
    pub select: Select,
    /// Where answers come from: `record` makes a lane for each cell that goes on with requests that no recording has;
    /// `live`, for --poison alone, keeps none.
    #[arg(long, value_enum, default_value_t = Mode::Replay)]
    pub mode: Mode,
    /// Only this fault, by its name in docs/how-to/faults.md; may be repeated.
    #[arg(long, value_name = "NAME", value_parser = fault)]
    pub fault: Vec<FaultKind>,
    /// Instead of faults: put each instruction of this file (YAML, or JSON lines if its name ends in .jsonl) into passages,
    /// answers of services and results of tools, and compare with the clean trial.
    #[arg(long, value_name = "FILE", conflicts_with = "fault")]
    pub poison: Option<PathBuf>,
    /// Most requests that recording may send.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_calls: Option<u64>,
    /// Most US dollars that recording may spend, by the prices in ragcheck.yaml.
    #[arg(long, value_name = "USD", value_parser = money)]
    pub max_cost: Option<f64>,
    /// A file of `KEY=VALUE` lines with the providers' keys; it wins over the environment. No file is read by default.
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,
    /// Write every cell to a CSV file.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

/// Why a name is no fault.
#[derive(Debug, thiserror::Error)]
#[error("no fault has this name; known: {}", FaultKind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", "))]
pub(super) struct UnknownFault;

fn fault(name: &str) -> Result<FaultKind, UnknownFault> {
    FaultKind::ALL.iter().copied().find(|kind| kind.as_str() == name).ok_or(UnknownFault)
}

/// Runs `ragcheck faults`.
///
/// # Errors
/// If nothing could be run, or the CSV file cannot be written.
pub(super) fn run(given: &Faults) -> Result<Exit, Problem> {
    if given.mode == Mode::Live && given.poison.is_none() {
        return Err(Problem::Words("a cell is judged from a recording: pass `--mode record`, or nothing".into()));
    }
    let suite = load(&given.select)?;
    let options = RunOptions {
        mode: given.mode,
        selection: selection(&given.select),
        seed: given.select.seed,
        max_calls: given.max_calls,
        max_cost: given.max_cost,
        variables: variables(given.env_file.as_deref())?,
        ..RunOptions::default()
    };
    let kinds: BTreeSet<FaultKind> = given.fault.iter().copied().collect();
    let poison = given.poison.as_deref().map(payloads).transpose()?;
    let strikes = poison.as_deref().map_or(Strikes::Faults(&kinds), Strikes::Poison);
    let line = ProgressLine::of_matrix(&options.progress);
    let matrix = suite.fault_matrix(&options, strikes);
    drop(line);
    let matrix = matrix?;
    if let Some(file) = &given.csv {
        let written = csv(&matrix).and_then(|text| files::write(file, &*secrets::clean_text_bytes(&text)));
        written.map_err(|why| Problem::unwritten(file, &why))?;
    }
    output::data(given.format, &matrix, |matrix| text(matrix, strikes))?;
    let decided = matrix.cells.iter().any(|cell| cell.verdict < CellVerdict::NotRecorded);
    let failed = matrix.cells.iter().any(|cell| cell.verdict.fails());
    Ok(if decided && !failed { Exit::Passed } else { Exit::Failed })
}

fn text(matrix: &FaultMatrix, strikes: Strikes<'_>) -> String {
    let (what, verdicts, rows): (_, _, Vec<&str>) = match strikes {
        Strikes::Faults(_) => {
            ("faults", CellVerdict::OF_FAULTS, FaultKind::ALL.iter().map(|kind| kind.as_str()).collect())
        }
        Strikes::Poison(payloads) => ("poison", CellVerdict::OF_POISON, payloads.iter().map(|one| &*one.id).collect()),
    };
    let mut out = format!(
        "{what}: {}, {} struck, {} left out (not passing without a fault, or with faults of their own)\n\n{:22}",
        plural(matrix.cells.len(), "cell"),
        plural(matrix.struck, "trial"),
        matrix.left_out,
        ""
    );
    let row = |out: &mut String, name: &str, of: Option<&str>| {
        let _ = write!(out, "\n{name:22}");
        for verdict in verdicts {
            let number = matrix.count(*verdict, of);
            let shown = if number == 0 { "·".to_owned() } else { number.to_string() };
            let _ = write!(out, "{shown:>14}");
        }
    };
    for verdict in verdicts {
        let _ = write!(out, "{:>14}", verdict.label());
    }
    for name in rows {
        if matrix.cells.iter().any(|cell| cell.fault == name || cell.place == name) {
            row(&mut out, name, Some(name));
        }
    }
    row(&mut out, "all", None);
    out.push('\n');
    let failed: Vec<_> = matrix.cells.iter().filter(|cell| cell.verdict.fails()).collect();
    for cell in failed.iter().take(SHOWN) {
        let (verdict, why) = (cell.verdict.label(), line(&cell.why));
        let _ = write!(out, "\n{verdict}: {}, {} at {}\n  {why}\n", cell.trial, cell.fault, cell.place);
    }
    if failed.len() > SHOWN {
        let _ = write!(out, "\n{} such cells, {SHOWN} listed; --csv FILE lists all\n", failed.len());
    }
    if let (Strikes::Poison(_), 1..) = (strikes, matrix.simulated) {
        let _ = write!(
            out,
            "\nthe model of {} is a simulator, which follows no instructions: this shows the harness only\n",
            plural(matrix.simulated, "trial")
        );
    }
    let open: Vec<_> = matrix.cells.iter().filter(|cell| cell.verdict == CellVerdict::NotRecorded).collect();
    if !open.is_empty() {
        let calls: usize = open.iter().map(|cell| cell.calls).sum();
        let cost = open.iter().map(|cell| cell.cost).sum::<Option<f64>>();
        let cost = cost.map_or_else(|| "cost unknown".to_owned(), dollars);
        let _ = write!(
            out,
            "\nnot recorded: {}, about {}, {cost}; `--mode record` records a lane for each\n",
            plural(open.len(), "cell"),
            plural(calls, "call")
        );
    }
    out
}

fn csv(matrix: &FaultMatrix) -> std::io::Result<Vec<u8>> {
    let columns: [Column<&Cell>; 7] = [
        column("trial", "id of the trial", |one| cell(&one.trial)),
        column("fault", "the fault", |one| one.fault.into()),
        column("place", "where it strikes", |one| cell(&one.place)),
        column("verdict", "what it came to", |one| one.verdict.label().into()),
        column("why", "why, in words", |one| cell(&one.why)),
        column("calls", "requests of a recording, about", |one| one.calls.to_string().into()),
        column("cost", "US dollars of a recording, about", |one| {
            one.cost.map(|cost| cost.to_string()).unwrap_or_default().into()
        }),
    ];
    let mut out = Vec::new();
    write_rows(&mut out, &columns, &matrix.cells)?;
    Ok(out)
}
