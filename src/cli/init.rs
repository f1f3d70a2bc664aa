//! `ragcheck init`: creates a working project. It asks nothing and overwrites no file.

use super::arguments::Init;
use super::exit::Exit;
use super::first_contact::{self, MetAgent};
use super::output::{self, Problem};
use super::schema;
use super::workflow_file::{Below, placed};
use crate::cli::starter;
use crate::platform::files;
use crate::trace::text::{listed, plural, shell_word};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;

/// What `init` did.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Initialised {
    /// The folder, as it was named.
    pub folder: String,
    /// Files that were written, from there.
    pub written: Vec<String>,
    /// Files of the project that were there before, with the same text.
    pub there: Vec<String>,
    /// Files that were there with another text, and are unchanged.
    pub kept: Vec<String>,
    /// With --agent, what is known of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<MetAgent>,
}

/// Files that a folder may already have: they stay unchanged, and the new project's version is printed.
const MAY_STAY: [&str; 3] = ["README.md", ".gitignore", ".gitattributes"];
/// Maximum number of existing files listed.
const SHOWN: usize = 5;

/// Runs `ragcheck init`.
///
/// # Errors
/// If a project file already exists, in which case nothing is written; or if the folder cannot be written.
pub(super) fn run(given: &Init) -> Result<Exit, Problem> {
    if let Some(agent) = &given.agent {
        return first_contact::run(given, agent);
    }
    let folder = given.folder.as_path();
    let schemas = ["scenario", "criteria", "project"].into_iter();
    let schemas = schemas.filter_map(|of| Some((format!("schema/{of}.json"), schema::text(of)?)));
    let below = Below::of(folder);
    let project = starter::files().map(|(path, text)| placed(below.as_ref(), (path, text.to_owned())));
    let all: Vec<(String, String)> = project.chain(schemas).collect();
    let (there, missing): (Vec<_>, Vec<_>) = all.into_iter().partition(|(path, _)| exists(&folder.join(path)));
    // Files of an interrupted `init` are valid: only the missing ones are added.
    let (written, there): (Vec<_>, Vec<_>) =
        there.into_iter().partition(|(path, text)| holds(&folder.join(path), text));
    let (kept, in_the_way): (Vec<_>, Vec<_>) =
        there.into_iter().partition(|(path, _)| MAY_STAY.contains(&path.as_str()));
    if !in_the_way.is_empty() {
        return Err(Problem::Words(refusal(folder, &in_the_way)));
    }
    if missing.is_empty() {
        return Err(Problem::Words(format!(
            "{} has the whole project already, and no file is overwritten: name another folder, `ragcheck init my-project`",
            shown_folder(folder)
        )));
    }
    for (path, text) in &missing {
        output::write(&folder.join(path), text)?;
    }
    let workflow = below.and_then(|_| missing.iter().find(|(path, _)| path.contains("workflows/")));
    let workflow = workflow.map(|(path, _)| format!("the workflow is {path}: GitHub reads no other folder\n"));
    let names = |files: &[(String, String)]| files.iter().map(|(path, _)| path.clone()).collect();
    let done = Initialised {
        folder: folder.display().to_string(),
        written: names(&missing),
        there: names(&written),
        kept: names(&kept),
        agent: None,
    };
    output::data(given.format, &done, |_| {
        summary(folder, (missing.len(), written.len()), &kept) + &workflow.unwrap_or_default()
    })?;
    Ok(Exit::Passed)
}

/// Whether a file has exactly that content.
fn holds(path: &Path, text: &str) -> bool {
    files::read_to_string(path).is_ok_and(|found| found == text)
}

/// Whether the name is taken, even by a dangling link.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn refusal(folder: &Path, in_the_way: &[(String, String)]) -> String {
    format!(
        "{} has {} already, with other text, and no file is overwritten: move them away, or name another folder, `ragcheck init \
         my-project`",
        shown_folder(folder),
        listed(in_the_way.iter().map(|(path, _)| path), SHOWN)
    )
}

fn shown_folder(folder: &Path) -> String {
    if folder == Path::new(".") { "this folder".to_owned() } else { folder.display().to_string() }
}

/// A path as one shell word that cannot be read as an option.
fn shell_path(path: &str) -> String {
    if path.starts_with('-') { shell_word(&format!("./{path}")) } else { shell_word(path) }
}

/// Summary of what was created, and the next steps.
fn summary(folder: &Path, (written, before): (usize, usize), kept: &[(String, String)]) -> String {
    let mut text = format!("wrote {} to {}\n", plural(written, "file"), shown_folder(folder));
    if before > 0 {
        let _ = writeln!(text, "{} of the project stood there already", plural(before, "file"));
    }
    for (path, would_be) in kept {
        if path == "README.md" {
            text += "kept your README.md\n";
        } else {
            let lines: Vec<&str> = would_be.lines().filter(|line| !line.starts_with('#')).collect();
            let _ = writeln!(text, "kept your {path}; add to it:\n  {}", lines.join("\n  "));
        }
    }
    text += "\nnext:\n";
    if folder != Path::new(".") {
        let _ = writeln!(text, "  cd {}", shell_path(&folder.display().to_string()));
    }
    text += "  ragcheck run\n  ragcheck compare reports/latest@strict reports/latest@short\n";
    text + "README.md there says what is in it and how to make it your own.\n"
}
