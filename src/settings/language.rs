//! The language of a knowledge base: selects stemming and stop words.

use crate::platform::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

words! {
    fn name;
    /// The language of a knowledge base's documents and of the questions about them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Language {
        /// English, the default.
        #[default]
        English = "english",
        /// No particular language: words are compared as written, and none is dropped.
        None = "none",
        /// Arabic.
        Arabic = "arabic",
        /// Danish.
        Danish = "danish",
        /// Dutch.
        Dutch = "dutch",
        /// Finnish.
        Finnish = "finnish",
        /// French.
        French = "french",
        /// German.
        German = "german",
        /// Greek.
        Greek = "greek",
        /// Hungarian.
        Hungarian = "hungarian",
        /// Italian.
        Italian = "italian",
        /// Norwegian.
        Norwegian = "norwegian",
        /// Portuguese.
        Portuguese = "portuguese",
        /// Romanian.
        Romanian = "romanian",
        /// Russian.
        Russian = "russian",
        /// Spanish.
        Spanish = "spanish",
        /// Swedish.
        Swedish = "swedish",
        /// Turkish.
        Turkish = "turkish",
    }
}

impl Language {
    /// Whether it is the default.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
    pub fn is_english(&self) -> bool {
        *self == Self::English
    }
}

impl fmt::Display for Language {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
