//! Maps tool names: an external agent uses its own names, the simulated model knows its four.
//!
//! Requests are translated to the model's names before it sees them, its calls to the agent's names before they are
//! sent.

use super::habit::Step;
use super::mistake::ValueError;
use super::model::Completion;
use super::wire::ChatBody;
use crate::provider::chat::{Role, ToolChoice};
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

/// Translates a request to the model's names.
pub(super) fn inward(aliases: &Aliases, request: &mut ChatBody) {
    if aliases.is_empty() {
        return;
    }
    let ours = |name: &mut String| {
        if let Some((ours, _)) = aliases.iter().find(|(_, theirs)| **theirs == *name) {
            name.clone_from(ours);
        }
    };
    request.tools.iter_mut().for_each(|tool| ours(&mut tool.name));
    if let ToolChoice::Named(name) = &mut request.choice {
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
    use super::super::wire::read_chat;
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
        let mut request = read_chat(&body).expect("valid");
        inward(&aliases, &mut request);
        assert_eq!(request.tools[0].name, "knowledge_base_search");
        assert_eq!(request.tools[1].name, "other");
        assert_eq!(request.choice, ToolChoice::Named("knowledge_base_search".into()));
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
}
