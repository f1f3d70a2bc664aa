//! Care for recordings: secrets in them, their age, what they no longer fit, and recording them again.

use super::project::{Outcome, Project};

const LANE: &str = "fixtures/cassettes/knowledge/valve-error/tool-rag.base.1.yaml";

#[test]
fn the_shipped_recordings_hold_no_secret() {
    let outcome = Project::shipped().run(&["cassette", "scan"]);
    outcome.expect_code(0);
    assert!(outcome.stdout.starts_with("no secret in 3"), "{}", outcome.stdout);
}

#[test]
fn a_planted_secret_is_found_by_place_and_kind_and_never_shown() {
    let project = Project::shipped();
    let (known, formed) = ("planted/Secret+0451", "sk-plantedplantedplanted0451");
    let text = project.read(LANE);
    let line = 1 + text[..text.find("content: ").expect("a message")].matches('\n').count();
    project.edit(LANE, "content: ", &format!("note: \"planted%2FSecret%2B0451 {formed}\"\n          content: "));
    project.write("notes/keys.txt", &format!("first\nanything\\n{formed}\n{known}\n"));
    project.write("some.env", &format!("SEARCH={known}\n"));
    let found = |arguments: &[&str]| {
        let outcome = Outcome::of(project.command(arguments).env("MY_TOKEN", known));
        for secret in [known, formed, "planted%2FSecret%2B0451"] {
            assert!(!outcome.stdout.contains(secret) && !outcome.stderr.contains(secret), "{}", outcome.stdout);
        }
        outcome
    };
    let outcome = found(&["cassette", "scan"]);
    outcome.expect_code(1);
    assert_eq!(outcome.stdout.lines().count(), 2, "{}", outcome.stdout);
    assert!(outcome.stdout.contains(&format!("{LANE}:{line}: the value of MY_TOKEN\n")), "{}", outcome.stdout);
    assert!(outcome.stdout.contains(&format!("{LANE}:{line}: a key that begins like those of OpenAI")));
    assert!(outcome.stderr.contains("2 secrets in 1 file"), "{}", outcome.stderr);

    let outcome = found(&["cassette", "scan", "notes", "scenarios/knowledge.yaml", "--env-file", "some.env"]);
    outcome.expect_code(1);
    assert!(outcome.stdout.starts_with("notes/keys.txt:2: a key that begins"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("notes/keys.txt:3: the value of "), "{}", outcome.stdout);
    found(&["cassette", "scan", "scenarios"]).expect_code(0);
    found(&["cassette", "scan", "no-such-file"]).expect_code(2);
}
