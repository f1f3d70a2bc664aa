//! `ragcheck run`: runs a suite, prints its verdicts, and compares it with a baseline.

use super::arguments::{Arguments, Command, Detail, FailOn, ReportFile, Run};
use super::base_commit::base_commit;
use super::compare::{self, Side};
use super::decidable::unknown_ratings;
use super::exit::Exit;
use super::history;
use super::mcp_server::charged_by;
use super::output::{self, Problem};
use super::progress::ProgressLine;
use super::score::print;
use super::select::{bounded, load, reports_folder, selection, unless_newest};
use super::watch::watch;
use crate::gate::Verdict;
use crate::plan::{Hold, Plan};
use crate::platform::{files, secrets, yaml};
use crate::report::{self, DecidedExit, Format};
use crate::settings::DeclaredFault;
use crate::settings::fault::FaultFile;
use crate::suite::evaluation::EvaluatedRun;
use crate::suite::recordings::Catalogue;
use crate::suite::{FinishedRun, HistoryPoint, Mode, RunOptions, StoppedRun, Suite};
use crate::trace;
use crate::trace::text::{listed, plural, shell_word};
use crate::trial::Opened;
use crate::trial::run::JournalError;
use clap::Parser;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of unused exchanges and missing trials listed.
const SHOWN: usize = 5;

pub(super) fn run(given: &Run) -> Result<Exit, Problem> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if given.resume && names_no_run(&words) {
        let reports = given.bounds.report_dir.clone().unwrap_or_else(reports_folder);
        let (begun, words) = begun(&reports)?;
        return typed(&begun, &words);
    }
    typed(given, &words)
}

/// Whether a command says at most in which folder the run is that it resumes.
fn names_no_run(words: &[String]) -> bool {
    let Some((run, more)) = words.split_first() else { return false };
    let left: Vec<&String> =
        more.iter().filter(|word| *word != "--resume" && !word.starts_with("--report-dir=")).collect();
    run == "run" && (left.is_empty() || left.len() == 2 && left[0] == "--report-dir")
}

