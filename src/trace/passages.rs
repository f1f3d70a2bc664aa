//! The whole text of retrieved passages, stored beside the traces: `passages.jsonl`, one [`PassageText`] per line.
//!
//! A trace keeps the beginning of each passage, and in [`Searched`] the name of its whole text: 16 hex digits of
//! SHA-256 over base, id, title and text. Equal passages of all trials share one line, in the order in which the
//! plan's trials found them. A line whose text does not match its name was edited after the run: it is dropped and
//! reported. Text learned from an external service is stored whole in the trace that learned it.
//!
//! The file holds at most [`Bound::FoundPassagesSize`] bytes; later passages are dropped and counted. A reader
//! ignores unknown members and rejects a newer version; a run folder of an older build has no such file, and readers
//! then show the excerpts in the trace.

use super::{Hit, Seal, SearchResult, ToolResult, Trace, folder, seal, sealed};
use crate::platform::bounds::Bound;
use crate::platform::files;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, BufReader, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Version of the lines that this build writes.
const VERSION: u32 = 1;

/// Whole passages, one a line.
pub(crate) const PASSAGES: &str = "passages.jsonl";

/// A retrieved passage with its whole text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PassageText {
    /// Its knowledge base.
    pub base: String,
    /// Its id there.
    pub id: String,
    pub title: String,
    pub text: String,
}

/// A passage with its name; the trials that found it share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPassage {
    passage: PassageText,
    name: String,
}

impl NamedPassage {
    /// Creates a passage with the name computed from its text.
    pub fn of(passage: PassageText) -> Self {
        Self { name: passage.name(), passage }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    fn line(&self) -> io::Result<String> {
        let PassageText { base, id, title, text } = self.passage.clone();
        let line =
            serde_json::to_string(&Line { version: VERSION, passage: self.name.clone(), base, id, title, text })?;
        Ok(seal(&line).0 + "\n")
    }
}

impl Deref for NamedPassage {
    type Target = PassageText;

    fn deref(&self) -> &PassageText {
        &self.passage
    }
}

/// The passages of one knowledge base that the searches of a trial found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Searched {
    /// The base, by the name that the scenario gives it.
    pub base: String,
    /// By id, the name of the whole text in `passages.jsonl`.
    pub passages: BTreeMap<String, String>,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    version: u32,
    passage: String,
    base: String,
    id: String,
    title: String,
    text: String,
}

/// The file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {why}", file.display(), line.map_or(String::new(), |line| format!(": line {line}")))]
pub struct PassagesError {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1, where it is one.
    pub line: Option<usize>,
    /// The reason.
    pub why: String,
}

/// A line that is no passage.
#[derive(Debug, thiserror::Error)]
enum LineError {
    #[error("not a passage: {0}")]
    Parse(#[from] serde_json::Error),
    #[error("passage format {0} is newer than this build reads ({VERSION}); update ragcheck")]
    Newer(u32),
}

impl PassageText {
    /// Its name: a digest of its content.
    pub fn name(&self) -> String {
        let mut hash = Sha256::new();
        for part in [&self.base, &self.id, &self.title, &self.text] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        hex::encode(&hash.finalize()[..8])
    }
}

/// Writes passages, each once, as long as there is room.
#[derive(Debug)]
pub(crate) struct PassageWriter<W> {
    out: W,
    named: HashSet<String>,
    room: u64,
    left_out: usize,
}

impl<W: Write> PassageWriter<W> {
    /// Creates a writer to a file that already holds `there`.
    pub(crate) fn new(out: W, there: &Passages) -> Self {
        let room = Bound::FoundPassagesSize.most().saturating_sub(there.size);
        Self { out, named: there.known.keys().cloned().collect(), room, left_out: 0 }
    }

    /// Writes the new ones; returns whether there were any.
    pub(crate) fn add(&mut self, passages: &[Arc<NamedPassage>]) -> io::Result<bool> {
        let mut new = false;
        for passage in passages {
            if self.named.contains(passage.name()) {
                continue;
            }
            self.named.insert(passage.name().to_owned());
            let line = passage.line()?;
            let Some(room) = self.room.checked_sub(line.len() as u64) else {
                self.left_out += 1;
                continue;
            };
            self.out.write_all(line.as_bytes())?;
            (self.room, new) = (room, true);
        }
        Ok(new)
    }

    /// Where they are written to.
    pub(crate) fn out(&mut self) -> &mut W {
        &mut self.out
    }

