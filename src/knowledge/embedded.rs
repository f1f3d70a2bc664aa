//! The knowledge base that needs no server: `SQLite`'s FTS5 over a corpus.
//!
//! Small corpora live in memory, one copy for each connection of the pool; larger ones in a derived file, named after
//! the corpus's hash and [`INDEX_VERSION`], built once and opened read-only. The user's text never reaches the query
//! grammar: every term is letters and digits only, and quoted.

use super::documents::{Corpus, Passage};
use super::words;
use super::{Found, KnowledgeBase, KnowledgeError};
use crate::clock::BoxFuture;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, params};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Changes whenever the tokenizer or the columns do: a derived file of another version is not read.
const INDEX_VERSION: u32 = 1;

/// Passages up to which a copy in memory for each connection is cheaper than a file.
const IN_MEMORY: usize = 2_000;

/// A corpus with its full-text index; cheap to clone, and every clone shares one pool of connections.
#[derive(Clone)]
pub struct Embedded {
    corpus: Arc<Corpus>,
    file: Option<PathBuf>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl std::fmt::Debug for Embedded {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Embedded")
            .field("id", &self.corpus.id)
            .field("hash", &self.corpus.hash)
            .finish_non_exhaustive()
    }
}

impl Embedded {
    /// Indexes `corpus`. A corpus of more than 2,000 passages goes to a file in `cache`, where one is given.
    ///
    /// # Errors
    /// When the index cannot be built.
    pub fn open(corpus: Corpus, cache: Option<&Path>) -> Result<Self, KnowledgeError> {
        let file = match cache {
            Some(folder) if corpus.passages.len() > IN_MEMORY => Some(derive_file(&corpus, folder)?),
            _ => None,
        };
        let base = Self { corpus: Arc::new(corpus), file, idle: Arc::default() };
        let first = base.connect().map_err(failed)?;
        base.give_back(first);
        Ok(base)
    }

    /// The passages.
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let mut connection = match &self.file {
            Some(file) => {
                Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?
            }
            None => Connection::open_in_memory()?,
        };
        if self.file.is_none() {
            fill(&mut connection, &self.corpus.passages)?;
        }
        // Without it, every query is planned anew for its parameters, which for one table changes nothing.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(connection)
    }

    fn give_back(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }

    fn find(&self, query: &str, top_k: usize) -> Result<Vec<Found>, KnowledgeError> {
        let terms = words::terms(query);
        if terms.is_empty() || top_k == 0 {
            return Ok(Vec::new());
        }
        let matching = terms.iter().map(|term| format!("\"{term}\"")).collect::<Vec<_>>().join(" OR ");
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect().map_err(failed)?,
        };
        let found = self.ask(&connection, &matching, top_k).map_err(failed);
        self.give_back(connection);
        found
    }

    fn ask(&self, connection: &Connection, matching: &str, top_k: usize) -> rusqlite::Result<Vec<Found>> {
        let mut statement = connection
            .prepare_cached("SELECT rowid, rank FROM passages WHERE passages MATCH ?1 ORDER BY rank, rowid LIMIT ?2")?;
        let limit = i64::try_from(top_k).unwrap_or(i64::MAX);
        let rows =
            statement.query_map(params![matching, limit], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, f64>(1)?)))?;
        let mut found = Vec::with_capacity(top_k.min(32));
        for row in rows {
            let (rowid, rank) = row?;
            let place = usize::try_from(rowid - 1).unwrap_or(usize::MAX);
            if let Some(passage) = self.corpus.passages.get(place) {
                // FTS5's rank is negative, and smaller is better.
                found.push(Found { passage: passage.clone(), raw_score: -rank });
            }
        }
        Ok(found)
    }
}

impl KnowledgeBase for Embedded {
    fn search<'a>(&'a self, query: &'a str, top_k: usize) -> BoxFuture<'a, Result<Vec<Found>, KnowledgeError>> {
        Box::pin(std::future::ready(self.find(query, top_k)))
    }

    fn hash(&self) -> &str {
        &self.corpus.hash
    }

    fn id(&self) -> &str {
        &self.corpus.id
    }
}

fn failed(error: rusqlite::Error) -> KnowledgeError {
    KnowledgeError::Index { what: "search index", error }
}

