//! Bases behind servers: collections of passages with vectors, asked for the nearest through a trial's transport.
//!
//! | file | speaks |
//! |---|---|
//! | `chroma` | Chroma 1.x, its API v2 |
//! | `qdrant` | Qdrant's REST interface |
//!
//! A collection carries the name of the model that made its vectors; one of another model is refused, because distances
//! between vectors of two models mean nothing.

mod chroma;
mod qdrant;

use super::documents::{Corpus, Passage, Place};
use crate::platform::clock::BoxFuture;
use crate::provider::{Access, Attempt, Attempted, ProviderError};
use crate::settings::catalogue::ServerEntry;
use crate::settings::{Auth, ServerAddress};
use crate::transport::Profile;
use serde_json::{Map, Value, json};

/// Passages that are sent to a server at once.
pub const BATCH: usize = 200;

/// A collection as its server describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// Its name.
    pub name: String,
    /// What its server calls it in paths.
    pub(super) handle: String,
    /// Passages in it.
    pub count: u64,
    /// The model that made its vectors, where it says so.
    pub model: Option<String>,
}

/// A passage with its vector, as it is sent to a server.
#[derive(Debug, Clone)]
pub struct StoredPassage<'a> {
    /// The passage.
    pub passage: &'a Passage,
    /// Where it stands, where that is known.
    pub place: Option<&'a Place>,
    /// Its vector.
    pub vector: &'a [f32],
}

impl<'a> StoredPassage<'a> {
    /// Those of a corpus, whose vectors these are.
    pub fn of(corpus: &'a Corpus, vectors: &'a super::PassageVectors) -> Vec<Self> {
        let places = corpus.places.iter().map(Some).chain(std::iter::repeat(None));
        let rows = corpus.passages.iter().zip(places).zip(vectors.rows());
        rows.map(|((passage, place), vector)| Self { passage, place, vector }).collect()
    }

    /// What stands beside the vector: title, file, section, offset, and page where there is one.
    fn about(&self) -> Map<String, Value> {
        let mut about = Map::new();
        about.insert("title".into(), json!(self.passage.title));
        if let Some(place) = self.place {
            about.insert("file".into(), json!(place.file));
            about.insert("section".into(), json!(place.section));
            about.insert("offset".into(), json!(place.offset));
            if let Some(page) = place.page {
                about.insert("page".into(), json!(page));
            }
        }
        about
    }
}

/// A passage that is near to a query, with its score, higher is nearer.
pub(super) type Neighbour = (Passage, f64);

/// Every body that is sent to Qdrant for this passage, by the name of its schema in Qdrant's OpenAPI document.
#[cfg_attr(front_door_only, expect(dead_code, reason = "tests and benches use it"))]
pub fn qdrant_bodies(row: &StoredPassage<'_>) -> Vec<(&'static str, Value)> {
    qdrant::bodies(row)
}

/// A server of collections.
pub trait Store: Send + Sync {
    /// The collection that was named, with its count.
    fn collection(&self) -> BoxFuture<'_, Attempted<Collection>>;
    /// The passages nearest to `vector`, nearest first: `most` of them at most, and only those whose fields are as
    /// `filter` says.
    fn nearest<'a>(
        &'a self,
        collection: &'a Collection,
        vector: &'a [f32],
        most: usize,
        filter: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Attempted<Vec<Neighbour>>>;
    /// The collection, made where there is none: for vectors of so many numbers by `model`, and about so many passages.
    fn create<'a>(&'a self, model: &'a str, dimensions: usize, passages: usize)
    -> BoxFuture<'a, Attempted<Collection>>;
    /// Adds passages, or replaces those of the same ids.
    fn upsert<'a>(&'a self, collection: &'a Collection, rows: &'a [StoredPassage<'a>]) -> BoxFuture<'a, Attempted<()>>;
    /// Removes the passages of these ids.
    fn remove<'a>(&'a self, collection: &'a Collection, ids: &'a [String]) -> BoxFuture<'a, Attempted<()>>;
    /// The ids of all passages.
    fn ids<'a>(&'a self, collection: &'a Collection) -> BoxFuture<'a, Attempted<Vec<String>>>;
}

/// A kind of server: one file, and one line of [`SERVERS`].
pub(super) struct Server {
    /// What it declares: scheme, authentication, options of an address.
    entry: ServerEntry,
    /// How its requests are compared with recorded ones.
    profile: &'static Profile,
    /// Opens a collection for one trial.
    open: fn(&ServerAddress, &Access) -> Box<dyn Store>,
}

/// Every kind of server, in the order of messages.
static SERVERS: &[&Server] = &[&chroma::SERVER, &qdrant::SERVER];

/// The kind of server with that scheme.
fn server(scheme: &str) -> Option<&'static Server> {
    SERVERS.iter().copied().find(|server| server.entry.scheme == scheme)
}

/// Whether there is a kind of server for that address.
pub(super) fn is_known(address: &ServerAddress) -> bool {
    server(&address.scheme).is_some()
}

/// What the kinds of servers declare about themselves.
pub(crate) fn servers() -> Vec<ServerEntry> {
    SERVERS.iter().map(|server| server.entry).collect()
}

/// How a server of that scheme takes a key.
pub(crate) fn server_auth(scheme: &str) -> Auth {
    server(scheme).map_or(Auth::Bearer, |server| server.entry.auth)
}

/// The matching profile of that name, of servers and of every other service, where this build knows it.
pub(crate) fn known_profile(name: &str) -> Option<&'static Profile> {
    let of_server = || SERVERS.iter().map(|server| server.profile).find(|profile| profile.name == name);
    crate::provider::wire::known_profile(name).or_else(of_server)
}

/// The server at that address, asked through `access`; `None` for a scheme that `check` refuses.
pub fn store(address: &ServerAddress, access: &Access) -> Option<Box<dyn Store>> {
    server(&address.scheme).map(|server| (server.open)(address, access))
}

/// The second attempt's outcome behind the attempts of the first.
pub(super) fn behind<T>(mut before: Vec<Attempt>, attempted: Attempted<T>) -> Attempted<T> {
    before.extend(attempted.attempts);
    Attempted { result: attempted.result, attempts: before }
}

/// What could not be got, with the attempts so far.
pub(super) fn failed<T>(attempts: Vec<Attempt>, error: ProviderError) -> Attempted<T> {
    Attempted { result: Err(error), attempts }
}
