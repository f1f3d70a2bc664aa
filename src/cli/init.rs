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
use std::io::Write as _;
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
    /// Files of git that were there, and to which missing lines were added.
    pub extended: Vec<Extended>,
    /// With --agent, what is known of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<MetAgent>,
}

/// A file of git to which lines were added.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Extended {
    /// The file, from the project's folder.
    pub file: String,
    /// The lines.
    pub lines: Vec<String>,
}

impl std::fmt::Display for Extended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lines: Vec<String> = self.lines.iter().map(|line| format!("`{line}`")).collect();
        write!(f, "added {} to your {}", lines.join(", "), self.file)
    }
}

/// Files that a folder may already have: they stay, and those of git get the lines that they lack.
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
    let (mut unchanged, mut extended) = (Vec::new(), Vec::new());
    for (path, text) in kept {
        match extend(folder, &path, &text)? {
            Some(lines) => extended.push(lines),
            None => unchanged.push(path),
        }
    }
    let workflow = below.and_then(|_| missing.iter().find(|(path, _)| path.contains("workflows/")));
    let workflow = workflow.map(|(path, _)| format!("the workflow is {path}: GitHub reads no other folder\n"));
    let names = |files: &[(String, String)]| files.iter().map(|(path, _)| path.clone()).collect();
    let done = Initialised {
        folder: folder.display().to_string(),
        written: names(&missing),
        there: names(&written),
        kept: unchanged,
        extended,
        agent: None,
    };
    output::data(given.format, &done, |done| {
        summary(folder, (missing.len(), written.len()), done) + &workflow.unwrap_or_default()
    })?;
    Ok(Exit::Passed)
}

/// Adds the lines of `wanted` that a file of git lacks, comments aside, behind those that it has. `None` for any other
/// file, for one that cannot be read as text, and for one that lacks none.
pub(super) fn extend(folder: &Path, path: &str, wanted: &str) -> Result<Option<Extended>, Problem> {
    let file = folder.join(path);
    let there = if matches!(path, ".gitignore" | ".gitattributes") { files::read_to_string(&file).ok() } else { None };
    let Some(there) = there else { return Ok(None) };
    // `reports` and `reports/` ignore that folder, too.
    let bare = |line: &str| line.trim().trim_matches('/').to_owned();
    let lacks = |line: &&str| !line.starts_with('#') && there.lines().all(|known| bare(known) != bare(line));
    let lines: Vec<String> = wanted.lines().filter(lacks).map(str::to_owned).collect();
    if lines.is_empty() {
        return Ok(None);
    }
    let end = if there.contains("\r\n") { "\r\n" } else { "\n" };
    let open = if there.is_empty() || there.ends_with('\n') { "" } else { end };
    let added: String = lines.iter().map(|line| format!("{line}{end}")).collect();
    let written = files::append(&file).and_then(|mut file| file.write_all(format!("{open}{added}").as_bytes()));
    written.map_err(|why| Problem::unwritten(&file, &why))?;
    Ok(Some(Extended { file: path.to_owned(), lines }))
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
fn summary(folder: &Path, (written, before): (usize, usize), done: &Initialised) -> String {
    let mut text = format!("wrote {} to {}\n", plural(written, "file"), shown_folder(folder));
    if before > 0 {
        let _ = writeln!(text, "{} of the project stood there already", plural(before, "file"));
    }
    for path in &done.kept {
        let _ = writeln!(text, "kept your {path}");
    }
    for one in &done.extended {
        let _ = writeln!(text, "{one}");
    }
    text += "\nnext:\n";
    if folder != Path::new(".") {
        let _ = writeln!(text, "  cd {}", shell_path(&folder.display().to_string()));
    }
    text += "  ragcheck run\n  ragcheck compare reports/latest@strict reports/latest@short\n";
    if !done.kept.iter().any(|path| path == "README.md") {
        text += "README.md there says what is in it and how to make it your own.\n";
    }
    text
}
