//! Artifacts: one Markdown file per call, its versions, and how an answer embeds one.
//!
//! An embed is `«artifact_content:NAME:VERSION»`. It is replaced by the artifact's text when the answer is delivered,
//! so that the model writes one line instead of the whole text.

use super::citations::Cited;
use crate::platform::secrets;
use crate::settings::ManagedRetrievalSettings;
use crate::trace::{Artifact, ManagedSource};
use std::fmt::Write;

/// Media type of an artifact.
const MIME_TYPE: &str = "text/markdown";
/// Start of an embed.
const OPEN: &str = "«artifact_content:";
/// End of an embed.
const CLOSE: char = '»';

/// Creates the next version of the answer's file, after those that the conversation already holds.
pub(super) fn create(settings: &ManagedRetrievalSettings, query: &str, cited: &Cited, known: &[Artifact]) -> Artifact {
    let filename = format!("{}.md", settings.output_filename_base);
    let before = known.iter().filter(|artifact| artifact.filename == filename).map(|artifact| artifact.version);
    let version = before.max().unwrap_or_default() + 1;
    let description = description(query, settings.artifact_description_query_max_length);
    let (mime_type, content) = (MIME_TYPE.to_owned(), content(cited));
    Artifact { filename, version, mime_type, description, content }
}

/// Description of the file: the query, cut to `most` characters.
fn description(query: &str, most: u32) -> String {
    let query = query.split_whitespace().collect::<Vec<_>>().join(" ");
    let query = secrets::clean(&query);
    let cut: String = query.chars().take(most as usize).collect();
    let more = if cut.len() < query.len() { "…" } else { "" };
    format!("Answer with sources to: {cut}{more}")
}

/// The text followed by its list of sources.
fn content(cited: &Cited) -> String {
    let mut content = cited.text.trim_end().to_owned();
    content.push('\n');
    if !cited.sources.is_empty() {
        content.push_str("\n## Sources\n\n");
    }
    for source in &cited.sources {
        // Writing to memory does not fail.
        _ = writeln!(content, "{}. [{}]({})", source.number, label(source), source.link);
    }
    content
}

/// Label of a source: title, file and page if known, without Markdown syntax.
fn label(source: &ManagedSource) -> String {
    let plain = |text: &str| {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let escaped = |letter: char| if "\\`*_[]<>".contains(letter) { vec!['\\', letter] } else { vec![letter] };
        text.chars().filter(|letter| !letter.is_control()).flat_map(escaped).collect::<String>()
    };
    let page = source.page.map_or_else(String::new, |page| format!(", page {}", page.saturating_add(1)));
    let title = if source.title.trim().is_empty() || source.title == source.filename {
        String::new()
    } else {
        format!("{} · ", plain(&source.title))
    };
    format!("{title}{}{page}", plain(&source.filename))
}

/// Bytes of an answer beyond which no artifact is inserted: an answer may embed one file a thousand times.
const MOST_EMBEDDED: usize = 1 << 20;

/// An answer with its embeds resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Embedded {
    /// The text with the artifacts inserted.
    pub(super) text: String,
    /// Inserted artifacts, by name and version, each once.
    pub(super) artifacts: Vec<(String, u32)>,
    /// Embeds that were not resolved because the artifact is unknown or the size limit is reached, as written.
    pub(super) unknown: Vec<String>,
}

/// Replaces embeds by the text of their artifacts; an embed without a version means the newest.
pub(super) fn embed(text: &str, known: &[Artifact]) -> Embedded {
    let mut embedded = Embedded { text: String::new(), artifacts: Vec::new(), unknown: Vec::new() };
    let mut rest = text;
    while let Some(start) = rest.find(OPEN) {
        let inside = &rest[start + OPEN.len()..];
        let Some(end) = inside.find(CLOSE) else { break };
        let name = &inside[..end];
        embedded.text.push_str(&rest[..start]);
        match find(name, known) {
            Some(artifact) if embedded.text.len() + artifact.content.len() <= MOST_EMBEDDED => {
                embedded.text.push_str(artifact.content.trim_end());
                let named = (artifact.filename.clone(), artifact.version);
                if !embedded.artifacts.contains(&named) {
                    embedded.artifacts.push(named);
                }
            }
            _ => embedded.unknown.push(name.to_owned()),
        }
        rest = &inside[end + CLOSE.len_utf8()..];
    }
    embedded.text.push_str(rest);
    embedded
}

