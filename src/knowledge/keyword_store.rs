//! Tables of the keyword index.
//!
//! | table | a row is |
//! |---|---|
//! | results | one external answer, identified by a digest of its content |
//! | keywords | one keyword as it was first written, under the form in which keywords are compared, with its uses |
//! | provenance | keyword, answer, the model's query and the user's question that belong together |
//! | stems | one meaningful word of a keyword, in its stem |
//!
//! `PRAGMA application_id` says that a file is a keyword index, `PRAGMA user_version` the version of this layout. Both
//! are read from the file's first bytes before anything is opened: a file of another program, or of another version,
//! is refused and not changed.

use super::guard::{differs, guard};
use super::learned::{ExternalRecord, KeywordEntry, Provenance, learned_id};
use super::upkeep::{PruneRule, Pruned};
use super::{ForeignFile, KnowledgeError, tokenize};
use crate::platform::lock::lock;
use jiff::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

const VERSION: i64 = 2;
/// Application id at byte 68 of the file: `rckw`.
const APPLICATION: i64 = 0x7263_6b77;
/// Maximum characters of a keyword.
const LONGEST_KEYWORD: usize = 200;
/// Maximum characters of every other text.
const LONGEST_TEXT: usize = 1_000_000;
/// Maximum characters of all citations of an answer.
const LONGEST_CITATIONS: usize = 16_000_000;
/// Time that a writer waits for others.
const PATIENCE: Duration = Duration::from_mins(1);
/// Maximum attempts to switch a new file to a write-ahead log while other processes open it.
const WAL_ATTEMPTS: usize = 1_000;

const TABLES: &str = "
CREATE TABLE results (
    id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, session TEXT NOT NULL, result TEXT NOT NULL,
    conversation INTEGER NOT NULL, query TEXT NOT NULL, answer TEXT NOT NULL, citations TEXT NOT NULL);
CREATE TABLE keywords (
    id INTEGER PRIMARY KEY, form TEXT NOT NULL UNIQUE, keyword TEXT NOT NULL, stems INTEGER NOT NULL,
    uses INTEGER NOT NULL, last_active INTEGER NOT NULL);
CREATE TABLE provenance (
    keyword INTEGER NOT NULL REFERENCES keywords(id), result INTEGER NOT NULL REFERENCES results(id),
    query TEXT NOT NULL, question_id TEXT NOT NULL, question TEXT NOT NULL, at INTEGER NOT NULL,
    PRIMARY KEY (keyword, result, query, question_id)) WITHOUT ROWID;
CREATE INDEX provenance_of_result ON provenance (result);
CREATE TABLE stems (
    stem TEXT NOT NULL, keyword INTEGER NOT NULL REFERENCES keywords(id), PRIMARY KEY (stem, keyword)) WITHOUT ROWID;
";

/// Emptied databases in memory for reuse: creating tables and statements costs more than everything else that a trial
/// does with one.
static IDLE: Mutex<Vec<Connection>> = Mutex::new(Vec::new());
/// Maximum number of idle databases.
const MOST_IDLE: usize = 64;

const EMPTY: [&str; 4] = ["DELETE FROM stems", "DELETE FROM provenance", "DELETE FROM keywords", "DELETE FROM results"];

