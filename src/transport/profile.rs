//! The matching profiles of the dialects, as data for `cassette`.

use crate::cassette::Profile;

/// Members that vary from call to call and say nothing about what is asked.
const DROP: &[&str] =
    &["/user", "/metadata", "/safety_identifier", "/prompt_cache_key", "/stream_options/include_obfuscation"];

const PROFILES: [Profile; 6] = [
    Profile { name: "openai-chat", version: 1, drop: DROP },
    Profile { name: "openai-responses", version: 1, drop: DROP },
    Profile { name: "anthropic-messages", version: 1, drop: &["/metadata"] },
    // The model stands in the path, which counts as a whole.
    Profile { name: "gemini", version: 1, drop: &["/labels"] },
    Profile { name: "perplexity-agent", version: 1, drop: DROP },
    Profile { name: "perplexity-sonar", version: 1, drop: DROP },
];

/// For requests whose profile has no entry: everything counts.
const EXACT: Profile = Profile { name: "exact", version: 1, drop: &[] };

/// The profile of that name, if this build knows it.
pub fn known_profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().chain([&EXACT]).find(|profile| profile.name == name)
}

/// The profile of that name; one in which everything counts when there is none.
pub fn profile(name: &str) -> &'static Profile {
    known_profile(name).unwrap_or(&EXACT)
}
