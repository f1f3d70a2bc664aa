//! Bases with vectors, here and on a server: the shipped recordings of both replay without any server to the same
//! passages, what a lane pins is told, and a real Chroma is filled, searched and recorded against.

use super::ports;
use super::project::{Outcome, Project, copy};
use super::simulator::Simulator;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const RUN: [&str; 4] = ["run", "scenarios/servers", "--criteria", "scenarios/servers/criteria.yaml"];

/// Per scenario and case, the ids that the searches showed.
fn found(project: &Project) -> BTreeMap<(String, String), Vec<Value>> {
    let mut found = BTreeMap::new();
    for trace in project.traces() {
        let searches = trace["events"]
            .as_array()
            .expect("events")
            .iter()
            .filter_map(|event| event.pointer("/what/tool_called/outcome/ok/search"));
        let ids = searches.map(|search| {
            json!(search["hits"].as_array().expect("hits").iter().map(|hit| &hit["id"]).collect::<Vec<_>>())
        });
        found.insert((text(&trace["scenario"]), text(&trace["case"])), ids.collect());
    }
    found
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[test]
fn lanes_recorded_against_a_server_replay_without_it_to_the_same_passages_as_the_vectors_beside_the_folder() {
    let project = Project::shipped();
    let text = project.read("ragcheck.yaml");
    project.write("ragcheck.yaml", &text.replace("127.0.0.1:809", "replay.invalid:9"));
    project.run(&RUN).expect_code(0);
    let found = found(&project);
    let here: Vec<_> = found.iter().filter(|((scenario, _), _)| scenario == "sentences").collect();
    assert!(here.len() >= 4);
    for ((_, case), ids) in here {
        assert!(!ids.is_empty() && ids.iter().all(|list| !list.as_array().expect("a list").is_empty()), "{case}");
        assert_eq!(found.get(&("chroma".to_owned(), case.clone())), Some(ids), "{case}");
    }
}

#[test]
fn what_a_lane_pins_of_a_base_stands_in_its_recording_and_in_its_trace() {
    let project = Project::shipped();
    project.run(&RUN).expect_code(0);
    let listing = project.run(&["knowledge", "stats", "fernlight"]).stdout;
    let count = listing.split(' ').nth(1).expect("a number").to_owned();
    for trace in project.traces() {
        let pinned = text(&trace["evidence"]["knowledge"]);
        let told = match trace["scenario"].as_str() {
            Some("chroma") => format!("chroma collection fernlight, {count} passages, vectors by all-MiniLM-L6-v2"),
            _ => "by all-MiniLM-L6-v2".to_owned(),
        };
        assert!(pinned.ends_with(&told), "{pinned}");
        let (scenario, case) = (text(&trace["scenario"]), text(&trace["case"]));
        let cassette = project.read(&format!("fixtures/cassettes/{scenario}/{case}/tool-rag.base.1.yaml"));
        assert!(cassette.contains(&pinned), "{case}");
    }
}

#[test]
fn a_lane_that_searched_another_collection_or_model_than_is_declared_is_stale_and_told() {
    let project = Project::shipped();
    project.edit("ragcheck.yaml", "chroma://127.0.0.1:8093/fernlight", "chroma://127.0.0.1:8099/fernlight");
    assert!(!project.run(&["check", "scenarios/servers"]).stdout.contains("another base"), "the host is not pinned");
    project.edit("ragcheck.yaml", "chroma://127.0.0.1:8099/fernlight", "chroma://127.0.0.1:8093/fernlight-2");
    let told = project.run(&["check", "scenarios/servers"]).stdout;
    assert!(told.contains("another base was searched when 4 lanes were recorded"), "{told}");
    assert!(told.contains("chroma collection fernlight, 70 passages, vectors by all-MiniLM-L6-v2"), "{told}");
}

#[test]
fn a_base_with_vectors_whose_passages_changed_says_which_command_makes_the_missing_ones() {
    let project = Project::shipped();
    project.write("fixtures/knowledge/fernlight/new.md", "# New\n\nThe Sprig has a new lamp.\n");
    let outcome = project.run(&RUN);
    assert_ne!(outcome.code, 0);
    assert!(
        outcome.stderr.contains("1 passage has no vector: run `ragcheck knowledge index fernlight-sentences`"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn vectors_of_another_length_than_the_models_are_deleted_and_indexed_again_as_the_message_says() {
    let project = Project::shipped();
    let _simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
    let name = "fernlight-vectors.counted-words.vectors";
    let file = project.path(&format!("fixtures/knowledge/{name}"));
    let bytes = std::fs::read(&file).expect("vectors");
    let line = bytes.iter().position(|byte| *byte == b'\n').expect("a first line");
    let mut head: Value = serde_json::from_slice(&bytes[..line]).expect("JSON");
    head["dimensions"] = 1.into();
    let numbers = head["passages"].as_array().expect("passages").len();
    let one = std::iter::repeat_n(1.0_f32.to_le_bytes(), numbers).flatten();
    std::fs::write(&file, [head.to_string().as_bytes(), b"\n"].concat().into_iter().chain(one).collect::<Vec<u8>>())
        .expect("written");
    let search = || project.run(&["knowledge", "search", "fernlight-vectors", "warranty"]);
    let refused = search();
    refused.expect_code(2);
    let advice =
        format!("delete {name} beside the base's folder, and run `ragcheck knowledge index fernlight-vectors`");
    assert!(refused.stderr.contains(&advice), "{}", refused.stderr);
    std::fs::remove_file(&file).expect("deleted");
    project.run(&["knowledge", "index", "fernlight-vectors"]).expect_code(0);
    search().expect_code(0);
}

#[test]
fn mistakes_in_declared_bases_are_found_with_their_places() {
    let project = Project::shipped();
    project.edit("ragcheck.yaml", "embeddings: {provider: simulator, model", "embeddings: {provider: simulater, model");
    project.edit(
        "ragcheck.yaml",
        "    server: chroma://127.0.0.1:8093/fernlight\n",
        "    server: chroma://127.0.0.1:8093/fernlight\n    where: {file: warranty.md}\n",
    );
    let outcome = project.run(&["check"]);
    outcome.expect_code(2);
    for words in ["did you mean `simulator`", "`where` applies to a server's passages alone"] {
        assert!(outcome.stdout.contains(words), "{words}: {}", outcome.stdout);
    }
    let project = Project::shipped();
    project.edit("ragcheck.yaml", "chroma://127.0.0.1:8093/fernlight", "http://127.0.0.1:8093/fernlight");
    let outcome = project.run(&["check"]);
    outcome.expect_code(2);
    assert!(outcome.stdout.contains("unknown kind of server `http`"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("chroma, qdrant"), "{}", outcome.stdout);
    for (address, said) in [
        ("qdrant://127.0.0.1:8093/fernlight?tenant=t", "qdrant accepts nothing after `?`"),
        ("chroma://127.0.0.1:8093/fernlight?limit=5", "chroma has no option `limit`; known: tenant, database"),
    ] {
        let project = Project::shipped();
        project.edit("ragcheck.yaml", "chroma://127.0.0.1:8093/fernlight", address);
        let outcome = project.run(&["check"]);
        outcome.expect_code(2);
        assert!(outcome.stdout.contains(said), "{said}: {}", outcome.stdout);
    }
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The status line of a GET, where somebody answers.
fn answers(port: u16, path: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
    let _ = write!(stream, "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer.starts_with("HTTP/1.1 200")
}

fn chroma(program: &str, data: &Path) -> (Running, u16) {
    let port = ports::free();
    let child = Command::new(program)
        .args(["run", "--host", "127.0.0.1", "--port", &port.to_string(), "--path"])
        .arg(data)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("chroma starts");
    let running = Running(child);
    let (_never, silence) = std::sync::mpsc::channel::<()>();
    for _ in 0..600 {
        if answers(port, "/api/v2/heartbeat") {
            return (running, port);
        }
        let _ = silence.recv_timeout(Duration::from_millis(100));
    }
    panic!("{program} does not answer on port {port}");
}

/// A real Chroma is filled from a folder, searched, recorded against and stopped; then the recording is replayed.
/// The program is named by RAGCHECK_CHROMA: `chroma` of `pip install chromadb`.
#[test]
#[ignore = "needs a Chroma: RAGCHECK_CHROMA=PROGRAM, .ci/slow installs one"]
fn needs_chroma_a_collection_is_filled_searched_recorded_and_replayed_when_it_is_gone() {
    let program = std::env::var("RAGCHECK_CHROMA").expect("RAGCHECK_CHROMA names the program");
    let project = Project::shipped();
    let (server, port) = chroma(&program, &project.path("chroma-data"));
    let simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
    project.edit("ragcheck.yaml", "    server: chroma://127.0.0.1:8093/fernlight\n    folder: fernlight\n    embeddings: {provider: embeddings, model: all-MiniLM-L6-v2}", &format!("    server: \"chroma://127.0.0.1:{port}/fern?tenant=default_tenant&database=default_database\"\n    folder: fernlight\n    embeddings: {{provider: simulator, model: counted-words}}"));
    // The documents of the collection, with vectors of the same provider.
    project.edit(
        "ragcheck.yaml",
        "fernlight-vectors: {folder: fernlight-vectors,",
        "fernlight-vectors: {folder: fernlight,",
    );
    project.run(&["knowledge", "index", "fernlight-vectors"]).expect_code(0);
    let missing = project.run(&["knowledge", "search", "fernlight-chroma", "valve"]);
    missing.expect_code(2);
    assert!(missing.stderr.contains("fern"), "{}", missing.stderr);

    let push = |project: &Project| project.run(&["knowledge", "push", "fernlight-chroma"]);
    push(&project).expect_code(0);
    let again = push(&project);
    assert!(
        again.stdout.contains("passages with vectors by counted-words, 0 removed"),
        "{}{}",
        again.stdout,
        again.stderr
    );
    for query in ["ohms of the valve coil", "warranty of the Sprig", "frost guard heater", "port of the firewall"] {
        let here = project.run(&["knowledge", "search", "fernlight-vectors", query]);
        here.expect_code(0);
        assert_eq!(project.run(&["knowledge", "search", "fernlight-chroma", query]).stdout, here.stdout, "{query}");
    }

    // What is gone from the folder goes from the collection too.
    copy(&project.path("fixtures/knowledge/fernlight"), &project.path("kept"));
    std::fs::remove_file(project.path("fixtures/knowledge/fernlight/warranty.md")).expect("is there");
    project.run(&["knowledge", "index", "fernlight-vectors"]).expect_code(0);
    let pushed = push(&project);
    assert!(
        pushed.stdout.contains(" removed") && !pushed.stdout.contains(", 0 removed"),
        "{}{}",
        pushed.stdout,
        pushed.stderr
    );
    let without = project.run(&["knowledge", "search", "fernlight-chroma", "warranty of the Sprig", "--top-k", "20"]);
    assert!(!without.stdout.contains("warranty#"), "{}", without.stdout);
    copy(&project.path("kept"), &project.path("fixtures/knowledge/fernlight"));
    project.run(&["knowledge", "index", "fernlight-vectors"]).expect_code(0);
    push(&project).expect_code(0);

    std::fs::remove_dir_all(project.path("fixtures/cassettes/chroma")).expect("is there");
    let run = |project: &Project, more: &[&str]| {
        project.run(
            &[&["run", "scenarios/servers/chroma.yaml", "--criteria", "scenarios/servers/criteria.yaml"][..], more]
                .concat(),
        )
    };
    run(&project, &["--mode", "record"]).expect_code(0);
    let recorded: Outcome = run(&project, &[]);
    drop((server, simulator));
    let replayed = run(&project, &[]);
    replayed.expect_code(0);
    assert_eq!(replayed.stdout, recorded.stdout);
    assert!(
        project.traces().iter().all(|trace| text(&trace["evidence"]["knowledge"]).contains("chroma collection fern, "))
    );
}
