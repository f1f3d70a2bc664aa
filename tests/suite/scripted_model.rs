//! A model behind Chat Completions whose answers are a function of the request: a script.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The tool that a script calls, and its arguments; `obeys` is what the test has set.
type Answer = fn(request: &Value, obeys: bool) -> (&'static str, Value);

/// A scripted model on loopback, as long as the test runs.
pub struct Script {
    pub address: String,
    pub obeys: Arc<AtomicBool>,
    pub asked: Arc<AtomicU32>,
}

impl Script {
    pub fn start(answer: Answer) -> Self {
        let (obeys, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let (does, count) = (Arc::clone(&obeys), Arc::clone(&asked));
        let address = serve(move |_| {
            let (does, count) = (Arc::clone(&does), Arc::clone(&count));
            move |request: &Value| {
                count.fetch_add(1, Ordering::SeqCst);
                completion(request, answer(request, does.load(Ordering::SeqCst)))
            }
        });
        Self { address, obeys, asked }
    }
}

/// Serves Chat Completions on loopback as long as the test runs; `model` makes what answers the requests of one connection, by
/// its number. Returns the address.
pub fn serve<M: FnMut(&Value) -> Value + Send + 'static>(model: impl Fn(u64) -> M + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for (number, stream) in (0..).zip(listener.incoming().map_while(Result::ok)) {
            let model = model(number);
            std::thread::spawn(move || answer(stream, model));
        }
    });
    address
}

fn answer(mut stream: TcpStream, mut model: impl FnMut(&Value) -> Value) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(body) = body(&mut reader)? {
        let said = model(&serde_json::from_slice(&body).unwrap_or_default()).to_string();
        let length = said.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
        // In one piece: a second one would wait 40 ms for the acknowledgement of the first.
        stream.write_all((head + &said).as_bytes())?;
    }
    Ok(())
}

/// The body of the next request on a connection; `None` at its end.
pub fn body(reader: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let (mut length, mut line) = (0, String::new());
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    while line.trim() != "" {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
        reader.read_line(&mut line)?;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(body))
}

/// The results of tools in a request, in order.
pub fn results(request: &Value) -> Vec<&str> {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let tools = messages.iter().filter(|message| message["role"] == "tool");
    tools.filter_map(|message| message["content"].as_str()).collect()
}

fn completion(request: &Value, (tool, arguments): (&str, Value)) -> Value {
    let function = json!({"name": tool, "arguments": arguments.to_string()});
    let call = json!({"id": format!("call_{}", results(request).len()), "type": "function", "function": function});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    json!({
        "id": "scripted", "object": "chat.completion", "created": 0, "model": "any",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    })
}
