//! Scores a run folder in slices: each of several processes examines the traces in one slice of `traces.jsonl`, and one makes the
//! verdict of all without examining a trace again. It reads only the traces whose conversations the page shows.
//!
//! `slices/3-of-8.jsonl` in the run folder holds one JSON value per line: `{"source": …}`, the files that it was made from; a
//! `{"trial": …}` for each trace, in file order; and `{"end": N}` with their number, so that a file that was cut off is noticed.
//! It is for builds of one version, and is removed when the verdict is written.

use super::evaluator::{EvaluatedRun, ExaminedTrace};
use super::requirement_states::digest;
use super::score::{ExaminedLine, OpenedRun, ScoreError, begin, finished, parsed};
use super::windows::{self, Line};
use crate::gate::{Examined, Examiner};
use crate::platform::files;
use crate::platform::lock::lock;
use crate::report::Room;
use crate::trace::text::listed;
use crate::trace::{self, Passages, Trace};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Mutex;

/// Folder of the slices in a run folder.
const FOLDER: &str = "slices";
/// The same while it is removed.
const REMOVED: &str = ".slices";
/// Largest number of slices.
pub(crate) const MOST_SLICES: u32 = 10_000;

/// One of several parts of `traces.jsonl` of about the same size: the lines that begin in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    number: u32,
    of: u32,
}

/// Why a text names no slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write `3/8` for the third of eight slices: from 1 to the number of slices, which is {MOST_SLICES} at most")]
pub struct NoSlice;

impl FromStr for Slice {
    type Err = NoSlice;

    fn from_str(text: &str) -> Result<Self, NoSlice> {
        let (number, of) = text.split_once('/').ok_or(NoSlice)?;
        let (number, of) = number.parse().ok().zip(of.parse().ok()).ok_or(NoSlice)?;
        if (1..=of).contains(&number) && of <= MOST_SLICES { Ok(Self { number, of }) } else { Err(NoSlice) }
    }
}

impl fmt::Display for Slice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.number, self.of)
    }
}

impl Slice {
    fn all(of: u32) -> impl Iterator<Item = Self> {
        (1..=of).map(move |number| Self { number, of })
    }

    fn file(self, folder: &Path) -> PathBuf {
        folder.join(FOLDER).join(format!("{}-of-{}.jsonl", self.number, self.of))
    }

    /// Its bytes in a file of `length` bytes.
    fn range(self, length: u64) -> Range<u64> {
        let edge = |number: u32| (u128::from(length) * u128::from(number) / u128::from(self.of)) as u64;
        edge(self.number - 1)..edge(self.number)
    }
}

/// Why slices cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum SlicesError {
    /// Some were not examined. `slices`: at least one.
    #[error(
        "{} of {} slices of {folder} missing, and nothing was written: examine {them} with `ragcheck score {folder} --slice {first}`",
        slices.len(), slices[0].of, folder = folder.display(), first = slices[0],
        them = listed(slices.iter().map(ToString::to_string), 8)
    )]
    Missing { folder: PathBuf, slices: Vec<Slice> },
    /// One is of other files. `what`: a file of the run folder, or ragcheck.
    #[error("{} was made from another {what}: examine slice {slice} again", file.display())]
    Differs { file: PathBuf, what: String, slice: Slice },
    /// One is cut off or edited.
    #[error("{} is cut off or edited: examine slice {slice} again", file.display())]
    Broken { file: PathBuf, slice: Slice },
    /// One cannot be written.
    #[error("{} cannot be written: {error}", file.display())]
    Unwritten { file: PathBuf, error: io::Error },
}

/// A line of a slice.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Entry<T> {
    /// Digests of files, the length of the traces and the version of ragcheck.
    Source(BTreeMap<String, String>),
    Trial(T),
    End(u64),
}

/// An examined trace.
#[derive(Serialize, Deserialize)]
struct StoredTrial {
    /// Place of its line in `traces.jsonl`.
    start: u64,
    length: u64,
    /// Whether the trace was edited by hand.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    edited: bool,
    examined: Examined,
}

