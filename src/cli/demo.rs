//! `ragcheck demo`: a finished project in a temporary folder, replayed from its recordings. Each of its questions was asked
//! three times, so that a flake and a real break can be told apart.

use super::arguments::Demo;
use super::exit::Exit;
use super::output::{self, Problem};
use super::starter;
use crate::gate::{Evaluation, Verdict};
use crate::platform::files;
use crate::suite::{RunOptions, Suite};
use crate::trace::INDEX_HTML;
use crate::trace::text::{line, plural, shell_word};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder of its own for the demo, below the machine's temporary one. Created before access to files is restricted.
pub(super) fn folder() -> Result<PathBuf, Problem> {
    let mut name = [0; 6];
    getrandom::fill(&mut name).map_err(|why| format!("no random name for a folder: {why}"))?;
    let folder = std::env::temp_dir().join(format!("ragcheck-demo-{}", hex::encode(name)));
    files::create_private_dir(&folder).map_err(|why| Problem::unwritten(&folder, &why))?;
    Ok(folder)
}

/// Runs `ragcheck demo` in the current folder, which is the demo's own and empty. Its failures are the demonstration, so they do not
/// decide the exit code.
///
/// # Errors
/// If the project cannot be written or run.
pub(super) fn run(given: &Demo) -> Result<Exit, Problem> {
    let folder = super::select::current_folder()?;
    for (path, text) in starter::demo_files() {
        output::write(&folder.join(path), text)?;
    }
    let run = Suite::load(&folder, &[], None)?.run(&RunOptions::default())?;
    let page = run.folder.join(INDEX_HTML);
    let opened = if !given.no_open && open(&page) { " (opened in your browser)" } else { "" };
    let cases = counted(&run.evaluated.evaluation);
    let shown = Demonstrated { project: folder.display().to_string(), report: page.display().to_string(), cases };
    output::data(given.format, &shown, |Demonstrated { project, report, cases }| {
        format!(
            "The assistant of a bicycle hire: each question was asked three times, and is replayed from recordings.\n\n{}\n\
             project: {project}\nreport: {report}{opened}\n\n{}",
            told_apart(cases),
            next(&folder, cases)
        )
    })?;
    Ok(Exit::Passed)
}

/// What `demo` shows.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Demonstrated {
    /// Folder of the project.
    pub project: String,
    /// The report.
    pub report: String,
    /// The cases.
    pub cases: Vec<Case>,
}

/// How often a case passed.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Case {
    /// `scenario/case`.
    pub name: String,
    /// Number of its trials.
    pub trials: usize,
    /// Number of those that passed: a flake passes sometimes, a real break never.
    pub passed: usize,
    /// Id of its first trial that did not pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Why that one did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

fn counted(evaluation: &Evaluation) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for trial in evaluation.trials.iter() {
        let id: &str = &trial.id;
        let name = id.rsplit_once('/').map_or(id, |(case, _)| case);
        if cases.last().is_none_or(|last| last.name != name) {
            cases.push(Case { name: name.to_owned(), trials: 0, passed: 0, failed: None, why: None });
        }
        let Some(case) = cases.last_mut() else { continue };
        case.trials += 1;
        if trial.verdict == Verdict::Pass {
            case.passed += 1;
        } else {
            case.failed.get_or_insert_with(|| id.to_owned());
        }
    }
    let causes = || evaluation.gates.iter().chain(&evaluation.criteria).flat_map(|row| &row.causes);
    for case in &mut cases {
        let cause = causes().find(|cause| Some(&cause.first.trial) == case.failed.as_ref());
        case.why = cause.map(|cause| cause.first.note.clone());
    }
    cases
}

/// One paragraph for each case that does not always pass, and the number of the others.
fn told_apart(cases: &[Case]) -> String {
    let mut text = String::new();
    let (failed, whole): (Vec<_>, Vec<_>) = cases.iter().partition(|case| case.failed.is_some());
    for case in failed {
        let what = if case.passed == 0 { "a real break: it never passes" } else { "a flake: it passes sometimes" };
        let _ = writeln!(text, "  {}: {} of {} passed, {what}", case.name, case.passed, case.trials);
        if let Some(why) = &case.why {
            let _ = writeln!(text, "    {}", line(why));
        }
    }
    text + &format!("  {} passed every time\n", plural(whole.len(), "other case"))
}

/// Commands to go on with.
fn next(folder: &Path, cases: &[Case]) -> String {
    let never = cases.iter().filter(|case| case.passed == 0).find_map(|case| case.failed.as_deref());
    let show = never.map(|trial| format!("  ragcheck show {}\n", shell_word(trial))).unwrap_or_default();
    format!(
        "next:\n  cd {}\n{show}  ragcheck init --agent 'python agent.py'   # a project for an agent of yours, or its URL\n  \
         ragcheck init my-project                 # a project like this one, with questions and documents of yours\n",
        shell_word(&folder.display().to_string())
    )
}

/// Opens a page in the browser that BROWSER names, else in the system's if somebody sits at a terminal. Returns whether
/// the browser was started.
fn open(page: &Path) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let mut command = match set("BROWSER") {
        Some(browser) => Command::new(browser),
        None if !std::io::stdout().is_terminal() => return false,
        None if cfg!(target_os = "macos") => Command::new("open"),
        None if cfg!(windows) => Command::new("explorer"),
        None if set("DISPLAY").or_else(|| set("WAYLAND_DISPLAY")).is_none() => return false,
        None => Command::new("xdg-open"),
    };
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
}
