//! The words that may be written: flows, tools and their arguments, prompts, requirements.

/// Flows that exist.
pub const FLOWS: [&str; 2] = ["tool-rag", crate::trace::EXTERNAL];

/// Prompt texts that a scenario or a variant may replace.
pub const PROMPTS: [&str; 9] = [
    "system",
    "knowledge_base_search",
    "perplexity_search",
    "index_keywords",
    "generate_response",
    "keyword_guidance",
    "missing_call",
    "order",
    "response_retry",
];

/// Tools, each with the names of its arguments.
pub const TOOLS: [(&str, &[&str]); 4] = [
    ("knowledge_base_search", &["query", "kb_id", "top_k"]),
    ("perplexity_search", &["query", "context"]),
    ("index_keywords", &["keywords", "query", "perplexity_result_id"]),
    ("generate_response", &["answer", "sources", "confidence_score", "used_internal_kb", "used_external_kb"]),
];

/// The tools' names.
pub fn tools() -> impl Iterator<Item = &'static str> + Clone {
    TOOLS.iter().map(|(name, _)| *name)
}

/// Requirements, each with a few words for the coverage table.
pub const REQUIREMENTS: [(&str, &str); 23] = [
    ("FR-001", "system prompt sets format, order of work and citations"),
    ("FR-002", "knowledge_base_search with checked parameters"),
    ("FR-003", "the knowledge base is searched for every query"),
    ("FR-004", "the model judges whether the results suffice"),
    ("FR-005", "perplexity_search with checked parameters"),
    ("FR-006", "Perplexity only when the knowledge base is not enough"),
    ("FR-007", "index_keywords after every external result"),
    ("FR-008", "keywords persist, merge and are found again"),
    ("FR-009", "generate_response is the only way to answer"),
    ("FR-010", "a missing or invalid response is retried once"),
    ("FR-011", "failing tools: bounded retries, then go on without"),
    ("FR-012", "history is kept through calls and turns"),
    ("FR-013", "answers combine both kinds of sources"),
    ("FR-014", "citations survive to the end"),
    ("SC-001", "every query calls the knowledge base"),
    ("SC-002", "the response tool is called at the first attempt"),
    ("SC-003", "every external result has keywords indexed"),
    ("SC-004", "users are satisfied with combined answers"),
    ("SC-005", "queries end in time"),
    ("SC-006", "later questions profit from learned keywords"),
    ("SC-007", "retries recover"),
    ("SC-008", "conversations keep their context"),
    ("CHAT-1", "the Chat API answers with text, sources and session"),
];

/// The few words of a requirement.
pub fn requirement(id: &str) -> Option<&'static str> {
    REQUIREMENTS.iter().find(|(known, _)| *known == id).map(|(_, about)| *about)
}

/// Whether a name can be a segment of a path and of a trial's id: `a`–`z`, `0`–`9` and `-`, up to 100 of them.
pub fn is_name(name: &str) -> bool {
    let allowed = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    !name.is_empty() && name.len() <= 100 && name.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_as_path_segments() {
        assert!(is_name("refund-03"));
        for bad in ["", "..", "a/b", "A", "a b", "ä", "a.b", "a_b"] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn every_requirement_is_listed_once() {
        let ids: std::collections::BTreeSet<_> = REQUIREMENTS.iter().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), REQUIREMENTS.len());
        assert_eq!(requirement("SC-008").map(str::is_empty), Some(false));
    }
}