/// What the slices of a run folder are made from. Traces count by their length: reading all of them again would take as long as
/// examining a slice.
fn source(folder: &Path) -> Result<(BTreeMap<String, String>, u64), ScoreError> {
    let mut source = BTreeMap::from([("ragcheck".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]);
    for name in [trace::PLAN, trace::GRADES, trace::PASSAGES] {
        let file = folder.join(name);
        if file.exists() {
            let (_, digest) = digest(&file).map_err(|error| ScoreError::Open { file, error })?;
            source.insert(name.to_owned(), digest);
        }
    }
    let file = folder.join(trace::TRACES);
    let length = files::open(&file).and_then(|traces| Ok(traces.metadata()?.len()));
    let length = length.map_err(|error| ScoreError::Open { file, error })?;
    source.insert(trace::TRACES.to_owned(), length.to_string());
    Ok((source, length))
}

/// Examines the traces of one slice and stores what was found in the run folder; returns their number.
///
/// # Errors
/// If the folder does not hold a readable run, a trace of the slice cannot be examined, or the slice cannot be written.
pub(crate) fn examine_slice(folder: &Path, slice: Slice) -> Result<u64, ScoreError> {
    let OpenedRun { plan, grades, passages, .. } = OpenedRun::read(folder)?;
    let examiner = begin(folder, &plan, grades)?.examiner();
    let (source, length) = source(folder)?;
    let (traces, range) = (folder.join(trace::TRACES), slice.range(length));
    let file = slice.file(folder);
    let unwritten = |error: io::Error| SlicesError::Unwritten { file: file.clone(), error };
    let slices = folder.join(FOLDER);
    let temporary = files::create_dir_all(&slices).and_then(|()| files::temporary_file(&slices)).map_err(unwritten)?;
    let mut out = BufWriter::with_capacity(1 << 20, temporary);
    out.write_all(&line(&Entry::<StoredTrial>::Source(source)).map_err(unwritten)?).map_err(unwritten)?;
    let examine = |found: Line<'_>| {
        let (trace, edited) = parsed(&traces, &found)?;
        let examined = examiner.examine(&trace, &passages.of(&trace));
        let examined = examined.map_err(|error| ScoreError::Evaluation { file: traces.clone(), error })?;
        let (start, length) = (found.start, found.text.len() as u64);
        Ok(line(&Entry::Trial(StoredTrial { start, length, edited, examined })).map_err(unwritten)?)
    };
    let mut number = 0;
    windows::in_order(&traces, range.clone(), examine, |line| {
        number += 1;
        Ok(out.write_all(&line).map_err(unwritten)?)
    })
    .map_err(|error| counted(error, &traces, range.start))?;
    out.write_all(&line(&Entry::<StoredTrial>::End(number)).map_err(unwritten)?).map_err(unwritten)?;
    let whole = out.into_inner().map_err(|error| unwritten(error.into_error()))?;
    whole.sync().and_then(|()| files::persist(whole, &file)).map_err(unwritten)?;
    Ok(number)
}

fn line<T: Serialize>(entry: &Entry<T>) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(entry)?;
    line.push(b'\n');
    Ok(line)
}

/// An error with the number of its line in the file, in place of that in the slice that begins at `start`.
fn counted(mut error: ScoreError, traces: &Path, start: u64) -> ScoreError {
    if let ScoreError::Trace { error, .. } = &mut error
        && let Ok(before) = windows::lines_before(traces, start)
    {
        *error.line_mut() += before;
    }
    error
}

/// Evaluates a run folder from its slices, as [`score`](fn@super::score) does from its traces.
///
/// # Errors
/// If the folder does not hold a readable run, or a slice is missing, cut off or of other files.
pub(crate) fn score_slices(folder: &Path, of: u32) -> Result<EvaluatedRun, ScoreError> {
    let missing: Vec<Slice> = Slice::all(of).filter(|slice| !slice.file(folder).exists()).collect();
    if !missing.is_empty() {
        return Err(SlicesError::Missing { folder: folder.to_owned(), slices: missing }.into());
    }
    let (source, _) = source(folder)?;
    let OpenedRun { plan, grades, passages, mut edits } = OpenedRun::read(folder)?;
    let mut evaluator = begin(folder, &plan, grades)?;
    let (examiner, room, traces) = (evaluator.examiner(), evaluator.room(), Traces::open(folder)?);
    for slice in Slice::all(of) {
        let file = slice.file(folder);
        let broken = || SlicesError::Broken { file: file.clone(), slice };
        let differs = |what: &str| SlicesError::Differs { file: file.clone(), what: what.to_owned(), slice };
        let read = |line: Line<'_>| match serde_json::from_slice(line.text).map_err(|_| broken())? {
            Entry::Source(source) => Ok(Entry::Source(source)),
            Entry::End(number) => Ok(Entry::End(number)),
            Entry::Trial(stored) => {
                let restored = restored(stored, &examiner, &traces, &passages, room.as_ref());
                Ok(Entry::Trial(restored?.ok_or_else(|| differs(trace::TRACES))?))
            }
        };
        let (mut number, mut begun, mut ended) = (0, false, None);
        windows::in_order(&file, 0..u64::MAX, read, |entry| {
            match entry {
                Entry::Source(found) => {
                    let other = source.keys().chain(found.keys()).find(|name| source.get(*name) != found.get(*name));
                    begun = true;
                    return other.map_or(Ok(()), |name| Err(differs(name).into()));
                }
                Entry::Trial(line) => {
                    number += 1;
                    line.add_to(&mut evaluator, &mut edits, folder)?;
                }
                Entry::End(found) => ended = Some(found),
            }
            Ok(())
        })?;
        if !begun || ended != Some(number) {
            return Err(broken().into());
        }
    }
    finished(folder, evaluator.finish(), edits)
}

