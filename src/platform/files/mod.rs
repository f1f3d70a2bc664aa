//! Access to files, confined to the project and named folders.
//!
//! Every path from a scenario, the project file, a document, a symbolic link or a recording is opened through
//! [`Files`], which knows a few places: the project, and the folders named on the command line. A path that leads out
//! of them is an error, and nothing is opened, in any spelling: `..`, an absolute path, or a symbolic link on the way.
//! Hard links cannot be traced, so a project file with a second link is not opened. Nothing at or below a `.git` of a
//! place is opened, whatever link leads there: it may hold the token of the checkout. Each place is a directory handle
//! that opens, creates, renames and removes relative to itself (`cap-std`), so nothing can be exchanged between check
//! and use.
//!
//! No other module calls `std::fs`; clippy's `disallowed-methods` enforces this.

mod error;
mod lock;
mod own_key;
mod place;
mod program;
mod temporary;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use error::{FileError, is_full_disk};
pub(crate) use lock::{LockError, ProjectLock};
pub(crate) use own_key::OwnKey;
#[cfg(unix)]
pub(crate) use program::link;
pub(crate) use program::{
    append, append_private, confine, create, create_dir_all, create_private_dir, entries, lock, metadata, move_file,
    open, own_key, persist, persist_folder, persist_private, read, read_at_most, read_text_at_most, read_text_within,
    read_to_string, remove_dir_all, remove_file, rename, replace, resolved, sync_folder, temporary_file,
    temporary_folder, turn, write, write_by,
};
pub(crate) use temporary::{TemporaryFile, TemporaryFolder};

use cap_std::fs::{Metadata, OpenOptions};
use place::{At, Named, Place, leads_out};
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

/// Maximum bytes of a file that is read whole: scenario, prompt, document, cassette.
pub(crate) const WHOLE_FILE_LIMIT: u64 = 256 << 20;

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// Its path: the folder's path as given, and the entry's name.
    pub path: PathBuf,
    /// Whether it is a folder, or a symbolic link to one in the same place.
    pub is_folder: bool,
}

/// How a symbolic link in the last part of a path is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// The link's target is used.
    Followed,
    /// The link itself is used, for renaming and removing.
    Itself,
}

/// Places in which files may be read and written.
#[derive(Debug)]
pub(crate) struct Files {
    places: Vec<Place>,
    named: Vec<Named>,
    /// Whether every path may be opened.
    anywhere: bool,
    temporary: OnceLock<Option<temporary::Own>>,
}

impl Files {
    /// The project at `root`, and the folders allowed on the command line.
    pub(crate) fn new(root: &Path, allowed: &[PathBuf]) -> Result<Self, FileError> {
        let allowed = allowed.iter().map(|folder| Place::open(folder, true));
        let places = std::iter::once(Place::open(root, false)).chain(allowed);
        Ok(Self { places: places.collect::<Result<_, _>>()?, anywhere: false, ..Self::anywhere() })
    }

    /// All files of the machine, for programs that use the library without confinement.
    const fn anywhere() -> Self {
        Self { places: Vec::new(), named: Vec::new(), anywhere: true, temporary: OnceLock::new() }
    }

    /// Adds a path named on the command line: a folder with its contents, a single file, or a path that does not exist
    /// yet. A path inside an existing place adds nothing: it stays confined there.
    pub(crate) fn with_named(mut self, path: &Path) -> Result<Self, FileError> {
        if self.spelled(path)?.is_some() {
            return Ok(self);
        }
        if path.is_dir() {
            self.places.push(Place::open(path, true)?);
        } else if let Ok(whole) = place::real(path) {
            self.named.push(Named::new(&whole).map_err(|error| FileError::of(path, error))?);
        }
        Ok(self)
    }

    /// Project folder, as given.
    pub(crate) fn root(&self) -> &Path {
        self.places.first().map_or(Path::new("."), Place::given)
    }

    /// Opens a regular file for reading, or any file named on the command line.
    ///
    /// # Errors
    /// If the path leads outside, or is missing or not a regular file.
    pub(crate) fn open(&self, path: &Path) -> Result<File, FileError> {
        self.opened(path, OpenOptions::new().read(true))
    }

    /// Reads a whole file of at most `limit` bytes.
    ///
    /// # Errors
    /// See [`Files::open`]; also if the file has more than `limit` bytes.
    pub(crate) fn read_at_most(&self, path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
        let file = self.open(path)?;
        let size = file.metadata().map_err(|error| FileError::of(path, error))?.len();
        if size > limit {
            return Err(FileError::TooLarge { path: path.to_owned(), limit });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
        file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| FileError::of(path, error))?;
        if bytes.len() as u64 > limit {
            return Err(FileError::TooLarge { path: path.to_owned(), limit });
        }
        Ok(bytes)
    }

    /// Reads a whole text file of at most [`WHOLE_FILE_LIMIT`] bytes.
    ///
    /// # Errors
    /// See [`Files::read_at_most`]; also if the file is not UTF-8.
    pub(crate) fn read_to_string(&self, path: &Path) -> Result<String, FileError> {
        self.read_text_at_most(path, WHOLE_FILE_LIMIT)
    }

