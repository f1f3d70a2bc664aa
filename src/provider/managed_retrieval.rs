//! A managed retrieval service: one question, an answer with citations, transport retries included.
//!
//! What comes back holds no secret and no address of the service: both are taken out here, before anybody reads it.

use super::failure::{failure, malformed, unreadable};
use super::wire::nuclia_ask::{self, AskAnswer, AskRequest};
use super::{Access, Attempted, Failure};
use crate::cassette::Redactor;
use crate::settings::ManagedRetrievalSettings;
use crate::transport::{HttpRequest, HttpResponse, Service, StreamEnd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What stands where the service's address stood.
const ADDRESS_MARK: &str = "[redacted:service address]";

/// Parts of a text by which one sees that something was taken out.
const MARKS: &str = "[redacted:";

/// One service, reached through the transport of one trial; the waits between retries count its calls.
pub struct ManagedRetrieval {
    access: Access,
    path: String,
    stream: bool,
    host: String,
    redactor: Redactor,
    calls: AtomicU64,
}

impl ManagedRetrieval {
    /// The service that is declared so, reached through `access`; `redactor` knows every secret in use.
    pub fn new(access: &Access, settings: &ManagedRetrievalSettings, redactor: Redactor) -> Self {
        Self {
            access: access.clone(),
            path: nuclia_ask::path(&settings.kb_id),
            stream: settings.stream,
            host: settings.host().to_owned(),
            redactor,
            calls: AtomicU64::new(0),
        }
    }

    /// Asks once. The texts of the answer hold neither a secret nor the service's address; where something was taken out
    /// of the answer's own text, its positions mean nothing any more and every citation is without one.
    pub async fn ask(&self, request: &AskRequest) -> Attempted<AskAnswer> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let body = Arc::new(nuclia_ask::encode_request(request));
        let sent = || HttpRequest {
            service: Service::ManagedRetrieval,
            profile: &nuclia_ask::PROFILE,
            method: "POST",
            path: self.path.clone(),
            body: Arc::clone(&body),
            stream: self.stream.then(|| StreamEnd::new(nuclia_ask::is_whole)),
            headers: Vec::new(),
        };
        self.access.exchange(call, sent, |response| self.read(response)).await
    }

    fn read(&self, response: &HttpResponse) -> Result<AskAnswer, Failure> {
        let read = || {
            if !(200..300).contains(&response.status) {
                return Err(failure(response, &self.redactor));
            }
            if response.body.is_empty() {
                return Err(malformed(response, "the answer is empty", &self.redactor));
            }
            nuclia_ask::decode_response(&response.body).map_err(|error| unreadable(response, &error, &self.redactor))
        };
        let mut answer = read().map_err(|failure| Failure { message: self.clean(&failure.message), ..failure })?;
        answer.learning_id =
            answer.learning_id.or_else(|| response.header(nuclia_ask::LEARNING_ID_HEADER).map(str::to_owned));
        Ok(self.cleaned(answer))
    }

    fn cleaned(&self, answer: AskAnswer) -> AskAnswer {
        let AskAnswer { text, details, learning_id, mut paragraphs, mut citations, mut skipped, .. } = answer;
        let text = self.clean(&text);
        for paragraph in &mut paragraphs {
            for part in [
                &mut paragraph.id,
                &mut paragraph.resource,
                &mut paragraph.field,
                &mut paragraph.title,
                &mut paragraph.text,
            ] {
                *part = self.clean(part);
            }
            paragraph.file = paragraph.file.as_deref().map(|file| self.clean(file));
        }
        for citation in &mut citations {
            citation.paragraph = self.clean(&citation.paragraph);
            if text.contains(MARKS) {
                citation.spans.clear();
            }
        }
        for word in &mut skipped {
            *word = self.clean(word);
        }
        let (details, learning_id) = (details.map(|words| self.clean(&words)), learning_id.map(|id| self.clean(&id)));
        AskAnswer { text, details, learning_id, paragraphs, citations, skipped, ..answer }
    }

    fn clean(&self, text: &str) -> String {
        let text = self.redactor.redact(text);
        if self.host.is_empty() { text.into_owned() } else { text.replace(&self.host, ADDRESS_MARK) }
    }
}
