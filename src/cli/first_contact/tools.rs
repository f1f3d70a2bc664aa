//! The tools in an agent's requests, and the roles that they probably have.

use crate::provider::wire;
use crate::transport::{HttpRequest, Service};

/// A tool as it is offered to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) about: String,
}

/// A role that a tool probably has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proposed {
    pub(super) role: &'static str,
    pub(super) tool: String,
    /// Whether its name says so; otherwise only its description does.
    pub(super) sure: bool,
}

/// Words of a role, in names of tools first and in their descriptions second. A name holds one of the words of each
/// group.
struct Words {
    role: &'static str,
    names: &'static [&'static [&'static str]],
    about: &'static [&'static str],
}

/// In this order: a search of the web is no search of the agent's knowledge.
const ROLES: [Words; 4] = [
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
                "docs",
                "doc",
                "documents",
                "document",
                "documentation",
                "knowledge",
                "kb",
                "faq",
                "faqs",
                "passages",
                "articles",
                "manual",
                "policies",
                "wiki",
                "context",
                "base",
                "chunks",
            ],
        ],
        about: &["knowledge base", "documents", "documentation", "passages", "articles"],
    },
];

/// The tools that a request offers.
pub(super) fn offered(request: &HttpRequest) -> Vec<Tool> {
    if request.service != Service::Model {
        return Vec::new();
    }
    let decoded = wire::by_name(request.profile.name)
        .and_then(|dialect| dialect.decode_request(&request.path, &request.body).ok());
    let tools = decoded.map(|decoded| decoded.tools);
    let tools = tools.iter().flat_map(|tools| tools.iter());
    tools.map(|tool| Tool { name: tool.name.clone(), about: tool.description.clone() }).collect()
}

/// At most one role for each tool, and at most one sure tool for each role.
pub(super) fn roles(offered: &[Tool]) -> Vec<Proposed> {
    let mut found: Vec<Proposed> = Vec::new();
    for tool in offered {
        let Some((role, by_name)) = role(tool) else { continue };
        let sure = by_name && !found.iter().any(|known| known.sure && known.role == role);
        found.push(Proposed { role, tool: tool.name.clone(), sure });
    }
    found
}

fn role(tool: &Tool) -> Option<(&'static str, bool)> {
    let words = words(&tool.name);
    let has = |group: &&[&str]| words.iter().any(|word| group.contains(&word.as_str()));
    let named = |one: &&Words| one.names.iter().all(has);
    let about = tool.about.to_lowercase();
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

    fn told(name: &str, about: &str) -> Option<(&'static str, bool)> {
        role(&Tool { name: name.to_owned(), about: about.to_owned() })
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
        let tools = ["search_docs", "search_faq"].map(|name| Tool { name: name.to_owned(), about: String::new() });
        let sure: Vec<bool> = roles(&tools).iter().map(|one| one.sure).collect();
        assert_eq!(sure, [true, false]);
    }
}
