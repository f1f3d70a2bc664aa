//! File functions of the whole program, and the places of this process.
//!
//! The program confines itself once, before it reads anything ([`confine`]). From then on, each function below refuses
//! paths outside the project, the folders of `--allow-path`, and paths on the command line. A program that uses the
//! library without calling [`confine`] is not confined.

use super::own_key::state_folder;
use super::{Entry, FileError, Files, LockError, OwnKey, ProjectLock, TemporaryFile, TemporaryFolder};
use crate::platform::bounds::Bound;
use cap_std::fs::Metadata;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Places of this process.
static PROGRAM: OnceLock<Files> = OnceLock::new();

/// Places of an unconfined process.
static ANYWHERE: Files = Files::anywhere();

fn files() -> &'static Files {
    PROGRAM.get().unwrap_or(&ANYWHERE)
}

/// Confines this process to the project at `root`, the folders `allowed`, and the paths `named` on the command line: a
/// folder with its contents, or a single file. A second call has no effect.
///
/// # Errors
/// If the project or an allowed folder cannot be opened.
pub(crate) fn confine(root: &Path, allowed: &[PathBuf], named: &[PathBuf]) -> Result<(), FileError> {
    let named = named.iter().filter(|path| !path.as_os_str().is_empty());
    let files = named.fold(Files::new(root, allowed), |files, path| files?.with_named(path))?;
    // If another call came first, its places stay in force.
    let _ = PROGRAM.set(files);
    Ok(())
}

/// Acquires the lock for writing recordings; other processes see `who` in their error. An unconfined process has no
/// lock.
///
/// # Errors
/// [`LockError::Held`] if another process holds it.
pub(crate) fn lock(who: &str) -> Result<Option<ProjectLock>, LockError> {
    PROGRAM.get().map(|program| program.lock(who)).transpose()
}

/// The user's key, by which files made by this program are recognised; `None` if it cannot be stored outside the
/// project.
pub(crate) fn own_key() -> Option<&'static OwnKey> {
    static KEY: OnceLock<Option<OwnKey>> = OnceLock::new();
    KEY.get_or_init(|| files().own_key(&state_folder()?)).as_ref()
}

/// [`Files::turn`] of this process.
pub(crate) fn turn() -> Option<File> {
    files().turn()
}

/// [`Files::resolved`] for this process.
///
/// # Errors
/// If the path leads outside.
pub(crate) fn resolved(path: &Path) -> io::Result<PathBuf> {
    Ok(files().resolved(path)?)
}

/// [`Files::open`] for this process.
///
/// # Errors
/// If the path leads outside, or cannot be opened.
pub(crate) fn open(path: impl AsRef<Path>) -> io::Result<File> {
    Ok(files().open(path.as_ref())?)
}

/// [`Files::read_at_most`] for this process.
///
/// # Errors
/// See [`open`]; also if the file is too large.
pub(crate) fn read_at_most(path: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
    Ok(files().read_at_most(path.as_ref(), limit)?)
}

/// Reads a whole file.
///
/// # Errors
/// See [`open`]; also if the file exceeds [`WHOLE_FILE_LIMIT`](super::WHOLE_FILE_LIMIT).
pub(crate) fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    read_at_most(path, super::WHOLE_FILE_LIMIT)
}

/// [`Files::read_to_string`] for this process.
///
/// # Errors
/// See [`read`]; also if the file is not UTF-8.
pub(crate) fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(files().read_to_string(path.as_ref())?)
}

/// [`Files::read_text_at_most`] for this process.
///
/// # Errors
/// See [`read_at_most`]; also if the file is not UTF-8.
pub(crate) fn read_text_at_most(path: impl AsRef<Path>, limit: u64) -> io::Result<String> {
    Ok(files().read_text_at_most(path.as_ref(), limit)?)
}

/// Reads a whole text file of at most `bound` bytes; the error of a larger one names the limit and its option.
///
/// # Errors
/// See [`read_text_at_most`].
pub(crate) fn read_text_within(path: impl AsRef<Path>, bound: Bound) -> io::Result<String> {
    read_text_at_most(path, bound.most()).map_err(|error| bound.named(error))
}

