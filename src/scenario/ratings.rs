//! Human ratings: a CSV file with the columns `trial` and `satisfied`, and `drawn` where `ragcheck review` wrote it.

use super::diagnostic::{Diagnostic, Place, did_you_mean};
use crate::trace::text::plural;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Column with the trial's id.
pub(crate) const TRIAL: &str = "trial";
/// Column with the rating.
pub(crate) const SATISFIED: &str = "satisfied";
/// Column that says how the trial was chosen.
pub(crate) const DRAWN: &str = "drawn";
/// In [`DRAWN`]: chosen because its judges disagree. Such trials are no random sample, so no figure counts them.
pub(crate) const DISAGREEMENT: &str = "disagreement";
/// In [`DRAWN`]: of the random sample.
pub(crate) const RANDOM: &str = "random";

/// A ratings file, read.
#[derive(Debug)]
pub(crate) struct Ratings {
    /// Names of the columns.
    pub headers: Vec<String>,
    /// Where the first line ends, in bytes.
    pub first_end: usize,
    /// In file order.
    pub rows: Vec<Rating>,
}

/// One row.
#[derive(Debug)]
pub(crate) struct Rating {
    /// Bytes of the row in the file, without its line break.
    pub span: Range<usize>,
    /// Every field, by column.
    pub fields: Vec<String>,
    /// The trial's id.
    pub trial: String,
    /// `None` if the trial is not rated.
    pub satisfied: Option<bool>,
    /// Whether the trial was chosen for a [`DISAGREEMENT`].
    pub chosen: bool,
}

/// Reads ratings; every invalid line is a diagnostic, and so is a column that is there twice. `satisfied` is `true`/`false`,
/// `yes`/`no`, `1`/`0` or empty, where the rater skipped the trial; `drawn` is [`RANDOM`], [`DISAGREEMENT`] or empty.
pub(crate) fn read(text: &str, file: &str) -> Result<Ratings, Vec<Diagnostic>> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let wrong = |message: String, line: u64| {
        let place = Place { line: line.max(1) as u32, column: 1, length: u32::MAX };
        Diagnostic::error("bad-rating", file, message).at(text, place)
    };
    let headers: Vec<String> = match reader.headers() {
        Ok(headers) => headers.iter().map(str::to_owned).collect(),
        Err(error) => return Err(vec![wrong(format!("not a CSV file: {error}"), 1)]),
    };
    // Line breaks belong to no row, wherever the reader counts them.
    let span = |start: usize, end: usize| {
        let breaks = |text: &str| text.len() - text.trim_start_matches(['\r', '\n']).len();
        let start = start + breaks(&text[start..end]);
        start..start + text[start..end].trim_end_matches(['\r', '\n']).len()
    };
    let first = span(0, reader.position().byte() as usize);
    let again = |place: &usize| !headers[*place].is_empty() && headers[..*place].contains(&headers[*place]);
    let doubled: Vec<Diagnostic> = (0..headers.len())
        .filter(again)
        .map(|place| {
            let message = format!("two columns are called `{}`", headers[place]);
            let at = Place::of(text, &field(text, first.clone(), place));
            Diagnostic::error("duplicate-column", file, message).at(text, at)
        })
        .collect();
    if !doubled.is_empty() {
        return Err(doubled);
    }
    let column = |name: &str| headers.iter().position(|header| header == name);
    let (Some(trial), Some(satisfied)) = (column(TRIAL), column(SATISFIED)) else {
        return Err(vec![wrong("ratings need the columns `trial` and `satisfied`".into(), 1)]);
    };
    let drawn = column(DRAWN);
    let (mut rows, mut mistakes, mut rated) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut record = csv::StringRecord::new();
    loop {
        let start = reader.position().byte() as usize;
        match reader.read_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                let line = error.position().map_or(1, csv::Position::line);
                mistakes.push(wrong("this line has another number of fields than the first".into(), line));
                continue;
            }
        }
        let line = record.position().map_or(1, csv::Position::line);
        let fields: Vec<String> = record.iter().map(str::to_owned).collect();
        let verdict = match fields[satisfied].to_lowercase().as_str() {
            "true" | "yes" | "1" => Some(true),
            "false" | "no" | "0" => Some(false),
            "" => None,
            other => {
                mistakes.push(wrong(format!("`satisfied` is `true` or `false`, found `{other}`"), line));
                continue;
            }
        };
        let trial = fields[trial].clone();
        if !rated.insert(trial.clone()) {
            mistakes.push(wrong(format!("the trial `{trial}` is rated twice"), line));
        }
        let span = span(start, reader.position().byte() as usize);
        let chosen = drawn.is_some_and(|drawn| fields[drawn] == DISAGREEMENT);
        if let Some(drawn) = drawn.filter(|drawn| !["", RANDOM, DISAGREEMENT].contains(&fields[*drawn].as_str())) {
            let word = &fields[drawn];
            let message = format!("`drawn` is `{RANDOM}`, `{DISAGREEMENT}` or empty, found `{word}`");
            let at = Place::of(text, &field(text, span.clone(), drawn));
            let help = did_you_mean(word, [RANDOM, DISAGREEMENT]);
            mistakes.push(Diagnostic::error("bad-rating", file, message).at(text, at).with_help(help));
        }
        rows.push(Rating { span, fields, trial, satisfied: verdict, chosen });
    }
    if mistakes.is_empty() { Ok(Ratings { headers, first_end: first.end, rows }) } else { Err(mistakes) }
}

