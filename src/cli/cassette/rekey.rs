//! `ragcheck cassette rekey`: recomputes keys from the stored requests with this build's matching profiles.

use super::arguments::Rekey;
use super::cassettes;
use crate::cassette::Rekeyed;
use crate::cli::exit::Exit;
use crate::cli::output::{self, Problem};
use crate::suite::recordings::{self, rekey};
use crate::trace::text::plural;
use schemars::JsonSchema;
use serde::Serialize;

/// Runs `ragcheck cassette rekey`.
///
/// # Errors
/// If no cassettes are found.
pub(super) fn run(given: &Rekey) -> Result<Exit, Problem> {
    let _alone = recordings::lock("cassette rekey")?;
    let files = cassettes(&given.paths)?;
    let mut done = RekeyedFiles { cassettes: files.len(), rekeyed: Vec::new(), refused: Vec::new() };
    for file in &files {
        match rekey(&file.path, &file.blobs) {
            Ok((rekeyed, exchanges)) => {
                let what = words(&rekeyed, exchanges);
                done.rekeyed.extend(what.map(|what| OneFile { file: file.shown.clone(), what }));
            }
            Err(why) => {
                output::remark(&format!("{}: left as it was: {why}", file.shown));
                done.refused.push(OneFile { file: file.shown.clone(), what: why.to_string() });
            }
        }
    }
    output::data(given.format, &done, |done| {
        let lines: String = done.rekeyed.iter().map(|OneFile { file, what }| format!("{file}: {what}\n")).collect();
        format!("{lines}{} of {} rekeyed\n", done.rekeyed.len(), plural(done.cassettes, "cassette"))
    })?;
    if !done.refused.is_empty() {
        let refused = plural(done.refused.len(), "cassette");
        output::remark(&format!("{refused} refused: record again with `ragcheck run --mode record`"));
        return Ok(Exit::Incomplete);
    }
    Ok(Exit::Passed)
}

/// What a computation of keys changed.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct RekeyedFiles {
    /// Number of cassettes.
    pub cassettes: usize,
    /// Those that changed, and how.
    pub rekeyed: Vec<OneFile>,
    /// Those that are as they were, and why.
    pub refused: Vec<OneFile>,
}

/// A cassette, and what is said of it.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct OneFile {
    /// The cassette.
    pub file: String,
    /// What changed, or why nothing did.
    pub what: String,
}

/// Summary of the changes; `None` if nothing changed.
fn words(rekeyed: &Rekeyed, exchanges: usize) -> Option<String> {
    if rekeyed.is_empty() {
        return None;
    }
    let mut words = Vec::new();
    if !rekeyed.keys.is_empty() || !rekeyed.sealed {
        words.push(format!("{} of {} with a new key", rekeyed.keys.len(), plural(exchanges, "exchange")));
    }
    if rekeyed.sealed {
        words.push("now with an `end:` line".to_owned());
    }
    if !rekeyed.hashes.is_empty() {
        words.push(format!("{} with new hashes", rekeyed.hashes.len()));
    }
    words.extend(rekeyed.profiles.iter().map(|(name, before, now)| format!("{name} from version {before} to {now}")));
    Some(words.join(", "))
}
