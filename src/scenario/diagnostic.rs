//! Mistakes in user files as plain data; the command line renders them in one place.
//!
//! Checks produce [`Mistake`]s that give a place as a path in the document (`cases[3].expect`). Only if there is one
//! is the file read again as a tree with positions, which turns the path into line and column of a [`Diagnostic`].

use crate::platform::bounds::Bound;
use crate::platform::yaml::{self, Node, Problem, ReadError};
pub(crate) use crate::platform::yaml::{Focus, Place, Step};
use schemars::JsonSchema;
use serde::Serialize;

/// Severity of a diagnostic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Must be fixed: exit code 2.
    #[default]
    Error,
    /// For information; never changes the exit code.
    Note,
}

/// One error or note for the author of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnostic {
    /// Error or note.
    pub severity: Severity,
    /// Stable identifier of the kind of mistake, `unknown-flow` for example.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// The file, relative to the project, with forward slashes; empty if no file is concerned.
    pub file: String,
    /// Line and column, if it concerns one place.
    pub place: Option<Place>,
    /// The source line.
    pub source_line: Option<String>,
    /// Text printed at the place: the suggested word, the known words.
    pub label: Option<String>,
    /// Suggested fixes, one per line.
    pub help: Vec<String>,
}

/// Renders diagnostics as plain lines for an error message: `file:line:column: what`; the command line renders them
/// in full.
pub(crate) fn listed(diagnostics: &[Diagnostic]) -> String {
    let one = |one: &Diagnostic| match (one.file.is_empty(), one.place) {
        (true, _) => one.message.clone(),
        (false, None) => format!("{}: {}", one.file, one.message),
        (false, Some(place)) => format!("{}:{}:{}: {}", one.file, place.line, place.column, one.message),
    };
    diagnostics.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// Longest source line that is quoted, in bytes: a file of one line would otherwise be quoted whole for each mistake.
const LONGEST_LINE: usize = 20_000;

impl Diagnostic {
    /// Creates an error about a whole file, or about none if `file` is empty.
    pub fn error(code: &'static str, file: &str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), file: file.to_owned(), ..Self::default() }
    }

    /// Creates a note about a whole file.
    pub fn note(code: &'static str, file: &str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::error(code, file, message) }
    }

    /// Converts an error of the YAML reader.
    pub(super) fn misread(error: &ReadError, file: &str, text: &str) -> Self {
        let (code, label) = match &error.problem {
            Problem::UnknownKey { key, known } => ("unknown-key", Some(did_you_mean(key, known.iter().copied()))),
            Problem::UnknownWord { word, known } => ("unknown-word", Some(did_you_mean(word, known.iter().copied()))),
            Problem::MissingKey(_) => ("missing-key", None),
            Problem::RepeatedKey(_) => ("duplicate-key", Some("remove one of the two".to_owned())),
            Problem::WrongType { .. } | Problem::NotBoolean | Problem::KeyNotText => ("wrong-type", None),
            Problem::TooLarge => ("too-large", None),
            Problem::SeveralDocuments | Problem::Empty | Problem::Syntax(_) => ("syntax", None),
        };
        let diagnostic = Self { label, ..Self::error(code, file, error.to_string()) };
        match error.place {
            Some(place) => diagnostic.in_yaml(text, place),
            None => diagnostic,
        }
    }

    /// Adds a line of help.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// Like [`Self::at`] in a YAML text, whose lines may end with a carriage return alone.
    #[must_use]
    pub fn in_yaml(self, text: &str, place: Place) -> Self {
        if !text.contains('\r') {
            return self.at(text, place);
        }
        self.at(&text.replace("\r\n", "\n").replace('\r', "\n"), place)
    }

    /// Sets the place in `text`, whose lines end with line feeds, and quotes its line.
    #[must_use]
    pub fn at(mut self, text: &str, place: Place) -> Self {
        let line = text.lines().nth(place.line.saturating_sub(1) as usize).unwrap_or_default();
        let rest = (line.chars().count() as u32).saturating_sub(place.column.saturating_sub(1));
        self.place = Some(Place { length: place.length.clamp(1, rest.max(1)), ..place });
        self.source_line = (line.len() <= LONGEST_LINE).then(|| line.to_owned());
        self
    }
}

/// Path of the value under check: a linked list on the stack, copied only for a mistake.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    parent: Option<&'a At<'a>>,
    step: Option<Segment<'a>>,
}

