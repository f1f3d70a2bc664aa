//! A folder of Markdown as passages.
//!
//! A document is one `*.md` file, with optional front matter (`---`, `title: …`, `---`). A passage is one section below
//! a heading; a section longer than [`PASSAGE_LIMIT`] characters is split between paragraphs. Ids are
//! `<file stem>#<n>`, counted from 1 in each document, so that a change in one document renames nothing in another.

use super::KnowledgeError;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::Path;

/// Characters after which a section is split at the next end of a paragraph.
const PASSAGE_LIMIT: usize = 900;

/// One passage of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// `<file stem>#<n>`.
    pub id: String,
    /// The document's title, with the section's heading behind `: ` where it has one.
    pub title: String,
    /// The text, without the heading.
    pub text: String,
}

/// All passages of one folder.
#[derive(Debug, Clone)]
pub struct Corpus {
    /// The folder's name.
    pub id: String,
    /// The passages, by file name and place.
    pub passages: Vec<Passage>,
    /// First 16 hex digits of SHA-256 over ids, titles and texts.
    pub hash: String,
}

impl Corpus {
    /// Reads every `*.md` file of `folder`, in order of their names; other files and folders are passed over.
    ///
    /// # Errors
    /// When the folder or a file cannot be read or is not UTF-8, or when there is no passage at all.
    pub fn load(folder: &Path) -> Result<Self, KnowledgeError> {
        let unreadable = |path: &Path, error| KnowledgeError::Read { path: path.to_owned(), error };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
            let path = entry.map_err(|error| unreadable(folder, error))?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
        files.sort();
        let mut passages = Vec::new();
        for path in files {
            let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            passages.extend(passages_of(&stem, &text));
        }
        if passages.is_empty() {
            return Err(KnowledgeError::Empty { path: folder.to_owned() });
        }
        Ok(Self::of(&folder.file_name().unwrap_or_default().to_string_lossy(), passages))
    }

    /// A corpus of these passages.
    pub fn of(id: &str, passages: Vec<Passage>) -> Self {
        let mut digest = Sha256::new();
        for part in passages.iter().flat_map(|passage| [&passage.id, &passage.title, &passage.text]) {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part.as_bytes());
        }
        let mut hash = String::with_capacity(16);
        for byte in digest.finalize().iter().take(8) {
            let _ = write!(hash, "{byte:02x}");
        }
        Self { id: id.to_owned(), passages, hash }
    }
}

/// Cuts one document into passages.
fn passages_of(stem: &str, text: &str) -> Vec<Passage> {
    let (front, body) = split_front_matter(text);
    let mut title = front.unwrap_or_default();
    let mut sections: Vec<(String, String)> = vec![(String::new(), String::new())];
    let mut fenced = false;
    for line in body.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        match heading(line).filter(|_| !fenced) {
            Some((1, words)) if title.is_empty() => title = words.to_owned(),
            Some((_, words)) => sections.push((words.to_owned(), String::new())),
            None => {
                if let Some((_, text)) = sections.last_mut() {
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
    }
    if title.is_empty() {
        title = stem.replace(['-', '_'], " ");
    }
    let mut passages = Vec::new();
    for (heading, text) in sections {
        for piece in pieces(&text) {
            let named =
                if heading.is_empty() || heading == title { title.clone() } else { format!("{title}: {heading}") };
            passages.push(Passage { id: format!("{stem}#{}", passages.len() + 1), title: named, text: piece });
        }
    }
    passages
}

/// The title of the front matter, and what follows it; text without front matter comes back whole.
fn split_front_matter(text: &str) -> (Option<String>, &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else { return (None, text) };
    let mut length = first.len();
    let mut title = None;
    for line in lines {
        length += line.len();
        if line.trim_end() == "---" {
            return (title, &text[length..]);
        }
        if let Some(value) = line.strip_prefix("title:") {
            title = Some(value.trim().trim_matches(['"', '\'']).to_owned());
        }
    }
    (None, text)
}

/// Depth and words of an ATX heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let depth = line.chars().take_while(|letter| *letter == '#').count();
    let words = line.get(depth..)?.strip_prefix(' ')?.trim().trim_end_matches('#').trim_end();
    ((1..=6).contains(&depth) && !words.is_empty()).then_some((depth, words))
}

/// A section as pieces of whole paragraphs, each ending as soon as the next paragraph would pass the limit.
fn pieces(section: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut paragraph = String::new();
    let close = |paragraph: &mut String, pieces: &mut Vec<String>| {
        let text = std::mem::take(paragraph);
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        match pieces.last_mut() {
            Some(last) if last.chars().count() + text.chars().count() <= PASSAGE_LIMIT => {
                last.push_str("\n\n");
                last.push_str(text);
            }
            _ => pieces.push(text.to_owned()),
        }
    };
    for line in section.lines() {
        if line.trim().is_empty() {
            close(&mut paragraph, &mut pieces);
        } else {
            paragraph.push_str(line.trim_end());
            paragraph.push('\n');
        }
    }
    close(&mut paragraph, &mut pieces);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_become_passages_with_the_documents_title_and_stable_ids() {
        let text = "---\ntitle: \"Winter care\"\n---\nKeep it dry.\n\n## Storage\nAbove 5 °C.\n\nHalf charged.\n\n\
                    ## Riding\nSlowly.\n";
        let passages = passages_of("winter", text);
        let seen: Vec<_> = passages.iter().map(|p| (p.id.as_str(), p.title.as_str(), p.text.as_str())).collect();
        assert_eq!(
            seen,
            [
                ("winter#1", "Winter care", "Keep it dry."),
                ("winter#2", "Winter care: Storage", "Above 5 °C.\n\nHalf charged."),
                ("winter#3", "Winter care: Riding", "Slowly."),
            ]
        );
    }

    #[test]
    fn a_first_heading_is_the_title_and_a_hash_inside_a_fence_is_no_heading() {
        let passages = passages_of("notes", "# Notes\n\n```sh\n# not a heading\n```\n");
        assert_eq!(passages.len(), 1);
        assert_eq!(passages[0].title, "Notes");
        assert!(passages[0].text.contains("# not a heading"));
    }

    #[test]
    fn long_sections_are_split_between_paragraphs_and_never_inside_one() {
        let paragraph = "word ".repeat(120);
        let passages = passages_of("long", &format!("## One\n{paragraph}\n\n{paragraph}\n\nshort\n"));
        assert_eq!(passages.len(), 2);
        assert!(passages[1].text.ends_with("short"));
    }

    #[test]
    fn a_changed_word_changes_the_hash_and_a_folder_without_text_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.md");
        std::fs::write(&file, "One.").expect("written");
        let before = Corpus::load(folder.path()).expect("loads").hash;
        std::fs::write(&file, "Two.").expect("written");
        assert_ne!(before, Corpus::load(folder.path()).expect("loads").hash);
        std::fs::write(&file, "\n").expect("written");
        assert!(matches!(Corpus::load(folder.path()), Err(KnowledgeError::Empty { .. })));
    }
}
