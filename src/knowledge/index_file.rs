//! The derived file of a large corpus's full-text index, kept between runs and updated incrementally.
//!
//! A file is named `<base>-<language>-v<version>-<keyed hash>.sqlite`; it hashes the file's
//! bytes with the user's key. A file with another hash is removed: a checkout may contain a forged file, and `SQLite`
//! would not notice all damage. The table `rows` has a digest of each row's passage. A file with exactly the corpus's
//! passages, in any order, is used unchanged. Otherwise the file that shares most passages is copied, its obsolete rows
//! are deleted, and new ones are added. Results are the same either way: rows only identify passages.
//!
//! Two processes that build at the same time create two files. Without a key, no file is kept.

use super::KnowledgeError;
use super::documents::{Corpus, Passage};
use super::full_text::{self, FullText};
use super::language::Words;
use crate::platform::files::{self, OwnKey, TemporaryFile};
use rusqlite::{Connection, params};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of files kept for a base, so that a file in use by another process is not removed.
const MOST: usize = 4;

/// The position in the corpus of each row; `None` if row n is passage n (from 1), as in a new file.
pub(super) type Rows = Option<Arc<HashMap<i64, usize>>>;

/// Digest of a passage: the beginning of SHA-256 over title and text, each prefixed by its length.
type Digest = [u8; 16];

/// The file of a large corpus's index.
pub(super) enum Derived {
    /// Kept for later runs.
    Kept(PathBuf),
    /// Removed with the base.
    Once(TemporaryFile),
}

impl Derived {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Once(file) => file.path(),
        }
    }
}

fn digest(passage: &Passage) -> Digest {
    let mut hash = Sha256::new();
    for text in [&passage.title, &passage.text] {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    let mut digest = Digest::default();
    digest.iter_mut().zip(hash.finalize()).for_each(|(to, from)| *to = from);
    digest
}

/// An error of the index in `file`.
fn failed(file: &Path) -> impl Fn(rusqlite::Error) -> KnowledgeError {
    move |error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => {
            KnowledgeError::Write { path: file.to_owned(), error: io::ErrorKind::StorageFull.into() }
        }
        _ => KnowledgeError::Index { what: "search index", file: Some(file.to_owned()), error },
    }
}

/// The index of `corpus` in a file below `folder`.
pub(super) fn derive(
    corpus: &Corpus,
    words: Words,
    folder: &Path,
    key: Option<&OwnKey>,
) -> Result<(Derived, Rows), KnowledgeError> {
    let unwritable = |error| KnowledgeError::Write { path: folder.to_owned(), error };
    let stem = stem(corpus, words);
    files::create_dir_all(folder).map_err(unwritable)?;
    let digests: Vec<Digest> = corpus.passages.iter().map(digest).collect();
    let mut others: Vec<(usize, PathBuf)> = Vec::new();
    if let Some(key) = key {
        for entry in files::entries(folder).map_err(unwritable)? {
            let name = entry.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let Some(known) = name.strip_prefix(&stem).and_then(|rest| rest.strip_suffix(".sqlite")) else { continue };
            let is_own = authenticate(&entry.path, &stem, key).is_ok_and(|hash| hash == known);
            if is_own && FullText::is_ours(&entry.path, words).is_ok_and(|ours| ours) {
                if in_order(&entry.path, &digests).map_err(failed(&entry.path))? {
                    return Ok((Derived::Kept(entry.path), None));
                }
                let matched = matched(&entry.path, &digests).map_err(failed(&entry.path))?;
                if matched.missing.is_empty() && matched.gone.is_empty() {
                    return Ok((Derived::Kept(entry.path), Some(Arc::new(matched.rows))));
                }
                others.push((matched.rows.len(), entry.path));
            } else {
                // Another process may have removed it already.
                let _ = files::remove_file(&entry.path);
            }
        }
    }
    others.sort();
    let beside = files::temporary_file(folder).map_err(unwritable)?;
    let rows = match others.last() {
        // If most passages are new, building a new file is faster.
        Some((common, nearest)) if common * 2 >= digests.len() => {
            copy(nearest, beside.path()).map_err(unwritable)?;
            update(beside.path(), &corpus.passages, &digests, words).map(|rows| Some(Arc::new(rows)))
        }
        _ => write(beside.path(), &corpus.passages, &digests, words).map(|()| None),
    };
    let rows = rows.map_err(failed(beside.path()))?;
    let Some(key) = key else { return Ok((Derived::Once(beside), rows)) };
    let hash = authenticate(beside.path(), &stem, key).map_err(unwritable)?;
    let file = folder.join(format!("{stem}{hash}.sqlite"));
    files::persist(beside, &file).map_err(unwritable)?;
    for (_, old) in others.iter().rev().skip(MOST - 1) {
        let _ = files::remove_file(old);
    }
    Ok((Derived::Kept(file), rows))
}

