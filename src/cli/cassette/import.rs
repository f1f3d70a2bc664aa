//! `ragcheck cassette import`: imports cassettes of other recorders, redacted, one lane per file.

use super::arguments::Import;
use crate::cassette::Redactor;
use crate::cassette::foreign::{Format, Refused};
use crate::cli::exit::Exit;
use crate::cli::output::{self, Problem};
use crate::cli::select::{current_folder, project, variables};
use crate::suite::recordings::{self, CaseNames, ImportError, is_name, known_secrets};
use crate::trace::text::{plural, quote};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Runs `ragcheck cassette import`.
///
/// # Errors
/// If a path does not exist, or the scenario's name is not a valid folder name.
pub(super) fn run(given: &Import) -> Result<Exit, Problem> {
    let here = current_folder()?;
    let (root, project) = project()?;
    if !is_name(&given.scenario) {
        return Err(Problem::Words(format!(
            "--scenario: `{}` is not a name: use a to z, 0 to 9 and `-`",
            given.scenario
        )));
    }
    let _alone = recordings::lock("cassette import")?;
    let redactor = Redactor::new(known_secrets(&project, variables(given.env_file.as_deref())?));
    let folder = root.join(&project.cassettes);
    let (mut names, mut whole) = (CaseNames::default(), 0);
    let mut done = Imported { exchanges: 0, left_out: 0, files: Vec::new() };
    let (mut losses, mut left_out) = (BTreeMap::<_, usize>::new(), BTreeMap::<String, usize>::new());
    let mut leave_out = |shown: &str, format: Format, refused: &[Refused]| {
        for Refused { number, line, why } in refused {
            let line = if *line > 0 { format!(" (line {line})") } else { String::new() };
            output::remark(&format!("{shown}: {} {number}{line} not imported: {why}", format.item()));
            *left_out.entry(why.to_string()).or_default() += 1;
        }
    };
    let (files, others) = recordings::import_files(&given.paths)?;
    let mut unread = 0;
    for file in &files {
        let shown = quote(&file.display().to_string(), 400);
        let case = names.name(file);
        let target = recordings::Import { folder: &folder, scenario: &given.scenario, case: &case };
        match recordings::import(file, given.format, target, &redactor) {
            Err(why) => {
                output::remark(&format!("{shown}: not imported: {why}"));
                let file = ImportedFile { why: Some(why.to_string()), ..ImportedFile::of(&shown) };
                done.files.push(file);
                match &why {
                    ImportError::Refused(format, refused) => leave_out(&shown, *format, refused),
                    _ => unread += 1,
                }
            }
            Ok((imported, path)) => {
                let path = path.strip_prefix(&here).unwrap_or(&path).display().to_string();
                let count = imported.exchanges.len();
                let recorder = imported.format.name();
                done.files.push(ImportedFile {
                    recorder: Some(recorder.to_owned()),
                    exchanges: count,
                    cassette: Some(path),
                    ..ImportedFile::of(&shown)
                });
                let foreign = imported.exchanges.iter().filter(|exchange| exchange.service == "other").count();
                if foreign > 0 {
                    output::remark(&format!("{shown}: {foreign} of them of no dialect known here: matched exactly"));
                }
                leave_out(&shown, imported.format, &imported.refused);
                done.exchanges += count;
                for (loss, count) in imported.losses {
                    *losses.entry(loss).or_default() += count;
                }
                whole += usize::from(imported.refused.is_empty());
            }
        }
    }
    for (loss, count) in losses {
        output::remark(&format!("note: {loss} ({})", plural(count, "exchange")));
    }
    for (why, count) in &left_out {
        output::remark(&format!("left out: {}: {why}", plural(*count, "exchange")));
    }
    if unread > 0 {
        output::remark(&format!("left out: {} that could not be read, named above", plural(unread, "file")));
    }
    if others > 0 {
        output::remark(&format!("passed over: {} with names of no recording", plural(others, "other file")));
    }
    done.left_out = left_out.values().sum();
    output::data(given.output, &done, |done| text(done, whole))?;
    Ok(if whole == files.len() { Exit::Passed } else { Exit::Incomplete })
}

/// What an import made.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Imported {
    /// Exchanges that were imported.
    pub exchanges: usize,
    /// Exchanges that were not.
    pub left_out: usize,
    /// The files.
    pub files: Vec<ImportedFile>,
}

/// One file of an import.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ImportedFile {
    /// The file.
    pub file: String,
    /// Exchanges that were imported from it.
    pub exchanges: usize,
    /// The tool that recorded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorder: Option<String>,
    /// The cassette that was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cassette: Option<String>,
    /// Why none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl ImportedFile {
    fn of(file: &str) -> Self {
        Self { file: file.to_owned(), exchanges: 0, recorder: None, cassette: None, why: None }
    }
}

fn text(done: &Imported, whole: usize) -> String {
    let mut text = String::new();
    for ImportedFile { file, exchanges, recorder, cassette, .. } in &done.files {
        if let (Some(recorder), Some(cassette)) = (recorder, cassette) {
            let _ = writeln!(text, "{file}: {} of {recorder} -> {cassette}", plural(*exchanges, "exchange"));
        }
    }
    let refused = match done.left_out {
        0 => String::new(),
        refused => format!(", {} left out", plural(refused, "exchange")),
    };
    let (exchanges, files) = (plural(done.exchanges, "exchange"), plural(done.files.len(), "file"));
    let _ = writeln!(text, "{exchanges} imported{refused}; {whole} of {files} whole");
    text
}
