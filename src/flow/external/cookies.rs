//! Cookies that an agent sets in one conversation: frameworks keep a conversation in a session that they name so.

use crate::transport::HttpResponse;

/// The cookies of one conversation. All turns go to one address, so no cookie has a place of its own.
#[derive(Debug, Clone, Default)]
pub(super) struct Cookies(Vec<(String, String)>);

impl Cookies {
    /// Keeps what a reply sets, and drops what it removes.
    pub(super) fn learn(&mut self, reply: &HttpResponse) {
        for (_, set) in reply.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie")) {
            let mut parts = set.split(';').map(str::trim);
            let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { continue };
            self.0.retain(|(known, _)| known != name.trim_end());
            if !value.trim().is_empty() && !parts.any(removes) {
                self.0.push((name.trim_end().to_owned(), value.trim().to_owned()));
            }
        }
    }

    /// The value of the header `cookie` of the next turn, if there is a cookie.
    pub(super) fn header(&self) -> Option<String> {
        let pairs: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }
}

/// Whether an attribute ends its cookie at once. A date that is not the beginning of time is taken for one to come.
fn removes(attribute: &str) -> bool {
    let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
    let is_past = |seconds: i64| seconds <= 0;
    match name.trim().to_ascii_lowercase().as_str() {
        "max-age" => value.trim().parse().is_ok_and(is_past),
        "expires" => value.contains("1970"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_conversation_keeps_the_cookies_that_are_set_and_drops_those_that_are_removed() {
        let mut cookies = Cookies::default();
        let mut after = |set: &[&str]| {
            let headers = set.iter().map(|value| ("Set-Cookie".to_owned(), (*value).to_owned())).collect();
            let body = bytes::Bytes::new();
            cookies.learn(&HttpResponse { status: 200, headers, body, took: Duration::ZERO, chunks: Vec::new() });
            cookies.header()
        };
        assert_eq!(after(&[]), None);
        assert_eq!(
            after(&["PHPSESSID=ab12==; path=/; HttpOnly", "lang = de"]).as_deref(),
            Some("PHPSESSID=ab12==; lang=de")
        );
        assert_eq!(after(&["PHPSESSID=cd34; Max-Age=3600"]).as_deref(), Some("lang=de; PHPSESSID=cd34"));
        assert_eq!(after(&["lang=; Path=/", "nonsense"]).as_deref(), Some("PHPSESSID=cd34"));
        assert_eq!(after(&["PHPSESSID=deleted; expires=Thu, 01 Jan 1970 00:00:01 GMT; Max-Age=0"]), None);
    }
}
