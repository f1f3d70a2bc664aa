//! The running turn of a session, stored at every change by flows that keep their state, so that a restarted service
//! resumes it.
//!
//! File `under-way/NAME.json`, beside `sessions/NAME.json`: `{version, state, conversation}`, with the conversation as
//! [`crate::flow::ConversationState::to_json`] writes it. It exists from a turn's first change until the turn's answer
//! is in the session's file. A build refuses another version: the session then starts afresh, and its user is notified.

use super::sessions::replace;
use crate::flow::{SessionStore, StoreError};
use crate::platform::files;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// Version of the file that this build writes.
const VERSION: u32 = 1;

/// Store of one session.
#[derive(Debug)]
pub(super) struct UnderWay {
    file: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    /// State of the turn, for people who inspect the file.
    state: String,
    conversation: String,
}

impl UnderWay {
    /// Creates the store in that file.
    pub(super) fn in_file(file: PathBuf) -> Self {
        Self { file }
    }
}

impl SessionStore for UnderWay {
    fn save(&self, _: &str, state: &str, text: &str) -> Result<(), StoreError> {
        let stored = Stored { version: VERSION, state: state.to_owned(), conversation: text.to_owned() };
        let bytes = serde_json::to_vec(&stored).map_err(|error| StoreError::Unusable(error.to_string()))?;
        replace(&self.file, &bytes).map_err(|error| StoreError::Unusable(error.to_string()))
    }

    fn load(&self, _: &str) -> Result<Option<String>, StoreError> {
        let text = match files::read_to_string(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| StoreError::Unusable(error.to_string()))?,
        };
        match serde_json::from_str(&text) {
            Ok(Stored { version: VERSION, conversation, .. }) => Ok(Some(conversation)),
            Ok(Stored { version, .. }) => {
                Err(StoreError::Unusable(format!("its file has version {version}, this build reads {VERSION}")))
            }
            Err(error) => Err(StoreError::Unusable(error.to_string())),
        }
    }

    fn clear(&self, _: &str) -> Result<(), StoreError> {
        match files::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::Unusable(error.to_string())),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_state_is_read_back_until_it_is_cleared() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = UnderWay::in_file(folder.path().join("s-1.json"));
        assert_eq!(store.load("s-1"), Ok(None));
        for text in ["one", "two"] {
            store.save("s-1", "thinking", text).expect("is stored");
        }
        assert_eq!(store.load("s-1"), Ok(Some("two".into())));
        assert_eq!((store.clear("s-1"), store.clear("s-1")), (Ok(()), Ok(())), "a second time there is nothing to do");
        assert_eq!(store.load("s-1"), Ok(None));
    }

    #[test]
    fn what_is_damaged_of_another_version_or_cannot_be_written_is_told_as_unusable() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = UnderWay::in_file(folder.path().join("s-1.json"));
        for text in ["", "{", "null", r#"{"version":2,"state":"thinking","conversation":""}"#] {
            std::fs::write(folder.path().join("s-1.json"), text).expect("written");
            assert!(matches!(store.load("s-1"), Err(StoreError::Unusable(_))), "{text}");
        }
        let nowhere = UnderWay::in_file(folder.path().join("s-1.json/s-1.json"));
        assert!(matches!(nowhere.save("s-1", "thinking", "one"), Err(StoreError::Unusable(_))));
    }
}
