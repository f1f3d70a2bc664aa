//! The keyword index as several threads and processes use it at once, and as a process leaves it that is killed.
//!
//! A writer is this test binary itself, called again for one ignored test with its task in the environment.

use ragcheck::internals::knowledge::{ExternalRecord, KeywordIndex};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const TASK: &str = "RAGCHECK_TEST_WRITER";

fn record(writer: &str, n: usize) -> ExternalRecord {
    ExternalRecord {
        session: writer.into(),
        conversation: 0,
        result: format!("result-{n}"),
        query: "grid tariff".into(),
        answer: format!("Answer {n} of {writer}."),
        citations: vec![("Tariffs".into(), "https://example.org/tariffs".into())],
        question: format!("Question {n} of {writer}?"),
        question_id: format!("question:{writer}-{n}"),
    }
}

/// The keywords of the nth record: one that everyone shares, one of a few, one of its own.
fn keywords(writer: &str, n: usize) -> Vec<String> {
    vec!["grid tariff".into(), format!("region {}", n % 7), format!("own {writer} {n}")]
}

fn spawn(file: &Path, process: usize, threads: usize) -> Child {
    Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "keyword_index::a_writer_that_the_other_tests_call", "--ignored", "--nocapture"])
        .env(TASK, format!("{process} {threads} {}", file.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts")
}

/// Indexes until its input would never end, and says `stored WRITER N` after each record that the index acknowledged.
#[test]
#[ignore = "a writer for the tests below, which call it with a task"]
fn a_writer_that_the_other_tests_call() {
    let Ok(task) = std::env::var(TASK) else { return };
    let mut parts = task.splitn(3, ' ');
    let mut number = || parts.next().and_then(|part| part.parse::<usize>().ok()).expect("a number");
    let (process, threads) = (number(), number());
    let file = parts.next().expect("a file");
    let index = KeywordIndex::in_file(Path::new(file));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let index = &index;
            scope.spawn(move || {
                let writer = format!("w{process}x{thread}");
                for n in 0.. {
                    let at = jiff::Timestamp::from_second(n as i64).expect("in range");
                    let done = index.index(&record(&writer, n), &keywords(&writer, n), "q", at).expect("indexes");
                    assert_eq!(done.read_back.len(), 3);
                    // One write: lines of several threads do not mix.
                    println!("stored {writer} {n}");
                }
            });
        }
    });
}

/// What the child acknowledged before it was killed.
fn acknowledged(mut child: Child, lines: usize, pause: Duration) -> Vec<(String, usize)> {
    let output = BufReader::new(child.stdout.take().expect("an output"));
    let (send, receive) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut stored = Vec::new();
        for line in output.lines().map_while(Result::ok) {
            let mut words = line.split_whitespace().skip_while(|word| *word != "stored").skip(1);
            let (Some(writer), Some(n)) = (words.next(), words.next().and_then(|n| n.parse().ok())) else { continue };
            stored.push((writer.to_owned(), n));
            let _ = send.send(());
        }
        stored
    });
    for _ in 0..lines {
        receive.recv_timeout(Duration::from_mins(1)).expect("the writer goes on");
    }
    // Somewhere within a transaction, as often as not.
    let _ = receive.recv_timeout(pause);
    child.kill().expect("is killed");
    child.wait().expect("ends");
    reader.join().expect("was read")
}

/// Every association of every record that was acknowledged is in the file, and the file is whole.
fn expect_all(file: &Path, stored: &[(String, usize)]) {
    let database = rusqlite::Connection::open(file).expect("opens");
    let check: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("is checked");
    assert_eq!(check, "ok");
    let broken: i64 =
        database.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0)).expect("is checked");
    assert_eq!(broken, 0);
    drop(database);
    let mut there = BTreeSet::new();
    for entry in KeywordIndex::in_file(file).list().expect("lists") {
        for source in entry.provenance {
            there.insert((entry.keyword.clone(), source.session, source.result, source.question));
        }
    }
    for (writer, n) in stored {
        for keyword in keywords(writer, *n) {
            let wanted = (keyword, writer.clone(), format!("result-{n}"), format!("Question {n} of {writer}?"));
            assert!(there.contains(&wanted), "{wanted:?} is lost");
        }
    }
}

fn processes_that_share_a_file(threads: usize, collect: fn(Child) -> Vec<(String, usize)>) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keywords.sqlite");
    let waiting: Vec<_> = (0..4)
        .map(|process| {
            let child = spawn(&file, process, threads);
            std::thread::spawn(move || collect(child))
        })
        .collect();
    let stored: Vec<_> = waiting.into_iter().flat_map(|thread| thread.join().expect("was read")).collect();
    assert!(stored.len() >= 100, "only {} records", stored.len());
    expect_all(&file, &stored);
}

#[test]
fn four_processes_of_four_threads_lose_nothing() {
    processes_that_share_a_file(4, |child| acknowledged(child, 25, Duration::ZERO));
}

#[test]
#[ignore = "takes a minute: .ci/slow"]
fn four_processes_of_sixty_four_threads_lose_nothing_in_a_minute() {
    processes_that_share_a_file(64, |child| acknowledged_for(child, Duration::from_mins(1)));
}

/// What the child acknowledged within a time.
fn acknowledged_for(mut child: Child, time: Duration) -> Vec<(String, usize)> {
    let output = child.stdout.take().expect("an output");
    let reader = std::thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        let words = |line: String| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let stored = lines.map(words).filter(|words| words.len() == 3 && words[0] == "stored");
        stored.filter_map(|words| Some((words[1].clone(), words[2].parse().ok()?))).collect::<Vec<_>>()
    });
    let (_never, silence) = std::sync::mpsc::channel::<()>();
    let _ = silence.recv_timeout(time);
    child.kill().expect("is killed");
    child.wait().expect("ends");
    reader.join().expect("was read")
}

fn kill(rounds: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keywords.sqlite");
    let mut stored = Vec::new();
    for round in 0..rounds {
        let pause = Duration::from_micros(round as u64 * 700 % 9_000);
        stored.extend(acknowledged(spawn(&file, round, 4), 10 + round % 5, pause));
        expect_all(&file, &stored);
    }
}

#[test]
fn what_was_acknowledged_is_there_after_the_writer_was_killed() {
    kill(3);
}

#[test]
#[ignore = "fifty kills: .ci/slow"]
fn what_was_acknowledged_is_there_after_fifty_kills() {
    kill(50);
}