    /// Number of passages dropped for lack of room, each counted once.
    pub(crate) fn left_out(&self) -> usize {
        self.left_out
    }
}

/// Whole passages, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Passages {
    known: HashMap<String, Arc<NamedPassage>>,
    /// Bytes of the lines that are whole.
    size: u64,
    edited: bool,
}

impl Passages {
    /// Reads the passages of a run folder whose names `wanted` accepts; empty if the file does not exist.
    ///
    /// # Errors
    /// If the file cannot be read, is larger than [`Bound::FoundPassagesSize`], or holds something else.
    pub(crate) fn read(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<Self, PassagesError> {
        let file = folder.join(PASSAGES);
        let mut read = Self::default();
        let input = match files::open(&file) {
            Ok(input) => input,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(read),
            Err(error) => return Err(PassagesError { file, line: None, why: error.to_string() }),
        };
        let mut input = BufReader::with_capacity(1 << 18, input);
        for number in 1.. {
            let wrong = |why: String| PassagesError { file: file.clone(), line: Some(number), why };
            let mut line = Vec::new();
            let length = folder::read_line(&mut input, &mut line).map_err(|error| wrong(error.to_string()))?;
            if length == 0 {
                break;
            }
            read.size += length as u64;
            let bound = Bound::FoundPassagesSize;
            if read.size > bound.most() {
                return Err(PassagesError { file, line: None, why: bound.exceeded().to_string() });
            }
            let text = std::str::from_utf8(&line).map_err(|error| wrong(error.to_string()))?;
            if !text.trim().is_empty() {
                read.take(text, &wanted).map_err(|why| wrong(why.to_string()))?;
            }
        }
        Ok(read)
    }

    /// Reads the file of a killed process up to the first incomplete line, with the number of bytes read.
    pub(crate) fn whole(file: &Path) -> io::Result<(Self, u64)> {
        let mut read = Self::default();
        let mut input = match files::open(file) {
            Ok(input) => BufReader::with_capacity(1 << 18, input),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((read, 0)),
            Err(error) => return Err(error),
        };
        loop {
            let mut line = Vec::new();
            let length = folder::read_line(&mut input, &mut line)?;
            let text = std::str::from_utf8(&line).ok().filter(|text| text.ends_with('\n'));
            if text.is_none_or(|text| read.take(text, &|_| true).is_err()) {
                let size = read.size;
                return Ok((read, size));
            }
            read.size += length as u64;
        }
    }

    fn take(&mut self, text: &str, wanted: &impl Fn(&str) -> bool) -> Result<(), LineError> {
        let line: Line = serde_json::from_str(text)?;
        let Line { version, passage, base, id, title, text: whole } = line;
        if version > VERSION {
            return Err(LineError::Newer(version));
        }
        let found = NamedPassage::of(PassageText { base, id, title, text: whole });
        if sealed(text) != Seal::Whole || found.name != passage {
            self.edited = true;
        } else if wanted(&passage) {
            self.known.insert(passage, Arc::new(found));
        }
        Ok(())
    }

    /// Whether lines were edited by hand after they were written.
    pub(crate) fn are_edited(&self) -> bool {
        self.edited
    }

    /// Names of a trace's passages that are not here, though there was room for them.
    pub(crate) fn lacks<'t>(&self, trace: &'t Trace) -> impl Iterator<Item = &'t String> {
        // What was left out for lack of room is shorter than all that was written.
        let is_full = self.size > Bound::FoundPassagesSize.most() / 2;
        let names = trace.passages.iter().flat_map(|searched| searched.passages.values());
        names.filter(move |name| !is_full && !self.known.contains_key(*name))
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&PassageText> {
        self.known.get(name).map(|named| &named.passage)
    }

    /// Passages found by the searches of a trial, by base and id.
    pub(crate) fn of(&self, trace: &Trace) -> Vec<Arc<NamedPassage>> {
        let names = trace.passages.iter().flat_map(|searched| searched.passages.values());
        names.filter_map(|name| self.known.get(name).cloned()).collect()
    }

    /// The whole text of a hit: that of its passage or, for a learned entry, the external answer.
    pub(crate) fn text_of<'a>(&'a self, trace: &'a Trace, search: &SearchResult, hit: &Hit) -> Option<&'a str> {
        if let Some(learned) = &hit.learned {
            return trace.external_answer(learned.conversation, &learned.result);
        }
        Some(&self.get(trace.passage_name(&search.kb_id, &hit.id)?)?.text)
    }
}

