//! Origin of a trace: who answered and when, and which draw of its trial it is.

use super::{is_zero, text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Source of a trace's traffic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// From a cassette, on a virtual clock.
    #[default]
    Replay,
    /// From a provider, now.
    Live,
    /// Messages recorded by another program: they show messages and calls, but no times.
    Imported,
}

impl std::fmt::Display for Mode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Replay => "REPLAYED",
            Self::Live => "LIVE",
            Self::Imported => "IMPORTED",
        })
    }
}

/// Origin of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Replayed, live or imported.
    pub mode: Mode,
    /// Service that answered, at recording time: `simulator`, or the provider's name and model. For imported
    /// messages, the file. `nothing` if no service was called.
    pub recorded_from: String,
    /// When it was recorded (RFC 3339, UTC); `None` in a live run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_at: Option<String>,
    /// Digest of the session that it is a part of, where other imported conversations are of the same: they count as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The requested model.
    pub model: String,
    /// Hash of the knowledge that the trial searched.
    pub knowledge: String,
    /// Results of the lane's earlier draws, in order: a verdict each, or `unknown`. Empty for a first draw.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_takes: Vec<String>,
    /// The verdict noted at recording time; `None` if it was not evaluated then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noted_verdict: Option<String>,
    /// Results of later draws, in order: a verdict each, or `unknown`. The trial was re-run while nothing under test
    /// had changed, so they do not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run_again: Vec<String>,
    /// Number of earlier draws that ended in ERROR, in an outage for example, and were re-run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replaced_errors: u32,
    /// Calls that an earlier recording answered while others went to their services; `None` in other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldCalls>,
}

/// Calls of a trial that ran with services held: an earlier recording answered what it knew.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldCalls {
    /// Services and groups of services that were held, as typed.
    pub services: Vec<String>,
    /// The lane whose recording answered; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// When that lane was recorded (RFC 3339, UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_at: Option<String>,
    /// Calls whose request was the recorded one.
    pub recorded: u32,
    /// Calls that got the recorded answer by their position, although their request differs.
    pub forced: u32,
    /// Calls that were not recorded and went to the service.
    pub new: u32,
}

impl HeldCalls {
    /// Number of calls that the recording answered.
    pub(crate) fn answered(&self) -> u32 {
        self.recorded.saturating_add(self.forced)
    }
}

/// In [`Evidence::recorded_from`]: no service was called, or the trial did not run.
pub(crate) const ASKED_NOBODY: &str = "nothing";
/// At the end of [`Evidence::recorded_from`]: a recording was edited after it was written.
pub(crate) const EDITED: &str = "(edited by hand)";

impl Evidence {
    /// Evidence of a first draw, with nothing known of its knowledge.
    pub fn new(mode: Mode, recorded_from: String, model: &str) -> Self {
        Self { mode, recorded_from, model: model.to_owned(), ..Self::default() }
    }

    /// Service that answered; `None` if no service was called.
    pub fn answered_by(&self) -> Option<&str> {
        (self.recorded_from != ASKED_NOBODY).then_some(self.recorded_from.as_str())
    }

    /// Text on the number of draws and the one that counts: `draw 3; draws 1, 2: FAIL`; `None` for a single draw.
    pub fn draws(&self) -> Option<String> {
        draws(&self.earlier_takes, &self.run_again, self.replaced_errors)
    }
}

/// Text on the draws before and after the one that counts, and on earlier ERRORs.
pub(crate) fn draws(earlier: &[String], run_again: &[String], errors: u32) -> Option<String> {
    let mut said = Vec::new();
    if !earlier.is_empty() {
        said.push(format!("draw {}", earlier.len() + 1));
        let mut by_verdict: Vec<(&str, Vec<String>)> = Vec::new();
        for (number, verdict) in (1..).zip(earlier) {
            match by_verdict.iter_mut().find(|(known, _)| known == verdict) {
                Some((_, numbers)) => numbers.push(number.to_string()),
                None => by_verdict.push((verdict, vec![number.to_string()])),
            }
        }
        let each = by_verdict.into_iter().map(|(verdict, numbers)| {
            let draws = if numbers.len() == 1 { "draw" } else { "draws" };
            format!("{draws} {}: {verdict}", numbers.join(", "))
        });
        said.extend(each);
    }
    if !run_again.is_empty() {
        said.push(format!("run again: {}, which does not count", run_again.join(", ")));
    }
    if errors > 0 {
        said.push(format!("{} before it, run again", text::plural(errors as usize, "ERROR")));
    }
    (!said.is_empty()).then(|| said.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_told_by_number_and_verdict_and_those_that_do_not_count_apart() {
        let of = |earlier: &[&str], again: &[&str], errors| {
            let texts = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
            draws(&texts(earlier), &texts(again), errors).unwrap_or_default()
        };
        assert_eq!(of(&[], &[], 0), "");
        assert_eq!(of(&["FAIL", "FAIL"], &[], 0), "draw 3; draws 1, 2: FAIL");
        assert_eq!(of(&["FAIL", "PASS", "FAIL"], &[], 0), "draw 4; draws 1, 3: FAIL; draw 2: PASS");
        assert_eq!(of(&[], &["PASS"], 0), "run again: PASS, which does not count");
        assert_eq!(
            of(&["PASS"], &["FAIL", "PASS"], 2),
            "draw 2; draw 1: PASS; run again: FAIL, PASS, which does not count; 2 ERRORs before it, run again"
        );
    }
}