fn open_in_memory() -> rusqlite::Result<Connection> {
    if let Some(idle) = lock(&IDLE).pop() {
        return Ok(idle);
    }
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(TABLES)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// A database in memory that cannot be written.
pub(super) fn open_unwritable() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(TABLES)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Empties a database in memory for reuse, or drops it if that fails.
pub(super) fn give_back(connection: Connection) {
    let empty =
        |statement: &str| connection.prepare_cached(statement).and_then(|mut delete| delete.execute([])).is_ok();
    let emptied = connection.is_autocommit() && EMPTY.into_iter().all(empty);
    let mut idle = lock(&IDLE);
    if emptied && idle.len() < MOST_IDLE {
        idle.push(connection);
    }
}

/// Opens a file or memory and creates missing tables.
pub(super) fn open(file: Option<&Path>) -> Result<Connection, KnowledgeError> {
    let Some(file) = file else { return open_in_memory().map_err(|error| failed(None, error)) };
    let failed = |error| failed(Some(file), error);
    let foreign = |why: ForeignFile| KnowledgeError::Foreign { path: file.to_owned(), why };
    let header = header(file).map_err(|error| KnowledgeError::Read { path: file.to_owned(), error })?;
    if let Some(why) = header.as_deref().and_then(why_foreign) {
        return Err(foreign(why));
    }
    match open_checked(file).map_err(failed)? {
        Ok(connection) => Ok(connection),
        Err(why) => Err(foreign(why)),
    }
}

/// Opens an existing keyword index read-only.
pub(super) fn open_to_read(file: &Path) -> Result<Connection, KnowledgeError> {
    let foreign = |why: ForeignFile| KnowledgeError::Foreign { path: file.to_owned(), why };
    let header = header(file).map_err(|error| KnowledgeError::Read { path: file.to_owned(), error })?;
    let header = header.ok_or_else(|| foreign(ForeignFile::Empty))?;
    if let Some(why) = why_foreign(&header) {
        return Err(foreign(why));
    }
    let failed = |error| failed(Some(file), error);
    let real = super::full_text::real(file).map_err(failed)?;
    let connection = Connection::open_with_flags(real, super::full_text::to_read()).map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    guard(&connection).map_err(failed)?;
    match foreign_schema(&connection).map_err(failed)? {
        Some(why) => Err(foreign(why)),
        None if holds_long_text(&connection).map_err(failed)? => Err(foreign(ForeignFile::LongText)),
        None => Ok(connection),
    }
}

/// An error of the index in `file`, or in memory.
pub(super) fn failed(file: Option<&Path>, error: rusqlite::Error) -> KnowledgeError {
    KnowledgeError::Index { what: "keyword index", file: file.map(Path::to_owned), error }
}

/// Checks that texts are within the limits of an index.
///
/// # Errors
/// [`KnowledgeError::LongText`] for the first that is longer.
pub(super) fn short_enough(
    record: &ExternalRecord,
    keywords: &[(String, String)],
    query: &str,
) -> Result<(), KnowledgeError> {
    let longer = |text: &str, most: usize| text.chars().nth(most).is_some();
    if keywords.iter().any(|(keyword, form)| longer(keyword, LONGEST_KEYWORD) || longer(form, LONGEST_KEYWORD)) {
        return Err(KnowledgeError::LongText { what: "keyword", most: LONGEST_KEYWORD });
    }
    let ExternalRecord { session, result, query: sent, answer, citations, question, question_id, .. } = record;
    let cited = citations.iter().flat_map(|(title, url)| [title, url]);
    let own = [session, result, sent, answer, question, question_id].into_iter().chain(cited).map(String::as_str);
    if own.chain([query]).any(|text| longer(text, LONGEST_TEXT)) {
        return Err(KnowledgeError::LongText { what: "text", most: LONGEST_TEXT });
    }
    Ok(())
}

/// Whether a file has a text longer than [`short_enough`] allows.
fn holds_long_text(connection: &Connection) -> rusqlite::Result<bool> {
    let long = format!(
        "SELECT 1 FROM keywords WHERE max(length(keyword), length(form)) > {LONGEST_KEYWORD}
         UNION ALL SELECT 1 FROM stems WHERE length(stem) > {LONGEST_KEYWORD}
         UNION ALL SELECT 1 FROM provenance WHERE max(length(query), length(question_id), length(question)) > {LONGEST_TEXT}
         UNION ALL SELECT 1 FROM results
             WHERE max(length(digest), length(session), length(result), length(query), length(answer)) > {LONGEST_TEXT}
                OR length(citations) > {LONGEST_CITATIONS}
         LIMIT 1"
    );
    connection.prepare(&long)?.exists([])
}

/// The first 100 bytes of an existing file that is not empty.
fn header(file: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    match crate::platform::files::open(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(opened) => opened.take(100).read_to_end(&mut bytes)?,
    };
    // All zeros: a new file whose first page another process has not written yet.
    Ok(bytes.iter().any(|byte| *byte != 0).then_some(bytes))
}

/// Why a file with these first bytes is not a keyword index of this build.
fn why_foreign(header: &[u8]) -> Option<ForeignFile> {
    if header.get(..16) != Some(b"SQLite format 3\0") {
        return Some(ForeignFile::NotSqlite);
    }
    let word = |at: usize| header.get(at..at + 4)?.try_into().ok().map(|bytes| i64::from(i32::from_be_bytes(bytes)));
    why_other(word(68).unwrap_or_default(), word(60).unwrap_or_default())
}

fn why_other(application: i64, version: i64) -> Option<ForeignFile> {
    if application != APPLICATION {
        return Some(ForeignFile::OtherProgram);
    }
    (version != VERSION).then_some(ForeignFile::OtherVersion { version, known: VERSION })
}

/// Why a file's tables are not those of a keyword index.
fn foreign_schema(connection: &Connection) -> rusqlite::Result<Option<ForeignFile>> {
    let ours = Connection::open_in_memory()?;
    ours.execute_batch(TABLES)?;
    Ok(differs(connection, &ours)?.map(|(kind, name)| ForeignFile::OtherSchema { kind, name }))
}

/// Opens a keyword index or a new file; the inner `Err` says why it is neither.
fn open_checked(file: &Path) -> rusqlite::Result<Result<Connection, ForeignFile>> {
    let mut connection = Connection::open_with_flags(super::full_text::real(file)?, super::full_text::to_write())?;
    // Before WAL: switching the journal needs a lock that another process may hold.
    connection.busy_timeout(PATIENCE)?;
    guard(&connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let number = |pragma: &str| transaction.query_row(pragma, [], |row| row.get::<_, i64>(0));
    let (application, version) = (number("PRAGMA application_id")?, number("PRAGMA user_version")?);
    let empty = number("SELECT count(*) FROM sqlite_master")? == 0 && application == 0 && version == 0;
    if empty {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    } else if let Some(why) = why_other(application, version) {
        return Ok(Err(why));
    } else if let Some(why) = foreign_schema(&transaction)? {
        return Ok(Err(why));
    } else if holds_long_text(&transaction)? {
        return Ok(Err(ForeignFile::LongText));
    }
    transaction.commit()?;
    switch_to_wal(&connection)?;
    Ok(Ok(connection))
}

/// Switches a file to a write-ahead log: SQLite reports it as busy at once, regardless of the busy timeout, while another
/// process opens the same new file.
fn switch_to_wal(connection: &Connection) -> rusqlite::Result<()> {
    for _ in 0..WAL_ATTEMPTS {
        let mode = || connection.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0));
        let switched = mode().and_then(|mode| match mode.as_str() {
            "wal" => Ok(()),
            _ => connection.pragma_update(None, "journal_mode", "wal"),
        });
        match switched {
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                // Here SQLite waits for the lock.
                connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK")?;
            }
            done => return done,
        }
    }
    connection.pragma_update(None, "journal_mode", "wal")
}

