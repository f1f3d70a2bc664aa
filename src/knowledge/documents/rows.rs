//! JSON lines and CSV: a row is a passage.
//!
//! A row's own `id` (or `_id`) becomes the second part of its passage's id, so that rows may be moved and added; `title`
//! (or `name`) its title; `text` (or `content`, `body`) its text. A row without such a text is written as `column: value`
//! lines.

use super::pieces::Piece;
use super::text::title_or;
use serde_json::{Map, Value};

const IDS: [&str; 2] = ["id", "_id"];
const TITLES: [&str; 2] = ["title", "name"];
const TEXTS: [&str; 3] = ["text", "content", "body"];

/// JSON lines; the error is the line, from 1, and what is wrong with it.
pub(super) fn json_lines(stem: &str, file: &str) -> Result<Vec<Piece>, (usize, String)> {
    let mut pieces = Vec::new();
    let mut next = 0;
    for (number, line) in (1..).zip(file.split_inclusive('\n')) {
        let offset = next;
        next += line.len();
        let line = line.trim_start_matches('\u{feff}').trim();
        if line.is_empty() {
            continue;
        }
        let row: Map<String, Value> =
            serde_json::from_str(line).map_err(|why| (number, format!("no JSON object: {why}")))?;
        let cells = row.into_iter().map(|(key, value)| (key, cell_text(value))).collect();
        pieces.extend(piece(stem, cells, offset));
    }
    Ok(pieces)
}

/// Text unchanged, other values as JSON; empty for null.
fn cell_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// CSV with a head, by RFC 4180; the error is the line, from 1, and what is wrong with it.
pub(super) fn csv(stem: &str, file: &str) -> Result<Vec<Piece>, (usize, String)> {
    let mut reader = csv::Reader::from_reader(file.trim_start_matches('\u{feff}').as_bytes());
    let located = |error: csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        (usize::try_from(line).unwrap_or(usize::MAX), error.to_string())
    };
    let head = reader.headers().map_err(located)?.clone();
    let mut pieces = Vec::new();
    for row in reader.records() {
        let row = row.map_err(located)?;
        let offset = row.position().map_or(0, csv::Position::byte);
        let cells = head.iter().zip(&row).map(|(key, value)| (key.trim().to_owned(), value.to_owned())).collect();
        pieces.extend(piece(stem, cells, usize::try_from(offset).unwrap_or(usize::MAX)));
    }
    Ok(pieces)
}

/// The passage of one row; nothing where it holds no text.
fn piece(stem: &str, mut cells: Vec<(String, String)>, offset: usize) -> Option<Piece> {
    let mut take = |names: &[&str]| {
        let place = names.iter().find_map(|name| cells.iter().position(|(key, _)| key.eq_ignore_ascii_case(name)))?;
        Some(cells.remove(place).1.trim().to_owned()).filter(|value| !value.is_empty())
    };
    let (id, title, text) = (take(&IDS), take(&TITLES).unwrap_or_default(), take(&TEXTS));
    let text = text.unwrap_or_else(|| {
        let filled = cells.iter().filter(|(_, value)| !value.trim().is_empty());
        filled.map(|(key, value)| format!("{key}: {}", value.trim())).collect::<Vec<_>>().join("\n")
    });
    let title = title_or(title, stem);
    (!text.is_empty()).then(|| Piece { id, section: String::new(), title, text, offset, page: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_json_have_their_own_ids_titles_and_texts() {
        let file =
            "{\"_id\": \"a-7\", \"title\": \"Lamp\", \"text\": \"Red.\"}\n\n{\"colour\": \"blue\", \"watts\": 7}\n";
        let rows = json_lines("lamp-list", file).expect("reads");
        assert_eq!(
            (rows[0].id.as_deref(), rows[0].title.as_str(), rows[0].text.as_str()),
            (Some("a-7"), "Lamp", "Red.")
        );
        assert_eq!((rows[1].title.as_str(), rows[1].text.as_str()), ("lamp list", "colour: blue\nwatts: 7"));
        assert!(file[rows[1].offset..].starts_with("{\"colour\""));
        assert_eq!(json_lines("a", "{}\n[1]\n").expect_err("is refused").0, 2);
    }

    #[test]
    fn rows_of_csv_may_hold_quotes_and_line_breaks_and_a_short_row_is_told_with_its_line() {
        let file = "id,Name,price\n1,\"Lamp, red\",\"4\n5\"\n2,Bulb,\n";
        let rows = csv("stock", file).expect("reads");
        assert_eq!(rows.len(), 1, "a row without a value is no passage");
        assert_eq!((rows[0].title.as_str(), rows[0].text.as_str()), ("Lamp, red", "price: 4\n5"));
        assert!(file[rows[0].offset..].starts_with("1,"));
        assert_eq!(csv("stock", "a,b\n1,2\n3\n").expect_err("is refused").0, 3);
    }
}
