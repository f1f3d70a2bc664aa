//! Grades of answers, beside the traces: `grades.jsonl`, one [`Grade`] a line.
//!
//! Opinions of a model about an answer are stored once, with their evidence; metrics and reports read them without
//! another request. A grade belongs to one answer: the line holds its digest, so that grades of another run are
//! rejected. A reader rejects a newer version and ignores unknown fields of an equal one.

use super::{Answer, Event, Seal, Trace, is_zero, seal, sealed};
use crate::platform::files;
use crate::platform::words;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

/// Version of the lines that this build writes.
pub(crate) const GRADE_VERSION: u32 = 1;

/// Grades of answers, one row each.
pub(crate) const GRADES: &str = "grades.jsonl";

/// Kind of grader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GradeKind {
    /// A model by a rubric.
    #[default]
    Model,
}

words! {
    /// Grade of an answer by one item.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum GradeValue {
        /// It passes, in both orders of the items.
        Pass = "pass",
        /// It fails, in both orders of the items.
        Fail = "fail",
        /// It passes in one order and fails in the other: no verdict.
        Inconsistent = "inconsistent",
        /// The reply could not be parsed: no verdict.
        Error = "error",
        /// Not graded: nothing was recorded or the model gave no reply. Such a line covers the whole answer and has no
        /// item.
        #[default]
        NotGraded = "not graded",
    }
}

impl GradeValue {
    /// Whether it passes; `None` without a verdict.
    pub fn verdict(self) -> Option<bool> {
        match self {
            Self::Pass => Some(true),
            Self::Fail => Some(false),
            Self::Inconsistent | Self::Error | Self::NotGraded => None,
        }
    }
}

/// One answer graded by one item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grade {
    pub version: u32,
    pub trial: String,
    /// Ordinal of the conversation, from 0.
    pub conversation: u32,
    /// Ordinal of the turn in its conversation, from 0.
    pub turn: u32,
    /// Name of the turn for reports: `turn 2`, or `conversation b, turn 1`.
    pub label: String,
    /// The answer that was graded, by [`answer_digest`].
    pub answer: String,
    /// The item of the rubric; empty for an answer that was not graded.
    pub item: String,
    /// Kind of grader.
    pub kind: GradeKind,
    pub value: GradeValue,
    /// The grader's quotation; empty if none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// Reason why there is no verdict; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub model: String,
    /// Service that answered: `simulator`, or the provider and model; empty for an answer that was not graded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// When the replies were recorded (RFC 3339, UTC); `None` when they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_at: Option<String>,
    /// SHA-256, in hex, of the rubric and its model's settings.
    pub rubric: String,
    /// SHA-256, in hex, of the grader's whole input: the name of its recording.
    pub content: String,
    /// Number of grades in the file; 0 in files of older builds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub of: u32,
}

impl Grade {
    /// Whether both grade the same answer of the same trial.
    pub(crate) fn is_of_answer_of(&self, other: &Self) -> bool {
        (&self.trial, self.conversation, self.turn) == (&other.trial, other.conversation, other.turn)
    }
}

/// The grades of a run by trial, each trial's in the order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grades {
    by_trial: BTreeMap<String, Vec<Grade>>,
    /// Whether the file was edited after it was written.
    edited: bool,
}

/// Grades that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum GradeError {
    /// The file cannot be read.
    #[error("{}: {error}", file.display())]
    File { file: PathBuf, error: io::Error },
    /// A line that is not a grade.
    #[error("{}: line {line}: not a grade: {error}", file.display())]
    Line { file: PathBuf, line: usize, error: serde_json::Error },
    /// Written by a newer build.
    #[error("{}: line {line}: grade format {version} is newer than this build reads ({GRADE_VERSION}); update ragcheck", file.display())]
    Newer { file: PathBuf, line: usize, version: u32 },
}

impl Grades {
    /// Reads the grades of a run folder; empty if the file does not exist.
    pub fn read(folder: &Path) -> Result<Self, GradeError> {
        let file = folder.join(GRADES);
        let input = match files::open(&file) {
            Ok(input) => input,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(GradeError::File { file, error }),
        };
        let (mut grades, mut edited) = (Vec::new(), false);
        for (line, text) in (1..).zip(io::BufReader::new(input).lines()) {
            let text = text.map_err(|error| GradeError::File { file: file.clone(), error })?;
            if text.trim().is_empty() {
                continue;
            }
            let grade: Grade =
                serde_json::from_str(&text).map_err(|error| GradeError::Line { file: file.clone(), line, error })?;
            if grade.version > GRADE_VERSION {
                return Err(GradeError::Newer { file, line, version: grade.version });
            }
            edited |= match sealed(&text) {
                Seal::Whole => false,
                Seal::Edited => true,
                Seal::None => grade.of > 0,
            };
            grades.push(grade);
        }
        // Whole lines may be missing, so each states the total.
        edited |= grades.iter().any(|grade| grade.of > 0 && grade.of as usize != grades.len());
        Ok(Self { edited: edited || grades.is_empty(), ..grades.into_iter().collect() })
    }

