//! Runs the steps of a workflow as GitHub does, as far as a machine without GitHub can: each `run:` text word for word with the
//! shell that it asks for, `if:` and `${{ … }}` evaluated, a fresh clone for `actions/checkout`, outputs and the summary in files.
//!
//! Two programs are stand-ins: `cargo install` and `cargo build` put the built binary where the real ones would, and `gh`
//! writes down what it is asked and remembers comments and pull requests. Other actions (caches, toolchains, artifacts) do
//! nothing here.

use crate::program::program;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const CARGO: &str = r#"#!/usr/bin/env bash
set -eu
case "$1" in
  install) bin="${CARGO_HOME:-$HOME/.cargo}/bin" ;;
  build) bin=target/release ;;
esac
mkdir -p "$bin"
ln -sf "$BUILT" "$bin/ragcheck"
"#;

const GH: &str = r#"#!/usr/bin/env bash
set -eu
[ -n "${GH_TOKEN:-}" ] || { echo "gh: no token" >&2; exit 4; }
[ ! -e "$GH_STATE/refuses" ] || { echo "gh: HTTP 403: Resource not accessible by integration" >&2; exit 1; }
echo "$*" >>"$GH_STATE/asked"
case "$*" in
  *"--method POST"*) echo 77 >"$GH_STATE/comment" ;;
  *"--paginate"*) cat "$GH_STATE/comment" 2>/dev/null || true ;;
  # A fork may have a branch of the same name: its pull request is listed too, unless one asks for those of this repository.
  "pr list"*"isCrossRepository | not"*) cat "$GH_STATE/pull-request" 2>/dev/null || true ;;
  "pr list"*) cat "$GH_STATE/fork" "$GH_STATE/pull-request" 2>/dev/null || true ;;
  "pr create"*) echo 12 >"$GH_STATE/pull-request" ;;
esac
while [ $# -gt 0 ]; do
  case "$1" in
    --body-file) cp "$2" "$GH_STATE/body" ;;
    body=@*) cp "${1#body=@}" "$GH_STATE/body" ;;
  esac
  shift
done
"#;

/// A repository with an origin, and the machine that its jobs run on.
pub struct Workplace {
    folder: tempfile::TempDir,
}

/// What a step did.
#[derive(Debug)]
pub struct Step {
    pub name: String,
    /// Its exit code; `None` where its `if:` said no.
    pub code: Option<i32>,
    /// What it printed; of another action, the `path` that it was given.
    pub stdout: String,
    pub stderr: String,
}

/// What a job did.
#[derive(Debug)]
pub struct Job {
    pub steps: Vec<Step>,
    pub failed: bool,
    /// The summary of all steps.
    pub summary: String,
}

impl Job {
    pub fn step(&self, name: &str) -> &Step {
        self.steps.iter().find(|step| step.name == name).unwrap_or_else(|| panic!("no step `{name}` in {self:#?}"))
    }
}

