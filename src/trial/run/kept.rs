//! Traces that another process made of trials of this plan: they are taken over and not run again.

use crate::platform::files;
use crate::trace::{self, PASSAGES, Passages, Seal, Trace, TrialEnd};
use crate::trial::Finished;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes of one trace that is taken over, at most: a longer line is none of ours.
const LONGEST: u64 = 1 << 30;

/// Where the traces of finished trials stand in a file; they are read when their turn comes.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    file: PathBuf,
    /// By trial: where its line begins, and its length.
    lines: BTreeMap<String, (u64, u64)>,
    /// Where the last whole line ends.
    whole: u64,
    /// What their searches found, as far as it is there.
    passages: Passages,
}

impl Kept {
    /// The trials of `file` that ended by themselves under the plan of this id, as far as `wanted` by id. A line
    /// that was cut off or edited by hand is passed over: its trial is run again. Of two lines of one trial the first
    /// counts.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn of(file: &Path, plan: &str, wanted: impl Fn(&str) -> bool) -> io::Result<Self> {
        Self::matching(file, |trace| trace.plan == plan && wanted(&trace.trial))
    }

    /// The trials of `file` that ended by themselves, of whichever plan, as far as `wanted`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn matching(file: &Path, wanted: impl Fn(&Trace) -> bool) -> io::Result<Self> {
        let (passages, _) = Passages::whole(&file.with_file_name(PASSAGES))?;
        let mut kept = Self { file: file.to_owned(), passages, ..Self::default() };
        let mut reader = BufReader::with_capacity(1 << 20, files::open(file)?);
        let (mut start, mut line) = (0, Vec::new());
        loop {
            line.clear();
            let length = reader.by_ref().take(LONGEST).read_until(b'\n', &mut line)? as u64;
            if length == 0 {
                return Ok(kept);
            }
            if line.ends_with(b"\n") {
                kept.whole = start + length;
                if let Some(trace) = whole(&line).filter(|trace| wanted(trace)) {
                    kept.lines.entry(trace.trial).or_insert((start, length));
                }
            }
            start += length;
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether the trial is among them.
    pub(crate) fn has(&self, trial: &str) -> bool {
        self.lines.contains_key(trial)
    }

    /// The length of the file without a last line that was cut off.
    pub(super) fn whole(&self) -> u64 {
        self.whole
    }

    /// A trial with what its searches found; `None` where there is none, or it cannot be read any more, so that the trial is run again.
    pub(crate) fn finished(&self, trial: &str) -> Option<Finished> {
        let trace = self.trace(trial)?;
        Some(Finished { passages: self.passages.of(&trace), ..Finished::of(trace) })
    }

    /// The whole passages of their searches.
    pub(super) fn passages(&self) -> &Passages {
        &self.passages
    }

    fn trace(&self, trial: &str) -> Option<Trace> {
        let (start, length) = *self.lines.get(trial)?;
        let mut file = files::open(&self.file).ok()?;
        file.seek(SeekFrom::Start(start)).ok()?;
        let mut line = vec![0; usize::try_from(length).ok()?];
        file.read_exact(&mut line).ok()?;
        whole(&line).filter(|trace| trace.trial == trial)
    }
}

/// The trace of a line that is as it was written, where its trial ended by itself.
fn whole(line: &[u8]) -> Option<Trace> {
    let text = std::str::from_utf8(line).ok()?;
    let trace = trace::parse_trace(text, 0).ok().filter(|_| trace::sealed(text) == Seal::Whole)?;
    (trace.end == TrialEnd::Completed).then_some(trace)
}
