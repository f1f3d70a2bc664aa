//! When providers turn models off, by their pages on deprecations; what a provider announces about a model while it is recorded
//! is newer than this table (`suite::recordings::model_ends`).
//!
//! Sources, read on [`CHECKED`]: developers.openai.com/api/docs/deprecations, ai.google.dev/gemini-api/docs/deprecations and
//! platform.claude.com/docs/en/about-claude/model-deprecations.

/// When the table was last compared with the providers' pages.
pub(crate) const CHECKED: &str = "2026-11-24";

/// Host of the provider, date of the end, models, and what the provider recommends in their place.
const ENDS: &[(&str, &str, &[&str], &str)] = &[
    (OPENAI, "2026-10-23", &["gpt-3.5-turbo", "gpt-3.5-turbo-0125", "o4-mini", "o4-mini-2025-04-16"], "gpt-5.6-terra"),
    (
        OPENAI,
        "2026-10-23",
        &[
            "gpt-4", "gpt-4-0613", "gpt-4-1106-preview", "gpt-4-turbo", "gpt-4-turbo-2024-04-09", "gpt-4o-2024-05-13",
            "o1", "o1-2024-12-17", "o3-mini", "o3-mini-2025-01-31",
        ],
        "gpt-5.6-sol",
    ),
    (OPENAI, "2026-12-11", &["gpt-5", "gpt-5-2025-08-07"], "gpt-6.1-sol"),
    (OPENAI, "2026-12-11", &["gpt-5-mini", "gpt-5-mini-2025-08-07"], "gpt-6.1-terra"),
    (OPENAI, "2026-12-11", &["gpt-5-nano", "gpt-5-nano-2025-08-07", "o3", "o3-2025-04-16"], ""),
    (
        OPENAI,
        "2027-01-14",
        &[
            "gpt-4o", "gpt-4o-2024-08-06", "gpt-4o-2024-11-20", "gpt-4o-mini", "gpt-4o-mini-2024-07-18", "gpt-4.1",
            "gpt-4.1-2025-04-14", "gpt-4.1-mini", "gpt-4.1-mini-2025-04-14",
        ],
        "gpt-6-luna",
    ),
    (OPENAI, "2027-04-01", &["gpt-5.1"], ""),
    (ANTHROPIC, "2026-06-15", &["claude-sonnet-4-20250514", "claude-sonnet-4-0"], "claude-sonnet-4-6"),
    (ANTHROPIC, "2026-06-15", &["claude-opus-4-20250514", "claude-opus-4-0"], "claude-opus-4-8"),
    (GOOGLE, "2026-06-01", &["gemini-2.0-flash", "gemini-2.0-flash-001"], ""),
    (GOOGLE, "2026-12-01", &["gemini-2.5-pro"], "gemini-3.8-flash"),
    (GOOGLE, "2026-12-01", &["gemini-2.5-flash"], "gemini-3.5-flash-lite"),
];

const OPENAI: &str = "api.openai.com";
const ANTHROPIC: &str = "api.anthropic.com";
const GOOGLE: &str = "generativelanguage.googleapis.com";

/// The date on which a model of the provider at `base_url` is turned off, and what is recommended in its place (may be
/// empty); `None` for models and providers that the table does not know.
pub(crate) fn model_end(base_url: &str, model: &str) -> Option<(&'static str, &'static str)> {
    let host = base_url.split_once("://")?.1.split(['/', ':', '?']).next()?;
    let known = ENDS.iter().find(|(of, _, models, _)| *of == host && models.contains(&model));
    known.map(|(_, date, _, instead)| (*date, *instead))
}

/// Whether a text is a date, `2027-01-14`.
pub(crate) fn is_date(text: &str) -> bool {
    text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_date_is_one_and_no_model_of_a_provider_ends_twice() {
        let mut seen = BTreeSet::new();
        for (host, date, models, _) in ENDS {
            assert!(is_date(date), "{date}");
            for model in *models {
                assert!(seen.insert((*host, *model)), "{host} {model}");
            }
        }
        assert!(is_date(CHECKED));
    }

    #[test]
    fn a_model_ends_at_its_own_provider_and_nowhere_else() {
        let end = |url| model_end(url, "gpt-4o-mini");
        assert_eq!(end("https://api.openai.com/v1"), Some(("2027-01-14", "gpt-6-luna")));
        assert_eq!(end("https://api.openai.com"), end("https://api.openai.com:443/v1"));
        assert_eq!(
            (end("http://127.0.0.1:8091/v1"), end("https://api.openai.com.example/v1"), end("")),
            (None, None, None)
        );
        assert_eq!(model_end("https://api.openai.com/v1", "gpt-4o-mini-tuned"), None);
    }
}
