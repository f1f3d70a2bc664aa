//! Stored files that were damaged or edited: an error or a word says so, no figure changes silently, nothing panics.
//!
//! Each format is changed at random (seeded): bits, bytes, cuts, repeats. A few changes of each here, 1,000 in .ci/slow.

use super::project::Project;
use ragcheck::internals::cassette::{Cassette, StoppingDesign};
use ragcheck::internals::suite::evaluation::score;
use ragcheck::internals::{history, knowledge};
use std::path::Path;

const FEW: u64 = 60;
const MANY: u64 = 1_000;

/// A number that is the same in every run of the test.
fn dice(state: &mut u64, below: usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state % below.max(1) as u64) as usize
}

/// The bytes with one change.
fn mutated(bytes: &[u8], number: u64) -> Vec<u8> {
    let mut state = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut changed = bytes.to_vec();
    let place = dice(&mut state, bytes.len());
    match number % 6 {
        0 => changed[place] ^= 1 << dice(&mut state, 8),
        1 => changed.truncate(place),
        2 => drop(changed.remove(place)),
        3 => changed.insert(place, b"0123456789\"{}[],:\n -"[dice(&mut state, 20)]),
        4 => {
            let end = (place + dice(&mut state, 400)).min(bytes.len());
            changed.splice(place..place, bytes[place..end].to_vec());
        }
        _ => {
            // A digit becomes another one: what a person edits.
            let digits: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at].is_ascii_digit()).collect();
            if let Some(at) = digits.get(dice(&mut state, digits.len())) {
                changed[*at] = b'0' + (changed[*at] - b'0' + 1 + dice(&mut state, 9) as u8) % 10;
            }
        }
    }
    changed
}

/// What is to be held against the original.
#[derive(Debug, PartialEq)]
enum Read<T> {
    /// It reads, and this is what it says.
    Said(T),
    /// An error, or a word on an edit.
    Told,
}

/// Changes a file so many times: what is read afterwards is the same, or somebody is told.
fn told<T: PartialEq + std::fmt::Debug>(file: &Path, times: u64, read: &dyn Fn() -> Read<T>) {
    let sound = std::fs::read(file).expect("the file");
    let Read::Said(expected) = read() else { panic!("{} is not sound", file.display()) };
    for number in 0..times {
        let changed = mutated(&sound, number);
        if changed == sound {
            continue;
        }
        std::fs::write(file, &changed).expect("written");
        if let Read::Said(found) = read() {
            let what = file.display();
            assert!(found == expected, "change {number} of {what} is told by nobody: {found:?}, not {expected:?}");
        }
    }
    std::fs::write(file, &sound).expect("written");
    assert!(read() == Read::Said(expected));
}

/// A run of three graded trials.
fn graded() -> (Project, String) {
    let project = Project::shipped();
    project.run(&["run", "scenarios/external.yaml", "--only", "feed-in-tariff"]);
    let run = project.newest();
    let judged = project.run(&["judge", &run]);
    assert!(project.path(&run).join("grades.jsonl").exists(), "{}{}", judged.stdout, judged.stderr);
    (project, run)
}

fn run_folder(times: u64) {
    let (project, run) = graded();
    let folder = project.path(&run);
    for name in ["plan.json", "traces.jsonl", "passages.jsonl", "grades.jsonl"] {
        told(&folder.join(name), times, &|| {
            let Ok(scored) = score(&folder, false) else { return Read::Told };
            let found = scored.evaluation;
            // A trial without its trace is in ERROR, and the run incomplete.
            if found.exit_code == 3 || found.evidence.iter().any(|origin| origin.contains("EDITED BY HAND")) {
                return Read::Told;
            }
            let rows = found.criteria.iter().chain(&found.gates);
            let rows: Vec<_> = rows.map(|row| (row.id.clone(), row.verdict, row.sentence.clone())).collect();
            Read::Said((found.exit_code, rows, found.grades))
        });
    }
}

fn cassettes(times: u64) {
    let project = Project::shipped();
    let scenario = project.path("fixtures/cassettes/external");
    let file = scenario.join("feed-in-tariff/tool-rag.base.1.yaml");
    let blobs = scenario.join("blobs");
    told(&file, times, &|| match Cassette::load(&file, &blobs) {
        Err(_) => Read::Told,
        Ok(cassette) if cassette.origin("x".into()).contains("edited by hand") => Read::Told,
        Ok(cassette) => {
            let requests = cassette.requests();
            Read::Said((format!("{:?}{:?}", cassette.header, cassette.exchanges), requests.len()))
        }
    });
}

