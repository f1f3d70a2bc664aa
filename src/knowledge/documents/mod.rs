//! A folder of documents as passages.
//!
//! | file | a passage is | its id |
//! |---|---|---|
//! | `*.md` | a section below a heading, cut between paragraphs where it is long | `<file stem>#<n>` |
//! | `*.txt` | paragraphs up to the same length | `<file name>#<n>` |
//! | `*.html`, `*.htm` | a section below a heading, as for Markdown | `<file name>#<n>` |
//! | `*.jsonl` | a line's object | `<file name>#<its id, or n>` |
//! | `*.csv` | a row | `<file name>#<its id, or n>` |
//!
//! n counts from 1 in each document, so that a change in one document renames nothing in another. Other files and
//! folders are not read: [`Corpus::not_read`] names them.

mod html;
mod pieces;
mod rows;
mod text;

use super::KnowledgeError;
use crate::platform::bounds::Bound;
use crate::settings::catalogue::PassageNames;
use pieces::Piece;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::Path;
use std::string::FromUtf8Error;

/// Names of files and folders in a sentence.
const NAMED: usize = 5;

/// How the sources of a folder are named, for whoever checks citations.
pub(crate) const NAMES: PassageNames = PassageNames { document: document_name, passages: passage_ids };

/// The name by which a file's passages are cited; `None` of a file that is not read.
fn document_name(path: &Path) -> Option<String> {
    let name = if Format::of(path)? == Format::Markdown { path.file_stem() } else { path.file_name() };
    Some(name?.to_string_lossy().into_owned())
}

fn passage_ids(folder: &Path) -> Option<BTreeSet<String>> {
    Some(Corpus::load(folder).ok()?.passages.into_iter().map(|passage| passage.id).collect())
}

/// One passage of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The document and its number or id within it: `<file stem>#<n>`.
    pub id: String,
    /// The document's title, followed by `: ` and the section's heading, if any.
    pub title: String,
    /// The text, without the heading.
    pub text: String,
}

impl Passage {
    /// The name of its file, by the table above: the document of its id, which is the stem of a Markdown file, and the whole
    /// name of any other.
    pub fn file(&self) -> String {
        let document = self.id.split_once('#').map_or(self.id.as_str(), |(document, _)| document);
        let whole = Format::of(Path::new(document)).is_some() || document.contains("://");
        if whole { document.to_owned() } else { format!("{document}.md") }
    }
}

/// Position of a passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file's name.
    pub file: String,
    /// The heading above it, or empty.
    pub section: String,
    /// Byte of the file at which it begins.
    pub offset: usize,
    /// The page that it begins on, from 1, where the format has pages.
    pub page: Option<u32>,
}

/// One file of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The file's name.
    pub file: String,
    /// First 16 hex digits of SHA-256 over its text and its length: the same text, the same hash.
    pub hash: String,
    /// How many passages it became.
    pub passages: usize,
}

/// All passages of one folder.
#[derive(Debug, Clone)]
pub struct Corpus {
    /// The folder's name.
    pub id: String,
    /// The passages, by file name and place.
    pub passages: Vec<Passage>,
    /// The position of each, in the same order; empty for a corpus that was not read from a folder.
    pub places: Vec<Place>,
    /// The files, by name.
    pub documents: Vec<Document>,
    /// Names of what is in the folder and not read, sorted: folders, with `/` at the end, and files of other formats.
    /// Hidden ones are left out.
    pub not_read: Vec<String>,
    /// First 16 hex digits of SHA-256 over ids, titles and texts.
    pub hash: String,
}

