//! Cassettes of VCR.py as a real project keeps them: every one imported, loaded again, and compared with a plain
//! reading of the file.

use crate::program::program;
use crate::{part, published};
use ragcheck::internals::cassette::{Cassette, Outcome, blobs_dir};
use ragcheck::internals::provider::wire::{self};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The interactions of a file, with binary values as the text that stands there.
fn plain(file: &Path) -> Vec<Value> {
    let options = serde_saphyr::options! { ignore_binary_tag_for_string: true };
    let text = std::fs::read_to_string(file).expect("a file");
    let document: Value = serde_saphyr::from_str_with_options(&text, options).expect("YAML");
    document["interactions"].as_array().expect("interactions").clone()
}

fn lanes(folder: &Path) -> Vec<PathBuf> {
    let cases =
        std::fs::read_dir(folder).expect("cases").map(|case| case.expect("a case").path().join("external.base.1.yaml"));
    let mut lanes: Vec<PathBuf> = cases.filter(|lane| lane.is_file()).collect();
    lanes.sort();
    lanes
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn every_cassette_is_imported_and_says_what_the_file_says() {
    let folder = part("vcr");
    let project = tempfile::tempdir().expect("a folder");
    let output = Command::new(program())
        .args(["cassette", "import", "--format", "vcr"])
        .arg(&folder)
        .current_dir(project.path())
        .output()
        .expect("it runs");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{stdout}{stderr}");
    let root = project.path().join("fixtures/cassettes");
    let imported = lanes(&root.join("imported"));
    let blobs = blobs_dir(&root, "imported");
    let (mut seen, mut decoded, mut other) = (0, 0, 0);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).expect("files").map(|file| file.expect("a file").path()).collect();
    files.sort();
    for file in &files {
        let name = file.display().to_string();
        let line = stdout.lines().find(|line| line.starts_with(&format!("{name}: ")));
        let line = line.unwrap_or_else(|| panic!("{name} is not imported: {stderr}"));
        let lane = project.path().join(line.rsplit(" -> ").next().expect("a path"));
        let cassette = Cassette::load(&lane, &blobs).unwrap_or_else(|why| panic!("{name}: {why}"));
        let requests = cassette.requests();
        let refused: Vec<usize> = stderr
            .lines()
            .filter_map(|line| line.strip_prefix(&format!("{name}: interaction ")))
            .filter_map(|rest| rest.split(' ').next()?.parse().ok())
            .collect();
        let taken: Vec<Value> =
            (1..).zip(plain(file)).filter(|(number, _)| !refused.contains(number)).map(|(_, one)| one).collect();
        assert_eq!(taken.len(), cassette.exchanges.len(), "{name}");
        for ((interaction, exchange), request) in taken.iter().zip(&cassette.exchanges).zip(&requests) {
            assert_eq!(request.problem, None, "{name}");
            let asked = &interaction["request"];
            assert_eq!(request.method, asked["method"].as_str().expect("a method"), "{name}");
            if exchange.profile == "exact" {
                let body = match (&asked["parsed_body"], &asked["body"]) {
                    (Value::Null, Value::String(text)) => serde_json::from_str(text).expect("JSON"),
                    (parsed, _) => parsed.clone(),
                };
                assert_eq!(request.body, body, "{name}");
            }
            let Outcome::Response { status, body, rewritten, headers, .. } = &exchange.outcome else {
                panic!("{name}: no response")
            };
            let answer = &interaction["response"];
            assert_eq!(u64::from(*status), answer["status"]["code"].as_u64().expect("a status"), "{name}");
            if !rewritten
                && let Some(text) = answer["body"]["string"].as_str().filter(|_| answer["parsed_body"].is_null())
            {
                assert_eq!(body, text.as_bytes(), "{name}");
            }
            if !rewritten && !answer["parsed_body"].is_null() {
                let document: Value = serde_json::from_slice(body).expect("JSON");
                assert_eq!(document, answer["parsed_body"], "{name}");
            }
            seen += 1;
            let Some(dialect) = wire::by_name(&exchange.profile) else {
                other += 1;
                continue;
            };
            let stream = headers.iter().any(|(_, value)| value.starts_with("text/event-stream"));
            if *status == 200 && !stream {
                let document: Value = serde_json::from_slice(body).expect("JSON");
                dialect.decode_response(&document).unwrap_or_else(|why| panic!("{name}: {why:?}"));
                dialect.decode_request(&request.path, &request.body).unwrap_or_else(|why| panic!("{name}: {why:?}"));
                decoded += 1;
            }
        }
    }
    let row = |what: &str, count: usize| vec![what.to_owned(), count.to_string()];
    let rows = [
        row("files", files.len()),
        row("exchanges imported", seen),
        row("decoded by their dialect", decoded),
        row("of no dialect that is known, matched exactly", other),
    ];
    published::compare("vcr", &published::table(&["cassettes of VCR.py", "count"], &rows));
    assert_eq!(imported.len(), files.len());
    // Which files these are is known: none may get lost from here on.
    assert_eq!((files.len(), seen), (40, 102));
    let scan =
        Command::new(program()).args(["cassette", "scan"]).current_dir(project.path()).output().expect("it runs");
    assert!(scan.status.success(), "{}", String::from_utf8_lossy(&scan.stdout));
}
