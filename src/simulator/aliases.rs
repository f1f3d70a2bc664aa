//! Maps tool names: an external agent uses its own names, the simulated model knows its four.
//!
//! Requests are translated to the model's names before it sees them, its calls to the agent's names before they are
//! sent. A behaviour file declares the names; where it declares none and the model knows none of the tools, their names
//! and descriptions tell.

use super::habit::Step;
use super::mistake::ValueError;
use super::model::Completion;
use super::reason_act;
use super::roles::roles;
use crate::provider::chat::{ChatRequest, Role, ToolChoice, ToolDefinition};
use std::collections::BTreeMap;

/// The agent's names of tools, by role or by our name.
pub(super) type Aliases = BTreeMap<String, String>;

/// Invalid entries, by the name as written.
pub(super) fn check(aliases: &Aliases) -> Vec<(&str, ValueError)> {
    let mut wrong = Vec::new();
    for (ours, theirs) in aliases {
        if Step::named(ours).is_none() {
            let known = Step::ALL.map(Step::role).join(", ");
            wrong.push((ours.as_str(), ValueError::UnknownRole { role: ours.clone(), known }));
        }
        if theirs.trim().is_empty() {
            wrong.push((ours.as_str(), ValueError::EmptyName(ours.clone())));
        }
    }
    wrong
}

/// Converts the keys to our names.
pub(super) fn by_tool(aliases: Aliases) -> Aliases {
    let ours = |word: String| Step::named(&word).map_or(word, |step| step.tool().to_owned());
    aliases.into_iter().map(|(word, theirs)| (ours(word), theirs)).collect()
}

/// The names for a request with these tools: the declared ones, else those that the tools themselves tell.
pub(super) fn of_request(declared: &Aliases, tools: &[ToolDefinition]) -> Aliases {
    let known = |tool: &ToolDefinition| Step::of_tool(&tool.name).is_some() || tool.name == reason_act::SEARCH;
    if !declared.is_empty() || tools.iter().any(known) {
        return declared.clone();
    }
    let mut told = roles(tools);
    // Of several tools for one role a sure one is last, and so it stays.
    told.sort_by_key(|proposed| proposed.sure);
    by_tool(told.into_iter().map(|proposed| (proposed.role.to_owned(), proposed.tool)).collect())
}

/// Translates a request to the model's names.
pub(super) fn inward(aliases: &Aliases, request: &mut ChatRequest) {
    if aliases.is_empty() {
        return;
    }
    let ours = |name: &mut String| {
        if let Some((ours, _)) = aliases.iter().find(|(_, theirs)| **theirs == *name) {
            name.clone_from(ours);
        }
    };
    let mut tools = request.tools.to_vec();
    tools.iter_mut().for_each(|tool| ours(&mut tool.name));
    request.tools = tools.into();
    if let ToolChoice::Named(name) = &mut request.tool_choice {
        ours(name);
    }
    for message in &mut request.messages {
        message.calls.iter_mut().for_each(|call| ours(&mut call.name));
        if matches!(message.role, Role::User | Role::System) {
            for (ours, theirs) in aliases {
                if message.content.contains(theirs.as_str()) {
                    message.content = message.content.replace(theirs.as_str(), ours);
                }
            }
        }
    }
}

/// Translates the model's calls to the agent's names.
pub(super) fn outward(aliases: &Aliases, completion: &mut Completion) {
    for call in &mut completion.calls {
        if let Some(theirs) = aliases.get(&call.name) {
            call.name.clone_from(theirs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::api::CHAT;
    use super::*;
    use crate::provider::chat::{Finish, ToolCall};
    use serde_json::json;

    #[test]
    fn requests_and_calls_are_renamed_and_unknown_tools_are_refused() {
        let aliases = by_tool(Aliases::from([("knowledge".into(), "look".into())]));
        assert_eq!(aliases, by_tool(aliases.clone()), "a name of ours is that tool too");
        let body = json!({"model": "m", "tools": [{"function": {"name": "look"}}, {"function": {"name": "other"}}],
            "tool_choice": {"function": {"name": "look"}},
            "messages": [{"role": "user", "content": "q"}, {"role": "system", "content": "Call look first."}]});
        let mut request = CHAT.read("", &body).expect("valid");
        inward(&aliases, &mut request);
        assert_eq!(request.tools[0].name, "knowledge_base_search");
        assert_eq!(request.tools[1].name, "other");
        assert_eq!(request.tool_choice, ToolChoice::Named("knowledge_base_search".into()));
        assert_eq!(request.messages[1].content, "Call knowledge_base_search first.");
        let call = ToolCall { id: "1".into(), name: "knowledge_base_search".into(), arguments: "{}".into() };
        let mut completion =
            Completion { text: String::new(), refusal: None, calls: vec![call], finish: Finish::ToolCalls };
        outward(&aliases, &mut completion);
        assert_eq!(completion.calls[0].name, "look");
        let aliases = Aliases::from([("knowledge_base".into(), "look".into()), ("respond".into(), " ".into())]);
        let wrong: Vec<String> = check(&aliases).into_iter().map(|(_, wrong)| wrong.to_string()).collect();
        assert!(
            wrong[0].contains("knowledge, external, index, respond") && wrong[1].contains("empty name"),
            "{wrong:?}"
        );
    }

    #[test]
    fn tools_that_nobody_declared_tell_their_roles_unless_the_model_knows_one() {
        let tool = |name: &str, about: &str| ToolDefinition {
            name: name.into(),
            description: about.into(),
            parameters: json!({}),
        };
        let theirs =
            [tool("lookup", "Looks a term up in the documentation."), tool("searchDocs", ""), tool("final_answer", "")];
        let told = of_request(&Aliases::new(), &theirs);
        let pairs: Vec<(&str, &str)> = told.iter().map(|(ours, theirs)| (ours.as_str(), theirs.as_str())).collect();
        assert_eq!(pairs, [("generate_response", "final_answer"), ("knowledge_base_search", "searchDocs")]);
        assert_eq!(
            of_request(&Aliases::new(), &[theirs.as_slice(), &[tool("nuclia_rag", "")]].concat()),
            Aliases::new()
        );
        let declared = Aliases::from([("index_keywords".into(), "keep".into())]);
        assert_eq!(of_request(&declared, &theirs), declared);
    }
}
