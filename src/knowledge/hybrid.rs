//! A base searched by vectors and, if it has a local folder, also by words; the two lists are fused.
//!
//! Each search requests the query's vector through the trial's transport: an exchange of its lane. The passages' vectors
//! are beside the folder ([`super::vectors`]) or on a server ([`super::server`]). Words are searched and lists fused
//! locally in both cases, so a server does not change the results.

use super::documents::Passage;
use super::embedded::Embedded;
use super::fusion::{self, DEPTH};
use super::server::{self, Collection, Store, failed};
use super::vectors::{PassageVectors, file_of};
use super::{Found, KnowledgeBase, KnowledgeSource, Search, SearchError};
use crate::platform::clock::BoxFuture;
use crate::platform::lock::lock;
use crate::provider::{Access, Attempt, Attempted, Embedder, ErrorKind, ProviderError, VectorUsage};
use crate::settings::{EmbeddingSettings, ServerAddress};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Separator after the number of passages in a pinned state.
const COUNTED: &str = " passages";

/// Where the passages' vectors are.
pub(super) enum VectorsAt {
    /// A local file beside the folder.
    Folder(Arc<PassageVectors>),
    Server(ServerAddress),
}

/// State shared by the trials that search one base.
pub(super) struct Hybrid {
    id: String,
    /// The folder's full-text index, where there is a folder.
    words: Option<Arc<Embedded>>,
    place: VectorsAt,
    embeddings: EmbeddingSettings,
    /// Fields that passages on the server must have.
    filter: Map<String, Value>,
}

impl Hybrid {
    /// The base of that name, with the vectors at `place` and the words of a folder, where there is one.
    pub(super) fn new(
        id: &str,
        words: Option<Arc<Embedded>>,
        place: VectorsAt,
        embeddings: &EmbeddingSettings,
        filter: &BTreeMap<String, Value>,
    ) -> Self {
        let filter = filter.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        Self { id: id.to_owned(), words, place, embeddings: embeddings.clone(), filter }
    }
}

impl KnowledgeSource for Arc<Hybrid> {
    fn open(&self, access: &Access) -> Arc<dyn KnowledgeBase> {
        let EmbeddingSettings { model, dimensions, .. } = &self.embeddings;
        let store = match &self.place {
            VectorsAt::Folder(_) => None,
            VectorsAt::Server(address) => server::store(address, access),
        };
        let embedder = Embedder::new(access, model, *dimensions);
        Arc::new(Opened { shared: Self::clone(self), embedder, store, collection: Mutex::default() })
    }
}

/// A base for one trial.
struct Opened {
    shared: Arc<Hybrid>,
    embedder: Embedder,
    store: Option<Box<dyn Store>>,
    /// Its description by the server, after the first request.
    collection: Mutex<Option<Collection>>,
}

/// A provider's failure detected locally.
fn unfit(message: String) -> ProviderError {
    ProviderError::Failed { kind: ErrorKind::BadRequest, status: None, message }
}

impl Opened {
    async fn find(&self, query: &str, top_k: usize) -> Search {
        let depth = DEPTH.max(top_k);
        let words = match self.shared.words.as_ref().map(|words| words.find(query, depth)).transpose() {
            Ok(words) => words,
            Err(error) => return Search::local(Err(error)),
        };
        let mut embedded = self.embedder.embed(&[query.to_owned()]).await;
        if let (Ok(found), Some(last)) = (&embedded.result, embedded.attempts.last_mut()) {
            let model = self.shared.embeddings.price_name();
            last.vectors = Some(VectorUsage { model, input_tokens: found.input_tokens });
        }
        let vector = match embedded.result.map(|found| found.vectors.into_iter().next().unwrap_or_default()) {
            Ok(vector) => vector,
            Err(error) => return Search { result: Err(SearchError::Service(error)), attempts: embedded.attempts },
        };
        let Attempted { result, attempts } = self.nearest(&vector, depth, embedded.attempts).await;
        let near = match result {
            Ok(near) => near,
            Err(error) => return Search { result: Err(SearchError::Service(error)), attempts },
        };
        Search { result: Ok(self.joined(words, near, top_k)), attempts }
    }

    /// The passages nearest to a vector, nearest first.
    async fn nearest(&self, vector: &[f32], most: usize, attempts: Vec<Attempt>) -> Attempted<Vec<(Passage, f64)>> {
        let Some(store) = &self.store else { return self.nearest_here(vector, most, attempts) };
        let known = lock(&self.collection).clone();
        let (collection, attempts) = if let Some(collection) = known {
            (collection, attempts)
        } else {
            let Attempted { result, attempts } = server::behind(attempts, store.collection().await);
            match result.and_then(|collection| self.fits(collection)) {
                Ok(collection) => (collection, attempts),
                Err(error) => return failed(attempts, error),
            }
        };
        server::behind(attempts, store.nearest(&collection, vector, most, &self.shared.filter).await)
    }