impl Corpus {
    /// Reads every document of `folder`, in order of their names.
    ///
    /// # Errors
    /// When the folder or a file cannot be read, is not UTF-8 or not of its format, when two passages have one id, or
    /// when there is no passage at all.
    pub fn load(folder: &Path) -> Result<Self, KnowledgeError> {
        let unreadable = |path: &Path, error| KnowledgeError::Read { path: path.to_owned(), error };
        let (mut files, mut not_read) = (Vec::new(), Vec::new());
        for crate::platform::files::Entry { path, .. } in
            crate::platform::files::entries(folder).map_err(|error| unreadable(folder, error))?
        {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                not_read.push(name + "/");
            } else if Format::of(&path).is_none() {
                not_read.push(name);
            } else if path.is_file() {
                files.push(path);
            }
        }
        not_read.retain(|name| !name.starts_with('.'));
        files.sort();
        not_read.sort();
        let (mut passages, mut places, mut documents) = (Vec::new(), Vec::new(), Vec::new());
        let mut ids = BTreeSet::new();
        let mut room = Bound::DocumentsSize.most();
        for path in files {
            let bytes = crate::platform::files::read_at_most(&path, room).map_err(|error| match error.kind() {
                std::io::ErrorKind::FileTooLarge => KnowledgeError::TooLarge { path: folder.to_owned() },
                _ => unreadable(&path, error),
            })?;
            room -= bytes.len() as u64;
            let text = String::from_utf8(bytes).map_err(|error| not_text(&path, &error))?;
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let Some(format) = Format::of(&path) else { continue };
            if (passages.len() + format.least(&text)) as u64 > Bound::Passages.most() {
                return Err(KnowledgeError::TooMany { path });
            }
            let wrong = |(line, why)| KnowledgeError::Document { path: path.clone(), line, why };
            let found = format.read(&stem, &text).map_err(wrong)?;
            let prefix = document_name(&path).unwrap_or_default();
            documents.push(Document { hash: hash_of([text.as_str()], 8), passages: found.len(), file: file.clone() });
            for (n, piece) in (1..).zip(found) {
                let id = piece.id.map_or_else(|| format!("{prefix}#{n}"), |id| format!("{prefix}#{id}"));
                if !ids.insert(id.clone()) {
                    let line = text.get(..piece.offset).map_or(1, |before| before.matches('\n').count() + 1);
                    return Err(wrong((line, format!("the passage id `{id}` appears twice in this knowledge base"))));
                }
                passages.push(Passage { id, title: piece.title, text: piece.text });
                let (section, offset, page) = (piece.section, piece.offset, piece.page);
                places.push(Place { file: file.clone(), section, offset, page });
            }
        }
        if passages.is_empty() {
            return Err(KnowledgeError::Empty { path: folder.to_owned(), not_read: sentence(&not_read) });
        }
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        Ok(Self { places, documents, not_read, ..Self::of(&name, passages) })
    }

    /// A corpus of these passages.
    pub fn of(id: &str, passages: Vec<Passage>) -> Self {
        let parts = passages.iter().flat_map(|passage| [&passage.id, &passage.title, &passage.text]);
        let hash = hash_of(parts.map(String::as_str), 8);
        let (places, documents, not_read) = (Vec::new(), Vec::new(), Vec::new());
        Self { id: id.to_owned(), passages, places, documents, not_read, hash }
    }

    /// `; not read: returns/, notes.pdf`; empty if everything in the folder is read.
    pub fn not_read(&self) -> String {
        sentence(&self.not_read)
    }
}

/// The end of a sentence that names what is not read.
fn sentence(not_read: &[String]) -> String {
    let more = not_read.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named = not_read.iter().take(NAMED).map(|name| name.escape_debug().to_string()).collect::<Vec<_>>().join(", ");
    if named.is_empty() { named } else { format!("; not read: {named}{more}") }
}

/// The first `bytes` bytes of SHA-256, in hex, over the parts, each prefixed by its length.
pub(super) fn hash_of<'a>(parts: impl IntoIterator<Item = &'a str>, bytes: usize) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part.as_bytes());
    }
    hex::encode(&digest.finalize()[..bytes])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Markdown,
    Plain,
    Html,
    JsonLines,
    Csv,
}

/// What is wrong with a document that is not UTF-8.
fn not_text(path: &Path, error: &FromUtf8Error) -> KnowledgeError {
    let bytes = error.as_bytes();
    let good = &bytes[..error.utf8_error().valid_up_to()];
    let line = good.split(|byte| *byte == b'\n').count();
    // The byte order marks with which UTF-16 begins.
    let is_utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    KnowledgeError::NotText { path: path.to_owned(), line, looks: if is_utf16 { ", but UTF-16" } else { "" } }
}

