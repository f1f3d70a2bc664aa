//! Cookies that an agent sets in one conversation: frameworks keep a conversation in a session that they name so.

use crate::transport::HttpResponse;

/// The cookies of one conversation. Their paths and domains are ignored, because all turns go to one address.
#[derive(Debug, Clone, Default)]
pub(super) struct Cookies(Vec<(String, String)>);

impl Cookies {
    /// Keeps what a reply sets, and drops what it removes.
    pub(super) fn learn(&mut self, reply: &HttpResponse) {
        for (_, set) in reply.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie")) {
            let (pair, attributes) = set.split_once(';').unwrap_or((set, ""));
            let Some((name, value)) = pair.split_once('=').map(|(name, value)| (name.trim(), value.trim())) else {
                continue;
            };
            self.0.retain(|(known, _)| known != name);
            if !name.is_empty() && !value.is_empty() && !is_removed(attributes) {
                self.0.push((name.to_owned(), value.to_owned()));
            }
        }
    }

    /// The value of the header `cookie` of the next turn, if there is a cookie.
    pub(super) fn header(&self) -> Option<String> {
        let pairs: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }
}

/// Whether attributes end their cookie at once: `Max-Age` decides, then a date at the beginning of time.
fn is_removed(attributes: &str) -> bool {
    let value = |wanted: &str| {
        let mut named = attributes.split(';').filter_map(|one| one.split_once('='));
        named
            .find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.trim().trim_matches('"'))
    };
    match value("max-age").and_then(|seconds| seconds.parse::<i64>().ok()) {
        Some(seconds) => seconds <= 0,
        None => value("expires").is_some_and(|date| date.contains("1970") || date.contains("1969")),
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
        let past = "x=1; Max-Age=100; Expires=Thu, 01 Jan 1970 00:00:01 GMT";
        assert_eq!(after(&[past]).as_deref(), Some("lang=de; PHPSESSID=cd34; x=1"));
        assert_eq!(after(&["x=1; Max-Age=\"0\"", "=v"]).as_deref(), Some("lang=de; PHPSESSID=cd34"));
        assert_eq!(after(&["lang=; Path=/", "nonsense"]).as_deref(), Some("PHPSESSID=cd34"));
        assert_eq!(after(&["PHPSESSID=deleted; expires=Thu, 01 Jan 1970 00:00:01 GMT; Max-Age=0"]), None);
    }
}
