//! The last line of a cassette: the number of exchanges, and a digest of the text before it.
//!
//! `end: {exchanges: 3, digest: "0123456789abcdef"}`. A file without this line is truncated. A file with another digest
//! was edited by hand; that is allowed, and shown beside its origin. If a program rewrites an edited file, it adds
//! `edited: true`. The digest is the beginning of SHA-256 over the text before the line, with line ends as `\n`. It
//! covers origin, dates, latencies and takes, but not blobs.

use super::digest;
use std::borrow::Cow;

/// First format version that requires this line.
pub(super) const SINCE: u64 = 2;
/// Hex digits of the digest.
const DIGITS: usize = 16;

/// Contents of the last line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    pub exchanges: usize,
    pub digest: String,
    pub edited: bool,
}

impl End {
    /// The end line of a text with that number of exchanges.
    pub(super) fn of(text: &str, exchanges: usize, edited: bool) -> Self {
        Self { exchanges, digest: digest(text), edited }
    }

    /// The line, with its newline.
    pub(super) fn line(&self) -> String {
        let edited = if self.edited { ", edited: true" } else { "" };
        format!("end: {{exchanges: {}, digest: \"{}\"{edited}}}\n", self.exchanges, self.digest)
    }

    /// Whether the text before the line differs from the recorded text.
    pub(super) fn is_edited(&self, text: &str, exchanges: usize) -> bool {
        self.edited || self.exchanges != exchanges || self.digest != digest(text)
    }
}

/// Splits a text into the part before the last line and the parsed last line; `None` if that line is missing or
/// truncated.
pub(super) fn split(text: &str) -> Option<(&str, End)> {
    let whole = text.strip_suffix('\n')?;
    let start = whole.rfind('\n')? + 1;
    let line = whole[start..].strip_suffix('\r').unwrap_or(&whole[start..]);
    let fields = line.strip_prefix("end: {exchanges: ")?.strip_suffix("\"}").map(|fields| (fields, false));
    let fields = fields.or_else(|| {
        let fields = line.strip_prefix("end: {exchanges: ")?.strip_suffix("\", edited: true}")?;
        Some((fields, true))
    });
    let (fields, edited) = fields?;
    let (exchanges, digest) = fields.split_once(", digest: \"")?;
    let plain = digest.len() == DIGITS && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    let exchanges = exchanges.parse().ok().filter(|_| plain)?;
    Some((&text[..start], End { exchanges, digest: digest.to_owned(), edited }))
}

fn digest(text: &str) -> String {
    let text = if text.contains('\r') { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) };
    digest::digest(text.as_bytes(), DIGITS)
}
