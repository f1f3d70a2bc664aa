//! Finds keys in the query of an address, which is recorded with the path, and passwords in headers, which a service may
//! repeat.
//!
//! Parameter names differ between services (`key`, `code`, `sig`, `X-Amz-Signature`), so a value is recognised by its
//! parameter's name or by its form. A value wrongly taken for a key is replaced both in the recording and in replay.

use super::redactor::MARK;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use percent_encoding::percent_decode_str;

/// Parameter names, or words in them, that denote a key.
const KEYS: [&str; 24] = [
    "key", "apikey", "accesskey", "token", "accesstoken", "secret", "sig", "signature", "auth", "authorization",
    "pass", "password", "passwd", "pwd", "credential", "credentials", "jwt", "sas", "pin", "code", "k", "ak", "sk",
    "access",
];
/// Minimum length of a value that counts as a key by its name; shorter ones are words and numbers.
const LEAST_NAMED: usize = 6;
/// Names that also say what is looked up: `key=order-1042`.
const AMBIGUOUS: [&str; 2] = ["key", "code"];
/// Names of ids of what is asked for, in lower case; `cx` is the engine of Google's search. Many others let in whoever has them.
const IDS: [&str; 13] = [
    "id", "cx", "doc_id", "docid", "document_id", "documentid", "file_id", "page_id", "record_id", "item_id",
    "article_id", "chunk_id", "collection_id",
];
/// Minimum run of letters and digits that counts as a key by its form; words and dates between hyphens are shorter.
const LEAST_UNNAMED: usize = 16;

/// The keys in the query of `path`: a name for messages, and the decoded value.
pub(crate) fn query_keys(path: &str) -> impl Iterator<Item = (String, String)> {
    let query = path.split_once('?').map_or("", |(_, query)| query);
    let query = query.split('#').next().unwrap_or_default();
    query.split('&').filter_map(|pair| {
        let (name, value) = decoded(pair);
        let plain = (1..=40).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        let shown = if plain { format!("agent's parameter {name}") } else { "agent's parameter".to_owned() };
        is_key(&name, &value).then_some((shown, value))
    })
}

/// A path whose keys have one name, by their places in the query: a short or encoded one is not found by its value. To a model's
/// service, which reads a key in a parameter of such a name (`is_model`), any value of one is a key.
pub(super) fn without_query_keys(path: &str, is_model: bool) -> String {
    without_keys(path, |name, value| is_key(name, value) || is_model && KEYS.contains(&name))
}

/// An address without the parameters that have the name of a key. Its other parameters may be cursors, which look like keys.
pub(super) fn without_named_keys(address: &str) -> String {
    let of_pages = |name: &str| ["page", "next", "cursor", "continuation"].iter().any(|word| name.contains(word));
    without_keys(address, |name, _| has_key_word(name) && !of_pages(name))
}

fn without_keys(path: &str, is_key: impl Fn(&str, &str) -> bool) -> String {
    let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
    let clean = |pair: &str| {
        let (name, value) = decoded(pair);
        match pair.split_once('=') {
            Some((written, _)) if is_key(&name, &value) => format!("{written}={MARK}key]"),
            _ => pair.to_owned(),
        }
    };
    format!("{path}?{}", query.split('&').map(clean).collect::<Vec<_>>().join("&"))
}

/// Name, in lower case, and value of a parameter.
fn decoded(pair: &str) -> (String, String) {
    let (name, value) = pair.split_once('=').unwrap_or(("", pair));
    let name = percent_decode_str(name).decode_utf8_lossy().to_ascii_lowercase();
    (name, percent_decode_str(value).decode_utf8_lossy().into_owned())
}

/// Whether a header to a service that nobody knows may hold a key: by its name, or by the form of its value.
pub(crate) fn may_be_secret(name: &str, value: &str) -> bool {
    matches!(name, "authorization" | "x-api-key" | "api-key" | "x-goog-api-key" | "cookie") || is_key(name, value)
}

/// The password of a header with a user's name and password, or a key in the place of the name, unless it is a plain word.
pub(crate) fn password(header: &str) -> Option<String> {
    let (_, login) = header.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"))?;
    let login = STANDARD_NO_PAD.decode(login.trim().trim_end_matches('=')).ok()?;
    let (user, password) = std::str::from_utf8(&login).ok()?.split_once(':')?;
    let key = if password.is_empty() { user } else { password };
    is_key("password", key).then(|| key.to_owned())
}

/// Whether a header is one of a key by its name.
pub(crate) fn names_key(name: &str) -> bool {
    let usual = matches!(name, "authorization" | "x-api-key" | "api-key" | "x-goog-api-key" | "cookie");
    usual || name != "idempotency-key" && has_key_word(name)
}

/// Whether a name is a word for a key, or has one in it.
fn has_key_word(name: &str) -> bool {
    // `code` and the short names also occur in other names (`country_code`).
    let in_part = |part: &str| part.len() > 2 && part != "code" && KEYS.contains(&part);
    KEYS.contains(&name) || name.split(['-', '_', '.']).any(in_part)
}

