//! Prints all output: results to stdout, everything else to stderr, without declared secrets. On GitHub, quoted text
//! cannot act as a workflow command.

use super::arguments::Printed;
use super::exit::Exit;
use super::workflow_commands;
use crate::compare::CompareError;
use crate::history::HistoryError;
use crate::knowledge::KnowledgeError;
use crate::platform::files::{self, LockError};
use crate::platform::secrets;
use crate::scenario::Diagnostic;
use crate::simulator::BehaviourError;
use crate::suite::SuiteError;
use crate::suite::evaluation::ScoreError;
use crate::suite::recordings::{DiffError, FileError};
use crate::suite::review::RatingsError;
use crate::trial::SetupError;
use serde::Serialize;
use std::borrow::Cow;
use std::error::Error;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Why a subcommand failed.
#[derive(Debug)]
pub(super) enum Problem {
    /// All mistakes in files.
    Diagnostics(Vec<Diagnostic>),
    /// Any other error: what, where, what to do.
    Words(String),
    /// The run ended before its last trial.
    Incomplete(String),
    /// A result could not be written.
    Unwritten(String),
}

/// Writes a file of a project, and the folders above it.
///
/// # Errors
/// [`Problem::Unwritten`] if that fails.
pub(super) fn write(file: &Path, text: &str) -> Result<(), Problem> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let made = folder.map_or(Ok(()), files::create_dir_all);
    made.and_then(|()| files::write(file, text.as_bytes())).map_err(|why| Problem::unwritten(file, &why))
}

impl Problem {
    /// Error for a file that could not be written.
    pub(super) fn unwritten(file: &Path, why: &std::io::Error) -> Self {
        Self::Unwritten(format!("{} cannot be written: {why}", file.display()))
    }

    /// An error whose message is complete: a result could not be written if its cause is a full disk.
    pub(super) fn of(error: &(dyn Error + 'static)) -> Self {
        let words = error.to_string();
        if files::is_full_disk(error) { Self::Unwritten(words) } else { Self::Words(words) }
    }

    /// Exit code of the problem.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Diagnostics(_) | Self::Words(_) => Exit::Usage,
            Self::Incomplete(_) => Exit::Incomplete,
            Self::Unwritten(_) => Exit::Unwritten,
        }
    }
}

impl From<String> for Problem {
    fn from(words: String) -> Self {
        Self::Words(words)
    }
}

impl From<SuiteError> for Problem {
    fn from(error: SuiteError) -> Self {
        match error {
            SuiteError::Files(mistakes) => Self::Diagnostics(mistakes),
            ended @ (SuiteError::Interrupted { .. } | SuiteError::Stopped(_) | SuiteError::NoCase { .. }) => {
                Self::Incomplete(ended.to_string())
            }
            beside @ SuiteError::Unlisted(_) => Self::Unwritten(beside.to_string()),
            other => Self::of(&other),
        }
    }
}

impl From<RatingsError> for Problem {
    fn from(error: RatingsError) -> Self {
        match error {
            RatingsError::Table(mistakes) => Self::Diagnostics(mistakes),
            other @ RatingsError::File { .. } => Self::of(&other),
        }
    }
}

/// Converts errors whose message is complete.
macro_rules! in_words {
    ($($error:ty),*) => {$(
        impl From<$error> for Problem {
            fn from(error: $error) -> Self {
                Self::of(&error)
            }
        }
    )*};
}

in_words!(
    LockError, ScoreError, SetupError, FileError, DiffError, CompareError, BehaviourError, KnowledgeError, HistoryError
);

impl From<Vec<Diagnostic>> for Problem {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        Self::Diagnostics(diagnostics)
    }
}

/// First error while printing a result.
static UNPRINTED: OnceLock<std::io::Error> = OnceLock::new();

/// Prints a result. An error is stored for [`printed`], so that the remaining work is still done.
pub(super) fn result(text: &str) {
    print(anstream::stdout(), heeded(&secrets::clean(text)).as_bytes());
}

/// Prints a JSON result.
pub(super) fn json(text: &str) {
    let text = secrets::clean(text);
    let text = if workflow_commands::are_read() { workflow_commands::broken_json(&text) } else { text };
    print(std::io::stdout(), text.as_bytes());
}

/// Prints data as JSON, or as `human` writes it.
pub(super) fn data<T: Serialize>(format: Printed, data: &T, human: impl FnOnce(&T) -> String) -> Result<(), Problem> {
    match format {
        Printed::Human => result(&human(data)),
        Printed::Json => data_as_json(data)?,
    }
    Ok(())
}

/// Prints data as JSON.
pub(super) fn data_as_json<T: Serialize>(data: &T) -> Result<(), Problem> {
    let text = serde_json::to_string_pretty(data).map_err(|why| format!("the result cannot be printed: {why}"))?;
    json(&format!("{text}\n"));
    Ok(())
}

/// Prints a report; annotations are workflow commands on purpose, and escape their messages.
pub(super) fn report(bytes: &[u8], format: &str) {
    match std::str::from_utf8(bytes) {
        Ok(text) if format == "json" => json(text),
        Ok(text) if format != "annotations" => print(std::io::stdout(), heeded(&secrets::clean(text)).as_bytes()),
        _ => print(std::io::stdout(), &secrets::clean_text_bytes(bytes)),
    }
}

