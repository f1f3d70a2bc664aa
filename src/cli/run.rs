//! `ragcheck run`: run a suite, print its verdicts, compare it with a baseline.

use super::arguments::{Arguments, Command, Mode as TypedMode, Printed, ReportFile, Run};
use super::base_commit::base_commit;
use super::compare::{self, Side};
use super::exit::Exit;
use super::history;
use super::output::{self, Problem};
use super::progress::ProgressLine;
use super::runs_arguments::FailOn;
use super::score::print;
use super::select::{bounded, load, newest_run, reports_folder, selection};
use super::watch::watch;
use crate::gate::Verdict;
use crate::history::HISTORY;
use crate::platform::files;
use crate::platform::secrets;
use crate::report::{self, DecidedExit, Format};
use crate::suite::evaluation::EvaluatedRun;
use crate::suite::{FinishedRun, HistoryPoint, Mode, RunOptions, StoppedRun, Suite};
use crate::trace::{self, text::plural};
use crate::trial::run::JournalError;
use clap::Parser;
use std::io;
use std::path::{Path, PathBuf};

/// Unused exchanges and missing trials that are named.
const SHOWN: usize = 5;

/// Does what `ragcheck run` was asked to.
///
/// # Errors
/// When nothing could be run at all.
pub(super) fn run(given: &Run) -> Result<Exit, Problem> {
    if given.resume && std::env::args_os().skip(1).eq(["run", "--resume"]) {
        return typed(&begun(&reports_folder())?);
    }
    typed(given)
}

/// Does what was typed, now or when the run was begun.
fn typed(given: &Run) -> Result<Exit, Problem> {
    if given.mode == TypedMode::Replay && !given.label.is_empty() {
        return Err(Problem::Words(
            "--label names a point of the history, and a replay adds none: its recording is one already; `ragcheck history add RUN --label …` adds one afterwards".into(),
        ));
    }
    if given.watch {
        return watch(given);
    }
    let labels = history::labels(&given.label)?;
    if given.comparing.fail_on.is_some() && given.baseline.is_none() {
        return Err(Problem::Words(
            "--fail-on needs --baseline RUN|FILE: a regression is one against something".into(),
        ));
    }
    let reports = given.bounds.report_dir.clone().unwrap_or_else(reports_folder);
    let failed =
        given.failed.as_deref().map(|run| if run == Path::new("latest") { reports.join(run) } else { run.to_owned() });
    let baseline = given.baseline.as_deref().map(|named| Side::read(named, None)).transpose()?;
    if given.mode != TypedMode::Replay && given.base_commit.is_some() {
        return Err(Problem::Words(
            "--base-commit tells which recordings a replay rests on; this run records or asks the providers".into(),
        ));
    }
    let suite = load(&given.select)?;
    let base = given.base_commit.as_ref().map(|named| base_commit(named, suite.loaded())).transpose()?;
    let options = RunOptions {
        base,
        mode: match given.mode {
            TypedMode::Replay => Mode::Replay,
            TypedMode::Record => Mode::Record,
            TypedMode::Live => Mode::Live,
        },
        selection: selection(&given.select),
        failed,
        resume: given.resume,
        until_decided: given.until_decided,
        max_trials: given.max_trials,
        history: (!given.no_history).then_some(labels),
        for_comparison: baseline.is_some(),
        ..bounded(&given.bounds, &given.select, &suite.loaded().project)?
    };
    if options.mode != Mode::Replay && !options.resume {
        // One that cannot be read is told when somebody wants to go on with it.
        for (begun, folder) in crate::trial::run::unfinished(&reports).unwrap_or_default().into_iter().take(1) {
            output::remark(&format!(
                "note: `{}`, begun at {}, is not finished ({}): `ragcheck run --resume` goes on with it",
                begun.command(),
                begun.at,
                folder.display()
            ));
        }
    }
    let (mut done, exit) = carry_out(&suite, &options, given.format)?;
    if let Some(file) = &given.folder_file {
        let folder = files::resolved(&done.folder).unwrap_or_else(|_| done.folder.clone());
        files::write(file, format!("{}\n", folder.display())).map_err(|why| Problem::unwritten(file, &why))?;
    }
    let Some(baseline) = baseline else {
        write_reports(&given.report, &done.evaluated)?;
        return Ok(exit);
    };
    let name = done.folder.file_name().unwrap_or_default().to_string_lossy();
    let summary = done.evaluated.summary(&name).ok_or_else(|| "the run kept no figures to compare".to_owned())?;
    let linked = done.evaluated.linked(&done.folder, crate::trace::COMPARISON_HTML).map_err(|why| why.to_string())?;
    let this = Side::of_run(summary, &done.folder, linked);
    let compared = compare::conclude(&baseline, &this, &given.comparing, given.format, false);
    // Asked for what changed alone, what the criteria say of the whole does not decide.
    let alone = given.comparing.fail_on == Some(FailOn::Flip) && matches!(exit, Exit::Failed | Exit::Undecided);
    let (end, why) = match &compared {
        Ok((change, _)) => {
            let end = if alone { *change } else { exit.worse(*change) };
            (end, compare::decided(&given.comparing, *change).map(str::to_owned))
        }
        Err(problem) => (problem.exit(), Some("the comparison with the baseline could not be made".to_owned())),
    };
    if let Some(why) = why {
        keep(&mut done, DecidedExit { exit_code: end.code(), why })?;
    }
    // Two sides that cannot be compared are no reason to lose the reports of this one.
    let failed = compared.map(|(_, comparison)| done.evaluated.compare_with(comparison)).err();
    write_reports(&given.report, &done.evaluated)?;
    failed.map_or(Ok(end), Err)
}

