//! The service is killed in the middle of a turn: whoever asks again gets the answer of that turn, from where it was; a
//! state that cannot be read is answered with a fresh session and a notice.

use super::*;
use std::io::Write;
use std::net::TcpStream;
use std::path::PathBuf;

const WARRANTY: &str = "How many months does the warranty of the Canopy last from the day of delivery?";
/// Nothing is found for it, so that its turn reflects.
const NOTHING: &str = "Encarsia dosage for whiteflies?";

/// A service of the flow with a session of one turn, whose model takes its time.
struct Killed {
    project: Project,
    _simulator: Simulator,
    session: String,
}

impl Killed {
    /// Kills the service when the second turn of the session, asked `question`, is stored in `state`.
    fn in_state(state: &str, question: &'static str) -> Self {
        let project = Project::shipped();
        let usual = "lognormal: {median: 700ms, sigma: 0.4, max: 6s}";
        project.edit("fixtures/simulator/fernlight.yaml", usual, "constant: 400ms");
        let simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
        let mut service = Service::start(&project, "react", &[]);
        let first = service.ask(&Asked::new("We decided to use the Canopy. How much is the Grower plan a month?"));
        assert_eq!(first.status, 200, "{}", first.text);
        let session = first.body["session_id"].as_str().expect("a session").to_owned();
        let killed = Self { project, _simulator: simulator, session };
        assert!(!killed.file().exists(), "no turn is under way");
        let asked = {
            let (address, session) = (service.address.clone(), killed.session.clone());
            std::thread::spawn(move || {
                post(&address, &Asked { session: Some(&session), ..Asked::new(question) }.body(), &[])
            })
        };
        let reached = (0..6_000).any(|_| {
            client::wait(Duration::from_millis(10));
            killed.state().as_deref() == Some(state)
        });
        assert!(reached, "the turn never came to {state}");
        service.signal("-KILL");
        let _ = service.wait();
        assert_ne!(asked.join().expect("a client").status, 200, "nobody was given an answer");
        killed
    }

    fn file(&self) -> PathBuf {
        self.project.path(&format!(".ragcheck/serve/react/under-way/{}.json", self.session))
    }

    /// The state of the turn under way, as it is stored.
    fn state(&self) -> Option<String> {
        let stored: Value = serde_json::from_str(&std::fs::read_to_string(self.file()).ok()?).ok()?;
        stored["state"].as_str().map(str::to_owned)
    }

    /// What another service answers to the same question of that session.
    fn again(&self, question: &str) -> Answered {
        let service = Service::start(&self.project, "react", &[]);
        service.ask(&Asked { session: Some(&self.session), ..Asked::new(question) })
    }

    /// Entries of the log of that kind.
    fn logged(&self, kind: &str) -> Vec<Value> {
        let log = self.project.read(".ragcheck/serve/react/events.jsonl");
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        lines.filter_map(|line| line["what"]["logged"].get(kind).cloned()).collect()
    }
}

/// Kills it there and asks again.
fn goes_on(state: &str, question: &'static str, says: &str) {
    let killed = Killed::in_state(state, question);
    // It may have come further between the look and the kill.
    let was = killed.state().expect("a state");
    let answered = killed.again(question);
    let text = answered.body["answer"].as_str().unwrap_or_default();
    assert!(answered.status == 200 && text.contains(says), "{state}: {}", answered.text);
    assert_eq!(killed.logged("restored").last(), Some(&json!({"state": was})), "killed in {state}");
    assert!(!killed.file().exists(), "the answer is in the session: {state}");
    let noted = killed.logged("noted");
    assert_eq!(noted.len(), 1, "what the user decided is not said again");
}

#[cfg(unix)]
#[test]
fn a_turn_whose_service_was_killed_goes_on_where_it_was() {
    goes_on("observing", WARRANTY, "60 months");
}

#[cfg(unix)]
#[test]
fn a_turn_that_cannot_be_read_back_is_answered_in_a_fresh_session_with_a_notice() {
    let killed = Killed::in_state("answering", WARRANTY);
    std::fs::write(killed.file(), "{\"version\":1,").expect("written");
    let answered = killed.again(WARRANTY);
    let text = answered.body["answer"].as_str().unwrap_or_default();
    assert!(answered.status == 200 && text.contains("this is a fresh session"), "{}", answered.text);
    assert_eq!(killed.logged("started_afresh").len(), 1);
    assert!(!killed.file().exists());
}

#[cfg(unix)]
#[test]
#[ignore = "a kill in each state: .ci/slow"]
fn a_turn_goes_on_from_every_state_in_which_its_service_may_be_killed() {
    for state in ["thinking", "observing", "answering"] {
        goes_on(state, WARRANTY, "60 months");
    }
    for state in ["thinking", "reflecting", "answering"] {
        goes_on(state, NOTHING, "No document supports this answer");
    }
}

#[test]
fn whoever_hangs_up_on_a_plain_request_finds_the_answer_in_the_session() {
    let project = Project::shipped();
    let usual = "lognormal: {median: 700ms, sigma: 0.4, max: 6s}";
    project.edit("fixtures/simulator/fernlight.yaml", usual, "constant: 400ms");
    let _simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
    let service = Service::start(&project, "tool-rag", &[]);
    let first = service.ask(&Asked::new(QUESTION));
    let session = first.body["session_id"].as_str().expect("a session");
    let body = Asked { session: Some(session), ..Asked::new("And what does E-21 report?") }.body().to_string();
    let head = format!(
        "POST /api/chat/query HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        service.address,
        body.len()
    );
    let mut asked = TcpStream::connect(&service.address).expect("the service");
    asked.write_all(head.as_bytes()).expect("sent");
    client::wait(Duration::from_millis(150));
    drop(asked);
    let stored = || project.read(&format!(".ragcheck/serve/tool-rag/sessions/{session}.json"));
    let answered = (0..1_000).any(|_| {
        client::wait(Duration::from_millis(10));
        stored().contains("E-21")
    });
    assert!(answered, "the turn was lost with its asker: {}", stored());
}
