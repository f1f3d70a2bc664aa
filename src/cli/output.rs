//! The one place that prints: results to stdout, everything else to stderr.

use crate::evaluation::{ScoreError, StopError};
use crate::scenario::Diagnostic;
use std::io::{IsTerminal, Write};

/// Why a subcommand cannot do what was asked.
#[derive(Debug)]
pub enum Problem {
    /// Mistakes in files, all of them.
    Diagnostics(Vec<Diagnostic>),
    /// Anything else, in words: what, where, what to do.
    Words(String),
}

impl From<String> for Problem {
    fn from(words: String) -> Self {
        Self::Words(words)
    }
}

impl From<ScoreError> for Problem {
    fn from(error: ScoreError) -> Self {
        Self::Words(error.to_string())
    }
}

impl From<StopError> for Problem {
    fn from(error: StopError) -> Self {
        match error {
            StopError::Plan(mistakes) => Self::Diagnostics(mistakes),
            other => Self::Words(other.to_string()),
        }
    }
}

impl From<Vec<Diagnostic>> for Problem {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        Self::Diagnostics(diagnostics)
    }
}

/// Prints a result. A reader that went away (`ragcheck list | head`) is no error.
pub fn result(text: &str) {
    let _ = anstream::stdout().write_all(text.as_bytes());
}

/// Prints raw bytes of a report.
pub fn bytes(bytes: &[u8]) {
    let _ = std::io::stdout().write_all(bytes);
}

/// Prints a remark on what is going on.
pub fn remark(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Prints why a subcommand gave up.
pub fn problem(problem: &Problem) {
    match problem {
        Problem::Diagnostics(diagnostics) => remark(&super::diagnostic::text(diagnostics, false)),
        Problem::Words(words) => remark(&format!("error: {words}")),
    }
}

/// Whether stdout is a terminal that wants colours.
pub fn coloured() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Columns to lay a result out in: the terminal's, or 120 where there is none.
pub fn width() -> usize {
    std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|_| coloured()).unwrap_or(120)
}
