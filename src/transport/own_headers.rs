//! Rewrites the addresses and cookies in a service's headers. An agent reaches the service at the proxy: on loopback, over
//! plain HTTP, below a mount.

use crate::platform::loopback;

/// Stands for the address at which an agent reaches a declared service, in the headers of its responses: `Location` and
/// `Link` name the service's own address, which would lead the agent past the proxy, and a replay has another one.
pub(crate) const SERVICE_ADDRESS: &str = "ragcheck-service:";

/// An address of a service with [`SERVICE_ADDRESS`] in place of its base URL, whatever the spelling of the host, the port
/// and the scheme; `None` for any other address.
pub(super) fn below(address: &reqwest::Url, base: &reqwest::Url) -> Option<String> {
    let loopback = |url: &reqwest::Url| loopback::is_loopback_url(url.as_str());
    let web = |url: &reqwest::Url| matches!(url.scheme(), "http" | "https");
    // A balancer before a service speaks another scheme, at its default port.
    let default = |url: &reqwest::Url| url.port().is_none();
    let same_port =
        address.port_or_known_default() == base.port_or_known_default() || default(address) && default(base);
    let same_host = address.host_str() == base.host_str() || loopback(address) && loopback(base);
    let path = address
        .path()
        .strip_prefix(base.path().trim_end_matches('/'))
        .filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
    let query = address.query().map(|query| format!("?{query}")).unwrap_or_default();
    (web(address) && same_port && same_host).then(|| format!("{SERVICE_ADDRESS}{path}{query}"))
}

/// A header whose addresses lead an agent to the service `own` at the proxy. Addresses of others are left out, as they
/// would lead it past the proxy, and a replay too; relative ones stay.
pub(super) fn with_own_addresses(name: String, value: String, own: Option<&reqwest::Url>) -> Option<(String, String)> {
    let led = |target: &str| match reqwest::Url::parse(target) {
        Ok(address) => own.and_then(|own| below(&address, own)),
        Err(_) => Some(target.to_owned()),
    };
    match name.as_str() {
        "location" | "content-location" if value.starts_with(SERVICE_ADDRESS) => Some((name, value)),
        "location" | "content-location" => led(&value).map(|value| (name, value)),
        "link" => {
            let links = value.split('<').skip(1).filter_map(|link| {
                let (target, rest) = link.split_once('>')?;
                Some(format!("<{}>{}", led(target)?, rest.trim_end().trim_end_matches(',')))
            });
            let links: Vec<String> = links.collect();
            (!links.is_empty()).then(|| (name, links.join(", ")))
        }
        "set-cookie" => own.map(|own| (name, at_mount(&value, own.path()))),
        _ => Some((name, value)),
    }
}

/// A `Set-Cookie` without `Domain` and `Secure`, by which a client would drop it here, and with a `Path` below the mount.
/// `base` is the path of the service's base URL.
fn at_mount(cookie: &str, base: &str) -> String {
    let mut parts = cookie.split(';');
    let mut out = parts.next().unwrap_or_default().trim().to_owned();
    for attribute in parts.map(str::trim) {
        let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
        let is = |wanted: &str| name.trim().eq_ignore_ascii_case(wanted);
        if is("domain") || is("secure") || is("partitioned") {
            continue;
        }
        out.push_str("; ");
        match is("path").then(|| below_base(value.trim(), base.trim_end_matches('/'))) {
            Some(rest) => out.extend(["Path=", SERVICE_ADDRESS, rest]),
            None => out.push_str(attribute),
        }
    }
    out
}

/// What stands behind the base URL's path in the path of a cookie; nothing if the cookie is for all that is below.
fn below_base<'p>(path: &'p str, base: &str) -> &'p str {
    let rest = path.trim_end_matches('/');
    match rest.strip_prefix(base) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
        _ if base.starts_with(rest) || !rest.starts_with('/') => "",
        _ => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_kept_by_a_client_of_the_proxy_and_sent_to_its_service_alone() {
        for (base, sent, given) in [
            ("/", "sid=a=b; Path=/; HttpOnly", "sid=a=b; Path=ragcheck-service:; HttpOnly"),
            ("", "sid=1;secure;Domain=.wiki.example; SameSite=None", "sid=1; SameSite=None"),
            ("/wiki/api/", "sid=1; path=/wiki", "sid=1; Path=ragcheck-service:"),
            ("/wiki", "sid=1; Path=/wiki/rest; Max-Age=60", "sid=1; Path=ragcheck-service:/rest; Max-Age=60"),
            ("/wiki", "sid=1; Path=/other", "sid=1; Path=ragcheck-service:/other"),
            ("/", "sid=; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "sid=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"),
            ("/", "lang=en", "lang=en"),
        ] {
            assert_eq!(at_mount(sent, base), given, "{sent}");
        }
    }
}
