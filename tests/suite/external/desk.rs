//! Small agents as people write them, and a provider with declared behaviour: what each asks is its kind.

use super::super::ports;
use super::super::project::{Outcome, Project};
use super::apis::{self, Asks};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::runtime::Runtime;

/// What an agent asks in a turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// One completion.
    Chat,
    /// The same with a trailing slash.
    Slash,
    /// The list of models, and nothing else.
    Models,
    /// The same as Anthropic's client asks for it.
    ModelsOfAnthropic,
    /// A completion with an `Origin`, under another host's name, with a body that is not JSON.
    Origin,
    Host,
    NotJson,
    /// A path that is not served beside a completion; sorry where that is not answered.
    Speech,
    /// A search and an answer by another API than Chat Completions.
    Api(Asks),
    /// Paths of other APIs that are not served.
    Batches,
    Assistants,
    Predict,
    /// A request to Bedrock that is signed.
    Signed,
    /// A completion over TLS, and words that are no HTTP.
    Tls,
    NoHttp,
    /// Nothing.
    Nothing,
    /// A completion, of the provider itself.
    Beside,
    /// The list of models here, and a completion of the provider itself.
    ModelsBeside,
    /// The list of models, and a completion.
    ModelsThenChat,
    /// A forced retrieval, its documents in the system prompt of the answer, `sources` in the reply.
    TwoStage,
    /// The same without sources in the reply, and without documents in the prompt.
    Silent,
}

#[derive(Debug)]
struct Inside {
    kind: Mutex<Kind>,
    proxy: SocketAddr,
    provider: SocketAddr,
    modes: Mutex<Vec<String>>,
    /// What the agent was answered last, where it asks by another API.
    heard: Mutex<String>,
}

/// An agent, its provider, and a project that tests it.
pub struct Desk {
    pub project: Project,
    inside: Arc<Inside>,
    agent: SocketAddr,
    provider: Option<Runtime>,
    _agent: Runtime,
}

impl Desk {
    /// With `more` in the scenario's `target`, and these lines before its cases.
    pub fn set(kind: Kind, more: &str, lines: &str) -> Self {
        let (provider, provider_at) = served(Router::new().fallback(provide));
        let proxy: SocketAddr = ports::free_address().parse().expect("an address");
        let inside = Arc::new(Inside {
            kind: Mutex::new(kind),
            proxy,
            provider: provider_at,
            modes: Mutex::default(),
            heard: Mutex::default(),
        });
        let (agent, agent_at) = served(Router::new().fallback(reply).with_state(Arc::clone(&inside)));
        let project = Project::empty();
        let settings = format!(
            "scenarios: [desk.yaml]\ncassettes: cassettes\nreports: reports\nproviders:\n  fake: {{dialect: openai-chat, \
             base_url: 'http://{provider_at}/v1'}}\n"
        );
        project.write("ragcheck.yaml", &settings);
        let scenario = format!(
            "scenario: desk\nflow: external\nmodel: {{provider: fake, name: fake-1}}\nproxy: {proxy}\n\
             target: {{http: 'http://{agent_at}/chat'{more}}}\nreset: {{http: 'http://{agent_at}/reset'}}\n{lines}cases:\n"
        );
        let case = "  - {case: helmet, ask: What about the helmet?, expect: {answer: {contains: [helmet]}}}\n";
        project.write("desk.yaml", &(scenario + case));
        Self { project, inside, agent: agent_at, provider: Some(provider), _agent: agent }
    }

    pub fn run(&self, mode: &str) -> Outcome {
        self.project.run(&["run", "--mode", mode, "--no-history", "--agent", &format!("http://{}", self.agent)])
    }

    /// The same agent asks otherwise from now on.
    pub fn becomes(&self, kind: Kind) {
        *self.inside.kind.lock().expect("a kind") = kind;
    }

    pub fn stop_provider(&mut self) {
        self.provider.take().expect("it runs").shutdown_background();
    }

    /// The modes that the agent was told since it was last asked for them, turn by turn.
    pub fn modes(&self) -> Vec<String> {
        std::mem::take(&mut *self.inside.modes.lock().expect("modes"))
    }

    /// What the agent was answered last, where it asks by another API.
    pub fn heard(&self) -> String {
        self.inside.heard.lock().expect("words").clone()
    }

