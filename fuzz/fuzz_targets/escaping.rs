//! Words of a conversation in a run folder: a cell of a table is the word that it holds and begins no formula, and no
//! element, attribute, link or script of a page is of their making.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ragcheck::EvaluatedRun;
use ragcheck::internals::suite::import::Format;
use ragcheck_fuzz::{judged, page, table};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::LazyLock;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

/// An element that no page has; it stays whole however a page cuts the words before it.
const ELEMENT: &str = "<fuzz-element onload=x>";

fn tables(folder: &Path, run: &EvaluatedRun) {
    let rows = table::rows(&folder.join("trials.csv"));
    assert_eq!(rows.len(), run.evaluation.trials.len());
    for (row, trial) in rows.iter().zip(run.evaluation.trials.iter()) {
        for (column, text) in [("id", &*trial.id), ("case", trial.case), ("model", trial.model), ("error", trial.error)]
        {
            let cell = &row.iter().find(|(name, _)| name == column).expect("the column").1;
            let text = table::shown(text);
            assert_eq!(cell, text.strip_prefix('\'').filter(|_| *cell != text).unwrap_or(&text), "{column}");
        }
    }
    for file in ["criteria.csv", "violations.csv", "latency.csv", "requirements.csv"] {
        table::rows(&folder.join(file));
    }
}

fuzz_target!(|words: (String, String)| {
    let (one, other) = words;
    let (one, other) = (format!("{one}{ELEMENT}</script><!--<script>"), format!("{other}</SCRIPT >{ELEMENT}\"'>"));
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
    }, {"task_id": tool, "reward": 0, "messages": [{"role": "user", "content": other}, {"role": "assistant", "content": ""}]}]);
    let Some(mut run) = judged(Format::Messages, conversations.to_string().as_bytes()) else { return };
    let folder = FOLDER.path();
    run.write(folder).expect("written");
    tables(folder, &run);
    page::is_ours(&std::fs::read_to_string(folder.join("index.html")).expect("text"));
    serde_json::from_slice::<Value>(&std::fs::read(folder.join("run.json")).expect("read")).expect("JSON");
});