fn histories(times: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("history.jsonl");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs/history.jsonl");
    for mut point in history::load(&kept).expect("a history") {
        for copy in 0..3 {
            point.id = format!("{:016x}", copy + point.id.len());
            history::append(&file, &point).expect("added");
        }
    }
    let whole = std::fs::read(&file).expect("the file");
    told(&file, times, &|| {
        let now = std::fs::read(&file).expect("the file");
        // Points come and go with the branches that added them: whole lines are not missed.
        let whole_lines = now.is_empty() || (whole.starts_with(&now) && whole.get(now.len() - 1) == Some(&b'\n'));
        match (history::load(&file), history::doubtful(&file)) {
            (Ok(points), Ok(doubtful)) if doubtful.is_empty() && (now == whole || !whole_lines) => Read::Said(points),
            _ => Read::Told,
        }
    });
}

fn stopping_designs(times: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("stopping.json");
    let mut design = StoppingDesign::new(12, 0.05, 0.05, vec!["mine".into(), "other".into()]);
    design.stopped_after = Some(4);
    design.save(&file).expect("saved");
    told(&file, times, &|| match StoppingDesign::load(&file) {
        Ok(Some(design)) if !design.edited => Read::Said(design),
        _ => Read::Told,
    });
}

fn keyword_indexes(times: u64) {
    let project = Project::shipped();
    let file = project.path("kept.sqlite");
    let record = knowledge::ExternalRecord {
        session: "s".into(),
        conversation: 0,
        result: "result-1".into(),
        query: "feed-in tariff".into(),
        answer: "It is paid for energy that is fed in [1].".into(),
        citations: vec![("Tariffs".into(), "https://example.org/tariffs".into())],
        question: "What is the tariff?".into(),
        question_id: "q".into(),
    };
    let index = knowledge::KeywordIndex::in_file(&file);
    let keywords = ["feed-in tariff", "solar export", "net metering"].map(str::to_owned);
    index.index(&record, &keywords, "feed-in tariff", jiff::Timestamp::UNIX_EPOCH).expect("indexed");
    drop(index);
    let sound = std::fs::read(&file).expect("the file");
    for number in 0..times {
        for beside in ["kept.sqlite-wal", "kept.sqlite-shm"] {
            let _ = std::fs::remove_file(project.path(beside));
        }
        std::fs::write(&file, mutated(&sound, number)).expect("written");
        // Data of others may stand in it: an answer or an error, and no panic.
        let _ = knowledge::KeywordIndex::to_read(&file).list();
        let _ = knowledge::KeywordIndex::in_file(&file).list();
    }
}

#[test]
fn a_changed_run_folder_is_an_error_or_said_to_be_edited() {
    run_folder(FEW);
}

#[test]
fn a_changed_cassette_history_or_stopping_design_is_an_error_or_said_to_be_edited() {
    cassettes(FEW * 2);
    histories(FEW * 2);
    stopping_designs(FEW * 5);
}

#[test]
fn a_changed_keyword_index_gives_an_answer_or_an_error() {
    keyword_indexes(FEW);
}

#[test]
#[ignore = "a thousand changes of each format: .ci/slow"]
fn a_thousand_changes_of_each_stored_format_are_errors_or_told() {
    run_folder(MANY);
    cassettes(MANY);
    histories(MANY);
    stopping_designs(MANY);
    keyword_indexes(MANY);
}

#[test]
#[ignore = "every cut of a cassette: .ci/slow"]
fn a_recording_that_was_cut_off_at_any_byte_is_an_error_that_names_it() {
    let project = Project::shipped();
    let scenario = project.path("fixtures/cassettes/external");
    let file = scenario.join("feed-in-tariff/tool-rag.base.1.yaml");
    let text = std::fs::read(&file).expect("the lane");
    for cut in 0..text.len() {
        std::fs::write(&file, &text[..cut]).expect("written");
        let why = Cassette::load(&file, &scenario.join("blobs")).expect_err("it was cut off").to_string();
        assert!(why.contains("tool-rag.base.1.yaml"), "cut at {cut} of {}: {why}", text.len());
    }
}
