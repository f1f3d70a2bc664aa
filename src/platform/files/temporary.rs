//! Temporary files: in one folder of the project, ignored by git; the next run removes what a killed one left there.
//!
//! A process that creates one holds `.ragcheck/tmp.lock` shared until it ends. A process that gets the lock exclusively
//! knows that nothing in the folder is in use, and clears it. If the project cannot be written, or the process is not
//! confined to one, temporary files are created beside their target.

use super::place::{self, At};
use super::write::{move_to, put};
use super::{FileError, Files, Last};
use cap_std::fs::{OpenOptions, Permissions};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Folder of temporary files, relative to the project.
const FOLDER: &str = ".ragcheck/tmp";
/// Lock held while temporary files exist.
const IN_USE: &str = ".ragcheck/tmp.lock";
/// Lock held while run folders are moved into place or removed.
const TURN: &str = ".ragcheck/turn.lock";

/// Makes names unique within the process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The project's folder of temporary files, and its lock.
#[derive(Debug)]
pub(super) struct Own {
    folder: At,
    _lock: File,
}

/// A new file, removed unless [`persist`](super::persist) gives it a name.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    at: At,
    file: File,
    has_name: bool,
}

/// A new folder, removed with its contents unless [`persist_folder`](super::persist_folder) gives it a name.
#[derive(Debug)]
pub(crate) struct TemporaryFolder {
    at: At,
    has_name: bool,
}

impl Files {
    /// Creates a temporary file that will be moved into the folder `near`.
    pub(crate) fn temporary_file(&self, near: &Path) -> Result<TemporaryFile, FileError> {
        file_in(&self.place(near)?).map_err(|error| self.error(near, error))
    }

    /// Creates a temporary folder that will be moved into the folder `near`.
    pub(crate) fn temporary_folder(&self, near: &Path) -> Result<TemporaryFolder, FileError> {
        folder_in(&self.place(near)?).map_err(|error| self.error(near, error))
    }

    /// Renames a temporary file to `path`; replaces an existing file atomically and keeps its permissions.
    ///
    /// # Errors
    /// If the path leads outside or cannot be written; an existing file is then unchanged.
    pub(crate) fn persist(&self, file: TemporaryFile, path: &Path) -> Result<(), FileError> {
        let to = self.at(path, Last::Itself)?;
        file.move_to(&to).map_err(|error| self.error(path, error))
    }

    /// Like [`Files::persist`], but only the owner may read the file, whatever the permissions of an existing one.
    pub(crate) fn persist_private(&self, mut file: TemporaryFile, path: &Path) -> Result<(), FileError> {
        let to = self.at(path, Last::Itself)?;
        put(&file.at, &to).map_err(|error| self.error(path, error))?;
        file.has_name = true;
        Ok(())
    }

    /// Renames a temporary folder of files to an unused path.
    ///
    /// # Errors
    /// If the path leads outside, is taken or cannot be written.
    pub(crate) fn persist_folder(&self, mut folder: TemporaryFolder, path: &Path) -> Result<(), FileError> {
        let to = self.at(path, Last::Itself)?;
        match folder.rename_to(&to) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy_folder(&folder, &to),
            other => other,
        }
        .map_err(|error| self.error(path, error))
    }

    /// Waits until no other process moves run folders into place or changes ratings, and blocks others until the result is
    /// dropped. `None` if the project cannot be written: then no process can move folders there.
    pub(crate) fn turn(&self) -> Option<File> {
        if self.anywhere {
            return None;
        }
        let file = self.lock_file(&self.root().join(TURN)).ok()?;
        file.lock().ok()?;
        Some(file)
    }

    /// Folder of temporary files, or `near` if there is none.
    fn place(&self, near: &Path) -> Result<At, FileError> {
        if let Some(own) = self.temporary.get_or_init(|| self.prepared().ok().flatten()) {
            return Ok(own.folder.clone());
        }
        let folder = match self.at(near, Last::Followed) {
            // A file named on the command line is in a folder that may not be named.
            Err(outside @ FileError::Outside { .. }) => {
                let whole = place::real(near).map_err(|error| FileError::of(near, error))?;
                self.named.iter().find_map(|named| named.folder(&whole)).ok_or(outside)?
            }
            other => other?,
        };
        folder.make_folder().map_err(|error| self.error(near, error))?;
        Ok(folder)
    }

    fn prepared(&self) -> Result<Option<Own>, FileError> {
        if self.anywhere {
            return Ok(None);
        }
        let path = self.root().join(FOLDER);
        let of = |error| self.error(&path, error);
        self.create_folder(&path)?;
        let folder = self.at(&path, Last::Followed)?;
        let lock = self.lock_file(&self.root().join(IN_USE))?;
        if lock.try_lock().is_ok() {
            for left in folder.dir.read_dir(&folder.inside).map_err(of)?.flatten() {
                let (name, is_folder) = (folder.inside.join(left.file_name()), left.file_type().map_err(of)?.is_dir());
                // Files that cannot be removed do no harm there.
                let _ = if is_folder { folder.dir.remove_dir_all(name) } else { folder.dir.remove_file(name) };
            }
        }
        lock.lock_shared().map_err(of)?;
        Ok(Some(Own { folder, _lock: lock }))
    }
}