/// Creates the full-text table and puts every passage in, row 1 being the first.
fn fill(connection: &mut Connection, passages: &[Passage]) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE VIRTUAL TABLE passages USING fts5(title, text, content='', tokenize='porter unicode61 remove_diacritics 2')",
    )?;
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare("INSERT INTO passages (rowid, title, text) VALUES (?1, ?2, ?3)")?;
        for (row, passage) in (1_i64..).zip(passages) {
            insert.execute(params![row, words::apart(&passage.title), words::apart(&passage.text)])?;
        }
    }
    transaction.commit()
}

/// The derived file of a large corpus, built beside and moved into place when it is not there yet.
fn derive_file(corpus: &Corpus, folder: &Path) -> Result<PathBuf, KnowledgeError> {
    let file = folder.join(format!("{}-v{INDEX_VERSION}.sqlite", corpus.hash));
    if file.exists() {
        return Ok(file);
    }
    let unwritable = |error| KnowledgeError::Read { path: folder.to_owned(), error };
    std::fs::create_dir_all(folder).map_err(unwritable)?;
    let beside = tempfile::NamedTempFile::new_in(folder).map_err(unwritable)?;
    let mut connection = Connection::open(beside.path()).map_err(failed)?;
    fill(&mut connection, &corpus.passages).map_err(failed)?;
    connection.close().map_err(|(_, error)| failed(error))?;
    beside.persist(&file).map_err(|error| unwritable(error.error))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{VirtualClock, block_on};
    use proptest::prelude::*;

    fn base(texts: &[&str]) -> Embedded {
        let passages = (1..)
            .zip(texts)
            .map(|(n, text)| Passage { id: format!("doc#{n}"), title: "Doc".into(), text: (*text).into() })
            .collect();
        Embedded::open(Corpus::of("desk", passages), None).expect("opens")
    }

    fn ids(base: &Embedded, query: &str, top_k: usize) -> Vec<String> {
        let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        let found = block_on(&clock, base.search(query, top_k)).expect("no deadlock").expect("searches");
        found.into_iter().map(|hit| hit.passage.id).collect()
    }

    #[test]
    fn inflected_words_and_accents_are_found() {
        let base = base(&["Batteries are charged overnight.", "The café sells inverters."]);
        assert_eq!(ids(&base, "charging a battery", 5), ["doc#1"]);
        assert_eq!(ids(&base, "cafe inverter", 5), ["doc#2"]);
    }

    #[test]
    fn a_question_in_japanese_finds_a_passage_in_japanese() {
        let base = base(&["バッテリーの保証は二年です。", "充電は四時間です。"]);
        assert_eq!(ids(&base, "保証期間", 5)[0], "doc#1");
    }

    #[test]
    fn equal_scores_stand_in_the_order_of_the_corpus_and_top_k_bounds_them() {
        let base = base(&["red lamp", "red lamp", "red lamp"]);
        assert_eq!(ids(&base, "red", 2), ["doc#1", "doc#2"]);
    }

    #[test]
    fn nothing_that_fits_is_an_empty_result() {
        let base = base(&["red lamp"]);
        assert!(ids(&base, "zeppelin", 5).is_empty());
        assert!(ids(&base, "???", 5).is_empty());
    }

    #[test]
    fn a_large_corpus_is_kept_in_a_file_and_found_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let passages: Vec<_> = (0..=IN_MEMORY)
            .map(|n| Passage { id: format!("doc#{n}"), title: String::new(), text: format!("lamp number{n}") })
            .collect();
        for _ in 0..2 {
            let base = Embedded::open(Corpus::of("big", passages.clone()), Some(folder.path())).expect("opens");
            assert_eq!(ids(&base, "number17", 5), ["doc#17"]);
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("lists").count(), 1);
    }

    #[test]
    fn threads_search_side_by_side() {
        let base = base(&["red lamp", "blue lamp"]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50).for_each(|_| assert_eq!(ids(&base, "blue", 5), ["doc#2"])));
            }
        });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn no_text_breaks_the_query_grammar(query in "\\PC{0,60}|[\"'*^():{}+\\-ANDORNEAR ]{0,40}") {
            let base = base(&["red lamp"]);
            let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
            prop_assert!(block_on(&clock, base.search(&query, 5)).expect("no deadlock").is_ok());
        }
    }
}
