//! One folder that files are opened in, as a handle that cannot be left.

use super::{Entry, FileError, leads_out, without_dots};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A folder, open.
#[derive(Debug)]
pub(super) struct Place {
    /// As it was given, made absolute.
    given: PathBuf,
    /// With symbolic links resolved.
    resolved: PathBuf,
    pub(super) dir: Dir,
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    Other,
}

impl Kind {
    fn of(metadata: &Metadata) -> Self {
        if metadata.is_file() {
            Self::File
        } else if metadata.is_dir() {
            Self::Folder
        } else {
            Self::Other
        }
    }
}

impl Place {
    pub(super) fn open(folder: &Path) -> Result<Self, FileError> {
        let of = |error| FileError::of(folder, error);
        let given = without_dots(&std::path::absolute(folder).map_err(of)?);
        let resolved = given.canonicalize().map_err(of)?;
        let dir = Dir::open_ambient_dir(&resolved, ambient_authority()).map_err(of)?;
        Ok(Self { given, resolved, dir })
    }

    pub(super) fn given(&self) -> &Path {
        &self.given
    }

    /// Its path with symbolic links resolved.
    pub(super) fn real(&self) -> &Path {
        &self.resolved
    }

    /// The path inside, `.` for the place itself.
    pub(super) fn inside(&self, whole: &Path) -> Option<PathBuf> {
        let inside = whole.strip_prefix(&self.given).or_else(|_| whole.strip_prefix(&self.resolved)).ok()?;
        Some(if inside.as_os_str().is_empty() { PathBuf::from(".") } else { inside.to_owned() })
    }

    /// An operation's error: leaving the place, or what the operating system says.
    pub(super) fn error(&self, path: &Path, error: io::Error) -> FileError {
        if leads_out(&error) {
            FileError::Outside { path: path.to_owned(), root: self.given.clone() }
        } else {
            FileError::of(path, error)
        }
    }

    pub(super) fn kind(&self, inside: &Path) -> Option<Kind> {
        self.dir.metadata(inside).ok().map(|metadata| Kind::of(&metadata))
    }

    /// A regular file. The kind is looked at first: opening a pipe would wait for its other end.
    pub(super) fn open_file(&self, path: &Path, inside: &Path) -> Result<File, FileError> {
        let metadata = self.dir.metadata(inside).map_err(|error| self.error(path, error))?;
        if !metadata.is_file() {
            return Err(FileError::NotAFile { path: path.to_owned() });
        }
        let file = self.dir.open(inside).map_err(|error| self.error(path, error))?;
        Ok(file.into_std())
    }

    /// Makes a folder and those above it. What is there is looked at first: where a link leads out, the system call that
    /// makes a folder says no more than that something is there.
    pub(super) fn make_folder(&self, path: &Path, inside: &Path) -> Result<(), FileError> {
        match self.dir.metadata(inside) {
            Ok(found) if found.is_dir() => Ok(()),
            Err(error) if leads_out(&error) => Err(self.error(path, error)),
            _ => self.dir.create_dir_all(inside).map_err(|error| self.error(path, error)),
        }
    }

    pub(super) fn entries(&self, folder: &Path, inside: &Path) -> Result<Vec<Entry>, FileError> {
        let of = |error| self.error(folder, error);
        let mut found = Vec::new();
        for entry in self.dir.read_dir(inside).map_err(of)? {
            let name = entry.map_err(of)?.file_name();
            let is_folder = self.kind(&inside.join(&name)) == Some(Kind::Folder);
            found.push(Entry { path: folder.join(name), is_folder });
        }
        found.sort();
        Ok(found)
    }

    pub(super) fn resolved(&self, path: &Path, inside: &Path) -> Result<PathBuf, FileError> {
        let found = match self.dir.canonicalize(inside) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (folder, name) = (inside.parent().unwrap_or(Path::new(".")), inside.file_name());
                let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
                // A dangling link would be followed by whoever opens the path.
                if self.dir.symlink_metadata(inside).is_ok() {
                    return Err(FileError::Outside { path: path.to_owned(), root: self.given.clone() });
                }
                self.dir.canonicalize(folder).map(|folder| folder.join(name.unwrap_or_default()))
            }
            other => other,
        };
        Ok(self.resolved.join(found.map_err(|error| self.error(path, error))?))
    }
}
