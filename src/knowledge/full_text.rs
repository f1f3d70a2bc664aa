//! The full-text index of a corpus: `SQLite`'s FTS5, queried for words and their positions.
//!
//! The table `passages` (title, text) lives in memory, where row n is passage n of the corpus, counted from 1, or in a
//! derived file ([`super::index_file`]), opened read-only, whose rows come with their places in the corpus. Each connection has two more tables: `instances` has the
//! positions of each stem, and `given` turns words into stems with the tokenizer of the index.
//! Text is always a bound value, never part of a query's syntax.

use super::documents::Passage;
use super::guard::{differs, guard};
use super::index_file::Rows;
use super::language::Words;
use crate::platform::files;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Row, params};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Version of tokenizer and columns: a derived file of another version is not read.
pub(super) const INDEX_VERSION: u32 = 2;

/// One connection to an index.
pub(super) struct FullText {
    connection: Connection,
    words: Words,
    /// `None` where row n is passage n.
    rows: Rows,
}

impl FullText {
    /// An index in memory.
    pub(super) fn of(passages: &[Passage], words: Words) -> rusqlite::Result<Self> {
        let mut connection = Connection::open_in_memory()?;
        fill(&mut connection, passages, words)?;
        Self::over(connection, words, None)
    }

    /// The index in a derived file, of the same words, with the places of its rows.
    pub(super) fn open(file: &Path, words: Words, rows: Rows) -> rusqlite::Result<Self> {
        Self::over(Connection::open_with_flags(real(file)?, to_read())?, words, rows)
    }

    /// Whether a file holds what [`make_tables`] makes and nothing beside, so that it may be opened.
    pub(super) fn is_ours(file: &Path, words: Words) -> rusqlite::Result<bool> {
        let connection = Connection::open_with_flags(real(file)?, to_read())?;
        guard(&connection)?;
        let ours = Connection::open_in_memory()?;
        make_tables(&ours, words)?;
        Ok(differs(&connection, &ours)?.is_none())
    }

    fn over(connection: Connection, words: Words, rows: Rows) -> rusqlite::Result<Self> {
        guard(&connection)?;
        let tokenizer = words.tokenizer();
        connection.execute_batch(&format!(
            "PRAGMA temp_store = memory;
             CREATE VIRTUAL TABLE temp.instances USING fts5vocab('main', 'passages', 'instance');
             CREATE VIRTUAL TABLE temp.given USING fts5(word, content='', {tokenizer});
             CREATE VIRTUAL TABLE temp.stems USING fts5vocab('temp', 'given', 'instance');"
        ))?;
        // Without it, every query is planned again for its parameters, which is useless for a single table.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(Self { connection, words, rows })
    }

    /// The stems of each of `terms`: one as a rule, several where the tokenizer sees more words than we do.
    pub(super) fn stems(&self, terms: &[&str]) -> rusqlite::Result<Vec<Vec<String>>> {
        let mut stems = vec![Vec::new(); terms.len()];
        let given: Vec<_> = terms.iter().map(|term| self.words.prepared(term)).collect();
        let given = serde_json::Value::from(given).to_string();
        let mut insert = self
            .connection
            .prepare_cached("INSERT INTO given (rowid, word) SELECT key + 1, value FROM json_each(?1)")?;
        insert.execute([given])?;
        let mut select = self.connection.prepare_cached("SELECT doc, term FROM stems ORDER BY doc, offset")?;
        let rows = select.query_map([], |row| Ok((number(row.get(0)?), row.get(1)?)))?;
        for row in rows {
            let (place, stem): (usize, String) = row?;
            if let Some(stems) = stems.get_mut(place) {
                stems.push(stem);
            }
        }
        self.connection.prepare_cached("INSERT INTO given (given) VALUES ('delete-all')")?.execute([])?;
        Ok(stems)
    }

    /// The passages (places in the corpus, ascending) that hold `stem`, each with how often.
    pub(super) fn counts(&self, stem: &str) -> rusqlite::Result<Vec<(usize, usize)>> {
        let mut statement = self.connection.prepare_cached("SELECT doc FROM instances WHERE term = ?1")?;
        let rows = statement.query_map([stem], |row| Ok(self.place(row.get(0)?)))?;
        Ok(counted(rows.collect::<rusqlite::Result<Vec<usize>>>()?))
    }

    /// The same for words that begin with `prefix`, as the index keeps them: in their stems.
    pub(super) fn beginning_with(&self, prefix: &str) -> rusqlite::Result<Vec<(usize, usize)>> {
        let mut statement =
            self.connection.prepare_cached("SELECT doc FROM instances WHERE term >= ?1 AND term < ?2")?;
        // The largest character, so every word with the prefix sorts before it.
        let rows = statement.query_map([prefix, &format!("{prefix}\u{10ffff}")], |row| Ok(self.place(row.get(0)?)))?;
        Ok(counted(rows.collect::<rusqlite::Result<Vec<usize>>>()?))
    }

