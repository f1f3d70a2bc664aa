//! Client of a managed retrieval service: one question, an answer with citations, with transport retries.
//!
//! Results contain no secret and no address of the service: both are redacted here, before the results are used.

use super::failure::{failure, malformed, unreadable};
use super::wire::nuclia_ask::{self, AskAnswer, AskRequest};
use super::{Access, Attempted, Failure};
use crate::cassette::Redactor;
use crate::settings::ManagedRetrievalSettings;
use crate::transport::{HttpRequest, HttpResponse, Service, StreamEnd};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SERVICE: Service = Service::ManagedRetrieval;

/// Replaces the service's address.
const ADDRESS_MARK: &str = "[redacted:service address]";

/// Start of every redaction mark.
const MARKS: &str = "[redacted:";

/// A downloaded file.
#[derive(Debug, Clone)]
pub struct Download {
    /// Content type as reported by the service.
    pub content_type: String,
    pub bytes: Bytes,
}

/// Client of one service, for one trial; the waits between retries depend on its number of calls.
pub struct ManagedRetrieval {
    access: Access,
    kb_id: String,
    stream: bool,
    host: String,
    redactor: Redactor,
    calls: AtomicU64,
}

impl ManagedRetrieval {
    /// Creates a client for the declared service that uses `access`; `redactor` knows every secret in use.
    pub fn new(access: &Access, settings: &ManagedRetrievalSettings, redactor: Redactor) -> Self {
        Self {
            access: access.clone(),
            kb_id: settings.kb_id.clone(),
            stream: settings.stream,
            host: settings.host().to_owned(),
            redactor,
            calls: AtomicU64::new(0),
        }
    }

    /// Creates a client with one secret, for tests of flows.
    #[cfg(test)]
    pub(crate) fn keeping(secret: (&str, &str), access: &Access, settings: &ManagedRetrievalSettings) -> Self {
        Self::new(access, settings, Redactor::new([(secret.0.to_owned(), secret.1.to_owned())]))
    }