fn find<'a>(name: &str, known: &'a [Artifact]) -> Option<&'a Artifact> {
    let name = name.trim();
    let exact = name.rsplit_once(':').and_then(|(file, version)| Some((file, version.trim().parse::<u32>().ok()?)));
    match exact {
        Some((file, version)) => known.iter().find(|artifact| artifact.filename == file && artifact.version == version),
        None => known.iter().filter(|artifact| artifact.filename == name).max_by_key(|artifact| artifact.version),
    }
}

pub(super) fn embed_of(artifact: &Artifact) -> String {
    format!("{OPEN}{}:{}{CLOSE}", artifact.filename, artifact.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cited(text: &str) -> Cited {
        let source = ManagedSource {
            number: 1,
            source: "r1/f/a".into(),
            page: Some(4),
            id: "a.pdf#page=5".into(),
            filename: "a_[b].pdf".into(),
            title: "Codes\n](http://example.org)".into(),
            link: "/gateway/download/r1/f/a/a.pdf#page=5".into(),
        };
        Cited { text: text.into(), citations: Vec::new(), sources: vec![source], notes: Vec::new() }
    }

    fn artifact(version: u32, content: &str) -> Artifact {
        let (filename, mime_type, description) = ("nuclia_answer.md".into(), MIME_TYPE.into(), String::new());
        Artifact { filename, version, mime_type, description, content: content.into() }
    }

    #[test]
    fn each_call_is_a_version_of_its_own_and_none_takes_the_place_of_another() {
        let settings = ManagedRetrievalSettings::default();
        let mut known = Vec::new();
        for version in 1..=3 {
            let made = create(&settings, "why?", &cited("So.[1]\n"), &known);
            assert_eq!((made.filename.as_str(), made.version), ("nuclia_answer.md", version));
            known.push(made);
        }
        let other = ManagedRetrievalSettings { output_filename_base: "other".into(), ..settings };
        assert_eq!(create(&other, "why?", &cited("So."), &known).version, 1);
    }

    #[test]
    fn the_list_names_page_and_link_and_no_title_breaks_out_of_its_line() {
        let made = create(&ManagedRetrievalSettings::default(), "why?", &cited("So.[1]\n\n"), &[]);
        let line = r"1. [Codes \](http://example.org) · a\_\[b\].pdf, page 5](/gateway/download/r1/f/a/a.pdf#page=5)";
        assert_eq!(made.content, format!("So.[1]\n\n## Sources\n\n{line}\n"));
    }

    #[test]
    fn a_file_that_is_named_a_thousand_times_does_not_fill_the_memory() {
        let known = [artifact(1, &"long ".repeat(20_000))];
        let embedded = embed(&embed_of(&known[0]).repeat(1_000), &known);
        assert!(embedded.text.len() <= MOST_EMBEDDED && embedded.unknown.len() > 900);
        assert_eq!(embedded.artifacts.len(), 1);
    }

    #[test]
    fn a_description_is_cut_by_characters() {
        let long = "é".repeat(151);
        let made = |query: &str| create(&ManagedRetrievalSettings::default(), query, &cited("So."), &[]).description;
        assert_eq!(made(&long), format!("Answer with sources to: {}…", "é".repeat(150)));
        assert_eq!(made(&"é".repeat(150)), format!("Answer with sources to: {}", "é".repeat(150)));
        assert_eq!(made("two\nlines"), "Answer with sources to: two lines");
    }

    #[test]
    fn an_embed_is_replaced_by_its_version_and_one_of_nothing_is_told() {
        let known = [artifact(1, "first\n"), artifact(2, "second\n")];
        let text = format!("Here: {} and «artifact_content:nuclia_answer.md».", embed_of(&known[0]));
        let embedded = embed(&text, &known);
        assert_eq!(embedded.text, "Here: first and second.");
        assert_eq!(embedded.artifacts, [("nuclia_answer.md".into(), 1), ("nuclia_answer.md".into(), 2)]);
        let missing = embed("«artifact_content:nuclia_answer.md:7»«artifact_content:", &known);
        assert_eq!(
            (missing.unknown, missing.text.as_str()),
            (vec!["nuclia_answer.md:7".to_owned()], "«artifact_content:")
        );
    }
}
