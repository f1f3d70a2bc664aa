//! What our own code costs a live request: `cargo bench --bench live_overhead`.
//!
//! The same requests go to the same server on loopback, which answers at once: in a plain loop over reqwest, and through
//! client, limits and live transport, with and without recording. Rounds alternate, and the figure is the ratio of
//! requests a second in one run, so that it holds on any machine. Less than a third of the plain loop's rate ends with
//! an error.

#![allow(clippy::disallowed_methods, reason = "it makes and reads files of its own")]

use axum::{Router, routing::post};
use ragcheck::internals::cassette::Redactor;
use ragcheck::internals::platform::clock::{Clock, PausableClock, RealClock};
use ragcheck::internals::provider::chat::{ChatRequest, Message, Role, ToolChoice, ToolDefinition};
use ragcheck::internals::provider::wire::openai_chat;
use ragcheck::internals::provider::{Access, ChatClient, ChatModel, RetryPolicy};
use ragcheck::internals::settings::{Auth, PaceLimits};
use ragcheck::internals::transport::{
    Budget, LimitTransport, LiveTransport, Pace, RecordTransport, Service, Target, Transport,
};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Requests of one round.
const REQUESTS: usize = 4_000;
/// Requests at the same time.
const CONCURRENCY: usize = 16;
/// Rounds, after a first one that does not count.
const ROUNDS: usize = 5;
/// The least share of the plain loop's rate.
const LEAST: f64 = 1.0 / 3.0;

#[expect(clippy::disallowed_methods, reason = "the server has a task of its own")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut rates = [Vec::new(), Vec::new(), Vec::new()];
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let base = format!("http://{}/v1", listener.local_addr()?);
        let answer = json!({"id": "c", "model": "m", "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Twenty-four months."}}],
            "usage": {"prompt_tokens": 900, "completion_tokens": 5}})
        .to_string();
        let header = ("content-type", "application/json");
        let app = Router::new().route("/v1/chat/completions", post(async move || ([header], answer)));
        tokio::spawn(async move { axum::serve(listener, app).await });
        for round in 0..=ROUNDS {
            // The live transport sets up what reqwest needs for TLS, so it goes first.
            let (live, recorded) = (ours(&base, false).await?, ours(&base, true).await?);
            let measured = [plain(&base).await?, live, recorded];
            if round > 0 {
                rates.iter_mut().zip(measured).for_each(|(rates, rate)| rates.push(rate));
            }
        }
        Ok::<(), Box<dyn std::error::Error>>(())
    })?;
    let [plain, live, recorded] = rates.map(median);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{REQUESTS} requests, {CONCURRENCY} at a time, median of {ROUNDS} rounds")?;
    for (name, rate) in [("plain reqwest", plain), ("live", live), ("recorded", recorded)] {
        writeln!(out, "{name:<14} {rate:>9.0} requests/s  {:.2} of plain", rate / plain)?;
    }
    if live / plain < LEAST {
        return Err(format!(
            "live requests reach {:.2} of the plain loop's rate, {LEAST:.2} is the least",
            live / plain
        )
        .into());
    }
    Ok(())
}

fn question() -> ChatRequest {
    let system = "You answer questions about batteries and their warranty. ".repeat(40);
    ChatRequest {
        model: "m".to_owned(),
        messages: vec![
            Message::text(Role::System, system),
            Message::text(Role::User, "How long does the warranty last?"),
        ],
        tools: Arc::from([ToolDefinition {
            name: "knowledge_base_search".to_owned(),
            description: "Searches the documents.".to_owned(),
            parameters: json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}),
        }]),
        tool_choice: ToolChoice::Auto,
        temperature: Some(0.0),
        max_tokens: Some(200),
        seed: None,
        parallel_calls: None,
        passthrough: None,
    }
}

async fn plain(base: &str) -> Result<f64, Box<dyn std::error::Error>> {
    let client = reqwest::Client::builder().build()?;
    let body = bytes::Bytes::from(openai_chat::DIALECT.encode_request(&question()).to_string());
    let url = format!("{base}/chat/completions");
    rate(|| {
        let (client, body, url) = (client.clone(), body.clone(), url.clone());
        async move {
            let sent = client.post(url).header("content-type", "application/json").body(body).send().await;
            let answered = match sent {
                Ok(response) => response.bytes().await,
                Err(why) => Err(why),
            };
            answered.is_ok_and(|body| !body.is_empty())
        }
    })
    .await
}

async fn ours(base: &str, record: bool) -> Result<f64, Box<dyn std::error::Error>> {
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let target = Target {
        base_url: base.to_owned(),
        key: Some("a-key-of-the-benchmark".to_owned()),
        auth: Auth::Bearer,
        headers: &[],
        timeout: Duration::from_secs(30),
        trial_header: false,
    };
    let live = LiveTransport::new(BTreeMap::from([(Service::Model, target)]), Arc::clone(&clock))?;
    let pace = Arc::new(Pace::new(PaceLimits::default(), Arc::clone(&clock)));
    let budget = Arc::new(Budget::default());
    let request = Arc::new(question());
    rate(|| {
        // As in a run: what a trial has of its own is made anew, the connections are shared.
        let paces = BTreeMap::from([(Service::Model, Arc::clone(&pace))]);
        let held = PausableClock::new(Arc::clone(&clock));
        let own: Arc<dyn Clock> = Arc::new(held.clone());
        let limited =
            LimitTransport::new(Arc::new(live.with_clock(Arc::clone(&own))), paces, Arc::clone(&budget), held);
        let mut transport: Arc<dyn Transport> = Arc::new(limited);
        if record {
            transport = Arc::new(RecordTransport::new(transport, Arc::clone(&own), Arc::new(Redactor::default())));
        }
        let client =
            ChatClient::new(openai_chat::DIALECT, Access { transport, clock: own, policy: RetryPolicy::default() });
        let request = Arc::clone(&request);
        async move { client.complete(&request).await.result.is_ok() }
    })
    .await
}

/// Requests a second.
#[expect(clippy::disallowed_methods, reason = "real time is what is measured")]
async fn rate<F: Future<Output = bool> + Send + 'static>(
    make: impl Fn() -> F,
) -> Result<f64, Box<dyn std::error::Error>> {
    let started = Instant::now();
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..CONCURRENCY {
        let share: Vec<F> = (worker..REQUESTS).step_by(CONCURRENCY).map(|_| make()).collect();
        workers.spawn(async move {
            let mut well = true;
            for one in share {
                well &= one.await;
            }
            well
        });
    }
    while let Some(done) = workers.join_next().await {
        if !done? {
            return Err("a request failed".into());
        }
    }
    Ok(REQUESTS as f64 / started.elapsed().as_secs_f64())
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
