//! Writes the project, records the question, and replays it.

use super::SCENARIO;
use super::project::{self, Findings};
use super::shown::{asserted, shown};
use super::summary::{next, simulator};
use crate::cli::arguments::Detail;
use crate::cli::exit::Exit;
use crate::cli::init::{Extended, extend};
use crate::cli::output::{self, Problem};
use crate::cli::run::carry_out;
use crate::cli::score::print;
use crate::platform::{files, secrets};
use crate::suite::{Mode, RunOptions, Suite, evaluation};
use crate::trace::{Trace, TrialEnd, TrialErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

const CRITERIA: &str = "scenarios/criteria.yaml";

/// What became of the project's files.
#[derive(Default)]
pub(super) struct Files {
    pub(super) written: Vec<String>,
    pub(super) kept: Vec<String>,
    pub(super) extended: Vec<Extended>,
}

/// Writes all files; those that exist stay, and those of git get the lines that they lack.
pub(super) fn write(findings: &Findings) -> Result<Files, Problem> {
    let mut done = Files::default();
    let scenario = (SCENARIO.to_owned(), project::scenario(findings, None));
    for (path, text) in project::files(findings).into_iter().chain([scenario]) {
        if Path::new(&path).symlink_metadata().is_ok() {
            match extend(Path::new("."), &path, &text)? {
                Some(lines) => done.extended.push(lines),
                None => done.kept.push(path),
            }
            continue;
        }
        output::write(Path::new(&path), &secrets::clean(&text))?;
        done.written.push(path);
    }
    Ok(done)
}

/// Records the question, writes the expectations that the recording meets, and replays it. Returns the run's folder;
/// prints its result to a `human` alone.
pub(super) fn record(findings: &Findings, human: bool) -> Result<(PathBuf, Exit), Problem> {
    let detail = if human { Detail::Brief } else { Detail::Nothing };
    let here = std::env::current_dir().map_err(|why| why.to_string())?;
    let suite = Suite::load(&here, &[], None)?;
    let options = RunOptions {
        mode: Mode::Record,
        max_calls: None,
        timeout: Some(Duration::from_mins(10)),
        ..RunOptions::default()
    };
    let recorded = suite.run(&options)?;
    let exit = Exit::of_code(recorded.evaluated.evaluation.exit_code);
    let trace = evaluation::read_traces(&recorded.folder)?.next().transpose()?;
    // A recording that cannot be replayed shows all the same what an answer holds.
    let is_broken =
        |trace: &Trace| matches!(&trace.end, TrialEnd::Error(why) if why.kind == TrialErrorKind::CassetteBroken);
    let holds = exit == Exit::Passed || trace.as_ref().is_some_and(is_broken);
    let shown = trace.filter(|_| holds).map(|trace| shown(&trace, findings)).unwrap_or_default();
    let holds = exit == Exit::Passed || holds && !shown.answer.is_empty();
    if holds {
        save_again(SCENARIO, &project::scenario(findings, Some(&shown)))?;
        save_again(CRITERIA, &project::criteria(findings, Some(&shown)))?;
    }
    if exit != Exit::Passed {
        print(&recorded.evaluated, detail, &recorded.folder, None);
        if holds && human {
            output::result(&asserted(&shown));
        }
        let expects = if holds {
            ""
        } else {
            "; it only asserts that the agent answers: write down what every answer must contain"
        };
        output::remark(&format!(
            "the recording did not pass: change {SCENARIO} or the agent as it says, then `ragcheck run --mode record`{}{expects}",
            simulator(findings)
        ));
        return Ok((recorded.folder, exit));
    }
    let suite = Suite::load(&here, &[], None)?;
    let (done, exit) = carry_out(&suite, &RunOptions::default(), detail, None)?;
    if human {
        output::result(&asserted(&shown));
        output::result(&next(findings));
    }
    Ok((done.folder, exit))
}

/// Replaces a file that was written a moment ago.
fn save_again(path: &str, text: &str) -> Result<(), Problem> {
    let file = Path::new(path);
    files::replace(file, secrets::clean(text).into_owned()).map_err(|why| Problem::unwritten(file, &why))
}
