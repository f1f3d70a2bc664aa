//! Streams: what the chunks add up to equals a plain sum of their deltas, however the bytes are cut.

use super::requests::equal;
use super::{corpus, exchanges, plain, responses};
use crate::published;
use ragcheck::internals::provider::wire::{
    Dialect, WireError, anthropic_messages, gemini, openai_chat, openai_responses, perplexity_sonar,
};
use ragcheck::internals::transport::sse;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The stream's document, read in pieces of these sizes in turn.
fn assemble(dialect: &'static Dialect, stream: &[u8], sizes: &[usize]) -> Result<(Value, bool), WireError> {
    let mut reader = sse::Reader::new();
    let mut assembler = dialect.assembler();
    let mut rest = stream;
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at((*sizes.next().expect("sizes")).min(rest.len()));
        rest = after;
        for event in reader.push(piece).expect("a short stream") {
            assembler.push(&event)?;
        }
    }
    if let Some(event) = reader.finish() {
        assembler.push(&event)?;
    }
    let complete = assembler.complete();
    Ok((assembler.document(), complete))
}

/// Whether the stream is complete and reads as the plain sum of its deltas.
pub fn check(dialect: &'static Dialect, stream: &[u8]) -> Result<(), String> {
    let (document, complete) = assemble(dialect, stream, &[stream.len()]).map_err(|error| error.to_string())?;
    equal("complete", &complete, &true)?;
    responses::compare(dialect, &document, &sum(dialect, &String::from_utf8_lossy(stream)))
}

/// The sum of a stream's deltas by loops over its lines.
fn sum(dialect: &'static Dialect, stream: &str) -> plain::Response {
    let lines = stream.split(['\n', '\r']).filter_map(|line| line.strip_prefix("data:"));
    let chunks: Vec<Value> = lines.filter_map(|data| serde_json::from_str(data.trim()).ok()).collect();
    let mut sum = plain::Response::default();
    let mut calls: Vec<(String, String, String)> = Vec::new();
    // The last word that the chunks say at a place.
    let last =
        |pointer: &str| chunks.iter().rev().find_map(|chunk| chunk.pointer(pointer).filter(|value| !value.is_null()));
    let number = |pointer: &str| last(pointer).and_then(Value::as_u64);
    let string = |pointer: &str| last(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match dialect.name() {
        "openai-chat" | "perplexity-sonar" => {
            for chunk in &chunks {
                let delta = &chunk["choices"][0]["delta"];
                match &delta["content"] {
                    Value::Array(parts) => sum.text.extend(parts.iter().filter_map(|part| part["text"].as_str())),
                    content => sum.text.push_str(&text(content)),
                }
                for call in delta["tool_calls"].as_array().into_iter().flatten() {
                    let function = &call["function"];
                    add(&mut calls, call["index"].to_string(), &text(&function["name"]), &text(&function["arguments"]));
                }
            }
            sum.finish = string("/choices/0/finish_reason");
            let usage = if last("/usage").is_some() { "/usage" } else { "/x_groq/usage" };
            sum.input = number(&format!("{usage}/prompt_tokens"));
            sum.cached = number(&format!("{usage}/prompt_tokens_details/cached_tokens"));
            sum.output = number(&format!("{usage}/total_tokens")).zip(sum.input).map(|(total, input)| total - input);
        }
        "openai-responses" | "perplexity-agent" => {
            let mut texts: BTreeMap<String, String> = BTreeMap::new();
            for chunk in &chunks {
                let index = format!("{} {}", chunk["output_index"], chunk["content_index"]);
                let call = chunk["output_index"].to_string();
                match chunk["type"].as_str().unwrap_or_default() {
                    "response.output_text.delta" => texts.entry(index).or_default().push_str(&text(&chunk["delta"])),
                    // Some files leave deltas out, and some servers send none.
                    "response.output_text.done" => _ = texts.insert(index, text(&chunk["text"])),
                    "response.output_item.added"
                        if chunk["item"]["type"] == "function_call" || chunk["item"]["type"] == "custom_tool_call" =>
                    {
                        calls.push((call, text(&chunk["item"]["name"]), String::new()));
                    }
                    "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                        add(&mut calls, call, "", &text(&chunk["delta"]));
                    }
                    "response.function_call_arguments.done" => {
                        for (_, _, arguments) in calls.iter_mut().filter(|(known, _, _)| *known == call) {
                            *arguments = text(&chunk["arguments"]);
                        }
                    }
                    "response.output_item.done" => {
                        let item = &chunk["item"];
                        let answers = |other: &Value| {
                            other["item"]["type"].as_str().is_some_and(|kind| kind.ends_with("_output"))
                                && other["item"]["call_id"] == item["call_id"]
                        };
                        let own = ["shell_call", "local_shell_call", "apply_patch_call"]
                            .iter()
                            .any(|kind| item["type"] == *kind);
                        if own && !chunks.iter().any(answers) {
                            let (name, arguments) = plain::called(item).expect("a call");
                            calls.push((call, name, arguments.to_string()));
                        }
                    }
                    _ => {}
                }
            }
            sum.text = texts.into_values().collect();
            sum.finish = string("/response/status");
            sum.input = number("/response/usage/input_tokens");
            sum.cached = number("/response/usage/input_tokens_details/cached_tokens");
            sum.output = number("/response/usage/output_tokens");
        }
        "anthropic-messages" => {
            for chunk in &chunks {
                let begun = plain::response(dialect, &chunk["message"]);
                sum.text.push_str(&begun.text);
                sum.calls.extend(begun.calls);
                let block = &chunk["content_block"];
                if block["type"] == "tool_use" {
                    let whole = block["input"].as_object().is_some_and(|input| !input.is_empty());
                    let input = if whole { block["input"].to_string() } else { String::new() };
                    add(&mut calls, chunk["index"].to_string(), &text(&block["name"]), &input);
                } else if block["type"] == "text" {
                    sum.text.push_str(&text(&block["text"]));
                } else if block["type"].is_string() {
                    add(&mut calls, chunk["index"].to_string(), "", "");
                }
                sum.text.push_str(&text(&chunk["delta"]["text"]));
                if let Some(more) = chunk["delta"]["partial_json"].as_str() {
                    add(&mut calls, chunk["index"].to_string(), "", more);
                }
            }
            // Blocks without a name are the server's own.
            calls.retain(|(_, name, _)| !name.is_empty());
            let begun = last("/message/stop_reason").and_then(Value::as_str).unwrap_or_default().to_owned();
            sum.finish = Some(string("/delta/stop_reason")).filter(|reason| !reason.is_empty()).unwrap_or(begun);
            let usage =
                |key: &str| number(&format!("/usage/{key}")).or_else(|| number(&format!("/message/usage/{key}")));
            sum.cached = usage("cache_read_input_tokens");
            let written = usage("cache_creation_input_tokens").unwrap_or(0);
            sum.input = usage("input_tokens").map(|input| input + written + sum.cached.unwrap_or(0));
            sum.output = usage("output_tokens");
        }
        "gemini" => {
            for part in
                chunks.iter().filter_map(|chunk| chunk["candidates"][0]["content"]["parts"].as_array()).flatten()
            {
                if part["thought"] != true {
                    sum.text.push_str(&text(&part["text"]));
                }
                if let Some(call) = part.get("functionCall").filter(|call| call.get("name").is_some()) {
                    let arguments = call.get("args").map_or_else(|| "{}".to_owned(), Value::to_string);
                    sum.calls.push((text(&call["name"]), plain::json(&arguments)));
                }
            }
            sum.finish = string("/candidates/0/finishReason");
            sum.input = number("/usageMetadata/promptTokenCount");
            sum.cached = number("/usageMetadata/cachedContentTokenCount");
            sum.output = number("/usageMetadata/totalTokenCount").zip(sum.input).map(|(total, input)| total - input);
        }
        other => panic!("nobody reads {other} here without our code: write how"),
    }
    for (_, name, arguments) in calls {
        let arguments = if arguments.is_empty() && dialect == anthropic_messages::DIALECT { "{}" } else { &arguments };
        sum.calls.push((name, plain::json(arguments)));
    }
    sum
}

