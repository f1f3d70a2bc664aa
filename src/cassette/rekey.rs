//! Recomputes keys from the stored requests after the matching profiles changed, without the network.
//!
//! A stored request is redacted and lacks what its profile dropped. Its key equals that of the sent request, as long as
//! a newer profile drops at least what the older one did.

use super::canonical::Request;
use super::drift::drift;
use super::exchange::Cassette;
use super::keys::key;
use super::layout::Profile;
use crate::platform::secrets::Redactor;

/// Changes made by rekeying.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rekeyed {
    /// Ordinals of exchanges with a new key.
    pub keys: Vec<u32>,
    /// Ordinals of exchanges with new drift hashes only.
    pub hashes: Vec<u32>,
    /// Whether an `end:` line was added.
    pub sealed: bool,
    /// Profiles with a new version: name, old version, new version.
    pub profiles: Vec<(String, u32, u32)>,
}

/// Why a cassette cannot be rekeyed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RekeyProblem {
    /// Some exchange has no stored request.
    #[error("a stored request is missing")]
    RequestsMissing,
    /// A stored request is incomplete, or missing.
    #[error("the request of exchange {exchange} is missing or incomplete: {problem}; put it back, or record again")]
    Incomplete { exchange: u32, problem: String },
    /// The matching profile is unknown to this build.
    #[error("this build knows no matching profile `{name}` (exchange {exchange})")]
    Profile { name: String, exchange: u32 },
}

impl Rekeyed {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }
}

impl Cassette {
    /// Recomputes every exchange's key with this build's profiles; `profile` looks one up by name.
    ///
    /// # Errors
    /// If a stored request or a profile is missing; the cassette is then unchanged.
    pub fn rekey<'p>(&mut self, profile: impl Fn(&str) -> Option<&'p Profile>) -> Result<Rekeyed, RekeyProblem> {
        let requests = self.requests();
        if requests.len() != self.exchanges.len() {
            return Err(RekeyProblem::RequestsMissing);
        }
        let redactor = Redactor::default();
        let (mut rekeyed, mut renewed) = (Rekeyed::default(), self.clone());
        for (exchange, request) in renewed.exchanges.iter_mut().zip(requests) {
            let ordinal = exchange.ordinal;
            if let Some(problem) = &request.problem {
                return Err(RekeyProblem::Incomplete { exchange: ordinal, problem: problem.clone() });
            }
            let profile = profile(&exchange.profile)
                .ok_or_else(|| RekeyProblem::Profile { name: exchange.profile.clone(), exchange: ordinal })?;
            let asked = Request { profile, method: &request.method, path: &request.path, body: &request.body };
            let (new_key, new_drift) = (key(asked, &redactor), drift(profile.layout, &request.body));
            if new_key != exchange.key {
                rekeyed.keys.push(exchange.ordinal);
            } else if new_drift != exchange.drift {
                rekeyed.hashes.push(exchange.ordinal);
            }
            (exchange.key, exchange.drift) = (new_key, new_drift);
            let version = renewed.header.profiles.insert(exchange.profile.clone(), profile.version).unwrap_or(0);
            if version != profile.version {
                rekeyed.profiles.push((exchange.profile.clone(), version, profile.version));
            }
        }
        rekeyed.sealed = !renewed.sealed;
        renewed.sealed = true;
        *self = renewed;
        Ok(rekeyed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{CHAT, PROFILE, conversation, lane, prompt, saved};
    use super::*;
    use serde_json::json;

    static NEWER: Profile =
        Profile { name: "openai-chat", version: 2, drop: &["/user", "/temperature"], layout: &CHAT };

    #[test]
    fn by_the_same_profile_nothing_changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut loaded = saved(&lane(), folder.path());
        let before = loaded.to_text().expect("readable");
        assert_eq!(loaded.rekey(|_| Some(&PROFILE)), Ok(Rekeyed::default()));
        assert_eq!(loaded.to_text().expect("readable"), before);
    }

    #[test]
    fn a_newer_profile_gives_the_keys_that_its_requests_have() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut loaded = saved(&lane(), folder.path());
        let rekeyed = loaded.rekey(|_| Some(&NEWER)).expect("whole");
        assert_eq!(rekeyed.keys, [0, 1, 2]);
        assert_eq!(rekeyed.profiles, [("openai-chat".to_owned(), 1, 2)]);
        let mut warmer = conversation(&prompt(), &[]);
        warmer["temperature"] = json!(0.9);
        let asked = Request { profile: &NEWER, method: "POST", path: "/chat/completions", body: &warmer };
        assert_eq!(loaded.exchanges[0].key, key(asked, &Redactor::default()));
        assert_eq!(saved(&loaded, folder.path()).header.profiles["openai-chat"], 2);
    }

    #[test]
    fn a_request_that_is_missing_or_incomplete_is_refused_and_nothing_changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut loaded = saved(&lane(), folder.path());
        let before = loaded.exchanges.clone();
        let unknown = RekeyProblem::Profile { name: "openai-chat".into(), exchange: 0 };
        assert_eq!(loaded.rekey(|_| None), Err(unknown));
        let blobs = folder.path().join("refunds/blobs");
        let prompt = std::fs::read_dir(&blobs).expect("blobs").filter_map(Result::ok).map(|entry| entry.path());
        let prompt = prompt.filter(|path| path.extension().is_some_and(|end| end == "txt")).min().expect("a prompt");
        let recorded = std::fs::read_to_string(&prompt).expect("reads");
        std::fs::write(&prompt, recorded.replace("Always", "Never")).expect("an edit");
        let edited = loaded.rekey(|_| Some(&NEWER)).expect_err("no model saw this text").to_string();
        assert!(edited.contains("was edited: its text is not the one that it is named by"), "{edited}");
        std::fs::write(&prompt, recorded.replace('\n', "\r\n")).expect("a checkout with other line ends");
        assert!(loaded.clone().rekey(|_| Some(&NEWER)).is_ok());
        std::fs::remove_dir_all(blobs).expect("the blobs");
        let gone = loaded.rekey(|_| Some(&NEWER)).expect_err("blobs are gone");
        assert!(matches!(gone, RekeyProblem::Incomplete { exchange: 0, .. }), "{gone}");
        assert_eq!(loaded.exchanges, before);
    }
}
