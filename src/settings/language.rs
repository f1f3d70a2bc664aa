//! The language of a knowledge base: selects stemming and stop words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The language of a knowledge base's documents and of the questions about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// English, the default.
    #[default]
    English,
    /// No particular language: words are compared as written, and none is dropped.
    None,
    /// Arabic.
    Arabic,
    /// Danish.
    Danish,
    /// Dutch.
    Dutch,
    /// Finnish.
    Finnish,
    /// French.
    French,
    /// German.
    German,
    /// Greek.
    Greek,
    /// Hungarian.
    Hungarian,
    /// Italian.
    Italian,
    /// Norwegian.
    Norwegian,
    /// Portuguese.
    Portuguese,
    /// Romanian.
    Romanian,
    /// Russian.
    Russian,
    /// Spanish.
    Spanish,
    /// Swedish.
    Swedish,
    /// Turkish.
    Turkish,
}

impl Language {
    /// Its name in the project file.
    pub fn name(self) -> &'static str {
        match self {
            Self::English => "english",
            Self::None => "none",
            Self::Arabic => "arabic",
            Self::Danish => "danish",
            Self::Dutch => "dutch",
            Self::Finnish => "finnish",
            Self::French => "french",
            Self::German => "german",
            Self::Greek => "greek",
            Self::Hungarian => "hungarian",
            Self::Italian => "italian",
            Self::Norwegian => "norwegian",
            Self::Portuguese => "portuguese",
            Self::Romanian => "romanian",
            Self::Russian => "russian",
            Self::Spanish => "spanish",
            Self::Swedish => "swedish",
            Self::Turkish => "turkish",
        }
    }

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
