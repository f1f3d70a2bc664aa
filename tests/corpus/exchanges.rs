//! Recorded traffic of real providers, read by our dialects and compared with a plain reading of the JSON.

use crate::trajectories::unzipped;
use ragcheck::internals::cassette::{Cassette, Drift, Exchange, Header, Outcome, Redactor};
use ragcheck::internals::provider::chat::Finish;
use ragcheck::internals::provider::wire::openai_chat;
use ragcheck::internals::provider::{Failure, chat_client, perplexity_agent};
use ragcheck::internals::transport::HttpResponse;
use serde_json::Value;
use std::collections::BTreeMap;

use std::path::Path;
use std::time::Duration;

/// The rows of a file of the corpus.
fn rows(file: &str) -> Vec<Value> {
    unzipped(file).lines().map(|line| serde_json::from_str(line).expect("a row of JSON")).collect()
}

fn response(row: &Value) -> HttpResponse {
    let headers = row["response_headers"].as_object().into_iter().flatten();
    HttpResponse {
        status: u16::try_from(row["status"].as_u64().expect("a status")).expect("a status"),
        headers: headers.map(|(k, v)| (k.to_lowercase(), v.as_str().unwrap_or_default().to_owned())).collect(),
        body: row["response_body"].as_str().expect("a body").to_owned().into(),
        took: Duration::ZERO,
        chunks: Vec::new(),
    }
}

