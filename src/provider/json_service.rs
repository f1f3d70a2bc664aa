//! A service of plain JSON requests: the retry loop, the errors and the reading, without a dialect.

use super::failure::{failure, malformed, unreadable};
use super::wire::{self, WireError, embeddings, nuclia_ask};
use super::{Access, Attempted, Failure};
use crate::cassette::Redactor;
use crate::transport::{HttpRequest, HttpResponse, Profile, Service};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The matching profile of embeddings as OpenAI writes them: everything counts but who asks.
pub(crate) static EMBEDDINGS: Profile = Profile { name: embeddings::NAME, version: 1, drop: &["/user"] };

/// The matching profile of that name, of services without a dialect of chat or search.
pub(super) fn profile_of_service(name: &str) -> Option<&'static Profile> {
    [&EMBEDDINGS, &nuclia_ask::PROFILE].into_iter().find(|profile| profile.name == name)
}

/// Why the answer of such a service cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AnswerError {
    /// It is not what the dialect says.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A part is not there, or is of another type.
    #[error("{what} has no {member}")]
    Lacks {
        /// What should have it.
        what: String,
        /// The part.
        member: &'static str,
    },
    /// Lists that belong together do not fit together.
    #[error("the answer's lists have different lengths")]
    Uneven,
    /// There is not one vector for each text.
    #[error("{texts} texts were sent, and {vectors} vectors came back")]
    VectorCount {
        /// Texts that were sent.
        texts: usize,
        /// Vectors that came back.
        vectors: usize,
    },
    /// The vectors do not have one length.
    #[error("the vectors are empty, or of different lengths")]
    VectorLengths,
    /// A number is too large, or none.
    #[error("a vector holds something that is no number")]
    NotFinite,
}

impl AnswerError {
    /// A part that is not there.
    pub(crate) fn lacks(what: impl Into<String>, member: &'static str) -> Self {
        Self::Lacks { what: what.into(), member }
    }
}

/// One service, reached through the transport of one trial; the waits between retries count its calls.
pub(crate) struct JsonService {
    access: Access,
    service: Service,
    profile: &'static Profile,
    redactor: Redactor,
    calls: AtomicU64,
}

impl JsonService {
    /// The service reached through `access`, whose requests are matched by that profile.
    pub(crate) fn new(access: &Access, service: Service, profile: &'static Profile) -> Self {
        let (redactor, calls) = (Redactor::default(), AtomicU64::new(0));
        Self { access: access.clone(), service, profile, redactor, calls }
    }

    /// Sends one request, transport retries included, and reads its answer; the error of `read` is what is wrong with
    /// it. A body of `null` is none, and so is an answer without a body.
    pub(crate) async fn ask<T>(
        &self,
        method: &'static str,
        path: String,
        body: Value,
        read: impl Fn(Value) -> Result<T, AnswerError> + Send + Sync,
    ) -> Attempted<T> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let body = Arc::new(body);
        let request = || HttpRequest {
            service: self.service,
            profile: self.profile,
            method,
            path: path.clone(),
            body: Arc::clone(&body),
            stream: None,
            headers: Vec::new(),
        };
        let decode = |response: &HttpResponse| {
            if !(200..300).contains(&response.status) {
                let failed = failure(response, &self.redactor);
                // Chroma names the error in one member and says it in another.
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
            let value = serde_json::from_slice(text).map_err(|why| broken(&format!("the answer is no JSON: {why}")))?;
            if let Some(reported) = wire::reported(&value) {
                return Err(unreadable(response, &reported, &self.redactor));
            }
            read(value).map_err(|why| broken(&why.to_string()))
        };
        self.access.exchange(call, request, decode).await
    }
}