fn stem(corpus: &Corpus, words: Words) -> String {
    let plain: String =
        corpus.id.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).take(60).collect();
    format!("{plain}-{}-v{}-", words.language(), full_text::INDEX_VERSION)
}

/// The keyed hash of an index file's name and bytes.
pub(super) fn authenticate(file: &Path, stem: &str, key: &OwnKey) -> io::Result<String> {
    let (mut file, mut hash, mut part) = (files::open(file)?, key.hash(), vec![0; 1 << 16]);
    hash.update_text(stem);
    loop {
        let read = file.read(&mut part)?;
        let Some(read) = part.get(..read).filter(|read| !read.is_empty()) else { break };
        hash.update(read);
    }
    Ok(hash.finish())
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    io::copy(&mut files::open(from)?, &mut files::create(to)?).map(|_| ())
}

/// Comparison of a file's rows with a corpus.
struct Matched {
    /// Rows of passages of the corpus, with their places there.
    rows: HashMap<i64, usize>,
    /// Rows of passages that are gone.
    gone: Vec<i64>,
    /// Places of passages that have no row.
    missing: Vec<usize>,
}

/// Equal passages are matched in their order.
fn matched(file: &Path, digests: &[Digest]) -> rusqlite::Result<Matched> {
    let connection = Connection::open_with_flags(full_text::real(file)?, full_text::to_read())?;
    matched_in(&connection, digests)
}

fn matched_in(connection: &Connection, digests: &[Digest]) -> rusqlite::Result<Matched> {
    let mut places: HashMap<&Digest, Vec<usize>> = HashMap::with_capacity(digests.len());
    for (place, digest) in digests.iter().enumerate().rev() {
        places.entry(digest).or_default().push(place);
    }
    let mut statement = connection.prepare("SELECT id, digest FROM rows ORDER BY id")?;
    let mut all = statement.query([])?;
    let (mut rows, mut gone) = (HashMap::with_capacity(digests.len()), Vec::new());
    while let Some(row) = all.next()? {
        let (id, digest): (i64, Digest) = (row.get(0)?, row.get(1)?);
        match places.get_mut(&digest).and_then(Vec::pop) {
            Some(place) => drop(rows.insert(id, place)),
            None => gone.push(id),
        }
    }
    let mut missing: Vec<usize> = places.into_values().flatten().collect();
    missing.sort_unstable();
    Ok(Matched { rows, gone, missing })
}

/// Whether row n of a file is passage n, and there is no other.
fn in_order(file: &Path, digests: &[Digest]) -> rusqlite::Result<bool> {
    let connection = Connection::open_with_flags(full_text::real(file)?, full_text::to_read())?;
    let mut statement = connection.prepare("SELECT id, digest FROM rows ORDER BY id")?;
    let mut all = statement.query([])?;
    let mut expected = (1_i64..).zip(digests);
    while let Some(row) = all.next()? {
        let (id, digest): (i64, Digest) = (row.get(0)?, row.get(1)?);
        if expected.next() != Some((id, &digest)) {
            return Ok(false);
        }
    }
    Ok(expected.next().is_none())
}

/// Indexes all passages in an empty file; row 1 is the first.
fn write(file: &Path, passages: &[Passage], digests: &[Digest], words: Words) -> rusqlite::Result<()> {
    let mut connection = Connection::open_with_flags(full_text::real(file)?, full_text::to_write())?;
    full_text::make_tables(&connection, words)?;
    let transaction = connection.transaction()?;
    insert(&transaction, (1..).zip(passages.iter().zip(digests)), words)?;
    transaction.commit()?;
    connection.close().map_err(|(_, error)| error)
}

/// Puts passages into their rows.
fn insert<'p>(
    connection: &Connection,
    rows: impl Iterator<Item = (i64, (&'p Passage, &'p Digest))>,
    words: Words,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare("INSERT INTO passages (rowid, title, text) VALUES (?1, ?2, ?3)")?;
    let mut insert_digest = connection.prepare("INSERT INTO rows (id, digest) VALUES (?1, ?2)")?;
    for (row, (passage, digest)) in rows {
        insert.execute(params![row, words.prepared(&passage.title), words.prepared(&passage.text)])?;
        insert_digest.execute(params![row, digest])?;
    }
    Ok(())
}

