//! Embeds texts with any server that has OpenAI's endpoint: `POST {base}/embeddings`.

use super::wire::embeddings::{self, EmbeddingRequest, Packing};
use super::wire::embeddings_shapes::OPENAI;
use super::{Access, AnswerError, Attempted, JsonService};
use crate::transport::Service;
use serde_json::{Map, Value};

/// Vectors of some texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// One vector per text, in order, all of the same length.
    pub vectors: Vec<Vec<f32>>,
    /// Input tokens, if the service reports them.
    pub input_tokens: Option<u64>,
}

/// Client of an embeddings model, for one trial.
pub struct Embedder {
    service: JsonService,
    model: String,
    dimensions: Option<u32>,
}

impl Embedder {
    /// Creates a client that uses `access`. `dimensions` is the requested length of a vector, if the model supports a
    /// choice.
    pub fn new(access: &Access, model: &str, dimensions: Option<u32>) -> Self {
        let service = JsonService::new(access, Service::Embeddings, &OPENAI.profile);
        Self { service, model: model.to_owned(), dimensions }
    }

    /// Embeds `texts`, with transport retries.
    pub async fn embed(&self, texts: &[String]) -> Attempted<Embedded> {
        let body = embeddings::encode_request(&EmbeddingRequest {
            model: self.model.clone(),
            inputs: texts.to_vec(),
            dimensions: self.dimensions,
            passthrough: Map::new(),
        });
        self.service.ask("POST", "/embeddings".to_owned(), body, |body| vectors(&body, texts.len())).await
    }
}

/// Reads the vectors of that many texts.
fn vectors(body: &Value, texts: usize) -> Result<Embedded, AnswerError> {
    let response = embeddings::decode_response(body, Packing::Floats)?;
    let (vectors, input_tokens) = (response.vectors, response.usage.input);
    let length = vectors.first().map_or(0, Vec::len);
    if vectors.len() != texts {
        return Err(AnswerError::VectorCount { texts, vectors: vectors.len() });
    }
    if length == 0 || vectors.iter().any(|vector| vector.len() != length) {
        return Err(AnswerError::VectorLengths);
    }
    if vectors.iter().flatten().any(|number| !number.is_finite()) {
        return Err(AnswerError::NotFinite);
    }
    Ok(Embedded { vectors, input_tokens })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::clock::{BoxFuture, VirtualClock, block_on};
    use crate::provider::{ErrorKind, ProviderError, RetryPolicy};
    use crate::transport::{HttpRequest, HttpResponse, Transport, TransportError};
    use serde_json::json;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    struct Answers(Mutex<Vec<(u16, Value)>>, Mutex<Vec<Value>>);

    impl Transport for Answers {
        fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
            assert_eq!((request.path.as_str(), request.service), ("/embeddings", Service::Embeddings));
            self.1.lock().expect("unpoisoned").push((*request.body).clone());
            let (status, body) = self.0.lock().expect("unpoisoned").remove(0);
            let body = bytes::Bytes::from(body.to_string());
            let response = HttpResponse { status, headers: Vec::new(), body, took: Duration::ZERO, chunks: Vec::new() };
            Box::pin(std::future::ready(Ok(response)))
        }
    }

    fn asked(answers: Vec<(u16, Value)>) -> (Attempted<Embedded>, Vec<Value>) {
        let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        let server = Arc::new(Answers(Mutex::new(answers), Mutex::default()));
        let transport = Arc::clone(&server) as Arc<dyn Transport>;
        let access = Access { transport, clock: Arc::new(clock.clone()), policy: RetryPolicy::default() };
        let embedder = Embedder::new(&access, "small", Some(2));
        let texts = ["one".to_owned(), "two".to_owned()];
        let attempted = block_on(&clock, embedder.embed(&texts)).expect("no deadlock");
        (attempted, server.1.lock().expect("unpoisoned").clone())
    }

    fn answer(vectors: &Value) -> Value {
        let each = vectors.as_array().expect("a list").iter().enumerate();
        json!({"data": each.map(|(index, vector)| json!({"index": index, "embedding": vector})).collect::<Vec<_>>()})
    }

    #[test]
    fn texts_become_vectors_in_their_order_and_an_overloaded_server_is_asked_again() {
        let (attempted, sent) = asked(vec![(503, json!("busy")), (200, answer(&json!([[1, 0], [0.5, 2]])))]);
        let found = attempted.result.expect("vectors");
        assert_eq!((found.vectors, found.input_tokens), (vec![vec![1.0, 0.0], vec![0.5, 2.0]], None));
        assert_eq!(attempted.attempts.len(), 2);
        assert_eq!(sent[0], json!({"model": "small", "input": ["one", "two"], "dimensions": 2}));
    }

    #[test]
    fn too_few_or_uneven_or_empty_vectors_are_no_answer() {
        for wrong in [json!([[1, 0]]), json!([[1, 0], [1]]), json!([[], []]), json!([[1, 0], [1, 1e60]])] {
            let (attempted, _) = asked(vec![(200, answer(&wrong))]);
            let Err(ProviderError::Failed { kind, .. }) = attempted.result else { panic!("{wrong} passes") };
            assert_eq!(kind, ErrorKind::Malformed, "{wrong}");
        }
    }
}
