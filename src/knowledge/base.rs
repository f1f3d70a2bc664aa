//! Knowledge bases: as declared, as opened for one trial, and the set that a flow may search.

use super::{FoundPassages, KnowledgeError, Passage};
use crate::platform::clock::BoxFuture;
use crate::provider::{Access, Attempt, Attempted, ProviderError};
use sha2::{Digest, Sha256};
use std::sync::Arc;

pub use crate::settings::DEFAULT_KB;

/// One passage that a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The passage.
    pub passage: Passage,
    /// The index's own score, higher is better; never shown to a model.
    pub raw_score: f64,
}

/// Result of one search.
#[derive(Debug)]
pub struct Search {
    /// The passages, best first, or why there are none.
    pub result: Result<Vec<Found>, SearchError>,
    /// Its HTTP attempts, in order; empty for a base without a server.
    pub attempts: Vec<Attempt>,
}

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The index on this machine failed.
    #[error(transparent)]
    Local(#[from] KnowledgeError),
    /// The server failed, or replay has no such exchange.
    #[error("{}", of_service(.0))]
    Service(ProviderError),
}

fn of_service(error: &ProviderError) -> String {
    match error {
        ProviderError::Failed { kind, message, .. } => {
            format!("the search failed ({}): {message}", kind.as_str())
        }
        ProviderError::Miss(miss) => miss.message.clone(),
    }
}

impl Search {
    /// A search without a server.
    pub fn local(result: Result<Vec<Found>, KnowledgeError>) -> Self {
        Self { result: result.map_err(SearchError::Local), attempts: Vec::new() }
    }
}

impl From<Attempted<Vec<Found>>> for Search {
    fn from(attempted: Attempted<Vec<Found>>) -> Self {
        Self { result: attempted.result.map_err(SearchError::Service), attempts: attempted.attempts }
    }
}

/// A knowledge base, opened for one trial.
pub trait KnowledgeBase: Send + Sync {
    /// The `top_k` best passages for `query`, best first; ties are in the order of the corpus.
    fn search<'a>(&'a self, query: &'a str, top_k: usize) -> BoxFuture<'a, Search>;
    /// The share of all passages that hold every meaningful word of `text`; `None` where that is not known, or where
    /// there are too few passages for it to say anything.
    fn share_holding(&self, text: &str) -> Option<f64> {
        let _ = text;
        None
    }
    /// Whether a recording pins another state of a base on a server than the declared one; `None` for a local base,
    /// where a changed passage changes the results.
    fn departs_from(&self, pinned: &str) -> Option<bool> {
        let _ = pinned;
        None
    }
    /// What a recording pins: a hash of all passages; for a base on a server, a hash of the server's description of it,
    /// or of its declaration until the server was asked.
    fn hash(&self) -> String;
}

/// A knowledge base as declared: shared by trials, each of which opens it for itself.
pub trait KnowledgeSource: Send + Sync {
    /// Opens the base for one trial. Requests to a server go through `access`: live, recorded or replayed.
    fn open(&self, access: &Access) -> Arc<dyn KnowledgeBase>;
}

/// The knowledge bases that a scenario declares, by name; the first is the default.
#[derive(Clone, Default)]
pub struct KnowledgeSources {
    sources: Vec<(String, Arc<dyn KnowledgeSource>)>,
}

impl KnowledgeSources {
    /// Sources with their names, in the order of their declaration.
    pub fn new(sources: Vec<(String, Arc<dyn KnowledgeSource>)>) -> Self {
        Self { sources }
    }

    /// The bases for one trial.
    pub fn open(&self, access: &Access) -> KnowledgeBases {
        let opened = self.sources.iter().map(|(name, source)| (name.clone(), source.open(access)));
        KnowledgeBases::new(opened.collect())
    }
}

/// The knowledge bases of one trial, by name; the first is the default.
#[derive(Clone, Default)]
pub struct KnowledgeBases {
    bases: Vec<(String, Arc<dyn KnowledgeBase>)>,
}

impl std::fmt::Debug for KnowledgeBases {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.bases.iter().map(|(name, _)| name)).finish()
    }
}

impl KnowledgeBases {
    /// Bases with their names, in the order of their declaration.
    pub fn new(bases: Vec<(String, Arc<dyn KnowledgeBase>)>) -> Self {
        Self { bases }
    }

    /// Begins to record the passages that searches of these bases find.
    pub fn noting(&mut self) -> FoundPassages {
        let mut found = FoundPassages::default();
        for (name, base) in &mut self.bases {
            *base = found.noting(name, Arc::clone(base));
        }
        found
    }

