//! The places of this process, and the functions that the whole program opens files with.
//!
//! The program confines itself once, before it reads anything ([`confine`]). From then on each function below refuses
//! what leads out of the project, of the folders that `--allow-path` names, and of what the command line names. A
//! program that uses the library and never calls [`confine`] is not confined: it says by itself what may be opened.

use super::own_key::state_folder;
use super::{Entry, FileError, Files, LockError, OwnKey, ProjectLock, TemporaryFile, TemporaryFolder};
use cap_std::fs::Metadata;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What this process may open.
static PROGRAM: OnceLock<Files> = OnceLock::new();

/// What a process may open that is not confined.
static ANYWHERE: Files = Files::anywhere();

fn files() -> &'static Files {
    PROGRAM.get().unwrap_or(&ANYWHERE)
}

/// Confines this process to the project at `root`, the folders `allowed`, and the paths `named`, which is what whoever
/// started the program typed: a folder with all that is in it, of a file only itself. A second call changes nothing.
///
/// # Errors
/// When the project or an allowed folder cannot be opened.
pub(crate) fn confine(root: &Path, allowed: &[PathBuf], named: &[PathBuf]) -> Result<(), FileError> {
    let named = named.iter().filter(|path| !path.as_os_str().is_empty());
    let files = named.fold(Files::new(root, allowed), |files, path| files?.with_named(path))?;
    // Another call came first: whoever made it has said what may be opened.
    let _ = PROGRAM.set(files);
    Ok(())
}

/// The lock of one that writes recordings, or takes part in a run that does; `who` stands in the message of those that
/// come meanwhile. A process that is not confined to a project has none.
///
/// # Errors
/// [`LockError::Held`] while another process has it.
pub(crate) fn lock(who: &str) -> Result<Option<ProjectLock>, LockError> {
    PROGRAM.get().map(|program| program.lock(who)).transpose()
}

/// The key of whoever runs this process, by which files that the program made are known again; `None` where it cannot be
/// kept outside of the project.
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
/// When it leads out of every place.
pub(crate) fn resolved(path: &Path) -> io::Result<PathBuf> {
    Ok(files().resolved(path)?)
}

/// [`Files::open`] for this process.
///
/// # Errors
/// When it leads out of every place, or cannot be opened.
pub(crate) fn open(path: impl AsRef<Path>) -> io::Result<File> {
    Ok(files().open(path.as_ref())?)
}

/// [`Files::read_at_most`] for this process.
///
/// # Errors
/// As [`open`], and when it is larger.
pub(crate) fn read_at_most(path: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
    Ok(files().read_at_most(path.as_ref(), limit)?)
}

/// Reads a file whole.
///
/// # Errors
/// As [`open`], and when it is larger than [`WHOLE_FILE_LIMIT`](super::WHOLE_FILE_LIMIT).
pub(crate) fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    read_at_most(path, super::WHOLE_FILE_LIMIT)
}

/// [`Files::read_to_string`] for this process.
///
/// # Errors
/// As [`read`], and when it is no UTF-8.
pub(crate) fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(files().read_to_string(path.as_ref())?)
}

/// [`Files::read_text_at_most`] for this process.
///
/// # Errors
/// As [`read_at_most`], and when it is no UTF-8.
pub(crate) fn read_text_at_most(path: impl AsRef<Path>, limit: u64) -> io::Result<String> {
    Ok(files().read_text_at_most(path.as_ref(), limit)?)
}

/// [`Files::entries`] for this process.
///
/// # Errors
/// When it leads out of every place, or cannot be read.
pub(crate) fn entries(folder: impl AsRef<Path>) -> io::Result<Vec<Entry>> {
    Ok(files().entries(folder.as_ref())?)
}

/// [`Files::metadata`] for this process.
///
/// # Errors
/// When it leads out of every place, or is not there.
pub(crate) fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    Ok(files().metadata(path.as_ref())?)
}

/// [`Files::create`] for this process.
///
/// # Errors
/// When it leads out of every place, or cannot be written.
pub(crate) fn create(path: impl AsRef<Path>) -> io::Result<File> {
    Ok(files().create(path.as_ref())?)
}

/// [`Files::append`] for this process.
///
/// # Errors
/// As [`create`].
pub(crate) fn append(path: impl AsRef<Path>) -> io::Result<File> {
    Ok(files().append(path.as_ref())?)
}

/// [`Files::append_private`] for this process.
///
/// # Errors
/// As [`create`].
pub(crate) fn append_private(path: impl AsRef<Path>) -> io::Result<File> {
    Ok(files().append_private(path.as_ref())?)
}

/// [`Files::create_private_folder`] for this process.
///
/// # Errors
/// As [`create`].
pub(crate) fn create_private_dir(path: impl AsRef<Path>) -> io::Result<()> {
    Ok(files().create_private_folder(path.as_ref())?)
}

/// [`Files::create_folder`] for this process.
///
/// # Errors
/// As [`create`].
pub(crate) fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    Ok(files().create_folder(path.as_ref())?)
}

/// [`Files::rename`] for this process.
///
/// # Errors
/// When one of the two leads out of every place, or what the operating system says.
pub(crate) fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    Ok(files().rename(from.as_ref(), to.as_ref())?)
}

/// [`Files::remove_file`] for this process.
///
/// # Errors
/// When its folder leads out of every place, or what the operating system says.
pub(crate) fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    Ok(files().remove_file(path.as_ref())?)
}

/// [`Files::remove_folder`] for this process.
///
/// # Errors
/// When its folder leads out of every place, or what the operating system says.
pub(crate) fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    Ok(files().remove_folder(path.as_ref())?)
}

/// [`Files::link`] for this process.
///
/// # Errors
/// When the link's folder leads out of every place, or what the operating system says.
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
/// When it leads out of every place, or cannot be written; what was there stays.
pub(crate) fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    Ok(files().write(path.as_ref(), bytes.as_ref())?)
}

/// [`Files::replace`] for this process.
///
/// # Errors
/// As [`write`].
pub(crate) fn replace(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    Ok(files().replace(path.as_ref(), bytes.as_ref())?)
}

/// [`Files::move_file`] for this process.
///
/// # Errors
/// As [`write`].
pub(crate) fn move_file(file: &Path, path: &Path) -> io::Result<()> {
    Ok(files().move_file(file, path)?)
}

/// [`Files::temporary_file`] for this process.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn temporary_file(near: &Path) -> io::Result<TemporaryFile> {
    Ok(files().temporary_file(near)?)
}

/// [`Files::temporary_folder`] for this process.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn temporary_folder(near: &Path) -> io::Result<TemporaryFolder> {
    Ok(files().temporary_folder(near)?)
}

/// [`Files::persist`] for this process.
///
/// # Errors
/// As [`write`].
pub(crate) fn persist(file: TemporaryFile, path: &Path) -> io::Result<()> {
    Ok(files().persist(file, path)?)
}

/// [`Files::persist_private`] for this process.
///
/// # Errors
/// As [`write`].
pub(crate) fn persist_private(file: TemporaryFile, path: &Path) -> io::Result<()> {
    Ok(files().persist_private(file, path)?)
}

/// [`Files::persist_folder`] for this process.
///
/// # Errors
/// When something is there, or it cannot be written.
pub(crate) fn persist_folder(folder: TemporaryFolder, path: &Path) -> io::Result<()> {
    Ok(files().persist_folder(folder, path)?)
}
