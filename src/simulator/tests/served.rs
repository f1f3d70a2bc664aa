//! The simulator over loopback.

use super::*;

async fn post(
    client: &reqwest::Client,
    url: String,
    fault: &str,
    body: &Value,
) -> (u16, reqwest::header::HeaderMap, Value) {
    let request = client.post(url).header(crate::simulator::server::FAULT_HEADER, fault).body(body.to_string());
    let response = request.send().await.expect("a response");
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = response.text().await.expect("a body");
    (status, headers, serde_json::from_str(&text).expect("JSON"))
}

#[tokio::test]
async fn each_api_of_the_model_answers_at_its_mount_and_continues_what_it_said() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let clock = Arc::new(RealClock::start());
    let (address, server) = serve(behaviour(), "127.0.0.1:0".parse().expect("address"), clock).await.expect("bound");
    let client = reqwest::Client::builder().no_proxy().build().expect("client");
    let schema = json!({"type": "object", "properties": {"query": {"type": "string"}}});
    let functions = |key: &str| json!([{"name": "search_docs", "description": "Searches.", key: schema}]);
    let work = async {
        let ask = async |path: &str, fault: &str, body: &Value| {
            post(&client, format!("http://{address}{path}"), fault, body).await
        };
        let asked = json!([{"role": "user", "content": PUMP}]);
        let messages = json!({"model": "m", "max_tokens": 9, "messages": asked, "tools": functions("input_schema")});
        let contents = json!([{"role": "user", "parts": [{"text": PUMP}]}]);
        let gemini = json!({"contents": contents, "tools": [{"functionDeclarations": functions("parameters")}]});
        let mut function = functions("parameters")[0].clone();
        function["type"] = json!("function");
        let responses = json!({"model": "m", "input": PUMP, "tools": [function]});
        let generate = "/v1beta/models/m:generateContent";
        for (path, body, place) in [
            ("/model/v1/messages", &messages, "/content/0/name"),
            ("/v1/messages", &messages, "/content/0/name"),
            (&format!("/model{generate}"), &gemini, "/candidates/0/content/parts/0/functionCall/name"),
            (generate, &gemini, "/candidates/0/content/parts/0/functionCall/name"),
            ("/model/v1/responses", &responses, "/output/0/name"),
        ] {
            let (status, headers, reply) = ask(path, "plain", body).await;
            assert_eq!((status, reply.pointer(place)), (200, Some(&json!("search_docs"))), "{path}: {reply}");
            assert!(headers.contains_key(crate::simulator::server::NAME_HEADER), "{path}");
            let limited = [ask(path, "limited", body).await.0, ask(path, "limited", body).await.0];
            assert_eq!(limited, [429, 200], "{path}");
        }
        let (_, _, refused) = ask("/v1/messages", "plain", &json!({"messages": 1})).await;
        assert_eq!((&refused["type"], &refused["error"]["type"]), (&json!("error"), &json!("invalid_request_error")));
        let (_, _, refused) = ask(generate, "plain", &json!({"contents": []})).await;
        assert_eq!(refused["error"]["status"], "INVALID_ARGUMENT");

        let (_, _, first) = ask("/model/v1/responses", "plain", &responses).await;
        let found = json!([{"text": "The irrigation pump runs at 6 bar.", "id": "pump#1"}]).to_string();
        let result = json!({"type": "function_call_output", "call_id": first["output"][0]["call_id"], "output": found});
        let mut next =
            json!({"model": "m", "input": [result], "previous_response_id": first["id"], "tools": [function]});
        let result = &next["input"][0].clone();
        let (status, _, second) = ask("/model/v1/responses", "plain", &next).await;
        let text = second.pointer("/output/0/content/0/text").and_then(Value::as_str).unwrap_or_default();
        assert!(status == 200 && text.contains("6 bar"), "{second}");
        let reference = json!({"type": "item_reference", "id": first["output"][0]["id"]});
        let named = json!({"model": "m", "input": [asked[0], reference, result], "tools": [function]});
        let (_, _, again) = ask("/model/v1/responses", "plain", &named).await;
        assert_eq!(again.pointer("/output/0/content/0/text").and_then(Value::as_str), Some(text), "{again}");
        next["previous_response_id"] = json!("resp_unknown");
        assert_eq!(ask("/model/v1/responses", "plain", &next).await.0, 400);

        let mut created = messages.clone();
        created["thread"] = json!({"type": "create"});
        let (_, _, first) = ask("/v1/messages", "plain", &created).await;
        let result = json!({"type": "tool_result", "tool_use_id": first["content"][0]["id"], "content": found});
        let mut next = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [result]}],
            "thread": {"type": "continue", "previous_message_id": first["id"]}});
        let (status, _, second) = ask("/v1/messages", "plain", &next).await;
        let text = second.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default();
        assert!(status == 200 && text.contains("6 bar"), "{second}");
        next["thread"]["previous_message_id"] = json!("msg_unknown");
        assert_eq!(ask("/v1/messages", "plain", &next).await.0, 400);

        let question = json!({"model": "perplexity/sonar", "input": "frost in the valley"});
        let (_, _, found) = ask("/search/v1/responses", "plain", &question).await;
        assert_eq!(found["output"][0]["type"], "search_results", "the search service has the same path");
    };
    tokio::select! {
        ended = server => panic!("the server ended: {ended:?}"),
        () = work => {}
    }
}