    /// Asks once. The texts of the answer contain neither a secret nor the service's address. If the answer's own text
    /// was redacted, its positions are no longer valid, so every citation loses them.
    pub async fn ask(&self, request: &AskRequest) -> Attempted<AskAnswer> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let body = Arc::new(nuclia_ask::encode_request(request));
        let stream = || self.stream.then(|| StreamEnd::new(nuclia_ask::is_whole));
        let sent = || {
            let path = nuclia_ask::path(&self.kb_id);
            let request = HttpRequest::new(SERVICE, &nuclia_ask::PROFILE, "POST", path, Arc::clone(&body));
            HttpRequest { stream: stream(), ..request }
        };
        self.access.exchange(call, sent, |response| self.read(response)).await
    }

    /// Downloads a file of the knowledge box, by its resource and its field.
    pub async fn download(&self, resource: &str, field: &str) -> Attempted<Download> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let path = nuclia_ask::download_path(&self.kb_id, resource, field);
        let sent = || HttpRequest::new(SERVICE, &nuclia_ask::PROFILE, "GET", path.as_str(), Arc::default());
        let read = |response: &HttpResponse| {
            if !(200..300).contains(&response.status) {
                let failure = failure(response, &self.redactor);
                return Err(Failure { message: self.clean(&failure.message), ..failure });
            }
            let content_type = response.header("content-type").unwrap_or_default().to_owned();
            Ok(Download { content_type, bytes: response.body.clone() })
        };
        self.access.exchange(call, sent, read).await
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
                &mut paragraph.id, &mut paragraph.resource, &mut paragraph.field, &mut paragraph.title,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::clock::{BoxFuture, VirtualClock, block_on};
    use crate::provider::{ErrorKind, ProviderError, RetryPolicy};
    use crate::transport::{Transport, TransportError};
    use serde_json::json;
    use std::sync::Mutex;
    use std::time::Duration;

    struct Script(Mutex<Vec<(u16, String)>>, Mutex<Vec<HttpRequest>>);

    impl Transport for Script {
        fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
            self.1.lock().expect("unpoisoned").push(request);
            let (status, body) = self.0.lock().expect("unpoisoned").remove(0);
            let headers = vec![(nuclia_ask::LEARNING_ID_HEADER.to_owned(), "from-a-header".to_owned())];
            let response =
                HttpResponse { status, headers, body: body.into(), took: Duration::ZERO, chunks: Vec::new() };
            Box::pin(std::future::ready(Ok(response)))
        }
    }

    const SECRET: &str = "planted-token-0451";
    const HOST: &str = "europe-1.nuclia.cloud";

    fn asked(stream: bool, answers: Vec<(u16, String)>) -> (Attempted<AskAnswer>, Vec<HttpRequest>) {
        let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        let server = Arc::new(Script(Mutex::new(answers), Mutex::default()));
        let transport = Arc::clone(&server) as Arc<dyn Transport>;
        let access = Access { transport, clock: Arc::new(clock.clone()), policy: RetryPolicy::default() };
        let settings = ManagedRetrievalSettings {
            base_url: format!("https://{HOST}/api/v1"),
            kb_id: "box".into(),
            stream,
            ..ManagedRetrievalSettings::default()
        };
        let redactor = Redactor::new([("NUCLIA_TOKEN".to_owned(), SECRET.to_owned())]);
        let service = ManagedRetrieval::new(&access, &settings, redactor);
        let request = AskRequest { query: "why?".into(), top_k: 5, ..AskRequest::default() };
        let attempted = block_on(&clock, service.ask(&request)).expect("no deadlock");
        let sent = server.1.lock().expect("unpoisoned").clone();
        (attempted, sent)
    }

    #[test]
    fn no_field_of_an_answer_holds_a_secret_or_the_services_address() {
        let evil = format!("{SECRET} at https://{HOST}/x");
        let body = json!({"answer": evil, "status": "success", "learning_id": evil, "error_details": evil,
            "retrieval_results": {"resources": {"r": {"title": evil, "data": {"files": {"a": {"value": {"file": {"filename": evil, "uri": evil}}}}},
                "fields": {"/f/a": {"paragraphs": {(evil.clone()): {"text": evil, "score": 1.0, "position": {"page_number": 1}}}}}}}},
            "citations": {(evil.clone()): [[0, 3]]}});
        let (attempted, sent) = asked(false, vec![(200, body.to_string())]);
        let answer = attempted.result.expect("an answer");
        let told = format!("{answer:?}");
        assert!(!told.contains(SECRET) && !told.contains(HOST), "{told}");
        assert!(answer.citations[0].spans.is_empty(), "what was taken out moved every position behind it");
        assert_eq!(answer.citations[0].paragraph, answer.paragraphs[0].id, "it is still the same passage");
        assert_eq!((sent[0].path.as_str(), sent[0].method, sent[0].stream.is_some()), ("/kb/box/ask", "POST", false));
        let failed = json!({"detail": evil}).to_string();
        let (attempted, _) = asked(false, vec![(400, failed)]);
        let Err(ProviderError::Failed { kind, message, .. }) = attempted.result else { panic!("fails") };
        assert!(kind == ErrorKind::BadRequest && !message.contains(SECRET) && !message.contains(HOST), "{message}");
    }

    #[test]
    fn each_error_has_its_kind_and_what_may_pass_is_asked_again() {
        let good = json!({"answer": "So.", "status": "success"}).to_string();
        let cut = json!({"item": {"type": "answer", "text": "So"}}).to_string();
        for (status, body, kind, again) in [
            (401, json!({"detail": "no"}).to_string(), ErrorKind::Auth, false),
            (404, json!({"detail": "no such box"}).to_string(), ErrorKind::BadRequest, false),
            (402, json!({"detail": "account limit"}).to_string(), ErrorKind::Quota, false),
            (429, json!({"detail": "slow down"}).to_string(), ErrorKind::RateLimit, true),
            (503, "upstream".to_owned(), ErrorKind::Overloaded, true),
            (500, String::new(), ErrorKind::Server, true),
            (200, json!({"status": "error", "error_details": "away"}).to_string(), ErrorKind::Server, true),
            (200, cut, ErrorKind::Connection, true),
            (200, "{\"answer\": 1".to_owned(), ErrorKind::Connection, true),
            (200, json!({"answer": "So."}).to_string(), ErrorKind::Malformed, false),
            (200, "<html>login</html>".to_owned(), ErrorKind::HtmlPage, true),
            (200, String::new(), ErrorKind::Malformed, true),
        ] {
            let (attempted, sent) = asked(true, vec![(status, body.clone()), (200, good.clone())]);
            assert_eq!(attempted.attempts[0].cause, Some(kind), "{status} {body}");
            assert_eq!((sent.len() == 2, attempted.result.is_ok()), (again, again), "{status} {body}");
            assert!(sent[0].stream.is_some());
        }
        let (attempted, _) = asked(true, vec![(200, good)]);
        assert_eq!(attempted.result.expect("an answer").learning_id.as_deref(), Some("from-a-header"));
    }
}
