//! Chroma 1.x over its API v2: tenants hold databases, databases hold collections.
//!
//! A collection is made with cosine distance, and its search looks at as many candidates as there are passages, so that
//! what it finds is what comparing every passage would.

use super::{BoxFuture, Collection, Neighbour, Server, Store, StoredPassage, behind, failed};
use crate::knowledge::documents::Passage;
use crate::provider::{Access, AnswerError, Attempted, JsonService};
use crate::settings::catalogue::ServerEntry;
use crate::settings::{Auth, ServerAddress};
use crate::transport::{Profile, Service};
use serde_json::{Map, Value, json};

/// Candidates of a search at least, whatever the size of the collection.
const LEAST_CANDIDATES: usize = 100;

static PROFILE: Profile = Profile::plain("chroma");

pub(super) static SERVER: Server = Server {
    entry: ServerEntry { scheme: "chroma", auth: Auth::Bearer, options: &["tenant", "database"] },
    profile: &PROFILE,
    open: |address, access| Box::new(Chroma::new(address, access)),
};

struct Chroma {
    client: JsonService,
    collection: String,
    /// The path of the database's collections.
    collections: String,
}

impl Chroma {
    fn new(address: &ServerAddress, access: &Access) -> Self {
        let option = |name: &str, default| address.options.get(name).map_or(default, String::as_str);
        let (tenant, database) = (option("tenant", "default_tenant"), option("database", "default_database"));
        Self {
            client: JsonService::new(access, Service::Knowledge, &PROFILE),
            collection: address.collection.clone(),
            collections: format!("/api/v2/tenants/{tenant}/databases/{database}/collections"),
        }
    }

    fn path(&self, collection: &Collection, verb: &str) -> String {
        format!("{}/{}/{verb}", self.collections, collection.handle)
    }

    async fn counted(&self, described: Attempted<Collection>) -> Attempted<Collection> {
        let Attempted { result, attempts } = described;
        let collection = match result {
            Ok(collection) => collection,
            Err(error) => return failed(attempts, error),
        };
        let count = |value: Value| value.as_u64().ok_or_else(|| AnswerError::lacks("the answer", "count"));
        let counted = self.client.ask("GET", self.path(&collection, "count"), Value::Null, count).await;
        let Attempted { result, attempts } = behind(attempts, counted);
        Attempted { result: result.map(|count| Collection { count, ..collection }), attempts }
    }
}

/// A collection from the server's description.
fn described(value: &Value) -> Result<Collection, AnswerError> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let (Some(handle), Some(name)) = (text("id"), text("name")) else {
        return Err(AnswerError::lacks("the description of the collection", "id or no name"));
    };
    let model = value.pointer("/metadata/embedding_model").and_then(Value::as_str).map(str::to_owned);
    Ok(Collection { name, handle, count: 0, model })
}

/// A condition on fields: all must be as given.
fn condition(filter: &Map<String, Value>) -> Option<Value> {
    let all: Vec<Value> = filter.iter().map(|(name, value)| json!({ name: value })).collect();
    match all.len() {
        0 => None,
        1 => all.into_iter().next(),
        _ => Some(json!({ "$and": all })),
    }
}

/// The neighbours in an answer to one query.
fn neighbours(value: &Value) -> Result<Vec<Neighbour>, AnswerError> {
    let row = |name: &'static str| {
        let list = value.get(name).and_then(|rows| rows.get(0)).and_then(Value::as_array);
        list.ok_or_else(|| AnswerError::lacks("the answer for the query", name))
    };
    let (ids, texts, fields, distances) = (row("ids")?, row("documents")?, row("metadatas")?, row("distances")?);
    if [texts.len(), fields.len(), distances.len()].iter().any(|length| *length != ids.len()) {
        return Err(AnswerError::Uneven);
    }
    let each = ids.iter().zip(texts).zip(fields).zip(distances);
    let read = |(((id, text), field), distance): (((&Value, &Value), &Value), &Value)| {
        let id = id.as_str().ok_or_else(|| AnswerError::lacks("a passage", "id"))?.to_owned();
        let distance = distance.as_f64().ok_or_else(|| AnswerError::lacks(format!("`{id}`"), "distance"))?;
        let text = text.as_str().ok_or_else(|| AnswerError::lacks(format!("`{id}`"), "text"))?.to_owned();
        let title = field.get("title").and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok((Passage { id, title, text }, 1.0 - distance))
    };
    each.map(read).collect()
}

