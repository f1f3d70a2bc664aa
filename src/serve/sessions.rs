//! Conversations by session: minted, found again, held by one request at a time, stored before they are acknowledged.
//!
//! A session is a file, `ID.json`: `{version, last_active, conversation}`, the conversation as
//! [`ConversationState::to_json`] writes it; `conversation` is null in a session that expired, of which nothing else is
//! kept. Only the service's user may read it. A build refuses a newer version. The file is replaced as a whole and made to last before a turn is
//! acknowledged, so that a killed service has every answer that anybody was given. What a turn under way stores stands beside
//! it (`under_way`), and goes with the session.

use super::api::ApiError;
use super::under_way::UnderWay;
use crate::files;
use crate::flow::{ConversationState, StateError};
use crate::secrets;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The version of a session's file that this build writes.
const VERSION: u32 = 1;
/// Turns of one session; the model is shown all of them.
const MOST_TURNS: u32 = 200;

/// Why a session cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Nobody was given that id, or it is another tenant's.
    #[error("there is no such session: leave `session_id` out to begin one")]
    Unknown,
    /// It was not used for too long, or is as long as one may be.
    #[error("the session has ended: leave `session_id` out to begin another")]
    Expired,
    /// Another request of it is under way.
    #[error("another question of this session is being answered: wait for its answer")]
    Busy,
    /// A history was brought for a session that has one.
    #[error("`conversationHistory` is for a session that begins: this one has a history")]
    HasHistory,
    /// Another context was brought for a session that has one.
    #[error("`tool_context` is for a session that begins: this one has another")]
    OtherContext,
    /// Its file cannot be read or written.
    #[error("the session cannot be stored: {0}")]
    File(#[from] io::Error),
    /// Its file is not what this build writes.
    #[error("the session cannot be read: {0}")]
    Unreadable(String),
    /// Its conversation is not one that this build reads.
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

/// All sessions of a service.
#[derive(Debug)]
pub(super) struct Sessions {
    folder: PathBuf,
    /// The turns that are under way.
    under_way: PathBuf,
    lifetime: Duration,
    /// Whether a caller may name a session that there is not: for tests of the service as an agent.
    adopts: bool,
    held: Held,
}

/// A session that one request holds; others are told that it is busy until this is dropped.
#[derive(Debug)]
pub(super) struct Session {
    /// The id that the caller knows.
    pub(super) id: String,
    pub(super) conversation: ConversationState,
    file: PathBuf,
    /// The file of its turn under way.
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

fn lock(held: &Held) -> MutexGuard<'_, BTreeSet<String>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sessions {
    /// The sessions in `folder`, and their turns under way beside it in `under-way`; both are made where they are missing.
    /// Each session ends when it is unused for `lifetime`.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub(super) fn open(folder: &Path, lifetime: Duration, adopts: bool) -> io::Result<Self> {
        let under_way = folder.with_file_name("under-way");
        files::create_private_dir(folder)?;
        files::create_private_dir(&under_way)?;
        Ok(Self { folder: folder.to_owned(), under_way, lifetime, adopts, held: Held::default() })
    }

    /// Begins a session with an id that nobody can guess.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub(super) fn mint(&self, tenant: Option<&str>) -> Result<Session, SessionError> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        self.begin(&format!("s-{}", hex::encode(bytes)), tenant)
    }

    /// Removes what was said in sessions that expired before `now`; that there was one is kept. What cannot be read is left
    /// to whoever asks for it. A turn under way of a session without an answer goes too: nobody was told its id.
    ///
    /// # Errors
    /// When the folder cannot be read, or a file cannot be written.
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

    /// Goes on with a session at the time `now`, for a request of this tenant (of the session's own, where it names
    /// none).
    ///
    /// # Errors
    /// [`SessionError`] for a session that cannot be used.
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
            // What was said is not kept beyond the session's life; that there was one is.
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

    /// Forgets all sessions that no request holds.
    ///
    /// # Errors
    /// When a file cannot be removed.
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

/// The name of a session's files; of an id that a caller chose, its digest, so that no id leads anywhere else.
fn name(id: &str) -> String {
    let name = if is_minted(id) { id.to_owned() } else { format!("t-{}", hex::encode(Sha256::digest(id))) };
    format!("{name}.json")
}

