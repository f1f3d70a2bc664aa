//! Keys that stand in the query of an address: what an agent sends there is recorded with the path.
//!
//! Names differ from service to service (`key`, `code`, `sig`, `X-Amz-Signature`), so a value counts by its parameter's
//! name or by its looks. What is taken for a key wrongly is replaced in the recording and in replay alike.

use percent_encoding::percent_decode_str;

/// Parameters that say what is asked for, whatever their values look like.
const PLAIN: [&str; 9] =
    ["api-version", "version", "model", "deployment", "alt", "stream", "format", "language", "locale"];
/// Parts of a name that stand for a key.
const KEYS: [&str; 11] =
    ["key", "token", "secret", "sig", "auth", "passw", "pwd", "credential", "session", "code", "jwt"];
/// Names that stand for a key as a whole.
const SHORT_KEYS: [&str; 4] = ["k", "ak", "sk", "sas"];
/// Characters of a value that a name makes a key; shorter ones are words and numbers.
const LEAST_NAMED: usize = 6;
/// Characters of a value that is a key by its looks: letters and digits mixed, without a space.
const LEAST_UNNAMED: usize = 16;

/// The keys in the query of `path`: a name for messages, and the value as it was before it was encoded.
pub(super) fn query_keys(path: &str) -> impl Iterator<Item = (String, String)> {
    let query = path.split_once('?').map_or("", |(_, query)| query);
    let query = query.split('#').next().unwrap_or_default();
    query.split(['&', ';']).filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let name = percent_decode_str(name).decode_utf8_lossy().to_ascii_lowercase();
        let value = percent_decode_str(value).decode_utf8_lossy().into_owned();
        let plain = name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        let shown = if plain { format!("agent's parameter {name}") } else { "agent's parameter".to_owned() };
        is_key(&name, &value).then_some((shown, value))
    })
}

fn is_key(name: &str, value: &str) -> bool {
    if PLAIN.contains(&name) {
        return false;
    }
    let named = SHORT_KEYS.contains(&name) || KEYS.iter().any(|part| name.contains(part));
    let has = |test: fn(&char) -> bool| value.chars().any(|letter| test(&letter));
    let looks = has(char::is_ascii_digit) && has(char::is_ascii_alphabetic) && !value.contains(char::is_whitespace);
    let length = value.chars().count();
    (named && length >= LEAST_NAMED) || (looks && length >= LEAST_UNNAMED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_by_the_name_of_its_parameter_or_by_its_looks() {
        const KEY: &str = "agentS3cretKey77665544332211zyxw";
        for name in ["token", "auth", "secret", "pwd", "code", "sig", "X-Amz-Signature", "k", "ak", "q", "%61pi_key"] {
            let found: Vec<_> = query_keys(&format!("/chat/completions?api-version=1&{name}={KEY}#x")).collect();
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert_eq!(found[0].1, KEY, "{name}");
        }
        let found: Vec<_> = query_keys("/x?sig=a%2Fb%2Bc%3D%3D&odd%0Aname=1a2b3c4d5e6f7g8h9i").collect();
        let wanted = [("agent's parameter sig", "a/b+c=="), ("agent's parameter", "1a2b3c4d5e6f7g8h9i")];
        assert_eq!(found, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn what_is_asked_for_is_no_key() {
        for path in [
            "/chat/completions",
            "/x?api-version=2024-02-15-preview&model=gpt-4o-mini-2024-07-18",
            "/x?alt=sse&timeout=30&lang=en&token=&tokens=30",
            "/x?q=how+long+is+the+warranty",
        ] {
            assert_eq!(query_keys(path).count(), 0, "{path}");
        }
    }
}