#[derive(Debug, Clone, Copy)]
enum Segment<'a> {
    Key(&'a str),
    Index(usize),
}

impl<'a> At<'a> {
    /// The document's root.
    pub(crate) const ROOT: At<'static> = At { parent: None, step: None };

    /// Descends into a map.
    #[must_use]
    pub(crate) fn key(&'a self, key: &'a str) -> At<'a> {
        At { parent: Some(self), step: Some(Segment::Key(key)) }
    }

    /// Descends into a list.
    #[must_use]
    pub(crate) fn index(&'a self, index: usize) -> At<'a> {
        At { parent: Some(self), step: Some(Segment::Index(index)) }
    }

    /// Returns the whole path.
    pub(crate) fn path(&self) -> Vec<Step> {
        let mut steps = self.parent.map_or_else(Vec::new, At::path);
        match self.step {
            Some(Segment::Key(key)) => steps.push(Step::Key(key.to_owned())),
            Some(Segment::Index(index)) => steps.push(Step::Index(index)),
            None => {}
        }
        steps
    }
}

/// A mistake with a path instead of a line and column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// What is told; its file is set last, and its place, unless it is known already.
    pub(super) told: Diagnostic,
    pub(super) path: Vec<Step>,
    pub(super) focus: Focus,
    pub(super) quote: bool,
}

impl Mistake {
    /// Creates an error at the value that `at` names.
    pub(crate) fn at(at: At<'_>, code: &'static str, message: impl Into<String>) -> Self {
        Self { told: Diagnostic::error(code, "", message), path: at.path(), focus: Focus::Value, quote: true }
    }

    /// Creates an error at a known place.
    pub(crate) fn placed(place: Place, code: &'static str, message: impl Into<String>) -> Self {
        let mistake = Self::at(At::ROOT, code, message);
        Self { told: Diagnostic { place: Some(place), ..mistake.told }, ..mistake }
    }

    /// Points at the key instead of the value.
    #[must_use]
    pub(crate) fn on_key(mut self) -> Self {
        self.focus = Focus::Key;
        self
    }

    /// Points into the value's text.
    #[must_use]
    pub(crate) fn within(mut self, start: usize, length: usize) -> Self {
        self.focus = Focus::Within(start, length);
        self
    }

    /// Makes it a note.
    #[must_use]
    pub(crate) fn into_note(mut self) -> Self {
        self.told.severity = Severity::Note;
        self
    }

    /// Message, label and help as one line, for use without a source file.
    pub(crate) fn sentence(&self) -> String {
        let Diagnostic { message, label, help, .. } = &self.told;
        let parts = std::iter::once(message).chain(label).chain(help);
        parts.map(String::as_str).collect::<Vec<_>>().join("; ")
    }

    /// Sets the text printed at the place.
    #[must_use]
    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.told.label = Some(label.into());
        self
    }

    /// Adds a line of help.
    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.told.help.push(help.into());
        self
    }

    /// Omits the source line, which may hold a secret.
    #[must_use]
    pub(crate) fn without_quote(mut self) -> Self {
        self.quote = false;
        self
    }

    /// Locates it in a file; `root` is the file read as a tree, unless the place is known.
    pub(super) fn diagnose(self, file: &str, text: &str, root: Option<&Node<'_>>) -> Diagnostic {
        let place = self.told.place.or_else(|| root.map(|root| root.locate(&self.path, self.focus)));
        let mut diagnostic = Diagnostic { file: file.to_owned(), ..self.told };
        if let Some(place) = place {
            diagnostic = diagnostic.in_yaml(text, place);
        }
        if !self.quote {
            diagnostic.source_line = None;
        }
        diagnostic
    }
}

