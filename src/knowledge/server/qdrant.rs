//! Qdrant over its REST interface, held against its OpenAPI document by the corpus suite; no server of it was run.
//!
//! Points are named by UUIDs made of the passages' ids, which are in the payload; searches are exact.

use super::{BoxFuture, Collection, Neighbour, Server, Store, StoredPassage, behind, failed, passage_uuid};
use crate::knowledge::documents::Passage;
use crate::provider::{Access, AnswerError, Attempted, JsonService};
use crate::settings::catalogue::ServerEntry;
use crate::settings::{Auth, ServerAddress};
use crate::transport::{Profile, Service};
use serde_json::{Map, Value, json};

/// Points of one page of a listing.
const PAGE: usize = 1_000;

static PROFILE: Profile = Profile::plain("qdrant");

pub(super) static SERVER: Server = Server {
    entry: ServerEntry { scheme: "qdrant", auth: Auth::ApiKey, options: &[] },
    profile: &PROFILE,
    open: |address, access| Box::new(Qdrant::new(address, access)),
};

struct Qdrant {
    client: JsonService,
    collection: String,
}

impl Qdrant {
    fn new(address: &ServerAddress, access: &Access) -> Self {
        Self { client: JsonService::new(access, Service::Knowledge, &PROFILE), collection: address.collection.clone() }
    }

    fn path(&self, rest: &str) -> String {
        format!("/collections/{}{rest}", self.collection)
    }

    async fn described(&self) -> Attempted<Collection> {
        let name = self.collection.clone();
        let read = move |value: Value| {
            let config =
                value.pointer("/result/config").ok_or_else(|| AnswerError::lacks("the description", "`config`"))?;
            let model = config.pointer("/metadata/embedding_model").and_then(Value::as_str).map(str::to_owned);
            Ok(Collection { name: name.clone(), handle: name.clone(), count: 0, model })
        };
        let Attempted { result, attempts } = self.client.ask("GET", self.path(""), Value::Null, read).await;
        let collection = match result {
            Ok(collection) => collection,
            Err(error) => return failed(attempts, error),
        };
        let count = |value: Value| {
            value
                .pointer("/result/count")
                .and_then(Value::as_u64)
                .ok_or_else(|| AnswerError::lacks("the answer", "count"))
        };
        let counted = self.client.ask("POST", self.path("/points/count"), json!({"exact": true}), count).await;
        let Attempted { result, attempts } = behind(attempts, counted);
        Attempted { result: result.map(|count| Collection { count, ..collection }), attempts }
    }
}

/// The points in an answer.
fn points(value: &Value) -> Result<&Vec<Value>, AnswerError> {
    let points = value.pointer("/result/points").and_then(Value::as_array);
    points.ok_or_else(|| AnswerError::lacks("the answer", "points"))
}

/// The neighbours in an answer to one query.
fn neighbours(value: &Value) -> Result<Vec<Neighbour>, AnswerError> {
    let points = points(value)?;
    let read = |point: &Value| {
        let text = |name: &str| point.get("payload")?.get(name)?.as_str().map(str::to_owned);
        let id = text("id").ok_or_else(|| AnswerError::lacks(format!("the point {}", point["id"]), "passage id"))?;
        let score =
            point.get("score").and_then(Value::as_f64).ok_or_else(|| AnswerError::lacks(format!("`{id}`"), "score"))?;
        let body = text("text").ok_or_else(|| AnswerError::lacks(format!("`{id}`"), "text"))?;
        Ok((Passage { title: text("title").unwrap_or_default(), text: body, id }, score))
    };
    points.iter().map(read).collect()
}

/// A body that removes the passages of these ids.
fn removal(ids: &[String]) -> Value {
    json!({"points": ids.iter().map(|id| passage_uuid(id)).collect::<Vec<_>>()})
}

/// A body that adds passages.
fn addition(rows: &[StoredPassage<'_>]) -> Value {
    let point = |row: &StoredPassage<'_>| {
        let mut payload = row.about();
        payload.insert("id".into(), json!(row.passage.id));
        payload.insert("text".into(), json!(row.passage.text));
        json!({"id": passage_uuid(&row.passage.id), "vector": row.vector, "payload": payload})
    };
    json!({"points": rows.iter().map(point).collect::<Vec<_>>()})
}

/// A body that makes a collection.
fn creation(model: &str, dimensions: usize) -> Value {
    json!({"vectors": {"size": dimensions, "distance": "Cosine"}, "metadata": {"embedding_model": model}})
}

/// A body that asks for the nearest.
fn question(vector: &[f32], most: usize, filter: &Map<String, Value>) -> Value {
    let mut body = json!({"query": vector, "limit": most, "with_payload": true, "params": {"exact": true}});
    if !filter.is_empty() {
        let must = filter.iter().map(|(name, value)| json!({"key": name, "match": {"value": value}}));
        body["filter"] = json!({"must": must.collect::<Vec<_>>()});
    }
    body
}