/// Runs the arguments, typed now or when the run was begun; `words` are the same as text.
fn typed(given: &Run, words: &[String]) -> Result<Exit, Problem> {
    if given.mode == Mode::Replay && !given.label.is_empty() {
        return Err(Problem::Words(
            "--label names a point of the history, and a replay adds none: its recording is one already; `ragcheck history add RUN --label …` adds one afterwards".into(),
        ));
    }
    if given.watch {
        return watch(given);
    }
    let labels = history::labels(&given.label)?;
    let format = given.verbose.of(given.format);
    if given.comparing.fail_on.is_some() && given.baseline.is_none() {
        return Err(Problem::Words(
            "--fail-on needs --baseline RUN|FILE: a regression is one against something".into(),
        ));
    }
    let reports = given.bounds.report_dir.clone().unwrap_or_else(reports_folder);
    let failed =
        given.failed.as_deref().map(|run| if run == Path::new("latest") { reports.join(run) } else { run.to_owned() });
    let baseline = given.baseline.as_deref().map(|named| Side::read(named, None)).transpose()?;
    if given.mode != Mode::Replay && given.base_commit.is_some() {
        return Err(Problem::Words(
            "--base-commit names the recordings that a replay depends on; this run records or asks the providers"
                .into(),
        ));
    }
    if given.mode == Mode::Record && given.faults.is_some() {
        return Err(Problem::Words(
            "--faults strikes a replay or a live run: recorded, its conversations would replace those without a fault; \
             `ragcheck faults --mode record` records in lanes of their own"
                .into(),
        ));
    }
    if let Some(base) = &baseline {
        compare::possible(&base.summary, &given.comparing, given.mode == Mode::Live)?;
    }
    let mut suite = load(&given.select)?;
    if given.charged_by.as_ref().is_some_and(|digest| *digest != charged_by(&suite.loaded().project)) {
        return Err(Problem::Words(
            "prices or providers of the project changed after the server checked them: --max-cost would count by others".into(),
        ));
    }
    if let Some(file) = &given.faults {
        suite = suite.with_faults(&faults_in(file)?);
    }
    if let Some(partition) = given.partition {
        let (plan, _) = suite.plan(&selection(&given.select), given.select.seed)?;
        // A merge names what is missing: an empty partition is no failure of its machine.
        if (Plan { partition: given.partition, ..plan }).narrowed().trials.is_empty() {
            output::remark(&format!(
                "note: no trial is in partition {partition}: nothing was run, and nothing is written"
            ));
            return Ok(Exit::Passed);
        }
    }
    if baseline.is_some() && given.comparing.fail_on == Some(FailOn::Flip) && given.mode == Mode::Live {
        let (plan, _) = suite.plan(&selection(&given.select), given.select.seed)?;
        compare::repeated(&plan)?;
    }
    let file = given.baseline.as_ref().map(|named| named.rsplit_once('@').map_or(named.as_str(), |(run, _)| run));
    let file = given.baseline.iter().map(String::as_str).chain(file).map(Path::new).find(|file| file.exists());
    let base = given.base_commit.as_ref().map(|named| base_commit(named, suite.loaded(), file)).transpose()?;
    let hold = (!given.hold.is_empty() || given.from.is_some()).then(|| Hold {
        services: given.hold.clone(),
        on_new: given.on_new,
        from: given.from,
    });
    let options = RunOptions {
        base,
        mode: given.mode,
        hold,
        selection: selection(&given.select),
        failed,
        resume: given.resume,
        partition: given.partition,
        until_decided: given.until_decided,
        max_trials: given.max_trials,
        // The merged run is the point of a history.
        history: (!given.no_history && given.partition.is_none()).then_some(labels),
        for_comparison: baseline.is_some(),
        ..bounded(&given.bounds, &given.select, &suite.loaded().project)?
    };
    let unmatched = &suite.loaded().unmatched;
    if !unmatched.is_empty() {
        let files = listed(unmatched, SHOWN);
        output::remark(&format!("note: no pattern in `scenarios` of ragcheck.yaml matches {files}: not run"));
    }
    if options.mode != Mode::Replay && !options.resume {
        // An unreadable one is reported when it is to be resumed.
        for (begun, folder) in crate::trial::run::unfinished(&reports).unwrap_or_default().into_iter().take(1) {
            output::remark(&format!(
                "note: `{}`, begun at {}, is not finished ({}): `{}` goes on with it",
                begun.command(),
                begun.at,
                folder.display(),
                resume(given.bounds.report_dir.as_deref())
            ));
        }
    }
    let earlier = catalogue(&suite, given);
    let carried_out = carry_out(&suite, &options, format, Some(words));
    if let Some(file) = &given.spent_file {
        output::write(file, &format!("{}\n", options.progress.spent()))?;
    }
    let (mut done, exit) = carried_out?;
    for (earlier, now) in earlier.iter().zip(catalogue(&suite, given)) {
        now.changes_since(earlier).iter().for_each(|line| output::remark(&format!("note: {line}")));
    }
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
    // If only changes were to decide, the criteria on the whole run do not.
    let alone = given.comparing.fail_on == Some(FailOn::Flip) && matches!(exit, Exit::Failed | Exit::Undecided);
    let (end, why) = match &compared {
        Ok((change, found)) => {
            let end = if alone { *change } else { exit.worse(*change) };
            (end, compare::decided(found, &given.comparing, *change))
        }
        Err(problem) => (problem.exit(), Some("the comparison with the baseline could not be made".to_owned())),
    };
    // If the two sides cannot be compared, this side's reports are still written.
    let failed = compared.map(|(_, comparison)| done.evaluated.compare_with(comparison)).err();
    if let Some(why) = why {
        keep(&mut done, DecidedExit { exit_code: end.code(), why })?;
    }
    show(&done, &options, format, Some(words));
    write_reports(&given.report, &done.evaluated)?;
    failed.map_or(Ok(end), Err)
}

/// The tools of recorded MCP servers, for a run that records.
fn catalogue(suite: &Suite, given: &Run) -> Option<Catalogue> {
    let (plan, _) =
        suite.plan(&selection(&given.select), given.select.seed).ok().filter(|_| given.mode == Mode::Record)?;
    let opened = Opened::new(Arc::clone(suite.loaded()), &plan).ok()?;
    Some(Catalogue::recorded(&opened, &plan))
}

/// Reads a file of faults.
fn faults_in(file: &Path) -> Result<Vec<DeclaredFault>, Problem> {
    let shown = file.display();
    let text = files::read_to_string(file).map_err(|why| format!("--faults: {shown} cannot be read: {why}"))?;
    let read: FaultFile = yaml::read(&text).map_err(|why| {
        let place = why.place.map(|place| format!(":{}:{}", place.line, place.column)).unwrap_or_default();
        format!("--faults: {shown}{place}: {why}; `faults:` is a list as in a case of a scenario")
    })?;
    let mistakes = read.faults.iter().enumerate().find_map(|(index, fault)| Some((index + 1, fault.mistake()?)));
    match mistakes {
        Some((number, (key, why))) => Err(format!("--faults: {shown}, fault {number}, `{key}`: {why}").into()),
        None => Ok(read.faults),
    }
}