/// Whether an id is of the kind that is minted.
fn is_minted(id: &str) -> bool {
    let digits = id.strip_prefix("s-").unwrap_or_default();
    digits.len() == 32 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl Session {
    /// Stores the conversation as it is at `now`, for good: no turn is under way any more.
    ///
    /// # Errors
    /// When it cannot be written: what was stored before stays.
    pub(super) fn save(&self, now: Timestamp) -> io::Result<()> {
        let conversation = Some(self.conversation.to_json());
        store(&self.file, &Stored { version: VERSION, last_active: now, conversation })?;
        remove(&self.under_way)
    }

    /// Where a turn of it is stored while it is under way.
    pub(super) fn under_way(&self) -> UnderWay {
        UnderWay::in_file(self.under_way.clone())
    }
}

fn store(file: &Path, stored: &Stored) -> io::Result<()> {
    replace(file, &serde_json::to_vec(stored)?)
}

/// Replaces a file as a whole, without secrets, for good.
///
/// # Errors
/// When it cannot be written: what was there before stays.
pub(super) fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut new = files::temporary_file(folder)?;
    new.write_all(&secrets::clean_bytes(bytes))?;
    new.sync()?;
    files::persist_private(new, file)?;
    files::sync_folder(folder);
    Ok(())
}

/// The file of the same name in another folder.
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
mod tests {
    use super::*;
    use crate::flow::SessionStore as _;