/// Locates every mistake; reads the file as a tree only if there is one.
pub(crate) fn diagnose(mistakes: Vec<Mistake>, file: &str, text: &str) -> Vec<Diagnostic> {
    if mistakes.is_empty() {
        return Vec::new();
    }
    let root = yaml::parse(text).ok();
    diagnose_in(mistakes, 0, file, text, root.as_ref())
}

/// Locates mistakes in a file already read as a tree; `unkept` counts those found but not listed.
pub(super) fn diagnose_in(
    mistakes: Vec<Mistake>,
    unkept: usize,
    file: &str,
    text: &str,
    root: Option<&Node<'_>>,
) -> Vec<Diagnostic> {
    let most = Bound::Mistakes.most_in_memory();
    let left = mistakes.get(most..).unwrap_or_default();
    let more = left.first().map(|first| {
        let wrong = left.iter().any(|mistake| mistake.told.severity == Severity::Error);
        let severity = if wrong { Severity::Error } else { Severity::Note };
        let message = format!("{} more mistakes from here on are not listed", left.len() + unkept);
        let place = first.told.place;
        let told = Diagnostic { severity, place, ..Diagnostic::error("more-mistakes", "", message) };
        Mistake { told, ..first.clone() }.help(format!("correct these first; {}", Bound::Mistakes.advice()))
    });
    let told = mistakes.into_iter().take(most).chain(more);
    told.map(|mistake| mistake.diagnose(file, text, root)).collect()
}

/// The nearest known word, if one is close enough.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let bound = (word.chars().count() / 3).clamp(1, 4);
    let wanted = word.to_lowercase();
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| {
            *distance <= bound
                || (wanted.len() >= 4 && (candidate.starts_with(&wanted) || wanted.starts_with(candidate)))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `did you mean …? known: …`, at most a dozen words.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let mut shown = known.iter().take(12).copied().collect::<Vec<_>>().join(", ");
    if known.len() > 12 {
        shown.push_str(", …");
    }
    match (nearest(word, known.iter().copied()), known.is_empty()) {
        (_, true) => "none is known".into(),
        (Some(meant), false) => format!("did you mean `{meant}`? known: {shown}"),
        (None, false) => format!("known: {shown}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_suggested_and_a_far_one_is_not() {
        assert_eq!(nearest("two-stag", ["tool-rag", "two-stage"]), Some("two-stage"));
        assert_eq!(nearest("expects", ["expect", "about"]), Some("expect"));
        assert_eq!(nearest("zebra", ["expect", "about"]), None);
        assert_eq!(did_you_mean("x", []), "none is known");
    }

    #[test]
    fn a_place_points_into_the_line_even_when_the_text_is_shorter() {
        let place = Place { line: 2, column: 4, length: 99 };
        let diagnostic = Diagnostic::error("x", "a.yaml", "wrong").at("a: 1\nbcd: 22\n", place);
        assert_eq!(diagnostic.source_line.as_deref(), Some("bcd: 22"));
        assert_eq!(diagnostic.place.map(|place| place.length), Some(4));
    }

    #[test]
    fn a_line_of_yaml_is_quoted_whichever_line_ends_are_before_it() {
        let place = Place { line: 3, column: 4, length: 1 };
        for text in ["a: 1\rb: 2\rc: 3\r", "a: 1\r\nb: 2\rc: 3"] {
            let told = Diagnostic::error("x", "a.yaml", "wrong").in_yaml(text, place);
            assert_eq!(told.source_line.as_deref(), Some("c: 3"), "{text:?}");
        }
    }
}