/// Removes the exit decision of an equal run, which has the same folder and may have ended differently.
pub(super) fn forget_exit(folder: &Path) -> Result<(), Problem> {
    let decided = folder.join(trace::EXIT_CODE);
    match files::remove_file(&decided) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => Err(Problem::unwritten(&decided, &why)),
        _ => Ok(()),
    }
}

/// Stores the exit decision of the run, for reports made from its folder later, and writes its files with it.
pub(super) fn keep(done: &mut FinishedRun, decided: DecidedExit) -> Result<(), Problem> {
    let file = done.folder.join(trace::EXIT_CODE);
    let text = serde_json::to_string_pretty(&decided).map_err(|why| why.to_string())?;
    files::replace(&file, trace::seal(&text).0 + "\n").map_err(|why| Problem::unwritten(&file, &why))?;
    done.evaluated.ends_with(decided);
    done.evaluated.write(&done.folder).map_err(|why| Problem::unwritten(&done.folder, &why))
}

/// Writes the requested reports, each atomically.
pub(super) fn write_reports(wanted: &[ReportFile], evaluated: &EvaluatedRun) -> Result<(), Problem> {
    for ReportFile { format, file } in wanted {
        let unwritten = |why: std::io::Error| Problem::unwritten(file, &why);
        let of_criteria = |one: &&Format| format != "csv" || one.file == trace::CRITERIA_CSV;
        let Some(maker) = report::named(format).find(of_criteria) else { continue };
        let mut bytes = Vec::new();
        (maker.write)(&evaluated.view(), &mut bytes).map_err(unwritten)?;
        let bytes = secrets::clean_text_bytes(&bytes);
        let above = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = above.filter(|folder| !folder.is_dir()) {
            files::create_dir_all(folder).map_err(unwritten)?;
        }
        files::write(file, bytes).map_err(unwritten)?;
        output::remark(&format!("{format}: {}", file.display()));
    }
    Ok(())
}

/// Arguments of the newest unfinished run, with `--resume` added, and as they were typed. Global options (`--trust`, `--agent`, `--allow-path`)
/// must be given again: a file of the project cannot grant them.
fn begun(reports: &Path) -> Result<(Run, Vec<String>), Problem> {
    let unfinished = crate::trial::run::unfinished(reports).map_err(|why| why.to_string())?;
    let Some((begun, _)) = unfinished.into_iter().next() else {
        return Err(Problem::Words(JournalError::Nothing { reports: reports.to_owned() }.to_string()));
    };
    output::remark(&format!("resuming `{}`, begun at {}", begun.command(), begun.at));
    let typed = std::iter::once("ragcheck").chain(begun.arguments.iter().map(String::as_str));
    match Arguments::try_parse_from(typed).map(|arguments| arguments.command) {
        Ok(Command::Run(typed)) => Ok((Run { resume: true, ..typed }, begun.arguments)),
        // `cassette refresh` records what is missing: repeating it resumes.
        _ => Err(Problem::Words(format!("--resume: repeat `{}`, it goes on where it stopped", begun.command()))),
    }
}

/// Runs a suite and prints its results. `typed` are the words of a `ragcheck run` that can be repeated.
pub(super) fn carry_out(
    suite: &Suite,
    options: &RunOptions,
    format: Detail,
    typed: Option<&[String]>,
) -> Result<(FinishedRun, Exit), Problem> {
    let line = ProgressLine::begin(&options.progress, options.mode);
    let done = suite.run(options);
    drop(line);
    let done = done?;
    forget_exit(&done.folder)?;
    done.notes.iter().for_each(|note| output::remark(note));
    if let Some(note) = &suite.loaded().unrated {
        output::remark(&format!("note: {}: {}", note.file, note.message));
    }
    let plan = done.evaluated.plan();
    // A part has no trials for the ratings of the rest.
    if let Some(note) = unknown_ratings(suite.loaded(), plan)
        && suite.loaded().paths.is_empty()
        && plan.part.is_none()
        && plan.partition.is_none()
    {
        output::remark(&format!("note: {}", note.message));
    }
    if !options.for_comparison {
        show(&done, options, format, typed);
    }
    if let Some(remark) = unused(&done.unused) {
        output::remark(&remark);
    }
    match &done.history {
        HistoryPoint::NotAsked | HistoryPoint::Added => {}
        HistoryPoint::NoPoint(why) => output::remark(&format!("note: the run was not added to the history: {why}")),
        HistoryPoint::Failed(why) => {
            let labels = options.history.iter().flatten().map(|(key, value)| format!("--label={key}={value}"));
            let again = ["ragcheck", "history", "add"].map(str::to_owned).into_iter();
            let again = again.chain([done.folder.display().to_string()]).chain(labels).map(|word| shell_word(&word));
            let again = again.collect::<Vec<_>>().join(" ");
            output::remark(&format!("warning: the run was not added to the history: {why}; fix it, then `{again}`"));
        }
    }
    if let Some(remark) = options.ages.and_then(|ages| ages.remark(&done.old)) {
        output::remark(&remark);
    }
    if let Some(stopped) = &done.stopped {
        output::remark(&missing(stopped, &resume(options.reports.as_deref())));
    }
    let exit = Exit::of_code(done.evaluated.evaluation.exit_code);
    Ok((done, exit))
}