/// Removes the slices of a run folder.
///
/// # Errors
/// If they cannot be removed.
pub(crate) fn remove_slices(folder: &Path) -> io::Result<()> {
    let removed = folder.join(REMOVED);
    if removed.exists() {
        files::remove_dir_all(&removed)?;
    }
    // All or none of them: what is left by a kill is no set of slices.
    files::rename(folder.join(FOLDER), &removed)?;
    files::remove_dir_all(removed)
}

/// What a stored trial adds to a run; `None` if its trace is needed and is another one.
fn restored(
    StoredTrial { start, length, edited, examined }: StoredTrial,
    examiner: &Examiner<'_>,
    traces: &Traces,
    passages: &Passages,
    room: Option<&Room>,
) -> Result<Option<ExaminedLine>, ScoreError> {
    let examined = examiner.restore(examined);
    let examined = examined.map_err(|error| ScoreError::Evaluation { file: traces.file.clone(), error })?;
    let (id, verdict) = (&examined.result().id, examined.result().verdict);
    let edited = edited.then(|| id.clone());
    if room.is_some_and(|room| room.is_full(verdict) && room.is_unsearchable(verdict)) {
        let examined = ExaminedTrace::restored(examined, None);
        return Ok(Some(ExaminedLine { trace: None, found: Vec::new(), lacking: Vec::new(), examined, edited }));
    }
    let Some(trace) = traces.at(start, length)?.filter(|trace| trace.trial == *id) else { return Ok(None) };
    let (found, examined) = (passages.of(&trace), ExaminedTrace::restored(examined, Some(&trace)));
    let lacking = passages.lacks(&trace).cloned().collect();
    Ok(Some(ExaminedLine { trace: Some(trace), found, lacking, examined, edited }))
}

/// The traces of a run folder, read one by one from any thread.
struct Traces {
    file: PathBuf,
    input: Mutex<File>,
}

impl Traces {
    fn open(folder: &Path) -> Result<Self, ScoreError> {
        let file = folder.join(trace::TRACES);
        match files::open(&file) {
            Ok(input) => Ok(Self { file, input: Mutex::new(input) }),
            Err(error) => Err(ScoreError::Open { file, error }),
        }
    }

    /// The trace at a place; `None` if there is none.
    fn at(&self, start: u64, length: u64) -> Result<Option<Trace>, ScoreError> {
        let read = || {
            let mut input = lock(&self.input);
            input.seek(SeekFrom::Start(start))?;
            let mut text = Vec::new();
            Read::take(&mut *input, length).read_to_end(&mut text)?;
            Ok(text)
        };
        let text = read().map_err(|error| ScoreError::Open { file: self.file.clone(), error })?;
        Ok(parsed(&self.file, &Line { number: 1, start, text: &text }).ok().map(|(trace, _)| trace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_written_as_its_number_of_a_number_and_slices_cover_every_byte_once() {
        let read: Slice = "3/8".parse().expect("a slice");
        assert_eq!((read, read.to_string()), (Slice { number: 3, of: 8 }, "3/8".to_owned()));
        for wrong in ["3", "0/8", "9/8", "hash:3/8", "3/", "1/0", "1/10001", "-1/2"] {
            assert_eq!(wrong.parse::<Slice>(), Err(NoSlice), "{wrong}");
        }
        for length in [0, 1, 7, 1_000_003, u64::MAX] {
            let edges: Vec<_> = Slice::all(7).map(|slice| slice.range(length)).collect();
            assert_eq!((edges[0].start, edges[6].end), (0, length));
            assert!(edges.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }
}
