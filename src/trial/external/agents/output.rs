//! What an agent's process prints: its last bytes, in order, for messages and for the trial's file.

use crate::platform::secrets;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes of a trial's output that are kept.
const MOST_KEPT: usize = 64 << 10;
/// Lines of a crashed process that its message shows.
const LAST_LINES: usize = 8;
/// Characters of such a line.
const LONGEST_LINE: usize = 300;

/// The output since a trial began; clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Output(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    bytes: VecDeque<u8>,
    dropped: bool,
}

impl Output {
    /// Reads a stream to its end.
    pub(super) async fn read(self, mut stream: impl AsyncRead + Unpin) {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            self.add(&buffer[..count]);
        }
    }

    /// Adds bytes, and drops the first ones beyond the limit.
    pub(super) fn add(&self, bytes: &[u8]) {
        let mut kept = self.lock();
        kept.bytes.extend(bytes);
        let beyond = kept.bytes.len().saturating_sub(MOST_KEPT);
        kept.bytes.drain(..beyond);
        kept.dropped |= beyond > 0;
    }

    /// Forgets what came before a trial.
    pub(super) fn clear(&self) {
        *self.lock() = Kept::default();
    }

    /// Everything that is kept, without secrets.
    pub(super) fn text(&self) -> String {
        let kept = self.lock();
        let bytes: Vec<u8> = kept.bytes.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let text = if kept.dropped { text.split_once('\n').map_or("", |(_, rest)| rest) } else { &text };
        let start = if kept.dropped { "[…]\n" } else { "" };
        format!("{start}{}", secrets::clean(text))
    }

    /// The last lines, without secrets.
    pub(super) fn last_lines(&self) -> Vec<String> {
        let text = self.text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        last.iter().map(|line| line.chars().filter(|one| !one.is_control()).take(LONGEST_LINE).collect()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
}