/// Keeps what the run ends with, for the reports that are made of its folder later.
fn keep(done: &mut FinishedRun, decided: DecidedExit) -> Result<(), Problem> {
    let file = done.folder.join(trace::EXIT_CODE);
    let text = serde_json::to_string_pretty(&decided).map_err(|why| why.to_string())?;
    files::replace(&file, trace::seal(&text).0 + "\n").map_err(|why| Problem::unwritten(&file, &why))?;
    done.evaluated.ends_with(decided);
    Ok(())
}

/// Writes the reports that were asked for, each whole or not at all.
pub(super) fn write_reports(wanted: &[ReportFile], evaluated: &EvaluatedRun) -> Result<(), Problem> {
    for ReportFile { format, file } in wanted {
        let unwritten = |why: std::io::Error| Problem::unwritten(file, &why);
        let of_criteria = |one: &&dyn Format| format != "csv" || one.file() == trace::CRITERIA_CSV;
        let Some(maker) = report::named(format).find(of_criteria) else { continue };
        let mut bytes = Vec::new();
        maker.write(&evaluated.view(), &mut bytes).map_err(unwritten)?;
        let bytes = if format == "json" { secrets::clean_bytes(&bytes) } else { secrets::clean_text_bytes(&bytes) };
        let above = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = above.filter(|folder| !folder.is_dir()) {
            files::create_dir_all(folder).map_err(unwritten)?;
        }
        files::write(file, bytes).map_err(unwritten)?;
        output::remark(&format!("{format}: {}", file.display()));
    }
    Ok(())
}

/// What was typed for the newest unfinished run, with `--resume`. Options that are for the whole program (`--trust`,
/// `--agent`, `--allow-path`) are whoever's who types them now: a file of the project does not give them.
fn begun(reports: &Path) -> Result<Run, Problem> {
    let unfinished = crate::trial::run::unfinished(reports).map_err(|why| why.to_string())?;
    let Some((begun, _)) = unfinished.into_iter().next() else {
        return Err(Problem::Words(JournalError::Nothing { reports: reports.to_owned() }.to_string()));
    };
    output::remark(&format!("resuming `{}`, begun at {}", begun.command(), begun.at));
    let typed = std::iter::once("ragcheck").chain(begun.arguments.iter().map(String::as_str));
    match Arguments::try_parse_from(typed).map(|arguments| arguments.command) {
        Ok(Command::Run(typed)) => Ok(Run { resume: true, ..typed }),
        // `cassette refresh` records what lacks a recording: repeated, it goes on by itself.
        _ => Err(Problem::Words(format!("--resume: repeat `{}`, it goes on where it stopped", begun.command()))),
    }
}

