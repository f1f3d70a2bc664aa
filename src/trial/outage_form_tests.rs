//! Tests every row of the published table of outages, with the response that the row documents.

use super::outage::external_cause;
use crate::platform::clock::{BoxFuture, Clock, VirtualClock, block_on};
use crate::platform::secrets;
use crate::provider::chat::{ChatRequest, Message, Role};
use crate::provider::wire;
use crate::provider::{
    Access, AskRequest, Attempt, Attempted, ChatClient, ChatModel, Embedder, JsonService, ManagedRetrieval,
    PerplexityAgent, RetryPolicy, SearchQuestion, SearchService,
};
use crate::settings::{Limits, ManagedRetrievalSettings};
use crate::transport::{HttpRequest, HttpResponse, Service, Transport, TransportError};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

const TABLE: &str = include_str!("../provider/outage_forms.yaml");
/// Source of a form that no provider documents.
const UNDOCUMENTED: &str = "seen: not documented";
const MARK: &str = "<!-- made from src/provider/outage_forms.yaml -->\n";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutageForm {
    form: String,
    provider: String,
    service: String,
    #[serde(default)]
    dialect: Option<String>,
    status: u16,
    #[serde(default, rename = "type")]
    content_type: Option<String>,
    #[serde(default)]
    header: BTreeMap<String, String>,
    #[serde(default)]
    body: Value,
    #[serde(default)]
    lines: Vec<String>,
    counts: String,
    #[serde(default)]
    cause: Option<String>,
    asked: usize,
    source: String,
}

impl OutageForm {
    fn response(&self) -> HttpResponse {
        let body = match &self.body {
            _ if !self.lines.is_empty() => self.lines.iter().map(|line| format!("data: {line}\n\n")).collect(),
            Value::String(text) => text.clone(),
            body => body.to_string(),
        };
        let kind = if self.lines.is_empty() { "application/json" } else { "text/event-stream" };
        let kind = self.content_type.as_deref().unwrap_or(kind).to_owned();
        let mut headers = vec![("content-type".to_owned(), kind)];
        headers.extend(self.header.clone());
        let took = Duration::from_millis(5);
        HttpResponse { status: self.status, headers, body: body.into(), took, chunks: Vec::new() }
    }
}

/// Answers every request with the same response.
struct Always(HttpResponse);

