//! The service as a process of its own, and one HTTP exchange with it.

use crate::project::Project;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A service that is stopped with the test.
pub struct Service {
    child: Child,
    pub address: String,
}

/// One question.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub query: &'a str,
    pub session: Option<&'a str>,
    pub tenant: Option<&'a str>,
}

impl<'a> Asked<'a> {
    pub fn new(query: &'a str) -> Self {
        Self { query, session: None, tenant: None }
    }

    pub fn body(&self) -> Value {
        let mut body = json!({"query": self.query});
        if let Some(session) = self.session {
            body["session_id"] = json!(session);
        }
        if let Some(tenant) = self.tenant {
            body["tenant_id"] = json!(tenant);
        }
        body
    }
}

/// What came back.
#[derive(Debug)]
pub struct Answered {
    /// 0 where the connection broke.
    pub status: u16,
    pub text: String,
    /// The text as JSON, null where it is none.
    pub body: Value,
}

impl Service {
    /// Serves a flow of the project on a free port.
    pub fn start(project: &Project, flow: &str, more: &[&str]) -> Self {
        let usual = ["serve", "--flow", flow, "--listen", "127.0.0.1:0"];
        let arguments: Vec<&str> = usual.iter().chain(more).copied().collect();
        Self::spawn(&mut project.command(&arguments))
    }

    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the service");
        let mut lines = BufReader::new(child.stderr.take().expect("stderr"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("a line");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split(';').next());
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        // What it prints later is read, so that it never waits for a reader.
        std::thread::spawn(move || {
            let mut rest = String::new();
            let _ = lines.read_to_string(&mut rest);
        });
        Self { child, address }
    }

    pub fn ask(&self, asked: &Asked<'_>) -> Answered {
        post(&self.address, &asked.body(), &[])
    }

    pub fn get(&self, path: &str) -> Answered {
        exchange(&self.address, "GET", path, &self.address, &Value::Null, &[])
    }

    pub fn post_to(&self, path: &str) -> Answered {
        exchange(&self.address, "POST", path, &self.address, &json!({}), &[])
    }

    pub fn signal(&self, signal: &str) {
        let done = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(done.is_ok_and(|status| status.success()));
    }

    /// The exit code of a service that ends within a minute.
    pub fn ends(&mut self) -> Option<i32> {
        for _ in 0..600 {
            if let Some(status) = self.child.try_wait().expect("a process") {
                return status.code();
            }
            wait(Duration::from_millis(100));
        }
        panic!("it does not end");
    }

    /// The exit code, once it has ended.
    pub fn wait(&mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn post(address: &str, body: &Value, headers: &[(&str, &str)]) -> Answered {
    exchange(address, "POST", "/api/chat/query", address, body, headers)
}

/// One request on a connection of its own.
pub fn exchange(
    address: &str,
    method: &str,
    path: &str,
    host: &str,
    body: &Value,
    headers: &[(&str, &str)],
) -> Answered {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let more: String = headers.iter().flat_map(|(name, value)| [*name, ": ", *value, "\r\n"]).collect();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{more}\r\n",
        text.len()
    );
    let broken = || Answered { status: 0, text: String::new(), body: Value::Null };
    let Ok(mut stream) = TcpStream::connect(address) else { return broken() };
    let _ = stream.set_read_timeout(Some(Duration::from_mins(1)));
    // A server that refuses a long body may answer before it was sent.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(text.as_bytes()));
    let mut raw = Vec::new();
    let _ = stream.read_to_end(&mut raw);
    let raw = String::from_utf8_lossy(&raw).into_owned();
    let Some((head, body)) = raw.split_once("\r\n\r\n") else { return broken() };
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let Some(text) = (if chunked { unchunked(body) } else { Some(body.to_owned()) }) else { return broken() };
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    if length.is_some_and(|length: usize| text.len() < length) {
        return broken();
    }
    let body = serde_json::from_str(&text).unwrap_or(Value::Null);
    Answered { status, text, body }
}

fn unchunked(body: &str) -> Option<String> {
    let (mut text, mut rest) = (String::new(), body);
    loop {
        let (size, after) = rest.split_once("\r\n")?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        if size == 0 {
            return Some(text);
        }
        text.push_str(after.get(..size)?);
        rest = after.get(size + 2..)?;
    }
}

#[expect(clippy::disallowed_methods, reason = "the service is another process, with the machine's clock")]
pub fn wait(time: Duration) {
    std::thread::sleep(time);
}
