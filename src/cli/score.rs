//! `ragcheck score`: verdicts and reports again, from `plan.json` and `traces.jsonl` alone.

use super::arguments::{Printed, Score};
use super::exit::Exit;
use super::import;
use super::judging::{Judged, Judging};
use super::output::{self, Problem};
use crate::plan::{Plan, STOPPING_VERSION};
use crate::report;
use crate::trace::{self, TraceError};
use rayon::prelude::*;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Lines that are parsed and examined side by side before they are added up.
const WINDOW: usize = 256;

/// Does what `ragcheck score` was asked to.
///
/// # Errors
/// When the folder does not hold a readable run.
pub fn run(given: &Score) -> Result<Exit, Problem> {
    if let Some(named) = &given.import {
        return import::run(named, given);
    }
    let plan = read_plan(&given.run)?;
    let mut judged = judge(&given.run, &plan)?;
    judged.write(&given.run).map_err(|why| format!("{} cannot be written: {why}", given.run.display()))?;
    print(&judged, given.format, &given.run);
    Ok(Exit::of_code(judged.judgement.exit_code))
}

/// Reads the plan of a run folder.
///
/// # Errors
/// When it cannot be read, or was written by a newer build.
pub fn read_plan(folder: &Path) -> Result<Plan, Problem> {
    let file = folder.join(trace::PLAN);
    let text = std::fs::read(&file)
        .map_err(|why| format!("{} is not a run folder: {} cannot be read: {why}", folder.display(), trace::PLAN))?;
    let plan: Plan = serde_json::from_slice(&text).map_err(|why| format!("{}: {why}", file.display()))?;
    if plan.version > STOPPING_VERSION {
        let newer = plan.version;
        return Err(Problem::Words(format!(
            "{}: plan format {newer} is newer than this build reads ({STOPPING_VERSION}); update ragcheck",
            file.display()
        )));
    }
    Ok(plan)
}

/// Judges the traces of a run folder.
///
/// # Errors
/// When a line of `traces.jsonl` cannot be used, with its number.
pub fn judge<'p>(folder: &Path, plan: &'p Plan) -> Result<Judged<'p>, Problem> {
    let judging = Judging::begin(plan).map_err(|why| format!("{}: {why}", folder.join(trace::PLAN).display()))?;
    judge_by(judging, folder)
}

/// Judges the traces of a run folder by `judging`, which knows its plan.
///
/// # Errors
/// When a line of `traces.jsonl` cannot be used, with its number.
pub fn judge_by<'p>(mut judging: Judging<'p>, folder: &Path) -> Result<Judged<'p>, Problem> {
    let file = folder.join(trace::TRACES);
    let unreadable = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
    let maker = judging.maker();
    let mut reader = BufReader::with_capacity(1 << 20, File::open(&file).map_err(|why| unreadable(&why))?);
    let mut lines = Vec::with_capacity(WINDOW);
    let mut number = 0;
    loop {
        lines.clear();
        while lines.len() < WINDOW {
            let mut line = String::new();
            if reader.read_line(&mut line).map_err(|why| unreadable(&why))? == 0 {
                break;
            }
            number += 1;
            if !line.trim().is_empty() {
                lines.push((number, line));
            }
        }
        if lines.is_empty() {
            return Ok(judging.finish());
        }
        let made = lines
            .par_iter()
            .map(|(number, line)| {
                let trace = trace::parse_trace(line, *number)?;
                let made = maker.make_of_line(&trace, Vec::new());
                Ok((trace, made))
            })
            .collect::<Vec<Result<_, TraceError>>>();
        for made in made {
            let (trace, made) = made.map_err(|why| unreadable(&why))?;
            judging.add(&trace, made).map_err(|why| unreadable(&why))?;
        }
    }
}

/// Prints a judged run as asked.
pub fn print(judged: &Judged<'_>, format: Printed, folder: &Path) {
    let view = judged.view();
    match format {
        Printed::Human => {
            output::result(&report::terminal(&view, output::width(), output::coloured()));
            output::result(&format!("report: {}\n", folder.join(trace::INDEX_HTML).display()));
        }
        Printed::Json => match serde_json::to_string_pretty(&judged.judgement) {
            Ok(text) => output::result(&format!("{text}\n")),
            Err(why) => output::remark(&format!("error: the result cannot be printed: {why}")),
        },
    }
}
