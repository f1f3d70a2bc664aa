//! Knowledge bases on servers: collections of passages with vectors, searched through a trial's transport.
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
use sha2::{Digest, Sha256};

/// Number of passages per upload request.
pub const BATCH: usize = 200;

/// A collection as its server describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    pub name: String,
    /// Its id in the server's paths.
    pub(super) handle: String,
    /// Number of passages.
    pub count: u64,
    /// The model that made its vectors, if the server stores it.
    pub model: Option<String>,
}

/// A passage with its vector, for upload.
#[derive(Debug, Clone)]
pub struct StoredPassage<'a> {
    /// The passage.
    pub passage: &'a Passage,
    /// Its place in its document, if known.
    pub place: Option<&'a Place>,
    /// Its vector.
    pub vector: &'a [f32],
}

impl<'a> StoredPassage<'a> {
    /// The passages of a corpus with their vectors.
    pub fn of(corpus: &'a Corpus, vectors: &'a super::PassageVectors) -> Vec<Self> {
        let places = corpus.places.iter().map(Some).chain(std::iter::repeat(None));
        let rows = corpus.passages.iter().zip(places).zip(vectors.rows());
        rows.map(|((passage, place), vector)| Self { passage, place, vector }).collect()
    }

    /// Fields stored beside the vector: title, and if the place is known, file, section, offset and page.
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

/// A passage found by a query, with its score; higher is nearer.
pub(super) type Neighbour = (Passage, f64);

/// Every body that is sent to Qdrant for this passage, by the name of its schema in Qdrant's OpenAPI document.
#[cfg_attr(front_door_only, expect(dead_code, reason = "tests and benches use it"))]
pub fn qdrant_bodies(row: &StoredPassage<'_>) -> Vec<(&'static str, Value)> {
    qdrant::bodies(row)
}

/// A server of collections.
pub trait Store: Send + Sync {
    /// Describes the collection, with its count.
    fn collection(&self) -> BoxFuture<'_, Attempted<Collection>>;
    /// Finds up to `most` passages whose fields equal those of `filter`, nearest to `vector` first.
    fn nearest<'a>(
        &'a self,
        collection: &'a Collection,
        vector: &'a [f32],
        most: usize,
        filter: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Attempted<Vec<Neighbour>>>;
    /// Creates the collection if it does not exist, for vectors of `dimensions` numbers by `model` and about `passages`
    /// passages, and describes it.
    fn create<'a>(&'a self, model: &'a str, dimensions: usize, passages: usize)
    -> BoxFuture<'a, Attempted<Collection>>;
    /// Adds passages; replaces those with the same ids.
    fn upsert<'a>(&'a self, collection: &'a Collection, rows: &'a [StoredPassage<'a>]) -> BoxFuture<'a, Attempted<()>>;
    /// Removes the passages with these ids.
    fn remove<'a>(&'a self, collection: &'a Collection, ids: &'a [String]) -> BoxFuture<'a, Attempted<()>>;
    /// Lists the ids of all passages.
    fn ids<'a>(&'a self, collection: &'a Collection) -> BoxFuture<'a, Attempted<Vec<String>>>;
}

/// A kind of server: one file, and one line of [`SERVERS`].
pub(super) struct Server {
    /// Scheme, authentication, and options of an address.
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

/// Declarations of all kinds of servers.
pub(crate) fn servers() -> Vec<ServerEntry> {
    SERVERS.iter().map(|server| server.entry).collect()
}

/// The header for the key of a server with that scheme.
pub(crate) fn server_auth(scheme: &str) -> Auth {
    server(scheme).map_or(Auth::Bearer, |server| server.entry.auth)
}

/// The matching profile of that name, of a server or of any other service.
pub(crate) fn known_profile(name: &str) -> Option<&'static Profile> {
    let of_server = || SERVERS.iter().map(|server| server.profile).find(|profile| profile.name == name);
    crate::provider::wire::known_profile(name).or_else(of_server)
}

/// Opens the server at that address through `access`; `None` for a scheme that `check` refuses.
pub fn store(address: &ServerAddress, access: &Access) -> Option<Box<dyn Store>> {
    server(&address.scheme).map(|server| (server.open)(address, access))
}

/// Names a passage on a server whose ids are UUIDs: 128 bits of the SHA-256 of its id, as version 8 (RFC 9562).
fn passage_uuid(passage: &str) -> String {
    let mut bytes: [u8; 32] = Sha256::digest(passage).into();
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex::encode(&bytes[..16]);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// Puts the attempts of an earlier request before those of `attempted`.
pub(super) fn behind<T>(mut before: Vec<Attempt>, attempted: Attempted<T>) -> Attempted<T> {
    before.extend(attempted.attempts);
    Attempted { result: attempted.result, attempts: before }
}

/// A failed request, with the attempts so far.
pub(super) fn failed<T>(attempts: Vec<Attempt>, error: ProviderError) -> Attempted<T> {
    Attempted { result: Err(error), attempts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_depends_on_its_passage_alone() {
        let id = passage_uuid("warranty#1");
        assert_eq!(id, passage_uuid("warranty#1"));
        assert_ne!(id, passage_uuid("warranty#2"));
        let parts: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!((parts, &id[14..15]), (vec![8, 4, 4, 4, 12], "8"));
        assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"), "{id}");
    }
}