    /// Reads a whole text file of at most `limit` bytes.
    ///
    /// # Errors
    /// See [`Files::read_at_most`]; also if the file is not UTF-8.
    pub(crate) fn read_text_at_most(&self, path: &Path, limit: u64) -> Result<String, FileError> {
        let bytes = self.read_at_most(path, limit)?;
        String::from_utf8(bytes).map_err(|_| FileError::NotText { path: path.to_owned() })
    }

    /// Entries of a folder except `.git`, sorted by name.
    ///
    /// # Errors
    /// If the path leads outside, or the folder cannot be read.
    pub(crate) fn entries(&self, folder: &Path) -> Result<Vec<Entry>, FileError> {
        self.at(folder, Last::Followed)?.entries(folder).map_err(|error| self.error(folder, error))
    }

    /// Metadata of a file or folder.
    ///
    /// # Errors
    /// If the path leads outside or is missing.
    pub(crate) fn metadata(&self, path: &Path) -> Result<Metadata, FileError> {
        let at = self.at(path, Last::Followed)?;
        at.dir.metadata(&at.inside).map_err(|error| self.error(path, error))
    }

    /// The path with all symbolic links resolved, for libraries that open files themselves (SQLite).
    ///
    /// # Errors
    /// If it leads outside, or is a project file with a second hard link. A missing file is resolved by its folder.
    pub(crate) fn resolved(&self, path: &Path) -> Result<PathBuf, FileError> {
        let at = self.real(path, Last::Followed)?;
        if at.is_linked() { Err(FileError::Linked { path: path.to_owned() }) } else { Ok(at.whole) }
    }

    fn opened(&self, path: &Path, options: &OpenOptions) -> Result<File, FileError> {
        self.at(path, Last::Followed)?.open(options).map_err(|error| match error {
            FileError::Io { source, .. } => self.error(path, source),
            FileError::NotFound { .. } => FileError::NotFound { path: path.to_owned() },
            FileError::NotAFile { .. } => FileError::NotAFile { path: path.to_owned() },
            FileError::Linked { .. } => FileError::Linked { path: path.to_owned() },
            other => other,
        })
    }

    /// Location of a path: first by its spelling, then by the real path for links between places. In both cases, later
    /// operations cannot leave the place.
    fn at(&self, path: &Path, last: Last) -> Result<At, FileError> {
        if let Some(at) = self.spelled(path)? {
            let found = match last {
                Last::Followed => at.dir.metadata(&at.inside),
                Last::Itself => at.dir.symlink_metadata(&at.inside),
            };
            if !found.is_err_and(|error| leads_out(&error)) {
                return at.outside_git(path, last);
            }
        }
        self.real(path, last)
    }

    /// The places, the project last, because `--allow-path` may name the project or a folder in it.
    fn named_first(&self) -> impl Iterator<Item = &Place> {
        self.places.iter().rev()
    }

    /// Location of a path by its spelling.
    fn spelled(&self, path: &Path) -> Result<Option<At>, FileError> {
        let whole = std::path::absolute(path).map_err(|error| FileError::of(path, error))?;
        let whole = without_dots(&whole);
        Ok(self.named_first().find_map(|place| place.spelled(&whole)))
    }

    /// Location of a path after resolving symbolic links.
    fn real(&self, path: &Path, last: Last) -> Result<At, FileError> {
        self.real_anywhere(path, last)?.outside_git(path, last)
    }

    fn real_anywhere(&self, path: &Path, last: Last) -> Result<At, FileError> {
        let of = |error| FileError::of(path, error);
        let find = |whole: &Path| {
            let place = self.named_first().find_map(|place| place.real(whole));
            place.or_else(|| self.named.iter().find_map(|named| named.real(whole)))
        };
        if last == Last::Itself
            && let (Some(name), Some(folder)) = (path.file_name(), path.parent())
        {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            let whole = place::real(folder).map_err(of)?.join(name);
            if self.anywhere {
                return At::anywhere(&whole).map_err(of);
            }
            if let Some(at) = find(&whole) {
                return Ok(at);
            }
            // A file named on the command line may be a link.
        }
        match place::real(path) {
            Ok(whole) if self.anywhere => At::anywhere(&whole).map_err(of),
            Ok(whole) => find(&whole).ok_or_else(|| self.outside(path)),
            Err(error) if !self.anywhere && leads_out(&error) => Err(self.outside(path)),
            Err(error) => Err(of(error)),
        }
    }

    /// Error of an operation: leaving the places, or that of the operating system.
    fn error(&self, path: &Path, error: std::io::Error) -> FileError {
        if leads_out(&error) { self.outside(path) } else { FileError::of(path, error) }
    }

    fn outside(&self, path: &Path) -> FileError {
        FileError::Outside { path: path.to_owned(), root: self.root().to_owned() }
    }
}

/// An absolute path without `.` and `..`, relative to the current folder.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).map_or_else(|_| path.to_owned(), |whole| without_dots(&whole))
}

/// Removes `.` and `..` from an absolute path by spelling alone: the result is the path that is opened.
fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}