    const HOUR: Duration = Duration::from_hours(1);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("a time")
    }

    fn sessions(folder: &Path) -> Sessions {
        Sessions::open(&folder.join("sessions"), HOUR, false).expect("opens")
    }

    fn kind(result: Result<Session, SessionError>) -> String {
        ApiError::from(result.expect_err("is refused")).kind
    }

    #[test]
    fn a_session_is_found_again_by_another_process_and_by_its_own_tenant_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut session = sessions(folder.path()).mint(Some("north")).expect("minted");
        session.conversation.turns = 3;
        session.save(at(0)).expect("is stored");
        let id = session.id.clone();
        drop(session);
        let sessions = sessions(folder.path());
        let again = sessions.resume(&id, Some("north"), at(60)).expect("is found");
        assert_eq!((again.conversation.turns, again.conversation.session.as_str()), (3, id.as_str()));
        drop(again);
        assert_eq!(
            sessions.resume(&id, None, at(60)).expect("its own tenant").conversation.tenant.as_deref(),
            Some("north")
        );
        assert_eq!(kind(sessions.resume(&id, Some("south"), at(60))), "unknown_session");
    }

    #[test]
    fn what_nobody_was_given_is_unknown_wherever_it_would_lead() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("secret.json"), "{}").expect("written");
        let sessions = sessions(folder.path());
        let minted = sessions.mint(None).expect("minted").id.clone();
        for id in [
            "../secret",
            "",
            "s-",
            &minted.to_uppercase(),
            &minted,
            "/etc/passwd",
            "s-..%2f..%2f..%2f..%2f..%2f..%2fxx",
        ] {
            assert_eq!(kind(sessions.resume(id, None, at(0))), "unknown_session", "{id}");
        }
    }

    #[test]
    fn a_turn_under_way_outlasts_the_process_and_ends_with_its_answer_or_its_session() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut session = sessions(folder.path()).mint(None).expect("minted");
        session.conversation.turns = 1;
        session.save(at(0)).expect("is stored");
        let id = session.id.clone();
        session.under_way().save(&id, "observing", "half a turn").expect("is stored");
        drop(session);
        let nobodys = sessions(folder.path()).mint(None).expect("minted");
        nobodys.under_way().save(&nobodys.id, "thinking", "a first turn").expect("is stored");
        let again = sessions(folder.path());
        again.forget_expired(at(60)).expect("looks");
        assert_eq!(nobodys.under_way().load(&nobodys.id), Ok(None), "nobody knows its id");
        let session = again.resume(&id, None, at(60)).expect("is found");
        assert_eq!(session.under_way().load(&id), Ok(Some("half a turn".into())));
        session.save(at(60)).expect("is stored");
        assert_eq!(session.under_way().load(&id), Ok(None), "its answer is in the session");
        session.under_way().save(&id, "thinking", "another").expect("is stored");
        let store = session.under_way();
        drop(session);
        assert_eq!(kind(again.resume(&id, None, at(9_999))), "session_expired");
        assert_eq!(store.load(&id), Ok(None), "the session has ended");
    }

    #[test]
    fn a_session_answers_one_question_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let sessions = sessions(folder.path());
        let session = sessions.mint(None).expect("minted");
        session.save(at(0)).expect("is stored");
        assert_eq!(kind(sessions.resume(&session.id, None, at(1))), "session_busy");
        let id = session.id.clone();
        drop(session);
        assert!(sessions.resume(&id, None, at(1)).is_ok());
    }

    #[test]
    fn an_unused_session_ends_and_what_was_said_is_gone_for_good() {
        let folder = tempfile::tempdir().expect("a folder");
        let sessions = sessions(folder.path());
        let mut session = sessions.mint(None).expect("minted");
        session.conversation.history.push(crate::chat::Message::text(crate::chat::Role::User, "my secret"));
        session.save(at(0)).expect("is stored");
        let (id, file) = (session.id.clone(), session.file.clone());
        drop(session);
        assert!(sessions.resume(&id, None, at(3600)).is_ok(), "within its life");
        assert_eq!(kind(sessions.resume(&id, None, at(3602))), "session_expired");
        assert_eq!(kind(sessions.resume(&id, None, at(10))), "session_expired", "also when the clock was set back");
        assert!(!std::fs::read_to_string(file).expect("a file").contains("my secret"));
    }

    #[test]
    fn what_was_said_in_expired_sessions_is_gone_when_the_service_starts_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let said = |words: &str, second: i64| {
            let mut session = sessions(folder.path()).mint(None).expect("minted");
            session.conversation.history.push(crate::chat::Message::text(crate::chat::Role::User, words));
            session.save(at(second)).expect("is stored");
            session.file.clone()
        };
        let (old, fresh) = (said("my secret", 0), said("not so old", 3000));
        let sessions = sessions(folder.path());
        std::fs::write(sessions.folder.join("s-broken.json"), "{").expect("written");
        sessions.forget_expired(at(4000)).expect("is done");
        assert!(!std::fs::read_to_string(&old).expect("a file").contains("my secret"));
        assert!(std::fs::read_to_string(&fresh).expect("a file").contains("not so old"));
        let id = old.file_stem().and_then(|name| name.to_str()).expect("an id").to_owned();
        assert_eq!(kind(sessions.resume(&id, None, at(4001))), "session_expired");
    }

    #[test]
    fn a_session_ends_after_two_hundred_turns() {
        let folder = tempfile::tempdir().expect("a folder");
        let sessions = sessions(folder.path());
        let mut session = sessions.mint(None).expect("minted");
        let id = session.id.clone();
        session.conversation.turns = MOST_TURNS - 1;
        session.save(at(0)).expect("is stored");
        drop(session);
        let mut last = sessions.resume(&id, None, at(1)).expect("has one turn left");
        last.conversation.turns += 1;
        last.save(at(1)).expect("is stored");
        drop(last);
        assert_eq!(kind(sessions.resume(&id, None, at(2))), "session_expired");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_what_was_said_also_where_others_could_before() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let sessions = sessions(folder.path());
        let mode = |file: &Path| std::fs::metadata(file).expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode(&sessions.folder), 0o700);
        let session = sessions.mint(None).expect("minted");
        session.save(at(0)).expect("is stored");
        assert_eq!(mode(&session.file), 0o600);
        std::fs::set_permissions(&session.file, std::fs::Permissions::from_mode(0o644)).expect("is allowed");
        session.save(at(1)).expect("is stored");
        assert_eq!(mode(&session.file), 0o600);
    }

    #[test]
    fn a_session_of_a_newer_build_and_a_broken_one_are_errors_of_their_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let sessions = sessions(folder.path());
        let session = sessions.mint(None).expect("minted");
        session.save(at(0)).expect("is stored");
        let (id, file) = (session.id.clone(), session.file.clone());
        drop(session);
        let whole = std::fs::read_to_string(&file).expect("a file");
        for broken in
            [whole.replacen("\"version\":1", "\"version\":2", 1), whole[..whole.len() / 2].to_owned(), String::new()]
        {
            std::fs::write(&file, broken).expect("written");
            assert_eq!(kind(sessions.resume(&id, None, at(0))), "session_unavailable");
        }
    }

    #[test]
    fn a_service_for_tests_adopts_the_ids_that_its_callers_choose() {
        let folder = tempfile::tempdir().expect("a folder");
        let sessions = Sessions::open(&folder.path().join("sessions"), HOUR, true).expect("opens");
        let session = sessions.resume("two-stage/a/../../b.1", None, at(0)).expect("is adopted");
        session.save(at(0)).expect("is stored");
        assert!(session.file.starts_with(folder.path().join("sessions")));
        drop(session);
        sessions.clear().expect("is cleared");
        assert_eq!(sessions.resume("two-stage/a/../../b.1", None, at(0)).expect("begins anew").conversation.turns, 0);
    }
}