/// Updates the index in a file to a corpus: deletes obsolete rows, and reuses their numbers first.
fn update(
    file: &Path,
    passages: &[Passage],
    digests: &[Digest],
    words: Words,
) -> rusqlite::Result<HashMap<i64, usize>> {
    let mut connection = Connection::open_with_flags(full_text::real(file)?, full_text::to_write())?;
    let Matched { mut rows, gone, missing } = matched_in(&connection, digests)?;
    let last: i64 = connection.query_row("SELECT coalesce(max(id), 0) FROM rows", [], |row| row.get(0))?;
    let transaction = connection.transaction()?;
    {
        let mut forget = transaction.prepare("DELETE FROM passages WHERE rowid = ?1")?;
        let mut forget_digest = transaction.prepare("DELETE FROM rows WHERE id = ?1")?;
        for row in &gone {
            forget.execute([row])?;
            forget_digest.execute([row])?;
        }
    }
    let numbers: Vec<(i64, usize)> = gone.into_iter().chain(last + 1..).zip(missing).collect();
    let new = numbers.iter().filter_map(|(row, place)| Some((*row, (passages.get(*place)?, digests.get(*place)?))));
    insert(&transaction, new, words)?;
    rows.extend(numbers);
    transaction.commit()?;
    connection.close().map_err(|(_, error)| error)?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Language;
    use proptest::prelude::*;

    fn words() -> Words {
        Words::of(Language::English)
    }

    fn passages(texts: &[String]) -> Vec<Passage> {
        let passage = |text: &String| Passage { id: String::new(), title: "lamp".into(), text: text.clone() };
        texts.iter().map(passage).collect()
    }

    /// All that an index says of words, phrases and beginnings.
    fn says(index: &FullText) -> Vec<Vec<(usize, usize)>> {
        let terms = ["lamp", "red", "blue", "wort"];
        let mut all: Vec<_> = terms.iter().map(|term| index.counts(term).expect("counts")).collect();
        all.push(index.beginning_with("b").expect("counts"));
        all.push(index.side_by_side(&["red".into(), "blue".into()]).expect("counts"));
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn an_index_that_was_brought_up_to_date_says_what_a_new_one_says(
            states in prop::collection::vec(prop::collection::vec("((red|blue|wort|battery) ){0,6}", 0..12), 1..5),
        ) {
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join("index.sqlite");
            for (n, texts) in states.iter().enumerate() {
                let passages = passages(texts);
                let digests: Vec<Digest> = passages.iter().map(digest).collect();
                if n == 0 {
                    write(&file, &passages, &digests, words()).expect("indexed");
                    prop_assert!(in_order(&file, &digests).expect("reads"));
                }
                let made = update(&file, &passages, &digests, words()).expect("indexed");
                prop_assert!(FullText::is_ours(&file, words()).expect("opens"));
                let known = matched(&file, &digests).expect("reads");
                prop_assert!(known.gone.is_empty() && known.missing.is_empty());
                // Which of two equal passages a row stands for is all the same.
                let behind = |rows: &HashMap<i64, usize>| {
                    let mut behind: Vec<_> = rows.iter().map(|(row, place)| (*row, digests[*place])).collect();
                    behind.sort_unstable();
                    behind
                };
                prop_assert_eq!(behind(&known.rows), behind(&made));
                let index = FullText::open(&file, words(), Some(Arc::new(made))).expect("opens");
                prop_assert_eq!(says(&index), says(&FullText::of(&passages, words()).expect("opens")));
            }
        }
    }

    #[test]
    fn only_what_is_new_is_indexed_and_what_stayed_keeps_its_row() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("index.sqlite");
        let texts = |from: usize, to: usize| (from..to).map(|n| format!("lamp {n}")).collect::<Vec<_>>();
        let indexed = |texts: &[String]| {
            let passages = passages(texts);
            let digests: Vec<Digest> = passages.iter().map(digest).collect();
            update(&file, &passages, &digests, words()).expect("indexed")
        };
        write(&file, &[], &[], words()).expect("made");
        let before = indexed(&texts(0, 100));
        let after = indexed(&texts(1, 101));
        assert_eq!(before[&50] - 1, after[&50], "the same row, one place further to the front");
        assert_eq!((after[&1], after.len()), (99, 100), "the row of what is gone is given to what is new");
    }
}