    /// The base that a `kb_id` names: one of that name, else the first for [`DEFAULT_KB`].
    pub fn get(&self, kb_id: &str) -> Option<&Arc<dyn KnowledgeBase>> {
        self.named(kb_id).or_else(|| self.bases.first().filter(|_| kb_id == DEFAULT_KB).map(|(_, base)| base))
    }

    /// The base of exactly that name, for flows whose users must not reach another base.
    pub fn named(&self, name: &str) -> Option<&Arc<dyn KnowledgeBase>> {
        self.bases.iter().find(|(known, _)| known == name).map(|(_, base)| base)
    }

    /// All bases with their declared names.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Arc<dyn KnowledgeBase>)> {
        self.bases.iter().map(|(name, base)| (name.as_str(), base))
    }

    /// Names offered to the model: [`DEFAULT_KB`] for a single base, else the names of all.
    pub fn names(&self) -> Vec<&str> {
        match self.bases.as_slice() {
            [_] => vec![DEFAULT_KB],
            several => several.iter().map(|(name, _)| name.as_str()).collect(),
        }
    }

    /// The largest share, over the bases that know it, of passages with every meaningful word of `text`.
    pub fn share_holding(&self, text: &str) -> Option<f64> {
        self.bases.iter().filter_map(|(_, base)| base.share_holding(text)).max_by(f64::total_cmp)
    }

    /// Whether a recording pins another state of the only base, if it is on a server, than the declared one.
    pub fn depart_from(&self, pinned: &str) -> bool {
        matches!(self.bases.as_slice(), [(_, base)] if base.departs_from(pinned) == Some(true))
    }

    /// What a recording pins: the hash of a single base, else SHA-256 over names and hashes.
    pub fn hash(&self) -> String {
        if let [(_, base)] = self.bases.as_slice() {
            return base.hash();
        }
        let mut hasher = Sha256::new();
        for (name, base) in &self.bases {
            hasher.update(format!("{name}\0{}\0", base.hash()));
        }
        hex::encode(&hasher.finalize()[..16])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::{Corpus, Embedded};

    fn base(id: &str, text: &str) -> Arc<dyn KnowledgeBase> {
        let passage = Passage { id: format!("{id}#1"), title: String::new(), text: text.into() };
        Arc::new(Embedded::open(Corpus::of(id, vec![passage]), None).expect("opens"))
    }

    fn named(id: &str, text: &str) -> (String, Arc<dyn KnowledgeBase>) {
        (id.to_owned(), base(id, text))
    }

    fn chosen(bases: &KnowledgeBases, kb_id: &str) -> Option<String> {
        let found = bases.get(kb_id)?;
        bases.bases.iter().find(|(_, base)| Arc::ptr_eq(base, found)).map(|(name, _)| name.clone())
    }

    #[test]
    fn a_kb_id_chooses_a_base_and_the_default_is_the_first_unless_one_has_that_name() {
        let bases = KnowledgeBases::new(vec![named("north", "a"), named("south", "b")]);
        assert_eq!(chosen(&bases, "south"), Some("south".into()));
        assert_eq!(chosen(&bases, DEFAULT_KB), Some("north".into()));
        assert_eq!(chosen(&bases, "east"), None);
        assert!(bases.named(DEFAULT_KB).is_none(), "a tenant's base is found by its own name alone");
        assert_eq!(bases.names(), ["north", "south"]);
        let bases = KnowledgeBases::new(vec![named("north", "a"), named(DEFAULT_KB, "b")]);
        assert_eq!(chosen(&bases, DEFAULT_KB), Some(DEFAULT_KB.into()));
        assert_eq!(chosen(&KnowledgeBases::default(), DEFAULT_KB), None);
    }

    #[test]
    fn one_base_pins_its_own_hash_and_several_pin_names_and_hashes() {
        let one = base("north", "a");
        assert_eq!(KnowledgeBases::new(vec![("north".to_owned(), Arc::clone(&one))]).hash(), one.hash());
        let hash = |a: &str, b: &str| KnowledgeBases::new(vec![named("north", a), named("south", b)]).hash();
        assert_eq!(hash("a", "b"), hash("a", "b"));
        assert_ne!(hash("a", "b"), hash("a", "c"));
        let swapped = KnowledgeBases::new(vec![named("south", "b"), named("north", "a")]);
        assert_ne!(hash("a", "b"), swapped.hash(), "the first is the default");
    }
}