/// Where a field is in a row of the text, by its column.
fn field(text: &str, row: Range<usize>, column: usize) -> Range<usize> {
    let (mut start, mut passed, mut is_quoted) = (row.start, 0, false);
    let mut end = row.end;
    for (place, byte) in row.clone().zip(text[row].bytes()) {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted && passed == column => {
                end = place;
                break;
            }
            b',' if !is_quoted => (start, passed) = (place + 1, passed + 1),
            _ => {}
        }
    }
    let whole = &text[start..end];
    let start = start + whole.len() - whole.trim_start().len();
    start..start + whole.trim().len()
}

/// Ratings that figures count, by trial, and a note on the trials that are not rated.
pub(crate) type Counted = (BTreeMap<String, bool>, Option<Diagnostic>);

/// Reads the ratings that figures count: those of trials that were chosen for a [`DISAGREEMENT`] are left out.
pub(crate) fn counted(text: &str, file: &str) -> Result<Counted, Vec<Diagnostic>> {
    let rows: Vec<Rating> = read(text, file)?.rows.into_iter().filter(|row| !row.chosen).collect();
    let unrated: Vec<&Rating> = rows.iter().filter(|row| row.satisfied.is_none()).collect();
    let note = unrated.first().map(|first| {
        let place = Place::of(text, &first.span);
        let (trials, line) = (plural(unrated.len(), "trial"), place.line);
        let are = if unrated.len() == 1 { "is" } else { "are" };
        let message = format!("{trials} {are} not rated, for `satisfied` is empty, first in line {line}");
        Diagnostic::note("unrated", file, message).at(text, place)
    });
    Ok((rows.into_iter().filter_map(|row| Some((row.trial, row.satisfied?))).collect(), note))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratings_are_read_by_column_name() {
        let ratings = counted("satisfied,trial,who\nyes,a/b/c,x\nfalse, d/e/f ,y\n", "r.csv").expect("ratings").0;
        assert_eq!(ratings, BTreeMap::from([("a/b/c".into(), true), ("d/e/f".into(), false)]));
    }

    #[test]
    fn a_trial_that_was_chosen_for_a_disagreement_counts_nowhere() {
        let text = "trial,satisfied,drawn\na,yes,random\nb,no,disagreement\nc,no,\n";
        assert_eq!(
            counted(text, "r.csv").expect("ratings").0,
            BTreeMap::from([("a".into(), true), ("c".into(), false)])
        );
        assert!(counted("trial,satisfied,drawn\nb,no,disagreement\nb,yes,random\n", "r.csv").is_err(), "rated twice");
    }

    #[test]
    fn a_column_that_is_there_twice_and_an_unknown_way_of_drawing_are_told_with_line_and_column() {
        let told = |text: &str| -> Vec<(String, u32, u32, u32)> {
            let mistakes = counted(text, "r.csv").expect_err("mistakes");
            let row = |one: &Diagnostic| {
                let place = one.place.expect("a place");
                (format!("{}; {}", one.message, one.help.join(";")), place.line, place.column, place.length)
            };
            mistakes.iter().map(row).collect()
        };
        let twice = "two columns are called `satisfied`; ".to_owned();
        assert_eq!(told("trial,satisfied, satisfied\na,no,yes\n"), [(twice.clone(), 1, 18, 9)]);
        assert_eq!(told("\u{feff}satisfied,\"satisfied\",trial\nno,yes,a\n"), [(twice, 1, 11, 11)]);
        let drawn = told("trial,who,satisfied,drawn\na,\"x, y\",yes,random\nb,\"x, y\",no, Disagreement\n");
        let message = "`drawn` is `random`, `disagreement` or empty, found `Disagreement`; did you mean `disagreement`? \
                       known: random, disagreement";
        assert_eq!(drawn, [(message.to_owned(), 3, 14, 12)]);
    }

    #[test]
    fn a_trial_that_the_rater_skipped_is_not_rated_and_said_to_be() {
        let text = "trial,satisfied\na,yes\nb,\nc, \nd,no\n";
        let (ratings, note) = counted(text, "r.csv").expect("ratings");
        assert_eq!(ratings, BTreeMap::from([("a".into(), true), ("d".into(), false)]));
        let note = note.expect("a note");
        assert_eq!(note.message, "2 trials are not rated, for `satisfied` is empty, first in line 3");
        assert_eq!(note.place.map(|place| place.line), Some(3));
        assert_eq!(counted("trial,satisfied\na,yes\n", "r.csv").expect("ratings").1, None);
    }

    #[test]
    fn every_bad_line_is_told_with_its_number() {
        let mistakes = counted("trial,satisfied\na,maybe\nb,true\nb,true\nc\n", "r.csv").expect_err("three mistakes");
        let lines: Vec<_> = mistakes.iter().filter_map(|mistake| mistake.place).map(|place| place.line).collect();
        assert_eq!(lines, [2, 4, 5]);
        assert!(counted("x,y\n", "r.csv").is_err());
    }
}
