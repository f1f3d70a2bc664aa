//! The ratings file: a row is added or changed at a time, and the file is written beside and renamed each time. The text of
//! other rows stays as it is; a column that is missing is added at their ends.

use crate::platform::bounds::Bound;
use crate::platform::files;
use crate::scenario::diagnostic::{Diagnostic, listed};
use crate::scenario::ratings::{self, DISAGREEMENT, DRAWN, RANDOM, Ratings, SATISFIED, TRIAL};
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
        #[source]
        error: io::Error,
    },
    /// It is no table of ratings that a run would accept.
    #[error("{}", listed(.0))]
    Table(Vec<Diagnostic>),
}

/// The text of a ratings file, and its rows.
#[derive(Debug)]
pub(crate) struct RatingsTable {
    file: PathBuf,
    text: String,
    read: Ratings,
}

impl RatingsTable {
    /// Reads the file; a missing one has no rows.
    ///
    /// # Errors
    /// If it cannot be read, or a run would refuse it.
    pub(crate) fn read(file: &Path) -> Result<Self, RatingsError> {
        match files::read_text_within(file, Bound::RatingsSize) {
            Ok(text) => Self::of(file, text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Self::of(file, format!("{TRIAL},{SATISFIED},{DRAWN}\n"))
            }
            Err(error) => Err(RatingsError::File { file: file.to_owned(), error }),
        }
    }

    fn of(file: &Path, text: String) -> Result<Self, RatingsError> {
        let read = ratings::read(&text, &file.display().to_string()).map_err(RatingsError::Table)?;
        Ok(Self { file: file.to_owned(), text, read })
    }

    pub(crate) fn rating(&self, trial: &str) -> Option<bool> {
        self.read.rows.iter().find(|row| row.trial == trial)?.satisfied
    }

    /// Adds a rating, or changes the one of that trial; says whether the text changed. Once a trial was drawn at random,
    /// or rated without a review, it stays so.
    ///
    /// # Errors
    /// If the file has an open quotation, so that nothing can be added.
    pub(crate) fn rate(&mut self, trial: &str, satisfied: bool, sampled: bool) -> Result<bool, RatingsError> {
        let mut text = self.text.clone();
        if let Some(row) = self.read.rows.iter().find(|row| row.trial == trial) {
            if row.satisfied == Some(satisfied) && !(row.chosen && sampled) {
                return Ok(false);
            }
            let mut fields = row.fields.clone();
            if row.satisfied != Some(satisfied) {
                fields[self.column(SATISFIED).unwrap_or_default()] = yes_or_no(satisfied);
            }
            if let Some(drawn) = self.column(DRAWN).filter(|_| row.chosen && sampled) {
                fields[drawn] = String::from(RANDOM);
            }
            text.replace_range(row.span.clone(), &self.line(&fields)?);
        } else {
            let mut columns = self.read.headers.len();
            let drawn = self.column(DRAWN).unwrap_or_else(|| {
                for row in self.read.rows.iter().rev() {
                    text.insert(row.span.end, ',');
                }
                text.insert_str(self.read.first_end, &format!(",{DRAWN}"));
                columns += 1;
                columns - 1
            });
            let mut fields = vec![String::new(); columns];
            trial.clone_into(&mut fields[self.column(TRIAL).unwrap_or_default()]);
            fields[self.column(SATISFIED).unwrap_or_default()] = yes_or_no(satisfied);
            fields[drawn] = String::from(if sampled { RANDOM } else { DISAGREEMENT });
            let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
            if !text.ends_with('\n') {
                text.push_str(end);
            }
            text.push_str(&self.line(&fields)?);
            text.push_str(end);
        }
        *self = Self::of(&self.file, text)?;
        if self.rating(trial) == Some(satisfied) {
            return Ok(true);
        }
        let error = io::Error::other("its last row has an opening quote and no closing one, so no row can be added");
        Err(RatingsError::File { file: self.file.clone(), error })
    }