/// The text with workflow commands neutralised, if a GitHub runner reads the output.
pub(super) fn heeded(text: &str) -> Cow<'_, str> {
    if workflow_commands::are_read() { workflow_commands::broken(text) } else { Cow::Borrowed(text) }
}

fn print(mut out: impl Write, bytes: &[u8]) {
    if STDOUT_WAS_CLOSED.load(Ordering::Relaxed) {
        note(Err(std::io::Error::other("stdout is closed")));
    } else {
        note(out.write_all(bytes).and_then(|()| out.flush()));
    }
}

/// Whether stdout was closed at process start. Rust's runtime replaces it with `/dev/null` before `main`, after which a
/// lost result could not be detected.
static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Checks whether stdout is open; must be called before Rust's runtime reopens closed descriptors.
pub fn look_at_stdout() {
    let open = Path::new("/proc/self/fd");
    STDOUT_WAS_CLOSED.store(open.is_dir() && !open.join("1").is_symlink(), Ordering::Relaxed);
}

fn note(printed: std::io::Result<()>) {
    if let Err(error) = printed {
        let _ = UNPRINTED.set(error);
    }
}

/// Whether every result was printed; prints the error if not. A closed pipe (`ragcheck list | head`) is not an error.
pub(super) fn printed() -> Exit {
    match UNPRINTED.get() {
        None => Exit::Passed,
        Some(error) => {
            if error.kind() != std::io::ErrorKind::BrokenPipe {
                remark(&format!("error: the result cannot be printed: {error}"));
            }
            Exit::Unwritten
        }
    }
}

/// Prints a progress remark to stderr.
pub(super) fn remark(text: &str) {
    let _ = writeln!(anstream::stderr(), "{}", heeded(&secrets::clean(text)));
}

/// Prints why a subcommand failed.
pub(super) fn problem(problem: &Problem) {
    match problem {
        Problem::Diagnostics(diagnostics) => {
            remark(&super::diagnostic::text(diagnostics, false));
            annotate(diagnostics);
        }
        Problem::Words(words) | Problem::Incomplete(words) | Problem::Unwritten(words) => {
            remark(&format!("error: {words}"));
        }
    }
}

/// Prints mistakes in files as annotations on stderr, if a GitHub runner reads the output.
pub(super) fn annotate(diagnostics: &[Diagnostic]) {
    if workflow_commands::are_read() {
        let text = super::diagnostic::annotations(diagnostics);
        let _ = std::io::stderr().write_all(secrets::clean(&text).as_bytes());
    }
}

/// Whether stdout is a terminal with colours enabled.
pub(super) fn coloured() -> bool {
    coloured_by(std::io::stdout().is_terminal(), |name| std::env::var(name).ok())
}

/// `NO_COLOR` takes precedence over `FORCE_COLOR`, and both over the kind of stdout; empty values are ignored.
fn coloured_by(terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    let forced = set("FORCE_COLOR") && variable("FORCE_COLOR").as_deref() != Some("0");
    !set("NO_COLOR") && (forced || terminal)
}

/// Enables colours if the environment forces them, even if stdout is not a terminal.
pub(super) fn heed_colour() {
    if coloured() && !std::io::stdout().is_terminal() {
        anstream::ColorChoice::Always.write_global();
    }
}

/// Output width in columns: the terminal's, else `COLUMNS`, else 120.
pub(super) fn width() -> usize {
    let of_terminal = std::io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
    let said = || std::env::var("COLUMNS").ok()?.trim().parse().ok().filter(|columns| *columns > 0);
    let of_terminal = of_terminal.map(|(terminal_size::Width(columns), _)| usize::from(columns));
    of_terminal.or_else(said).unwrap_or(120)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::MergeError;
    use std::io::{Error as IoError, ErrorKind};

    #[test]
    fn a_full_disk_behind_any_error_means_that_the_result_could_not_be_written_and_a_file_above_a_limit_does_not() {
        let problems = |kind: ErrorKind| {
            let (path, error) = (std::path::PathBuf::from("m"), || IoError::from(kind));
            [
                Problem::from(MergeError::File { path: path.clone(), error: error() }),
                KnowledgeError::Write { path: path.clone(), error: error() }.into(),
                HistoryError::File { path: path.clone(), error: error() }.into(),
                RatingsError::File { file: path.clone(), error: error() }.into(),
                SuiteError::Write { reports: path.clone(), error: error() }.into(),
                SuiteError::GradesWrite { folder: path, error: error() }.into(),
            ]
            .map(|problem| problem.exit())
        };
        assert_eq!(problems(ErrorKind::StorageFull), [Exit::Unwritten; 6]);
        for other in [ErrorKind::NotFound, ErrorKind::PermissionDenied, ErrorKind::FileTooLarge] {
            assert_eq!(problems(other), [Exit::Usage; 6], "{other}");
        }
    }

    #[test]
    fn colours_are_forced_and_forbidden_by_the_environment_and_forbidding_wins() {
        let with = |terminal: bool, set: &[(&str, &str)]| {
            coloured_by(terminal, |name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(with(true, &[]) && !with(false, &[]));
        assert!(with(false, &[("FORCE_COLOR", "1")]) && !with(false, &[("FORCE_COLOR", "0")]));
        assert!(!with(true, &[("NO_COLOR", "1")]) && !with(true, &[("NO_COLOR", "1"), ("FORCE_COLOR", "1")]));
        assert!(with(true, &[("NO_COLOR", "")]));
    }
}
