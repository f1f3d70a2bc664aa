//! An agent that is a program without a server: a turn is one line of JSON to its standard input, and its reply is the
//! next line of its standard output. What else it prints belongs on its standard error; what it printed before a turn is
//! never the reply to it.

use super::output::Output;
use crate::platform::clock::{BoxFuture, Clock};
use crate::platform::lock::lock;
use crate::platform::secrets;
use crate::transport::{HttpRequest, HttpResponse, Transport, TransportError};
use bytes::Bytes;
use futures_util::FutureExt;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

/// Bytes of one reply.
const LONGEST_LINE: u64 = 16 << 20;

/// Characters of a reply that a message shows.
const SHOWN: usize = 120;

/// How long a line that follows a reply may take to arrive.
const STRAGGLES: Duration = Duration::from_millis(2);

/// Where loggers write how serious a record is.
const LEVEL: [&str; 7] = ["level", "levelname", "level_name", "LogLevel", "severity", "log.level", "lvl"];
/// What they write there and no answer does: how serious something is may be part of one.
const LEVELS: [&str; 4] = ["trace", "debug", "info", "information"];
/// When a record was written.
const TIMES: [&str; 8] = ["time", "timestamp", "Timestamp", "datetime", "asctime", "ts", "@timestamp", "@t"];
/// Members that only the records of one logger have together: Serilog's with its template or its text, and .NET's.
const OF_ONE_LOGGER: [[&str; 2]; 3] = [["@t", "@mt"], ["@t", "@m"], ["LogLevel", "EventId"]];

/// Both ends of a process.
pub(super) struct Pipes {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Pipes {
    pub(super) fn new(stdin: ChildStdin, stdout: ChildStdout) -> Self {
        Self { stdin, stdout: BufReader::new(stdout) }
    }

    /// Drops what was printed before a turn: it is no reply to it.
    fn drain(&mut self, output: &Output) {
        while let Some(Ok(bytes)) =
            self.stdout.fill_buf().now_or_never().filter(|read| read.as_ref().is_ok_and(|bytes| !bytes.is_empty()))
        {
            let count = bytes.len();
            output.add(bytes);
            self.stdout.consume(count);
        }
    }

    async fn exchange(&mut self, line: &str, output: &Output) -> std::io::Result<Vec<u8>> {
        self.stdin.write_all(format!("{line}\n").as_bytes()).await?;
        self.stdin.flush().await?;
        loop {
            let mut reply = Vec::new();
            (&mut self.stdout).take(LONGEST_LINE).read_until(b'\n', &mut reply).await?;
            if reply.is_empty() {
                return Err(std::io::Error::other("its standard output was closed"));
            }
            if reply.last() != Some(&b'\n') && reply.len() as u64 >= LONGEST_LINE {
                return Err(std::io::Error::other("the line is longer than 16 MiB"));
            }
            if is_reply(&reply) {
                return Ok(reply);
            }
            output.add(&reply);
        }
    }
}

/// Whether a line is JSON and not the record of a logger, or an object that was meant as JSON: it is then a reply that
/// cannot be read. What a library prints is no reply.
fn is_reply(line: &[u8]) -> bool {
    // .NET and PHP may write a byte order mark before their first line.
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    match line.trim_ascii_start().first() {
        Some(b'[' | b'"') => serde_json::from_slice::<IgnoredAny>(line).is_ok(),
        Some(b'{') => match serde_json::from_slice::<BTreeMap<Cow<'_, str>, serde_json::Value>>(line) {
            Ok(members) => {
                let has = |names: &[&str]| names.iter().any(|name| members.contains_key(*name));
                let names_level = LEVEL
                    .iter()
                    .filter_map(|name| members.get(*name)?.as_str())
                    .any(|level| LEVELS.iter().any(|known| level.eq_ignore_ascii_case(known)));
                let answers = has(&["answer", "reply", "response"]);
                let is_record = names_level && has(&["message", "msg", "event"]);
                let is_of_one = OF_ONE_LOGGER.iter().any(|pair| pair.iter().all(|name| has(&[*name])));
                answers || !(is_record || is_of_one || has(&LEVEL) && has(&TIMES))
            }
            Err(_) => line.trim_ascii_start()[1..].trim_ascii_start().first() == Some(&b'"'),
        },
        _ => false,
    }
}

/// Sends turns as lines.
pub(in crate::trial::external) struct LineTransport {
    pipes: tokio::sync::Mutex<Pipes>,
    output: Output,
    clock: Arc<dyn Clock>,
    /// Whether every line that was sent has had its reply.
    in_step: AtomicBool,
    /// Whether a process of its kind has replied to a turn.
    replied: Arc<AtomicBool>,
    /// The beginning of the line that was taken for its last reply, without secrets.
    taken: Mutex<String>,
}