impl Store for Qdrant {
    fn collection(&self) -> BoxFuture<'_, Attempted<Collection>> {
        Box::pin(self.described())
    }

    fn nearest<'a>(
        &'a self,
        _: &'a Collection,
        vector: &'a [f32],
        most: usize,
        filter: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Attempted<Vec<Neighbour>>> {
        let body = question(vector, most, filter);
        let read = |value: Value| neighbours(&value);
        Box::pin(async move { self.client.ask("POST", self.path("/points/query"), body, read).await })
    }

    fn create<'a>(&'a self, model: &'a str, dimensions: usize, _: usize) -> BoxFuture<'a, Attempted<Collection>> {
        Box::pin(async move {
            let there = |value: Value| {
                let there = value.pointer("/result/exists").and_then(Value::as_bool);
                there.ok_or_else(|| AnswerError::lacks("the answer", "`exists`"))
            };
            let asked = self.client.ask("GET", self.path("/exists"), Value::Null, there).await;
            let Attempted { result, attempts } = asked;
            let attempts = match result {
                Err(error) => return failed(attempts, error),
                Ok(true) => attempts,
                Ok(false) => {
                    let made = self.client.ask("PUT", self.path(""), creation(model, dimensions), |_| Ok(())).await;
                    let Attempted { result, attempts } = behind(attempts, made);
                    if let Err(error) = result {
                        return failed(attempts, error);
                    }
                    attempts
                }
            };
            behind(attempts, self.described().await)
        })
    }

    fn upsert<'a>(&'a self, _: &'a Collection, rows: &'a [StoredPassage<'a>]) -> BoxFuture<'a, Attempted<()>> {
        let path = self.path("/points?wait=true");
        Box::pin(async move { self.client.ask("PUT", path, addition(rows), |_| Ok(())).await })
    }

    fn remove<'a>(&'a self, _: &'a Collection, ids: &'a [String]) -> BoxFuture<'a, Attempted<()>> {
        let path = self.path("/points/delete?wait=true");
        Box::pin(async move { self.client.ask("POST", path, removal(ids), |_| Ok(())).await })
    }

    fn ids<'a>(&'a self, _: &'a Collection) -> BoxFuture<'a, Attempted<Vec<String>>> {
        let read = |value: Value| {
            let points = points(&value)?;
            let id = |point: &Value| Some(point.pointer("/payload/id")?.as_str()?.to_owned());
            let next = value.pointer("/result/next_page_offset").filter(|next| !next.is_null()).cloned();
            Ok((points.iter().filter_map(id).collect::<Vec<_>>(), next))
        };
        Box::pin(async move {
            let (mut all, mut attempts, mut offset) = (Vec::new(), Vec::new(), None);
            loop {
                let mut body = json!({"limit": PAGE, "with_payload": ["id"], "with_vector": false});
                if let Some(offset) = offset.take() {
                    body["offset"] = offset;
                }
                let page = self.client.ask("POST", self.path("/points/scroll"), body, read).await;
                let page = behind(attempts, page);
                attempts = page.attempts;
                match page.result {
                    Err(error) => return failed(attempts, error),
                    Ok((ids, next)) => {
                        all.extend(ids);
                        offset = next;
                    }
                }
                if offset.is_none() {
                    return Attempted { result: Ok(all), attempts };
                }
            }
        })
    }
}

/// Every body that is sent, by the name of its schema in Qdrant's OpenAPI document: for the corpus suite.
pub(super) fn bodies(row: &StoredPassage<'_>) -> Vec<(&'static str, Value)> {
    let filter = Map::from_iter([("file".to_owned(), json!("a.md"))]);
    vec![
        ("CreateCollection", creation("model", row.vector.len())),
        ("PointInsertOperations", addition(std::slice::from_ref(row))),
        ("PointsSelector", removal(std::slice::from_ref(&row.passage.id))),
        ("QueryRequest", question(row.vector, 5, &filter)),
        ("QueryRequest", question(row.vector, 5, &Map::new())),
        ("CountRequest", json!({"exact": true})),
        (
            "ScrollRequest",
            json!({"limit": PAGE, "with_payload": ["id"], "with_vector": false, "offset": passage_uuid("a")}),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_read_by_the_ids_in_their_payloads() {
        let answer = json!({"result": {"points": [
            {"id": "x", "version": 1, "score": 0.5, "payload": {"id": "a#1", "title": "A", "text": "One."}}]}});
        assert_eq!(neighbours(&answer).expect("reads")[0].0.id, "a#1");
        for (path, wrong) in
            [("/result/points/0/payload", json!({})), ("/result/points/0/score", json!("x")), ("/result", json!(null))]
        {
            let mut broken = answer.clone();
            *broken.pointer_mut(path).expect("is there") = wrong;
            assert!(neighbours(&broken).is_err(), "{path}");
        }
    }
}
