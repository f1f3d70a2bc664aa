//! What `docs/why/real-traffic.md` tells users: each table there is what a test of this suite counted.
//!
//! A table stands between two marks that name it. One that is no longer true fails its test; with `UPDATE=1` it is
//! written anew.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// One test at a time: all tables stand in one file.
static FILE: Mutex<()> = Mutex::new(());

/// A Markdown table: its head, and a row of cells each.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    // What follows the first column are figures, and stand to the right.
    let rule: Vec<String> = (0..head.len()).map(|place| if place == 0 { "---" } else { "---:" }.to_owned()).collect();
    let mut text = line(&head) + &line(&rule);
    text.extend(rows.iter().map(|row| line(row)));
    text
}

/// Holds the table `name` of the document against `counted`.
pub fn compare(name: &str, counted: &str) {
    let _alone = FILE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/why/real-traffic.md");
    let document = std::fs::read_to_string(&path).expect("the document");
    let (begin, end) = (format!("<!-- {name}: counted by the corpus suite -->\n"), format!("<!-- end of {name} -->"));
    let from = document.find(&begin).unwrap_or_else(|| panic!("docs/why/real-traffic.md has no table {name}"));
    let from = from + begin.len();
    let to = from + document[from..].find(&end).unwrap_or_else(|| panic!("the table {name} has no end"));
    if std::env::var_os("UPDATE").is_some() {
        let renewed = format!("{}{counted}{}", &document[..from], &document[to..]);
        std::fs::write(&path, renewed).expect("written");
        return;
    }
    let published = &document[from..to];
    assert!(
        published == counted,
        "docs/why/real-traffic.md says\n{published}and counted was\n{counted}Run with UPDATE=1 to renew it."
    );
}
