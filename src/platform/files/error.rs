//! What keeps a file from being read or written, with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

/// What is said of a file with a second name.
const LINKED: &str = "has another name (a hard link), which may lie outside the project: copy it and delete the link, or \
                      allow its folder with `--allow-path FOLDER`";

/// Why a file was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The path leads out of every place.
    #[error(
        "{} lies outside the project {}: only files below it are opened; `--allow-path FOLDER` allows another folder",
        path.display(), root.display()
    )]
    Outside {
        /// The path as it was asked for.
        path: PathBuf,
        /// The project's folder.
        root: PathBuf,
    },
    /// Nothing is there.
    #[error("{} does not exist", path.display())]
    NotFound {
        /// The path as it was asked for.
        path: PathBuf,
    },
    /// A folder, device, pipe or socket where a file was expected.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// The path as it was asked for.
        path: PathBuf,
    },
    /// A file of the project with a second name, which may stand outside.
    #[error("{} {LINKED}", path.display())]
    Linked {
        /// The path as it was asked for.
        path: PathBuf,
    },
    /// More bytes than are read.
    #[error("{} is larger than {} MiB, the limit for one file", path.display(), limit >> 20)]
    TooLarge {
        /// The path as it was asked for.
        path: PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
    /// Bytes that are no text.
    #[error("{} is not UTF-8 text", path.display())]
    NotText {
        /// The path as it was asked for.
        path: PathBuf,
    },
    /// What the operating system says.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path as it was asked for.
        path: PathBuf,
        /// Its error.
        source: io::Error,
    },
}

/// Whether a write failed for want of room: a full disk, or a quota that is used up.
pub(crate) fn is_full_disk(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

impl FileError {
    /// The error of an operation on `path`.
    pub fn of(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        if source.kind() == io::ErrorKind::NotFound { Self::NotFound { path } } else { Self::Io { path, source } }
    }

    /// Whether nothing is there, which many readers take as empty.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// What it says without the path, for a message that already names it.
    pub fn reason(&self) -> String {
        match self {
            Self::Outside { root, .. } => format!(
                "it lies outside the project {}: only files below it are opened; `--allow-path FOLDER` allows another folder",
                root.display()
            ),
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
            FileError::Outside { .. } | FileError::Linked { .. } => io::ErrorKind::PermissionDenied,
            FileError::TooLarge { .. } => io::ErrorKind::FileTooLarge,
            FileError::NotText { .. } | FileError::NotAFile { .. } => io::ErrorKind::InvalidData,
        };
        match error {
            FileError::Io { source, .. } => source,
            other => io::Error::new(kind, other.reason()),
        }
    }
}
