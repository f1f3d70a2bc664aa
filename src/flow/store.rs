//! Stores the state of a session during a turn, so that a restarted process can continue it.
//!
//! A store holds one text per session, the newest. That of trials is in memory and simulates a case's declared `fault`:
//!
//! | fault | what the store does |
//! |---|---|
//! | `killed-in-STATE` | the process ends after the first text stored in that state of a turn; once per conversation |
//! | `store-broken` | stored state cannot be read back |

use crate::platform::lock::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// Why a store cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It cannot be read or written.
    #[error("the session store cannot be used: {0}")]
    Unusable(String),
    /// The process ends now; the stored state is left for the next one.
    #[error("the process was ended after it stored the session")]
    Killed,
}

/// Stores the state of sessions.
pub trait SessionStore: Send + Sync + std::fmt::Debug {
    /// Stores `text` as the newest state of `session`, whose turn is in `state`.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be stored, or if the process is to end.
    fn save(&self, session: &str, state: &str, text: &str) -> Result<(), StoreError>;
    /// The newest text of `session`; `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    fn load(&self, session: &str) -> Result<Option<String>, StoreError>;
    /// Removes the stored state of `session`.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be removed.
    fn clear(&self, session: &str) -> Result<(), StoreError>;
    /// Declares the fault of the case; stores that simulate nothing ignore it.
    fn declare(&self, _fault: &str) {}
}

/// The store of a trial: in memory, with declared faults.
#[derive(Debug, Default)]
pub(crate) struct MemoryStore {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    texts: BTreeMap<String, String>,
    fault: String,
    killed: BTreeSet<String>,
}

impl SessionStore for MemoryStore {
    fn save(&self, session: &str, state: &str, text: &str) -> Result<(), StoreError> {
        let mut held = lock(&self.held);
        held.texts.insert(session.to_owned(), text.to_owned());
        if held.fault.strip_prefix("killed-in-") == Some(state) && held.killed.insert(session.to_owned()) {
            return Err(StoreError::Killed);
        }
        Ok(())
    }

    fn load(&self, session: &str) -> Result<Option<String>, StoreError> {
        let held = lock(&self.held);
        let text = held.texts.get(session);
        if held.fault == "store-broken" && text.is_some() {
            return Err(StoreError::Unusable("what it holds is damaged".into()));
        }
        Ok(text.cloned())
    }

    fn clear(&self, session: &str) -> Result<(), StoreError> {
        lock(&self.held).texts.remove(session);
        Ok(())
    }

    fn declare(&self, fault: &str) {
        fault.clone_into(&mut lock(&self.held).fault);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_gives_back_the_newest_text_of_each_session_until_it_is_cleared() {
        let store = MemoryStore::default();
        assert_eq!(store.load("a"), Ok(None));
        for (session, text) in [("a", "1"), ("b", "2"), ("a", "3")] {
            assert_eq!(store.save(session, "thinking", text), Ok(()));
        }
        assert_eq!((store.load("a"), store.load("b")), (Ok(Some("3".into())), Ok(Some("2".into()))));
        assert_eq!(store.clear("a"), Ok(()));
        assert_eq!((store.load("a"), store.load("b")), (Ok(None), Ok(Some("2".into()))));
    }

    #[test]
    fn a_declared_kill_happens_once_a_session_after_the_text_is_stored() {
        let store = MemoryStore::default();
        store.declare("killed-in-observing");
        assert_eq!(store.save("a", "thinking", "1"), Ok(()));
        assert_eq!(store.save("a", "observing", "2"), Err(StoreError::Killed));
        assert_eq!(store.load("a"), Ok(Some("2".into())));
        assert_eq!(store.save("a", "observing", "3"), Ok(()));
        assert_eq!(store.save("b", "observing", "4"), Err(StoreError::Killed));
    }

    #[test]
    fn a_broken_store_says_so_where_something_was_stored() {
        let store = MemoryStore::default();
        store.declare("store-broken");
        assert_eq!(store.load("a"), Ok(None));
        assert_eq!(store.save("a", "thinking", "1"), Ok(()));
        assert!(store.load("a").is_err());
    }
}
