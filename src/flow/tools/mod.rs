//! What the tools of all flows share: text made fit for use, the guard against hostile patterns, and refusals that a
//! model can act on. Which tools there are, each flow's folder declares.

pub mod guard;
pub mod sanitise;

/// Why a call is not executed, for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Machine-readable cause: `unknown_tool`, `not_json`, `double_encoded`, `not_an_object`, `schema`, `length`,
    /// `hostile`, `generic_keyword`, …
    pub cause: &'static str,
    /// Why, in words.
    pub reason: String,
    /// What to do instead.
    pub guidance: String,
}

impl Refusal {
    /// A refusal.
    pub fn new(cause: &'static str, reason: impl Into<String>, guidance: impl Into<String>) -> Self {
        Self { cause, reason: reason.into(), guidance: guidance.into() }
    }

    /// The refusal of a tool that is not among those on offer.
    pub fn unknown_tool(name: &str, offered: &[&str]) -> Self {
        let shown: String = name.chars().filter(|letter| !letter.is_control()).take(60).collect();
        let guidance = format!("Use one of the tools on offer: {}.", offered.join(", "));
        Self::new("unknown_tool", format!("there is no tool `{shown}`"), guidance)
    }

    /// The tool message that tells it.
    pub fn for_model(&self) -> String {
        error_for_model(self.cause, &self.reason, &self.guidance, true)
    }
}

/// The tool message of a call that gave no result.
pub fn error_for_model(cause: &str, reason: &str, guidance: &str, retryable: bool) -> String {
    serde_json::json!({
        "error": {"cause": cause, "reason": reason, "guidance": guidance, "retryable": retryable}
    })
    .to_string()
}