/// Stores a record under keywords (as written, and as compared); returns those that already existed.
pub(super) fn insert(
    connection: &mut Connection,
    record: &ExternalRecord,
    keywords: &[(String, String)],
    query: &str,
    at: Timestamp,
) -> rusqlite::Result<Vec<String>> {
    let at = at.as_microsecond();
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let citations = serde_json::to_string(&record.citations).unwrap_or_else(|_| "[]".into());
    let digest = record.digest();
    transaction
        .prepare_cached(
            "INSERT INTO results (digest, session, result, conversation, query, answer, citations)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            digest, record.session, record.result, record.conversation, record.query, record.answer, citations
        ])?;
    let result: i64 = transaction
        .prepare_cached("SELECT id FROM results WHERE digest = ?1")?
        .query_row(params![digest], |row| row.get(0))?;
    let mut merged = Vec::new();
    for (keyword, form) in keywords {
        let known: Option<i64> = transaction
            .prepare_cached("UPDATE keywords SET last_active = max(last_active, ?2) WHERE form = ?1 RETURNING id")?
            .query_row(params![form, at], |row| row.get(0))
            .optional()?;
        let id = if let Some(id) = known {
            merged.push(keyword.clone());
            id
        } else {
            let stems = tokenize::stems(keyword);
            transaction
                .prepare_cached(
                    "INSERT INTO keywords (form, keyword, stems, uses, last_active) VALUES (?1, ?2, ?3, 0, ?4)",
                )?
                .execute(params![form, keyword, stems.len() as i64, at])?;
            let id = transaction.last_insert_rowid();
            for stem in &stems {
                transaction
                    .prepare_cached("INSERT INTO stems (stem, keyword) VALUES (?1, ?2)")?
                    .execute(params![stem, id])?;
            }
            id
        };
        transaction
            .prepare_cached(
                "INSERT INTO provenance (keyword, result, query, question_id, question, at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
            )?
            .execute(params![id, result, query, record.question_id, record.question, at])?;
    }
    transaction.commit()?;
    Ok(merged)
}

/// Whether an exact look-up of the keyword leads to that record.
pub(super) fn leads_to(connection: &Connection, form: &str, record: &ExternalRecord) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "SELECT 1 FROM keywords k JOIN provenance p ON p.keyword = k.id JOIN results r ON r.id = p.result
             WHERE k.form = ?1 AND r.digest = ?2",
        )?
        .exists(params![form, record.digest()])
}