    /// The same for consecutive `stems` in one column; empty for no stems.
    pub(super) fn side_by_side(&self, stems: &[String]) -> rusqlite::Result<Vec<(usize, usize)>> {
        let mut statement =
            self.connection.prepare_cached("SELECT doc, col, \"offset\" FROM instances WHERE term = ?1")?;
        let mut starts: Option<BTreeSet<(i64, String, i64)>> = None;
        for (distance, stem) in (0_i64..).zip(stems) {
            let at = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)? - distance));
            let these = statement.query_map([stem], at)?.collect::<rusqlite::Result<BTreeSet<_>>>()?;
            starts =
                Some(starts.map_or_else(|| these.clone(), |starts| starts.intersection(&these).cloned().collect()));
        }
        Ok(counted(starts.unwrap_or_default().into_iter().map(|(row, _, _)| self.place(row)).collect()))
    }

    /// The position in the corpus of a row's passage.
    fn place(&self, row: i64) -> usize {
        match &self.rows {
            Some(rows) => rows.get(&row).copied().unwrap_or(usize::MAX),
            None => number(row),
        }
    }
}

/// Each position once, with its count, ascending.
fn counted(mut places: Vec<usize>) -> Vec<(usize, usize)> {
    places.sort_unstable();
    let each = places.chunk_by(|one, other| one == other);
    each.filter_map(|same| same.first().map(|place| (*place, same.len()))).collect()
}

/// The position of a row; rows are counted from 1.
fn number(row: i64) -> usize {
    usize::try_from(row - 1).unwrap_or(usize::MAX)
}

/// Flags for reading a database.
pub(super) fn to_read() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW
}

/// Flags for writing a database: `SQLite` opens files itself, and must refuse symbolic links.
pub(super) fn to_write() -> OpenFlags {
    OpenFlags::default() | OpenFlags::SQLITE_OPEN_NOFOLLOW
}

/// The path of a database, with symbolic links resolved.
pub(super) fn real(file: &Path) -> rusqlite::Result<PathBuf> {
    files::resolved(file).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// Creates the tables of a derived file; `rows` has a digest of each row's passage, and rows can be deleted by number.
pub(super) fn make_tables(connection: &Connection, words: Words) -> rusqlite::Result<()> {
    let tokenizer = words.tokenizer();
    connection.execute_batch(&format!(
        "CREATE VIRTUAL TABLE passages USING fts5(title, text, content='', contentless_delete=1, {tokenizer});
         CREATE TABLE rows (id INTEGER PRIMARY KEY, digest BLOB NOT NULL);"
    ))
}

/// Creates the full-text table in memory and inserts every passage; row 1 is the first.
fn fill(connection: &mut Connection, passages: &[Passage], words: Words) -> rusqlite::Result<()> {
    let tokenizer = words.tokenizer();
    connection
        .execute_batch(&format!("CREATE VIRTUAL TABLE passages USING fts5(title, text, content='', {tokenizer})"))?;
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare("INSERT INTO passages (rowid, title, text) VALUES (?1, ?2, ?3)")?;
        for (row, passage) in (1_i64..).zip(passages) {
            insert.execute(params![row, words.prepared(&passage.title), words.prepared(&passage.text)])?;
        }
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Language;

    fn index(texts: &[&str]) -> FullText {
        let passage = |text: &&str| Passage { id: String::new(), title: "Lamps".into(), text: (*text).into() };
        FullText::of(&texts.iter().map(passage).collect::<Vec<_>>(), Words::of(Language::English)).expect("opens")
    }

    #[test]
    fn words_are_counted_in_title_and_text_alike_whatever_their_ending() {
        let index = index(&["A red lamp, two lamps.", "A blue one.", "Lamplight."]);
        let stems = index.stems(&["lamp", "BLUE", "zeppelin"]).expect("stems");
        assert_eq!(stems, [["lamp"], ["blue"], ["zeppelin"]]);
        assert_eq!(index.counts("lamp").expect("counts"), [(0, 3), (1, 1), (2, 1)]);
        assert_eq!(index.counts("blue").expect("counts"), [(1, 1)]);
        assert!(index.counts("zeppelin").expect("counts").is_empty());
    }

    #[test]
    fn neighbours_are_found_in_one_column_only_and_prefixes_up_to_the_last_letter() {
        let index = index(&["red lamp, red lamp", "lamp red", "reddish \u{fffd}red"]);
        let stems = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        assert_eq!(index.side_by_side(&stems(&["red", "lamp"])).expect("counts"), [(0, 2)]);
        assert!(index.side_by_side(&stems(&["lamp", "red", "lamp"])).expect("counts") == [(0, 1)]);
        assert!(index.side_by_side(&[]).expect("counts").is_empty());
        assert_eq!(index.beginning_with("red").expect("counts"), [(0, 2), (1, 1), (2, 2)]);
    }

    #[test]
    fn a_word_that_the_tokenizer_splits_has_several_stems_and_one_that_it_drops_has_none() {
        let index = index(&["red"]);
        let stems = index.stems(&["red-hot wires", "?!", "blue"]).expect("stems");
        assert_eq!(stems, [vec!["red", "hot", "wire"], vec![], vec!["blue"]]);
        assert!(index.stems(&[]).expect("stems").is_empty());
    }
}
