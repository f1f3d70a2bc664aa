//! Conversations by session: created, looked up, locked by one request at a time, and stored before they are
//! acknowledged.
//!
//! A session is a file, `ID.json`: `{version, last_active, conversation}`, with the conversation as
//! [`ConversationState::to_json`] writes it; `conversation` is null in an expired session, of which nothing else is
//! kept. Only the service's user may read it. A build refuses a newer version. The file is replaced atomically and
//! synced before a turn is acknowledged, so that a killed service has every answer that it delivered. The stored state
//! of a running turn is in a separate file (`under_way`) and is removed with the session.

use super::api::ApiError;
use super::under_way::UnderWay;
use crate::flow::{ConversationState, StateError};
use crate::platform::lock::lock;
use crate::platform::{files, secrets};
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Version of a session's file that this build writes.
const VERSION: u32 = 1;
/// Maximum number of turns of one session; the model is shown all of them.
const MOST_TURNS: u32 = 200;

/// Reason why a session cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    /// The id is unknown, or belongs to another tenant.
    #[error("there is no such session: leave `session_id` out to begin one")]
    Unknown,
    /// The session expired, or has the maximum number of turns.
    #[error("the session has ended: leave `session_id` out to begin another")]
    Expired,
    /// Another request of the session is running.
    #[error("another question of this session is being answered: wait for its answer")]
    Busy,
    /// The request has a history, but the session already has one.
    #[error("`conversationHistory` is for a session that begins: this one has a history")]
    HasHistory,
    /// The request has a different context than the session.
    #[error("`tool_context` is for a session that begins: this one has another")]
    OtherContext,
    /// Its file cannot be read or written.
    #[error("the session cannot be stored: {0}")]
    File(#[from] io::Error),
    /// Its file does not have the expected format.
    #[error("the session cannot be read: {0}")]
    Unreadable(String),
    /// This build cannot read its conversation.
    #[error(transparent)]
    State(#[from] StateError),
}

impl From<SessionError> for ApiError {
    fn from(error: SessionError) -> Self {
        let (status, kind) = match &error {
            SessionError::Unknown => (StatusCode::NOT_FOUND, "unknown_session"),
            SessionError::Expired => (StatusCode::GONE, "session_expired"),
            SessionError::Busy => (StatusCode::CONFLICT, "session_busy"),
            SessionError::HasHistory | SessionError::OtherContext => (StatusCode::BAD_REQUEST, "invalid_request"),
            SessionError::File(_) | SessionError::Unreadable(_) | SessionError::State(_) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "session_unavailable")
            }
        };
        Self::new(status, kind, error.to_string())
    }
}

/// A session's file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    last_active: Timestamp,
    conversation: Option<String>,
}

type Held = Arc<Mutex<BTreeSet<String>>>;

/// The sessions of a service.
#[derive(Debug)]
pub(super) struct Sessions {
    folder: PathBuf,
    /// Folder of running turns.
    under_way: PathBuf,
    lifetime: Duration,
    /// Whether a caller may name a session that does not exist: for tests of the service as an agent.
    adopts: bool,
    held: Held,
}

/// A session locked by one request; it is busy for others until this is dropped.
#[derive(Debug)]
pub(super) struct Session {
    /// Id known to the caller.
    pub(super) id: String,
    pub(super) conversation: ConversationState,
    file: PathBuf,
    /// File of its running turn.
    under_way: PathBuf,
    _hold: Hold,
}

#[derive(Debug)]
struct Hold {
    id: String,
    held: Held,
}

impl Drop for Hold {
    fn drop(&mut self) {
        lock(&self.held).remove(&self.id);
    }
}

impl Sessions {
    /// Opens the sessions in `folder`, and their running turns in `under-way` beside it; creates missing folders. Each
    /// session expires when it is unused for `lifetime`.
    pub(super) fn open(folder: &Path, lifetime: Duration, adopts: bool) -> io::Result<Self> {
        let under_way = folder.with_file_name("under-way");
        files::create_private_dir(folder)?;
        files::create_private_dir(&under_way)?;
        Ok(Self { folder: folder.to_owned(), under_way, lifetime, adopts, held: Held::default() })
    }

