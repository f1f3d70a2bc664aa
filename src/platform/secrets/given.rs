//! Secrets that a service gives to a client in headers of a response: cookies and tokens.
//!
//! A client sends them back, so a recording keeps the header with a placeholder in place of the value.

use super::redactor::{MARK, Redactor};
use percent_encoding::percent_decode_str;

/// Words of a header's name that mark its value as one that proves who asks.
const WORDS: [&str; 9] = ["token", "auth", "authorization", "session", "jwt", "secret", "apikey", "csrf", "xsrf"];
/// Words in names of headers and cookies that say who asks, how, or where there is more.
const OF_OTHERS: [&str; 9] =
    ["page", "cursor", "continuation", "realm", "username", "method", "type", "scheme", "expires"];
/// What the name of a cookie like a session's has in it: `AuthToken`, `XSRF-TOKEN`.
const OF_SESSIONS: [&str; 5] = ["token", "auth", "jwt", "csrf", "xsrf"];
/// Attributes of a cookie that a recording keeps.
const KEPT: [&str; 5] = ["path", "httponly", "samesite", "max-age", "expires"];
/// Shorter values are words and numbers that any text may hold.
const SHORTEST: usize = 12;

/// What is recorded of a header that is not kept as it is; `None` if nothing is.
pub(super) fn under_placeholder(redactor: &Redactor, name: &str, value: &str) -> Option<String> {
    match name {
        // A challenge is no secret, and a client computes its answer from it.
        "www-authenticate" => Some(redactor.redact(value).into_owned()),
        "set-cookie" => Some(cookie(value)),
        _ => is_token(name).then(|| {
            let scheme = value.rsplit_once(' ').map(|(scheme, _)| format!("{scheme} "));
            format!("{}{MARK}{name}]", scheme.unwrap_or_default())
        }),
    }
}

/// The secrets in the headers of a response: a name for messages, and the value.
pub(crate) fn given(headers: &[(String, String)]) -> impl Iterator<Item = (String, String)> {
    headers.iter().flat_map(|(name, value)| {
        let (label, values) = if name == "set-cookie" {
            ("cookie", cookies(value.split(';').next().unwrap_or_default()).collect())
        } else {
            let token = value.rsplit(' ').next().unwrap_or(value).trim_matches('"');
            let is_secret = is_token(name) && is_long(token);
            (name.as_str(), if is_secret { vec![token.to_owned()] } else { Vec::new() })
        };
        values.into_iter().map(|value| (label.to_owned(), value))
    })
}

/// The values of the cookies in a request's header that name a session, as they are sent and without percent signs. Other
/// cookies have words that any text may hold: `tenant=acme-2024-eu`.
pub(crate) fn cookies(header: &str) -> impl Iterator<Item = String> {
    let pairs = header.split(';').filter_map(|pair| pair.split_once('='));
    let secret = pairs.filter(|(name, value)| names_session(name.trim()) && is_long(value.trim()));
    secret.flat_map(|(_, value)| {
        let value = value.trim().trim_matches('"');
        let plain = percent_decode_str(value).decode_utf8_lossy().into_owned();
        std::iter::once(value.to_owned()).chain(Some(plain).filter(|plain| plain != value && is_long(plain)))
    })
}

/// Whether the name of a cookie is that of a session.
fn names_session(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let is_other = has(&OF_OTHERS) || is_beside_secret(&lower, &OF_SESSIONS);
    lower.contains("sess") || lower.ends_with("sid") || has(&OF_SESSIONS) && !is_other
}

/// Whether a name in lower case, with one of these words, is that of a user or of the next page all the same: `auth-user-id`,
/// `next-token`, but not `user-token` and `next-auth-token`.
fn is_beside_secret(name: &str, words: &[&str]) -> bool {
    let secret = words.iter().filter_map(|word| name.rfind(word)).max();
    let is_next = |mark: &str| name.contains(&format!("next{mark}token"));
    name.rfind("user") > secret || ["", "-", "_"].into_iter().any(is_next)
}

/// A `Set-Cookie` with a placeholder as its value and the attributes that are known. A date on which it would end while the
/// recording is still in use is left out; one in the past removes a cookie.
fn cookie(value: &str) -> String {
    let (pair, attributes) = value.split_once(';').unwrap_or((value, ""));
    let (name, secret) = pair.split_once('=').unwrap_or(("", pair));
    let secret = if secret.trim().is_empty() { String::new() } else { format!("{MARK}cookie]") };
    let is_kept = |attribute: &&str| {
        let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
        let name = name.trim().to_ascii_lowercase();
        // A proxy may have joined several cookies by commas.
        let is_one = name == "expires" || !value.contains(',');
        KEPT.contains(&name.as_str()) && is_one && (name != "expires" || value.contains("1970"))
    };
    let kept = attributes.split(';').filter(is_kept);
    std::iter::once(format!("{name}={secret}")).chain(kept.map(str::to_owned)).collect::<Vec<_>>().join(";")
}

/// Whether a header gives a token by its name. The sessions of MCP are opened anew for each replay.
fn is_token(name: &str) -> bool {
    let words = || name.split(['-', '_', '.']);
    name != "mcp-session-id"
        && words().any(|word| WORDS.contains(&word))
        && !words().any(|word| OF_OTHERS.contains(&word))
        && !is_beside_secret(name, &WORDS)
}

fn is_long(value: &str) -> bool {
    value.len() >= SHORTEST && value.chars().any(|letter| letter.is_ascii_digit())
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
            ("authorization", "Bearer abc", Some("Bearer [redacted:authorization]")),
            (
                "set-cookie",
                "lang=en; HttpOnly, sid=Fold3d; Path=/; Comment=s3cret",
                Some("lang=[redacted:cookie]; Path=/"),
            ),
            ("x-auth-realm", "handbook-2026-v2", None),
            ("www-authenticate", digest, Some(digest)),
            ("www-authenticate", "Basic realm=\"the library\"", Some("Basic realm=\"the library\"")),
            ("www-authenticate", "Negotiate", Some("Negotiate")),
            ("x-auth-user-id", "abc", None),
            ("x-user-token", "abc", Some("[redacted:x-user-token]")),
            ("x-next-auth-token", "abc", Some("[redacted:x-next-auth-token]")),
            ("x-pagerduty-token", "abc", Some("[redacted:x-pagerduty-token]")),
            ("x-next-page-token", "abc", None),
            ("x-amz-next-token", "abc", None),
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
            ("set-cookie", "collection=handbook-2026-v2; Path=/"),
            ("x-auth-token", "Bearer eyJ0b2tlbiI6MX0"),
            ("etag", "\"0123456789abcdef\""),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let known: Vec<_> = given(&headers).collect();
        let wanted = [("cookie", "c2Vzc2lvbi0xMjM0"), ("x-auth-token", "eyJ0b2tlbiI6MX0")];
        assert_eq!(known, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let sent = "theme=dark-mode-2026; connect.sid=s%3AEnc0ded1.abc; tenant=acme-2024-eu; auth_method=password-2024; auth_user_id=customer-00123; \
            next-auth.session-token=eyJuZXh0IjoxfQ; user_session=Wm9lIHdhcyBoZXJlIDE; user_token=ck7SECRETck7Q";
        let wanted = ["s%3AEnc0ded1.abc", "s:Enc0ded1.abc", "eyJuZXh0IjoxfQ", "Wm9lIHdhcyBoZXJlIDE", "ck7SECRETck7Q"];
        assert_eq!(cookies(sent).collect::<Vec<_>>(), wanted);
    }
}
