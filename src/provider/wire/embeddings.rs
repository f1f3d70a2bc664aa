//! Embeddings in the format of OpenAI and compatible servers.
//!
//! Vectors may arrive in any order and are sorted by index. They may be encoded in base64: little-endian 32-bit floats
//! (OpenAI), or signed bytes (Perplexity's default).

use super::document::{Reader, WireError, put, small, tokens};
use crate::cassette::{Layout, decode_base64};
use crate::provider::chat::Usage;
use serde_json::{Map, Value, json};

/// The dialect's name.
pub const NAME: &str = "openai-embeddings";

const READER: Reader = Reader(NAME);

/// Positions of a request's parts; the texts are its conversation.
pub(crate) static LAYOUT: Layout = Layout { model: Some("/model"), conversation: &["/input"], ..Layout::NONE };

/// One request for embeddings.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingRequest {
    /// The model's name.
    pub model: String,
    /// The texts.
    pub inputs: Vec<String>,
    /// Requested length of a vector; `None` leaves it to the model.
    pub dimensions: Option<u32>,
    /// The rest of a decoded document, without model and texts.
    pub passthrough: Map<String, Value>,
}

/// Encoding of vectors in strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Little-endian 32-bit floats.
    Floats,
    /// Signed bytes.
    #[cfg_attr(front_door_only, expect(dead_code, reason = "tests and benches use it"))]
    SignedBytes,
}

/// One response with embeddings.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingResponse {
    /// The model that the provider reports.
    pub model: String,
    /// One vector per text, in the order of the texts.
    pub vectors: Vec<Vec<f32>>,
    /// Input tokens.
    pub usage: Usage,
}

/// Decodes a request's body; input as token lists is an error.
pub fn decode_request(body: &Value) -> Result<EmbeddingRequest, WireError> {
    let mut passthrough = READER.object("", body)?.clone();
    let model = READER.string(&passthrough, "model")?.to_owned();
    let inputs = match passthrough.get("input") {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(texts)) => texts
            .iter()
            .enumerate()
            .map(|(index, text)| {
                let wrong = || READER.wrong(&format!("/input/{index}"), "a string", Some(text));
                text.as_str().map(str::to_owned).ok_or_else(wrong)
            })
            .collect::<Result<_, _>>()?,
        other => return Err(READER.wrong("/input", "a string or a list of strings", other)),
    };
    let hole = if passthrough["input"].is_string() { json!("") } else { json!([]) };
    passthrough.insert("input".to_owned(), hole);
    passthrough.insert("model".to_owned(), json!(""));
    let dimensions = passthrough.get("dimensions").and_then(small);
    Ok(EmbeddingRequest { model, inputs, dimensions, passthrough })
}

/// Encodes a request's body.
pub fn encode_request(request: &EmbeddingRequest) -> Value {
    let mut body = request.passthrough.clone();
    body.insert("model".to_owned(), Value::from(request.model.as_str()));
    let input = match &request.inputs[..] {
        [only] if body.get("input").is_some_and(Value::is_string) => Value::from(only.as_str()),
        texts => json!(texts),
    };
    body.insert("input".to_owned(), input);
    put(&mut body, "dimensions", request.dimensions.as_ref(), small, |number| json!(number));
    Value::Object(body)
}

/// Decodes a response.
pub fn decode_response(body: &Value, packing: Packing) -> Result<EmbeddingResponse, WireError> {
    let document = READER.answer(body)?;
    let mut found = Vec::new();
    for (position, entry) in READER.list(document, "data")?.iter().enumerate() {
        let at = format!("/data/{position}/embedding");
        let index = entry.get("index").and_then(Value::as_u64).unwrap_or(position as u64);
        let wrong = || READER.wrong(&at, "a vector of numbers or base64", entry.get("embedding"));
        let vector = match entry.get("embedding") {
            Some(Value::Array(numbers)) => {
                numbers.iter().map(|number| number.as_f64().map(|number| number as f32)).collect::<Option<Vec<f32>>>()
            }
            Some(Value::String(packed)) => unpack(packed, packing),
            _ => None,
        };
        found.push((index, vector.ok_or_else(wrong)?));
    }
    found.sort_by_key(|(index, _)| *index);
    if found.iter().enumerate().any(|(position, (index, _))| position as u64 != *index) {
        return Err(READER.wrong("/data", "a vector for each index from 0", Some(&document["data"])));
    }
    Ok(EmbeddingResponse {
        model: super::document::text(document, "model").to_owned(),
        vectors: found.into_iter().map(|(_, vector)| vector).collect(),
        usage: Usage { input: tokens(body, "/usage/prompt_tokens"), ..Usage::default() },
    })
}

fn unpack(packed: &str, packing: Packing) -> Option<Vec<f32>> {
    let bytes = decode_base64(packed)?;
    match packing {
        Packing::SignedBytes => Some(bytes.into_iter().map(|byte| f32::from(byte.cast_signed())).collect()),
        Packing::Floats => {
            let (numbers, rest) = bytes.as_chunks::<4>();
            rest.is_empty().then(|| numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_sorted_by_index_and_unpacked() {
        let body = json!({"model": "m", "data": [
            {"index": 1, "embedding": "AACAPwAAAMA="}, {"index": 0, "embedding": [0.5, 1]}], "usage": {"prompt_tokens": 3}});
        let response = decode_response(&body, Packing::Floats).expect("decodes");
        assert_eq!(response.vectors, [vec![0.5, 1.0], vec![1.0, -2.0]]);
        let bytes = decode_response(&json!({"data": [{"index": 0, "embedding": "AX//"}]}), Packing::SignedBytes);
        assert_eq!(bytes.expect("decodes").vectors, [vec![1.0, 127.0, -1.0]]);
    }

    #[test]
    fn a_missing_vector_and_broken_base64_are_errors() {
        for data in [
            json!([{"index": 1, "embedding": []}]),
            json!([{"index": 0, "embedding": "A*"}]),
            json!([{"index": 0, "embedding": "AAA="}]),
        ] {
            assert!(decode_response(&json!({ "data": data }), Packing::Floats).is_err(), "{data}");
        }
    }

    #[test]
    fn one_text_alone_and_a_list_of_one_are_both_written_as_they_were() {
        for body in
            [json!({"model": "m", "input": "a", "user": "u"}), json!({"input": ["a"], "model": "m", "dimensions": 8})]
        {
            assert_eq!(encode_request(&decode_request(&body).expect("decodes")), body);
        }
        assert!(decode_request(&json!({"model": "m", "input": [1, 2]})).is_err());
    }
}
