//! The passages that the searches of one trial found, each once and in full, regardless of what the flow does with them.

use super::{KnowledgeBase, Passage, Search};
use crate::platform::clock::BoxFuture;
use crate::platform::lock::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// By id.
type Noted = Arc<Mutex<BTreeMap<String, Passage>>>;

/// The passages found so far.
#[derive(Default)]
pub struct FoundPassages {
    bases: Vec<(String, Noted)>,
}

impl FoundPassages {
    /// Passages by the name of their base: those that an agent outside found.
    pub fn of(bases: BTreeMap<String, Vec<Passage>>) -> Self {
        let noted = |found: Vec<Passage>| found.into_iter().map(|one| (one.id.clone(), one)).collect();
        let bases = bases.into_iter().map(|(name, found)| (name, Arc::new(Mutex::new(noted(found)))));
        Self { bases: bases.collect() }
    }

    /// Takes what was found, by the names of the bases that were searched with success, in the order of their
    /// declaration; of each passage the text that was found first.
    pub fn take(&self) -> Vec<(String, Vec<Passage>)> {
        let taken = self.bases.iter().map(|(name, noted)| {
            let noted = std::mem::take(&mut *lock(noted));
            (name.clone(), noted.into_values().collect::<Vec<_>>())
        });
        taken.filter(|(_, passages)| !passages.is_empty()).collect()
    }

    /// A base that records what it finds under `name`.
    pub(super) fn noting(&mut self, name: &str, base: Arc<dyn KnowledgeBase>) -> Arc<dyn KnowledgeBase> {
        let noted = Noted::default();
        self.bases.push((name.to_owned(), Arc::clone(&noted)));
        Arc::new(Noting { base, noted })
    }
}

struct Noting {
    base: Arc<dyn KnowledgeBase>,
    noted: Noted,
}

impl KnowledgeBase for Noting {
    fn search<'a>(&'a self, query: &'a str, top_k: usize) -> BoxFuture<'a, Search> {
        Box::pin(async move {
            let search = self.base.search(query, top_k).await;
            let mut noted = lock(&self.noted);
            for found in search.result.iter().flatten() {
                if !noted.contains_key(&found.passage.id) {
                    noted.insert(found.passage.id.clone(), found.passage.clone());
                }
            }
            drop(noted);
            search
        })
    }

    fn share_holding(&self, text: &str) -> Option<f64> {
        self.base.share_holding(text)
    }

    fn departs_from(&self, pinned: &str) -> Option<bool> {
        self.base.departs_from(pinned)
    }

    fn hash(&self) -> String {
        self.base.hash()
    }
}
