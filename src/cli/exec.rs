//! `ragcheck exec`: starts a test runner, and judges the cases that it begins.

use super::arguments::{Detail, Exec, Printed};
use super::exit::Exit;
use super::first_contact::{clients_of, usual_providers};
use super::output::{self, Problem};
use super::run::{forget_exit, keep, unused, write_reports};
use super::score::print;
use super::select::{current_folder, from_here, project, variables};
use crate::report::DecidedExit;
use crate::settings::Provider;
use crate::suite::exec::{ExecOptions, ExecRun, Named, exec};
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub(super) fn run(given: &Exec) -> Result<Exit, Problem> {
    let folder = current_folder()?;
    let (file, criteria) = from_here(given.scenario.as_slice(), given.criteria.as_deref());
    let scenario = match file.into_iter().next() {
        Some(file) => Named::File(file),
        None => usual()?,
    };
    let options = ExecOptions {
        mode: given.mode,
        command: &given.command,
        scenario,
        criteria,
        seed: given.seed,
        max_calls: given.max_calls,
        variables: variables(given.env_file.as_deref())?,
        reports: given.report_dir.clone(),
        again: again(given),
        stdout_is_ours: given.format == Printed::Json,
        tell: &|what| output::remark(what),
    };
    let ExecRun { run: mut done, failures, problems } = exec(&folder, &options)?;
    forget_exit(&done.folder)?;
    done.notes.iter().for_each(|note| output::remark(note));
    if let Some(remark) = unused(&done.unused) {
        output::remark(&remark);
    }
    let judged = Exit::of_code(done.evaluated.evaluation.exit_code);
    let mut whys = problems;
    let mut exit = if whys.is_empty() { judged } else { judged.worse(Exit::Incomplete) };
    if let Some(how) = failures.first() {
        whys.push(format!("the test runner ended with {how}"));
        exit = exit.worse(Exit::Failed);
    }
    for why in &whys {
        output::remark(&format!("error: {why}"));
    }
    if exit != judged {
        keep(&mut done, DecidedExit { exit_code: exit.code(), why: whys.join("; ") })?;
    }
    let detail = if given.format == Printed::Json { Detail::Json } else { Detail::Brief };
    print(&done.evaluated, detail, &done.folder, None);
    write_reports(&given.report, &done.evaluated)?;
    Ok(exit)
}

/// A scenario with every provider of the project, and with the usual one of each API that none of them has.
fn usual() -> Result<Named, Problem> {
    let mut all = project()?.1.providers;
    let mut added = BTreeMap::new();
    for (name, provider) in usual_providers() {
        let clients = clients_of(&provider.dialect);
        if !all.contains_key(name) && !all.values().any(|known| clients_of(&known.dialect) == clients) {
            added.insert(name.to_owned(), provider.clone());
            all.insert(name.to_owned(), provider);
        }
    }
    let first = |clients: &str| {
        let mut theirs = all.iter().filter(|(_, known)| clients_of(&known.dialect) == clients).map(|(name, _)| name);
        theirs.clone().find(|name| *name == clients).or_else(|| theirs.next()).cloned()
    };
    Ok(Named::Usual(text(&all, first("openai"), first("perplexity")), added))
}

/// The text of that scenario.
fn text(all: &BTreeMap<String, Provider>, model: Option<String>, search: Option<String>) -> String {
    let mut text = String::from("scenario: exec\nflow: external\ntarget: {}\ncases: [{case: none, ask: none}]\n");
    for (key, name) in [("model", &model), ("search", &search)] {
        if let Some(name) = name {
            let _ = writeln!(text, "{key}: {{provider: {name}, name: ''}}");
        }
    }
    text.push_str("services:\n");
    for name in all.keys().filter(|name| Some(*name) != model.as_ref() && Some(*name) != search.as_ref()) {
        let _ = writeln!(text, "  {name}: {{provider: {name}}}");
    }
    text
}

/// The command that replays the cases.
fn again(given: &Exec) -> String {
    let mut words = vec!["ragcheck".to_owned(), "exec".to_owned()];
    words.extend(given.scenario.iter().flat_map(|file| ["--scenario".to_owned(), file.display().to_string()]));
    words.push("--".to_owned());
    words.extend(given.command.iter().map(|word| word.to_string_lossy().into_owned()));
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}
