//! What an agent's process prints: its last bytes, in order, for messages and for the trial's file.

use crate::platform::lock::lock;
use crate::platform::secrets::{self, Redactor};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes of a trial's output that are kept.
const MOST_KEPT: usize = 64 << 10;
/// Lines that the message about a process which is not ready shows.
const LAST_LINES: usize = 8;
/// Lines in which the cause is looked for: Node prints up to ten lines of its stack behind the exception.
const CAUSE_LINES: usize = 24;
/// Characters of such a line.
const LONGEST_LINE: usize = 300;

/// The output since a trial began; clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Output {
    tail: Arc<Mutex<OutputTail>>,
    /// Streams that have not ended.
    open: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct OutputTail {
    bytes: VecDeque<u8>,
    dropped: bool,
}

impl Output {
    /// Reads a stream to its end.
    pub(super) fn read(self, mut stream: impl AsyncRead + Unpin) -> impl Future<Output = ()> {
        self.open.fetch_add(1, Ordering::SeqCst);
        async move {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                self.add(&buffer[..count]);
            }
            self.open.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Whether a stream has not been read to its end.
    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst) > 0
    }

    /// Adds bytes, and drops the first ones beyond the limit.
    pub(super) fn add(&self, bytes: &[u8]) {
        let mut kept = lock(&self.tail);
        kept.bytes.extend(bytes);
        let beyond = kept.bytes.len().saturating_sub(MOST_KEPT);
        kept.bytes.drain(..beyond);
        kept.dropped |= beyond > 0;
    }

    /// Forgets what came before a trial.
    pub(super) fn clear(&self) {
        *lock(&self.tail) = OutputTail::default();
    }

    /// Everything that is kept, without secrets.
    pub(super) fn text(&self) -> String {
        let kept = lock(&self.tail);
        let bytes: Vec<u8> = kept.bytes.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let text = if kept.dropped { text.split_once('\n').map_or("", |(_, rest)| rest) } else { &text };
        let start = if kept.dropped { "[…]\n" } else { "" };
        format!("{start}{}", Redactor::default().redact(&secrets::clean(text)))
    }

    /// The last lines, without secrets.
    pub(super) fn last_lines(&self) -> Vec<String> {
        self.last(LAST_LINES)
    }

    /// The line that says why a process failed, without secrets.
    pub(super) fn cause(&self) -> Option<String> {
        cause(&self.last(CAUSE_LINES))
    }

    fn last(&self, count: usize) -> Vec<String> {
        let text = self.text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(count)..];
        last.iter().map(|line| line.chars().filter(|one| !one.is_control()).take(LONGEST_LINE).collect()).collect()
    }
}

/// The line that says why a process failed: the last that names an error, or the last of all. Python prints the exception
/// behind its traceback, Node before its stack and its version, Rust the message of a panic behind its place.
fn cause(lines: &[String]) -> Option<String> {
    let names_one = |line: &String| {
        let line = line.to_ascii_lowercase();
        ["error", "exception", "panicked"].iter().any(|word| line.contains(word))
            && !line.trim_start().starts_with("at ")
    };
    let at = lines.iter().rposition(names_one).or(lines.len().checked_sub(1))?;
    let line = lines[at].trim();
    let message = lines.get(at + 1).filter(|_| line.ends_with(':'));
    Some(message.map_or_else(|| line.to_owned(), |message| format!("{line} {}", message.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_are_kept_from_the_beginning_of_a_line_and_keys_are_taken_out() {
        let output = Output::default();
        for number in 0..20_000 {
            output.add(format!("line {number}\n").as_bytes());
        }
        output.add(b"authorization: Bearer sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH\n");
        let text = output.text();
        assert!(text.starts_with("[…]\nline ") && text.len() <= MOST_KEPT + 8, "{}", &text[..40]);
        assert!(!text.contains("abcdefghijklmnop"), "{}", output.last_lines().join("\n"));
        assert_eq!(output.last_lines().len(), LAST_LINES);
        output.clear();
        assert_eq!((output.text().as_str(), output.last_lines().len()), ("", 0));
    }

    #[test]
    fn the_cause_is_found_behind_a_whole_stack() {
        let output = Output::default();
        output.add(b"a.mjs:15\n\nTypeError: no helmet\n");
        (0..10).for_each(|at| output.add(format!("    at answer (a.mjs:{at}:1)\n").as_bytes()));
        output.add(b"\nNode.js v24.1.0\n");
        assert_eq!(output.cause().as_deref(), Some("TypeError: no helmet"));
    }

    #[test]
    fn the_cause_is_the_line_of_the_exception() {
        let said = |text: &str| cause(&text.lines().map(str::to_owned).collect::<Vec<_>>());
        let python = "Traceback (most recent call last):\n  File \"a.py\", line 1\n    ^^^^\nValueError: no helmet";
        let node = "a.mjs:3\n\nTypeError: no helmet\n    at errored (a.mjs:3:9)\n\nNode.js v24.1.0";
        assert_eq!(said(python).as_deref(), Some("ValueError: no helmet"));
        assert_eq!(said(node).as_deref(), Some("TypeError: no helmet"));
        assert_eq!(said("loading\nout of memory").as_deref(), Some("out of memory"));
        let rust = "thread 'main' panicked at src/main.rs:3:5:\nno helmet\nstack backtrace:";
        assert_eq!(said(rust).as_deref(), Some("thread 'main' panicked at src/main.rs:3:5: no helmet"));
        assert_eq!(said(""), None);
    }
}
