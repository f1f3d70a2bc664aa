//! Decodes answers of a search service with their citations, in either of Perplexity's dialects.

use super::document::{Reader, WireError};
use super::{perplexity_agent, perplexity_sonar};
use crate::provider::{Citation, SearchAnswer};
use serde_json::Value;
use std::collections::BTreeMap;

/// Decodes either format as a search service's answer, with its citations, without duplicates.
///
/// `[n]` in the text is the result with id n of the Agent API, so results are sorted by id, followed by those that only
/// annotations name; in the chat format it counts `citations`, and `search_results` adds texts to them.
pub(crate) fn decode_answer(body: &Value) -> Result<SearchAnswer, WireError> {
    let sonar = body.get("choices").is_some();
    let response = if sonar {
        perplexity_sonar::DIALECT.decode_response(body)?
    } else {
        perplexity_agent::DIALECT.decode_response(body)?
    };
    let mut sources = Sources::default();
    if sonar {
        sources.extend(body["citations"].as_array().into_iter().flatten().filter_map(Value::as_str).map(bare));
        sources.extend(body["search_results"].as_array().into_iter().flatten().filter_map(citation));
    } else {
        let reader = Reader(perplexity_agent::NAME);
        let items = reader.list(reader.object("", body)?, "output")?;
        let lists = |key: &'static str| items.iter().filter_map(move |item| item.get(key)?.as_array()).flatten();
        let mut results: Vec<&Value> = lists("results").collect();
        results.sort_by_key(|result| result.get("id").and_then(Value::as_u64).unwrap_or(u64::MAX));
        sources.extend(results.into_iter().filter_map(citation));
        let parts = lists("content").filter_map(|part| part.get("annotations")?.as_array()).flatten();
        sources.extend(parts.filter_map(citation));
    }
    Ok(SearchAnswer { text: response.content, citations: sources.list, model: response.model, usage: response.usage })
}

/// Decodes the search endpoint's results, which have no answer. `None` for anything else.
pub(crate) fn decode_results(body: &Value) -> Option<SearchAnswer> {
    if body.get("output").is_some() || body.get("choices").is_some() {
        return None;
    }
    let mut sources = Sources::default();
    sources.extend(body.get("results")?.as_array()?.iter().filter_map(citation));
    Some(SearchAnswer { citations: sources.list, ..SearchAnswer::default() })
}

/// Citations with unique addresses, in order of appearance; a later title or snippet fills an empty one.
#[derive(Default)]
struct Sources {
    list: Vec<Citation>,
    places: BTreeMap<String, usize>,
}

impl Sources {
    fn extend(&mut self, found: impl Iterator<Item = Citation>) {
        for source in found {
            if let Some(known) = self.places.get(&source.url).and_then(|place| self.list.get_mut(*place)) {
                for (passthrough, new) in [(&mut known.title, source.title), (&mut known.snippet, source.snippet)] {
                    if passthrough.is_empty() {
                        *passthrough = new;
                    }
                }
                continue;
            }
            self.places.insert(source.url.clone(), self.list.len());
            self.list.push(source);
        }
    }
}

fn citation(result: &Value) -> Option<Citation> {
    let string = |key: &str| result.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let url = string("url");
    (!url.is_empty()).then(|| Citation { title: string("title"), url, snippet: string("snippet") })
}

fn bare(url: &str) -> Citation {
    Citation { title: String::new(), url: url.to_owned(), snippet: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn result(url: &str) -> Value {
        json!({"id": 1, "title": "T", "url": url, "snippet": "S"})
    }

    #[test]
    fn both_shapes_give_the_answer_and_each_source_once() {
        let agent = json!({"model": "perplexity/sonar", "status": "completed", "output": [
            {"type": "search_results", "queries": ["q"], "results": [result("https://a"), result("https://b")]},
            {"type": "of_the_future", "anything": 1},
            {"type": "message", "role": "assistant", "content": [
                {"type": "output_text", "text": "Yes [1].", "annotations": [{"type": "citation", "url": "https://a"}]}]}],
            "usage": {"input_tokens": 4, "output_tokens": 2}});
        let sonar = json!({"model": "perplexity/sonar", "choices": [{"message": {"role": "assistant", "content": "Yes [1]."},
            "finish_reason": "stop"}], "citations": ["https://a", "https://b"],
            "search_results": [result("https://a"), result("https://b")], "usage": {"prompt_tokens": 4, "completion_tokens": 2}});
        let answer = decode_answer(&agent).expect("agent");
        assert_eq!(answer, decode_answer(&sonar).expect("sonar"));
        assert_eq!(
            answer.citations.iter().map(|citation| citation.url.as_str()).collect::<Vec<_>>(),
            ["https://a", "https://b"]
        );
        assert_eq!(answer.usage.input, Some(4));
    }

    #[test]
    fn a_failed_answer_is_the_error_that_it_reports() {
        let failed =
            json!({"status": "failed", "output": [], "error": {"code": "rate_limit_exceeded", "message": "slow"}});
        assert!(matches!(
            decode_answer(&failed),
            Err(WireError::Reported { kind: crate::provider::ErrorKind::RateLimit, .. })
        ));
    }

    #[test]
    fn a_preset_stands_for_the_model_and_survives() {
        let body =
            json!({"preset": "low", "input": "why?", "tools": [{"type": "web_search"}], "language_preference": "de"});
        let request = perplexity_agent::DIALECT.decode_request("", &body).expect("decodes");
        assert_eq!(request.messages[0].content, "why?");
        assert_eq!(perplexity_agent::DIALECT.encode_request(&request), body);
    }
}
