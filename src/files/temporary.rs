//! Temporary files: all of a project's lie in one folder, which git ignores, and the next run clears what a killed one
//! left there.
//!
//! Whoever makes one holds `.ragcheck/tmp.lock` shared until the process ends. Whoever gets it exclusively is alone, so
//! that nothing in the folder is in use, and clears it. Where the project cannot be written, or the process is not
//! confined to one, temporary files lie beside what they become.

#![expect(clippy::disallowed_methods, reason = "this is where files are opened")]

use super::program::{is_named, project, resolved, resolved_name, resolved_parent, sync_folder};
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Where they are, below the project.
const FOLDER: &str = ".ragcheck/tmp";
/// Who makes one holds this.
const IN_USE: &str = ".ragcheck/tmp.lock";
/// Who puts a run folder into its place, or removes one, holds this.
const TURN: &str = ".ragcheck/turn.lock";

/// The folder, with its lock; `None` where the project cannot be written.
static PLACE: OnceLock<Option<(PathBuf, File)>> = OnceLock::new();

/// The folder of temporary files, or `near` where there is none.
fn place(near: &Path) -> io::Result<PathBuf> {
    let prepared = project().and_then(|root| PLACE.get_or_init(|| prepared(root).ok()).as_ref());
    if let Some((folder, _)) = prepared {
        return Ok(folder.clone());
    }
    let near = resolved_parent(near)?;
    fs::create_dir_all(&near)?;
    Ok(near)
}

fn prepared(root: &Path) -> io::Result<(PathBuf, File)> {
    let folder = resolved(&root.join(FOLDER))?;
    fs::create_dir_all(&folder)?;
    let lock = lock_file(&root.join(IN_USE))?;
    if lock.try_lock().is_ok() {
        for entry in fs::read_dir(&folder)?.flatten() {
            let left = entry.path();
            // What cannot be removed does no harm where it is.
            let _ = if entry.file_type()?.is_dir() { fs::remove_dir_all(left) } else { fs::remove_file(left) };
        }
    }
    lock.lock_shared()?;
    Ok((folder, lock))
}

/// A file that is only there to be locked.
pub(super) fn lock_file(path: &Path) -> io::Result<File> {
    let path = resolved(path)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    File::options().read(true).write(true).create(true).truncate(false).open(path)
}

/// Waits until no other process of the project puts run folders into their places, and keeps others from it until what
/// is returned is dropped. `None` where the project cannot be written: nobody else can do it there either.
pub fn turn() -> Option<File> {
    let file = lock_file(&project()?.join(TURN)).ok()?;
    file.lock().ok()?;
    Some(file)
}

/// A new temporary file, removed unless it is given a name with [`persist`]; `near` is the folder that it is for.
///
/// # Errors
/// When it cannot be made.
pub fn temporary_file(near: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new().prefix(".ragcheck-").tempfile_in(place(near)?)
}

/// A new temporary folder, likewise.
///
/// # Errors
/// When it cannot be made.
pub fn temporary_folder(near: &Path) -> io::Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix(".ragcheck-").tempdir_in(place(near)?)
}

/// Gives a temporary file its name; what was there is replaced whole, and its permissions stay.
///
/// # Errors
/// When it cannot be written; what was there stays.
pub fn persist(file: tempfile::NamedTempFile, path: &Path) -> io::Result<()> {
    move_file(&file.into_temp_path(), path)
}

/// The same for a file of a temporary folder.
///
/// # Errors
/// As [`persist`].
pub fn move_file(file: &Path, path: &Path) -> io::Result<()> {
    let path = resolved_name(path)?;
    let permissions = fs::metadata(&path).map_or_else(|_| usual(), |present| present.permissions());
    fs::set_permissions(file, permissions)?;
    put(file, &path)
}

/// As [`persist`], for what only its owner may read: temporary files are made so, and whatever was there before, the new
/// file is.
///
/// # Errors
/// As [`persist`].
pub fn persist_private(file: tempfile::NamedTempFile, path: &Path) -> io::Result<()> {
    put(&file.into_temp_path(), &resolved_name(path)?)
}

fn put(file: &Path, path: &Path) -> io::Result<()> {
    match fs::rename(file, path) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let near = path.parent().unwrap_or(Path::new("."));
            let beside = tempfile::Builder::new().prefix(".ragcheck-").tempfile_in(near)?.into_temp_path();
            fs::copy(file, &beside)?;
            File::open(&beside)?.sync_all()?;
            beside.persist(path).map_err(|error| error.error)
        }
        other => other,
    }
}

/// Gives a temporary folder of files its name, under which nothing is.
///
/// # Errors
/// When something is there, or it cannot be written.
pub fn persist_folder(folder: tempfile::TempDir, path: &Path) -> io::Result<()> {
    let path = resolved_name(path)?;
    match fs::rename(folder.path(), &path) {
        Ok(()) => {
            // It has another name now: there is nothing to remove.
            let _ = folder.keep();
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let near = folder_of(&path);
            let beside = tempfile::Builder::new().prefix(".ragcheck-").tempdir_in(near)?;
            for entry in fs::read_dir(folder.path())? {
                let entry = entry?;
                fs::copy(entry.path(), beside.path().join(entry.file_name()))?;
            }
            fs::rename(beside.path(), &path)?;
            let _ = beside.keep();
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Replaces a file whole or not at all. What was typed and is no regular file (a pipe, `/dev/stdout`) is written into; a pipe
/// of the project is replaced, for who opens it may wait for ever.
///
/// # Errors
/// When it leads out of every place, or cannot be written; what was there stays.
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let path = resolved(path.as_ref())?;
    if is_named(&path) && fs::metadata(&path).is_ok_and(|present| !present.is_file()) {
        return fs::write(path, bytes);
    }
    let mut file = temporary_file(folder_of(&path))?;
    file.write_all(bytes.as_ref())?;
    persist(file, &path)
}

/// Replaces a file whole or not at all, and makes that last: after a crash it is the old one or the new one. The folder
/// is made where it is missing.
///
/// # Errors
/// When it leads out of every place, or cannot be written; what was there stays.
pub fn replace(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let path = path.as_ref();
    let folder = folder_of(path);
    super::create_dir_all(folder)?;
    let mut file = temporary_file(folder)?;
    file.write_all(bytes.as_ref())?;
    file.as_file().sync_all()?;
    persist(file, path)?;
    // Renaming lasts once the folder does; not every system lets one open a folder.
    sync_folder(folder);
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(unix)]
fn usual() -> Permissions {
    use std::os::unix::fs::PermissionsExt;
    Permissions::from_mode(0o644)
}