#[tokio::test]
async fn both_dialects_answer_over_loopback_with_their_headers_and_failures() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let clock = Arc::new(RealClock::start());
    let (address, server) = serve(behaviour(), "127.0.0.1:0".parse().expect("address"), clock).await.expect("bound");
    let client = reqwest::Client::builder().no_proxy().build().expect("client");
    let work = async {
        let functions: Vec<Value> =
            tools().iter().map(|tool| json!({"type": "function", "function": {"name": tool.name}})).collect();
        let body = json!({"model": "m", "messages": [{"role": "user", "content": PUMP}], "tools": functions});
        let chat = format!("http://{address}/v1/chat/completions");
        let (status, headers, reply) = post(&client, chat.clone(), "plain", &body).await;
        assert_eq!(
            (status, &headers[crate::simulator::server::NAME_HEADER]),
            (200, &"garden".parse().expect("header"))
        );
        let latency: u64 =
            headers[crate::simulator::server::LATENCY_HEADER].to_str().expect("text").parse().expect("number");
        assert!(latency > 100_000, "{latency} us");
        assert_eq!(reply["choices"][0]["finish_reason"], "tool_calls");
        let call = &reply["choices"][0]["message"]["tool_calls"][0]["function"];
        assert_eq!(call["name"], "knowledge_base_search");
        assert!(reply["usage"]["total_tokens"].as_u64() > Some(0));
        let limited: Vec<u16> = vec![
            post(&client, chat.clone(), "limited", &body).await.0,
            post(&client, chat.clone(), "limited", &body).await.0,
            post(&client, chat.clone(), "limited", &body).await.0,
        ];
        assert_eq!(limited, [429, 200, 429], "after its answer the failure begins anew");

        let question =
            json!({"model": "perplexity/sonar", "input": "frost in the valley", "tools": [{"type": "web_search"}]});
        for path in ["/v1/agent", "/v1/responses"] {
            let (status, _, reply) = post(&client, format!("http://{address}{path}"), "plain", &question).await;
            assert_eq!((status, &reply["status"]), (200, &json!("completed")));
            assert_eq!(reply["output"][0]["results"][1]["id"], 2);
            assert_eq!(reply["output"][1]["content"][0]["annotations"][0]["url"], "https://example.org/frost");
        }
        let agent = format!("http://{address}/v1/agent");
        let mut seen = Vec::new();
        for fault in ["outage", "outage", "outage", "gone"] {
            seen.push(post(&client, agent.clone(), fault, &question).await.0);
        }
        assert_eq!(seen, [503, 503, 200, 503]);
        assert_eq!(post(&client, chat, "plain", &json!({"messages": []})).await.0, 400);
        assert_eq!(post(&client, format!("http://{address}/v2/other"), "plain", &json!({})).await.0, 404);
        let models = client.get(format!("http://{address}/v1/models")).send().await.expect("models");
        assert_eq!(models.status().as_u16(), 200);
    };
    tokio::select! {
        ended = server => panic!("the server ended: {ended:?}"),
        () = work => {}
    }
}
