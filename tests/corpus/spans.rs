//! Spans of seven agent frameworks, imported by one command without a format, against the reader in
//! `tests/oracle/telemetry.py`: question, completions with their tokens, runs of tools, and answer.

use crate::part;
use crate::program::program;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const ORACLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle/telemetry.py");

fn events<'t>(trace: &'t Value, kind: &'t str) -> impl Iterator<Item = &'t Value> {
    trace["events"].as_array().expect("events").iter().filter_map(move |event| event["what"].get(kind))
}

/// A text that is JSON as what it holds.
fn parsed(value: &Value) -> Value {
    value.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| value.clone())
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn seven_frameworks_say_in_spans_what_an_independent_reader_reads() {
    let mut files: Vec<PathBuf> =
        fs::read_dir(part("foreign/otel-genai")).expect("files").map(|file| file.expect("a file").path()).collect();
    files.sort();
    assert_eq!(files.len(), 7);
    for file in files {
        let (name, project) = (file.display(), tempfile::tempdir().expect("a folder"));
        let mut command = Command::new(program());
        let output = command.args(["score", "--report-dir", "runs", "--import"]).arg(&file).current_dir(project.path());
        let output = output.output().expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            stderr.contains("read as `otlp`") && stderr.trim_end().ends_with("1 trace: 1 complete"),
            "{name}: {stderr}"
        );
        let run = fs::read_dir(project.path().join("runs")).expect("runs").map(|entry| entry.expect("an entry").path());
        let traces = run.map(|folder| folder.join("traces.jsonl")).find(|file| file.is_file()).expect("traces");
        let trace: Value = serde_json::from_str(fs::read_to_string(traces).expect("a trace").trim_end()).expect("JSON");
        let read = Command::new("python3").arg(ORACLE).arg(&file).output().expect("python3");
        assert!(read.status.success(), "{name}: {}", String::from_utf8_lossy(&read.stderr));
        let read: Value = serde_json::from_slice(&read.stdout).expect("one trace");
        let models = events(&trace, "model_called").map(|call| {
            let reply = &call["reply"]["completion"];
            json!([reply["model"], reply["input_tokens"], reply["output_tokens"]])
        });
        assert_eq!(json!(models.collect::<Vec<_>>()), read["models"], "{name}");
        let ran = events(&trace, "tool_called").filter(|call| call["outcome"].get("ok").is_some());
        let tools = ran.map(|call| json!([call["tool"], call["arguments"], call["outcome"]["ok"]["other"]]));
        assert_eq!(json!(tools.collect::<Vec<_>>()), read["tools"], "{name}");
        let asked = events(&trace, "turn_started").next().expect("a turn");
        assert_eq!(asked["query"], read["question"], "{name}");
        let ended = events(&trace, "turn_ended").next().expect("an answer");
        assert_eq!(parsed(&ended["outcome"]["answered"]["text"]), parsed(&read["answer"]), "{name}");
    }
}