    /// The only trial: its verdict, and its error.
    pub fn trial(&self) -> (String, String) {
        let run = self.project.latest("run.json");
        let row = &run["trials"][0];
        (row["verdict"].as_str().unwrap_or_default().to_owned(), row["error"].as_str().unwrap_or_default().to_owned())
    }

    /// Records, stops the provider, and replays: both pass.
    pub fn passes_recorded_and_replayed(&mut self) {
        for mode in ["record", "replay"] {
            let outcome = self.run(mode);
            outcome.expect_code(0);
            assert!(outcome.stdout.contains("1 trial: 1 PASS"), "{mode}: {}", outcome.stdout);
            if mode == "record" {
                self.stop_provider();
            }
        }
    }

    /// A run in which nothing is said about the agent: ERROR, exit code 3, with these words wherever a reader looks.
    pub fn is_an_error(&self, outcome: &Outcome, words: &str) {
        outcome.expect_code(3);
        let printed = plain(&outcome.stdout);
        let first = printed.find(words).unwrap_or_else(|| panic!("{words} is missing in\n{printed}{}", outcome.stderr));
        assert!(!printed.contains("FAIL"), "no verdict on the agent: {printed}");
        let next = printed.find("see it: ").expect("the list of what to do");
        assert!(printed[..first].contains("What to do") && first < next, "the cause first: {printed}");
        let (verdict, error) = self.trial();
        assert_eq!(verdict, "ERROR");
        assert!(error.contains(words), "{error}");
        let run = self.project.newest();
        let page = self.project.read(&format!("{run}/index.html")).replace("&#39;", "'").replace("&#x27;", "'");
        assert!(page.contains(words) || page.contains(&words.replace('/', "&#x2F;")), "{words} is not in the page");
        let shown = self.project.run(&["show", &format!("{run}/desk/helmet/external.base.1")]);
        assert!(plain(&shown.stdout).contains(words), "{}{}", shown.stdout, shown.stderr);
    }
}

/// What was printed, without the ends of its lines.
pub fn plain(printed: &str) -> String {
    printed.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[expect(clippy::disallowed_methods, reason = "a server of its own")]
fn served(routes: Router) -> (Runtime, SocketAddr) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("one");
    let address = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move { axum::serve(listener, routes).await });
        address
    });
    (runtime, address)
}