impl Transport for Always {
    fn send(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

fn request() -> ChatRequest {
    ChatRequest::new("m", vec![Message::text(Role::User, "Hello")])
}

/// The attempts of a call, and its error as text.
fn tried<T>(attempted: Attempted<T>) -> (Vec<Attempt>, String) {
    (attempted.attempts, attempted.result.err().map(|why| why.to_string()).unwrap_or_default())
}

/// Calls the row's service as a flow does.
async fn ask(row: &OutageForm, transport: Arc<dyn Transport>, clock: Arc<dyn Clock>) -> (Vec<Attempt>, String) {
    let attempts = Limits::default().transport_retries + 1;
    let access = Access { transport, clock, policy: RetryPolicy { attempts, ..RetryPolicy::default() } };
    match row.service.as_str() {
        "model" => {
            let dialect = wire::by_name(row.dialect.as_deref().unwrap_or("openai-chat")).expect("a dialect");
            let client = ChatClient::new(dialect, access).streaming(!row.lines.is_empty());
            tried(client.complete(&request()).await)
        }
        "search" => {
            let question = SearchQuestion { query: "q".to_owned(), context: None, model: "m".to_owned() };
            tried(PerplexityAgent::new(access).ask(&question).await)
        }
        "managed_retrieval" => {
            let text = "{base_url: 'https://box.example', kb_id: box, token: A, api_key: B, stream: true}";
            let settings: ManagedRetrievalSettings = crate::platform::yaml::read(text).expect("settings");
            let request = AskRequest { query: "q".to_owned(), top_k: 5, ..AskRequest::default() };
            tried(ManagedRetrieval::keeping(("A", "secret"), &access, &settings).ask(&request).await)
        }
        "embeddings" => tried(Embedder::new(&access, "m", None).embed(&["q".to_owned()]).await),
        "knowledge" => {
            let service = JsonService::new(&access, Service::Knowledge, &crate::provider::EXACT);
            tried(service.ask("GET", "/api/v2/x".to_owned(), Value::Null, Ok).await)
        }
        other => panic!("no service is called {other}"),
    }
}

fn rows() -> Vec<OutageForm> {
    crate::platform::yaml::read(TABLE).expect("a table")
}

#[test]
fn every_row_of_the_table_counts_as_it_says_and_is_asked_as_often() {
    for row in rows() {
        let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        let transport = Arc::new(Always(row.response()));
        let (attempts, _) = block_on(&clock, ask(&row, transport, Arc::new(clock.clone()))).expect("no deadlock");
        let named = format!("{} ({}, {})", row.form, row.provider, row.service);
        let last = attempts.last().expect("an attempt");
        assert_eq!(last.cause.map(crate::provider::ErrorKind::as_str), row.cause.as_deref(), "{named}");
        assert_eq!(attempts.len(), row.asked, "{named}");
        let attempt = crate::trace::Attempt {
            service: None,
            status: last.status,
            cause: last.cause.map(|cause| cause.as_str().to_owned()),
            took_us: 1,
            wait_us: None,
            declared_fault: false,
            held: None,
            vectors: None,
        };
        let counts = match (external_cause(&attempt), last.cause) {
            (Some(_), _) => "outage",
            (None, Some(_)) => "judged",
            (None, None) => "answer",
        };
        assert_eq!(counts, row.counts, "{named}");
        assert!(row.source.starts_with("https://") || row.source == UNDOCUMENTED, "{named} has no source");
    }
}

#[test]
fn no_error_shows_a_part_of_a_key_that_only_the_run_knows_not_even_where_it_is_cut() {
    let key = "only-the-run-knows-0462-this-key";
    secrets::declare([("RUN_KEY".to_owned(), key.to_owned())]);
    for service in ["model", "search", "embeddings", "knowledge"] {
        // Messages are cut after 500 characters.
        for before in [0, 490] {
            let mut row = rows().remove(0);
            (row.service, row.status) = (service.to_owned(), 400);
            row.body = serde_json::json!({"error": {"message": format!("{} {key} is wrong", "x".repeat(before))}});
            let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
            let asked = ask(&row, Arc::new(Always(row.response())), Arc::new(clock.clone()));
            let (_, message) = block_on(&clock, asked).expect("no deadlock");
            assert!(!message.contains("only-the") && message.contains("[redacte"), "{service}: {message}");
        }
    }
}

#[test]
fn every_service_has_rows_and_each_way_to_count_is_in_the_table() {
    let rows = rows();
    for service in ["model", "search", "managed_retrieval", "embeddings", "knowledge"] {
        assert!(rows.iter().any(|row| row.service == service && row.counts == "outage"), "{service}");
    }
    for counts in ["outage", "judged", "answer"] {
        assert!(rows.iter().any(|row| row.counts == counts), "{counts}");
    }
}

#[test]
fn the_published_table_has_every_row() {
    let path = format!("{}/docs/reference/outages.md", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(&path).expect("the page");
    let (before, _) = page.split_once(MARK).expect("the mark");
    let mut made = format!("{before}{MARK}\n| form | provider | service | counts as | cause | asked | source |\n");
    made.push_str("|---|---|---|---|---|---|---|\n");
    for row in rows() {
        let cause = row.cause.map(|cause| format!("`{cause}`")).unwrap_or_default();
        let asked = if row.asked == 1 { "once".to_owned() } else { format!("{} times", row.asked) };
        let OutageForm { form, provider, service, counts, source, .. } = row;
        let source = if source == UNDOCUMENTED { source } else { format!("<{source}>") };
        writeln!(made, "| {form} | {provider} | {service} | {counts} | {cause} | {asked} | {source} |").expect("text");
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &made).expect("writes");
    }
    assert!(
        page == made || std::env::var_os("UPDATE").is_some(),
        "docs/reference/outages.md is not made from the table: UPDATE=1"
    );
}
