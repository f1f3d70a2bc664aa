//! Limits an untrusted database to holding rows.
//!
//! A `SQLite` file carries code: triggers, views, generated columns and default values run when a table is read or written,
//! and can take any time and memory. Triggers and views are switched off, functions and virtual tables in the schema that
//! are not known to be harmless as well, and a schema that is not, word for word, the one that this build makes is refused.

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use std::collections::BTreeSet;

/// Disables everything that a schema could execute.
pub(super) fn guard(connection: &Connection) -> rusqlite::Result<()> {
    for (switch, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
    ] {
        connection.set_db_config(switch, on)?;
    }
    Ok(())
}

/// The first difference between a schema and `ours`, by kind and name; `None` if they are equal.
pub(super) fn differs(connection: &Connection, ours: &Connection) -> rusqlite::Result<Option<(String, String)>> {
    let (theirs, ours) = (schema(connection)?, schema(ours)?);
    let first = theirs.difference(&ours).chain(ours.difference(&theirs)).next();
    let plain =
        |text: &str| text.chars().filter(|letter| letter.is_alphanumeric() || *letter == '_').take(60).collect();
    Ok(first.map(|(kind, name, _)| (plain(kind), plain(name))))
}

/// Kind, name and definition of everything that a database declares, except the statistics of `ANALYZE`, which are rows.
fn schema(connection: &Connection) -> rusqlite::Result<BTreeSet<(String, String, String)>> {
    let mut statement = connection.prepare("SELECT type, name, coalesce(sql, '') FROM main.sqlite_master")?;
    let rows = statement.query_map([], |row| {
        let (kind, name, sql): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok((kind, name, sql.split_whitespace().collect::<Vec<_>>().join(" ")))
    })?;
    rows.filter(|row| !row.as_ref().is_ok_and(|(_, name, _)| name.starts_with("sqlite_stat"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(sql: &str) -> Connection {
        let connection = Connection::open_in_memory().expect("opens");
        connection.execute_batch(sql).expect("made");
        connection
    }

    #[test]
    fn every_addition_to_a_schema_is_named_and_white_space_is_none() {
        let ours = database("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)");
        let same = database("CREATE TABLE rows (id INTEGER  PRIMARY KEY,\n text TEXT)");
        assert_eq!(differs(&same, &ours).expect("read"), None);
        for (sql, named) in [
            (
                "CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT); CREATE TRIGGER t AFTER INSERT ON rows BEGIN DELETE FROM rows; END",
                "trigger `t`",
            ),
            ("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT); CREATE VIEW v AS SELECT 1", "view `v`"),
            ("CREATE VIEW rows AS SELECT 1 AS id, 'x' AS text", "view `rows`"),
            ("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT AS (hex(zeroblob(1000000000))))", "table `rows`"),
            (
                "CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT DEFAULT (hex(zeroblob(1000000000))))",
                "table `rows`",
            ),
            ("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT); CREATE INDEX i ON rows (hex(text))", "index `i`"),
            ("CREATE TABLE other (id)", "table `other`"),
            ("", "table `rows`"),
        ] {
            let (kind, name) = differs(&database(sql), &ours).expect("read").expect(sql);
            assert_eq!(format!("{kind} `{name}`"), named, "{sql}");
        }
    }

    #[test]
    fn triggers_and_views_do_not_run_once_a_database_is_guarded() {
        let connection = database(
            "CREATE TABLE rows (id INTEGER PRIMARY KEY); CREATE TABLE noted (id);
             CREATE TRIGGER t AFTER INSERT ON rows BEGIN INSERT INTO noted VALUES (new.id); END;
             CREATE VIEW endless AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n;",
        );
        guard(&connection).expect("guarded");
        connection.execute("INSERT INTO rows VALUES (1)", []).expect("a row");
        assert_eq!(connection.query_row("SELECT count(*) FROM noted", [], |row| row.get(0)), Ok(0));
        assert!(connection.query_row("SELECT x FROM endless LIMIT 1", [], |row| row.get::<_, i64>(0)).is_err());
    }
}
