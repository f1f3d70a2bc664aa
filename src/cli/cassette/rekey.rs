//! `ragcheck cassette rekey`: recomputes keys from the stored requests with this build's matching profiles.

use super::arguments::Rekey;
use super::cassettes;
use crate::cassette::Rekeyed;
use crate::cli::exit::Exit;
use crate::cli::output::{self, Problem};
use crate::suite::recordings::{self, rekey};
use crate::trace::text::plural;

/// Runs `ragcheck cassette rekey`.
///
/// # Errors
/// If no cassettes are found.
pub(super) fn run(given: &Rekey) -> Result<Exit, Problem> {
    let _alone = recordings::lock("cassette rekey")?;
    let files = cassettes(&given.paths)?;
    let (mut changed, mut refused) = (0, 0);
    for file in &files {
        match rekey(&file.path, &file.blobs) {
            Ok((rekeyed, exchanges)) => {
                if let Some(what) = words(&rekeyed, exchanges) {
                    changed += 1;
                    output::result(&format!("{}: {what}\n", file.shown));
                }
            }
            Err(why) => {
                refused += 1;
                output::remark(&format!("{}: left as it was: {why}", file.shown));
            }
        }
    }
    let (all, refused_words) = (plural(files.len(), "cassette"), plural(refused, "cassette"));
    output::result(&format!("{changed} of {all} rekeyed\n"));
    if refused > 0 {
        output::remark(&format!("{refused_words} refused: record again with `ragcheck run --mode record`"));
        return Ok(Exit::Incomplete);
    }
    Ok(Exit::Passed)
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
