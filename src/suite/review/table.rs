//! The ratings file: a row is added or changed at a time, and the file is written beside and renamed each time. Other rows
//! and columns stay as they are.

use crate::platform::files;
use crate::scenario::ratings::{DISAGREEMENT, DRAWN, SATISFIED, TRIAL};
use csv::StringRecord;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// A ratings file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RatingsError {
    /// It cannot be read or written.
    #[error("{}: {error}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// It is no table of ratings.
    #[error("{}: {why}: ragcheck review adds to a CSV file with the columns `trial` and `satisfied`", file.display())]
    Table {
        /// The file.
        file: PathBuf,
        /// The reason.
        why: String,
    },
}

/// The rows of a ratings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RatingsTable {
    headers: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl RatingsTable {
    /// Reads the file; a missing one has no rows.
    ///
    /// # Errors
    /// If it cannot be read, or is no table of ratings.
    pub(crate) fn read(file: &Path) -> Result<Self, RatingsError> {
        let headers = [TRIAL, SATISFIED, DRAWN].map(str::to_owned).to_vec();
        let text = match files::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self { headers, rows: Vec::new() }),
            Err(error) => return Err(RatingsError::File { file: file.to_owned(), error }),
        };
        let wrong = |why: String| RatingsError::Table { file: file.to_owned(), why };
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
        let texts = |record: &StringRecord| record.iter().map(str::to_owned).collect::<Vec<_>>();
        let mut headers = reader.headers().map(texts).map_err(|why| wrong(why.to_string()))?;
        if ![TRIAL, SATISFIED].iter().all(|name| headers.iter().any(|header| header == name)) {
            return Err(wrong("a column is missing".to_owned()));
        }
        let rows = reader.records().map(|record| record.map(|record| texts(&record)));
        let mut rows = rows.collect::<Result<Vec<_>, _>>().map_err(|why| wrong(why.to_string()))?;
        if !headers.iter().any(|header| header == DRAWN) {
            headers.push(DRAWN.to_owned());
            for row in &mut rows {
                row.push(String::new());
            }
        }
        Ok(Self { headers, rows })
    }

    fn column(&self, name: &str) -> usize {
        self.headers.iter().position(|header| header == name).unwrap_or_default()
    }

    /// Ratings by trial.
    pub(crate) fn ratings(&self) -> BTreeMap<&str, bool> {
        let (trial, satisfied) = (self.column(TRIAL), self.column(SATISFIED));
        let given = |row: &'_ Vec<String>| matches!(row[satisfied].to_lowercase().as_str(), "true" | "yes" | "1");
        self.rows.iter().map(|row| (row[trial].as_str(), given(row))).collect()
    }

    /// Adds a rating, or changes the one of that trial. Once a trial was drawn at random, or rated without a review, it
    /// stays so.
    pub(crate) fn rate(&mut self, rated: &str, satisfied: bool, sampled: bool) {
        let (trial, given, drawn) = (self.column(TRIAL), self.column(SATISFIED), self.column(DRAWN));
        let place = self.rows.iter().position(|row| row[trial] == rated).unwrap_or_else(|| {
            let mut row = vec![String::new(); self.headers.len()];
            (row[trial], row[drawn]) = (rated.to_owned(), DISAGREEMENT.to_owned());
            self.rows.push(row);
            self.rows.len() - 1
        });
        let row = &mut self.rows[place];
        row[given] = String::from(if satisfied { "yes" } else { "no" });
        if sampled {
            row[drawn] = String::from("random");
        }
    }

    /// Writes the file beside and renames it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(&self, file: &Path) -> Result<(), RatingsError> {
        let failed = |error: io::Error| RatingsError::File { file: file.to_owned(), error };
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in std::iter::once(&self.headers).chain(&self.rows) {
            writer.write_record(row).map_err(|why| failed(io::Error::other(why)))?;
        }
        let text = writer.into_inner().map_err(|why| failed(why.into_error()))?;
        files::replace(file, text).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rating_changes_one_row_and_keeps_other_rows_and_columns() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ratings.csv");
        let mut table = RatingsTable::read(&file).expect("an empty table");
        table.rate("a/b/f.v.1", true, true);
        table.write(&file).expect("written");
        assert_eq!(std::fs::read_to_string(&file).expect("text"), "trial,satisfied,drawn\na/b/f.v.1,yes,random\n");
        std::fs::write(&file, "who,satisfied,trial\nx,0,a\n\"y, z\",yes,b\n").expect("written");
        let mut table = RatingsTable::read(&file).expect("a table");
        assert_eq!(table.ratings(), BTreeMap::from([("a", false), ("b", true)]));
        table.rate("b", false, false);
        table.rate("c", true, true);
        table.write(&file).expect("written");
        let text = std::fs::read_to_string(&file).expect("text");
        assert_eq!(text, "who,satisfied,trial,drawn\nx,0,a,\n\"y, z\",no,b,\n,yes,c,random\n");
        table.rate("d", false, false);
        assert_eq!(table.rows.last().map(|row| row[3].as_str()), Some(DISAGREEMENT));
        for name in ["c", "d"] {
            table.rate(name, true, name == "d");
        }
        assert!(table.rows[2..].iter().all(|row| row[3] == "random"), "{table:?}");
        std::fs::write(&file, "trial\nx\n").expect("written");
        assert!(RatingsTable::read(&file).is_err());
    }
}
