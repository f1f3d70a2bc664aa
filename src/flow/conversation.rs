//! One conversation, as far as later turns need it: a single value that can be stored and restored.
//!
//! | version | what is new |
//! |---|---|
//! | 1 | `ordinal`, `name`, `session`, `history`, `turns`; `flow`: the flow's state, with a separate version |
//! | 2 | `tenant`, if set; a conversation without a tenant is still written as version 1 |
//! | 3 | `tool_context`, if not empty; a conversation without one is still written as the version before |
//!
//! A build reads its own version and older ones. A newer one is [`StateError::Newer`] and is not read at all, so that
//! nothing is lost when it is written back. Unknown fields of a known version are an error, for the same reason.

use crate::provider::chat::Message;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The newest version of a stored conversation that this build writes and reads.
pub(crate) const CONVERSATION_VERSION: u32 = 3;
/// The version before: has a tenant, but no user data for tools.
const WITH_TENANT: u32 = 2;

/// What a conversation holds; [`ConversationState::to_json`] writes its version before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConversationState {
    /// Its version was read by then.
    #[serde(rename = "version", skip_serializing)]
    read: IgnoredAny,
    /// Ordinal within the trial, from 0.
    pub ordinal: u32,
    /// Name in the scenario.
    pub name: String,
    /// Session that the conversation belongs to: the name, unless a service sets another.
    pub session: String,
    /// Tenant whose knowledge the conversation may search, for flows with tenants; never changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Data about the user that is passed to tools outside the conversation; never changes.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub tool_context: Map<String, Value>,
    /// Messages shown to later turns, oldest first.
    pub history: Vec<Message>,
    /// Number of turns begun.
    pub turns: u32,
    /// State of the flow; `None` before the flow stored any.
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<StoredFlowState>,
}

/// State that a flow keeps between turns in addition to the history.
pub trait FlowState: Serialize + DeserializeOwned + Default {
    /// The flow's name.
    const FLOW: &'static str;
    /// Version that this build writes; changed whenever older builds could not read what is written. 0 for state that
    /// is never written.
    const VERSION: u32;
}

/// State of a flow, as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredFlowState {
    name: String,
    version: u32,
    state: Value,
}

/// A conversation as stored.
#[derive(Serialize)]
struct Stored<'s> {
    version: u32,
    #[serde(flatten)]
    state: &'s ConversationState,
}