/// Records with a keyword whose every stem is among `stems`: (row, record, keyword), each pair once.
pub(super) fn matching(
    connection: &mut Connection,
    stems: &[String],
) -> rusqlite::Result<Vec<(i64, ExternalRecord, String)>> {
    let stems = serde_json::Value::from(stems).to_string();
    let mut statement = connection.prepare_cached(
        "SELECT DISTINCT r.id, r.session, r.conversation, r.result, r.query, r.answer, r.citations, k.keyword
         FROM (SELECT keyword, count(*) AS seen FROM stems WHERE stem IN (SELECT value FROM json_each(?1))
               GROUP BY keyword) AS m
         JOIN keywords k ON k.id = m.keyword AND k.stems = m.seen
         JOIN provenance p ON p.keyword = k.id
         JOIN results r ON r.id = p.result
         ORDER BY r.id, k.keyword",
    )?;
    let rows = statement.query_map([stems], |row| Ok((row.get(0)?, record_of(row)?, row.get(7)?)))?;
    rows.collect()
}

fn record_of(row: &Row<'_>) -> rusqlite::Result<ExternalRecord> {
    let citations: String = row.get(6)?;
    Ok(ExternalRecord {
        session: row.get(1)?,
        conversation: row.get(2)?,
        result: row.get(3)?,
        query: row.get(4)?,
        answer: row.get(5)?,
        citations: serde_json::from_str(&citations).unwrap_or_default(),
        // The provenance has those of one indexing: several questions may lead to one answer.
        question: String::new(),
        question_id: String::new(),
    })
}

/// Counts one use of each keyword.
pub(super) fn note_use(connection: &mut Connection, keywords: &[&String], at: Timestamp) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for keyword in keywords {
        transaction
            .prepare_cached(
                "UPDATE keywords SET uses = uses + 1, last_active = max(last_active, ?2) WHERE keyword = ?1",
            )?
            .execute(params![keyword, at.as_microsecond()])?;
    }
    transaction.commit()
}

/// All keywords with their provenance.
pub(super) fn list(connection: &mut Connection) -> rusqlite::Result<Vec<KeywordEntry>> {
    let mut statement = connection.prepare_cached(
        "SELECT k.keyword, k.uses, k.last_active, p.query, r.session, r.conversation, r.result, p.at,
                p.question, p.question_id, r.answer, r.citations, r.digest
         FROM keywords k JOIN provenance p ON p.keyword = k.id JOIN results r ON r.id = p.result
         ORDER BY k.form, p.at, r.id, p.query, p.question_id",
    )?;
    let mut rows = statement.query([])?;
    let mut entries: Vec<KeywordEntry> = Vec::new();
    while let Some(row) = rows.next()? {
        let keyword: String = row.get(0)?;
        if entries.last().is_none_or(|last| last.keyword != keyword) {
            let (uses, last_active) = (row.get::<_, i64>(1)?.unsigned_abs(), time(row.get(2)?));
            entries.push(KeywordEntry { keyword, uses, last_active, provenance: Vec::new() });
        }
        let source = Provenance {
            query: row.get(3)?,
            session: row.get(4)?,
            conversation: row.get(5)?,
            result: row.get(6)?,
            at: time(row.get(7)?),
            question: row.get(8)?,
            question_id: row.get(9)?,
            answer: row.get(10)?,
            citations: serde_json::from_str(&row.get::<_, String>(11)?).unwrap_or_default(),
            id: learned_id(&row.get::<_, String>(12)?),
        };
        if let Some(entry) = entries.last_mut() {
            entry.provenance.push(source);
        }
    }
    Ok(entries)
}

fn time(microseconds: i64) -> Timestamp {
    Timestamp::from_microsecond(microseconds).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Removes keywords by `rule`, then what nothing refers to.
pub(super) fn prune(connection: &mut Connection, rule: PruneRule) -> rusqlite::Result<Pruned> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let before = rule.idle_since.map_or(i64::MAX, Timestamp::as_microsecond);
    let uses = rule.fewer_uses_than.map_or(i64::MAX, |uses| i64::try_from(uses).unwrap_or(i64::MAX));
    let doomed = "SELECT id FROM keywords WHERE last_active < ?1 AND uses < ?2";
    for table in ["stems", "provenance"] {
        transaction.execute(&format!("DELETE FROM {table} WHERE keyword IN ({doomed})"), params![before, uses])?;
    }
    let keywords =
        transaction.execute(&format!("DELETE FROM keywords WHERE id IN ({doomed})"), params![before, uses])?;
    let results = transaction.execute("DELETE FROM results WHERE id NOT IN (SELECT result FROM provenance)", [])?;
    transaction.commit()?;
    Ok(Pruned { keywords, results })
}
