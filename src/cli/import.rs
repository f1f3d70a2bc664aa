//! `ragcheck score --import messages FILE`: a run folder of another agent's conversations.

use super::arguments::Score;
use super::exit::Exit;
use super::output::Problem;
use super::run::{reports_folder, write_environment};
use super::score::print;
use crate::evaluation::EvaluationBuilder;
use crate::import;
use crate::run::folder::Writing;
use crate::scenario::{self, Criteria};
use flate2::read::MultiGzDecoder;
use rayon::prelude::*;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Conversations that are judged side by side before they are added up.
const WINDOW: usize = 256;

/// The most that a file may hold once unpacked: a small archive can unpack to more than any machine has.
const MAX_BYTES: u64 = 2 << 30;

/// Imports the file of `named` (format and file), judges it and writes a run folder.
///
/// # Errors
/// When the file or the criteria cannot be used, or the folder cannot be written.
pub fn run(named: &[PathBuf], given: &Score) -> Result<Exit, Problem> {
    let [format, file] = named else { return Err(Problem::Words("write `--import messages FILE`".into())) };
    if format.as_os_str() != "messages" {
        let format = format.display();
        return Err(Problem::Words(format!("`{format}` cannot be imported: write `--import messages FILE`")));
    }
    let criteria = given.criteria.as_deref().map(read_criteria).transpose()?;
    let name = file.file_name().map_or_else(|| "messages".into(), |name| name.to_string_lossy().into_owned());
    let text = read(file)?;
    let read = import::messages(&name, &text, criteria).map_err(|why| format!("{}: {why}", file.display()))?;
    let plan = Arc::new(read.plan);
    let reports = given.report_dir.clone().unwrap_or_else(reports_folder);
    let mut builder = EvaluationBuilder::begin(&plan).map_err(|why| why.to_string())?;
    let preparer = builder.preparer();
    let text = plan.to_json().map_err(|why| why.to_string())?;
    let cannot_write = |why: std::io::Error| format!("the run cannot be written below {}: {why}", reports.display());
    let mut writing = Writing::begin(&reports, &text).map_err(cannot_write)?;
    for traces in read.traces.chunks(WINDOW) {
        let made: Vec<_> = traces.par_iter().map(|trace| preparer.prepare(trace)).collect();
        for (trace, made) in traces.iter().zip(made) {
            writing.trace(&made.line).map_err(cannot_write)?;
            builder.add(Some(trace), made).map_err(|why| why.to_string())?;
        }
    }
    let mut evaluated = builder.finish();
    evaluated.write(writing.path()).map_err(cannot_write)?;
    let root = std::env::current_dir().unwrap_or_default();
    write_environment(writing.path(), "import", None, &root).map_err(cannot_write)?;
    let folder = writing.finish().map_err(cannot_write)?;
    print(&evaluated, given.format, &folder);
    Ok(Exit::of_code(evaluated.evaluation.exit_code))
}

fn read_criteria(file: &Path) -> Result<Criteria, Problem> {
    let here = std::env::current_dir().map_err(|why| format!("the current folder cannot be read: {why}"))?;
    let file = here.join(file);
    Ok(scenario::load(&scenario::find_root(&here), std::slice::from_ref(&file), Some(&file))?.criteria)
}

/// The content of a file, unpacked when it is gzip.
fn read(file: &Path) -> Result<Vec<u8>, Problem> {
    let unreadable = |why: std::io::Error| format!("{} cannot be read: {why}", file.display());
    let packed = std::fs::read(file).map_err(unreadable)?;
    if !packed.starts_with(&[0x1f, 0x8b]) {
        return Ok(packed);
    }
    let mut text = Vec::new();
    MultiGzDecoder::new(packed.as_slice()).take(MAX_BYTES + 1).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(Problem::Words(format!("{} unpacks to more than 2 GiB: split it", file.display())));
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