    fn nearest_here(&self, vector: &[f32], most: usize, attempts: Vec<Attempt>) -> Attempted<Vec<(Passage, f64)>> {
        let (VectorsAt::Folder(rows), Some(words)) = (&self.shared.place, &self.shared.words) else {
            return failed(attempts, unfit("a base without a folder and without a server".into()));
        };
        if vector.len() != rows.dimensions() {
            let (model, base, own) = (&self.shared.embeddings.model, &self.shared.id, rows.dimensions());
            let file = file_of(Path::new(&words.corpus().id), model);
            let message = format!(
                "`{model}` returned a vector of {} numbers, but those of `{base}` have {own}: delete {} beside \
                 the base's folder, and run `ragcheck knowledge index {base}`",
                vector.len(),
                file.display()
            );
            return failed(attempts, unfit(message));
        }
        let passage = |(place, score): (usize, f64)| Some((words.corpus().passages.get(place)?.clone(), score));
        Attempted { result: Ok(rows.nearest(vector, most).into_iter().filter_map(passage).collect()), attempts }
    }

    /// Accepts a described collection unless its vectors come from another model.
    fn fits(&self, collection: Collection) -> Result<Collection, ProviderError> {
        let declared = &self.shared.embeddings.model;
        if let Some(model) = collection.model.as_ref().filter(|model| *model != declared) {
            return Err(unfit(format!(
                "the vectors of the collection `{}` are by `{model}`, and queries would be by `{declared}`: distances \
                 between them mean nothing",
                collection.name
            )));
        }
        *lock(&self.collection) = Some(collection.clone());
        Ok(collection)
    }

    /// The list by vectors, fused with the list by words if there is one.
    fn joined(&self, words: Option<Vec<Found>>, near: Vec<(Passage, f64)>, top_k: usize) -> Vec<Found> {
        let (Some(by_words), Some(index)) = (words, &self.shared.words) else {
            return near.into_iter().take(top_k).map(|(passage, raw_score)| Found { passage, raw_score }).collect();
        };
        let places: HashMap<&str, usize> =
            index.corpus().passages.iter().enumerate().map(|(place, passage)| (passage.id.as_str(), place)).collect();
        // Passages that only the server has were pushed from another state of the folder: they come last at equal scores.
        let mut unknown: Vec<String> = Vec::new();
        let mut entry = |passage: &Passage| {
            places.get(passage.id.as_str()).copied().unwrap_or_else(|| {
                let known = unknown.iter().position(|id| *id == passage.id);
                if known.is_none() {
                    unknown.push(passage.id.clone());
                }
                places.len() + known.unwrap_or(unknown.len() - 1)
            })
        };
        let lists = [
            by_words.iter().map(|found| entry(&found.passage)).collect::<Vec<_>>(),
            steady(near.iter().map(|(passage, score)| (entry(passage), *score)).collect()),
        ];
        let mut passages: HashMap<usize, Passage> =
            near.into_iter().map(|(passage, _)| (entry(&passage), passage)).collect();
        for (place, passage) in lists[0].iter().zip(by_words.into_iter().map(|found| found.passage)) {
            passages.insert(*place, passage);
        }
        let [words, vectors] = lists;
        let fused = fusion::fuse(&[(words, fusion::WORDS), (vectors, 1.0)], |place| place).into_iter().take(top_k);
        fused.filter_map(|(place, raw_score)| Some(Found { passage: passages.remove(&place)?, raw_score })).collect()
    }
}

/// Similarities that differ by less are equal: rounding of sums in another order, and of a server's narrower numbers.
const EQUAL: f64 = 1e-6;

/// Places by score, best first; equal scores are ordered by place, because servers differ in their order.
fn steady(mut near: Vec<(usize, f64)>) -> Vec<usize> {
    near.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let equal = near.chunk_by_mut(|(_, one), (_, other)| one - other < EQUAL);
    equal.for_each(|same| same.sort_by_key(|(place, _)| *place));
    near.into_iter().map(|(place, _)| place).collect()
}

impl KnowledgeBase for Opened {
    fn search<'a>(&'a self, query: &'a str, top_k: usize) -> BoxFuture<'a, Search> {
        Box::pin(self.find(query, top_k))
    }

    fn share_holding(&self, text: &str) -> Option<f64> {
        self.shared.words.as_ref().and_then(|words| words.share_holding(text))
    }

    fn departs_from(&self, pinned: &str) -> Option<bool> {
        // Only a server that was asked has a count.
        let uncounted =
            |text: &str| text.split(", ").filter(|part| !part.ends_with(COUNTED)).collect::<Vec<_>>().join(", ");
        self.store.as_ref().map(|_| uncounted(pinned) != uncounted(&self.hash()))
    }

    fn hash(&self) -> String {
        let model = &self.shared.embeddings.model;
        let words = self.shared.words.as_ref().map(|words| format!("{}, ", words.hash())).unwrap_or_default();
        match &self.shared.place {
            VectorsAt::Folder(rows) => format!("{words}vectors {} by {model}", rows.hash()),
            VectorsAt::Server(address) => {
                let known = lock(&self.collection);
                let count = known.as_ref().map(|known| format!(", {}{COUNTED}", known.count)).unwrap_or_default();
                let (kind, name) = (&address.scheme, &address.collection);
                format!("{words}{kind} collection {name}{count}, vectors by {model}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_equal_similarity_stand_in_their_own_order_whatever_order_a_server_gives_them() {
        assert_eq!(steady(vec![(9, 0.5), (3, 0.5), (4, 0.5 + 1e-8), (7, 0.9), (1, 0.4)]), [7, 3, 4, 9, 1]);
        assert_eq!(steady(vec![(2, 0.3), (1, 0.2), (0, 0.1)]), [2, 1, 0], "what differs stays");
        assert!(steady(vec![]).is_empty());
    }
}
