//! Secrets known to the whole process; all output passes through here.

use super::Redactor;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

/// More characters than any spelling of a secret's piece, of 160 characters at most, has without invisible ones.
const LONGEST_SPELLING: usize = 1 << 13;

static DECLARED: RwLock<Option<Redactor>> = RwLock::new(None);

/// Adds secrets, each with a name for messages, to those of the process.
pub(crate) fn declare(secrets: impl IntoIterator<Item = (String, String)>) {
    let mut declared = DECLARED.write().unwrap_or_else(PoisonError::into_inner);
    let known = declared.take().unwrap_or_default();
    *declared = Some(known.knowing(secrets));
}

/// A redactor of all secrets declared so far.
pub(crate) fn declared() -> Redactor {
    DECLARED.read().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
}

/// A text without declared secrets.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    let declared = DECLARED.read().unwrap_or_else(PoisonError::into_inner);
    match &*declared {
        Some(redactor) => redactor.without_known(text),
        None => Cow::Borrowed(text),
    }
}

/// The first `most` characters of a text without declared secrets. Redacts before it cuts, because a truncated secret
/// could no longer be recognised. Reads little more than it returns, unless secrets or invisible characters are near.
pub(crate) fn beginning(text: &str, most: usize) -> String {
    let end = text.char_indices().nth(most + 2 * LONGEST_SPELLING).map_or(text.len(), |(end, _)| end);
    let near = clean(&text[..end]);
    // Only the last characters can hold a part of a secret that goes on, unless invisible ones make it longer.
    let enough = near.chars().nth(most + LONGEST_SPELLING).is_some() && !super::invisible::is_in(&text[..end]);
    let clean = if enough || end == text.len() { near } else { clean(text) };
    clean.chars().take(most).collect()
}

/// A JSON document without declared secrets: only strings change, so it stays valid.
pub(crate) fn clean_bytes(document: &[u8]) -> Cow<'_, [u8]> {
    let redactor = declared();
    let Ok(text) = std::str::from_utf8(document) else { return Cow::Borrowed(document) };
    if !redactor.knows_any_in(text) {
        return Cow::Borrowed(document);
    }
    let Ok(value) = serde_json::from_str::<Value>(text) else { return clean_text_bytes(document) };
    let value = redactor.redact_value(&value);
    let pretty = text.contains("\n  ");
    let written = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) };
    let Ok(mut written) = written else { return clean_text_bytes(document) };
    if text.ends_with('\n') {
        written.push(b'\n');
    }
    Cow::Owned(written)
}

/// A JSON document without declared or well-known secrets, for data that is compressed and cannot be cleaned later.
pub(crate) fn clean_packed(document: Vec<u8>) -> Vec<u8> {
    declared().redact_body(&document).unwrap_or(document)
}

/// A value without declared secrets.
pub(crate) fn clean_value(value: Value) -> Value {
    let redactor = declared();
    if redactor.knows_any_in(&value.to_string()) { redactor.redact_value(&value) } else { value }
}

/// The bytes of a text, such as a page or a table, without declared secrets.
pub(crate) fn clean_text_bytes(text: &[u8]) -> Cow<'_, [u8]> {
    match std::str::from_utf8(text).map(clean) {
        Ok(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
        _ => Cow::Borrowed(text),
    }
}
