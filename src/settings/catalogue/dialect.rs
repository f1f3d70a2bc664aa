//! What a dialect declares about itself.

/// One dialect, as far as the project file and scenarios are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DialectEntry {
    /// The name that providers declare.
    pub name: &'static str,
    /// What it is, in a sentence that says which base URL it goes with.
    pub about: &'static str,
    /// Whether a provider of it can be a scenario's search service.
    pub searches: bool,
    /// Whether the proxy takes it from agents that run elsewhere when they ask their model.
    pub proxied: bool,
}
