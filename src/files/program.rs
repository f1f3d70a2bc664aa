//! The places of this process, and the functions that the whole program opens files with.
//!
//! The program confines itself once, before it reads anything ([`confine`]). From then on each function below refuses
//! what leads out of the project, of the folders that `--allow-path` names, and of what the command line names. A
//! program that uses the library and never calls [`confine`] is not confined: it says by itself what may be opened.

#![expect(clippy::disallowed_methods, reason = "this is where files are opened")]

use super::{Entry, FileError, Files, LockError, ProjectLock, without_dots};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

static PROGRAM: OnceLock<Program> = OnceLock::new();

/// What this process may open.
struct Program {
    files: Files,
    /// Real paths of the files that the command line names outside of the project, and of what it names that was not
    /// there at the start (nothing below it can then lead anywhere).
    named: Vec<PathBuf>,
}

/// Confines this process to the project at `root`, the folders `allowed`, and the paths `named`, which is what whoever
/// started the program typed: a folder with all that is in it, of a file only itself. A second call changes nothing.
///
/// # Errors
/// When the project or an allowed folder cannot be opened.
pub fn confine(root: &Path, allowed: &[PathBuf], named: &[PathBuf]) -> Result<(), FileError> {
    let mut files = Files::new(root, allowed)?;
    let mut alone = Vec::new();
    for path in named {
        if path.as_os_str().is_empty() || files.locate(path).is_ok() {
            continue;
        }
        if path.is_dir() {
            files = files.with_named(path)?;
        } else if let Ok(whole) = real(path) {
            alone.push(whole);
        }
    }
    // Another call came first: whoever made it has said what may be opened.
    let _ = PROGRAM.set(Program { files, named: alone });
    Ok(())
}

impl Program {
    /// The real path, without symbolic links, of what may be opened.
    fn real(&self, path: &Path) -> Result<PathBuf, FileError> {
        let whole = real(path).map_err(|error| FileError::of(path, error))?;
        let inside = self.files.places.iter().any(|place| whole.starts_with(place.real()));
        let named = self.named.iter().any(|named| whole.starts_with(named));
        if inside || named { Ok(whole) } else { Err(self.files.outside(path)) }
    }

    /// Opens for reading. The handles of the places come first: they cannot be left. A link from one place into another
    /// is told by its real path.
    fn open(&self, path: &Path) -> Result<File, FileError> {
        match self.files.open(path) {
            Err(FileError::Outside { .. }) => {
                let whole = self.real(path)?;
                let metadata = fs::metadata(&whole).map_err(|error| FileError::of(path, error))?;
                // Whoever typed `/dev/stdin` meant it.
                if metadata.is_file() || self.named.contains(&whole) {
                    File::open(&whole).map_err(|error| FileError::of(path, error))
                } else {
                    Err(FileError::NotAFile { path: path.to_owned() })
                }
            }
            other => other,
        }
    }
}

/// Whether the command line names this real path, which lies outside of every place. A process that is not confined names
/// what it opens by itself.
pub(super) fn is_named(path: &Path) -> bool {
    PROGRAM.get().is_none_or(|program| program.named.iter().any(|named| named == path))
}

/// The project that the process is confined to.
pub(super) fn project() -> Option<&'static Path> {
    PROGRAM.get().map(|program| program.files.root())
}

/// The lock of one that writes recordings, or takes part in a run that does; `who` stands in the message of those that
/// come meanwhile. A process that is not confined to a project has none.
///
/// # Errors
/// [`LockError::Held`] while another process has it.
pub fn lock(who: &str) -> Result<Option<ProjectLock>, LockError> {
    PROGRAM.get().map(|program| program.files.lock(who)).transpose()
}

/// A path without symbolic links, `.` and `..`; the part that does not exist yet as it is written.
fn real(path: &Path) -> io::Result<PathBuf> {
    let whole = without_dots(&std::path::absolute(path)?);
    let mut rest = Vec::new();
    let mut known = whole.as_path();
    loop {
        match fs::canonicalize(known) {
            Ok(found) => return Ok(rest.iter().rev().fold(found, |path, name| path.join(name))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Whoever opens a dangling link would follow it.
                if fs::symlink_metadata(known).is_ok() {
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, "a symbolic link to nothing"));
                }
                let (Some(name), Some(parent)) = (known.file_name(), known.parent()) else { return Err(error) };
                rest.push(name.to_owned());
                known = parent;
            }
            Err(error) => return Err(error),
        }
    }
}

/// The real path of something that another library opens (`SQLite`), or that is written.
///
/// # Errors
/// When it leads out of every place.
pub fn resolved(path: &Path) -> io::Result<PathBuf> {
    match PROGRAM.get() {
        None => Ok(path.to_owned()),
        Some(program) => Ok(program.real(path)?),
    }
}

/// The same for what is given a name or loses one: a symbolic link there is meant itself.
pub(super) fn resolved_name(path: &Path) -> io::Result<PathBuf> {
    let (Some(name), Some(folder)) = (path.file_name(), path.parent()) else { return resolved(path) };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    match (PROGRAM.get(), resolved(folder)) {
        (None, _) => Ok(path.to_owned()),
        (Some(_), Ok(folder)) => Ok(folder.join(name)),
        // A file that the command line names stands in a folder that it does not name.
        (Some(_), Err(_)) => resolved(path),
    }
}

