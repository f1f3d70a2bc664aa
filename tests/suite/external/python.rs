//! The example in Python, FastAPI and the openai client as they are, replayed from its shipped recordings.
//! The agent in Rust covers the flow everywhere.

use super::super::project::{Outcome, copy};
use crate::program::program;
use std::path::Path;
use std::process::Command;

#[test]
fn the_shipped_example_is_sound_and_its_recordings_hold_no_key() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fastapi-agent");
    let checked = ragcheck::internals::cli::check::check(&example, &[], None, None);
    assert!(checked.diagnostics.is_empty(), "{}", checked.text(false));
    let mut found = Vec::new();
    super::holding(&example.join("cassettes"), "example-key", &mut found);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
#[ignore = "needs the clients that `tests/sdks/install` installs: RAGCHECK_SDKS"]
fn needs_sdks_the_agent_replays_its_shipped_recordings() {
    let folder = tempfile::tempdir().expect("a folder");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fastapi-agent"), folder.path());
    let scenario = folder.path().join("scenarios/kayaks.yaml");
    let text = std::fs::read_to_string(&scenario).expect("the scenario");
    let text = text.replace(".venv/bin/uvicorn", &format!("{} -m uvicorn", super::sdk_python()));
    std::fs::write(&scenario, text).expect("the scenario");
    let mut run = Command::new(program());
    let outcome = Outcome::of(run.arg("run").current_dir(folder.path()).env("NO_COLOR", "1"));
    outcome.expect_code(0);
    assert!(outcome.stdout.contains("4 trials: 4 PASS"), "{}", outcome.stdout);
}
