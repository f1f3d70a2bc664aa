//! Checks that recordings can be written, before the first request is paid for.
//!
//! Creates and removes an empty file in each existing folder, and in the nearest existing parent of a missing one.
//! Creates nothing else, so that a run without recordings leaves nothing behind.

use crate::cassette;
use crate::plan::Plan;
use crate::platform::files;
use crate::trial::{Opened, lane_file};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the probe file.
const PROBE: &str = ".ragcheck-write-test";

/// Recordings cannot be written into a folder.
#[derive(Debug, thiserror::Error)]
#[error(
    "recordings cannot be written to {}: {error}; nothing was sent. Make it a folder that this user may write to, or name \
     another one as `cassettes` in ragcheck.yaml",
    folder.display()
)]
pub struct Unwritable {
    folder: PathBuf,
    /// Error of the operating system.
    error: io::Error,
}

/// Checks that the recordings of all trials of a plan can be written.
///
/// # Errors
/// [`Unwritable`] for the first folder without write access.
pub(crate) fn writable(opened: &Opened, plan: &Plan) -> Result<(), Unwritable> {
    let mut folders = BTreeSet::new();
    for trial in &plan.trials {
        let lane = lane_file(opened.trial(plan, trial));
        if files::metadata(&lane).is_ok_and(|found| found.is_dir()) {
            return Err(Unwritable { folder: lane, error: io::ErrorKind::IsADirectory.into() });
        }
        folders.extend(lane.parent().map(Path::to_owned));
    }
    folders.extend(plan.scenarios.iter().map(|scenario| cassette::blobs_dir(&opened.cassettes, &scenario.name)));
    writable_folders(folders.iter().map(PathBuf::as_path))
}

/// Checks that files can be created in each of these folders, which may not exist yet.
///
/// # Errors
/// [`Unwritable`] for the first folder without write access.
pub(crate) fn writable_folders<'f>(folders: impl IntoIterator<Item = &'f Path>) -> Result<(), Unwritable> {
    let nearest: BTreeSet<&Path> = folders.into_iter().map(nearest).collect();
    for folder in nearest {
        // An existing file of that name is never touched.
        let free = (0..).map(|number| folder.join(format!("{PROBE}-{number}")));
        let probe =
            free.into_iter().find(|probe| files::metadata(probe).is_err()).unwrap_or_else(|| folder.join(PROBE));
        let written = files::write(&probe, b"").and_then(|()| files::remove_file(&probe));
        written.map_err(|error| Unwritable { folder: folder.to_owned(), error })?;
    }
    Ok(())
}

/// The folder itself, or its nearest existing parent.
fn nearest(folder: &Path) -> &Path {
    let named = |at: &Path| !at.as_os_str().is_empty();
    let missing = |at: &Path| files::metadata(at).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    folder.ancestors().find(|at| named(at) && !missing(at)).unwrap_or(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn probed(folder: &Path) -> Result<(), Unwritable> {
        writable_folders([folder])
    }

    #[test]
    fn a_folder_that_is_still_to_be_made_is_writable_and_nothing_is_left_behind() {
        let root = tempfile::tempdir().expect("a folder");
        fs::create_dir(root.path().join("there")).expect("a folder");
        for folder in ["there", "there/new", "new/deep/down"] {
            assert!(probed(&root.path().join(folder)).is_ok(), "{folder}");
        }
        let left: Vec<_> = fs::read_dir(root.path()).expect("a folder").flatten().map(|entry| entry.path()).collect();
        assert_eq!(left, [root.path().join("there")]);
        assert_eq!(fs::read_dir(&left[0]).expect("a folder").count(), 0);
    }

    #[test]
    fn a_file_where_the_folder_should_be_is_named_with_what_to_do() {
        let root = tempfile::tempdir().expect("a folder");
        let taken = root.path().join("cassettes");
        fs::write(&taken, "no folder").expect("a file");
        for folder in [taken.clone(), taken.join("scenario")] {
            let said = probed(&folder).expect_err("no folder").to_string();
            for part in [taken.display().to_string().as_str(), "nothing was sent", "`cassettes` in ragcheck.yaml"] {
                assert!(said.contains(part), "{part} is missing in {said}");
            }
        }
        assert_eq!(fs::read_to_string(&taken).expect("the file"), "no folder");
    }
}