fn is_plain(row: &Value) -> bool {
    row["status"] == 200 && row["stream"] == false
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn every_openai_chat_response_decodes_to_what_a_plain_reading_gives() {
    let rows = rows("wire/openai-chat.jsonl.gz");
    let mut read = 0;
    for row in rows.iter().filter(|row| is_plain(row)) {
        let id = &row["id"];
        let reply = chat_client::decode(openai_chat::DIALECT, &response(row), &Redactor::default())
            .unwrap_or_else(|error| panic!("{id}: {error:?}"));
        let plain: Value = serde_json::from_str(row["response_body"].as_str().expect("text")).expect("JSON");
        let choice = &plain["choices"][0];
        let message = &choice["message"];
        assert_eq!(reply.content, message["content"].as_str().unwrap_or_default(), "{id}");
        let calls: Vec<(&str, &str, &str)> =
            reply.calls.iter().map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str())).collect();
        let expected: Vec<(&str, &str, &str)> = message["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|call| {
                let function = &call["function"];
                let text = |value: &'static str| function[value].as_str().expect("a string");
                (call["id"].as_str().expect("an id"), text("name"), text("arguments"))
            })
            .collect();
        assert_eq!(calls, expected, "{id}");
        let finish = match reply.finish {
            Finish::Stop => "stop".to_owned(),
            Finish::ToolCalls => "tool_calls".to_owned(),
            Finish::Length => "length".to_owned(),
            Finish::ContentFilter => "content_filter".to_owned(),
            Finish::Other(word) => word,
        };
        assert_eq!(choice["finish_reason"], Value::String(finish), "{id}");
        assert_eq!(reply.usage.input, plain["usage"]["prompt_tokens"].as_u64(), "{id}");
        // What was written is what the total holds beyond the prompt: xAI counts reasoning beside the completion.
        let tokens = |name: &str| plain["usage"][name].as_u64();
        let written = tokens("total_tokens").zip(tokens("prompt_tokens")).map(|(total, prompt)| total - prompt);
        assert_eq!(reply.usage.output, written.or(tokens("completion_tokens")), "{id}");
        if let Some(cached) = plain["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64() {
            assert_eq!(reply.usage.cached, Some(cached), "{id}");
        }
        read += 1;
    }
    assert!(read >= 40, "only {read} responses were read");
    println!("openai-chat: {read} responses");
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn every_openai_chat_error_maps_to_a_kind_with_its_words() {
    let rows = rows("wire/openai-chat.jsonl.gz");
    let mut read = 0;
    for row in rows.iter().filter(|row| row["status"] != 200) {
        let error =
            chat_client::decode(openai_chat::DIALECT, &response(row), &Redactor::default()).expect_err("an error");
        let plain: Value = serde_json::from_str(row["response_body"].as_str().expect("text")).expect("JSON");
        let expected = if row["status"] == 429 { "rate_limit" } else { "bad_request" };
        assert_eq!(error.kind.as_str(), expected, "{}", row["id"]);
        assert_eq!(error.message, plain["error"]["message"].as_str().expect("words"), "{}", row["id"]);
        read += 1;
    }
    assert!(read >= 9, "only {read} errors were read");
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn every_sonar_answer_decodes_with_its_citations() {
    let rows = rows("wire/perplexity-sonar.jsonl.gz");
    let mut read = 0;
    for row in &rows {
        let result = perplexity_agent::decode(&response(row), &Redactor::default());
        let plain: Value = serde_json::from_str(row["response_body"].as_str().expect("text")).unwrap_or(Value::Null);
        if !is_plain(row) || plain["choices"][0]["message"]["content"].is_null() {
            let Err(Failure { kind, .. }) = result else { panic!("{}: not a failure", row["id"]) };
            match row["status"].as_u64() {
                Some(401) => assert_eq!(kind.as_str(), "auth"),
                Some(400) => assert_eq!(kind.as_str(), "context_length"),
                _ => assert_eq!(kind.as_str(), "malformed", "{}", row["id"]),
            }
            continue;
        }
        let answer = result.unwrap_or_else(|error| panic!("{}: {error:?}", row["id"]));
        assert_eq!(answer.text, plain["choices"][0]["message"]["content"].as_str().expect("text"));
        for (place, url) in plain["citations"].as_array().into_iter().flatten().enumerate() {
            assert_eq!(answer.citations[place].url, url.as_str().expect("an address"), "{}", row["id"]);
        }
        assert_eq!(answer.usage.output, plain["usage"]["completion_tokens"].as_u64());
        read += 1;
    }
    assert!(read >= 12, "only {read} answers were read");
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn no_body_of_any_provider_makes_a_dialect_panic() {
    for file in ["openai-chat", "openai-responses", "anthropic-messages", "gemini", "perplexity-sonar"] {
        let rows = rows(&format!("wire/{file}.jsonl.gz"));
        for row in &rows {
            let mut response = response(row);
            for status in [200, 400] {
                response.status = status;
                let _ = chat_client::decode(openai_chat::DIALECT, &response, &Redactor::default());
                let _ = perplexity_agent::decode(&response, &Redactor::default());
            }
        }
    }
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn every_body_comes_back_from_a_cassette_byte_for_byte() {
    let mut exchanges: Vec<Exchange> = Vec::new();
    for file in ["openai-chat", "openai-responses", "anthropic-messages", "gemini", "perplexity-sonar"] {
        let rows = rows(&format!("wire/{file}.jsonl.gz"));
        for row in rows {
            let HttpResponse { status, headers, body, took, chunks } = response(&row);
            exchanges.push(Exchange {
                ordinal: u32::try_from(exchanges.len()).expect("few"),
                service: "model".to_owned(),
                profile: "openai-chat".to_owned(),
                key: format!("{file} {}", exchanges.len()),
                drift: Drift::default(),
                request: None,
                outcome: Outcome::Response { status, headers, body, took, rewritten: false, chunks },
                beside: false,
                at: None,
            });
        }
    }
    let header = Header {
        scenario: "corpus".to_owned(),
        case: "corpus".to_owned(),
        lane: "none.base.1".to_owned(),
        recorded_at: jiff::Timestamp::UNIX_EPOCH,
        recorded_from: BTreeMap::new(),
        recorder: "test".to_owned(),
        knowledge: String::new(),
        seed: 0,
        subject: String::new(),
        take: 1,
        takes: std::collections::BTreeMap::new(),
        profiles: BTreeMap::new(),
        vars: BTreeMap::new(),
        spans: Vec::new(),
        stopping: None,
        held: None,
    };
    let cassette = Cassette::new(header, exchanges, BTreeMap::new());
    let (text, _) = cassette.to_text().expect("readable");
    let read = Cassette::parse(text.as_str().into(), Path::new("corpus.yaml"), Path::new("blobs")).expect("reads");
    // A comment at the end of a line makes it a file that only the full YAML parser reads.
    let edited = text.replacen("case: \"corpus\"", "case: \"corpus\" # edited", 1);
    let loose = Cassette::parse(edited.into(), Path::new("corpus.yaml"), Path::new("blobs")).expect("reads");
    assert!(cassette.exchanges.len() >= 500);
    for ((recorded, read), loose) in cassette.exchanges.iter().zip(&read.exchanges).zip(&loose.exchanges) {
        assert_eq!(read.outcome, recorded.outcome, "{}", recorded.key);
        assert_eq!(loose.outcome, recorded.outcome, "{}", recorded.key);
    }
}