/// Prints the result, what to do, and how to run again what did not pass. With a baseline, this waits for the comparison, which
/// may decide the exit code.
fn show(done: &FinishedRun, options: &RunOptions, format: Detail, typed: Option<&[String]>) {
    let again = if done.stopped.is_some() {
        Some(resume(options.reports.as_deref()))
    } else {
        typed.and_then(|typed| run_again(done, options.mode, typed))
    };
    print(&done.evaluated, format, &done.folder, again.as_deref());
    // The list of what to do has this command for what was down.
    let is_shown = matches!(format, Detail::Brief | Detail::Whole) && done.stopped.is_none();
    if let Some(again) = again.filter(|_| is_shown && !report::resumes(&done.evaluated.view())) {
        output::result(&format!(
            "run again: {again}\n           a judged trial keeps its first draw: this decides only those without a verdict\n"
        ));
    }
}

/// The command that runs again what did not pass in a live or recording run; `None` if there is nothing to run again, or a replay
/// would only repeat itself.
fn run_again(done: &FinishedRun, mode: Mode, typed: &[String]) -> Option<String> {
    // New draws of all trials do not explain failures: only trials that did not pass are rerun, and they keep their
    // first draw.
    let missed = done.evaluated.evaluation.trials.iter().any(|trial| trial.verdict != Verdict::Pass);
    let until_decided = typed.iter().any(|word| word == "--until-decided");
    if mode == Mode::Replay || !missed || until_decided || done.stopped.is_some() {
        return None;
    }
    Some(again(typed, unless_newest(&done.folder).as_deref()))
}

/// The command line that was `typed`, limited to trials that did not pass in the newest complete run or in the folder `of`.
fn again(typed: &[String], of: Option<&Path>) -> String {
    let lasting = |word: &&String| !word.starts_with("--folder-file=") && *word != "--resume";
    let mut words: Vec<String> = typed.iter().filter(lasting).cloned().collect();
    if !words.iter().any(|word| word.starts_with("--failed") || word == "--until-decided") {
        words.push(of.map_or_else(|| "--failed".to_owned(), |folder| format!("--failed={}", folder.display())));
    }
    let plain = |word: &str| word.chars().all(|one| one.is_ascii_alphanumeric() || "-_./=:@,%+".contains(one));
    let quoted = |word: String| if plain(&word) { word } else { format!("'{}'", word.replace('\'', "'\\''")) };
    std::iter::once("ragcheck".to_owned()).chain(words.into_iter().map(quoted)).collect::<Vec<_>>().join(" ")
}

/// The command that goes on with the newest unfinished run below `reports`, if that is not the usual folder.
fn resume(reports: Option<&Path>) -> String {
    let folder = reports.map(|folder| format!(" --report-dir {}", shell_word(&folder.display().to_string())));
    format!("ragcheck run --resume{}", folder.unwrap_or_default())
}

/// Trials missing from a run that ended early, and the command that runs them.
fn missing(stopped: &StoppedRun, resume: &str) -> String {
    let StoppedRun { reason, missing, planned } = stopped;
    let mut lines = vec![format!("stopped: {reason}; {} of {planned} trials are missing:", missing.len())];
    lines.extend(first(missing));
    lines.push(format!("finished trials are kept; `{resume}` runs the others"));
    lines.join("\n")
}

/// Recorded exchanges that no trial used; `None` if all were used.
pub(super) fn unused(unused: &[String]) -> Option<String> {
    let what = if unused.len() == 1 { "was" } else { "were" };
    let mut lines = vec![format!("note: {} {what} not asked for:", plural(unused.len(), "recorded exchange"))];
    lines.extend(first(unused));
    (!unused.is_empty()).then(|| lines.join("\n"))
}

fn first(all: &[String]) -> impl Iterator<Item = String> {
    let more = (all.len() > SHOWN).then(|| format!("  and {} more", all.len() - SHOWN));
    all.iter().take(SHOWN).map(|one| format!("  {one}")).chain(more)
}
