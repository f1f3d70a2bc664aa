//! A copy of the shipped project in a folder of its own, to break on purpose, and the binary run in it.

use crate::program::program;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// What one run of the binary gave.
pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// Runs a command to its end.
    pub fn of(command: &mut Command) -> Self {
        let output = command.output().expect("it runs");
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Fails the test with everything that was printed, unless the exit code is this one.
    pub fn expect_code(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// The shipped suite, run once for all tests that only look at it.
pub fn whole() -> &'static (Project, Outcome) {
    static WHOLE: OnceLock<(Project, Outcome)> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let project = Project::shipped();
        let outcome = project.run(&["run", "--verbose"]);
        (project, outcome)
    })
}

/// A copy of the shipped project with the run that [`whole`] made, for a test that writes into its folder.
pub fn copy_of_whole() -> Project {
    let (made, outcome) = whole();
    outcome.expect_code(0);
    let (project, run) = (Project::shipped(), made.newest());
    copy(&made.path(&run), &project.path(&run));
    let name = Path::new(&run).file_name().expect("a name");
    std::os::unix::fs::symlink(name, project.path("reports/latest")).expect("a link");
    project
}

/// A hundred of its trials, of three flows, run once for all tests that look at some run.
pub fn few() -> &'static (Project, Outcome) {
    static FEW: OnceLock<(Project, Outcome)> = OnceLock::new();
    FEW.get_or_init(|| {
        let project = Project::shipped();
        let outcome = project.run(&RUN_OF_FEW);
        (project, outcome)
    })
}

/// How [`few`] is run.
pub const RUN_OF_FEW: [&str; 5] =
    ["run", "--verbose", "scenarios/knowledge.yaml", "scenarios/two-stage.yaml", "scenarios/react.yaml"];

/// A project in a temporary folder.
pub struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    /// A copy of the shipped project.
    pub fn shipped() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        fs::copy(root.join("ragcheck.yaml"), folder.path().join("ragcheck.yaml")).expect("ragcheck.yaml");
        for part in ["scenarios", "fixtures"] {
            copy(&root.join(part), &folder.path().join(part));
        }
        Self { folder }
    }

    /// The shipped project without its scenarios, their recordings and requirements, for scenarios of the test's own: every
    /// run of the whole project reads them all.
    pub fn without_scenarios() -> Self {
        let project = Self::empty();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(root.join("ragcheck.yaml")).expect("ragcheck.yaml");
        let (settings, _) = text.split_once("\n# What the shipped scenarios are to show").expect("requirements");
        project.write("ragcheck.yaml", &format!("{settings}\n"));
        for part in ["fixtures/knowledge", "fixtures/simulator"] {
            copy(&root.join(part), &project.path(part));
        }
        let criteria = "scenarios/success-criteria.yaml";
        project.write(criteria, &fs::read_to_string(root.join(criteria)).expect(criteria));
        project
    }

    /// An empty folder, to be filled by the test.
    pub fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    /// What `ragcheck init` makes.
    pub fn starter() -> Self {
        let project = Self::empty();
        project.run(&["init"]).expect_code(0);
        project
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    /// The binary, to be run in the project.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(self.folder.path()).env("NO_COLOR", "1").env_remove("COLUMNS");
        // The shipped recordings do not grow old.
        // Keys of tests that a server of theirs is sent.
        command
            .env("RAGCHECK_TRUST", "SIMULATED_MODEL_KEY=127.0.0.1 ECHO_KEY=127.0.0.1 A_KEY_THAT_NOBODY_SET=127.0.0.1");
        command.env("RAGCHECK_NOW", "2026-12-01T00:00:00Z");
        command
    }

    /// Runs the binary in the project.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        Outcome::of(&mut self.command(arguments))
    }

    /// The text of a file.
    pub fn read(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).unwrap_or_else(|why| panic!("{relative}: {why}"))
    }

    /// Writes a file, and the folders above it.
    pub fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect(relative);
    }

    /// The folder of the run that was made last, whole or a part.
    pub fn newest(&self) -> String {
        let written =
            |folder: &Path| fs::metadata(folder.join("environment.json")).and_then(|file| file.modified()).ok();
        let folders = fs::read_dir(self.path("reports")).expect("reports").map(|entry| entry.expect("an entry").path());
        let runs = folders.filter(|folder| !folder.is_symlink()).filter_map(|folder| Some((written(&folder)?, folder)));
        let (_, folder) = runs.max().expect("a run");
        format!("reports/{}", folder.file_name().expect("a name").to_string_lossy())
    }

    /// A JSON file of the newest run.
    pub fn latest(&self, file: &str) -> serde_json::Value {
        serde_json::from_str(&self.read(&format!("{}/{file}", self.newest()))).expect(file)
    }

    /// The traces of the newest run.
    pub fn traces(&self) -> Vec<serde_json::Value> {
        let text = self.read(&format!("{}/traces.jsonl", self.newest()));
        text.lines().map(|line| serde_json::from_str(line).expect("a trace")).collect()
    }

    /// Replaces the first `from` of a file, which must be there.
    pub fn edit(&self, relative: &str, from: &str, to: &str) {
        let path = self.path(relative);
        let text = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{relative}: {why}"));
        assert!(text.contains(from), "{relative} does not contain {from:?}");
        fs::write(&path, text.replacen(from, to, 1)).expect(relative);
    }

    /// Every file of a run folder, name and bytes, but for what differs between machines.
    pub fn report(&self, folder: &str) -> Vec<(String, Vec<u8>)> {
        let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(self.path(folder))
            .expect("a run folder")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.file_name().is_some_and(|name| name != "environment.json"))
            .map(|path| {
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                (name, fs::read(&path).expect("a file"))
            })
            .collect();
        files.sort();
        files
    }
}

/// Copies a folder with all that is in it.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).expect("a copy");
        }
    }
}