/// Opens a regular file for reading.
///
/// # Errors
/// When it leads out of every place, or cannot be opened.
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    match PROGRAM.get() {
        None => File::open(path),
        Some(program) => Ok(program.open(path)?),
    }
}

/// Reads a file of at most `limit` bytes whole.
///
/// # Errors
/// As [`open`], and when it is larger.
pub fn read_at_most(path: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
    let path = path.as_ref();
    let file = open(path)?;
    let size = file.metadata()?.len();
    let too_large = || FileError::TooLarge { path: path.to_owned(), limit }.into();
    if size > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(too_large()) } else { Ok(bytes) }
}

/// Reads a file whole.
///
/// # Errors
/// As [`open`], and when it is larger than [`WHOLE_FILE_LIMIT`](super::WHOLE_FILE_LIMIT).
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    read_at_most(path, super::WHOLE_FILE_LIMIT)
}

/// Reads a text file whole.
///
/// # Errors
/// As [`read`], and when it is no UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let path = path.as_ref();
    Ok(String::from_utf8(read(path)?).map_err(|_| FileError::NotText { path: path.to_owned() })?)
}

/// What stands in a folder, by name.
///
/// # Errors
/// When it leads out of every place, or cannot be read.
pub fn entries(folder: impl AsRef<Path>) -> io::Result<Vec<Entry>> {
    let folder = folder.as_ref();
    let mut found = Vec::new();
    for entry in fs::read_dir(resolved(folder)?)? {
        let entry = entry?;
        found.push(Entry { path: folder.join(entry.file_name()), is_folder: entry.file_type()?.is_dir() });
    }
    found.sort();
    Ok(found)
}

/// Makes a new, empty file, or empties the one that is there.
///
/// # Errors
/// When it leads out of every place, or cannot be written.
pub fn create(path: impl AsRef<Path>) -> io::Result<File> {
    File::create(resolved(path.as_ref())?)
}

/// Opens a file to add to its end; it is made when it is not there.
///
/// # Errors
/// As [`create`].
pub fn append(path: impl AsRef<Path>) -> io::Result<File> {
    File::options().append(true).create(true).open(resolved(path.as_ref())?)
}

/// The same for a file that only its owner may read, from the moment that it is made.
///
/// # Errors
/// As [`create`].
pub fn append_private(path: impl AsRef<Path>) -> io::Result<File> {
    let mut options = File::options();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(resolved(path.as_ref())?)
}

/// Makes a folder that only its owner may enter, and those above it as usual; one that is there stays as it is.
///
/// # Errors
/// As [`create`].
pub fn create_private_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = resolved(path.as_ref())?;
    if let Some(above) = path.parent() {
        fs::create_dir_all(above)?;
    }
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(&path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        other => other,
    }
}

/// Makes a folder and those above it.
///
/// # Errors
/// As [`create`].
pub fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    fs::create_dir_all(resolved(path.as_ref())?)
}

/// Gives a file or folder another name.
///
/// # Errors
/// When one of the two leads out of every place, or what the operating system says.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    fs::rename(resolved_name(from.as_ref())?, resolved_name(to.as_ref())?)
}

/// Removes a file, or a symbolic link itself.
///
/// # Errors
/// When its folder leads out of every place, or what the operating system says.
pub fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    fs::remove_file(resolved_name(path.as_ref())?)
}

/// Removes a folder with all that it holds; symbolic links are removed, never followed.
///
/// # Errors
/// When its folder leads out of every place, or what the operating system says.
pub fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    fs::remove_dir_all(resolved_name(path.as_ref())?)
}

/// What the system knows of a file or folder.
///
/// # Errors
/// When it leads out of every place, or is not there.
pub fn metadata(path: impl AsRef<Path>) -> io::Result<fs::Metadata> {
    fs::metadata(resolved(path.as_ref())?)
}

/// Makes `link` point to `target`, which is relative to the link's folder.
///
/// # Errors
/// When the link's folder leads out of every place, or what the operating system says.
#[cfg(unix)]
pub fn link(target: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    std::os::unix::fs::symlink(target, resolved_name(link.as_ref())?)
}

/// Makes what was renamed in a folder last; not every system can.
pub fn sync_folder(folder: impl AsRef<Path>) {
    if let Ok(folder) = resolved(folder.as_ref()).and_then(File::open) {
        let _ = folder.sync_all();
    }
}

/// A folder to write into: one of the places, or that of a file that the command line names.
pub(super) fn resolved_parent(folder: &Path) -> io::Result<PathBuf> {
    let Some(program) = PROGRAM.get() else { return Ok(folder.to_owned()) };
    let whole = real(folder)?;
    let named = program.named.iter().any(|named| named.parent() == Some(&whole));
    if named { Ok(whole) } else { Ok(program.real(folder)?) }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        let kind = match &error {
            FileError::Io { source, .. } => source.kind(),
            FileError::NotFound { .. } => io::ErrorKind::NotFound,
            FileError::Outside { .. } => io::ErrorKind::PermissionDenied,
            FileError::TooLarge { .. } => io::ErrorKind::FileTooLarge,
            FileError::NotText { .. } | FileError::NotAFile { .. } => io::ErrorKind::InvalidData,
        };
        match error {
            FileError::Io { source, .. } => source,
            other => io::Error::new(kind, other.reason()),
        }
    }
}