impl LineTransport {
    pub(super) fn new(pipes: Pipes, output: Output, replied: Arc<AtomicBool>, clock: Arc<dyn Clock>) -> Self {
        let (pipes, in_step) = (tokio::sync::Mutex::new(pipes), AtomicBool::new(true));
        Self { pipes, output, clock, in_step, replied, taken: Mutex::default() }
    }

    /// Writes a space before the first line, which JSON ignores: once it is read, the process waits for its first turn.
    pub(super) async fn announce(&self) {
        let mut pipes = self.pipes.lock().await;
        // A process that has closed its standard input says so by its end.
        let _ = pipes.stdin.write_all(b" ").await;
        let _ = pipes.stdin.flush().await;
    }

    /// Whether the process has read everything that was written; true where the system does not tell.
    #[cfg(target_os = "linux")]
    pub(super) async fn is_read(&self) -> bool {
        rustix::io::ioctl_fionread(&self.pipes.lock().await.stdin).map_or(true, |left| left == 0)
    }

    /// Whether the process has read everything that was written: the system does not tell.
    #[cfg(not(target_os = "linux"))]
    pub(super) async fn is_read(&self) -> bool {
        true
    }

    /// Whether the next line is the reply to the next turn.
    pub(super) fn is_in_step(&self) -> bool {
        self.in_step.load(Ordering::SeqCst)
    }

    /// What to do if the line that was taken for its last reply is none.
    pub(in crate::trial::external) fn taken(&self) -> String {
        let taken = lock(&self.taken);
        format!(
            "the line taken for its reply is {taken}; if that is a log line or an event, write it to standard error"
        )
    }

    /// Whether a process of its kind has replied to a turn.
    pub(super) fn has_replied(&self) -> bool {
        self.replied.load(Ordering::SeqCst)
    }
}

impl Transport for LineTransport {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move {
            let began = self.clock.now();
            let took = || self.clock.now().saturating_sub(began);
            let mut pipes = self.pipes.lock().await;
            self.clock.sleep(STRAGGLES).await;
            pipes.drain(&self.output);
            self.in_step.store(false, Ordering::SeqCst);
            let reply = pipes.exchange(&request.body.to_string(), &self.output).await;
            let body = reply.map_err(|why| TransportError::Connection { message: why.to_string(), took: took() })?;
            *lock(&self.taken) = secrets::beginning(String::from_utf8_lossy(&body).trim(), SHOWN);
            self.in_step.store(true, Ordering::SeqCst);
            self.replied.store(true, Ordering::SeqCst);
            let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
            Ok(HttpResponse { status: 200, headers, body: Bytes::from(body), took: took(), chunks: Vec::new() })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_json_and_no_record_of_a_logger() {
        for line in [
            "{\"answer\": \"yes\"}",
            "\u{feff}{\"answer\": \"yes\"}",
            "[1]",
            "\"yes\"",
            "{\"level\": \"beginner\", \"answer\": \"yes\"}",
            "{\"severity\": \"critical\", \"answer\": \"yes\"}",
            "{\"severity\": \"info\", \"answer\": \"yes\", \"category\": \"billing\"}",
        ] {
            assert!(is_reply(line.as_bytes()), "{line}");
        }
        for line in ["{\"answer\": \"\\ud800\"}", "{ \"answer\": \"cut", "{\"score\": NaN}", "{\"answer\": \"\u{1}\"}"]
        {
            assert!(is_reply(line.as_bytes()), "meant as JSON, and refused where it is read: {line}");
        }
        for line in [
            "hello",
            "{broken",
            "{'role': 'user', 'content': 'printed by a library'}",
            "{\"level\":30,\"time\":1795000000000,\"pid\":1,\"msg\":\"asked\"}",
            "{\"level\":\"INFO\",\"message\":\"model said: yes\"}",
            "{\"@timestamp\":\"2026-11-24T20:00:00Z\",\"log.level\":\"warn\",\"message\":\"asked\"}",
            r#"{"message":"search","context":{},"level":200,"level_name":"INFO","channel":"app","datetime":"2026-11-29T18:02:11+00:00"}"#,
            r#"{"EventId":0,"LogLevel":"Warning","Category":"Desk","Message":"search","State":{}}"#,
            r#"{"Timestamp":"18:02:11 ","LogLevel":"Error","Category":"Desk","Message":"search"}"#,
            r#"{"@t":"2026-11-29T18:02:11Z","@mt":"search {q}","q":"x"}"#,
            r#"{"@t":"2026-11-29T18:02:11Z","@l":"Error","@m":"search x","@i":"1"}"#,
            "{\"event\": \"asked\", \"level\": \"info\", \"timestamp\": \"2026-11-24T20:00:00Z\"}",
        ] {
            assert!(!is_reply(line.as_bytes()), "{line}");
        }
    }
}
