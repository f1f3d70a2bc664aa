//! Finished trials of this plan from another process, reused instead of run again.

use crate::platform::files;
use crate::trace::{self, PASSAGES, Passages, Seal, Trace, TrialEnd};
use crate::trial::Finished;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Maximum bytes of one reused trace; a longer line was not written by this program.
const LONGEST: u64 = 1 << 30;

/// Byte positions of finished trials' traces in a file; traces are read when needed.
#[derive(Debug, Default)]
pub(crate) struct KeptTraces {
    file: PathBuf,
    /// Start and length of each trial's line, by trial id.
    lines: BTreeMap<String, (u64, u64)>,
    /// End of the last complete line.
    whole: u64,
    /// Passages that their searches found, as far as the file has them.
    passages: Passages,
}

impl KeptTraces {
    /// Trials in `file` that ended without being cancelled under the plan of this id, filtered by `wanted`. A truncated
    /// or edited line is ignored, so its trial runs again. If a trial has two lines, the first counts.
    pub(crate) fn of(file: &Path, plan: &str, wanted: impl Fn(&str) -> bool) -> io::Result<Self> {
        Self::matching(file, |trace| trace.plan == plan && wanted(&trace.trial))
    }

    /// Trials in `file` that ended without being cancelled, of any plan, filtered by `wanted`.
    pub(crate) fn matching(file: &Path, wanted: impl FnMut(&Trace) -> bool) -> io::Result<Self> {
        Self::read(file, wanted, |lines, trial, place| {
            lines.entry(trial).or_insert(place);
        })
    }

    /// The last draw of each trial in a file of draws that do not count; none if there is no such file.
    pub(super) fn last_draws(file: &Path, plan: &str) -> io::Result<Self> {
        if !file.exists() {
            return Ok(Self::default());
        }
        Self::read(
            file,
            |trace| trace.plan == plan,
            |lines, trial, place| {
                lines.insert(trial, place);
            },
        )
    }

    fn read(
        file: &Path,
        mut wanted: impl FnMut(&Trace) -> bool,
        insert: impl Fn(&mut BTreeMap<String, (u64, u64)>, String, (u64, u64)),
    ) -> io::Result<Self> {
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
                    insert(&mut kept.lines, trace.trial, (start, length));
                }
            }
            start += length;
        }
    }

    /// Number of trials.
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether the trial is among them.
    pub(crate) fn has(&self, trial: &str) -> bool {
        self.lines.contains_key(trial)
    }

    /// Length of the file in bytes, without a truncated last line.
    pub(super) fn whole(&self) -> u64 {
        self.whole
    }

    /// A trial with the passages that its searches found; `None` if it is missing or no longer readable, so that it
    /// runs again.
    pub(crate) fn finished(&self, trial: &str) -> Option<Finished> {
        let trace = self.trace(trial)?;
        Some(Finished { passages: self.passages.of(&trace), ..Finished::of(trace) })
    }

    /// Full passages of their searches.
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

/// The trace of an unedited line, if its trial ended without being cancelled.
fn whole(line: &[u8]) -> Option<Trace> {
    let text = std::str::from_utf8(line).ok()?;
    let trace = trace::parse_trace(text, 0).ok().filter(|_| trace::sealed(text) == Seal::Whole)?;
    (trace.end == TrialEnd::Completed).then_some(trace)
}
