//! The knowledge base that needs no server: `SQLite`'s FTS5 over a corpus.
//!
//! Small corpora live in memory, one copy for each connection of the pool; larger ones in a derived file, named after
//! the corpus's hash and [`INDEX_VERSION`], built once and opened read-only. The user's text never reaches the query
//! grammar: every term is letters and digits only, and quoted. The rank of a search is the sum of its terms' ranks
//! (BM25 is such a sum), so FTS5 is asked for each term once, and searches add up what it said; a test holds the sum
//! against FTS5's own rank of the whole search.

use super::documents::{Corpus, Passage};
use super::words;
use super::{Found, KnowledgeBase, KnowledgeError};
use crate::clock::BoxFuture;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, params};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Changes whenever the tokenizer or the columns do: a derived file of another version is not read.
const INDEX_VERSION: u32 = 1;

/// Passages up to which a copy in memory for each connection is cheaper than a file.
const IN_MEMORY: usize = 2_000;

/// Passages in remembered terms at most: 16 bytes each. Beyond it all are forgotten.
const MOST_REMEMBERED: usize = 2_000_000;

/// The passages (places in the corpus) that a term occurs in, each with the term's part of the score.
type Occurrences = Arc<[(usize, f64)]>;

#[derive(Default)]
struct Terms {
    known: HashMap<String, Occurrences>,
    passages: usize,
}

/// A corpus with its full-text index; cheap to clone, and every clone shares one pool of connections.
#[derive(Clone)]
pub struct Embedded {
    corpus: Arc<Corpus>,
    file: Option<PathBuf>,
    idle: Arc<Mutex<Vec<Connection>>>,
    terms: Arc<Mutex<Terms>>,
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
        let base = Self { corpus: Arc::new(corpus), file, idle: Arc::default(), terms: Arc::default() };
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
        let mut parts: Vec<(usize, f64)> = Vec::new();
        for term in words::terms(query) {
            parts.extend_from_slice(&self.occurrences(term)?);
        }
        // Stable: a passage's parts stay in the order of the terms, and rounding with them.
        parts.sort_by_key(|(place, _)| *place);
        let sums = parts.chunk_by(|(one, _), (other, _)| one == other);
        let sum = |parts: &[(usize, f64)]| parts.iter().fold(0.0, |sum, (_, score)| sum + score);
        let mut ranked: Vec<(usize, f64)> =
            sums.filter_map(|parts| parts.first().map(|(place, _)| (*place, sum(parts)))).collect();
        // Stable: equal scores stay in the order of the corpus.
        ranked.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let best = ranked.into_iter().take(top_k);
        let found = best.filter_map(|(place, raw_score)| {
            let passage = self.corpus.passages.get(place)?.clone();
            Some(Found { passage, raw_score })
        });
        Ok(found.collect())
    }

    fn occurrences(&self, term: String) -> Result<Occurrences, KnowledgeError> {
        let known = self.terms.lock().unwrap_or_else(PoisonError::into_inner).known.get(&term).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect().map_err(failed)?,
        };
        let asked = ask(&connection, &format!("\"{term}\""));
        self.give_back(connection);
        let occurrences: Occurrences = asked.map_err(failed)?.into();
        let mut terms = self.terms.lock().unwrap_or_else(PoisonError::into_inner);
        if terms.passages + occurrences.len() > MOST_REMEMBERED {
            *terms = Terms::default();
        }
        terms.passages += occurrences.len();
        terms.known.insert(term, Arc::clone(&occurrences));
        Ok(occurrences)
    }
}

/// Places of the passages that match, in the order of the corpus, each with its score.
fn ask(connection: &Connection, matching: &str) -> rusqlite::Result<Vec<(usize, f64)>> {
    let mut statement =
        connection.prepare_cached("SELECT rowid, rank FROM passages WHERE passages MATCH ?1 ORDER BY rowid")?;
    let rows = statement.query_map(params![matching], |row| {
        let rowid: i64 = row.get(0)?;
        // FTS5's rank is negative, and smaller is better.
        Ok((usize::try_from(rowid - 1).unwrap_or(usize::MAX), -row.get::<_, f64>(1)?))
    })?;
    rows.collect()
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
    fn a_forgotten_term_is_asked_again() {
        let base = base(&["red lamp", "blue lamp"]);
        let first = ids(&base, "blue lamp", 5);
        base.terms.lock().expect("lock").passages = MOST_REMEMBERED;
        assert_eq!(ids(&base, "red lamp", 5), ["doc#1", "doc#2"]);
        assert!(base.terms.lock().expect("lock").passages < 5);
        assert_eq!(ids(&base, "blue lamp", 5), first);
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
        fn the_sum_of_the_terms_is_the_rank_that_fts5_gives_the_whole_search(
            texts in proptest::collection::vec("((lamp|lamps|charging|charged|red|blue|battery|batteries|2|\u{e9}t\u{e9}) ){1,12}", 1..12),
            query in "((lamp|lights|charge|red|blue|battery|batteries|2|ete) ){1,6}",
        ) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let base = base(&texts);
            let whole: Vec<String> = words::terms(&query).iter().map(|term| format!("\"{term}\"")).collect();
            let connection = base.connect().expect("connects");
            let mut oracle = ask(&connection, &whole.join(" OR ")).expect("searches");
            oracle.sort_by(|(_, a), (_, b)| b.total_cmp(a));
            let found = base.find(&query, 100).expect("searches");
            let found: Vec<(String, f64)> = found.into_iter().map(|hit| (hit.passage.id, hit.raw_score)).collect();
            let oracle: Vec<(String, f64)> =
                oracle.into_iter().map(|(place, score)| (format!("doc#{}", place + 1), score)).collect();
            prop_assert_eq!(found, oracle);
        }

        #[test]
        fn no_text_breaks_the_query_grammar(query in "\\PC{0,60}|[\"'*^():{}+\\-ANDORNEAR ]{0,40}") {
            let base = base(&["red lamp"]);
            let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
            prop_assert!(block_on(&clock, base.search(&query, 5)).expect("no deadlock").is_ok());
        }
    }
}
