//! Writes answers, whole and streamed, in the dialects that the proxy accepts: those of declared faults.
//!
//! A stream is a list of pieces, each with its part of the stream, so that it can be broken off at a named place.

use super::passthrough::arguments_object;
use crate::provider::chat::Finish;
use serde_json::{Value, json};

/// An answer to be written.
#[derive(Debug, Clone)]
pub struct Said {
    /// Name of the model.
    pub model: String,
    /// The text, or the text of a refusal.
    pub text: String,
    /// Whether the text is a refusal.
    pub refuses: bool,
    /// A call: the tool and its arguments, which need not be JSON.
    pub call: Option<(String, String)>,
    /// Reason why the model stopped.
    pub finish: Finish,
}

/// Part of a stream that a piece belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Before the first token.
    Head,
    /// A piece of the text or of the arguments of a call.
    Token,
    /// After the last token.
    Tail,
    /// The mark of its end.
    End,
}

/// One piece of a stream, as sent.
pub type Piece = (Part, String);

const ID: &str = "declared_fault";

impl Said {
    /// A text.
    pub fn text(model: &str, text: &str) -> Self {
        let (model, text) = (model.to_owned(), text.to_owned());
        Self { model, text, refuses: false, call: None, finish: Finish::Stop }
    }

    fn stopped(&self, words: [&'static str; 4]) -> &'static str {
        match self.finish {
            Finish::ToolCalls => words[1],
            Finish::Length => words[2],
            Finish::ContentFilter => words[3],
            Finish::Stop | Finish::Other(_) => words[0],
        }
    }

    /// The whole answer in a dialect; `None` if it is not written there.
    pub fn whole(&self, dialect: &str) -> Option<Value> {
        let Self { model, text, refuses, call, .. } = self;
        Some(match dialect {
            "openai-chat" => {
                let content = if *refuses || text.is_empty() { Value::Null } else { json!(text) };
                let mut message = json!({"role": "assistant", "content": content, "refusal": refuses.then_some(text)});
                if let Some((name, arguments)) = call {
                    let function = json!({"name": name, "arguments": arguments});
                    message["tool_calls"] = json!([{"id": ID, "type": "function", "function": function}]);
                }
                let reason = self.stopped(["stop", "tool_calls", "length", "content_filter"]);
                json!({"id": ID, "object": "chat.completion", "created": 0, "model": model,
                    "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
            }
            "openai-responses" => self.response(&self.items()),
            "anthropic-messages" => {
                let mut content: Vec<Value> = Vec::new();
                content.extend((!text.is_empty() && !refuses).then(|| json!({"type": "text", "text": text})));
                content.extend(call.as_ref().map(|(name, arguments)| {
                    json!({"type": "tool_use", "id": ID, "name": name, "input": arguments_object(arguments)})
                }));
                self.message(&content, Some(self.stop_reason()))
            }
            "gemini" => self.candidates(&self.parts(text), true),
            "ollama" => {
                if self.finish == Finish::ContentFilter || *refuses && text.is_empty() {
                    return None;
                }
                let mut line = self.line(text, self.ollama_calls());
                line["done"] = json!(true);
                line["done_reason"] = json!(self.stopped(["stop", "stop", "length", "stop"]));
                line["prompt_eval_count"] = json!(1);
                line["eval_count"] = json!(1);
                line
            }
            "bedrock-converse" => {
                let mut content: Vec<Value> = Vec::new();
                content.extend((!text.is_empty()).then(|| json!({"text": text})));
                content.extend(call.as_ref().map(|(name, arguments)| {
                    json!({"toolUse": {"toolUseId": ID, "name": name, "input": arguments_object(arguments)}})
                }));
                let reason = self.stopped(["end_turn", "tool_use", "max_tokens", "content_filtered"]);
                json!({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": reason,
                    "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}})
            }
            _ => return None,
        })
    }

    /// The answer as a stream in a dialect; `None` if it is not written there.
    pub fn stream(&self, dialect: &str) -> Option<Vec<Piece>> {
        let (start, end) = halves(&self.text);
        let data = |value: Value| format!("data: {value}\n\n");
        Some(match dialect {
            "openai-chat" => {
                let chunk = |delta: Value, reason: Option<&str>| {
                    data(json!({"id": ID, "object": "chat.completion.chunk", "created": 0, "model": self.model,
                        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}))
                };
                let mut pieces = vec![(Part::Head, chunk(json!({"role": "assistant", "content": ""}), None))];
                let member = if self.refuses { "refusal" } else { "content" };
                for half in [start, end].into_iter().filter(|half| !half.is_empty()) {
                    pieces.push((Part::Token, chunk(json!({member: half}), None)));
                }
                if let Some((name, arguments)) = &self.call {
                    let (start, end) = halves(arguments);
                    let function = json!({"name": name, "arguments": start});
                    let call = json!([{"index": 0, "id": ID, "type": "function", "function": function}]);
                    pieces.push((Part::Token, chunk(json!({"tool_calls": call}), None)));
                    let call = json!([{"index": 0, "function": {"arguments": end}}]);
                    pieces.push((Part::Token, chunk(json!({"tool_calls": call}), None)));
                }
                let reason = self.stopped(["stop", "tool_calls", "length", "content_filter"]);
                pieces.push((Part::Tail, chunk(json!({}), Some(reason))));
                pieces.push((Part::End, "data: [DONE]\n\n".to_owned()));
                pieces
            }
            "openai-responses" => self.responses_events(),
            "anthropic-messages" => self.message_events(),
            "gemini" => {
                let mut pieces = vec![(Part::Head, data(self.candidates(&[], false)))];
                pieces.extend(
                    (!start.is_empty()).then(|| (Part::Token, data(self.candidates(&[json!({"text": start})], false)))),
                );
                pieces.push((Part::End, data(self.candidates(&self.parts(end), true))));
                pieces
            }
            "ollama" => {
                let mut pieces = vec![(Part::Head, format!("{}\n", self.line("", Value::Null)))];
                pieces
                    .extend((!start.is_empty()).then(|| (Part::Token, format!("{}\n", self.line(start, Value::Null)))));
                let last = Self { text: end.to_owned(), ..self.clone() };
                pieces.push((Part::End, format!("{}\n", last.whole("ollama")?)));
                pieces
            }
            _ => return None,
        })
    }

    fn ollama_calls(&self) -> Value {
        self.call.as_ref().map_or(
            Value::Null,
            |(name, arguments)| json!([{"function": {"name": name, "arguments": arguments_object(arguments)}}]),
        )
    }

    fn line(&self, text: &str, calls: Value) -> Value {
        let mut message = json!({"role": "assistant", "content": text});
        if !calls.is_null() {
            message["tool_calls"] = calls;
        }
        json!({"model": self.model, "created_at": "1970-01-01T00:00:00Z", "message": message, "done": false})
    }

    fn parts(&self, text: &str) -> Vec<Value> {
        let text = (!text.is_empty()).then(|| json!({"text": text}));
        let call = self
            .call
            .as_ref()
            .map(|(name, arguments)| json!({"functionCall": {"name": name, "args": arguments_object(arguments)}}));
        text.into_iter().chain(call).collect()
    }

    fn candidates(&self, parts: &[Value], last: bool) -> Value {
        let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
        if last {
            candidate["finishReason"] = json!(self.stopped(["STOP", "STOP", "MAX_TOKENS", "SAFETY"]));
        }
        let usage = json!({"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2});
        json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": self.model})
    }

    fn stop_reason(&self) -> &'static str {
        if self.refuses { "refusal" } else { self.stopped(["end_turn", "tool_use", "max_tokens", "refusal"]) }
    }

    fn message(&self, content: &[Value], reason: Option<&str>) -> Value {
        json!({"id": ID, "type": "message", "role": "assistant", "model": self.model, "content": content,
            "stop_reason": reason, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}})
    }

    fn message_events(&self) -> Vec<Piece> {
        let event = |value: Value| {
            let kind = value["type"].as_str().unwrap_or_default().to_owned();
            format!("event: {kind}\ndata: {value}\n\n")
        };
        let start = json!({"type": "message_start", "message": self.message(&[], None)});
        let mut pieces = vec![(Part::Head, event(start))];
        let mut block = |index: u64, block: Value, kind: &str, member: &str, text: &str| {
            let begins = json!({"type": "content_block_start", "index": index, "content_block": block});
            pieces.push((Part::Head, event(begins)));
            let (start, end) = halves(text);
            for half in [start, end].into_iter().filter(|half| !half.is_empty()) {
                let delta = json!({"type": kind, member: half});
                pieces
                    .push((Part::Token, event(json!({"type": "content_block_delta", "index": index, "delta": delta}))));
            }
            pieces.push((Part::Tail, event(json!({"type": "content_block_stop", "index": index}))));
        };
        let mut index = 0;
        if !self.text.is_empty() && !self.refuses {
            block(index, json!({"type": "text", "text": ""}), "text_delta", "text", &self.text);
            index += 1;
        }
        if let Some((name, arguments)) = &self.call {
            let begun = json!({"type": "tool_use", "id": ID, "name": name, "input": {}});
            block(index, begun, "input_json_delta", "partial_json", arguments);
        }
        let delta = json!({"stop_reason": self.stop_reason(), "stop_sequence": null});
        let delta = json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}});
        pieces.push((Part::Tail, event(delta)));
        pieces.push((Part::End, event(json!({"type": "message_stop"}))));
        pieces
    }

    fn items(&self) -> Vec<Value> {
        let kind = if self.refuses {
            json!({"type": "refusal", "refusal": self.text})
        } else {
            json!({"type": "output_text", "text": self.text, "annotations": []})
        };
        let message = (!self.text.is_empty()).then(|| {
            json!({"type": "message", "id": "msg_declared_fault", "role": "assistant", "status": "completed", "content": [kind]})
        });
        let call = self.call.as_ref().map(|(name, arguments)| {
            json!({"type": "function_call", "id": "fc_declared_fault", "call_id": ID, "name": name,
                "arguments": arguments, "status": "completed"})
        });
        message.into_iter().chain(call).collect()
    }

    fn response(&self, items: &[Value]) -> Value {
        let reason = match self.finish {
            Finish::Length => Some("max_output_tokens"),
            Finish::ContentFilter => Some("content_filter"),
            _ => None,
        };
        let status = if reason.is_some() { "incomplete" } else { "completed" };
        json!({"id": ID, "object": "response", "created_at": 0, "model": self.model, "status": status, "error": null,
            "incomplete_details": reason.map(|reason| json!({"reason": reason})), "output": items,
            "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}})
    }

    fn responses_events(&self) -> Vec<Piece> {
        let number = std::cell::Cell::new(0_u64);
        let event = |mut value: Value| {
            value["sequence_number"] = json!(number.replace(number.get() + 1));
            format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default())
        };
        let mut pieces = Vec::new();
        let mut push = |part: Part, value: Value| pieces.push((part, event(value)));
        let mut begun = self.response(&[]);
        begun["status"] = json!("in_progress");
        begun["usage"] = Value::Null;
        push(Part::Head, json!({"type": "response.created", "response": begun}));
        let items = self.items();
        for (index, item) in items.iter().enumerate() {
            let mut empty = item.clone();
            empty["status"] = json!("in_progress");
            let id = &item["id"];
            let (kind, text) = if item["type"] == "function_call" {
                empty["arguments"] = json!("");
                ("function_call_arguments", item["arguments"].as_str().unwrap_or_default())
            } else {
                empty["content"] = json!([]);
                (if self.refuses { "refusal" } else { "output_text" }, self.text.as_str())
            };
            let added = json!({"type": "response.output_item.added", "output_index": index, "item": empty});
            push(Part::Head, added);
            let said = kind != "function_call_arguments";
            let of_part = |kind: &str, part: &Value| json!({"type": kind, "item_id": id, "output_index": index, "content_index": 0, "part": part});
            if said {
                let part = if self.refuses {
                    json!({"type": "refusal", "refusal": ""})
                } else {
                    json!({"type": "output_text", "text": "", "annotations": []})
                };
                push(Part::Head, of_part("response.content_part.added", &part));
            }
            let (start, end) = halves(text);
            for half in [start, end].into_iter().filter(|half| !half.is_empty()) {
                let delta = json!({"type": format!("response.{kind}.delta"), "item_id": id,
                    "output_index": index, "content_index": 0, "delta": half});
                push(Part::Token, delta);
            }
            let done = if said {
                of_part("response.content_part.done", &item["content"][0])
            } else {
                json!({"type": "response.function_call_arguments.done", "item_id": id,
                    "output_index": index, "arguments": text})
            };
            push(Part::Tail, done);
            push(Part::Tail, json!({"type": "response.output_item.done", "output_index": index, "item": item}));
        }
        let whole = self.response(&items);
        let kind = if whole["status"] == "completed" { "response.completed" } else { "response.incomplete" };
        push(Part::End, json!({"type": kind, "response": whole}));
        pieces
    }
}

/// The first and the second half of a text.
fn halves(text: &str) -> (&str, &str) {
    let middle = text.char_indices().map(|(at, _)| at).nth(text.chars().count().div_ceil(2));
    text.split_at(middle.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::super::{by_name, dialects};
    use super::*;

    fn answers() -> Vec<Said> {
        let text = Said::text("m", "The battery lasts.");
        let call = Some(("find".to_owned(), "{\"q\":\"battery\"}".to_owned()));
        let called = Said { text: String::new(), call, finish: Finish::ToolCalls, ..text.clone() };
        let cut = Said { finish: Finish::Length, ..text.clone() };
        let filtered = Said { text: String::new(), finish: Finish::ContentFilter, ..text.clone() };
        let refused = Said { refuses: true, ..text.clone() };
        vec![text, called, cut, filtered, refused]
    }

    #[test]
    fn every_dialect_of_the_proxy_reads_the_answers_that_are_written_for_it_whole_and_streamed() {
        for dialect in dialects().filter(|dialect| dialect.proxied) {
            let name = dialect.name();
            for said in answers() {
                let Some(whole) = said.whole(name) else {
                    assert_eq!((name, &said.finish), ("ollama", &Finish::ContentFilter));
                    continue;
                };
                let read = dialect.decode_response(&whole).unwrap_or_else(|why| panic!("{name} {said:?}: {why}"));
                let call = read.calls.first().map(|call| (call.name.clone(), call.arguments.clone()));
                assert_eq!(call, said.call, "{name}");
                if said.finish != Finish::ContentFilter && !said.refuses {
                    assert_eq!((read.content.as_str(), &read.finish), (said.text.as_str(), &said.finish), "{name}");
                }
                let Some(pieces) = said.stream(name) else {
                    assert_eq!(name, "bedrock-converse", "its frames are binary");
                    continue;
                };
                let body: String = pieces.iter().map(|(_, piece)| piece.as_str()).collect();
                let mut assembler = dialect.assembler();
                for event in dialect.framing.read(body.as_bytes()).expect("short") {
                    assembler.push(&event).unwrap_or_else(|why| panic!("{name}: {why}"));
                }
                assert!(assembler.complete(), "{name}: {body}");
                let streamed = dialect.decode_response(&assembler.document()).expect("decodes");
                let shape = |reply: &crate::provider::chat::ChatResponse| {
                    let calls: Vec<_> =
                        reply.calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect();
                    (reply.content.clone(), calls, reply.finish.clone())
                };
                assert_eq!(shape(&streamed), shape(&read), "{name}");
            }
        }
        assert!(by_name("openai-chat").is_some());
    }
}
