//! A copy of the shipped project in a folder of its own, to break on purpose, and the binary run in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What one run of the binary gave.
pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

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

    pub fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    /// Runs the binary in the project.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        let output = Command::new(env!("CARGO_BIN_EXE_ragcheck"))
            .args(arguments)
            .current_dir(self.folder.path())
            .env("NO_COLOR", "1")
            .env_remove("COLUMNS")
            .output()
            .expect("the binary runs");
        Outcome {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
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
