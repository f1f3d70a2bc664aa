//! Reads the recordings at a commit from git. The call ignores hooks, file-system monitors and programs configured by
//! the checkout, and never treats a bare repository inside the checkout as its own.

use super::output::Problem;
use crate::scenario::Loaded;
use crate::suite::BaseCommit;
use crate::trace::text::quote;
use std::collections::BTreeSet;
use std::path::{Component, Path};
use std::process::{Command, Stdio};

/// Hexadecimal digits of a commit hash in output.
const SHOWN: usize = 12;
/// Settings that override any configuration of the checkout.
const SETTINGS: [&str; 4] =
    ["safe.bareRepository=explicit", "core.fsmonitor=false", "core.hooksPath=/dev/null", "diff.external="];

/// The recordings at the named commit, and whether `baseline` is as it was there.
///
/// # Errors
/// If git is not installed, the project or its recordings are not in a checkout, or the commit is unknown.
pub(super) fn base_commit(named: &str, loaded: &Loaded, baseline: Option<&Path>) -> Result<BaseCommit, Problem> {
    let (root, cassettes) = (&loaded.root, &loaded.project.cassettes);
    let commit = format!("{named}^{{commit}}");
    let hash =
        git(root, &["rev-parse", "--verify", "--end-of-options", &commit]).map_err(|why| unknown(named, &why))?;
    let hash = hash.trim();
    // The project may be a subfolder of its repository, and its recordings beside it: git names files from the top.
    let place = |option| git(root, &["rev-parse", option]).map_err(|why| unknown(named, &why));
    let (top, project) = (place("--show-toplevel")?, place("--show-prefix")?);
    let top = Path::new(top.strip_suffix('\n').unwrap_or(&top));
    let folder = in_repository(project.trim_end_matches('\n'), cassettes).ok_or_else(|| {
        let folder = quote(cassettes, 80);
        Problem::Words(format!(
            "--base-commit {}: the recordings, {folder}, are not in the repository",
            quote(named, 80)
        ))
    })?;
    let pathspec = if folder.is_empty() { "." } else { folder.trim_end_matches('/') };
    let at_base = |pathspec: &str| Files::at(top, hash, pathspec).map_err(|why| unknown(named, &why));
    let Files { there, changed } = at_base(pathspec)?;
    let below = |file: &String| file.strip_prefix(&folder).filter(|file| !file.is_empty()).map(str::to_owned);
    let is_deleted = |file: &&String| changed.contains(*file) && top.join(file).symlink_metadata().is_err();
    let mut base = BaseCommit {
        name: hash.chars().take(SHOWN).collect(),
        same: there.difference(&changed).filter_map(below).collect(),
        deleted: there.iter().filter(is_deleted).filter_map(below).collect(),
        baseline: String::new(),
    };
    // A link that leads to another file of the commit is a change as well.
    let paths = baseline.into_iter().flat_map(|file| [std::path::absolute(file), file.canonicalize()]).flatten();
    let paths = paths.filter_map(|path| Some(path.strip_prefix(top).ok()?.to_str()?.replace('\\', "/")));
    for path in paths.filter(|path| !path.is_empty()) {
        let Files { there, changed } = at_base(&path)?;
        if there.is_empty() || !changed.is_empty() {
            base.baseline = path;
        }
    }
    Ok(base)
}

/// Files at a commit, by their paths from the top of the repository.
struct Files {
    there: BTreeSet<String>,
    /// Those that differ in the checkout.
    changed: BTreeSet<String>,
}

impl Files {
    fn at(top: &Path, hash: &str, pathspec: &str) -> Result<Self, GitError> {
        let diff =
            ["diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=none", "--no-relative"];
        let there = git(top, &["ls-tree", "-r", "-z", "--name-only", hash, "--", pathspec])?;
        let changed = git(top, &[&diff[..], &["--name-only", "-z", hash, "--", pathspec]].concat())?;
        let each = |names: &str| names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Ok(Self { there: each(&there), changed: each(&changed) })
    }
}

/// A folder of the project at `project` as a path from the top of the repository, without `.` and `..`, with `/` at its
/// end unless it is the top; `None` if it is outside.
fn in_repository(project: &str, folder: &str) -> Option<String> {
    let mut parts: Vec<&str> = project.split('/').filter(|part| !part.is_empty()).collect();
    for part in Path::new(folder).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = parts.pop()?,
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.iter().map(|part| format!("{part}/")).collect())
}

fn unknown(named: &str, why: &GitError) -> Problem {
    let (named, why) = (quote(named, 80), quote(&why.0, 300));
    Problem::Words(format!(
        "--base-commit {named}: git cannot tell what the recordings were there: {why}; in a shallow checkout fetch it first, \
         `git fetch --depth 1 origin COMMIT`, or check out with `fetch-depth: 2` and name HEAD^1"
    ))
}

/// What git says when it fails.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct GitError(String);

/// Standard output of git.
fn git(folder: &Path, arguments: &[&str]) -> Result<String, GitError> {
    let mut command = Command::new("git");
    command.current_dir(folder).stdin(Stdio::null());
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    command.args(["--no-pager", "--literal-pathspecs"]).args(arguments);
    command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_LAZY_FETCH", "1").env("GIT_TERMINAL_PROMPT", "0");
    command.env("GIT_NO_REPLACE_OBJECTS", "1");
    let output = command.output().map_err(|why| GitError(format!("git cannot be run: {why}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(GitError(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_path_from_the_top_of_its_repository_however_it_is_written() {
        for (folder, path) in [
            ("recordings", "bikes/recordings/"),
            ("./recordings/", "bikes/recordings/"),
            ("scenarios/../recordings/.", "bikes/recordings/"),
            ("../recordings", "recordings/"),
            ("..", ""),
        ] {
            assert_eq!(in_repository("bikes/", folder).as_deref(), Some(path), "{folder}");
        }
        assert_eq!(in_repository("", "."), Some(String::new()));
        assert_eq!(in_repository("bikes/", "../../recordings"), None);
        assert_eq!(in_repository("", "/recordings"), None);
    }
}