/// Creates an entry under an unused name.
fn new_in<T>(folder: &At, make: impl Fn(&At) -> io::Result<T>) -> io::Result<(At, T)> {
    loop {
        let at = folder.join(&format!(".ragcheck-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        match make(&at) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return Ok((at, made?)),
        }
    }
}

/// Creates a file in a folder.
pub(super) fn file_in(folder: &At) -> io::Result<TemporaryFile> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let (at, file) = new_in(folder, |at| at.dir.open_with(&at.inside, &options))?;
    Ok(TemporaryFile { at, file: file.into_std(), has_name: false })
}

fn folder_in(folder: &At) -> io::Result<TemporaryFolder> {
    let (at, ()) = new_in(folder, |at| at.dir.create_dir(&at.inside))?;
    Ok(TemporaryFolder { at, has_name: false })
}

/// Copies a folder of files to another disk, first beside its final path.
fn copy_folder(folder: &TemporaryFolder, to: &At) -> io::Result<()> {
    let mut beside = folder_in(&to.folder())?;
    for entry in folder.at.dir.read_dir(&folder.at.inside)? {
        let name = entry?.file_name();
        let (from, into) = (folder.at.inside.join(&name), beside.at.inside.join(&name));
        folder.at.dir.copy(from, &beside.at.dir, into)?;
    }
    beside.rename_to(to)
}

impl TemporaryFile {
    /// Current path.
    pub(crate) fn path(&self) -> &Path {
        &self.at.whole
    }

    /// Syncs the contents to disk.
    ///
    /// # Errors
    /// Error of the operating system.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    pub(super) fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        cap_std::fs::File::from_std(self.file.try_clone()?).set_permissions(permissions)
    }

    /// Moves it to its final path, also across disks.
    pub(super) fn move_to(mut self, to: &At) -> io::Result<()> {
        move_to(&self.at, to)?;
        self.has_name = true;
        Ok(())
    }

    /// Renames it on the same disk.
    pub(super) fn rename_to(mut self, to: &At) -> io::Result<()> {
        self.at.dir.rename(&self.at.inside, &to.dir, &to.inside)?;
        self.has_name = true;
        Ok(())
    }
}

impl TemporaryFolder {
    /// Current path.
    pub(crate) fn path(&self) -> &Path {
        &self.at.whole
    }

    fn rename_to(&mut self, to: &At) -> io::Result<()> {
        self.at.dir.rename(&self.at.inside, &to.dir, &to.inside)?;
        self.has_name = true;
        Ok(())
    }
}

impl Write for TemporaryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.has_name {
            let _ = self.at.dir.remove_file(&self.at.inside);
        }
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if !self.has_name {
            let _ = self.at.dir.remove_dir_all(&self.at.inside);
        }
    }
}

/// Permissions of a new file beside `at`, as the mask of the process leaves them.
pub(super) fn usual(at: &At) -> io::Result<Permissions> {
    static USUAL: OnceLock<Permissions> = OnceLock::new();
    if let Some(known) = USUAL.get() {
        return Ok(known.clone());
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let (probe, file) = new_in(&at.folder(), |at| at.dir.open_with(&at.inside, &options))?;
    let found = file.metadata().map(|found| found.permissions());
    drop(file);
    probe.dir.remove_file(&probe.inside)?;
    let found = found?;
    Ok(USUAL.get_or_init(|| found).clone())
}
