//! Shapes of requests for vectors that external agents send: how each is compared, and where its parts are.
//!
//! The vectors themselves are between the agent and its provider, so they are not decoded.

use super::embeddings;
use crate::cassette::{Layout, Place, Profile};
use serde_json::Value;

/// One provider's shape.
#[derive(Debug)]
pub(crate) struct Shape {
    /// How requests are compared.
    pub profile: Profile,
    /// Texts in a request.
    texts: &'static [Place],
    /// Pointers to what an answer may have: a list of vectors, one vector, or lists by type.
    vectors: &'static [&'static str],
    /// Pointers to the number of input tokens in an answer.
    tokens: &'static [&'static str],
}

/// OpenAI's and compatible servers.
pub(crate) static OPENAI: Shape = Shape {
    profile: Profile { name: embeddings::NAME, version: 1, drop: &["/user"], layout: &embeddings::LAYOUT },
    texts: &[Place::at("/input"), Place::at("/input/*")],
    vectors: &["/data"],
    tokens: &["/usage/prompt_tokens", "/usage/total_tokens"],
};

/// Google's `embedContent` and `batchEmbedContents`; the model is in the path.
pub(crate) static GOOGLE: Shape = Shape {
    profile: Profile {
        name: "google-embeddings",
        version: 1,
        drop: &[],
        layout: &Layout { conversation: &["/requests", "/content/parts"], ..Layout::NONE },
    },
    texts: &[Place::at("/content/parts/*/text"), Place::at("/requests/*/content/parts/*/text")],
    vectors: &["/embeddings", "/embedding/values"],
    tokens: &["/usageMetadata/promptTokenCount"],
};

/// Cohere's, of both versions.
pub(crate) static COHERE: Shape = Shape {
    profile: Profile {
        name: "cohere-embeddings",
        version: 1,
        drop: &[],
        layout: &Layout { model: Some("/model"), conversation: &["/texts", "/inputs", "/images"], ..Layout::NONE },
    },
    texts: &[Place::at("/texts/*"), Place::at("/inputs/*/content/*/text")],
    vectors: &["/embeddings"],
    tokens: &["/meta/billed_units/input_tokens", "/meta/tokens/input_tokens"],
};

/// Ollama's: `/api/embed`, and `/api/embeddings` for one text.
pub(crate) static OLLAMA: Shape = Shape {
    profile: Profile {
        name: "ollama-embeddings",
        version: 1,
        drop: &["/keep_alive"],
        layout: &Layout { model: Some("/model"), conversation: &["/input", "/prompt"], ..Layout::NONE },
    },
    texts: &[Place::at("/input"), Place::at("/input/*"), Place::at("/prompt")],
    vectors: &["/embeddings", "/embedding"],
    tokens: &["/prompt_eval_count"],
};

/// All of them.
pub(crate) static SHAPES: [&Shape; 4] = [&OPENAI, &GOOGLE, &COHERE, &OLLAMA];

impl Shape {
    /// The shape whose profile has that name; OpenAI's for any other.
    pub(crate) fn named(profile: &str) -> &'static Self {
        SHAPES.into_iter().find(|shape| shape.profile.name == profile).unwrap_or(&OPENAI)
    }

    /// Whether a shape's profile has that name.
    pub(crate) fn is_named(profile: &str) -> bool {
        SHAPES.into_iter().any(|shape| shape.profile.name == profile)
    }

    /// The text of a request for one vector; empty for several, and for token ids.
    pub(crate) fn only_text(&self, body: &Value) -> String {
        let mut texts = Vec::new();
        for place in self.texts {
            place.each(body, &mut |text| texts.extend(text.and_then(Value::as_str)));
        }
        if let [only] = texts[..] { only.to_owned() } else { String::new() }
    }

    /// Whether an answer has a vector for each input of its request.
    pub(crate) fn has_vectors(&self, request: &Value, answer: &Value) -> bool {
        let wanted = inputs(request);
        self.vectors.iter().filter_map(|at| answer.pointer(at)).any(|found| vectors(found) >= wanted)
    }

    /// Input tokens that an answer tells.
    pub(crate) fn tokens(&self, answer: &Value) -> Option<u64> {
        self.tokens.iter().find_map(|at| answer.pointer(at)?.as_u64())
    }
}

/// Number of inputs in a request, at least 1.
fn inputs(request: &Value) -> usize {
    let listed = ["/input", "/texts", "/inputs", "/images", "/requests"].into_iter().find_map(|at| request.pointer(at));
    match listed.and_then(Value::as_array) {
        // Token ids of one text.
        Some(list) if list.iter().any(Value::is_number) => 1,
        Some(list) => list.len().max(1),
        None => 1,
    }
}

/// Number of vectors in a value: one vector, a list of vectors, or a list for each type.
fn vectors(found: &Value) -> usize {
    match found {
        Value::Array(list) if list.iter().any(Value::is_number) => 1,
        Value::Array(list) => list.iter().filter(|one| is_vector(one)).count(),
        Value::Object(lists) => lists.values().map(vectors).max().unwrap_or_default(),
        _ => 0,
    }
}

/// Whether a value is a vector, in any packing, or an object with one.
fn is_vector(value: &Value) -> bool {
    let held = match value {
        Value::Object(members) => members.get("embedding").or_else(|| members.get("values")),
        other => Some(other),
    };
    match held.unwrap_or(&Value::Null) {
        Value::Array(list) => !list.is_empty() && list.iter().all(|one| one.is_number() || one.is_array()),
        Value::String(packed) => !packed.is_empty(),
        Value::Object(parts) => !parts.is_empty(),
        _ => false,
    }
}

