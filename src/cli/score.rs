//! `ragcheck score`: verdicts and reports again, from `plan.json` and `traces.jsonl` alone.

use super::arguments::{Printed, Score};
use super::evaluation::{EvaluatedRun, EvaluationBuilder, Prepared, Preparer};
use super::exit::Exit;
use super::import;
use super::output::{self, Problem};
use crate::plan::{Plan, RUNS_VERSION};
use crate::report;
use crate::trace::{self, Trace, TraceError};
use rayon::prelude::*;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::mpsc::sync_channel;

/// Lines that are parsed and examined side by side before they are added up.
const WINDOW: usize = 512;

/// Room that is made for a window from the start, in bytes.
const TYPICAL: usize = 2 << 20;

/// Bytes after which a window has no further line.
const WINDOW_BYTES: usize = 8 << 20;

/// Does what `ragcheck score` was asked to.
///
/// # Errors
/// When the folder does not hold a readable run.
pub fn run(given: &Score) -> Result<Exit, Problem> {
    if let Some(named) = &given.import {
        return import::run(named, given);
    }
    let plan = read_plan(&given.run)?;
    let mut evaluated = evaluate(&given.run, &plan)?;
    evaluated.write(&given.run).map_err(|why| format!("{} cannot be written: {why}", given.run.display()))?;
    print(&evaluated, given.format, &given.run);
    Ok(Exit::of_code(evaluated.evaluation.exit_code))
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
    if plan.version > RUNS_VERSION {
        let newer = plan.version;
        return Err(Problem::Words(format!(
            "{}: plan format {newer} is newer than this build reads ({RUNS_VERSION}); update ragcheck",
            file.display()
        )));
    }
    Ok(plan)
}

/// Judges the traces of a run folder.
///
/// # Errors
/// When a line of `traces.jsonl` cannot be used, with its number.
pub fn evaluate<'p>(folder: &Path, plan: &'p Plan) -> Result<EvaluatedRun<'p>, Problem> {
    let judging =
        EvaluationBuilder::begin(plan).map_err(|why| format!("{}: {why}", folder.join(trace::PLAN).display()))?;
    judge_by(judging, folder)
}

/// Judges the traces of a run folder by `judging`, which knows its plan. One thread reads, all parse and examine, and
/// this one adds up in the order of the file; no more than a few windows of traces are in memory.
///
/// # Errors
/// When a line of `traces.jsonl` cannot be used, with its number.
pub fn judge_by<'p>(mut judging: EvaluationBuilder<'p>, folder: &Path) -> Result<EvaluatedRun<'p>, Problem> {
    let file = folder.join(trace::TRACES);
    let unreadable = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
    let maker = judging.maker();
    let reader = BufReader::with_capacity(1 << 20, File::open(&file).map_err(|why| unreadable(&why))?);
    std::thread::scope(|scope| {
        let (read, windows) = sync_channel::<Result<Window, TraceError>>(1);
        let (examined, made) = sync_channel::<Vec<Result<Seen, TraceError>>>(1);
        scope.spawn(move || Window::read_all(reader, |window| read.send(window).is_ok()));
        scope.spawn(move || {
            for window in windows {
                let seen = match window {
                    Ok(window) => window.lines().into_par_iter().map(|line| see(&maker, line)).collect(),
                    Err(why) => vec![Err(why)],
                };
                if examined.send(seen).is_err() {
                    return;
                }
            }
        });
        for seen in made.into_iter().flatten() {
            let (trace, made) = seen.map_err(|why| unreadable(&why))?;
            judging.add(trace.as_ref(), made).map_err(|why| unreadable(&why))?;
        }
        Ok(judging.finish())
    })
}

/// A trace, where it is still needed, and what was made of it.
type Seen = (Option<Trace>, Prepared);

fn see(maker: &Preparer<'_>, (number, line): (usize, &[u8])) -> Result<Seen, TraceError> {
    let no_text = |why| TraceError::Read { line: number, error: io::Error::new(io::ErrorKind::InvalidData, why) };
    let trace = trace::parse_trace(std::str::from_utf8(line).map_err(no_text)?, number)?;
    let made = maker.make_of_line(&trace, Vec::new());
    let done = maker.is_done_with(&made);
    Ok(((!done).then_some(trace), made))
}

/// Some lines of a file.
struct Window {
    /// The number of the first one, from 1.
    first: usize,
    text: Vec<u8>,
    /// Where each line ends.
    ends: Vec<usize>,
}

impl Window {
    /// Hands over the lines of `reader` in windows until there are no more, or `hand` answers no.
    fn read_all(mut reader: impl BufRead, mut hand: impl FnMut(Result<Self, TraceError>) -> bool) {
        let mut first = 1;
        loop {
            let mut window = Self { first, text: Vec::with_capacity(TYPICAL), ends: Vec::with_capacity(WINDOW) };
            while window.ends.len() < WINDOW && window.text.len() < WINDOW_BYTES {
                match reader.read_until(b'\n', &mut window.text) {
                    Ok(0) => break,
                    Ok(_) => window.ends.push(window.text.len()),
                    Err(error) => {
                        hand(Err(TraceError::Read { line: first + window.ends.len(), error }));
                        return;
                    }
                }
            }
            first += window.ends.len();
            if window.ends.is_empty() || !hand(Ok(window)) {
                return;
            }
        }
    }

    /// Its lines with their numbers, blank ones left out.
    fn lines(&self) -> Vec<(usize, &[u8])> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        let lines = starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end]);
        (self.first..).zip(lines).filter(|(_, line)| !line.trim_ascii().is_empty()).collect()
    }
}

/// Prints a judged run as asked.
pub fn print(evaluated: &EvaluatedRun<'_>, format: Printed, folder: &Path) {
    let view = evaluated.view();
    match format {
        Printed::Human => {
            output::result(&report::terminal(&view, output::width(), output::coloured()));
            output::result(&format!("report: {}\n", folder.join(trace::INDEX_HTML).display()));
        }
        Printed::Json => match serde_json::to_string_pretty(&evaluated.evaluation) {
            Ok(text) => output::result(&format!("{text}\n")),
            Err(why) => output::remark(&format!("error: the result cannot be printed: {why}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_numbers_across_windows_and_blank_ones_are_passed_over() {
        let text: String =
            (1..=WINDOW * 2 + 3).map(|line| if line % 7 == 0 { "\n".into() } else { format!("{line}\n") }).collect();
        let (mut seen, mut windows) = (Vec::new(), 0);
        Window::read_all(text.trim_end().as_bytes(), |window| {
            let window = window.expect("readable");
            let told = |(number, line): (usize, &[u8])| (number, String::from_utf8_lossy(line).trim().to_owned());
            seen.extend(window.lines().into_iter().map(told));
            windows += 1;
            true
        });
        assert_eq!(windows, 3);
        let expected = (1..=WINDOW * 2 + 3).filter(|line| line % 7 != 0).map(|line| (line, line.to_string()));
        assert_eq!(seen, expected.collect::<Vec<_>>());
    }
}
