//! Words of a conversation in a run folder: no cell of a table begins a formula, and no element of a page is theirs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ragcheck::internals::suite::import::Format;
use ragcheck_fuzz::judged;
use serde_json::json;
use std::path::Path;
use std::sync::LazyLock;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

/// An element that no page has.
const ELEMENT: &str = "<fuzz-element onload=x>";

fn is_number(cell: &str) -> bool {
    cell.parse::<f64>().is_ok()
}

fn no_formula(file: &Path) {
    let mut rows = csv::ReaderBuilder::new().has_headers(false).from_path(file).expect("a table");
    for row in rows.records() {
        for cell in &row.expect("a row of as many cells as the others") {
            let begins = cell.trim_start_matches(' ').starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
            assert!(!begins || is_number(cell), "{cell:?} in {}", file.display());
        }
    }
}

/// Number of `<script` and `</script`, and whether the element of the words is there.
fn elements(page: &str) -> (usize, usize, bool) {
    let page = page.to_ascii_lowercase();
    (page.matches("<script").count(), page.matches("</script").count(), page.contains("<fuzz-element"))
}

fuzz_target!(|words: (String, String)| {
    let (one, other) = words;
    // One script element more is closed than opened: a page that holds the words as they are has unequal numbers.
    let (one, other) = (format!("{one}{ELEMENT}</script><script>"), format!("{other}</SCRIPT >{ELEMENT}\"'>"));
    let (cell, tool) = (one.as_str(), other.as_str());
    let call = json!({"id": "1", "type": "function", "function": {"name": tool, "arguments": json!({(cell): tool}).to_string()}});
    let conversations = json!([{
        "task_id": cell,
        "model": other,
        "messages": [
            {"role": "user", "content": one},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": one},
            {"role": "assistant", "content": other},
        ],
    }, {"task_id": tool, "messages": [{"role": "user", "content": other}, {"role": "assistant", "content": ""}]}]);
    let Some(mut run) = judged(Format::Messages, conversations.to_string().as_bytes()) else { return };
    run.write(FOLDER.path()).expect("written");
    for entry in std::fs::read_dir(FOLDER.path()).expect("listed") {
        let file = entry.expect("listed").path();
        match file.extension().and_then(|name| name.to_str()) {
            Some("csv") => no_formula(&file),
            Some("html") => {
                let (opened, closed, foreign) = elements(&std::fs::read_to_string(&file).expect("text"));
                assert!(!foreign, "an element of the words is in {}", file.display());
                assert_eq!(opened, closed, "scripts of {}", file.display());
            }
            _ => {}
        }
    }
});
