//! The shipped examples of test runners, pytest and Vitest with the `openai` clients as they are, replayed from their
//! recordings; and what they say when the agent changes.

use super::super::project::{Outcome, copy};
use super::{holding, sdk_python, sdks};
use crate::program::program;
use std::path::{Path, PathBuf};
use std::process::Command;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
}

/// Replays a copy of an example, changed by `change`, with this runner.
fn replayed(name: &str, runner: &[&str], change: impl FnOnce(&Path)) -> Outcome {
    let checkout = tempfile::tempdir().expect("a folder");
    let folder = checkout.path().join("examples").join(name);
    copy(&example(name), &folder);
    // The fixtures are those of the packages.
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging"), &checkout.path().join("packaging"));
    change(&folder);
    let mut command = Command::new(program());
    command.args(["exec", "--scenario", "cases.yaml", "--"]).args(runner).current_dir(&folder);
    command.env("NO_COLOR", "1").env("PYTHONDONTWRITEBYTECODE", "1").env_remove("OPENAI_API_KEY");
    Outcome::of(&mut command)
}

fn edit(file: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(file).expect("a file");
    assert!(text.contains(from), "{} has no {from}", file.display());
    std::fs::write(file, text.replace(from, to)).expect("written");
}

/// The example passes as it is; another prompt is a miss that is explained; an agent that loses the answer fails.
fn holds(name: &str, agent: &str, runner: &[&str], link: impl Fn(&Path)) {
    let whole = replayed(name, runner, &link);
    whole.expect_code(0);
    assert!(whole.stdout.contains("3 trials: 3 PASS"), "{}", whole.stdout);
    assert!(whole.stdout.contains("REPLAYED, recorded from simulator"), "{}", whole.stdout);
    let changed = replayed(name, runner, |folder| {
        link(folder);
        edit(&folder.join(agent), "Look an order up", "Guess where an order is");
    });
    changed.expect_code(3);
    assert!(
        changed.stdout.contains("system prompt changed") && changed.stdout.contains("3 ERROR"),
        "{}",
        changed.stdout
    );
    let lost = replayed(name, runner, |folder| {
        link(folder);
        edit(&folder.join(agent), "return said.content", "return 'Sorry.'");
    });
    lost.expect_code(1);
    assert!(lost.stdout.contains("1 FAIL") && lost.stdout.contains("24 November"), "{}", lost.stdout);
    assert!(lost.stderr.contains("the test runner ended with exit code 1"), "{}", lost.stderr);
}

#[test]
fn the_recordings_of_the_examples_are_of_the_simulator_and_hold_no_key() {
    for name in ["pytest", "vitest"] {
        let (mut lanes, mut simulated, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        let recordings = example(name).join("cassettes");
        holding(&recordings, "recorded_from:", &mut lanes);
        holding(&recordings, "recorded_from:\n  model: \"simulator\"", &mut simulated);
        holding(&recordings, "placeholder-key", &mut keys);
        assert_eq!((lanes.len(), simulated.len()), (3, 3), "{name}");
        assert!(keys.is_empty(), "{keys:?}");
    }
}

#[test]
#[ignore = "needs the clients that `tests/sdks/install` installs: RAGCHECK_SDKS"]
fn needs_sdks_a_pytest_suite_replays_its_recordings_and_fails_when_the_agent_changes() {
    holds("pytest", "desk.py", &[&sdk_python(), "-m", "pytest", "-q", "-p", "no:cacheprovider"], |_| {});
}

#[cfg(unix)]
#[test]
#[ignore = "needs the clients that `tests/sdks/install` installs: RAGCHECK_SDKS"]
fn needs_sdks_a_vitest_suite_replays_its_recordings_and_fails_when_the_agent_changes() {
    let node = sdks().join("node").display().to_string();
    holds("vitest", "desk.mjs", &[&node, "node_modules/vitest/vitest.mjs", "run"], |folder| {
        let modules = folder.join("node_modules");
        std::os::unix::fs::symlink(sdks().join("node_modules"), modules).expect("a link");
    });
}

/// Two tests at once in one worker, as Vitest's fixtures run them.
const CONCURRENT: &str = "
import { withCases } from './vitest.mjs';
const { ragcheckCase } = withCases({ extend: (fixtures) => fixtures });
const run = (name) => ragcheckCase({ task: { name } }, () => new Promise((done) => setTimeout(done, 300)));
await Promise.allSettled(['alpha', 'beta'].map(run));
await run('gamma');
";

#[test]
#[ignore = "needs node"]
fn needs_node_the_second_of_two_concurrent_tests_of_a_worker_is_an_error_that_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let helper = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/npm/vitest.mjs");
    std::fs::copy(helper, folder.path().join("vitest.mjs")).expect("copied");
    std::fs::write(folder.path().join("worker.mjs"), CONCURRENT).expect("written");
    std::fs::copy(example("vitest").join("ragcheck.yaml"), folder.path().join("ragcheck.yaml")).expect("copied");
    let mut command = Command::new(program());
    command.args(["exec", "--mode", "live", "--", "node", "worker.mjs"]).current_dir(folder.path());
    let outcome = Outcome::of(command.env("NO_COLOR", "1").env("OPENAI_API_KEY", "placeholder"));
    outcome.expect_code(3);
    let said: Vec<&str> = outcome.stdout.split_whitespace().collect();
    assert_eq!(said.join(" ").matches("ran in the same worker").count(), 1, "{}{}", outcome.stdout, outcome.stderr);
    assert!(!outcome.stdout.contains("gamma began"), "{}", outcome.stdout);
}