/// Continues the call of that key, or begins it.
fn add(calls: &mut Vec<(String, String, String)>, key: String, name: &str, more: &str) {
    match calls.iter_mut().find(|(known, _, _)| *known == key) {
        Some((_, known, arguments)) => {
            if known.is_empty() {
                name.clone_into(known);
            }
            arguments.push_str(more);
        }
        None => calls.push((key, name.to_owned(), more.to_owned())),
    }
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn deltas_alone_build_the_words_that_the_last_event_repeats() {
    let corpus = corpus();
    let mut seen = 0;
    for exchange in exchanges(&corpus) {
        if !exchange.streamed || exchange.dialect != Some(openai_responses::DIALECT) {
            continue;
        }
        let (mut all, mut deltas) = (openai_responses::DIALECT.assembler(), openai_responses::DIALECT.assembler());
        for event in sse::read_all(exchange.response.as_bytes()).expect("a short stream") {
            all.push(&event).expect("JSON");
            let kind = event.name.clone().unwrap_or_default();
            let last = kind.rsplit('.').next().unwrap_or_default();
            if !["done", "completed", "incomplete"].contains(&last) {
                deltas.push(&event).expect("JSON");
            }
        }
        assert!(!deltas.complete(), "{}", exchange.id);
        let words = |document: Value| {
            let plain = plain::response(openai_responses::DIALECT, &document);
            (plain.text, plain.calls)
        };
        assert_eq!(words(deltas.document()), words(all.document()), "{}", exchange.id);
        seen += 1;
    }
    assert!(seen > 40, "only {seen} streams");
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn no_cut_of_the_bytes_changes_what_a_stream_adds_up_to() {
    let corpus = corpus();
    let mut seen = 0;
    for exchange in exchanges(&corpus).into_iter().filter(|exchange| exchange.streamed) {
        let dialect = exchange.dialect.expect("a dialect");
        let stream = exchange.response.as_bytes();
        let whole = assemble(dialect, stream, &[stream.len()]).expect("assembles");
        for sizes in [&[1][..], &[7, 1, 64], &[4096, 3]] {
            assert_eq!(assemble(dialect, stream, sizes).expect("assembles"), whole, "{} cut by {sizes:?}", exchange.id);
        }
        // Cut off before its end, a stream is never complete, or it lacks only what comes after the answer.
        let half = assemble(dialect, &stream[..stream.len() / 2], &[stream.len()]);
        assert!(half.is_err() || !half.expect("half").1, "{} is complete after half of its bytes", exchange.id);
        seen += 1;
    }
    assert!(seen > 150, "only {seen} streams");
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn files_of_chunks_add_up_and_documents_beside_them_are_read() {
    let corpus = corpus();
    // What is held in these folders besides chats: other APIs of the same providers.
    let other = ["interaction", "setupComplete", "serverContent", "text_completion", "session."];
    let folders = [
        ("anthropic", anthropic_messages::DIALECT),
        ("deepseek", openai_chat::DIALECT),
        ("google", gemini::DIALECT),
        ("groq", openai_chat::DIALECT),
        ("mistral", openai_chat::DIALECT),
        ("open-responses", openai_responses::DIALECT),
        ("openai", openai_responses::DIALECT),
        ("perplexity", perplexity_sonar::DIALECT),
    ];
    let (mut streams, mut documents, mut errors, mut others) = (0, 0, 0, 0);
    let mut failures = Vec::new();
    for (folder, usual) in folders {
        let mut files: Vec<_> = std::fs::read_dir(corpus.join("sse").join(folder)).expect("a folder").collect();
        files.sort_by_key(|file| file.as_ref().expect("a file").path());
        for file in files {
            let path = file.expect("a file").path();
            let text = std::fs::read_to_string(&path).expect("text");
            let result = if path.extension().is_some_and(|end| end == "txt") {
                let head: String = text.chars().take(400).collect();
                if other.iter().any(|word| head.contains(word)) {
                    others += 1;
                    continue;
                }
                let dialect = if text.contains("chat.completion.chunk") && usual == openai_responses::DIALECT {
                    openai_chat::DIALECT
                } else {
                    usual
                };
                streams += 1;
                check_chunks(dialect, &text, &path)
            } else {
                let body: Value = serde_json::from_str(&text).expect("JSON");
                let chat = ["choices", "content", "candidates", "output"].iter().any(|key| body[key].is_array());
                if body.get("error").is_some_and(Value::is_object) {
                    errors += 1;
                    let status = u16::try_from(body["error"]["code"].as_u64().unwrap_or(400)).expect("a status");
                    let kind = ragcheck::internals::provider::wire::error_kind(status, &text);
                    let wanted = if text.contains("insufficient_quota") {
                        "quota"
                    } else if status == 429 {
                        "rate_limit"
                    } else {
                        "bad_request"
                    };
                    equal("kind", &kind.as_str(), &wanted)
                } else if chat && body["object"] != "text_completion" && body.get("steps").is_none() {
                    documents += 1;
                    let usual = if body["object"] == "chat.completion" && usual == openai_responses::DIALECT {
                        openai_chat::DIALECT
                    } else {
                        usual
                    };
                    responses::compare(usual, &body, &plain::response(usual, &body))
                } else {
                    others += 1;
                    continue;
                }
            };
            if let Err(problem) = result {
                failures.push(format!("{}: {problem}", path.display()));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
    let row = |what: &str, count: usize| vec![what.to_owned(), count.to_string()];
    let rows = [
        row("streams, put together", streams),
        row("whole answers", documents),
        row("errors, each of its kind", errors),
        row("of other APIs, passed over", others),
    ];
    published::compare("chunks", &published::table(&["files of chunks", "files"], &rows));
    assert!(streams > 60 && documents > 70 && errors > 3, "{streams} {documents} {errors}");
}

/// A file holds one stream, or several one after the other.
fn check_chunks(dialect: &'static Dialect, text: &str, path: &Path) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    for part in lines.split_inclusive(|line| line.contains("\"type\":\"message_stop\"")) {
        let stream = part.iter().flat_map(|line| ["data: ", line, "\n\n"]).collect::<String>();
        let broken = part.iter().any(|line| serde_json::from_str::<Value>(line).is_err());
        match assemble(dialect, stream.as_bytes(), &[13]) {
            Err(WireError::Reported { .. }) if name.contains("error") => {}
            Err(WireError::NotJson { .. }) if broken => {}
            Err(error) => return Err(error.to_string()),
            // Arguments in pieces and spliced messages have tests of their own: a plain sum does not know them.
            Ok((document, complete)) if text.contains("partialArgs") || name.contains("spliced") => {
                equal("complete", &complete, &true)?;
                dialect.decode_response(&document).map_err(|error| error.to_string())?;
            }
            Ok(_) => check(dialect, stream.as_bytes())?,
        }
    }
    Ok(())
}
