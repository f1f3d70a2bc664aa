//! `ragcheck run --watch`: replays what a changed file affects, and prints changed verdicts.

use super::arguments::{Printed, Run};
use super::exit::Exit;
use super::output::{self, Problem};
use super::run::carry_out;
use super::select::{bounded, load, reports_folder, selection};
use super::touched::{Files, Touched, changed, look, touched};
use crate::gate::{Evaluation, Verdict};
use crate::plan::Selection;
use crate::platform::clock::{Clock, RealClock};
use crate::platform::files;
use crate::scenario;
use crate::suite::{Mode, RunOptions, Suite, SuiteError};
use crate::trace::INDEX_HTML;
use crate::trace::text::{plural, quote};
use crate::trial::run::interrupted;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Minimum pause between two scans.
const PAUSE: Duration = Duration::from_millis(200);
/// Scans take at most one part in this many of the time.
const SHARE: u32 = 10;
/// Pause between two scans while files are being written.
const SETTLES: Duration = Duration::from_millis(30);
/// Maximum number of scans before files are taken as they are.
const LOOKS: usize = 100;
/// Maximum number of changed files and trials listed.
const SHOWN: usize = 10;

/// Runs the selection, then again what changes affect, until Ctrl-C.
///
/// # Errors
/// If the project's folder cannot be read, or the arguments of the first run are wrong.
pub(super) fn watch(given: &Run) -> Result<Exit, Problem> {
    if given.format == Printed::Json {
        return Err(Problem::Words("--watch prints for people: it has no --format json".into()));
    }
    if given.mode != Mode::Replay {
        return Err(Problem::Words(
            "--watch replays: a live or recording run is paid for, and begins when you say so".into(),
        ));
    }
    let ended = ends()?;
    let root = scenario::find_root(&super::select::current_folder()?);
    let reports = given.bounds.report_dir.clone().map_or_else(reports_folder, |folder| files::absolute(&folder));
    let mut watched = Watched { given, verdicts: BTreeMap::new(), loaded: None, idle: None };
    let mut before = look(&root, &reports);
    watched.first();
    output::result("watching; Ctrl-C ends\n");
    let mut pause = PAUSE;
    while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let clock = RealClock::start();
        let mut now = look(&root, &reports);
        pause = PAUSE.max(clock.now() * SHARE);
        if now == before {
            continue;
        }
        now = settled(&ended, now, || look(&root, &reports));
        watched.again(&changed(&before, &now));
        before = now;
    }
    output::result("watching ended\n");
    Ok(Exit::Passed)
}

fn is_yaml(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|end| end == "yaml" || end == "yml")
}

/// Scans until the files stop changing.
fn settled(ended: &Receiver<()>, mut seen: Files, look: impl Fn() -> Files) -> Files {
    for _ in 0..LOOKS {
        // The channel stays closed for later receivers.
        if ended.recv_timeout(SETTLES) != Err(RecvTimeoutError::Timeout) {
            break;
        }
        let now = look();
        if now == seen {
            break;
        }
        seen = now;
    }
    seen
}

/// A channel that closes on Ctrl-C and termination signals.
fn ends() -> Result<Receiver<()>, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| format!("signals cannot be waited for: {why}"))?;
    let (end, ended) = channel();
    std::thread::spawn(move || {
        runtime.block_on(interrupted());
        drop(end);
    });
    Ok(ended)
}

/// The watched project and its last results.
struct Watched<'g> {
    given: &'g Run,
    verdicts: BTreeMap<String, Verdict>,
    loaded: Option<Suite>,
    /// The last changed files that led to no run, and why.
    idle: Option<(BTreeSet<String>, String)>,
}

