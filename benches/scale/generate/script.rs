//! A model and a search service that follow a script, in this process: what they answer depends on the trial's name
//! and on how far the conversation is.

use super::words::Words;
use bytes::Bytes;
use ragcheck::internals::platform::clock::{BoxFuture, Clock};
use ragcheck::internals::transport::{HttpRequest, HttpResponse, SIMULATOR_HEADER, Service, Transport, TransportError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Both services of one trial.
pub struct Script {
    trial: String,
    indexes: bool,
    brief: bool,
    clock: Arc<dyn Clock>,
}

impl Script {
    /// The services of `trial`; `indexes` says whether it goes outside, `brief` that it uses few words.
    pub fn new(trial: &str, indexes: bool, brief: bool, clock: Arc<dyn Clock>) -> Self {
        Self { trial: trial.to_owned(), indexes, brief, clock }
    }

    /// So many bytes of text, or few.
    fn length(&self, bytes: usize) -> usize {
        if self.brief { bytes / 12 } else { bytes }
    }

    fn words(&self, purpose: &str) -> Words {
        Words::of(&format!("{}: {purpose}", self.trial))
    }

    async fn answer(&self, request: HttpRequest) -> HttpResponse {
        let step = steps(&request.body);
        let (body, pace) = match request.service {
            Service::Model => (self.model(&request.body, step), 300..900),
            _ => (self.search(), 700..1_600),
        };
        let took = Duration::from_millis(self.words(&format!("{:?} {step} time", request.service)).number(pace));
        self.clock.sleep(took).await;
        let headers = vec![(SIMULATOR_HEADER.to_owned(), "scripted".to_owned())];
        HttpResponse { status: 200, headers, body: Bytes::from(body.to_string()), took, chunks: Vec::new() }
    }

    fn model(&self, body: &Value, step: usize) -> Value {
        let mut words = self.words(&format!("step {step}"));
        let (tool, arguments) = match (step, self.indexes) {
            (1 | 2, false) if self.brief => ("generate_response", response(body, &mut words, self.length(1_200))),
            (0, _) | (1 | 2, false) => {
                let top_k = if self.brief { 1 } else { 5 };
                ("knowledge_base_search", json!({"query": words.words(5), "top_k": top_k}))
            }
            (1, true) => ("perplexity_search", json!({"query": words.words(6)})),
            (2, true) => {
                // The titles of what came from outside, shortened: a keyword shares a word with what it is learned from.
                let (titles, _) = self.outside();
                let keywords: Vec<String> = titles.iter().take(4).map(|title| beginning(title)).collect();
                let query = words.words(6);
                ("index_keywords", json!({"keywords": keywords, "query": query, "perplexity_result_id": "result-1"}))
            }
            _ => ("generate_response", response(body, &mut words, self.length(1_200))),
        };
        // The first reply is as long as the prompts of later ones, so that no exchange is a short one.
        let thought = if self.brief { String::new() } else { words.text(if step == 0 { 4_000 } else { 700 }) };
        let call = json!({"id": format!("call_{step}_{:08x}", words.number(0..1 << 32)), "type": "function",
            "function": {"name": tool, "arguments": arguments.to_string()}});
        json!({
            "id": format!("chatcmpl-{step}"), "object": "chat.completion", "created": 0, "model": "scripted-model",
            "choices": [{"index": 0, "finish_reason": "tool_calls",
                "message": {"role": "assistant", "content": thought, "tool_calls": [call]}}],
            "usage": {"prompt_tokens": 2_000 + 1_200 * step, "completion_tokens": 240},
        })
    }

    /// The titles of the pages outside, and the words that the rest of the answer is made of.
    fn outside(&self) -> (Vec<String>, Words) {
        let mut words = self.words("outside");
        ((0..5).map(|_| words.words(4)).collect(), words)
    }

    fn search(&self) -> Value {
        let (titles, mut words) = self.outside();
        let results: Vec<Value> = (1..)
            .zip(&titles)
            .map(|(id, title)| {
                let url = format!("https://pages.example.org/{}", words.word());
                json!({"id": id, "title": title, "url": url, "snippet": words.text(self.length(500)), "source": "web"})
            })
            .collect();
        let text = format!("{} [1] [2]", words.text(self.length(1_200)));
        json!({
            "id": "resp_1", "object": "response", "created_at": 0, "status": "completed", "model": "perplexity/sonar",
            "output": [
                {"type": "search_results", "queries": [], "results": results},
                {"type": "message", "role": "assistant", "status": "completed",
                 "content": [{"type": "output_text", "text": text, "annotations": []}]},
            ],
            "usage": {"input_tokens": 900, "output_tokens": 300, "total_tokens": 1_200},
        })
    }
}

/// The first three words of a title.
fn beginning(title: &str) -> String {
    title.splitn(4, ' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Cites the first passage that was shown, and what came from outside.
fn response(body: &Value, words: &mut Words, length: usize) -> Value {
    let results = body["messages"].as_array().into_iter().flatten().filter(|message| message["role"] == "tool");
    let shown: Vec<Value> =
        results.filter_map(|message| serde_json::from_str(message["content"].as_str()?).ok()).collect();
    let chunk = shown.iter().find_map(|result| result["chunks"][0]["id"].as_str());
    let page = shown.iter().find_map(|result| result["citations"][0]["url"].as_str());
    let internal = chunk.map(|id| json!({"kind": "internal", "id": id}));
    let external = page.map(|url| json!({"kind": "external", "id": url, "title": "A page"}));
    let (used_internal_kb, used_external_kb) = (internal.is_some(), external.is_some());
    let sources: Vec<Value> = internal.into_iter().chain(external).collect();
    json!({
        "answer": format!("{} That is it in short.", words.text(length)),
        "sources": sources, "confidence_score": 0.8,
        "used_internal_kb": used_internal_kb, "used_external_kb": used_external_kb,
    })
}

/// How many times the model spoke already.
fn steps(body: &Value) -> usize {
    let messages = body["messages"].as_array();
    messages.map_or(0, |messages| messages.iter().filter(|message| message["role"] == "assistant").count())
}

impl Transport for Script {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move { Ok(self.answer(request).await) })
    }
}
