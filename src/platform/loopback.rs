//! Recognises this machine in URLs, and decides which requests a local server accepts.
//!
//! A web page in a browser can send requests to loopback, and the proxy would answer them with the user's key. Browsers
//! send `Origin` with such requests, or, with those for an image or a link, `Sec-Fetch-Site: cross-site` or `same-site` alone; a
//! name that a hostile page resolves to this machine is in `Host`: all three are refused. Programs send none of them, and reach a
//! local server by an address, `localhost` or a container's name for the host.

use std::net::{IpAddr, Ipv6Addr};

/// Names besides `localhost` by which a container reaches its host.
const CONTAINER_HOSTS: [&str; 3] = ["host.docker.internal", "host.containers.internal", "gateway.docker.internal"];

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Stranger {
    /// A web page sent it.
    #[error(
        "requests from web pages are refused (Origin: {0}): a page could spend your provider's key; call from a program"
    )]
    Page(String),
    /// A page of another site had the browser send it, for an image or a link.
    #[error(
        "requests from web pages are refused (Sec-Fetch-Site: {0}): a page could spend your provider's key; call from a program"
    )]
    OtherSite(String),
    /// It was sent to a host name that anyone can point at this machine.
    #[error("requests to the host name `{0}` are refused: use 127.0.0.1, localhost or the address of this machine")]
    Name(String),
}

/// Values of [`SITE`] by which a browser says that a page of somebody else had it send the request.
const OTHER_SITES: [&str; 2] = ["cross-site", "same-site"];
/// Header in which a browser says which page had it send a request, where it sends no `Origin`.
pub(crate) const SITE: &str = "sec-fetch-site";

/// Checks that a request with these headers (`Host`, `Origin`, [`SITE`]) comes from a program on this machine, or from one that
/// was given its address.
///
/// # Errors
/// [`Stranger`] if it may come from a web page.
pub(crate) fn admit(host: Option<&str>, origin: Option<&str>, site: Option<&str>) -> Result<(), Stranger> {
    let shown = |text: &str| text.chars().filter(|letter| !letter.is_control()).take(100).collect();
    if let Some(origin) = origin {
        return Err(Stranger::Page(shown(origin)));
    }
    if let Some(site) = site.filter(|site| OTHER_SITES.contains(&site.trim())) {
        return Err(Stranger::OtherSite(shown(site)));
    }
    match host {
        Some(host) if !is_local(host) => Err(Stranger::Name(shown(host))),
        _ => Ok(()),
    }
}

/// [`admit`], for a server whose own pages send requests and may be linked to: their origin is the host that the request names.
///
/// # Errors
/// [`Stranger`] if it may come from another web page.
pub(crate) fn admit_own_page(host: Option<&str>, origin: Option<&str>) -> Result<(), Stranger> {
    let own = host.map(|host| format!("http://{host}"));
    admit(host, origin.filter(|origin| own.as_deref() != Some(origin)), None)
}

/// Whether a URL's host is this machine: `localhost` or a loopback address.
pub(crate) fn is_loopback_url(url: &str) -> bool {
    let host = reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    host.is_some_and(|host| is_loopback(&host))
}

/// Whether a URL's host is this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_local(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').is_some_and(|(address, _)| address.parse::<Ipv6Addr>().is_ok());
    }
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name).trim_end_matches('.').to_ascii_lowercase();
    name.parse::<IpAddr>().is_ok()
        || name == "localhost"
        || name.ends_with(".localhost")
        || CONTAINER_HOSTS.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_another_site_is_refused_without_an_origin_and_a_program_or_a_person_is_not() {
        for site in ["cross-site", "same-site"] {
            assert_eq!(admit(Some("127.0.0.1"), None, Some(site)), Err(Stranger::OtherSite(site.to_owned())));
        }
        for site in [None, Some("none"), Some("same-origin"), Some("")] {
            assert_eq!(admit(Some("127.0.0.1"), None, site), Ok(()), "{site:?}");
        }
    }

    #[test]
    fn programs_are_admitted_and_pages_and_foreign_names_are_not() {
        for host in [
            "127.0.0.1:8101", "127.0.0.1", "[::1]:8101", "localhost:80", "LOCALHOST", "10.0.0.7:1",
            "host.docker.internal:8101",
        ] {
            assert_eq!(admit(Some(host), None, None), Ok(()), "{host}");
        }
        assert_eq!(admit(None, None, None), Ok(()));
        for host in ["evil.example:8101", "127.0.0.1.evil.example", "localhost.evil.example", "", "[evil]"] {
            assert_eq!(admit(Some(host), None, None), Err(Stranger::Name(host.to_owned())), "{host}");
        }
        for origin in ["https://evil.example", "null", "http://localhost:3000"] {
            assert_eq!(admit(Some("127.0.0.1"), Some(origin), None), Err(Stranger::Page(origin.to_owned())));
            assert!(admit_own_page(Some("127.0.0.1:81"), Some(origin)).is_err(), "{origin}");
        }
        assert_eq!(admit_own_page(Some("127.0.0.1:81"), Some("http://127.0.0.1:81")), Ok(()));
        assert!(admit_own_page(Some("evil.example:81"), Some("http://evil.example:81")).is_err(), "a rebound name");
    }
}
