//! The product's prompts: files of `prompts/`, any of which a scenario or variant may replace by name.
//!
//! `system` and the feedback texts are templates (`{{ keyword_guidance }}`, `{{ tool }}`, `{{ step }}`,
//! `{{ reason }}`); tool descriptions and the keyword guidance are plain text. An unknown variable is an error, found
//! when the prompts are resolved, before anything runs.

use super::conversation::digest;
use crate::chat::{Role, ToolDefinition};
use crate::flow::tool_rag::tools as tool;
use std::collections::BTreeMap;
use std::sync::Arc;

const SOURCES: [(&str, &str); 9] = [
    ("system", include_str!("tool_rag/prompts/system.md")),
    (tool::KNOWLEDGE_BASE_SEARCH, include_str!("tool_rag/prompts/knowledge_base_search.md")),
    (tool::PERPLEXITY_SEARCH, include_str!("tool_rag/prompts/perplexity_search.md")),
    (tool::INDEX_KEYWORDS, include_str!("tool_rag/prompts/index_keywords.md")),
    (tool::GENERATE_RESPONSE, include_str!("tool_rag/prompts/generate_response.md")),
    ("keyword_guidance", include_str!("tool_rag/prompts/keyword_guidance.md")),
    (MISSING_CALL, include_str!("tool_rag/prompts/missing_call.txt")),
    (ORDER, include_str!("tool_rag/prompts/order.txt")),
    (RESPONSE_RETRY, include_str!("tool_rag/prompts/response_retry.txt")),
];

/// Feedback on a mandatory call that is missing.
pub const MISSING_CALL: &str = "missing_call";
/// What is said of a call out of order.
pub const ORDER: &str = "order";
/// Feedback on a response that is missing or invalid.
pub const RESPONSE_RETRY: &str = "response_retry";

/// Names of all prompts, in the order of their use.
pub fn names() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(|(name, _)| *name)
}

/// A prompt that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("prompt `{name}`: {reason}")]
pub struct PromptError {
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

/// All texts of one variant, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompts {
    system: String,
    system_digest: String,
    tools: Arc<[ToolDefinition]>,
    feedback: BTreeMap<&'static str, String>,
}

impl Prompts {
    /// The shipped texts with `overrides` in place of those that they name. `external` says whether there is an
    /// external search service: without one its tools are not offered.
    ///
    /// # Errors
    /// On an unknown name, or a template that cannot be rendered.
    pub fn resolve(overrides: &BTreeMap<String, String>, external: bool) -> Result<Self, PromptError> {
        if let Some(name) = overrides.keys().find(|name| !names().any(|known| known == **name)) {
            let reason = format!("there is no such prompt; known: {}", names().collect::<Vec<_>>().join(", "));
            return Err(PromptError { name: name.clone(), reason });
        }
        let text = |wanted: &str| {
            let shipped = SOURCES.iter().find(|(name, _)| *name == wanted).map_or("", |(_, text)| text);
            overrides.get(wanted).map_or(shipped, String::as_str)
        };
        let guidance = text("keyword_guidance").trim();
        let system = render("system", text("system"), minijinja::context! { keyword_guidance => guidance, external })?;
        let offered = |name: &&str| external || !matches!(*name, tool::PERPLEXITY_SEARCH | tool::INDEX_KEYWORDS);
        let tools =
            tool::NAMES.into_iter().filter(offered).filter_map(|name| tool::definition(name, text(name))).collect();
        let mut feedback = BTreeMap::new();
        for name in [MISSING_CALL, ORDER, RESPONSE_RETRY] {
            render(name, text(name), minijinja::context! { tool => "a", step => "b", reason => "c" })?;
            feedback.insert(name, text(name).to_owned());
        }
        let system_digest = digest(Role::System, &system);
        Ok(Self { system, system_digest, tools, feedback })
    }

    /// The system prompt.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// Its digest as traces show it.
    pub fn system_digest(&self) -> &str {
        &self.system_digest
    }

    /// The tools on offer.
    pub fn tools(&self) -> &Arc<[ToolDefinition]> {
        &self.tools
    }

    /// Whether that tool is on offer.
    pub fn offers(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    /// One of the feedback texts, filled in.
    pub fn feedback(&self, name: &str, tool: &str, step: &str, reason: &str) -> String {
        let source = self.feedback.get(name).map_or("", String::as_str);
        // Rendered once already when resolved; a template that fails on other values still says the reason.
        render(name, source, minijinja::context! { tool, step, reason }).unwrap_or_else(|_| reason.to_owned())
    }
}

fn render(name: &str, source: &str, values: minijinja::Value) -> Result<String, PromptError> {
    let mut environment = minijinja::Environment::new();
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    environment.set_fuel(Some(100_000));
    // Named without an extension, so that nothing is escaped: these are texts for models, not pages.
    let rendered = environment
        .render_named_str(name, source, values)
        .map_err(|error| PromptError { name: name.to_owned(), reason: error.to_string() })?;
    Ok(rendered.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, text: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(name.to_owned(), text.to_owned())])
    }

    #[test]
    fn the_shipped_prompts_resolve_and_nothing_is_left_unfilled() {
        let prompts = Prompts::resolve(&BTreeMap::new(), true).expect("resolves");
        assert!(prompts.system().contains("UN 3480") && !prompts.system().contains("{{"));
        assert_eq!(prompts.tools().len(), 4);
        let told = prompts.feedback(MISSING_CALL, "knowledge_base_search", "knowledge_base", "nothing <was> called");
        assert!(told.contains("`knowledge_base_search`") && told.contains("\"knowledge_base\""), "{told}");
        assert!(told.contains("nothing <was> called"), "{told}");
    }

    #[test]
    fn without_an_external_service_its_tools_and_their_instructions_are_gone() {
        let prompts = Prompts::resolve(&BTreeMap::new(), false).expect("resolves");
        assert!(!prompts.offers(tool::PERPLEXITY_SEARCH) && !prompts.offers(tool::INDEX_KEYWORDS));
        assert!(!prompts.system().contains(tool::PERPLEXITY_SEARCH));
    }

    #[test]
    fn a_replaced_text_is_used_and_a_mistake_in_one_is_named() {
        let prompts = Prompts::resolve(&one("keyword_guidance", "Five words."), true).expect("resolves");
        assert!(prompts.system().ends_with("Five words."));
        let error = Prompts::resolve(&one("missing_call", "{{ toll }}"), true).expect_err("is refused");
        assert_eq!(error.name, "missing_call");
        let error = Prompts::resolve(&one("sistem", ""), true).expect_err("is refused");
        assert!(error.reason.contains("keyword_guidance"), "{error}");
    }
}
