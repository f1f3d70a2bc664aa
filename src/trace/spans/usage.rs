//! Tokens of a completion by kind, as Langfuse and LangChain write them.
//!
//! LangChain gives the whole input and, in `input_token_details`, what of it is of which kind. Langfuse subtracts the
//! kinds from `input` and `output` and writes them beside these, unless it passes on what OpenAI said.
//! <https://langfuse.com/docs/observability/features/token-and-cost-tracking>

use super::meaning::Completed;
use serde_json::{Map, Value};

/// Tokens of a usage that Langfuse wrote, as a completion with these members alone.
pub(super) fn of_langfuse(usage: &Map<String, Value>) -> Completed {
    let named = |names: &[&str]| names.iter().find_map(|name| usage.get(*name)?.as_u64());
    let with_kinds = |whole: Option<u64>, is_kind: &dyn Fn(&str) -> bool| {
        let kinds = usage.iter().filter(|(name, _)| is_kind(name)).filter_map(|(_, count)| count.as_u64());
        whole.map(|whole| kinds.fold(whole, u64::saturating_add))
    };
    // A tier of service is no kind: its tokens are counted in the others too.
    let of_input = |name: &str| match name.strip_prefix("input_") {
        Some(kind) => kind != "tokens" && !kind.starts_with("priority"),
        None => {
            name.starts_with("cached_modality_")
                || ["cache_read_input_tokens", "cache_creation_input_tokens"].contains(&name)
        }
    };
    let of_output =
        |name: &str| name.strip_prefix("output_").is_some_and(|kind| kind != "tokens" && !kind.starts_with("priority"));
    let details =
        ["prompt_tokens_details", "input_tokens_details"].iter().find_map(|name| usage.get(*name)?.as_object());
    let kinds = details.unwrap_or(usage);
    Completed {
        input_tokens: with_kinds(named(&["input", "input_tokens", "prompt_tokens"]), &of_input),
        output_tokens: with_kinds(named(&["output", "output_tokens", "completion_tokens"]), &of_output),
        cached_tokens: cached(kinds),
        cache_write_tokens: written(kinds),
        ..Completed::default()
    }
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
