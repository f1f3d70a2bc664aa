//! The digest at the end of a stored JSON object, which tells what was edited by hand since.
//!
//! The last member of a line of `traces.jsonl`, of `plan.json`, and of what else is stored as JSON is
//! `"digest":"0123456789abcdef"`: the beginning of SHA-256 over the text before it, line ends as `\n`. An edited text is
//! still read, and said to be edited. A text without a digest is of an older build, or was written by other programs:
//! nothing is known of it. A reader that knows no digest ignores the member.

use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Hex digits of the digest.
const DIGITS: usize = 16;

/// What the digest of a stored text says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seal {
    /// The text is as it was written.
    Whole,
    /// It was edited since.
    Edited,
    /// It has none.
    None,
}

/// A JSON object's text with its digest as the last member, and the digest. An object without members stays as it is.
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

/// Whether a text is as it was written.
pub(crate) fn sealed(text: &str) -> Seal {
    let Some((body, told)) = split(text) else {
        // One that was written by another program: what it stands for can no longer be told.
        return if respelt(text) { Seal::Edited } else { Seal::None };
    };
    if digest(body) == told { Seal::Whole } else { Seal::Edited }
}

/// Whether a digest is a member of the object, in another spelling or place than [`seal`] gives it.
fn respelt(text: &str) -> bool {
    /// The digest alone: a document may be long.
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