    /// Creates a session with an id that cannot be guessed.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub(super) fn mint(&self, tenant: Option<&str>) -> Result<Session, SessionError> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        self.begin(&format!("s-{}", hex::encode(bytes)), tenant)
    }

    /// Removes the contents of sessions that expired before `now`, but keeps a record that they existed. Unreadable
    /// files are left until they are requested. A running turn of a session without an answer is removed too: its id
    /// was never returned.
    ///
    /// # Errors
    /// If the folder cannot be read, or a file cannot be written.
    pub(super) fn forget_expired(&self, now: Timestamp) -> io::Result<()> {
        for entry in files::entries(&self.folder)? {
            let text = files::read_to_string(&entry.path).unwrap_or_default();
            let Ok(Stored { version: VERSION, last_active, conversation: Some(_) }) = serde_json::from_str(&text)
            else {
                continue;
            };
            if self.is_over(last_active, now) {
                store(&entry.path, &Stored { version: VERSION, last_active, conversation: None })?;
                remove(&beside(&entry.path, &self.under_way))?;
            }
        }
        for entry in files::entries(&self.under_way)? {
            let session = beside(&entry.path, &self.folder);
            let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
            if !self.adopts && files::metadata(&session).is_err_and(|error| is_missing(&error)) {
                remove(&entry.path)?;
            }
        }
        Ok(())
    }

    fn is_over(&self, last_active: Timestamp, now: Timestamp) -> bool {
        now > last_active && now.duration_since(last_active).unsigned_abs() > self.lifetime
    }

    fn begin(&self, id: &str, tenant: Option<&str>) -> Result<Session, SessionError> {
        let hold = self.hold(id)?;
        let mut conversation = ConversationState::new(0, "main").of_tenant(tenant);
        id.clone_into(&mut conversation.session);
        let (file, under_way) = (self.folder.join(name(id)), self.under_way.join(name(id)));
        Ok(Session { id: id.to_owned(), conversation, file, under_way, _hold: hold })
    }

    /// Continues a session at the time `now`, for a request of this tenant (that of the session, if the request names
    /// none).
    ///
    /// # Errors
    /// [`SessionError`] if the session cannot be used.
    pub(super) fn resume(&self, id: &str, tenant: Option<&str>, now: Timestamp) -> Result<Session, SessionError> {
        let (file, under_way) = (self.folder.join(name(id)), self.under_way.join(name(id)));
        if !is_minted(id) && !self.adopts {
            return Err(SessionError::Unknown);
        }
        let hold = self.hold(id)?;
        let text = match files::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                drop(hold);
                return if self.adopts { self.begin(id, tenant) } else { Err(SessionError::Unknown) };
            }
            Err(error) => return Err(error.into()),
        };
        let unreadable = |why: String| SessionError::Unreadable(why);
        let Stored { version, last_active, conversation } =
            serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
        if version != VERSION {
            return Err(unreadable(format!("its file has version {version}, this build reads {VERSION}")));
        }
        let Some(conversation) = conversation else { return Err(SessionError::Expired) };
        if self.is_over(last_active, now) {
            // The contents are removed when the session expires; the record that it existed stays.
            store(&file, &Stored { version: VERSION, last_active, conversation: None })?;
            remove(&under_way)?;
            return Err(SessionError::Expired);
        }
        let conversation = ConversationState::from_json(&conversation)?;
        if tenant.is_some() && conversation.tenant.as_deref() != tenant {
            return Err(SessionError::Unknown);
        }
        if conversation.turns >= MOST_TURNS {
            return Err(SessionError::Expired);
        }
        Ok(Session { id: id.to_owned(), conversation, file, under_way, _hold: hold })
    }

    /// Removes all sessions that are not locked by a request.
    pub(super) fn clear(&self) -> io::Result<()> {
        for folder in [&self.folder, &self.under_way] {
            files::remove_dir_all(folder)?;
            files::create_private_dir(folder)?;
        }
        Ok(())
    }

    fn hold(&self, id: &str) -> Result<Hold, SessionError> {
        if lock(&self.held).insert(id.to_owned()) {
            Ok(Hold { id: id.to_owned(), held: Arc::clone(&self.held) })
        } else {
            Err(SessionError::Busy)
        }
    }
}

/// Name of a session's files: the id, or the digest of an id chosen by a caller, so that no id can name another path.
fn name(id: &str) -> String {
    let name = if is_minted(id) { id.to_owned() } else { format!("t-{}", hex::encode(Sha256::digest(id))) };
    format!("{name}.json")
}

/// Whether an id has the form of ids created here.
fn is_minted(id: &str) -> bool {
    let digits = id.strip_prefix("s-").unwrap_or_default();
    digits.len() == 32 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl Session {
    /// Stores the conversation as of `now` durably and removes the running turn.
    ///
    /// # Errors
    /// If it cannot be written: the previous contents stay.
    pub(super) fn save(&self, now: Timestamp) -> io::Result<()> {
        let conversation = Some(self.conversation.to_json());
        store(&self.file, &Stored { version: VERSION, last_active: now, conversation })?;
        remove(&self.under_way)
    }

    /// The store of the session's running turn.
    pub(super) fn under_way(&self) -> UnderWay {
        UnderWay::in_file(self.under_way.clone())
    }
}

fn store(file: &Path, stored: &Stored) -> io::Result<()> {
    replace(file, &serde_json::to_vec(stored)?)
}

/// Replaces a file atomically and durably, with secrets redacted.
///
/// # Errors
/// If it cannot be written: the previous contents stay.
pub(super) fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut new = files::temporary_file(folder)?;
    new.write_all(&secrets::clean_bytes(bytes))?;
    new.sync()?;
    files::persist_private(new, file)?;
    files::sync_folder(folder);
    Ok(())
}

/// The path of the same file name in another folder.
fn beside(file: &Path, folder: &Path) -> PathBuf {
    folder.join(file.file_name().unwrap_or_default())
}

fn remove(file: &Path) -> io::Result<()> {
    match files::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
