//! Many sessions at once: none is shown what another one said.

use super::*;

const FOLLOW_UPS: [&str; 4] = [
    "How many months does the warranty of the Canopy last from the day of delivery?",
    "What does the Market plan cost per month?",
    "Which outgoing port must the firewall open for the controller?",
    "How high does the Lumen bar hang above lettuce?",
];

/// Asks `turns` questions in each of `sessions` sessions, all at once: each names a serial number, and must be told of
/// that one alone for as long as it goes on.
fn crowd(flow: &str, tenant: Option<&'static str>, sessions: u32, turns: usize) {
    let (project, _simulator, service) = served(flow, &[]);
    let asked: Vec<_> = (0..sessions)
        .map(|number| {
            let (address, serial) = (service.address.clone(), format!("GL-{}", 1000 + number));
            std::thread::spawn(move || {
                let first = format!("My controller is {serial}. What does error E-17 say?");
                let body = Asked { tenant, ..Asked::new(&first) }.body();
                let answered = post(&address, &body, &[]);
                assert_eq!(answered.status, 200, "{serial}: {}", answered.body);
                let session = answered.body["session_id"].as_str().expect("a session").to_owned();
                for turn in 1..turns {
                    let asked = Asked { session: Some(&session), ..Asked::new(FOLLOW_UPS[turn % FOLLOW_UPS.len()]) };
                    let answered = post(&address, &asked.body(), &[]);
                    assert_eq!(answered.status, 200, "{serial}, turn {turn}: {}", answered.body);
                    let text = answered.body["answer"].as_str().expect("an answer").to_owned();
                    let serials: Vec<&str> = text.matches("GL-").map(|_| "").collect();
                    assert!(text.contains(&serial) && serials.len() == 1, "{serial}, turn {turn}: {text}");
                }
                session
            })
        })
        .collect();
    let mut ids: Vec<String> = asked.into_iter().map(|thread| thread.join().expect("its answers")).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), sessions as usize, "each has a session of its own");
    for id in &ids {
        let stored = project.read(&format!(".ragcheck/serve/{flow}/sessions/{id}.json"));
        let stored: Value = serde_json::from_str(&stored).expect("JSON");
        let conversation: Value = serde_json::from_str(stored["conversation"].as_str().expect("text")).expect("JSON");
        assert_eq!(conversation["turns"], turns, "{id}");
        assert_eq!(conversation["history"].as_array().map(Vec::len), Some(2 * turns), "{id}");
    }
    let log = project.read(&format!(".ragcheck/serve/{flow}/events.jsonl"));
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("a whole line")).collect();
    let ended = lines.iter().filter(|line| !line["what"]["turn_ended"].is_null()).count();
    assert_eq!(ended, sessions as usize * turns, "every turn is in the log once");
}

#[test]
fn eighty_questions_in_eight_sessions_at_once_are_not_mixed_up() {
    crowd("two-stage", Some("fernlight"), 8, 10);
}

#[test]
#[ignore = "a thousand questions: .ci/slow"]
fn a_thousand_questions_in_fifty_sessions_at_once_are_not_mixed_up() {
    crowd("two-stage", Some("fernlight"), 50, 20);
    crowd("tool-rag", None, 50, 20);
}
