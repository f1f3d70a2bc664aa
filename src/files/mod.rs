//! The one way to files.
//!
//! Whatever a scenario, the project file, a document, a symbolic link or a recording names is opened through [`Files`],
//! which knows a few places: the project, and the folders that whoever started the program named. A path that leads
//! out of them is an error and nothing is opened, on any spelling: `..`, an absolute path, or a symbolic link on the
//! way. Each place is a directory handle that opens relative to itself (`cap-std`), so nothing can be exchanged
//! between the check and the use.
//!
//! Nothing else in the program calls `std::fs`: clippy's `disallowed-methods` guards it.

mod error;
mod lock;
mod place;
mod program;
mod temporary;
mod write;

#[cfg(test)]
mod tests;

pub use error::{FileError, is_full_disk};
pub use lock::{LockError, ProjectLock};
#[cfg(unix)]
pub use program::link;
pub use program::{
    append, append_private, confine, create, create_dir_all, create_private_dir, entries, lock, metadata, open, read,
    read_at_most, read_to_string, remove_dir_all, remove_file, rename, resolved, sync_folder,
};
pub use temporary::{
    move_file, persist, persist_folder, persist_private, replace, temporary_file, temporary_folder, turn, write,
};
pub use write::NewFile;

use place::Place;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// Bytes of one file that is read whole, at most: scenario, prompt, document, cassette.
pub const WHOLE_FILE_LIMIT: u64 = 256 << 20;

/// What stands in a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its path: the folder's, as it was given, and its name.
    pub path: PathBuf,
    /// Whether it is a folder (or a symbolic link to one inside the same place).
    pub is_folder: bool,
}

/// The places that files may be read from and written to.
#[derive(Debug)]
pub struct Files {
    places: Vec<Place>,
}

impl Files {
    /// The project at `root`, and the folders that the command line allows besides.
    ///
    /// # Errors
    /// When one of them cannot be opened as a folder.
    pub fn new(root: &Path, allowed: &[PathBuf]) -> Result<Self, FileError> {
        let places = std::iter::once(root).chain(allowed.iter().map(PathBuf::as_path)).map(Place::open);
        Ok(Self { places: places.collect::<Result<_, _>>()? })
    }

    /// The same places, and the folder of something that whoever started the program named. A path that already lies
    /// in a place adds none: it stays confined there.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    pub fn with_named(mut self, path: &Path) -> Result<Self, FileError> {
        if self.locate(path).is_err() {
            let whole = std::path::absolute(path).map_err(|error| FileError::of(path, error))?;
            let folder = if whole.is_dir() { whole.as_path() } else { whole.parent().unwrap_or(&whole) };
            self.places.push(Place::open(folder)?);
        }
        Ok(self)
    }

    /// The project's folder, as it was given.
    pub fn root(&self) -> &Path {
        self.places.first().map_or(Path::new("."), Place::given)
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// A path that leads outside, no such file, or something that is no regular file.
    pub fn open(&self, path: &Path) -> Result<File, FileError> {
        let (place, inside) = self.locate(path)?;
        place.open_file(path, &inside)
    }

    /// Reads a file whole.
    ///
    /// # Errors
    /// As [`Files::open`], and a file of more than [`WHOLE_FILE_LIMIT`] bytes.
    pub fn read(&self, path: &Path) -> Result<Vec<u8>, FileError> {
        self.read_at_most(path, WHOLE_FILE_LIMIT)
    }

    /// Reads a file of at most `limit` bytes whole.
    ///
    /// # Errors
    /// As [`Files::open`], and a file of more than `limit` bytes.
    pub fn read_at_most(&self, path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
        let file = self.open(path)?;
        let size = file.metadata().map_err(|error| FileError::of(path, error))?.len();
        if size > limit {
            return Err(FileError::TooLarge { path: path.to_owned(), limit });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| FileError::of(path, error))?;
        if bytes.len() as u64 > limit {
            return Err(FileError::TooLarge { path: path.to_owned(), limit });
        }
        Ok(bytes)
    }

    /// Reads a text file whole.
    ///
    /// # Errors
    /// As [`Files::read`], and bytes that are no UTF-8.
    pub fn read_to_string(&self, path: &Path) -> Result<String, FileError> {
        String::from_utf8(self.read(path)?).map_err(|_| FileError::NotText { path: path.to_owned() })
    }

    /// What stands in a folder, by name.
    ///
    /// # Errors
    /// A path that leads outside, or a folder that cannot be read.
    pub fn entries(&self, folder: &Path) -> Result<Vec<Entry>, FileError> {
        let (place, inside) = self.locate(folder)?;
        place.entries(folder, &inside)
    }

    /// Whether a regular file stands there, inside a place.
    pub fn is_file(&self, path: &Path) -> bool {
        self.locate(path).is_ok_and(|(place, inside)| place.kind(&inside) == Some(place::Kind::File))
    }

    /// Whether a folder stands there, inside a place.
    pub fn is_folder(&self, path: &Path) -> bool {
        self.locate(path).is_ok_and(|(place, inside)| place.kind(&inside) == Some(place::Kind::Folder))
    }

    /// The path with all symbolic links resolved, for what opens files by itself (SQLite).
    ///
    /// # Errors
    /// When it leads outside; a file that does not exist yet is resolved by its folder.
    pub fn resolved(&self, path: &Path) -> Result<PathBuf, FileError> {
        let (place, inside) = self.locate(path)?;
        place.resolved(path, &inside)
    }

    /// The place that holds a path, and the path inside it.
    fn locate(&self, path: &Path) -> Result<(&Place, PathBuf), FileError> {
        let whole = std::path::absolute(path).map_err(|error| FileError::of(path, error))?;
        let whole = without_dots(&whole);
        let found = self.places.iter().find_map(|place| place.inside(&whole).map(|inside| (place, inside)));
        found.ok_or_else(|| self.outside(path))
    }

    fn outside(&self, path: &Path) -> FileError {
        FileError::Outside { path: path.to_owned(), root: self.root().to_owned() }
    }
}

/// A path as it was typed, absolute and without `.` and `..`: taken from the current folder.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).map_or_else(|_| path.to_owned(), |whole| without_dots(&whole))
}

/// An absolute path without `.` and `..`, by its spelling alone: what is opened is the path that this gives.
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

/// What an error of a directory handle means: `cap-std` reports a way out as "permission denied" without a number.
fn leads_out(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}
