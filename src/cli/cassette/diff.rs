//! `ragcheck cassette diff`: compares the shapes of today's responses with the recorded ones.

use super::arguments::Diff;
use crate::cassette::Change;
use crate::cli::exit::Exit;
use crate::cli::output::{self, Problem};
use crate::cli::select::{load, selection, variables};
use crate::suite::recordings::{self, ServiceDiff};
use crate::trace::text::{plural, quote};
use crate::trial::Opened;
use std::fmt::Write as _;
use std::sync::Arc;

/// Maximum number of differences printed per service.
const SHOWN: usize = 40;

/// Runs `ragcheck cassette diff`.
///
/// # Errors
/// All mistakes in the files, or that no recorded request can be sent.
pub(super) fn run(given: &Diff) -> Result<Exit, Problem> {
    let suite = load(&given.select)?;
    let plan = suite.plan_passes(&selection(&given.select), given.select.seed, None)?;
    let mut opened = Opened::new(Arc::clone(suite.loaded()), &plan)?;
    opened.variables = variables(given.env_file.as_deref())?;
    let (services, incomplete) = recordings::diff(&opened, &plan, given.sample as usize, given.select.seed)?;
    if incomplete > 0 {
        output::remark(&format!("{} skipped: their stored requests are incomplete", plural(incomplete, "exchange")));
    }
    output::data(given.format, &services, |services| services.iter().map(text).collect())?;
    Ok(services.iter().fold(Exit::Passed, |exit, service| exit.worse(decided(service))))
}

fn text(found: &ServiceDiff) -> String {
    let ServiceDiff { service, provider, profile, sent, answered, .. } = found;
    let how = if found.streams { format!("{profile}, streamed") } else { profile.clone() };
    let mut text = format!(
        "{service}, {provider} ({how}): {sent} of {} sent, {answered} answered\n",
        plural(found.recorded, "recorded request")
    );
    for (why, count) in &found.failures {
        let _ = writeln!(text, "  {} failed: {why}", plural(*count, "request"));
    }
    for change in found.changes.iter().take(SHOWN) {
        let _ = writeln!(text, "  {}", words(change, found.compared));
    }
    if found.changes.len() > SHOWN {
        let _ = writeln!(text, "  and {} more", found.changes.len() - SHOWN);
    }
    if *answered > 0 && !found.changes.iter().any(Change::counts) {
        text.push_str("  same shape\n");
    }
    text
}

fn decided(found: &ServiceDiff) -> Exit {
    let failed = if found.failures.is_empty() { Exit::Passed } else { Exit::Incomplete };
    if found.changes.iter().any(Change::counts) { failed.worse(Exit::Failed) } else { failed }
}

fn words(change: &Change, answers: usize) -> String {
    match change {
        Change::New { path, types } => format!("new: {}: {types}", quote(path, 200)),
        Change::Gone { path, types } => format!("gone: {}: {types}, in every recorded answer", quote(path, 200)),
        Change::Retyped { path, before, now } => {
            format!("changed type: {}: {before} before, {now} now", quote(path, 200))
        }
        Change::Unseen { path, of } => {
            format!(
                "not seen: {}, in {of} of {answers} recorded answers; it may depend on the content",
                quote(path, 200)
            )
        }
    }
}