impl Store for Chroma {
    fn collection(&self) -> BoxFuture<'_, Attempted<Collection>> {
        Box::pin(async move {
            let path = format!("{}/{}", self.collections, self.collection);
            let described = self.client.ask("GET", path, Value::Null, |value| described(&value)).await;
            self.counted(described).await
        })
    }

    fn nearest<'a>(
        &'a self,
        collection: &'a Collection,
        vector: &'a [f32],
        most: usize,
        filter: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Attempted<Vec<Neighbour>>> {
        let mut body = json!({
            "query_embeddings": [vector],
            "n_results": most,
            "include": ["documents", "metadatas", "distances"],
        });
        if let Some(condition) = condition(filter) {
            body["where"] = condition;
        }
        Box::pin(async move {
            self.client.ask("POST", self.path(collection, "query"), body, |value| neighbours(&value)).await
        })
    }

    fn create<'a>(&'a self, model: &'a str, _: usize, passages: usize) -> BoxFuture<'a, Attempted<Collection>> {
        let candidates = passages.max(LEAST_CANDIDATES);
        let body = json!({
            "name": self.collection,
            "get_or_create": true,
            "metadata": {"embedding_model": model},
            "configuration": {"hnsw": {"space": "cosine", "ef_search": candidates, "ef_construction": candidates}},
        });
        Box::pin(async move {
            let made = self.client.ask("POST", self.collections.clone(), body, |value| described(&value)).await;
            self.counted(made).await
        })
    }

    fn upsert<'a>(&'a self, collection: &'a Collection, rows: &'a [StoredPassage<'a>]) -> BoxFuture<'a, Attempted<()>> {
        let body = json!({
            "ids": rows.iter().map(|row| &row.passage.id).collect::<Vec<_>>(),
            "documents": rows.iter().map(|row| &row.passage.text).collect::<Vec<_>>(),
            "embeddings": rows.iter().map(|row| row.vector).collect::<Vec<_>>(),
            "metadatas": rows.iter().map(StoredPassage::about).collect::<Vec<_>>(),
        });
        Box::pin(async move { self.client.ask("POST", self.path(collection, "upsert"), body, |_| Ok(())).await })
    }

    fn remove<'a>(&'a self, collection: &'a Collection, ids: &'a [String]) -> BoxFuture<'a, Attempted<()>> {
        Box::pin(async move {
            self.client.ask("POST", self.path(collection, "delete"), json!({ "ids": ids }), |_| Ok(())).await
        })
    }

    fn ids<'a>(&'a self, collection: &'a Collection) -> BoxFuture<'a, Attempted<Vec<String>>> {
        let read = |value: Value| {
            let ids =
                value.get("ids").and_then(Value::as_array).ok_or_else(|| AnswerError::lacks("the answer", "`ids`"))?;
            Ok(ids.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect())
        };
        Box::pin(
            async move { self.client.ask("POST", self.path(collection, "get"), json!({"include": []}), read).await },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_condition_stands_alone_and_several_must_all_hold() {
        let filter = |value: Value| value.as_object().cloned().expect("a map");
        assert_eq!(condition(&Map::new()), None);
        assert_eq!(condition(&filter(json!({"file": "a.md"}))), Some(json!({"file": "a.md"})));
        let both = condition(&filter(json!({"file": "a.md", "page": 2})));
        assert_eq!(both, Some(json!({"$and": [{"file": "a.md"}, {"page": 2}]})));
    }

    #[test]
    fn neighbours_are_read_in_their_order_and_uneven_or_nameless_ones_are_refused() {
        let answer = json!({"ids": [["a#1", "b#1"]], "documents": [["One.", "Two."]], "distances": [[0.25, 0.5]],
                            "metadatas": [[{"title": "A"}, null]]});
        let read = neighbours(&answer).expect("reads");
        assert_eq!((read[0].0.title.as_str(), read[0].1, read[1].0.id.as_str()), ("A", 0.75, "b#1"));
        for (path, wrong) in [
            ("/ids/0", json!(["a#1"])),
            ("/ids/0/0", json!(1)),
            ("/documents", json!(null)),
            ("/distances/0/1", json!("x")),
        ] {
            let mut broken = answer.clone();
            *broken.pointer_mut(path).expect("is there") = wrong;
            assert!(neighbours(&broken).is_err(), "{path}");
        }
    }

    #[test]
    fn a_collection_says_its_handle_and_its_model_where_it_knows_one() {
        let told = json!({"id": "7f", "name": "desk", "metadata": {"embedding_model": "m"}, "dimension": 2});
        let read = described(&told).expect("reads");
        assert_eq!((read.handle.as_str(), read.model.as_deref()), ("7f", Some("m")));
        assert_eq!(described(&json!({"id": "7f", "name": "desk", "metadata": null})).expect("reads").model, None);
        assert!(described(&json!({"error": "NotFoundError"})).is_err());
    }
}