/// The model that a request for vectors names, in its body, in its first part, or in its path.
pub(crate) fn model_of<'a>(path: &'a str, body: &'a Value) -> Option<&'a str> {
    let named = || ["/model", "/requests/0/model"].into_iter().find_map(|at| body.pointer(at)?.as_str());
    let in_path = || Some(path.rsplit_once("/models/")?.1.split_once(':')?.0);
    let model = named().or_else(in_path)?;
    Some(model.strip_prefix("models/").unwrap_or(model))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_text_of_one_vector_is_found_in_every_shape_and_no_text_where_there_are_several() {
        let part = |text: &str| json!({"model": "models/g", "content": {"parts": [{"text": text}]}});
        for (shape, one, several) in [
            (&OPENAI, json!({"input": "q"}), json!({"input": ["q", "r"]})),
            (&OPENAI, json!({"input": ["q"]}), json!({"input": [[101, 7]]})),
            (&GOOGLE, part("q"), json!({"requests": [part("q"), part("r")]})),
            (&GOOGLE, json!({"requests": [part("q")]}), json!({"requests": []})),
            (&COHERE, json!({"texts": ["q"]}), json!({"texts": ["q", "r"]})),
            (
                &COHERE,
                json!({"inputs": [{"content": [{"type": "text", "text": "q"}]}]}),
                json!({"images": ["data:image/png;base64,AA"]}),
            ),
            (&OLLAMA, json!({"input": "q"}), json!({"input": ["q", "r"]})),
            (&OLLAMA, json!({"prompt": "q"}), json!({})),
        ] {
            assert_eq!(shape.only_text(&one), "q", "{one}");
            assert_eq!(shape.only_text(&several), "", "{several}");
        }
    }

    #[test]
    fn an_answer_counts_in_its_own_shape_and_not_in_another() {
        let vector = json!([0.5, -2.0]);
        for (shape, answer, tokens) in [
            (&OPENAI, json!({"data": [{"embedding": "AACAPw"}], "usage": {"prompt_tokens": 3}}), Some(3)),
            (&GOOGLE, json!({"embedding": {"values": vector}}), None),
            (&GOOGLE, json!({"embeddings": [{"values": vector}], "usageMetadata": {"promptTokenCount": 4}}), Some(4)),
            (
                &COHERE,
                json!({"embeddings": {"float": [vector]}, "meta": {"billed_units": {"input_tokens": 5}}}),
                Some(5),
            ),
            (&COHERE, json!({"embeddings": [vector]}), None),
            (&OLLAMA, json!({"embeddings": [vector], "prompt_eval_count": 6}), Some(6)),
            (&OLLAMA, json!({"embedding": vector}), None),
        ] {
            assert!(shape.has_vectors(&json!({"input": "q"}), &answer), "{answer}");
            assert_eq!(shape.tokens(&answer), tokens, "{answer}");
            assert_eq!(Shape::named(shape.profile.name).profile.name, shape.profile.name);
        }
        for (shape, answer) in [
            (&OPENAI, json!({"embeddings": [vector]})),
            (&GOOGLE, json!({"embedding": {}})),
            (&COHERE, json!({"embeddings": {}})),
            (&COHERE, json!({"embeddings": {"float": null}})),
            (&OLLAMA, json!({"data": [{"embedding": vector}]})),
            (&OPENAI, json!({"data": []})),
            (&OPENAI, json!({"data": [{"embedding": null}]})),
            (&OPENAI, json!({"data": [{"embedding": []}]})),
            (&OPENAI, json!({"data": [{"embedding": ["x"]}]})),
            (&OPENAI, json!({"data": [{"error": "too long"}, {"embedding": ""}]})),
            (&GOOGLE, json!({"embeddings": [{}]})),
            (&OLLAMA, json!({"embeddings": [[]]})),
        ] {
            assert!(!shape.has_vectors(&Value::Null, &answer), "{answer}");
        }
    }

    #[test]
    fn each_input_of_a_request_needs_a_vector() {
        let answer = json!({"data": [{"embedding": [0.5]}], "embeddings": [[0.5]]});
        for (shape, request, enough) in [
            (&OPENAI, json!({"input": ["q"]}), true),
            (&OPENAI, json!({"input": [101, 7]}), true),
            (&OPENAI, json!({"input": ["q", "r"]}), false),
            (&OPENAI, json!({"input": [[101], [7]]}), false),
            (&COHERE, json!({"texts": ["q", "r"]}), false),
            (&OLLAMA, json!({"input": ["q", "r"]}), false),
            (&GOOGLE, json!({"requests": [{}, {}]}), false),
            (&GOOGLE, json!({"content": {"parts": [{"text": "q"}, {"text": "r"}]}}), true),
        ] {
            assert_eq!(shape.has_vectors(&request, &answer), enough, "{request}");
        }
    }

    #[test]
    fn the_model_of_a_request_for_vectors_is_in_its_body_or_its_path() {
        for (path, body) in [
            ("/embeddings", json!({"model": "g"})),
            ("/models/g:embedContent", json!({})),
            ("/models/x:batchEmbedContents", json!({"requests": [{"model": "models/g"}]})),
        ] {
            assert_eq!(model_of(path, &body), Some("g"), "{path}");
        }
        assert_eq!(model_of("/embeddings", &json!({})), None);
    }
}
