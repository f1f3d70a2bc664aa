//! Where the workflow of a new project goes. GitHub reads workflows of a repository's root only, so the workflow of a
//! project in a subfolder is written there, with `working-directory` set.

use crate::platform::files;
use std::path::{Component, Path, PathBuf};

/// The workflow of a project that is the repository's root, or in no repository.
const USUAL: &str = ".github/workflows/ragcheck.yml";
/// Line of the workflow before which defaults of its steps are written.
const JOBS: &str = "jobs:\n";

/// A project's folder inside of a repository, below its root.
pub(super) struct Below {
    /// Root of the repository.
    pub(super) repository: PathBuf,
    /// The project's folder from there, with forward slashes.
    folder: String,
}

impl Below {
    /// The repository around `folder`; `None` if there is none, or the folder is its root.
    pub(super) fn of(folder: &Path) -> Option<Self> {
        let mut whole = PathBuf::new();
        for part in files::absolute(folder).components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => drop(whole.pop()),
                other => whole.push(other),
            }
        }
        let repository = whole.ancestors().find(|above| above.join(".git").exists())?.to_owned();
        let parts = whole.strip_prefix(&repository).ok()?.components();
        let parts: Option<Vec<&str>> = parts.map(|part| part.as_os_str().to_str()).collect();
        let folder = parts?.join("/");
        (!folder.is_empty() && !folder.contains(char::is_control)).then_some(Self { repository, folder })
    }

    /// Path of the workflow file, named after the project's folder: a repository may have several projects.
    fn path(&self) -> String {
        self.repository.join(self.path_below_root()).display().to_string()
    }

    /// The same path from the root.
    fn path_below_root(&self) -> String {
        let name: String = self.folder.chars().map(|one| if one.is_ascii_alphanumeric() { one } else { '-' }).collect();
        format!(".github/workflows/ragcheck-{name}.yml")
    }

    /// The same path from the project's folder.
    fn path_for_project(&self) -> String {
        format!("{}{}", "../".repeat(self.folder.split('/').count()), self.path_below_root())
    }

    /// The workflow with its steps run in the project's folder.
    fn in_folder(&self, text: &str) -> String {
        let folder = self.folder.replace('\'', "''");
        text.replacen(JOBS, &format!("defaults:\n  run:\n    working-directory: '{folder}'\n{JOBS}"), 1)
    }
}

/// Path and text of a new project's file: the workflow is moved if GitHub would not read it in `below`'s folder, and others
/// name it where it is.
pub(super) fn placed(below: Option<&Below>, (path, text): (String, String)) -> (String, String) {
    match below {
        Some(below) if path == USUAL => (below.path(), below.in_folder(&text)),
        Some(below) => (path, text.replace(USUAL, &below.path_for_project())),
        None => (path, text),
    }
}
