//! Human ratings: a CSV file with the columns `trial` and `satisfied`, and `drawn` where `ragcheck review` wrote it.

use super::diagnostic::{Diagnostic, Place};
use std::collections::BTreeMap;

/// Column with the trial's id.
pub(crate) const TRIAL: &str = "trial";
/// Column with the rating.
pub(crate) const SATISFIED: &str = "satisfied";
/// Column that says how the trial was chosen.
pub(crate) const DRAWN: &str = "drawn";
/// In [`DRAWN`]: chosen because its judges disagree. Such trials are no random sample, so no figure counts them.
pub(crate) const DISAGREEMENT: &str = "disagreement";

/// Reads ratings; every invalid line is a diagnostic. `satisfied` is `true`/`false`, `yes`/`no` or `1`/`0`. Trials
/// that were chosen for a [`DISAGREEMENT`] are left out.
pub(super) fn parse(text: &str, file: &str) -> Result<BTreeMap<String, bool>, Vec<Diagnostic>> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let wrong = |message: String, line: u64| {
        let place = Place { line: line.max(1) as u32, column: 1, length: u32::MAX };
        Diagnostic::error("bad-rating", file, message).at(text, place)
    };
    let headers = match reader.headers() {
        Ok(headers) => headers.clone(),
        Err(error) => return Err(vec![wrong(format!("not a CSV file: {error}"), 1)]),
    };
    let column = |name: &str| headers.iter().position(|header| header == name);
    let (Some(trial), Some(satisfied)) = (column(TRIAL), column(SATISFIED)) else {
        return Err(vec![wrong("ratings need the columns `trial` and `satisfied`".into(), 1)]);
    };
    let drawn = column(DRAWN);
    let (mut ratings, mut mistakes) = (BTreeMap::new(), Vec::new());
    let mut chosen = Vec::new();
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let line = error.position().map_or(1, csv::Position::line);
                mistakes.push(wrong("this line has another number of fields than the first".into(), line));
                continue;
            }
        };
        let line = record.position().map_or(1, csv::Position::line);
        let verdict = match record.get(satisfied).unwrap_or_default().to_lowercase().as_str() {
            "true" | "yes" | "1" => true,
            "false" | "no" | "0" => false,
            other => {
                mistakes.push(wrong(format!("`satisfied` is `true` or `false`, found `{other}`"), line));
                continue;
            }
        };
        let id = record.get(trial).unwrap_or_default();
        if ratings.insert(id.to_owned(), verdict).is_some() {
            mistakes.push(wrong(format!("the trial `{id}` is rated twice"), line));
        }
        if drawn.and_then(|drawn| record.get(drawn)) == Some(DISAGREEMENT) {
            chosen.push(id.to_owned());
        }
    }
    ratings.retain(|id, _| !chosen.contains(id));
    if mistakes.is_empty() { Ok(ratings) } else { Err(mistakes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratings_are_read_by_column_name() {
        let ratings = parse("satisfied,trial,who\nyes,a/b/c,x\nfalse, d/e/f ,y\n", "r.csv").expect("ratings");
        assert_eq!(ratings, BTreeMap::from([("a/b/c".into(), true), ("d/e/f".into(), false)]));
    }

    #[test]
    fn a_trial_that_was_chosen_for_a_disagreement_counts_nowhere() {
        let text = "trial,satisfied,drawn\na,yes,random\nb,no,disagreement\nc,no,\n";
        assert_eq!(parse(text, "r.csv").expect("ratings"), BTreeMap::from([("a".into(), true), ("c".into(), false)]));
        assert!(parse("trial,satisfied,drawn\nb,no,disagreement\nb,yes,random\n", "r.csv").is_err(), "rated twice");
    }

    #[test]
    fn every_bad_line_is_told_with_its_number() {
        let mistakes = parse("trial,satisfied\na,maybe\nb,true\nb,true\nc\n", "r.csv").expect_err("three mistakes");
        let lines: Vec<_> = mistakes.iter().filter_map(|mistake| mistake.place).map(|place| place.line).collect();
        assert_eq!(lines, [2, 4, 5]);
        assert!(parse("x,y\n", "r.csv").is_err());
    }
}