impl Watched<'_> {
    /// The first run, printed like any other.
    fn first(&mut self) {
        let (format, verbose) = (self.given.format, self.given.verbose);
        match self.carried_out(|suite, options| carry_out(suite, options, verbose.of(format), None)) {
            Ok((done, _)) => _ = self.compare(&done.evaluated.evaluation),
            Err(problem) => output::problem(&problem),
        }
    }

    /// Runs what the changed files affect.
    fn again(&mut self, files: &BTreeSet<String>) {
        let named: Vec<&str> = files.iter().take(SHOWN).map(String::as_str).collect();
        let more = files.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let changed = format!("\nchanged: {}{more}\n", quote(&named.join(", "), 400));
        let plain = self.given.select.only.is_empty() && self.given.select.tag.is_empty();
        // The files had mistakes at the last reading, so anything may have changed.
        let what = self.loaded.as_ref().map_or(Touched::Everything, |suite| touched(suite.loaded(), files, plain));
        if what == Touched::Nothing {
            if self.is_news(files, "no replay reads that") {
                output::result(&changed);
                output::result(
                    "no replay reads that; recordings change when they are made again: `ragcheck run --mode record`\n",
                );
            }
            return;
        }
        let (clock, mut begun) = (RealClock::start(), false);
        let run = self.carried_out(|suite, options| {
            output::result(&changed);
            begun = true;
            let mut options = options.clone();
            if let Touched::Cases(cases) = &what {
                options.selection = Selection { only: cases.iter().cloned().collect(), ..options.selection };
            }
            match suite.run(&options) {
                // The scenario no longer has a case that matches the pattern.
                Err(SuiteError::NothingSelected) => {
                    Ok(suite.run(&RunOptions { selection: selection(&self.given.select), ..options })?)
                }
                done => Ok(done?),
            }
        });
        let done = match run {
            Ok(done) => done,
            Err(problem) => {
                if begun || self.is_news(files, &format!("{problem:?}")) {
                    if !begun {
                        output::result(&changed);
                    }
                    output::problem(&problem);
                }
                return;
            }
        };
        self.idle = None;
        let took = clock.now();
        let lines = self.compare(&done.evaluated.evaluation);
        let evaluation = &done.evaluated.evaluation;
        let trials = plural(evaluation.trials.len(), "trial");
        let failed = evaluation.trials.iter().filter(|trial| trial.verdict != Verdict::Pass).count();
        let left = if failed == 0 { "all PASS".to_owned() } else { format!("{failed} not PASS") };
        let mut text = format!("{trials} in {:.2} s, {left}\n", took.as_secs_f64());
        text.extend(lines);
        if failed > 0 {
            let _ = writeln!(text, "report: {}", done.folder.join(INDEX_HTML).display());
        }
        output::result(&text);
    }

    /// Whether this was not said last time of the same files. What is printed may go to a file of the project, which is no
    /// YAML; a YAML file was saved by somebody who waits for an answer.
    fn is_news(&mut self, files: &BTreeSet<String>, why: &str) -> bool {
        let now = Some((files.clone(), why.to_owned()));
        let is_news = self.idle != now || files.iter().any(|file| is_yaml(file));
        self.idle = now;
        is_news
    }

    /// Loads the project and runs; the next change may mend a mistake.
    fn carried_out<T>(&mut self, run: impl FnOnce(&Suite, &RunOptions) -> Result<T, Problem>) -> Result<T, Problem> {
        let (given, mut read) = (self.given, None);
        let done = load(&given.select).and_then(|suite| {
            let options = RunOptions {
                selection: selection(&given.select),
                ..bounded(&given.bounds, &given.select, &suite.loaded().project)?
            };
            let suite = read.insert(suite);
            run(suite, &options)
        });
        self.loaded = read;
        done
    }

    /// Prints one line for each trial whose verdict changed, and stores the verdicts.
    fn compare(&mut self, evaluation: &Evaluation) -> Vec<String> {
        let mut lines = Vec::new();
        let mut others = 0;
        for trial in evaluation.trials.iter() {
            let id = trial.id.to_string();
            let before = self.verdicts.insert(id.clone(), trial.verdict);
            if before == Some(trial.verdict) || before.is_none() && trial.verdict == Verdict::Pass {
                continue;
            }
            if lines.len() >= SHOWN {
                others += 1;
                continue;
            }
            let missed = trial.checks.iter().find(|check| !check.passed);
            let why = match (trial.verdict, missed) {
                (Verdict::Pass, _) => String::new(),
                (_, Some(check)) => format!(": {}: {}", check.what, check.seen),
                (_, None) => format!(": {}", trial.error),
            };
            let was = before.map_or_else(String::new, |before| format!(" (was {})", before.as_str()));
            lines.push(format!("  {}{was} {}{}\n", trial.verdict.as_str(), id, quote(&why, 200)));
        }
        if others > 0 {
            lines.push(format!("  and {} with another verdict\n", plural(others, "trial")));
        }
        if lines.is_empty() {
            lines.push("  no verdict changed\n".to_owned());
        }
        lines
    }
}
