//! File errors, with remedies.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Message on a hard-linked file.
const LINKED: &str = "has another name (a hard link), which may lie outside the project: copy it and delete the link, or \
                      allow its folder with `--allow-path FOLDER`";

/// Message on a file of git itself, which may hold the token of a checkout.
const REPOSITORY: &str = "is a file of git or leads to one: nothing below `.git` is part of a project";

/// Why a file was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The path leads outside every allowed place.
    #[error(
        "{} lies outside the project {}: only files below it are opened; `--allow-path FOLDER` allows another folder",
        path.display(), root.display()
    )]
    Outside { path: PathBuf, root: PathBuf },
    /// The path leads into the repository's own files.
    #[error("{} {REPOSITORY}", path.display())]
    Repository { path: PathBuf },
    /// The file does not exist.
    #[error("{} does not exist", path.display())]
    NotFound { path: PathBuf },
    /// A folder, device, pipe or socket was found where a file was expected.
    #[error("{} is not a regular file", path.display())]
    NotAFile { path: PathBuf },
    /// A project file has a second hard link, which may be outside.
    #[error("{} {LINKED}", path.display())]
    Linked { path: PathBuf },
    /// The file exceeds the size limit. `limit`: in bytes.
    #[error("{} is larger than {} MiB, the limit for one file", path.display(), limit >> 20)]
    TooLarge { path: PathBuf, limit: u64 },
    /// The file is not UTF-8.
    #[error("{} is not UTF-8 text", path.display())]
    NotText { path: PathBuf },
    /// The operating system reported an error.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Whether a write failed because the disk is full or a quota is used up: by the error itself, or by one of its sources.
pub(crate) fn is_full_disk(error: &(dyn Error + 'static)) -> bool {
    let itself = error.downcast_ref::<io::Error>().is_some_and(|error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => true,
        // Without a number of the operating system, it is a file that is larger than what is read.
        io::ErrorKind::FileTooLarge => error.raw_os_error().is_some(),
        _ => false,
    });
    itself || error.source().is_some_and(is_full_disk)
}

impl FileError {
    /// The error of an operation on `path`.
    pub fn of(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        if source.kind() == io::ErrorKind::NotFound { Self::NotFound { path } } else { Self::Io { path, source } }
    }

    /// Whether the file is missing, which many readers treat as empty.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// The message without the path, for texts that already name it.
    pub fn reason(&self) -> String {
        match self {
            Self::Outside { root, .. } => format!(
                "it lies outside the project {}: only files below it are opened; `--allow-path FOLDER` allows another folder",
                root.display()
            ),
            Self::Repository { .. } => format!("it {REPOSITORY}"),
            Self::NotFound { .. } => "it does not exist".to_owned(),
            Self::NotAFile { .. } => "it is not a regular file".to_owned(),
            Self::Linked { .. } => format!("it {LINKED}"),
            Self::TooLarge { limit, .. } => format!("it is larger than {} MiB, the limit for one file", limit >> 20),
            Self::NotText { .. } => "it is not UTF-8 text".to_owned(),
            Self::Io { source, .. } => source.to_string(),
        }
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        let kind = match &error {
            FileError::Io { source, .. } => source.kind(),
            FileError::NotFound { .. } => io::ErrorKind::NotFound,
            FileError::Outside { .. } | FileError::Repository { .. } | FileError::Linked { .. } => {
                io::ErrorKind::PermissionDenied
            }
            FileError::TooLarge { .. } => io::ErrorKind::FileTooLarge,
            FileError::NotText { .. } | FileError::NotAFile { .. } => io::ErrorKind::InvalidData,
        };
        match error {
            FileError::Io { source, .. } => source,
            other => io::Error::new(kind, other.reason()),
        }
    }
}
