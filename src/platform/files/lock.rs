//! One lock a project: any number may replay recordings, one process may write them.

use super::{FileError, Files};
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};

/// The lock's file, below the project.
const LOCK: &str = ".ragcheck/lock";

/// Why the lock was not given.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else writes recordings.
    #[error("{holder} is recording in this project: wait until it has ended, or stop it")]
    Held {
        /// Who: the command, its process number, and since when.
        holder: String,
    },
    /// The lock's file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Held while recordings are written; given back when it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct ProjectLock {
    _file: File,
}

impl Files {
    /// The lock of one that writes recordings; `who` stands in the message of those that come meanwhile.
    ///
    /// # Errors
    /// [`LockError::Held`] while another process has it.
    pub(crate) fn lock(&self, who: &str) -> Result<ProjectLock, LockError> {
        let path = self.root().join(LOCK);
        let mut file = self.lock_file(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Held { holder: holder(file) }),
            Err(TryLockError::Error(error)) => return Err(FileError::of(&path, error).into()),
        }
        // The holder is a courtesy to others: a full disk is no reason not to hold the lock.
        let _ = file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0))).and_then(|_| writeln!(file, "{who}"));
        Ok(ProjectLock { _file: file })
    }
}

/// Who wrote itself into the lock's file last.
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