    fn column(&self, name: &str) -> Option<usize> {
        self.read.headers.iter().position(|header| header == name)
    }

    /// One row, without a line break.
    fn line(&self, fields: &[String]) -> Result<String, RatingsError> {
        let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
        let written = writer.write_record(fields).map_err(io::Error::other);
        let bytes = written.and_then(|()| writer.into_inner().map_err(|why| io::Error::other(why.to_string())));
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
        text.map(|text| text.trim_end_matches('\n').to_owned())
            .map_err(|error| RatingsError::File { file: self.file.clone(), error })
    }

    /// Writes the file beside and renames it.
    pub(crate) fn write(&self) -> Result<(), RatingsError> {
        let failed = |error: io::Error| RatingsError::File { file: self.file.clone(), error };
        files::replace(&self.file, self.text.as_bytes()).map_err(failed)
    }
}

fn yes_or_no(satisfied: bool) -> String {
    String::from(if satisfied { "yes" } else { "no" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rating_changes_one_row_and_leaves_the_bytes_of_the_others() {
        let file = Path::new("ratings.csv");
        let mut table = RatingsTable::of(file, String::from("trial,satisfied,drawn\n")).expect("an empty table");
        table.rate("a/b/f.v.1", true, true).expect("rated");
        assert_eq!(table.text, "trial,satisfied,drawn\na/b/f.v.1,yes,random\n");
        let own = "\u{feff}who, satisfied ,trial\r\n x ,0,  a\r\n\r\n\"y, z\",yes,b\r\n\"w\",TRUE,\"c\"";
        let mut table = RatingsTable::of(file, own.to_owned()).expect("a table");
        assert_eq!(["a", "b", "c", "d"].map(|trial| table.rating(trial)), [Some(false), Some(true), Some(true), None]);
        let mut skipped = RatingsTable::of(file, String::from("trial,satisfied\na,\n")).expect("a table");
        assert_eq!(skipped.rating("a"), None);
        assert!(skipped.rate("a", true, false).expect("rated") && skipped.text.contains("a,yes"), "{}", skipped.text);
        for (trial, satisfied, sampled) in [("a", false, true), ("b", true, false), ("c", true, true)] {
            assert!(!table.rate(trial, satisfied, sampled).expect("rated"), "{trial} has this rating");
        }
        assert!(table.rate("b", false, false).expect("rated"));
        assert_eq!(table.text, own.replace("\"y, z\",yes,b", "\"y, z\",no,b"));
        table.rate("d", true, true).expect("rated");
        let text = "\u{feff}who, satisfied ,trial,drawn\r\n x ,0,  a,\r\n\r\n\"y, z\",no,b,\r\n\"w\",TRUE,\"c\",\r\n,yes,d,random\r\n";
        assert_eq!(table.text, text);
        table.rate("e", false, false).expect("rated");
        assert_eq!(table.text, format!("{text},no,e,disagreement\r\n"));
        table.rate("d", true, false).expect("rated");
        table.rate("e", false, true).expect("rated");
        assert_eq!(table.text, format!("{text},no,e,random\r\n"), "once random, always random");
    }

    #[test]
    fn a_file_that_a_run_refuses_is_refused_with_file_and_line_and_so_is_an_open_quotation() {
        let refused = |text: &str| RatingsTable::of(Path::new("r.csv"), text.to_owned()).expect_err(text).to_string();
        assert_eq!(refused("trial,satisfied\na,yes\na,no\n"), "r.csv:3:1: the trial `a` is rated twice");
        assert_eq!(refused("trial,satisfied\na,maybe\n"), "r.csv:2:1: `satisfied` is `true` or `false`, found `maybe`");
        assert_eq!(refused("trial\nx\n"), "r.csv:1:1: ratings need the columns `trial` and `satisfied`");
        let open = String::from("trial,satisfied,note\na,yes,\"open\n");
        let mut table = RatingsTable::of(Path::new("r.csv"), open).expect("a table");
        table.rate("b", true, true).expect_err("the row would be part of the quotation");
    }
}
