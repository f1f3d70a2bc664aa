//! The last line of a cassette: how many exchanges it holds, and a digest of all that stands before it.
//!
//! `end: {exchanges: 3, digest: "0123456789abcdef"}`. A file without it was cut off. A file with another digest was
//! edited by hand after it was recorded, which is allowed, and said wherever its origin is; written again by a program,
//! such a file carries `edited: true`. The digest is the beginning of SHA-256 over the text before the line, with line
//! ends as `\n`: origin, dates, latencies and takes are part of it, blobs are not.

use super::canonical::hex;
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// The first version of the format that must end with this line.
pub(super) const SINCE: u64 = 2;
/// Hex digits of the digest.
const DIGITS: usize = 16;

/// What the last line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    pub exchanges: usize,
    pub digest: String,
    pub edited: bool,
}

impl End {
    /// The end of a text that holds so many exchanges.
    pub(super) fn of(text: &str, exchanges: usize, edited: bool) -> Self {
        Self { exchanges, digest: digest(text), edited }
    }

    /// The line, with its line end.
    pub(super) fn line(&self) -> String {
        let edited = if self.edited { ", edited: true" } else { "" };
        format!("end: {{exchanges: {}, digest: \"{}\"{edited}}}\n", self.exchanges, self.digest)
    }

    /// Whether the text before the line is not the one that was recorded.
    pub(super) fn is_edited(&self, text: &str, exchanges: usize) -> bool {
        self.edited || self.exchanges != exchanges || self.digest != digest(text)
    }
}

/// The text before the last line, and what the line says; `None` where the text does not end with one, whole.
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
    hex(&Sha256::digest(text.as_bytes()), DIGITS)
}
