//! Settings of knowledge bases with vectors, local or on a server, and of the file that keeps learned keywords.

use super::duration::written_as_text;
use super::{AgeLimit, Language};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::str::FromStr;

/// A keyword index that outlives runs, for a served agent. Trials never use it: each has a separate index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeywordIndexSettings {
    /// Its file, created when first written.
    pub file: String,
    /// What is forgotten at every indexing. Default: nothing; `ragcheck keywords prune` removes entries by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forget: Option<Forget>,
}

/// Which keywords an index forgets: those that meet every condition given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Forget {
    /// Neither indexed nor used for this long: `180d`, `12h`; `never` keeps all.
    pub after: AgeLimit,
    /// Used fewer times than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fewer_uses_than: Option<u64>,
}

/// Settings of a knowledge base that is in another language than English, or that has vectors, local or on a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnowledgeBaseSettings {
    /// The folder below the project's knowledge folder whose words are searched too. Default without a server: the
    /// name of the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The server's collection: `chroma://HOST:PORT/COLLECTION` or `qdrant://HOST:PORT/COLLECTION`; `chroma+https://`
    /// for TLS; for Chroma optionally followed by `?tenant=T&database=D`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerAddress>,
    /// The environment variable with the server's key. Default: no key is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The language of the documents and of the questions: selects stop words and word forms.
    #[serde(default, skip_serializing_if = "Language::is_english")]
    pub language: Language,
    /// The model that turns queries and passages into vectors. Without it a folder is searched by words alone.
    /// Required for a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<EmbeddingSettings>,
    /// Fields and values that passages on the server must have: `{file: warranty.md}`.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub filter: BTreeMap<String, serde_json::Value>,
}

/// A model for embeddings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingSettings {
    /// A provider of the project with an OpenAI-compatible endpoint: `POST {base_url}/embeddings`.
    pub provider: String,
    /// The model.
    pub model: String,
    /// Dimensions of a vector, where the model offers a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<u32>,
}

impl EmbeddingSettings {
    /// Its key in the price list: `provider/model`.
    pub fn price_name(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }
}

/// The address of a collection on a server, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    written: String,
    /// The kind of server: the scheme without `+https`. `knowledge` declares the known kinds.
    pub scheme: String,
    /// The server's URL for HTTP.
    pub base_url: String,
    pub collection: String,
    /// Parameters after `?`, by name: a tenant, a database.
    pub options: BTreeMap<String, String>,
}

/// Text that is not a valid address of a collection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{written}` is not the address of a collection: {why}; write `chroma://127.0.0.1:8000/COLLECTION`")]
pub struct AddressError {
    written: String,
    why: &'static str,
}

impl FromStr for ServerAddress {
    type Err = AddressError;

    fn from_str(written: &str) -> Result<Self, AddressError> {
        let wrong = |why| AddressError { written: written.to_owned(), why };
        let (scheme, rest) = written.split_once("://").ok_or_else(|| wrong("it has no `://`"))?;
        let (scheme, http) = scheme.strip_suffix("+https").map_or((scheme, "http"), |scheme| (scheme, "https"));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (host, collection) = rest.split_once('/').ok_or_else(|| wrong("it names no collection"))?;
        let plain = |name: &str| {
            let legal = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
            !name.is_empty() && name.len() <= 200 && name.chars().all(legal) && name.chars().any(|one| one != '.')
        };
        if host.is_empty()
            || !host.chars().all(|one| one.is_ascii_alphanumeric() || matches!(one, '-' | '.' | ':' | '[' | ']'))
        {
            return Err(wrong("its host is not valid"));
        }
        if !plain(collection) {
            return Err(wrong("a collection's name is letters, digits, `-`, `_` and `.`"));
        }
        if !plain(scheme) {
            return Err(wrong("it begins with no kind of server"));
        }
        let mut options = BTreeMap::new();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            if !plain(name) || !plain(value) {
                return Err(wrong("after `?`, write `name=value` pairs of letters, digits, `-`, `_` and `.`"));
            }
            options.insert(name.to_owned(), value.to_owned());
        }
        Ok(Self {
            scheme: scheme.to_owned(),
            base_url: format!("{http}://{host}"),
            collection: collection.to_owned(),
            options,
            written: written.to_owned(),
        })
    }
}

written_as_text!(ServerAddress, r"^[a-z0-9-]+(\+https)?://[^/?]+/[A-Za-z0-9._-]+(\?.*)?$");

#[cfg(test)]
mod tests {
    use super::*;

    fn read(written: &str) -> Result<ServerAddress, AddressError> {
        written.parse()
    }

    #[test]
    fn an_address_says_server_collection_tenant_and_database() {
        let plain = read("chroma://127.0.0.1:8000/desk").expect("an address");
        assert_eq!((plain.scheme.as_str(), plain.base_url.as_str()), ("chroma", "http://127.0.0.1:8000"));
        assert_eq!((plain.collection.as_str(), plain.options.len()), ("desk", 0));
        let full = read("chroma+https://api.example.org/desk?tenant=t1&database=d-2").expect("an address");
        assert_eq!(
            (full.base_url.as_str(), full.options["tenant"].as_str(), full.options["database"].as_str()),
            ("https://api.example.org", "t1", "d-2")
        );
        assert_eq!(read("qdrant://localhost:6333/desk").expect("an address").scheme, "qdrant");
        assert_eq!(full.to_string(), "chroma+https://api.example.org/desk?tenant=t1&database=d-2");
    }

    #[test]
    fn what_could_leave_its_path_or_says_more_than_is_known_is_refused() {
        for wrong in [
            "127.0.0.1:8000/desk",
            "chroma://127.0.0.1:8000",
            "chroma:///desk",
            "chroma://user@host/desk",
            "chroma://host/../secrets",
            "chroma://host/..",
            "chroma://host/desk?tenant=a/b",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
