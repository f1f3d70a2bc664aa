//! Client of a plain JSON service: the retry loop, errors and decoding, without a dialect.

use super::failure::{failure, malformed, unreadable};
use super::wire::{self, WireError, embeddings_shapes, nuclia_ask};
use super::{Access, Attempted, Failure};
use crate::cassette::{Layout, Place, Redactor};
use crate::platform::{lenient_json, secrets};
use crate::transport::{HttpRequest, HttpResponse, Profile, Service};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Matching profile of requests that no dialect decodes: everything counts. Its layout has the positions of all
/// dialects, because such a request may accompany a conversation, for example to count its tokens.
pub(crate) static EXACT: Profile = Profile { layout: &EVERY, ..Profile::plain(Profile::EXACT) };

static EVERY: Layout = Layout {
    model: Some("/model"),
    conversation: &["/messages", "/input", "/contents"],
    system: Some(("role", &["system", "developer"])),
    prompts: &[
        Place::at("/instructions").folded(),
        Place::at("/system"),
        Place::at("/system/*/text"),
        Place::at("/systemInstruction/parts/*/text"),
    ],
    prompt_members: &["/instructions", "/system", "/systemInstruction"],
    tools: Some("/tools"),
    tool_names: &["/function/name", "/name", "/type"],
    role: "/role",
    text: "/content",
    calls: &[
        Place::at("/tool_calls/*/id").folded(),
        Place::at("/content/*/id").when("type", &["tool_use"]),
        Place::at("/call_id").when("type", &["function_call", "custom_tool_call"]),
    ],
    call_names: &[Place::at("/tool_calls/*/function/name")],
    results: &[
        Place::at("/tool_call_id").when("role", &["tool"]).folded(),
        Place::at("/content/*/tool_use_id").when("type", &["tool_result"]),
        Place::at("/call_id").when("type", &["function_call_output", "custom_tool_call_output"]),
    ],
    continues: &["/previous_response_id", "/conversation", "/thread/previous_message_id"],
    references: Some(("type", &["item_reference"])),
};

/// The matching profile of that name, for services without a chat or search dialect.
pub(super) fn profile_of_service(name: &str) -> Option<&'static Profile> {
    let vectors = embeddings_shapes::SHAPES.into_iter().map(|shape| &shape.profile);
    vectors.chain([&EXACT, &nuclia_ask::PROFILE]).find(|profile| profile.name == name)
}

/// Reason why an answer of such a service cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AnswerError {
    /// It does not match the dialect.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A member is missing, or has another type.
    #[error("{what} has no {member}")]
    Lacks { what: String, member: &'static str },
    /// Lists that should correspond have different lengths.
    #[error("the answer's lists have different lengths")]
    Uneven,
    /// The number of vectors differs from the number of texts.
    #[error("{texts} texts were sent, and {vectors} vectors came back")]
    VectorCount { texts: usize, vectors: usize },
    /// The vectors are empty or differ in length.
    #[error("the vectors are empty, or of different lengths")]
    VectorLengths,
    /// A value is not a finite number.
    #[error("a vector holds something that is no number")]
    NotFinite,
}

impl AnswerError {
    /// Creates the error for a missing member.
    pub(crate) fn lacks(what: impl Into<String>, member: &'static str) -> Self {
        Self::Lacks { what: what.into(), member }
    }
}

/// Client of one service, for one trial; the waits between retries depend on its number of calls.
pub(crate) struct JsonService {
    access: Access,
    service: Service,
    profile: &'static Profile,
    redactor: Redactor,
    calls: AtomicU64,
}

impl JsonService {
    /// Creates a client that uses `access`, with a matching profile for its requests. Errors contain no secret that is
    /// declared by then.
    pub(crate) fn new(access: &Access, service: Service, profile: &'static Profile) -> Self {
        let (redactor, calls) = (secrets::declared(), AtomicU64::new(0));
        Self { access: access.clone(), service, profile, redactor, calls }
    }

    /// Sends one request, with transport retries, and reads its answer; an error of `read` makes it malformed. A body
    /// of `null` means no body, and so does an answer without one.
    pub(crate) async fn ask<T>(
        &self,
        method: &'static str,
        path: String,
        body: Value,
        read: impl Fn(Value) -> Result<T, AnswerError> + Send + Sync,
    ) -> Attempted<T> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let body = Arc::new(body);
        let request = || HttpRequest::new(self.service, self.profile, method, path.as_str(), Arc::clone(&body));
        let decode = |response: &HttpResponse| {
            if !(200..300).contains(&response.status) {
                let failed = failure(response, &self.redactor);
                // Chroma puts the error's name and its message into different members.
                let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
                return Err(match (body.get("error"), body.get("message").and_then(Value::as_str)) {
                    (Some(Value::String(_)), Some(said)) => {
                        Failure { message: malformed(response, said, &self.redactor).message, ..failed }
                    }
                    _ => failed,
                });
            }
            let broken = |why: &str| malformed(response, why, &self.redactor);
            let text: &[u8] = if response.body.is_empty() { b"null" } else { &response.body };
            let value = lenient_json::read(text).map_err(|why| broken(&format!("the answer is not JSON: {why}")))?;
            if let Some(reported) = wire::reported(&value) {
                return Err(unreadable(response, &reported, &self.redactor));
            }
            read(value).map_err(|why| broken(&why.to_string()))
        };
        self.access.exchange(call, request, decode).await
    }
}
