//! Project lock: any number of processes may replay recordings, one may write them.

use super::{FileError, Files};
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};

/// Lock file, relative to the project.
const LOCK: &str = ".ragcheck/lock";

/// Why the lock was not acquired.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process writes recordings.
    #[error("{holder} is recording in this project: wait until it has ended, or stop it")]
    Held { holder: String },
    /// The lock file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Held while recordings are written; released when dropped, or when the process ends for any reason.
#[derive(Debug)]
pub(crate) struct ProjectLock {
    _file: File,
}

impl Files {
    /// Acquires the lock for writing recordings; other processes see `who` in their error.
    ///
    /// # Errors
    /// [`LockError::Held`] if another process holds it.
    pub(crate) fn lock(&self, who: &str) -> Result<ProjectLock, LockError> {
        let path = self.root().join(LOCK);
        let mut file = self.lock_file(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Held { holder: holder(file) }),
            Err(TryLockError::Error(error)) => return Err(FileError::of(&path, error).into()),
        }
        // The holder's name is informative only: a full disk must not prevent locking.
        let _ = file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0))).and_then(|_| writeln!(file, "{who}"));
        Ok(ProjectLock { _file: file })
    }
}

/// Holder named in the lock file.
fn holder(mut file: File) -> String {
    let mut text = String::new();
    let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text));
    let line = text.lines().next().unwrap_or_default().trim();
    if line.is_empty() {
        "another process".to_owned()
    } else {
        line.chars().filter(|letter| !letter.is_control()).take(200).collect()
    }
}
