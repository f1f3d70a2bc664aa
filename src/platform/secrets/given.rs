//! Secrets that a service gives to a client in headers of a response: cookies and tokens.
//!
//! A client sends them back, so a recording keeps the header with a placeholder in place of the value.

use super::redactor::{MARK, Redactor};

/// Words of a header's name that mark its value as one that proves who asks.
const WORDS: [&str; 9] = ["token", "auth", "authorization", "session", "jwt", "secret", "apikey", "csrf", "xsrf"];
/// Words of a header's name that tells where there is more.
const OF_PAGES: [&str; 4] = ["page", "next", "cursor", "continuation"];
/// Shorter values are words and numbers that any text may hold.
const SHORTEST: usize = 12;

/// What is recorded of a header that is not kept as it is; `None` if nothing is.
pub(super) fn under_placeholder(redactor: &Redactor, name: &str, value: &str) -> Option<String> {
    match name {
        // A challenge is no secret, and a client computes its answer from it.
        "www-authenticate" => Some(redactor.redact(value).into_owned()),
        "set-cookie" => Some(cookie(value)),
        _ => is_token(name).then(|| format!("{MARK}{name}]")),
    }
}

/// The secrets in the headers of a response: a name for messages, and the value.
pub(crate) fn given(headers: &[(String, String)]) -> impl Iterator<Item = (String, String)> {
    let found = headers.iter().filter_map(|(name, value)| match name.as_str() {
        "set-cookie" => Some(("cookie", value.split(';').next()?.split_once('=')?.1)),
        name => is_token(name).then(|| (name, value.rsplit(' ').next().unwrap_or(value))),
    });
    found
        .filter(|(_, value)| looks_random(value))
        .map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()))
}

/// The values of a request's cookies that look random.
pub(crate) fn cookies(header: &str) -> impl Iterator<Item = &str> {
    let values = header.split(';').filter_map(|pair| Some(pair.split_once('=')?.1.trim()));
    values.filter(|value| looks_random(value))
}

/// A `Set-Cookie` with a placeholder as its value. A date on which it would end while the recording is still in use is left
/// out; one in the past removes a cookie.
fn cookie(value: &str) -> String {
    let (pair, attributes) = value.split_once(';').unwrap_or((value, ""));
    let (name, secret) = pair.split_once('=').unwrap_or(("", pair));
    let secret = if secret.trim().is_empty() { String::new() } else { format!("{MARK}cookie]") };
    let ends = |attribute: &&str| {
        attribute.trim_start().to_ascii_lowercase().starts_with("expires=") && !attribute.contains("1970")
    };
    let kept = attributes.split(';').filter(|attribute| !attribute.trim().is_empty() && !ends(attribute));
    std::iter::once(format!("{name}={secret}")).chain(kept.map(str::to_owned)).collect::<Vec<_>>().join(";")
}

/// Whether a header gives a token by its name. The sessions of MCP are opened anew for each replay.
fn is_token(name: &str) -> bool {
    let words = || name.split(['-', '_', '.']);
    name != "mcp-session-id"
        && words().any(|word| WORDS.contains(&word))
        && !words().any(|word| OF_PAGES.contains(&word))
}

fn looks_random(value: &str) -> bool {
    let has = |is: fn(&char) -> bool| value.chars().any(|letter| is(&letter));
    value.len() >= SHORTEST && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_sends_back_is_kept_without_its_value_and_a_challenge_as_it_is() {
        let digest = "Digest realm=\"kb\", qop=\"auth\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", opaque=\"5ccc069c403ebaf9f0171e9517f40e41\"";
        for (name, value, kept) in [
            ("set-cookie", "sid=c2Vzc2lvbg==; Path=/; HttpOnly", Some("sid=[redacted:cookie]; Path=/; HttpOnly")),
            (
                "set-cookie",
                "sid=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Path=/",
                Some("sid=[redacted:cookie]; Path=/"),
            ),
            (
                "set-cookie",
                "sid=; expires=Thu, 01 Jan 1970 00:00:00 GMT",
                Some("sid=; expires=Thu, 01 Jan 1970 00:00:00 GMT"),
            ),
            ("x-subject-token", "gAAAAAB-token-1", Some("[redacted:x-subject-token]")),
            ("x-transmission-session-id", "abc", Some("[redacted:x-transmission-session-id]")),
            ("authorization", "Bearer abc", Some("[redacted:authorization]")),
            ("www-authenticate", digest, Some(digest)),
            ("www-authenticate", "Basic realm=\"the library\"", Some("Basic realm=\"the library\"")),
            ("www-authenticate", "Negotiate", Some("Negotiate")),
            ("x-next-page-token", "abc", None),
            ("x-request-id", "abc", None),
            ("mcp-session-id", "abc", None),
            ("access-control-allow-origin", "*", None),
            ("content-security-policy", "x", None),
        ] {
            assert_eq!(under_placeholder(&Redactor::default(), name, value).as_deref(), kept, "{name}: {value}");
        }
    }

    #[test]
    fn a_secret_of_a_header_is_known_elsewhere_unless_it_may_be_a_word_or_a_number() {
        let headers = [
            ("set-cookie", "sid=c2Vzc2lvbi0xMjM0; Path=/"),
            ("set-cookie", "theme=high-contrast; Path=/"),
            ("set-cookie", "since=20261128; Path=/"),
            ("x-auth-token", "Bearer eyJ0b2tlbiI6MX0"),
            ("etag", "\"0123456789abcdef\""),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let known: Vec<_> = given(&headers).collect();
        let wanted = [("cookie", "c2Vzc2lvbi0xMjM0"), ("x-auth-token", "eyJ0b2tlbiI6MX0")];
        assert_eq!(known, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(cookies("theme=dark; sid=c2Vzc2lvbi0xMjM0").collect::<Vec<_>>(), ["c2Vzc2lvbi0xMjM0"]);
    }
}