impl Workplace {
    /// The files of `project` as the first commit of a repository, in its folder `inside`.
    pub fn of(project: &Path, inside: &str) -> Self {
        let place = Self { folder: tempfile::tempdir().expect("a folder") };
        for folder in ["bin", "home/.cargo/bin", "gh", "action/.ci", "shared"] {
            fs::create_dir_all(place.path(folder)).expect(folder);
        }
        for (name, text) in [("cargo", CARGO), ("gh", GH)] {
            let file = place.path("bin").join(name);
            fs::write(&file, text).expect(name);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a program");
        }
        // The action as a runner has it: away from the project, without a build.
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for file in [".ci/action", "Cargo.toml"] {
            fs::copy(root.join(file), place.path("action").join(file)).expect("a file of the action");
        }
        super::project::copy(project, &place.path("seed").join(inside));
        place.git("seed", &["init", "--quiet", "--initial-branch", "main"]);
        place.commit("seed", "first");
        place.git(".", &["clone", "--quiet", "--bare", "seed", "origin.git"]);
        place.git("seed", &["remote", "add", "origin", "../origin.git"]);
        place
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    /// A file that `gh` wrote: `asked`, `body`.
    pub fn gh(&self, file: &str) -> String {
        fs::read_to_string(self.path("gh").join(file)).unwrap_or_default()
    }

    /// Changes a file of the repository, and pushes that.
    pub fn change(&self, file: &str, change: impl Fn(String) -> String) {
        let path = self.path("seed").join(file);
        let text = fs::read_to_string(&path).unwrap_or_default();
        fs::write(&path, change(text)).expect(file);
        self.commit("seed", file);
        self.git("seed", &["push", "--quiet", "origin", "main"]);
    }

    fn commit(&self, folder: &str, message: &str) {
        self.git(folder, &["add", "--all"]);
        self.git(
            folder,
            &["-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "--quiet", "--message", message],
        );
    }

    /// Runs git, which has to succeed, and gives what it printed.
    pub fn git(&self, folder: &str, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(self.path(folder));
        self.settle(&mut command);
        let outcome = super::project::Outcome::of(&mut command);
        outcome.expect_code(0);
        outcome.stdout
    }

    /// The environment of the machine: its own home, and the stand-ins first on the path.
    fn settle(&self, command: &mut Command) {
        let (bin, home) = (self.path("bin"), self.path("home"));
        let path = format!(
            "{}:{}:{}",
            bin.display(),
            home.join(".cargo/bin").display(),
            std::env::var("PATH").unwrap_or_default()
        );
        for name in ["CARGO_HOME", "RAGCHECK", "GH_TOKEN", "GITHUB_WORKSPACE", "COLUMNS"] {
            command.env_remove(name);
        }
        command.env("PATH", path).env("HOME", home).env("BUILT", program());
        command.env("GH_STATE", self.path("gh")).env("RAGCHECK_NOW", "2026-12-01T00:00:00Z");
    }

    /// A pull request number 12 with that change, merged into `main` as GitHub does; gives the commit of its base.
    pub fn pull_request(&self, change: impl Fn(&Path)) -> String {
        let base = self.git("seed", &["rev-parse", "HEAD"]).trim().to_owned();
        self.git("seed", &["checkout", "--quiet", "-b", "change"]);
        change(&self.path("seed"));
        self.git("seed", &["add", "--all", "--force"]);
        self.commit("seed", "the change");
        self.git("seed", &["checkout", "--quiet", "main"]);
        let merge =
            ["-c", "user.name=a", "-c", "user.email=a@localhost", "merge", "--quiet", "--no-ff", "--no-edit", "change"];
        self.git("seed", &merge);
        self.git("seed", &["push", "--quiet", "origin", "HEAD:refs/pull/12/merge"]);
        self.git("seed", &["reset", "--quiet", "--hard", &base]);
        base
    }

    /// Runs a text with a shell in a folder.
    pub fn shell(
        &self,
        shell: &[&str],
        text: &str,
        folder: &Path,
        variables: &BTreeMap<String, String>,
    ) -> super::project::Outcome {
        let script = self.path("script.sh");
        fs::write(&script, text).expect("a script");
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).arg(script).current_dir(folder);
        self.settle(&mut command);
        super::project::Outcome::of(command.envs(variables))
    }

    /// Runs the steps of a job; `contexts` are what `${{ … }}` reads: `github.event_name`, `inputs.baseline`.
    pub fn run(&self, job: &Value, contexts: &[(&str, &str)]) -> Job {
        let mut contexts: BTreeMap<String, String> =
            contexts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (temp, checkout) = (self.path("runner-temp"), self.path("work").join("checked out"));
        for folder in [&temp, &checkout] {
            let _ = fs::remove_dir_all(folder);
            fs::create_dir_all(folder).expect("a folder");
        }
        let summary = temp.join("summary");
        let mut steps = Vec::new();
        let mut failed = false;
        for (index, written) in job["steps"].as_array().expect("steps").iter().enumerate() {
            let text = |key: &str| written[key].as_str().unwrap_or_default();
            let name = [text("name"), text("uses"), text("run")].into_iter().find(|one| !one.is_empty());
            let name = name.expect("a step does something").trim().to_owned();
            let wanted = written["if"].as_str().map_or(!failed, |condition| holds(condition, &contexts, failed));
            if !wanted {
                steps.push(Step { name, code: None, stdout: String::new(), stderr: String::new() });
                continue;
            }
            if text("uses").starts_with("actions/checkout") {
                fs::remove_dir_all(&checkout).expect("it was there");
                let origin = format!("file://{}", self.path("origin.git").display());
                let depth = written["with"]["fetch-depth"].as_u64().unwrap_or(1).to_string();
                self.git("work", &["clone", "--quiet", "--depth", &depth, &origin, "checked out"]);
                if let Some(reference) = contexts.get("github.ref") {
                    let fetched = format!("+{reference}:refs/remotes/pull");
                    self.git("work/checked out", &["fetch", "--quiet", "--depth", &depth, "origin", &fetched]);
                    self.git("work/checked out", &["checkout", "--quiet", "--detach", "refs/remotes/pull"]);
                }
            }
            if text("run").is_empty() {
                let path = filled(written["with"]["path"].as_str().unwrap_or_default(), &contexts);
                steps.push(Step { name, code: Some(0), stdout: path, stderr: String::new() });
                continue;
            }
            let output = temp.join(format!("output-{index}"));
            let mut variables: BTreeMap<String, String> = BTreeMap::from([
                ("GITHUB_ACTIONS".into(), "true".into()),
                ("CI".into(), "true".into()),
                ("GITHUB_WORKSPACE".into(), checkout.display().to_string()),
                ("GITHUB_ACTION_PATH".into(), self.path("action").display().to_string()),
                ("GITHUB_REPOSITORY".into(), "owner/bikes".into()),
                ("GITHUB_OUTPUT".into(), output.display().to_string()),
                ("GITHUB_STEP_SUMMARY".into(), summary.display().to_string()),
                ("RUNNER_TEMP".into(), temp.display().to_string()),
                ("TMPDIR".into(), self.path("shared").display().to_string()),
            ]);
            if let Some(reference) = contexts.get("github.ref") {
                let head = self.git("work/checked out", &["rev-parse", "HEAD"]).trim().to_owned();
                variables.extend([("GITHUB_REF".into(), reference.clone()), ("GITHUB_SHA".into(), head)]);
            }
            for settings in [&job["env"], &written["env"]] {
                for (key, value) in settings.as_object().into_iter().flatten() {
                    variables.insert(key.clone(), filled(value.as_str().unwrap_or_default(), &contexts));
                }
            }
            let shell: &[&str] = match text("shell") {
                "" => &["bash", "-e"],
                "bash" => &["bash", "--noprofile", "--norc", "-eo", "pipefail"],
                other => panic!("no shell `{other}` here"),
            };
            let folder = checkout.join(filled(text("working-directory"), &contexts));
            let outcome = self.shell(shell, &filled(text("run"), &contexts), &folder, &variables);
            for line in fs::read_to_string(&output).unwrap_or_default().lines() {
                let (key, value) = line.split_once('=').expect("an output is KEY=VALUE");
                contexts.insert(format!("steps.{}.outputs.{key}", text("id")), value.to_owned());
            }
            failed |= outcome.code != 0;
            steps.push(Step { name, code: Some(outcome.code), stdout: outcome.stdout, stderr: outcome.stderr });
        }
        Job { steps, failed, summary: fs::read_to_string(summary).unwrap_or_default() }
    }
}

/// A text with each `${{ … }}` replaced.
fn filled(text: &str, contexts: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${{") {
        let (expression, after) = after.split_once("}}").expect("an expression ends");
        out += before;
        out += &value(expression.trim(), contexts);
        rest = after;
    }
    out + rest
}

/// A literal, or what a context holds; one that is not there is empty, as on GitHub.
fn value(expression: &str, contexts: &BTreeMap<String, String>) -> String {
    let literal = expression.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    literal.map_or_else(|| contexts.get(expression).cloned().unwrap_or_default(), str::to_owned)
}

/// Whether a condition of `&&`, `==` and `!=` holds; without `always()` a failed job goes no further.
fn holds(condition: &str, contexts: &BTreeMap<String, String>, failed: bool) -> bool {
    let terms: Vec<&str> = condition.split("&&").map(str::trim).collect();
    let goes_on = terms.contains(&"always()") || !failed;
    goes_on
        && terms.iter().all(|term| match (*term, term.split_once("=="), term.split_once("!=")) {
            ("always()", _, _) => true,
            (_, Some((one, other)), _) => value(one.trim(), contexts) == value(other.trim(), contexts),
            (_, _, Some((one, other))) => value(one.trim(), contexts) != value(other.trim(), contexts),
            (other, None, None) => panic!("`{other}` is not evaluated here"),
        })
}

/// A YAML text.
pub fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("YAML")
}