    /// Whether their file was edited by hand after it was written.
    pub fn are_edited(&self) -> bool {
        self.edited
    }

    pub fn of_trial(&self, trial: &str) -> &[Grade] {
        self.by_trial.get(trial).map_or(&[], Vec::as_slice)
    }

    /// The trials that have grades.
    pub fn trials(&self) -> impl Iterator<Item = &str> {
        self.by_trial.keys().map(String::as_str)
    }

    /// All grades, by trial.
    pub fn iter(&self) -> impl Iterator<Item = &Grade> {
        self.by_trial.values().flatten()
    }
}

impl FromIterator<Grade> for Grades {
    fn from_iter<I: IntoIterator<Item = Grade>>(grades: I) -> Self {
        let mut by_trial: BTreeMap<String, Vec<Grade>> = BTreeMap::new();
        for grade in grades {
            by_trial.entry(grade.trial.clone()).or_default().push(grade);
        }
        Self { by_trial, edited: false }
    }
}

/// Writes grades, one per line, each with the total and a digest; `clean` removes what must not be written.
pub(crate) fn write_grades(out: &mut dyn Write, grades: &[Grade], clean: impl Fn(&str) -> String) -> io::Result<()> {
    for grade in grades {
        let of = u32::try_from(grades.len()).unwrap_or(u32::MAX);
        let line = clean(&serde_json::to_string(&Grade { of, ..grade.clone() })?);
        out.write_all(seal(&line).0.as_bytes())?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Digest of an answer: the first 16 hex digits of SHA-256 over its text and its sources.
pub(crate) fn answer_digest(answer: &Answer) -> String {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    };
    add(&answer.text);
    for source in &answer.sources {
        add(&source.kind);
        add(&source.id);
    }
    hex::encode(&hash.finalize()[..8])
}

/// The first of these grades that does not belong to an answer of `trace`.
pub(crate) fn grade_of_another<'g>(trace: &Trace, grades: &'g [Grade]) -> Option<&'g Grade> {
    if grades.is_empty() {
        return None;
    }
    let digest = |event: &Event| Some(((event.conversation, event.turn), answer_digest(event.what.answer()?)));
    let answers: BTreeMap<(u32, u32), String> = trace.events.iter().filter_map(digest).collect();
    grades.iter().find(|grade| answers.get(&(grade.conversation, grade.turn)) != Some(&grade.answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grade(trial: &str) -> Grade {
        Grade {
            version: GRADE_VERSION,
            trial: trial.into(),
            conversation: 0,
            turn: 1,
            label: "turn 2".into(),
            answer: "0".repeat(16),
            item: "grounded".into(),
            kind: GradeKind::Model,
            value: GradeValue::Inconsistent,
            evidence: String::new(),
            reason: "it passes only with the items reversed".into(),
            model: "m".into(),
            from: "simulator".into(),
            recorded_at: None,
            rubric: "r".into(),
            content: "c".into(),
            of: 0,
        }
    }

    #[test]
    fn grades_come_back_as_they_were_written_and_newer_ones_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(Grades::read(folder.path()).expect("no file, no grades").trials().next().is_none());
        let written = [grade("a"), grade("b"), Grade { item: "clear".into(), ..grade("a") }];
        let mut text = Vec::new();
        write_grades(&mut text, &written, str::to_owned).expect("written");
        std::fs::write(folder.path().join(GRADES), &text).expect("a file");
        let read = Grades::read(folder.path()).expect("read");
        let of = |grade: &Grade| Grade { of: 3, ..grade.clone() };
        assert_eq!(read.of_trial("a"), [of(&written[0]), of(&written[2])]);
        assert!(!read.are_edited());
        let lines = std::str::from_utf8(&text).expect("UTF-8");
        let shorter = lines.lines().take(2).collect::<Vec<_>>().join("\n");
        for edited in [lines.replacen("only with", "only w/o", 1), shorter, String::new()] {
            std::fs::write(folder.path().join(GRADES), &edited).expect("a file");
            assert!(Grades::read(folder.path()).expect("read").are_edited(), "{edited}");
        }
        assert_eq!((read.of_trial("c"), read.iter().count()), (&[][..], 3));
        let newer = String::from_utf8(text).expect("UTF-8").replacen("\"version\":1", "\"version\":2", 1);
        std::fs::write(folder.path().join(GRADES), newer).expect("a file");
        assert!(matches!(Grades::read(folder.path()), Err(GradeError::Newer { line: 1, version: 2, .. })));
        std::fs::write(folder.path().join(GRADES), "{}\n").expect("a file");
        let why = Grades::read(folder.path()).expect_err("no grade").to_string();
        assert!(why.contains("grades.jsonl: line 1: not a grade"), "{why}");
    }
}
