//! Tokens of a completion by kind, as Langfuse and LangChain write them.
//!
//! LangChain gives the whole input and, in `input_token_details`, what of it is of which kind. Langfuse subtracts the
//! kinds from `input` and `output` and writes them beside these, unless it passes on what the agent, LiteLLM or OpenAI said.
//! The total, if there is one, shows whether the kinds are included.
//! <https://langfuse.com/docs/observability/features/token-and-cost-tracking>

use super::meaning::Completed;
use serde_json::{Map, Value};

/// Tokens of a usage that Langfuse wrote, as a completion with these members alone.
pub(super) fn of_langfuse(usage: &Map<String, Value>) -> Completed {
    let (inputs, outputs) = (sums(usage, "input", "prompt_tokens"), sums(usage, "output", "completion_tokens"));
    let pairs = || inputs.iter().flat_map(|input| outputs.iter().map(move |output| (*input, *output)));
    let total = number(usage, "total").or_else(|| number(usage, "total_tokens"));
    let whole = total.and_then(|total| pairs().find(|(input, output)| input.saturating_add(*output) == total));
    let details =
        ["prompt_tokens_details", "input_tokens_details"].iter().find_map(|name| usage.get(*name)?.as_object());
    Completed {
        input_tokens: whole.map(|(input, _)| input).or(inputs.first().copied()),
        output_tokens: whole.map(|(_, output)| output).or(outputs.first().copied()),
        cached_tokens: details.and_then(cached).or_else(|| cached(usage)),
        cache_write_tokens: details.and_then(written).or_else(|| written(usage)),
        ..Completed::default()
    }
}

/// What the input (or the output) may come to, the most likely first.
fn sums(usage: &Map<String, Value>, side: &str, of_openai: &str) -> Vec<u64> {
    let by_count = format!("{side}_tokens");
    if let Some(whole) = number(usage, of_openai) {
        return vec![whole];
    }
    let Some(own) = number(usage, side).or_else(|| number(usage, &by_count)) else { return Vec::new() };
    if usage.contains_key(&format!("{by_count}_details")) {
        return vec![own];
    }
    let of_side = |name: &str| Some(name.strip_prefix(side)?.strip_prefix('_')?.to_owned());
    let is_kind = |name: &str| of_side(name).is_some_and(|kind| kind != "tokens" && !kind.starts_with("priority"));
    let is_kind_of_api = |name: &str| {
        let names = ["cache_read_input_tokens", "cache_creation_input_tokens"];
        side == "input" && (name.starts_with("cached_modality_") || names.contains(&name))
    };
    let kinds = sum(usage, |name| is_kind(name) || is_kind_of_api(name)).unwrap_or(0);
    // Tokens of a tier of service are counted in the others too, unless these were subtracted as well.
    let tiers = sum(usage, |name| of_side(name).is_some_and(|kind| kind.starts_with("priority"))).unwrap_or(0);
    let (with, without) = (own.saturating_add(kinds).max(tiers), own.max(tiers));
    // LangChain's callback for JavaScript subtracts from `input` and not from `input_tokens`.
    let is_whole = !usage.contains_key(side) && sum(usage, is_kind).is_some();
    if kinds > own {
        vec![with]
    } else if is_whole {
        vec![without, with]
    } else {
        vec![with, without]
    }
}

fn number(usage: &Map<String, Value>, name: &str) -> Option<u64> {
    usage.get(name)?.as_u64()
}

/// Tokens that were read from a cache, of whatever tier or size.
pub(super) fn cached(kinds: &Map<String, Value>) -> Option<u64> {
    sum(kinds, |kind| ["cache_read", "cached_tokens", "cached_modality_"].iter().any(|name| kind.contains(name)))
}

/// Tokens that were written to a cache: all, or by how long they are kept. Some writers say both.
pub(super) fn written(kinds: &Map<String, Value>) -> Option<u64> {
    let is_part = |kind: &str| kind.contains("ephemeral_");
    let is_whole = |kind: &str| kind.contains("cache_creation") || kind.contains("cache_write");
    sum(kinds, |kind| is_whole(kind) && !is_part(kind)).max(sum(kinds, is_part))
}

fn sum(kinds: &Map<String, Value>, is_meant: impl Fn(&str) -> bool) -> Option<u64> {
    let counts = kinds.iter().filter(|(kind, _)| is_meant(kind)).filter_map(|(_, count)| count.as_u64());
    counts.reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::of_langfuse;
    use serde_json::json;

    #[test]
    fn kinds_of_tokens_that_the_total_or_the_shape_of_a_usage_shows_to_be_within_are_not_added() {
        let details = json!({"cached_tokens": 800});
        for (usage, expected) in [
            (json!({"input": 1000, "output": 500, "total": 1500, "cache_read_input_tokens": 800}), (1000, 500)),
            (json!({"input": 200, "output": 500, "total": 1500, "cache_read_input_tokens": 800}), (1000, 500)),
            (json!({"input": 100, "output": 500, "total": 600, "cache_read_input_tokens": 800}), (900, 500)),
            (
                json!({"input": 600, "output": 500, "output_reasoning": 300, "total": 1500, "input_audio": 400}),
                (1000, 500),
            ),
            (
                json!({"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500,
                    "prompt_tokens_details": details, "cache_read_input_tokens": 800, "cache_creation_input_tokens": 100}),
                (1000, 500),
            ),
            (json!({"prompt_tokens": 1000, "completion_tokens": 500, "cache_read_input_tokens": 800}), (1000, 500)),
            (json!({"input_tokens": 1000, "output_tokens": 500, "input_cache_read": 800}), (1000, 500)),
            (
                json!({"input_tokens": 200, "output_tokens": 500, "total_tokens": 1500, "input_cache_read": 800}),
                (1000, 500),
            ),
            (
                json!({"input_tokens": 900, "output_tokens": 500, "total_tokens": 1500, "input_cache_read": 100}),
                (1000, 500),
            ),
            (json!({"input_tokens": 1000, "output_tokens": 500, "cache_read_input_tokens": 800}), (1800, 500)),
            (
                json!({"input": 0, "input_priority": 200, "input_priority_cache_read": 800, "output": 500, "total": 1500}),
                (1000, 500),
            ),
        ] {
            let found = of_langfuse(usage.as_object().expect("a usage"));
            assert_eq!((found.input_tokens, found.output_tokens), (Some(expected.0), Some(expected.1)), "{usage}");
        }
        let usage =
            json!({"prompt_tokens": 1000, "prompt_tokens_details": details, "cache_creation_input_tokens": 100});
        let found = of_langfuse(usage.as_object().expect("a usage"));
        assert_eq!((found.cached_tokens, found.cache_write_tokens), (Some(800), Some(100)));
    }
}
