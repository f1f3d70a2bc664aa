//! The digest at the end of a stored JSON object, which reveals edits by hand.
//!
//! The last member of a line of `traces.jsonl`, of `plan.json`, and of other stored JSON is
//! `"digest":"0123456789abcdef"`: the beginning of SHA-256 over the text before it, with `\n` as line ends. An edited
//! text is still read, and reported as edited. A text without a digest comes from an older build or another program,
//! and its state is unknown. A reader without support for digests ignores the member.

use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Hex digits of the digest.
const DIGITS: usize = 16;

/// State of a stored text according to its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seal {
    /// Unchanged since it was written.
    Whole,
    /// Edited since it was written.
    Edited,
    /// Without a digest.
    None,
}

/// Adds the digest as the last member of a JSON object's text; returns the text and the digest. An object without
/// members is unchanged.
pub fn seal(text: &str) -> (String, String) {
    let Some(body) = text.trim_end().strip_suffix('}').map(str::trim_end).filter(|body| *body != "{") else {
        return (text.to_owned(), String::new());
    };
    let digest = digest(body);
    let mut sealed = String::with_capacity(body.len() + 40);
    sealed.push_str(body);
    let _ = if body.contains('\n') {
        write!(sealed, ",\n  \"digest\": \"{digest}\"\n}}")
    } else {
        write!(sealed, ",\"digest\":\"{digest}\"}}")
    };
    (sealed, digest)
}

/// Checks the digest of a text.
pub(crate) fn sealed(text: &str) -> Seal {
    let Some((body, told)) = split(text) else {
        // Another program rewrote the text, so the digest can no longer be checked.
        return if respelt(text) { Seal::Edited } else { Seal::None };
    };
    if digest(body) == told { Seal::Whole } else { Seal::Edited }
}

/// Whether the object has a digest in another spelling or place than [`seal`] gives it.
fn respelt(text: &str) -> bool {
    /// Reads the digest alone, because a document may be long.
    #[derive(serde::Deserialize)]
    struct Sealed {
        digest: Option<String>,
    }
    text.contains("\"digest\"")
        && serde_json::from_str::<Sealed>(text).is_ok_and(|sealed| {
            sealed
                .digest
                .is_some_and(|digest| digest.len() == DIGITS && digest.bytes().all(|byte| byte.is_ascii_hexdigit()))
        })
}

/// The text before the digest, and the digest.
fn split(text: &str) -> Option<(&str, &str)> {
    let line_ends: &[char] = &['\n', '\r'];
    let inside = text.trim_end_matches(line_ends).strip_suffix('}')?.trim_end_matches(line_ends).strip_suffix('"')?;
    let (before, told) = inside.split_at_checked(inside.len().checked_sub(DIGITS)?)?;
    let spellings = [",\"digest\":\"", ",\n  \"digest\": \"", ",\r\n  \"digest\": \""];
    Some((spellings.into_iter().find_map(|spelled| before.strip_suffix(spelled))?, told))
}

fn digest(body: &str) -> String {
    let body = if body.contains('\r') { Cow::Owned(body.replace("\r\n", "\n")) } else { Cow::Borrowed(body) };
    hex::encode(&Sha256::digest(body.as_bytes())[..DIGITS / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_whole_until_a_byte_of_it_changes() {
        for text in ["{\"a\":1,\"b\":\"x\"}", "{\n  \"a\": 1,\n  \"b\": [\n    2\n  ]\n}"] {
            let (text, digest) = seal(text);
            assert_eq!(sealed(&text), Seal::Whole, "{text}");
            assert_eq!(sealed(&format!("{text}\n")), Seal::Whole);
            assert_eq!(sealed(&text.replace('\n', "\r\n")), Seal::Whole, "a checkout on another system");
            assert!(text.contains(&digest));
            let value: serde_json::Value = serde_json::from_str(&text).expect("still JSON");
            assert_eq!(value["digest"], digest);
            for place in 0..text.len() {
                let mut bytes = text.clone().into_bytes();
                bytes[place] ^= 1;
                let changed = String::from_utf8(bytes).expect("ASCII");
                assert_ne!(sealed(&changed), Seal::Whole, "{changed}");
            }
        }
        assert_eq!(sealed("{\"a\":1}"), Seal::None);
        assert_eq!(sealed(""), Seal::None);
        assert_eq!(seal("{}"), ("{}".to_owned(), String::new()));
    }
}