impl Trace {
    /// Results of the searches, in order.
    pub fn searches(&self) -> impl Iterator<Item = &SearchResult> {
        let given = self.events.iter().filter_map(|event| event.what.given());
        given.filter_map(|result| if let ToolResult::Search(search) = result { Some(search) } else { None })
    }

    /// The name of the whole text of a passage found by a search in `kb_id`; an unknown `kb_id` means the first base.
    pub fn passage_name(&self, kb_id: &str, id: &str) -> Option<&str> {
        let named = self.passages.iter().find(|searched| searched.base == kb_id);
        let searched = named.or_else(|| self.passages.first())?;
        searched.passages.get(id).map(String::as_str)
    }

    /// Whether a passage of that name is no longer than the excerpt of a hit.
    pub(crate) fn is_named(&self, name: &str, hit: &Hit) -> bool {
        self.passages.iter().any(|searched| {
            let (base, id) = (searched.base.clone(), hit.id.clone());
            PassageText { base, id, title: hit.title.clone(), text: hit.excerpt.clone() }.name() == name
        })
    }

    /// The external answer of that name in a conversation.
    pub(crate) fn external_answer(&self, conversation: u32, result: &str) -> Option<&str> {
        let events = self.events.iter().filter(|event| event.conversation == conversation);
        let mut answers = events.filter_map(|event| event.what.given()?.external());
        answers.find(|found| found.result == result).map(|found| found.answer.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(id: &str, text: &str) -> Arc<NamedPassage> {
        let (base, title) = ("desk".into(), "Pumps".into());
        Arc::new(NamedPassage::of(PassageText { base, id: id.into(), title, text: text.into() }))
    }

    fn written(passages: &[Arc<NamedPassage>]) -> Vec<u8> {
        let mut writer = PassageWriter::new(Vec::new(), &Passages::default());
        writer.add(passages).expect("written");
        writer.out
    }

    fn read(text: &[u8]) -> Result<Passages, PassagesError> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(PASSAGES), text).expect("a file");
        Passages::read(folder.path(), |_| true)
    }

    #[test]
    fn equal_passages_are_one_line_and_come_back_by_their_names() {
        let (one, other) = (passage("a#1", "whole\ntext"), passage("a#1", "another text"));
        let text = written(&[one.clone(), other.clone(), one.clone()]);
        assert_eq!(String::from_utf8_lossy(&text).lines().count(), 2);
        let passages = read(&text).expect("reads");
        assert_eq!((passages.get(one.name()), passages.get(other.name())), (Some(&**one), Some(&**other)));
        assert!(!passages.are_edited());
        assert_eq!(read(b"").expect("an empty file"), Passages::default());
        let folder = tempfile::tempdir().expect("a folder");
        assert!(Passages::read(folder.path(), |_| true).expect("no file").is_empty());
    }

    #[test]
    fn an_edited_passage_is_left_out_and_told_and_a_newer_or_foreign_line_is_refused() {
        let one = passage("a#1", "two years");
        let text = String::from_utf8(written(std::slice::from_ref(&one))).expect("UTF-8");
        let edited = read(text.replace("two years", "ten years").as_bytes()).expect("reads");
        assert!(edited.are_edited() && edited.is_empty());
        // Sealed anew, and still not what the trace names.
        let body = text.replace("two years", "ten years");
        let body = body.split(",\"digest\"").next().expect("a body").to_owned() + "}";
        let resealed = read(seal(&body).0.as_bytes()).expect("reads");
        assert!(resealed.are_edited() && resealed.is_empty());
        let newer =
            read(text.replace("\"version\":1", "\"version\":2").as_bytes()).expect_err("is refused").to_string();
        assert!(newer.contains("passages.jsonl: line 1: passage format 2 is newer"), "{newer}");
        let foreign = read(b"[]\n").expect_err("is refused").to_string();
        assert!(foreign.contains("line 1: not a passage"), "{foreign}");
    }

    #[test]
    fn what_a_killed_process_wrote_is_read_up_to_the_line_that_was_cut() {
        let text = written(&[passage("a#1", "one"), passage("a#2", "two")]);
        let first = text.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(PASSAGES);
        for cut in first..text.len() {
            std::fs::write(&file, &text[..cut]).expect("a file");
            let (passages, whole) = Passages::whole(&file).expect("reads");
            assert_eq!((passages.known.len(), whole), (1, first as u64), "cut at {cut}");
        }
        assert_eq!(Passages::whole(&folder.path().join("none")).expect("no file").1, 0);
    }
}
