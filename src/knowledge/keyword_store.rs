//! The keyword index's tables.
//!
//! | table | a row is |
//! |---|---|
//! | results | one external answer, once for each session and result id |
//! | keywords | one normalised keyword, with its uses |
//! | provenance | keyword, answer and query that belong together |
//! | stems | one meaningful word of a keyword, in its stem |
//!
//! `PRAGMA user_version` is the version of this layout; a file of another version is refused, never rewritten.

use super::keyword_index::{ExternalRecord, KeywordEntry, Provenance, PruneRule, Pruned};
use super::tokenize;
use jiff::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const VERSION: i64 = 1;

const TABLES: &str = "
CREATE TABLE results (
    id INTEGER PRIMARY KEY, session TEXT NOT NULL, result TEXT NOT NULL, conversation INTEGER NOT NULL,
    query TEXT NOT NULL, answer TEXT NOT NULL, citations TEXT NOT NULL, UNIQUE (session, result));
CREATE TABLE keywords (
    id INTEGER PRIMARY KEY, keyword TEXT NOT NULL UNIQUE, stems INTEGER NOT NULL, uses INTEGER NOT NULL,
    last_active INTEGER NOT NULL);
CREATE TABLE provenance (
    keyword INTEGER NOT NULL REFERENCES keywords(id), result INTEGER NOT NULL REFERENCES results(id),
    query TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (keyword, result, query)) WITHOUT ROWID;
CREATE TABLE stems (
    stem TEXT NOT NULL, keyword INTEGER NOT NULL REFERENCES keywords(id), PRIMARY KEY (stem, keyword)) WITHOUT ROWID;
";

/// Emptied databases in memory that wait for the next index: opening one costs more than all else that a trial does
/// with it, for its tables and its prepared statements.
static IDLE: Mutex<Vec<Connection>> = Mutex::new(Vec::new());
/// Idle databases at most.
const MOST_IDLE: usize = 64;

const EMPTY: [&str; 4] = ["DELETE FROM stems", "DELETE FROM provenance", "DELETE FROM keywords", "DELETE FROM results"];

fn open_in_memory() -> rusqlite::Result<Connection> {
    if let Some(idle) = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop() {
        return Ok(idle);
    }
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(TABLES)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// Empties a database in memory for the next index; one that cannot be emptied goes.
pub(super) fn give_back(connection: Connection) {
    let empty =
        |statement: &str| connection.prepare_cached(statement).and_then(|mut delete| delete.execute([])).is_ok();
    let emptied = connection.is_autocommit() && EMPTY.into_iter().all(empty);
    let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    if emptied && idle.len() < MOST_IDLE {
        idle.push(connection);
    }
}

/// Opens the file, or memory, and makes the tables where there are none.
pub(super) fn open(file: Option<&Path>) -> rusqlite::Result<Connection> {
    let Some(file) = file else { return open_in_memory() };
    let mut connection = Connection::open(file)?;
    // Before WAL: switching the journal needs a lock that another process may hold.
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    match version {
        0 => {
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        VERSION => {}
        other => {
            let what = format!("its layout has version {other}, this build knows {VERSION}");
            return Err(rusqlite::Error::InvalidParameterName(what));
        }
    }
    transaction.commit()?;
    Ok(connection)
}

/// Stores a record under keywords; gives back the keywords that were there before.
pub(super) fn insert(
    connection: &mut Connection,
    record: &ExternalRecord,
    keywords: &[String],
    query: &str,
    at: Timestamp,
) -> rusqlite::Result<Vec<String>> {
    let at = at.as_microsecond();
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let citations = serde_json::to_string(&record.citations).unwrap_or_else(|_| "[]".into());
    transaction
        .prepare_cached(
            "INSERT INTO results (session, result, conversation, query, answer, citations)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
        )?
        .execute(params![record.session, record.result, record.conversation, record.query, record.answer, citations])?;
    let result: i64 = transaction
        .prepare_cached("SELECT id FROM results WHERE session = ?1 AND result = ?2")?
        .query_row(params![record.session, record.result], |row| row.get(0))?;
    let mut merged = Vec::new();
    for keyword in keywords {
        let known: Option<i64> = transaction
            .prepare_cached("UPDATE keywords SET last_active = max(last_active, ?2) WHERE keyword = ?1 RETURNING id")?
            .query_row(params![keyword, at], |row| row.get(0))
            .optional()?;
        let id = if let Some(id) = known {
            merged.push(keyword.clone());
            id
        } else {
            let stems = tokenize::stems(keyword);
            transaction
                .prepare_cached("INSERT INTO keywords (keyword, stems, uses, last_active) VALUES (?1, ?2, 0, ?3)")?
                .execute(params![keyword, stems.len() as i64, at])?;
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
                "INSERT INTO provenance (keyword, result, query, at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            )?
            .execute(params![id, result, query, at])?;
    }
    transaction.commit()?;
    Ok(merged)
}

/// Whether an exact look-up of the keyword leads to that record.
pub(super) fn leads_to(connection: &Connection, keyword: &str, record: &ExternalRecord) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "SELECT 1 FROM keywords k JOIN provenance p ON p.keyword = k.id JOIN results r ON r.id = p.result
             WHERE k.keyword = ?1 AND r.session = ?2 AND r.result = ?3",
        )?
        .exists(params![keyword, record.session, record.result])
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
        "SELECT k.keyword, k.uses, k.last_active, p.query, r.session, r.conversation, r.result, p.at
         FROM keywords k JOIN provenance p ON p.keyword = k.id JOIN results r ON r.id = p.result
         ORDER BY k.keyword, p.at, r.id, p.query",
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