impl Format {
    /// By the end of the file's name.
    fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "md" => Some(Self::Markdown),
            "txt" => Some(Self::Plain),
            "html" | "htm" => Some(Self::Html),
            "jsonl" => Some(Self::JsonLines),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }

    /// Estimated number of passages of a text before it is split: a small file can have very many.
    fn least(self, text: &str) -> usize {
        match self {
            Self::Markdown => text.lines().filter(|line| line.starts_with('#')).count(),
            Self::JsonLines | Self::Csv => text.lines().count(),
            Self::Plain | Self::Html => 0,
        }
    }

    /// The passages; the error is a line, from 1, and what is wrong with it.
    fn read(self, stem: &str, text: &str) -> Result<Vec<Piece>, (usize, String)> {
        match self {
            Self::Markdown => Ok(text::markdown(stem, text)),
            Self::Plain => Ok(text::plain(stem, text)),
            Self::Html => Ok(html::html(stem, text)),
            Self::JsonLines => rows::json_lines(stem, text),
            Self::Csv => rows::csv(stem, text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn folders_and_files_of_other_formats_are_named_as_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        for inner in ["returns", ".git"] {
            std::fs::create_dir(folder.path().join(inner)).expect("made");
        }
        let write = |name: &str| std::fs::write(folder.path().join(name), "Text.").expect("written");
        ["returns/late.md", "A.TXT", "b.markdown", ".hidden"].into_iter().for_each(write);
        let none = Corpus::load(folder.path()).expect_err("nothing is read").to_string();
        assert!(none.ends_with("; not read: A.TXT, b.markdown, returns/"), "{none}");
        write("hire.md");
        let corpus = Corpus::load(folder.path()).expect("loads");
        assert_eq!((corpus.passages.len(), corpus.not_read().as_str()), (1, "; not read: A.TXT, b.markdown, returns/"));
        ["c.pdf", "d.pdf", "e.pdf"].into_iter().for_each(write);
        let many = Corpus::load(folder.path()).expect("loads").not_read();
        assert_eq!(many, "; not read: A.TXT, b.markdown, c.pdf, d.pdf, e.pdf and 1 more");
    }

    #[test]
    fn a_document_that_is_not_utf_8_is_named_with_its_line_and_what_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let refused = |bytes: &[u8]| {
            std::fs::write(folder.path().join("a.md"), bytes).expect("written");
            Corpus::load(folder.path()).expect_err("is refused").to_string()
        };
        let told = refused(b"\xff\xfeO\0n\0e\0");
        assert!(told.ends_with("a.md:1: the file is not UTF-8 text, but UTF-16: save it as UTF-8"), "{told}");
        let told = refused(b"One.\n\nTwo \xe9.\n");
        assert!(told.ends_with("a.md:3: the file is not UTF-8 text: save it as UTF-8"), "{told}");
    }

    #[test]
    fn every_format_is_read_and_ids_name_the_file_that_they_come_from() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        write("care.md", "One.\n\n## Two\nThree.\n");
        write("care.txt", "Four.");
        write("care.html", "<p>Five.");
        write("care.jsonl", "{\"id\": \"x\", \"text\": \"Six.\"}\n");
        write("care.csv", "id,text\n7,Seven.\n");
        write("care.pdf", "no text");
        let corpus = Corpus::load(folder.path()).expect("loads");
        let ids: Vec<_> = corpus.passages.iter().map(|passage| passage.id.as_str()).collect();
        assert_eq!(ids, ["care.csv#7", "care.html#1", "care.jsonl#x", "care#1", "care#2", "care.txt#1"]);
        assert_eq!((corpus.places[4].file.as_str(), corpus.places[4].section.as_str()), ("care.md", "Two"));
        assert_eq!(corpus.documents.iter().map(|document| document.passages).sum::<usize>(), 6);
        write("care.jsonl", "{\"id\": \"x\", \"text\": \"Six.\"}\n{\"id\": \"x\", \"text\": \"Six.\"}\n");
        let refused = Corpus::load(folder.path()).expect_err("is refused").to_string();
        assert!(refused.contains("care.jsonl:2") && refused.contains("`care.jsonl#x` appears twice"), "{refused}");
    }
}