/// By form, or by name if the value is not a word: `token=customer` is an ordinary parameter, `pin=123456` is not. An id says
/// what is asked for, whatever its form.
fn is_key(name: &str, value: &str) -> bool {
    let has_digit = value.contains(|letter: char| letter.is_ascii_digit());
    let is_long = has_digit && value.chars().count() >= LEAST_NAMED && !(AMBIGUOUS.contains(&name) && is_worded(value));
    let no_word = is_long || longest_run(value).is_some();
    looks_random(value) && !IDS.contains(&name) || has_key_word(name) && no_word
}

/// Whether a value is words and numbers joined by hyphens and the like: `order-1042`.
fn is_worded(value: &str) -> bool {
    let mut parts = value.split(['-', '_', '.', ':']);
    let all = |part: &str, is: fn(&char) -> bool| !part.is_empty() && part.chars().all(|letter| is(&letter));
    value.contains(['-', '_', '.', ':'])
        && parts.all(|part| all(part, char::is_ascii_lowercase) || all(part, char::is_ascii_digit))
}

/// Whether a value has a long run of letters and digits, as keys do, and words and dates between hyphens do not.
pub(super) fn looks_random(value: &str) -> bool {
    longest_run(value).is_some_and(|part| {
        part.contains(|letter: char| letter.is_ascii_digit())
            && part.contains(|letter: char| letter.is_ascii_alphabetic())
    })
}

/// The longest run of letters and digits, if it is long enough for a key.
fn longest_run(value: &str) -> Option<&str> {
    let longest = value.split(|letter: char| !letter.is_ascii_alphanumeric()).max_by_key(|part| part.len());
    longest.filter(|part| part.len() >= LEAST_UNNAMED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_header_is_a_key_unless_it_is_a_word() {
        let of = |login: &str| password(&format!("basic {}==", STANDARD_NO_PAD.encode(login)));
        for login in ["elastic:Pw7Kd93mQzLx82Tn", "Pw7Kd93mQzLx82Tn:"] {
            assert_eq!(of(login).as_deref(), Some("Pw7Kd93mQzLx82Tn"), "{login}");
        }
        for login in ["elastic:changeme", "elastic:", "elastic"] {
            assert_eq!(of(login), None, "{login}");
        }
        assert_eq!(password("Bearer Pw7Kd93mQzLx82Tn"), None);
    }

    #[test]
    fn a_key_is_known_by_the_name_of_its_parameter_or_by_its_looks() {
        const KEY: &str = "agentS3cretKey77665544332211zyxw";
        for name in ["token", "auth", "secret", "pwd", "code", "sig", "X-Amz-Signature", "k", "ak", "q", "%61pi_key"] {
            let found: Vec<_> = query_keys(&format!("/chat/completions?api-version=1&{name}={KEY}#x")).collect();
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert_eq!(found[0].1, KEY, "{name}");
        }
        let found: Vec<_> =
            query_keys("/x?sig=a%2F1%2Bc%3D%3D&odd%0Aname=1a2b3c4d5e6f7g8h9i&AKIAkey9876543210zz").collect();
        let wanted = [
            ("agent's parameter sig", "a/1+c=="),
            ("agent's parameter", "1a2b3c4d5e6f7g8h9i"),
            ("agent's parameter", "AKIAkey9876543210zz"),
        ];
        assert_eq!(found, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn what_is_asked_for_is_no_key() {
        const HEX: &str = "5f1d7f0e8c2b4a0017a3b1c2";
        for (name, value) in
            [("appid", HEX), ("client_id", HEX), ("key", "hunter2024"), ("code", "482913"), ("key", "prod-4f9a2b1c")]
        {
            assert_eq!(query_keys(&format!("/x?{name}={value}")).count(), 1, "{name}={value}");
        }
        for (name, value) in [("pass", "correcthorsebattery"), ("pin", "12345678"), ("key", "sec;ret-abcdef123456")] {
            let found: Vec<_> = query_keys(&format!("/x?{name}={value}")).collect();
            assert_eq!(found, [(format!("agent's parameter {name}"), value.to_owned())]);
        }
        for path in [
            "/chat/completions",
            "/x?api-version=2024-02-15-preview&model=gpt-4o-mini-2024-07-18",
            "/x?alt=sse&timeout=30&lang=en&token=&tokens=30",
            "/x?q=how+long+is+the+warranty",
            "/x?code=DE&key=order-1042&code=err-404&doc_id=5f1d7f0e8c2b4a0017a3b1c2&cx=0123456789abcdef0",
            "/x?session=customer&keyword=warranty&author=hemingway&country_code=DE12345&max_tokens=1000000&token=customer",
            "/x?user=department-42-warranty&deployment-id=gpt-4o-mini-2024-07-18&session=conversation1&beta",
        ] {
            assert_eq!(query_keys(path).count(), 0, "{path}");
        }
    }
}