/// The provider: it searches where it must, and answers else.
async fn provide(method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    if let Some(answer) = apis::provide(&uri, &headers, &body) {
        return answer;
    }
    if method == Method::GET && uri.path() == "/v1/models" {
        return axum::Json(json!({"object": "list", "data": [{"id": "fake-1", "object": "model"}]})).into_response();
    }
    assert_eq!(uri.path(), "/v1/chat/completions", "the provider is asked in its own words");
    let asked: Value = serde_json::from_slice(&body).expect("JSON");
    let (message, finish) = if asked["tool_choice"] == "required" {
        let function = json!({"name": "retrieve_documents", "arguments": "{\"query\": \"helmet\"}"});
        let call = json!({"id": "call_1", "type": "function", "function": function});
        (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
    } else {
        (json!({"role": "assistant", "content": "A helmet comes with every kayak [1]."}), "stop")
    };
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    let choice = json!({"index": 0, "message": message, "finish_reason": finish});
    axum::Json(
        json!({"id": "x", "object": "chat.completion", "model": asked["model"], "choices": [choice], "usage": usage}),
    )
    .into_response()
}

/// The agent.
async fn reply(State(inside): State<Arc<Inside>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    if uri.path() == "/reset" {
        return axum::Json(json!({})).into_response();
    }
    let mode = headers.get("x-ragcheck-mode").map(|mode| mode.to_str().expect("text").to_owned());
    inside.modes.lock().expect("modes").push(mode.unwrap_or_default());
    let turn: Value = serde_json::from_slice(&body).expect("JSON");
    let question = turn["message"].as_str().expect("a question");
    let kind = *inside.kind.lock().expect("a kind");
    let model = format!("http://{}/model/v1", inside.proxy);
    let chat = json!({"model": "fake-1", "messages": [{"role": "user", "content": question}]});
    let client = reqwest::Client::new();
    let post = |url: String| client.post(url).header("content-type", "application/json").body(chat.to_string());
    let completions = format!("{model}/chat/completions");
    if [Kind::ModelsBeside, Kind::ModelsThenChat].contains(&kind) {
        client.get(format!("{model}/models")).send().await.expect("an answer");
    }
    let asked = match kind {
        Kind::Chat | Kind::ModelsThenChat => post(completions),
        Kind::Slash => post(format!("{completions}/")),
        Kind::Models => client.get(format!("{model}/models")),
        Kind::ModelsOfAnthropic => client.get(format!("{model}/models")).header("anthropic-version", "2023-06-01"),
        Kind::Origin => post(completions).header("origin", "http://localhost:3000"),
        Kind::Host => post(completions).header("host", "llm-gateway:9321"),
        Kind::NotJson => client.post(completions).body("model=fake-1"),
        Kind::Speech => {
            let _ = post(format!("{model}/audio/speech?voice=s3cret")).send().await;
            post(completions)
        }
        Kind::Api(asks) => {
            let (answer, heard) = apis::answer(&client, inside.proxy, asks, question).await;
            *inside.heard.lock().expect("words") = heard;
            return axum::Json(json!({ "answer": answer })).into_response();
        }
        Kind::Batches => post(format!("{model}/messages/batches")),
        Kind::Assistants => post(format!("{model}/assistants")),
        Kind::Predict => post(format!("http://{}/model/v1beta/models/g:predict", inside.proxy)),
        Kind::Tls => post(completions.replace("http:", "https:")),
        Kind::NoHttp => return no_http(inside.proxy).await,
        Kind::Signed => post(format!("http://{}/model/model/m%3A0/converse", inside.proxy))
            .header("authorization", "AWS4-HMAC-SHA256 Credential=x, SignedHeaders=host, Signature=0"),
        Kind::Beside | Kind::ModelsBeside => post(format!("http://{}/v1/chat/completions", inside.provider)),
        Kind::Nothing => return axum::Json(json!({"answer": "For the helmet please call the desk."})).into_response(),
        Kind::TwoStage | Kind::Silent => return two_stages(&client, &completions, question, kind).await,
    };
    // As many agents do, it says sorry when its model cannot be asked.
    let status = asked.send().await.map_or(0, |answered| answered.status().as_u16());
    axum::Json(json!({"answer": format!("Sorry, for the helmet call the desk ({status}).")})).into_response()
}

/// Talks to the proxy in other words than those of HTTP, and says sorry.
async fn no_http(proxy: SocketAddr) -> Response {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(proxy).await.expect("the proxy");
    stream.write_all(b"HELO desk\r\n\r\n").await.expect("sent");
    let _ = stream.read_to_end(&mut Vec::new()).await;
    axum::Json(json!({"answer": "Sorry, for the helmet call the desk."})).into_response()
}

async fn two_stages(client: &reqwest::Client, url: &str, question: &str, kind: Kind) -> Response {
    let tool = json!({"type": "function", "function": {"name": "retrieve_documents", "description": "Searches.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}}});
    let ask = async |system: &str, choice: &str| {
        let messages = json!([{"role": "system", "content": system}, {"role": "user", "content": question}]);
        let body = json!({"model": "fake-1", "messages": messages, "tools": [tool], "tool_choice": choice});
        let answered = client
            .post(url)
            .header("content-type", "application/json")
            .body(body.to_string())
            .send()
            .await
            .expect("an answer")
            .text()
            .await
            .expect("text");
        let answered: Value = serde_json::from_str(&answered).expect("JSON");
        answered["choices"][0]["message"].clone()
    };
    ask("You MUST call retrieve_documents.", "required").await;
    let document = json!({"id": "manual#4", "filename": "manual.md", "score": 0.9,
        "text": "A helmet comes with every kayak that is rented."});
    let words = if kind == Kind::Silent {
        "Answer briefly."
    } else {
        "Documents:\n[1] A helmet comes with every kayak that is rented."
    };
    let answer = ask(words, "none").await["content"].clone();
    let sources = if kind == Kind::Silent { Value::Null } else { json!([document]) };
    let mut reply = json!({ "answer": answer });
    if !sources.is_null() {
        reply["sources"] = sources;
    }
    axum::Json(reply).into_response()
}