/// The version alone, which is read first.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Why a stored conversation cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// Not a stored conversation, or a damaged one.
    #[error("the stored conversation cannot be read: {reason}; begin a new one")]
    Unreadable { reason: String },
    /// Written by a newer build.
    #[error(
        "the stored conversation has version {version}, this build reads up to {CONVERSATION_VERSION}: update ragcheck"
    )]
    Newer { version: u32 },
    /// Another flow stored its state in the conversation. `flow`: the one that is to continue it.
    #[error("the conversation was led by the flow `{found}` and cannot go on with `{flow}`: begin a new one")]
    OtherFlow { flow: &'static str, found: String },
    /// The flow's state has a version that this build does not know.
    #[error(
        "the state of flow `{flow}` has version {version}, this build reads {known}: use the build that wrote it, or begin a new conversation"
    )]
    FlowVersion { flow: &'static str, version: u32, known: u32 },
    /// The flow's state is damaged.
    #[error("the state of flow `{flow}` cannot be read: {reason}; begin a new conversation")]
    FlowState { flow: &'static str, reason: String },
}

impl ConversationState {
    /// Creates a conversation before its first turn.
    pub fn new(ordinal: u32, name: &str) -> Self {
        let (name, session) = (name.to_owned(), name.to_owned());
        let (tenant, tool_context, history, flow) = (None, Map::new(), Vec::new(), None);
        Self { read: IgnoredAny, ordinal, name, session, tenant, tool_context, history, turns: 0, flow }
    }

    /// Sets the tenant.
    #[must_use]
    pub fn of_tenant(self, tenant: Option<&str>) -> Self {
        Self { tenant: tenant.map(str::to_owned), ..self }
    }

    /// Sets the data about the user that is passed to tools.
    #[must_use]
    #[cfg(test)]
    pub fn knowing(self, tool_context: Map<String, Value>) -> Self {
        Self { tool_context, ..self }
    }

    /// Writes the conversation as one line of JSON.
    pub fn to_json(&self) -> String {
        // Older builds can still read what they know.
        let version = match (self.tool_context.is_empty(), &self.tenant) {
            (false, _) => CONVERSATION_VERSION,
            (true, Some(_)) => WITH_TENANT,
            (true, None) => 1,
        };
        // Texts, numbers and JSON values always serialise.
        serde_json::to_string(&Stored { version, state: self }).unwrap_or_default()
    }

    /// Restores a conversation from the output of [`ConversationState::to_json`].
    ///
    /// # Errors
    /// [`StateError::Newer`] for a version that this build does not know, [`StateError::Unreadable`] for anything else.
    pub fn from_json(text: &str) -> Result<Self, StateError> {
        let unreadable = |error: serde_json::Error| StateError::Unreadable { reason: error.to_string() };
        let Versioned { version } = serde_json::from_str(text).map_err(unreadable)?;
        match version {
            1..=CONVERSATION_VERSION => {}
            0 => return Err(StateError::Unreadable { reason: "there is no version 0".into() }),
            version => return Err(StateError::Newer { version }),
        }
        serde_json::from_str(text).map_err(unreadable)
    }

    /// State stored by the flow of `S`; its default if none is stored.
    ///
    /// # Errors
    /// [`StateError`] if another flow, or another version of this one, stored its state.
    pub fn flow_state<S: FlowState>(&self) -> Result<S, StateError> {
        let Some(kept) = &self.flow else { return Ok(S::default()) };
        if kept.name != S::FLOW {
            return Err(StateError::OtherFlow { flow: S::FLOW, found: kept.name.clone() });
        }
        if kept.version != S::VERSION {
            return Err(StateError::FlowVersion { flow: S::FLOW, version: kept.version, known: S::VERSION });
        }
        let broken = |error: serde_json::Error| StateError::FlowState { flow: S::FLOW, reason: error.to_string() };
        S::deserialize(&kept.state).map_err(broken)
    }

    /// Stores the flow's state for later turns.
    ///
    /// # Errors
    /// [`StateError::FlowState`] if it cannot be written as JSON: a map whose keys are not text, for example.
    pub fn keep<S: FlowState>(&mut self, state: &S) -> Result<(), StateError> {
        if S::VERSION == 0 {
            return Ok(());
        }
        let broken = |error: serde_json::Error| StateError::FlowState { flow: S::FLOW, reason: error.to_string() };
        let state = serde_json::to_value(state).map_err(broken)?;
        self.flow = Some(StoredFlowState { name: S::FLOW.to_owned(), version: S::VERSION, state });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::chat::Role;
    use serde_json::json;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Notes(Vec<String>);

    impl FlowState for Notes {
        const FLOW: &'static str = "notes";
        const VERSION: u32 = 3;
    }

    #[derive(Debug, Default, Serialize, Deserialize)]
    struct Others;

    impl FlowState for Others {
        const FLOW: &'static str = "others";
        const VERSION: u32 = 1;
    }

    fn conversation() -> ConversationState {
        let mut conversation = ConversationState::new(2, "main");
        conversation.session = "s-7".into();
        conversation.turns = 1;
        conversation.history.push(Message::text(Role::User, "Why?"));
        conversation.keep(&Notes(vec!["so".into()])).expect("is JSON");
        conversation
    }

    #[test]
    fn a_conversation_comes_back_as_it_was_stored() {
        let stored = conversation().to_json();
        let restored = ConversationState::from_json(&stored).expect("is read");
        assert_eq!(restored, conversation());
        assert_eq!(restored.flow_state::<Notes>(), Ok(Notes(vec!["so".into()])));
        let fresh = ConversationState::new(0, "main");
        assert_eq!(ConversationState::from_json(&fresh.to_json()), Ok(fresh.clone()));
        assert_eq!(fresh.flow_state::<Notes>(), Ok(Notes::default()));
        let tenant = conversation().of_tenant(Some("north"));
        assert!(stored.contains("\"version\":1") && tenant.to_json().contains("\"version\":2"));
        assert_eq!(ConversationState::from_json(&tenant.to_json()), Ok(tenant.clone()));
        let known = tenant.knowing(Map::from_iter([("user".to_owned(), json!({"country": "Norway"}))]));
        assert!(known.to_json().contains("\"version\":3"));
        assert_eq!(ConversationState::from_json(&known.to_json()), Ok(known));
    }

    #[test]
    fn a_version_that_this_build_does_not_know_is_an_error_that_says_so() {
        let mut stored: Value = serde_json::from_str(&conversation().to_json()).expect("is JSON");
        stored["version"] = json!(CONVERSATION_VERSION + 1);
        // Fields added by a newer build do not hide that it is newer.
        stored["region"] = json!("north");
        let error = ConversationState::from_json(&stored.to_string()).expect_err("is refused");
        assert_eq!(error, StateError::Newer { version: CONVERSATION_VERSION + 1 });
        assert!(error.to_string().contains("update ragcheck"), "{error}");
    }

    #[test]
    fn what_is_no_stored_conversation_is_told_with_its_place() {
        let whole = conversation().to_json();
        for broken in ["", "{}", "[]", "{\"version\": \"1\"}", "{\"version\": 0}", &whole[..whole.len() - 2]] {
            let error = ConversationState::from_json(broken).expect_err("is refused");
            assert!(matches!(error, StateError::Unreadable { .. }), "{broken}: {error}");
        }
        let unknown = whole.replacen('{', "{\"region\":\"north\",", 1);
        let error = ConversationState::from_json(&unknown).expect_err("is refused");
        assert!(error.to_string().contains("region") && error.to_string().contains("line 1"), "{error}");
    }

    #[test]
    fn a_flow_reads_only_its_own_state_in_its_own_version() {
        let error = conversation().flow_state::<Others>().expect_err("is refused");
        assert_eq!(error, StateError::OtherFlow { flow: "others", found: "notes".into() });
        let older = conversation().to_json().replace("\"version\":3", "\"version\":2");
        let error =
            ConversationState::from_json(&older).expect("is read").flow_state::<Notes>().expect_err("is refused");
        assert_eq!(error, StateError::FlowVersion { flow: "notes", version: 2, known: 3 });
        let odd = conversation().to_json().replace("[\"so\"]", "7");
        let error = ConversationState::from_json(&odd).expect("is read").flow_state::<Notes>().expect_err("is refused");
        assert!(matches!(error, StateError::FlowState { flow: "notes", .. }), "{error}");
    }
}