/// [`Files::entries`] for this process.
///
/// # Errors
/// If the path leads outside, or cannot be read.
pub(crate) fn entries(folder: impl AsRef<Path>) -> io::Result<Vec<Entry>> {
    Ok(files().entries(folder.as_ref())?)
}

/// [`Files::metadata`] for this process.
///
/// # Errors
/// If the path leads outside, or is missing.
pub(crate) fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    Ok(files().metadata(path.as_ref())?)
}

/// [`Files::create`] for this process.
///
/// # Errors
/// If the path leads outside, or cannot be written.
pub(crate) fn create(path: impl AsRef<Path>) -> io::Result<File> {
    Ok(files().create(path.as_ref())?)
}

/// [`Files::append`] for this process.
pub(crate) fn append(path: impl AsRef<Path>) -> io::Result<File> {
    Ok(files().append(path.as_ref())?)
}

/// [`Files::append_private`] for this process.
pub(crate) fn append_private(path: impl AsRef<Path>) -> io::Result<File> {
    Ok(files().append_private(path.as_ref())?)
}

/// [`Files::create_private_folder`] for this process.
pub(crate) fn create_private_dir(path: impl AsRef<Path>) -> io::Result<()> {
    Ok(files().create_private_folder(path.as_ref())?)
}

/// [`Files::create_folder`] for this process.
pub(crate) fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    Ok(files().create_folder(path.as_ref())?)
}

/// [`Files::rename`] for this process.
///
/// # Errors
/// If a path leads outside, or on an error of the operating system.
pub(crate) fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    Ok(files().rename(from.as_ref(), to.as_ref())?)
}

/// [`Files::remove_file`] for this process.
///
/// # Errors
/// If the folder leads outside, or on an error of the operating system.
pub(crate) fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    Ok(files().remove_file(path.as_ref())?)
}

/// [`Files::remove_folder`] for this process.
///
/// # Errors
/// If the folder leads outside, or on an error of the operating system.
pub(crate) fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    Ok(files().remove_folder(path.as_ref())?)
}

/// [`Files::link`] for this process.
///
/// # Errors
/// If the link's folder leads outside, or on an error of the operating system.
#[cfg(unix)]
pub(crate) fn link(target: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    Ok(files().link(target.as_ref(), link.as_ref())?)
}

/// [`Files::sync_folder`] for this process.
pub(crate) fn sync_folder(folder: impl AsRef<Path>) {
    files().sync_folder(folder.as_ref());
}

/// [`Files::write`] for this process.
///
/// # Errors
/// If the path leads outside, or cannot be written; the old content then stays.
pub(crate) fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    Ok(files().write(path.as_ref(), bytes.as_ref())?)
}

/// [`Files::write_by`] for this process.
///
/// # Errors
/// As [`Files::write_by`].
pub(crate) fn write_by(
    path: impl AsRef<Path>,
    write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> io::Result<()> {
    Ok(files().write_by(path.as_ref(), write)?)
}

/// [`Files::replace`] for this process.
pub(crate) fn replace(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    Ok(files().replace(path.as_ref(), bytes.as_ref())?)
}

/// [`Files::move_file`] for this process.
pub(crate) fn move_file(file: &Path, path: &Path) -> io::Result<()> {
    Ok(files().move_file(file, path)?)
}

/// [`Files::temporary_file`] for this process.
pub(crate) fn temporary_file(near: &Path) -> io::Result<TemporaryFile> {
    Ok(files().temporary_file(near)?)
}

/// [`Files::temporary_folder`] for this process.
pub(crate) fn temporary_folder(near: &Path) -> io::Result<TemporaryFolder> {
    Ok(files().temporary_folder(near)?)
}

/// [`Files::persist`] for this process.
pub(crate) fn persist(file: TemporaryFile, path: &Path) -> io::Result<()> {
    Ok(files().persist(file, path)?)
}

/// [`Files::persist_private`] for this process.
pub(crate) fn persist_private(file: TemporaryFile, path: &Path) -> io::Result<()> {
    Ok(files().persist_private(file, path)?)
}

/// [`Files::persist_folder`] for this process.
///
/// # Errors
/// If the name is taken, or the folder cannot be written.
pub(crate) fn persist_folder(folder: TemporaryFolder, path: &Path) -> io::Result<()> {
    Ok(files().persist_folder(folder, path)?)
}
