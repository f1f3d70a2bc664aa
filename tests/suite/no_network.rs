//! Replay opens no socket: it gives the same in an empty network namespace, and with every address of a provider dead.

use super::project::{Outcome, Project, whole};
use crate::program::program;
use std::process::Command;

#[test]
#[ignore = "needs a network namespace (`unshare -rn`)"]
fn needs_namespace_replay_needs_no_network_at_all() {
    let project = Project::shipped();
    let mut command = Command::new("unshare");
    command.args(["-rn", program(), "run"]);
    command.current_dir(project.path("")).env("NO_COLOR", "1");
    Outcome::of(&mut command).expect_code(0);
    assert!(
        project.report("reports/latest") == whole().0.report("reports/latest"),
        "the run differs without a network"
    );
}

#[test]
fn replay_never_looks_at_a_base_url_or_a_key() {
    let project = Project::shipped();
    let text = project.read("ragcheck.yaml").replace("127.0.0.1:8091", "replay.invalid:9");
    project.write("ragcheck.yaml", &text);
    project.edit(
        "ragcheck.yaml",
        "    dialect: openai-chat\n",
        "    dialect: openai-chat\n    key: NO_SUCH_KEY_IS_SET\n",
    );
    let outcome = project.run(&["run", "scenarios/external.yaml", "--only", "feed-in-tariff"]);
    assert!(outcome.stdout.contains("3 trials: 3 PASS"), "{}", outcome.stdout);
}
