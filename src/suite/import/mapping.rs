//! `mapping`: declares how a file of conversations is to be read.
//!
//! ```json
//! {"mapping": {"roles": {"human": "user", "bot": "assistant"}, "closing": "ignored", "reminders": ["Go on"]}}
//! ```
//! It is a member beside a conversation's `messages`, or an object of its own line that applies to every conversation
//! after it. Unknown members are errors: a misunderstood mapping would cause wrong verdicts.

use super::error::{MappingError, WrongMember};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Known message roles.
const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool", "function"];

/// How conversations are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Mapping {
    /// Names used in place of the roles.
    pub roles: BTreeMap<String, String>,
    /// Meaning of an unanswered last user message.
    pub closing: Closing,
    /// Beginnings of messages that the framework writes as the user, after a tool result.
    pub reminders: Vec<String>,
}

/// Meaning of an unanswered last user message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Closing {
    /// `thanks`: a query, unless it is only thanks or a farewell.
    #[default]
    Thanks,
    /// `query`: always a query.
    Query,
    /// `ignored`: never a query.
    Ignored,
}

/// Words of thanks and farewell; at least one of the first group must occur.
const FAREWELL: &[&str] =
    &["thanks", "thank", "thx", "ty", "bye", "goodbye", "cheers", "danke", "tschüss", "merci", "gracias"];
const BESIDE: &[&str] = &[
    "you", "so", "very", "much", "a", "lot", "again", "ok", "okay", "great", "perfect", "for", "your", "help", "the",
    "good", "have", "nice", "day", "evening", "weekend", "and", "all", "that", "thats", "is", "was", "many", "schön",
    "vielen", "now",
];

impl Closing {
    /// Whether the message `query` is not a query.
    pub(super) fn is_no_query(self, query: &str) -> bool {
        match self {
            Self::Query => false,
            Self::Ignored => true,
            Self::Thanks => {
                let words = query.to_lowercase().replace('\'', "");
                let words: Vec<&str> =
                    words.split(|one: char| !one.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
                words.iter().any(|word| FAREWELL.contains(word))
                    && words.iter().all(|word| FAREWELL.contains(word) || BESIDE.contains(word))
                    && !query.contains('?')
            }
        }
    }
}

impl Mapping {
    /// Role that a name in the file stands for.
    pub(super) fn role<'a>(&'a self, written: &'a str) -> &'a str {
        self.roles.get(written).map_or(written, String::as_str)
    }

    /// Whether the framework wrote this `user` message, which follows a tool result.
    pub(super) fn is_reminder(&self, words: &str) -> bool {
        self.reminders.iter().any(|beginning| words.trim_start().starts_with(beginning.as_str()))
    }

    /// Applies `mapping` on top of this one; members that it lacks stay unchanged.
    ///
    /// # Errors
    /// An unknown member or value.
    pub(super) fn read(&mut self, mapping: &Value) -> Result<(), MappingError> {
        let Value::Object(members) = mapping else {
            return Err(WrongMember::new("mapping", mapping, "a map with `roles`, `closing` and `reminders`").into());
        };
        for (member, value) in members {
            match (member.as_str(), value) {
                ("roles", Value::Object(roles)) => self.read_roles("mapping.roles", roles)?,
                ("roles", other) => {
                    return Err(WrongMember::new("mapping.roles", other, "a map of names to roles").into());
                }
                ("closing", value) => {
                    self.closing = match value.as_str() {
                        Some("thanks") => Closing::Thanks,
                        Some("query") => Closing::Query,
                        Some("ignored") => Closing::Ignored,
                        _ => return Err(MappingError::Closing(value.clone())),
                    };
                }
                ("reminders", value) => {
                    let wrong =
                        || WrongMember::new("mapping.reminders", value, "a list of texts that messages begin with");
                    let read =
                        |one: &Value| one.as_str().map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned);
                    let listed = value.as_array().ok_or_else(wrong)?.iter().map(read);
                    self.reminders = listed.collect::<Option<_>>().ok_or_else(wrong)?;
                }
                _ => return Err(MappingError::Unknown(member.clone())),
            }
        }
        Ok(())
    }

    /// Reads a map from names to roles.
    ///
    /// # Errors
    /// An unknown role.
    pub(super) fn read_roles(&mut self, key: &str, roles: &Map<String, Value>) -> Result<(), MappingError> {
        for (name, role) in roles {
            let role = role.as_str().ok_or_else(|| WrongMember::new(format!("{key}.{name}"), role, "a role"))?;
            if !ROLES.contains(&role) {
                let (member, role) = (format!("{key}.{name}"), role.to_owned());
                return Err(MappingError::Role { member, role, known: ROLES.join(", ") });
            }
            self.roles.insert(name.clone(), role.to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn thanks_and_farewells_alone_are_no_query() {
        for words in
            ["thanks, bye", "Thank you so much!", "Great, that's all. Thanks!", "ok bye", "Vielen Dank... danke"]
        {
            let no_query = Closing::Thanks.is_no_query(words);
            assert_eq!(no_query, !words.contains("Dank."), "{words}");
        }
        for words in ["ok", "yes", "thanks, and the price?", "thanks, cancel the order", "", "great"] {
            assert!(!Closing::Thanks.is_no_query(words), "{words}");
        }
        assert!(Closing::Ignored.is_no_query("and the price?") && !Closing::Query.is_no_query("thanks"));
    }

    #[test]
    fn unknown_members_and_values_are_refused_by_name() {
        for (mapping, part) in [
            (json!({"role": {}}), "`mapping.role` is not known"),
            (json!({"roles": {"human": "usr"}}), "`mapping.roles.human` is `usr`"),
            (json!({"roles": []}), "`mapping.roles` is a list"),
            (json!({"roles": {"human": 3}}), "`mapping.roles.human` is 3"),
            (json!({"closing": "maybe"}), "`mapping.closing` is \"maybe\""),
            (json!([]), "`mapping` is a list"),
            (json!({"reminders": "Go on"}), "`mapping.reminders` is a text"),
            (json!({"reminders": [""]}), "`mapping.reminders` is a list"),
        ] {
            let mistake = Mapping::default().read(&mapping).expect_err(part).to_string();
            assert!(mistake.contains(part), "{mistake}");
        }
    }
}
