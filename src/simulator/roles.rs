//! The roles that an agent's tools probably have, by their names and descriptions.

use crate::provider::chat::ToolDefinition;

/// A role that a tool probably has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proposed {
    pub(crate) role: &'static str,
    pub(crate) tool: String,
    /// Whether its name says so; otherwise only its description does.
    pub(crate) sure: bool,
}

/// Words of a role, in names of tools first and in their descriptions second. A name holds one of the words of each
/// group.
struct Words {
    role: &'static str,
    names: &'static [&'static [&'static str]],
    about: &'static [&'static str],
}

/// In this order: a search of the web is no search of the agent's knowledge.
const ROLES: [Words; 5] = [
    Words {
        role: "external",
        names: &[&["web", "internet", "google", "bing", "tavily", "perplexity", "brave", "duckduckgo"]],
        about: &["the web", "internet", "online"],
    },
    Words {
        role: "respond",
        names: &[
            &["answer", "respond", "response", "reply"],
            &["final", "give", "submit", "send", "provide", "respond", "to", "with", "user", "the"],
        ],
        about: &["final answer", "answer to the user", "gives the answer"],
    },
    // The output tool of agents with structured answers.
    Words { role: "respond", names: &[&["result", "output"], &["final"]], about: &[] },
    Words {
        role: "index",
        names: &[&["remember", "memorize", "memorise", "index"]],
        about: &["keywords", "for later"],
    },
    Words {
        role: "knowledge",
        names: &[
            &["search", "retrieve", "retrieval", "lookup", "query", "find", "get", "fetch", "knowledge"],
            &[
                "docs", "doc", "documents", "document", "documentation", "knowledge", "kb", "faq", "faqs", "passages",
                "articles", "manual", "policies", "wiki", "context", "base", "chunks",
            ],
        ],
        about: &["knowledge base", "documents", "documentation", "passages", "articles"],
    },
];

/// At most one role for each tool, and at most one sure tool for each role.
pub(crate) fn roles(offered: &[ToolDefinition]) -> Vec<Proposed> {
    let mut found: Vec<Proposed> = Vec::new();
    for tool in offered {
        let Some((role, by_name)) = role(tool) else { continue };
        let sure = by_name && !found.iter().any(|known| known.sure && known.role == role);
        found.push(Proposed { role, tool: tool.name.clone(), sure });
    }
    found
}

fn role(tool: &ToolDefinition) -> Option<(&'static str, bool)> {
    let words = words(&tool.name);
    let has = |group: &&[&str]| words.iter().any(|word| group.contains(&word.as_str()));
    let named = |one: &&Words| one.names.iter().all(has);
    let about = tool.description.to_lowercase();
    let described = |one: &&Words| one.about.iter().any(|said| about.contains(said));
    let by_name = ROLES.iter().find(named).map(|one| (one.role, true));
    by_name.or_else(|| ROLES.iter().find(described).map(|one| (one.role, false)))
}

/// The words of a name in snake case, kebab case or camel case, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_lower = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || letter.is_uppercase() && before_lower {
            words.push(String::new());
        }
        if letter.is_alphanumeric() {
            words.last_mut().into_iter().for_each(|word| word.extend(letter.to_lowercase()));
        }
        before_lower = letter.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, about: &str) -> ToolDefinition {
        ToolDefinition { name: name.to_owned(), description: about.to_owned(), parameters: serde_json::Value::Null }
    }

    fn told(name: &str, about: &str) -> Option<(&'static str, bool)> {
        role(&tool(name, about))
    }

    #[test]
    fn names_say_a_role_surely_and_descriptions_probably() {
        for (name, about, expected) in [
            ("search_docs", "", Some(("knowledge", true))),
            ("searchKnowledgeBase", "", Some(("knowledge", true))),
            ("retrieve_documents", "", Some(("knowledge", true))),
            ("web_search", "", Some(("external", true))),
            ("search_web_docs", "", Some(("external", true))),
            ("final_answer", "", Some(("respond", true))),
            ("respond_to_user", "", Some(("respond", true))),
            ("final_result", "", Some(("respond", true))),
            ("remember", "", Some(("index", true))),
            ("lookup", "Looks a term up in the documentation.", Some(("knowledge", false))),
            ("answer_rate", "", None),
            ("create_ticket", "Opens a ticket.", None),
            ("lookup_order", "Looks an order up by its number.", None),
        ] {
            assert_eq!(told(name, about), expected, "{name}");
        }
    }

    #[test]
    fn a_second_tool_of_a_role_is_left_to_the_reader() {
        let tools = ["search_docs", "search_faq"].map(|name| tool(name, ""));
        let sure: Vec<bool> = roles(&tools).iter().map(|one| one.sure).collect();
        assert_eq!(sure, [true, false]);
    }
}
