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

/// Collects tests of these names as pytest does, and begins each of them; prints the names of their cases.
const NAMES: &str = r#"
import sys, types
pytest = types.ModuleType("pytest")
pytest.fixture, pytest.hookimpl = (lambda function: function), (lambda **_: (lambda function: function))
pytest.skip, pytest.fail = types.SimpleNamespace(Exception=Exception), None
sys.modules["pytest"] = pytest
sys.path.insert(0, sys.argv[1])
from ragcheck_harness import pytest_plugin as plugin
class Item:
    def __init__(self, nodeid, uses=True):
        self.nodeid, self.name, self.fixturenames = nodeid, nodeid.split("::")[-1], ["ragcheck_case"] if uses else []
items = [Item("a.py::test_refund"), Item("b.py::test_refund"), Item("b.py::X::test_in"), Item("b.py::Y::test_in"),
         Item("a.py::test_alone"), Item("c.py::test_alone", uses=False), Item("a.py::test_p[1]"), Item("a.py::test_p[-1]"),
         Item("x" * 100 + "/a.py::test_long"), Item("b.py::test_long")]
plugin.pytest_collection_modifyitems(items)
for item in items:
    name = getattr(item, "ragcheck_name", "none")
    print(name, plugin.begun_twice(item, name) or "")
"#;

#[test]
#[ignore = "needs python3, its standard library alone"]
fn tests_of_one_name_are_cases_of_their_own_and_all_others_keep_their_names() {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/python");
    let told = Outcome::of(Command::new("python3").args(["-c", NAMES]).arg(packages));
    told.expect_code(0);
    let long = format!("{}/a.py::test_long", "x".repeat(74));
    let expected = format!(
        "a.py::test_refund\nb.py::test_refund\nb.py::X::test_in\nb.py::Y::test_in\ntest_alone\nnone\ntest_p[1]\n\
         test_p[-1] a.py::test_p[1]\n{long}\nb.py::test_long"
    );
    let names: Vec<&str> = told.stdout.lines().map(str::trim_end).collect();
    assert_eq!(names.join("\n"), expected);
}
