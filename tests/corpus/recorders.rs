//! The recordings of other tools, imported by one command without a format, against the reader in
//! `tests/oracle/recordings.py`: exchange by exchange, method, address, request, status and response.

use crate::program::program;
use crate::{part, published};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ragcheck::internals::cassette::{Cassette, Outcome, blobs_dir};
use ragcheck::internals::provider::wire;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ORACLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle/recordings.py");
/// Folders, formats, and how many files and exchanges there are: none may get lost from here on.
const KNOWN: [(&str, &str, usize, usize); 5] = [
    ("vcr", "VCR.py", 40, 102),
    ("foreign/vcr-ruby", "Ruby VCR", 24, 30),
    ("foreign/vcr-go", "go-vcr", 12, 17),
    ("foreign/har", "HAR", 14, 20),
    ("foreign/httprr", "httprr", 12, 33),
];

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("files").map(|file| file.expect("a file").path()).collect();
    files.sort();
    files
}

fn import(project: &Path, folder: &Path) -> (Output, String, String) {
    let output = Command::new(program())
        .args(["cassette", "import"])
        .arg(folder)
        .current_dir(project)
        .output()
        .expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    (output, stdout, stderr)
}

/// The exchanges of a file's lane; none if it was not imported.
fn lane(project: &Path, file: &Path, stdout: &str) -> Option<Cassette> {
    let line = stdout.lines().find(|line| line.starts_with(&format!("{}: ", file.display())))?;
    let lane = project.join(line.rsplit(" -> ").next().expect("a path"));
    Some(Cassette::load(&lane, &blobs_dir(&project.join("fixtures/cassettes"), "imported")).expect("a cassette"))
}

/// The numbers of the exchanges of a file that were left out.
fn left_out(file: &Path, stderr: &str) -> BTreeSet<u64> {
    let begin = format!("{}: ", file.display());
    let said = stderr.lines().filter(|line| line.contains(" not imported: "));
    said.filter_map(|line| line.strip_prefix(&begin)?.split(' ').nth(1)?.parse().ok()).collect()
}

/// What the oracle reads, by file.
fn read(files: &[PathBuf]) -> BTreeMap<PathBuf, Vec<Value>> {
    let output = Command::new("python3").arg(ORACLE).args(files).output().expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut read = BTreeMap::<PathBuf, Vec<Value>>::new();
    for line in String::from_utf8(output.stdout).expect("text").lines() {
        let row: Value = serde_json::from_str(line).expect("JSON");
        read.entry(row["file"].as_str().expect("a file").into()).or_default().push(row);
    }
    read
}

fn octets(body: &Value) -> Vec<u8> {
    match body["base64"].as_str() {
        Some(packed) => STANDARD.decode(packed).expect("base64"),
        None => body["document"].to_string().into_bytes(),
    }
}

/// The request as a lane has it: without the members that its dialect does not compare.
fn stored(sent: &Value, profile: &str) -> Value {
    let bytes = octets(sent);
    if bytes.is_empty() {
        return Value::Null;
    }
    let Ok(mut document) = serde_json::from_slice::<Value>(&bytes) else {
        return json!({"$text": String::from_utf8(bytes).expect("text")});
    };
    for pointer in wire::by_name(profile).map(|dialect| dialect.profile.drop).unwrap_or_default() {
        let members = document.as_object_mut().expect("an object");
        members.remove(pointer.trim_start_matches('/'));
    }
    document
}