/// Runs a suite and prints what it showed.
///
/// # Errors
/// When nothing could be run at all.
pub(super) fn carry_out(suite: &Suite, options: &RunOptions, format: Printed) -> Result<(FinishedRun, Exit), Problem> {
    let line = ProgressLine::begin(&options.progress, options.mode);
    let done = suite.run(options);
    drop(line);
    let done = done?;
    // An equal run has the same folder, and may have ended otherwise.
    let decided = done.folder.join(trace::EXIT_CODE);
    if let Err(why) = files::remove_file(&decided)
        && why.kind() != io::ErrorKind::NotFound
    {
        return Err(Problem::unwritten(&decided, &why));
    }
    done.notes.iter().for_each(|note| output::remark(note));
    print(&done.evaluated, format, &done.folder);
    if let Some(remark) = unused(&done.unused) {
        output::remark(&remark);
    }
    match &done.history {
        HistoryPoint::NotAsked => {}
        HistoryPoint::Added => {
            let reports = done.folder.parent().unwrap_or(Path::new("."));
            if let Err(why) = history::refresh_page(&suite.loaded().root.join(HISTORY), reports) {
                output::remark(&format!("warning: the page of the history is as it was: {why}"));
            }
        }
        HistoryPoint::NoPoint(why) => output::remark(&format!("note: the run was not added to the history: {why}")),
        HistoryPoint::Failed(why) => output::remark(&format!(
            "warning: the run was not added to the history: {why}; fix it, then `ragcheck history add reports/latest`"
        )),
    }
    if let Some(remark) = options.ages.and_then(|ages| ages.remark(&done.old)) {
        output::remark(&remark);
    }
    if let Some(next) = next_steps(&done, format) {
        output::result(&next);
    }
    if let Some(stopped) = &done.stopped {
        output::remark(&missing(stopped));
    }
    let exit = Exit::of_code(done.evaluated.evaluation.exit_code);
    Ok((done, exit))
}

/// After a run whose trials did not all pass, for people: the command that shows the first that did not, and the one that
/// runs what did not pass again.
fn next_steps(done: &FinishedRun, format: Printed) -> Option<String> {
    let evaluation = &done.evaluated.evaluation;
    let rows = || evaluation.criteria.iter().chain(&evaluation.gates).filter(|row| row.required);
    // A trial that fails its case goes before one that fails a criterion.
    let trial =
        evaluation.trials.iter().find(|trial| trial.verdict == Verdict::Fail).map(|trial| trial.id.into_owned());
    let trial = trial.or_else(|| {
        let failing = rows().filter(|row| row.verdict == Verdict::Fail);
        failing.flat_map(|row| &row.violations).next().map(|violation| violation.trial.clone())
    });
    // One that could not be run comes last: its cause was printed with what to do.
    let trial = trial.or_else(|| Some(evaluation.errors.first()?.trials.first()?.clone()));
    let trial = trial.filter(|_| format == Printed::Human)?;
    let newest = newest_run(None);
    let is_newest = files::resolved(&newest).ok() == files::resolved(&done.folder).ok();
    let shown = if is_newest { trial } else { relative(&done.folder).join(&trial).display().to_string() };
    let again = again(is_newest && evaluation.trials.iter().any(|trial| trial.verdict != Verdict::Pass));
    Some(format!("see why:   ragcheck show {shown}\nrun again: {again}\n"))
}

/// A folder as it is typed from here.
fn relative(folder: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    folder.strip_prefix(&here).unwrap_or(folder).to_owned()
}

/// What was typed; where the run is the newest whole one, only for what did not pass in it.
fn again(failed: bool) -> String {
    let typed = std::env::args().skip(1).filter(|word| !word.starts_with("--folder-file="));
    let mut words: Vec<String> = typed.collect();
    if failed && !words.iter().any(|word| word.starts_with("--failed") || word == "--until-decided") {
        words.push("--failed".to_owned());
    }
    let plain = |word: &str| word.chars().all(|one| one.is_ascii_alphanumeric() || "-_./=:@,%+".contains(one));
    let quoted = |word: String| if plain(&word) { word } else { format!("'{}'", word.replace('\'', "'\\''")) };
    std::iter::once("ragcheck".to_owned()).chain(words.into_iter().map(quoted)).collect::<Vec<_>>().join(" ")
}

/// What a run that was ended early lacks, and how to get it.
fn missing(stopped: &StoppedRun) -> String {
    let StoppedRun { reason, missing, planned } = stopped;
    let mut lines = vec![format!("stopped: {reason}; {} of {planned} trials are missing:", missing.len())];
    lines.extend(first(missing));
    lines.push("finished trials are kept; `ragcheck run --resume` runs the others".to_owned());
    lines.join("\n")
}

/// Recorded exchanges that no trial asked for; `None` when all were.
fn unused(unused: &[String]) -> Option<String> {
    let what = if unused.len() == 1 { "was" } else { "were" };
    let mut lines = vec![format!("note: {} {what} not asked for:", plural(unused.len(), "recorded exchange"))];
    lines.extend(first(unused));
    (!unused.is_empty()).then(|| lines.join("\n"))
}

fn first(all: &[String]) -> impl Iterator<Item = String> {
    let more = (all.len() > SHOWN).then(|| format!("  and {} more", all.len() - SHOWN));
    all.iter().take(SHOWN).map(|one| format!("  {one}")).chain(more)
}
