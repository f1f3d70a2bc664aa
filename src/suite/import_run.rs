//! Makes a run folder from another agent's conversations: reads, evaluates and writes it.

use super::environment::{self, Facts};
use super::{SuiteError, Unlisted};
use crate::platform::bounds::Bound;
use crate::platform::{files, secrets};
use crate::scenario::{Criteria, Scenario};
use crate::settings::price::Price;
use crate::suite::evaluation::{self, EvaluatedRun, ExaminedTrace, RunEvaluator};
use crate::suite::import::{Format, Imported};
use crate::trace::MeasuredAgreement;
use crate::trial::run::folder::Writing;
use flate2::read::MultiGzDecoder;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Conversations examined in parallel before they are aggregated.
const WINDOW: usize = 256;

/// Result of an import.
pub(crate) struct ImportedRun {
    pub folder: PathBuf,
    /// What it shows.
    pub evaluated: EvaluatedRun,
    /// How many traces are complete, without contents, and broken.
    pub summary: String,
    /// Ignored members of conversations, with the number of conversations that have them.
    pub ignored: BTreeMap<String, usize>,
    /// The format that the file has, unless it was named.
    pub recognised: Option<Format>,
    /// Remarks on what the import leaves out.
    pub remarks: Vec<String>,
    /// Dropped duplicates: position in the file, from 1, and position of the original.
    pub copies: Vec<(usize, usize)>,
    /// Note on additions of an earlier equal run that were not made here.
    pub aside: Option<String>,
}

/// What the project of the current folder adds to an import.
#[derive(Debug, Default)]
pub(crate) struct OfProject {
    /// Its criteria.
    pub criteria: Option<Criteria>,
    /// Its criteria that may measure nothing, by id.
    pub not_measured_ok: Vec<String>,
    /// Its human ratings, by trial.
    pub ratings: Option<BTreeMap<String, bool>>,
    /// Its measured agreement of grades with people.
    pub agreement: Option<MeasuredAgreement>,
    /// Its prices, by `provider/model`.
    pub prices: BTreeMap<String, Price>,
}

/// Imports the conversations of `file`, in `format` or the one that it has (optionally gzip), evaluates them and writes a run folder
/// below `reports`. Applies `criteria` (by default those for any conversation), and the settings of the
/// `project`. `root` is noted in `environment.json`. `agent` is the scenario of the
/// recorded agent, if any.
///
/// # Errors
/// If the file cannot be used, or the folder cannot be written.
pub(crate) fn import(
    format: Option<Format>,
    file: &Path,
    criteria: Option<Criteria>,
    project: OfProject,
    agent: Option<&Scenario>,
    reports: &Path,
    root: &Path,
) -> Result<ImportedRun, SuiteError> {
    let (mut read, used) = imported(format, file, criteria, agent)?;
    read.priced(project.prices);
    if let Some(ratings) = project.ratings {
        read.rated(ratings);
    }
    read.plan.agreement = project.agreement;
    read.plan.not_measured_ok = project.not_measured_ok;
    if let Some(criteria) = project.criteria {
        read.by_project(criteria);
    }
    Ok(ImportedRun { recognised: format.is_none().then_some(used), ..written(read, reports, root)? })
}

/// The conversations of a file, in `format` or the one that it has (optionally gzip), and their format.
pub(crate) fn imported(
    format: Option<Format>,
    file: &Path,
    criteria: Option<Criteria>,
    agent: Option<&Scenario>,
) -> Result<(Imported, Format), SuiteError> {
    let name = file.file_name().map_or_else(|| "messages".into(), |name| name.to_string_lossy().into_owned());
    let text = read(file)?;
    let format = format.map_or_else(|| Format::of(&text), Ok);
    let read = format.and_then(|format| Ok((format.read(&name, &text, criteria, agent)?, format)));
    read.map_err(|error| SuiteError::Conversations { file: file.to_owned(), error })
}

fn written(read: Imported, reports: &Path, root: &Path) -> Result<ImportedRun, SuiteError> {
    let summary = read.summary();
    let (mut plan, mut traces) = (read.plan, read.traces);
    let text = plan.stored(|text| secrets::clean_bytes(text).into_owned())?;
    for trace in &mut traces {
        trace.plan.clone_from(&plan.id);
    }
    let plan = Arc::new(plan).published();
    let mut evaluator = RunEvaluator::begin(&plan)?;
    let examiner = evaluator.examiner();
    let unwritten = |error: io::Error| SuiteError::Write { reports: reports.to_owned(), error };
    let mut writing = Writing::begin(reports, &text).map_err(unwritten)?;
    for (traces, passages) in traces.chunks(WINDOW).zip(read.passages.chunks(WINDOW)) {
        let examined: Vec<_> = {
            let both = traces.par_iter().zip(passages);
            both.map(|(trace, passages)| ExaminedTrace::of(&examiner, trace, passages)).collect()
        };
        for ((trace, passages), examined) in traces.iter().zip(passages).zip(examined) {
            writing.trace(&examined.line).map_err(unwritten)?;
            writing.passages(passages).map_err(unwritten)?;
            evaluator.add(Some(trace), passages, examined)?;
        }
    }
    let mut evaluated = evaluator.finish();
    evaluated.write(writing.path()).map_err(unwritten)?;
    environment::write(writing.path(), root, &Facts { mode: "import", ..Facts::default() }).map_err(unwritten)?;
    let (folder, aside) = writing.finish(false).map_err(unwritten)?;
    let kept = evaluation::write_runs_page(reports, root).map_err(Unlisted::beside(&folder))?;
    Ok(ImportedRun {
        folder,
        evaluated,
        summary,
        ignored: read.ignored,
        recognised: None,
        remarks: read.remarks.into_iter().chain(kept).collect(),
        copies: read.copies,
        aside,
    })
}

/// Content of a file, unpacked if it is gzip.
fn read(file: &Path) -> Result<Vec<u8>, SuiteError> {
    let unreadable = |error: io::Error| SuiteError::ImportRead { file: file.to_owned(), error };
    // A small archive can unpack to more than any machine's memory.
    let most = Bound::ImportSize.most();
    let packed = files::read_at_most(file, most).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => SuiteError::ImportTooLarge { file: file.to_owned() },
        _ => unreadable(error),
    })?;
    if !packed.starts_with(&[0x1f, 0x8b]) {
        return Ok(packed);
    }
    let mut text = Vec::new();
    MultiGzDecoder::new(packed.as_slice()).take(most + 1).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() as u64 > most {
        return Err(SuiteError::ImportTooLarge { file: file.to_owned() });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn packed_files_read_as_what_they_hold() {
        let folder = tempfile::tempdir().expect("a folder");
        let (plain, packed) = (folder.path().join("a.json"), folder.path().join("a.json.gz"));
        std::fs::write(&plain, b"[1]").expect("written");
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"[1]").expect("packed");
        std::fs::write(&packed, encoder.finish().expect("packed")).expect("written");
        assert_eq!(read(&plain).expect("read"), read(&packed).expect("read"));
        assert!(read(&folder.path().join("none")).is_err());
    }
}