#[test]
#[ignore = "needs the recordings and data sets of others (RAGCHECK_CORPUS), and python3 with PyYAML"]
fn needs_pyyaml_every_exchange_of_five_recorders_is_what_an_independent_reader_reads() {
    let mut rows = Vec::new();
    for (folder, format, known_files, known_exchanges) in KNOWN {
        let (folder, project) = (part(folder), tempfile::tempdir().expect("a folder"));
        let (_, stdout, stderr) = import(project.path(), &folder);
        let files = files(&folder);
        let read = read(&files);
        let (mut imported, mut rewritten, mut refused) = (0, 0, 0);
        for file in &files {
            let name = file.display();
            let (cassette, left_out) = (lane(project.path(), file, &stdout), left_out(file, &stderr));
            refused += left_out.len();
            let expected: Vec<&Value> = read[file]
                .iter()
                .filter(|row| !left_out.contains(&row["number"].as_u64().expect("a number")))
                .collect();
            assert!(read[file].iter().all(|row| row["format"] == format), "{name}");
            let Some(cassette) = cassette else {
                assert!(expected.is_empty() && stderr.contains(&format!("{name}: not imported: ")), "{name}: {stderr}");
                continue;
            };
            let requests = cassette.requests();
            assert_eq!(cassette.exchanges.len(), expected.len(), "{name}: {stderr}");
            for ((row, exchange), request) in expected.iter().zip(&cassette.exchanges).zip(&requests) {
                assert_eq!(request.method, row["method"].as_str().expect("a method"), "{name}");
                let url = row["url"].as_str().expect("an address");
                let path = request.path.split('?').next().expect("a path");
                assert!(url.split('?').next().expect("a path").ends_with(path), "{name}: {url} {path}");
                assert_eq!(request.body, stored(&row["sent"], &exchange.profile), "{name}");
                let Outcome::Response { status, body, rewritten: redacted, .. } = &exchange.outcome else {
                    panic!("{name}: no response")
                };
                assert_eq!(u64::from(*status), row["status"].as_u64().expect("a status"), "{name}");
                rewritten += usize::from(*redacted);
                let received = octets(&row["received"]);
                let same = || match row["received"].get("document") {
                    Some(document) => serde_json::from_slice::<Value>(body).is_ok_and(|body| body == *document),
                    None => *body == received,
                };
                assert!(*redacted || same(), "{name}: {}", String::from_utf8_lossy(body));
                imported += 1;
            }
        }
        assert_eq!((files.len(), imported + refused), (known_files, known_exchanges), "{format}: {stderr}");
        let total = stdout.lines().last().expect("a summary");
        assert!(total.starts_with(&format!("{imported} exchanges imported")), "{total}");
        assert_eq!(total.contains(&format!(", {refused} exchange")), refused > 0, "{total}");
        let cells = [files.len(), imported + refused, imported, imported - rewritten, rewritten, refused];
        rows.push([format.to_owned()].into_iter().chain(cells.map(|count| count.to_string())).collect());
    }
    let head = [
        "recorder", "files", "exchanges there", "imported", "equal", "with a secret taken out",
        "left out, with the reason",
    ];
    published::compare("recorders", &published::table(&head, &rows));
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn a_recording_cut_at_200_places_or_changed_at_200_is_named_or_is_a_part_of_what_it_was() {
    for (folder, format, ..) in KNOWN {
        // The smallest file with several exchanges, else the smallest.
        let mut files = files(&part(folder));
        files.sort_by_key(|file| fs::metadata(file).expect("a file").len());
        let (project, broken) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let of = |file: &PathBuf| fs::read(file).expect("a file");
        let file = &files[files.len() / 3];
        let (whole, end) = (of(file), file.extension().expect("an ending").to_string_lossy().into_owned());
        let named = |name: String| broken.path().join(format!("{name}.{end}"));
        for step in 0..200 {
            let at = whole.len() * step / 200;
            fs::write(named(format!("cut-{step:03}")), &whole[..at]).expect("written");
            let mut changed = whole.clone();
            changed[at] ^= 1 << (step % 8);
            fs::write(named(format!("changed-{step:03}")), changed).expect("written");
        }
        fs::write(named("whole".to_owned()), &whole).expect("written");
        let (output, stdout, stderr) = import(project.path(), broken.path());
        assert_eq!(output.status.code(), Some(3), "{format}: {stderr}");
        assert!(!stderr.contains("panicked"), "{format}: {stderr}");
        let known = lane(project.path(), &named("whole".to_owned()), &stdout).expect("the whole file").exchanges;
        let (mut parts, mut refused) = (0, 0);
        for step in 0..200 {
            for kind in ["cut", "changed"] {
                let file = named(format!("{kind}-{step:03}"));
                let Some(cassette) = lane(project.path(), &file, &stdout) else {
                    let line = stderr.lines().find(|line| line.starts_with(&format!("{}: ", file.display())));
                    assert!(line.is_some_and(|line| line.contains("not imported: ")), "{}: {line:?}", file.display());
                    refused += 1;
                    continue;
                };
                parts += 1;
                let left_out = left_out(&file, &stderr).len();
                if kind == "cut" {
                    let sound = cassette.exchanges.len() - usize::from(left_out == 0);
                    assert!(known.len() >= cassette.exchanges.len(), "{}", file.display());
                    assert_eq!(known[..sound], cassette.exchanges[..sound], "{}", file.display());
                } else {
                    assert_eq!(known.len(), cassette.exchanges.len() + left_out, "{}: {stderr}", file.display());
                }
            }
        }
        println!("{format}: {} bytes, {parts} imported in part or whole, {refused} refused", whole.len());
        assert!(refused > 0 && parts > 0, "{format}: {parts} {refused}");
    }
}
