//! `ragcheck cassette import`: imports cassettes of other recorders, redacted, one lane per file.

use super::arguments::Import;
use crate::cassette::Redactor;
use crate::cli::exit::Exit;
use crate::cli::output::{self, Problem};
use crate::cli::select::{current_folder, variables};
use crate::scenario;
use crate::suite::recordings::{self, CaseNames, is_name, known_secrets};
use crate::trace::text::plural;
use crate::trace::text::quote;
use std::collections::BTreeSet;

/// Runs `ragcheck cassette import`.
///
/// # Errors
/// If a path does not exist, or the scenario's name is not a valid folder name.
pub(super) fn run(given: &Import) -> Result<Exit, Problem> {
    let here = current_folder()?;
    let root = scenario::find_root(&here);
    let project = scenario::load_project(&root, &crate::catalogues())?;
    if !is_name(&given.scenario) {
        return Err(Problem::Words(format!(
            "--scenario: `{}` is not a name: use a to z, 0 to 9 and `-`",
            given.scenario
        )));
    }
    let _alone = recordings::lock("cassette import")?;
    let redactor = Redactor::new(known_secrets(&project, variables(given.env_file.as_deref())?));
    let folder = root.join(&project.cassettes);
    let (mut names, mut whole, mut exchanges, mut losses) = (CaseNames::default(), 0, 0, BTreeSet::new());
    let files = recordings::import_files(&given.paths)?;
    for file in &files {
        let shown = quote(&file.display().to_string(), 400);
        let case = names.name(file);
        let target = recordings::Import { folder: &folder, scenario: &given.scenario, case: &case };
        match recordings::import(file, target, &redactor) {
            Err(why) => output::remark(&format!("{shown}: not imported: {why}")),
            Ok((imported, path)) => {
                let path = path.strip_prefix(&here).unwrap_or(&path).display().to_string();
                let count = imported.exchanges.len();
                output::result(&format!("{shown}: {} -> {path}\n", plural(count, "exchange")));
                let foreign = imported.exchanges.iter().filter(|exchange| exchange.service == "other").count();
                if foreign > 0 {
                    output::remark(&format!("{shown}: {foreign} of them of no dialect known here: matched exactly"));
                }
                for (number, why) in &imported.refused {
                    output::remark(&format!("{shown}: interaction {number} not imported: {why}"));
                }
                exchanges += count;
                losses.extend(imported.losses);
                whole += usize::from(imported.refused.is_empty());
            }
        }
    }
    for loss in losses {
        output::remark(&format!("note: {loss}"));
    }
    let (exchanges, files_words) = (plural(exchanges, "exchange"), plural(files.len(), "file"));
    output::result(&format!("{exchanges} imported; {whole} of {files_words} whole\n"));
    Ok(if whole == files.len() { Exit::Passed } else { Exit::Incomplete })
}
