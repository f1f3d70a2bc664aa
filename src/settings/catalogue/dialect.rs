//! Catalogue entry of a dialect.

/// One dialect, as far as the project file and scenarios need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DialectEntry {
    /// The name used by providers.
    pub name: &'static str,
    /// Description in a sentence, including the base URL that it goes with.
    pub about: &'static str,
    /// Whether a provider of it can be a scenario's search service.
    pub searches: bool,
    /// Whether the proxy accepts it from external agents for their model requests.
    pub proxied: bool,
}
