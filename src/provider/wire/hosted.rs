//! Tools that a provider runs itself, within its answer: items of Responses, blocks of Messages, parts and the grounding of
//! Gemini, annotations of Chat Completions.

use super::{anthropic_messages, gemini, openai_chat, openai_responses, openai_responses_items as items};
use crate::provider::mcp::Ran;
use serde_json::{Map, Value, json};

/// A call within an answer, with its result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HostedCall {
    /// Its id in the conversation.
    pub id: String,
    /// The tool, as agents name it: `web_search`, or that of an MCP server.
    pub tool: String,
    pub arguments: Value,
    /// What it came to; `None` where the answer does not show it.
    pub ran: Option<Ran>,
}

/// The providers' own tools that look for something to answer from.
const SEARCHES: [&str; 7] =
    ["web_search", "web_fetch", "file_search", "google_search", "google_search_retrieval", "url_context", "x_search"];

impl HostedCall {
    /// Whether it looks for something to answer from. What a tool of an MCP server is for, its role says.
    pub(crate) fn searches(&self) -> bool {
        SEARCHES.contains(&self.tool.as_str())
    }
}

/// The calls that the provider made within an answer of that dialect, in order.
pub(crate) fn calls(dialect: &str, answer: &Value) -> Vec<HostedCall> {
    match dialect {
        openai_responses::NAME => {
            let output = list(answer, "output");
            output.iter().filter_map(|item| of_item(item, output)).collect()
        }
        anthropic_messages::NAME => {
            let blocks = list(answer, "content");
            blocks.iter().filter_map(|block| of_block(block, blocks)).collect()
        }
        gemini::NAME => of_gemini(&answer["candidates"][0]),
        openai_chat::NAME => {
            let cites = list(&answer["choices"][0]["message"], "annotations");
            let searched = cites.iter().any(|one| text(one, "type") == "url_citation");
            searched.then(|| search("web_search", json!({}))).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// A search whose result the answer does not show.
fn search(tool: &str, arguments: Value) -> HostedCall {
    HostedCall { id: String::new(), tool: tool.to_owned(), arguments, ran: None }
}

/// Whether a request offers tools of an MCP server without naming them.
pub(crate) fn offers_unnamed(request: &Value) -> bool {
    let unnamed = |tool: &Value| match text(tool, "type") {
        "mcp" => tool["allowed_tools"].is_null(),
        kind => kind == "mcp_toolset",
    };
    list(request, "tools").iter().any(unnamed) || !list(request, "mcp_servers").is_empty()
}

/// The provider's own tools, and those of an MCP server, that a request offers beside those of the agent, or that an answer
/// lists.
pub(crate) fn offered(dialect: &str, document: &Value) -> Vec<String> {
    let kind = |tool: &Value| match (text(tool, "type"), dialect) {
        ("function" | "custom" | "", _) => Vec::new(),
        ("mcp", _) => {
            let allowed = tool["allowed_tools"].as_array().or_else(|| tool["allowed_tools"]["tool_names"].as_array());
            allowed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        (kind, openai_responses::NAME) => vec![without_date(kind).to_owned()],
        (_, anthropic_messages::NAME) => {
            vec![text(tool, "name").to_owned()].into_iter().filter(|name| !name.is_empty()).collect()
        }
        _ => Vec::new(),
    };
    if dialect == gemini::NAME {
        let members = list(document, "tools").iter().filter_map(Value::as_object).flatten();
        return members.filter(|(name, _)| *name != "functionDeclarations").map(|(name, _)| snake(name)).collect();
    }
    let listed = list(document, "output").iter().filter(|item| text(item, "type") == "mcp_list_tools");
    let listed = listed.flat_map(|item| list(item, "tools")).map(|tool| text(tool, "name").to_owned());
    list(document, "tools").iter().flat_map(kind).chain(listed).collect()
}

/// `web_search` of `web_search_preview_2025_03_11`.
fn without_date(kind: &str) -> &str {
    let kind = kind.split("_20").next().unwrap_or(kind);
    let kind = kind.strip_suffix("_preview").unwrap_or(kind);
    if kind == "computer_use" { "computer" } else { kind }
}

fn of_item(item: &Value, output: &[Value]) -> Option<HostedCall> {
    let tool = text(item, "type").strip_suffix("_call")?;
    let own = items::built_in(text(item, "type"));
    if matches!(tool, "function" | "custom_tool") || own.is_some() && items::result_of(item, output).is_none() {
        return None;
    }
    let member = |names: &[&str]| names.iter().find_map(|name| item.get(*name).filter(|value| !value.is_null()));
    let error = item.get("error").filter(|error| !error.is_null());
    let failed = text(item, "status") == "failed";
    let (tool, arguments) = if tool == "mcp" {
        let given = text(item, "arguments");
        (text(item, "name"), serde_json::from_str(given).unwrap_or_else(|_| json!(given)))
    } else {
        let whole = member(&["action", "operation"]).cloned();
        let parts = || {
            let named =
                ["queries", "code"].iter().filter_map(|name| Some(((*name).to_owned(), item.get(*name)?.clone())));
            Value::Object(named.collect())
        };
        (own.map_or(without_date(tool), |(tool, _)| tool), whole.unwrap_or_else(parts))
    };
    let given = if own.is_some() { items::result_of(item, output) } else { None };
    let given = given.or_else(|| member(&["output", "results", "outputs"]));
    let ran = if let Some(error) = error {
        Some(Ran::Failed(error.as_str().map_or_else(|| error.to_string(), str::to_owned)))
    } else if failed {
        Some(Ran::Failed("the provider says that it failed".to_owned()))
    } else {
        given.map(|given| Ran::Done(document(given)))
    };
    let id = if own.is_some() { text(item, "call_id") } else { text(item, "id") };
    Some(HostedCall { id: id.to_owned(), tool: tool.to_owned(), arguments, ran })
}

fn of_block(block: &Value, blocks: &[Value]) -> Option<HostedCall> {
    if !matches!(text(block, "type"), "server_tool_use" | "mcp_tool_use") {
        return None;
    }
    let (id, tool) = (text(block, "id"), text(block, "name"));
    let result = blocks.iter().find(|other| text(other, "tool_use_id") == id);
    let content = result.map(|result| &result["content"]);
    let error = content.and_then(|content| content["error_code"].as_str());
    let page = content.map(|content| (&content["content"], &content["url"]));
    let page = page.filter(|(page, _)| page["source"]["type"] == "text");
    let ran = match (content, error) {
        (_, Some(code)) => Some(Ran::Failed(code.to_owned())),
        (Some(content), _) if result.is_some_and(|result| result["is_error"] == true) => {
            Some(Ran::Failed(words(content)))
        }
        (Some(content), _) if text(block, "type") == "mcp_tool_use" => {
            Some(Ran::Done(document(&json!(words(content)))))
        }
        (Some(content), _) => match page {
            Some((page, url)) => {
                Some(Ran::Done(json!([{"url": url, "title": page["title"], "text": page["source"]["data"]}])))
            }
            // What a web search found is encrypted, and a page may be a file.
            None => (!SEARCHES.contains(&tool)).then(|| Ran::Done(content.clone())),
        },
        _ => None,
    };
    let arguments = block.get("input").cloned().unwrap_or(Value::Object(Map::new()));
    Some(HostedCall { id: id.to_owned(), tool: tool.to_owned(), arguments, ran })
}

fn of_gemini(candidate: &Value) -> Vec<HostedCall> {
    let parts = list(&candidate["content"], "parts");
    let code = |(place, part): (usize, &Value)| {
        let arguments = part.get("executableCode")?.clone();
        let result = parts.get(place + 1).and_then(|next| next.get("codeExecutionResult"));
        let ran = result.map(|result| match text(result, "outcome") {
            "OUTCOME_OK" => Ran::Done(result["output"].clone()),
            outcome => Ran::Failed(format!("{outcome}: {}", text(result, "output"))),
        });
        Some(HostedCall { id: String::new(), tool: "code_execution".to_owned(), arguments, ran })
    };
    let grounding = &candidate["groundingMetadata"];
    let searched = ["webSearchQueries", "groundingChunks"].iter().any(|member| !list(grounding, member).is_empty());
    let queries = || json!({"queries": grounding["webSearchQueries"]});
    let searched = searched.then(|| search("google_search", queries()));
    searched.into_iter().chain(parts.iter().enumerate().filter_map(code)).collect()
}

/// `google_search` of `googleSearch`.
fn snake(name: &str) -> String {
    let letter =
        |one: char| if one.is_ascii_uppercase() { format!("_{}", one.to_ascii_lowercase()) } else { one.into() };
    name.chars().map(letter).collect()
}

/// The texts of a list of blocks, or one text.
fn words(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten();
    content.as_str().map_or_else(|| parts.map(|part| text(part, "text")).collect(), str::to_owned)
}

/// JSON in a text, or the value.
fn document(value: &Value) -> Value {
    value.as_str().map_or_else(|| value.clone(), crate::provider::tool_result::document)
}

fn list<'v>(document: &'v Value, member: &str) -> &'v [Value] {
    document[member].as_array().map_or(&[], Vec::as_slice)
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(dialect: &str, answer: &Value) -> Vec<(String, Value, Option<Ran>)> {
        calls(dialect, answer).into_iter().map(|call| (call.tool, call.arguments, call.ran)).collect()
    }

    #[test]
    fn items_of_responses_are_calls_with_their_results() {
        let answer = json!({"output": [
            {"type": "reasoning", "id": "rs"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "frost"}},
            {"type": "file_search_call", "id": "fs", "queries": ["frost"], "results": [{"file_id": "f1", "text": "so"}]},
            {"type": "mcp_call", "id": "m", "name": "look", "arguments": "{\"query\": \"frost\"}", "output": "{\"hits\": []}", "error": null},
            {"type": "mcp_call", "id": "n", "name": "look", "arguments": "{}", "output": null, "error": "gone"},
            {"type": "code_interpreter_call", "id": "ci", "code": "1+1", "outputs": null, "status": "failed"},
            {"type": "shell_call", "id": "s", "call_id": "own", "action": {"commands": ["ls"]}},
            {"type": "shell_call", "id": "t", "call_id": "theirs", "action": {"commands": ["pwd"]}},
            {"type": "shell_call_output", "call_id": "theirs", "output": [{"stdout": "/"}]},
            {"type": "message", "content": []}]});
        assert_eq!(
            of(openai_responses::NAME, &answer),
            [
                ("web_search".into(), json!({"type": "search", "query": "frost"}), None),
                (
                    "file_search".into(),
                    json!({"queries": ["frost"]}),
                    Some(Ran::Done(json!([{"file_id": "f1", "text": "so"}])))
                ),
                ("look".into(), json!({"query": "frost"}), Some(Ran::Done(json!({"hits": []})))),
                ("look".into(), json!({}), Some(Ran::Failed("gone".into()))),
                (
                    "code_interpreter".into(),
                    json!({"code": "1+1"}),
                    Some(Ran::Failed("the provider says that it failed".into()))
                ),
                ("shell".into(), json!({"commands": ["pwd"]}), Some(Ran::Done(json!([{"stdout": "/"}])))),
            ]
        );
        assert_eq!(calls(openai_chat::NAME, &answer), []);
    }

    #[test]
    fn blocks_of_messages_are_calls_with_their_results() {
        let page = json!({"type": "web_fetch_result", "url": "https://a", "content": {"type": "document", "title": "A",
            "source": {"type": "text", "data": "so"}}});
        let answer = json!({"content": [
            {"type": "tool_use", "id": "t", "name": "f", "input": {}},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "frost"}},
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "web_search_result", "url": "https://a"}]},
            {"type": "server_tool_use", "id": "u", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "u", "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"}},
            {"type": "server_tool_use", "id": "w", "name": "web_fetch", "input": {"url": "https://a"}},
            {"type": "web_fetch_tool_result", "tool_use_id": "w", "content": page},
            {"type": "server_tool_use", "id": "x", "name": "web_fetch", "input": {"url": "https://a/b.pdf"}},
            {"type": "web_fetch_tool_result", "tool_use_id": "x", "content": {"content": {"source": {"type": "base64", "data": "JVBE"}}}},
            {"type": "mcp_tool_use", "id": "m", "name": "look", "server_name": "d", "input": {"query": "frost"}},
            {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": false, "content": [{"type": "text", "text": "[1]"}]},
            {"type": "mcp_tool_use", "id": "n", "name": "look", "server_name": "d", "input": {}},
            {"type": "mcp_tool_result", "tool_use_id": "n", "is_error": true, "content": [{"type": "text", "text": "gone"}]}]});
        let found = of(anthropic_messages::NAME, &answer);
        let ran: Vec<(&str, Option<Ran>)> = found.iter().map(|(tool, _, ran)| (tool.as_str(), ran.clone())).collect();
        assert_eq!(
            ran,
            [
                ("web_search", None),
                ("web_search", Some(Ran::Failed("unavailable".into()))),
                ("web_fetch", Some(Ran::Done(json!([{"url": "https://a", "title": "A", "text": "so"}])))),
                ("web_fetch", None),
                ("look", Some(Ran::Done(json!([1])))),
                ("look", Some(Ran::Failed("gone".into()))),
            ]
        );
        assert_eq!(found[4].1, json!({"query": "frost"}));
    }

    #[test]
    fn what_gemini_grounds_or_executes_and_what_a_chat_model_cites_are_calls() {
        let parts = json!([{"executableCode": {"language": "PYTHON", "code": "1+1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}, {"text": "2"}]);
        let answer = json!({"candidates": [{"content": {"parts": parts}, "groundingMetadata": {"webSearchQueries": ["frost"]}}]});
        assert_eq!(
            of(gemini::NAME, &answer),
            [
                ("google_search".into(), json!({"queries": ["frost"]}), None),
                ("code_execution".into(), json!({"language": "PYTHON", "code": "1+1"}), Some(Ran::Done(json!("2")))),
            ]
        );
        assert_eq!(calls(gemini::NAME, &json!({"candidates": [{"groundingMetadata": {}}]})), []);
        let cited = json!({"choices": [{"message": {"content": "so", "annotations": [{"type": "url_citation"}]}}]});
        assert_eq!(of(openai_chat::NAME, &cited), [("web_search".into(), json!({}), None)]);
    }

    #[test]
    fn tools_of_the_provider_are_offered_under_the_names_of_their_calls() {
        let request = json!({"tools": [{"type": "function", "name": "f"}, {"type": "web_search_preview_2025_03_11"},
            {"type": "web_search_2025_08_26"}, {"type": "shell"}, {"type": "computer_use_preview"},
            {"type": "mcp", "server_label": "d", "allowed_tools": ["look"]}, {"type": "mcp", "server_label": "e"}]});
        assert_eq!(
            offered(openai_responses::NAME, &request),
            ["web_search", "web_search", "shell", "computer", "look"]
        );
        let answer = json!({"output": [{"type": "mcp_list_tools", "tools": [{"name": "look"}]}]});
        assert_eq!(offered(openai_responses::NAME, &answer), ["look"]);
        let request = json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}, {"name": "own", "input_schema": {}}]});
        assert_eq!(offered(anthropic_messages::NAME, &request), ["web_search"]);
        for (tool, unnamed) in [
            (json!({"type": "mcp", "server_label": "d"}), true),
            (json!({"type": "mcp", "allowed_tools": ["look"]}), false),
            (json!({"type": "mcp_toolset", "mcp_server_name": "d"}), true),
            (json!({"type": "web_search"}), false),
        ] {
            assert_eq!(offers_unnamed(&json!({"tools": [tool]})), unnamed, "{tool}");
        }
        let request = json!({"tools": [{"functionDeclarations": []}, {"googleSearch": {}, "codeExecution": {}}]});
        assert_eq!(offered(gemini::NAME, &request), ["google_search", "code_execution"]);
    }
}
