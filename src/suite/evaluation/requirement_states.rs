//! States of requirements, from `mutants.json` in the run folder.
//!
//! The file, which `ragcheck mutate` writes, belongs to one plan and the traces that it was made of. Any other file, an edited one and one of a newer build
//! say nothing: the requirements are then not examined.

use crate::gate::{Evaluation, RequirementState};
use crate::platform::files;
use crate::trace::{self, MUTANTS, Seal};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::Path;

/// Version of the file that this build writes and reads.
pub(in crate::suite) const VERSION: u32 = 1;

/// What reports read of the file.
#[derive(Deserialize)]
struct Stored {
    version: u32,
    plan: String,
    traces: String,
    requirements: Vec<StoredRequirement>,
}

#[derive(Deserialize)]
struct StoredRequirement {
    id: String,
    state: RequirementState,
    why: String,
}

/// Adds the states of requirements to the evaluation of a run, if they were examined for this plan and these traces.
///
/// # Errors
/// If the traces cannot be read.
pub(super) fn apply(folder: &Path, plan: &str, evaluation: &mut Evaluation) -> io::Result<()> {
    let Some(stored) = read(folder).filter(|stored| stored.version <= VERSION && stored.plan == plan) else {
        return Ok(());
    };
    match digest(&folder.join(trace::TRACES)) {
        Ok((_, traces)) if traces == stored.traces => {}
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => return Ok(()),
    }
    let mut states: BTreeMap<String, StoredRequirement> =
        stored.requirements.into_iter().map(|one| (one.id.clone(), one)).collect();
    for requirement in &mut evaluation.requirements {
        if let Some(found) = states.remove(&requirement.id) {
            (requirement.state, requirement.why) = (Some(found.state), found.why);
        }
    }
    Ok(())
}

fn read(folder: &Path) -> Option<Stored> {
    let text = files::read_to_string(folder.join(MUTANTS)).ok()?;
    (trace::sealed(&text) == Seal::Whole).then(|| serde_json::from_str(&text).ok())?
}

/// Number of bytes, and SHA-256 in hex, of a file.
pub(in crate::suite) fn digest(file: &Path) -> io::Result<(u64, String)> {
    let mut input = files::open(file)?;
    let (mut bytes, mut hash, mut part) = (0, Sha256::new(), vec![0; 1 << 16]);
    loop {
        match input.read(&mut part)? {
            0 => return Ok((bytes, hex::encode(hash.finalize()))),
            length => {
                hash.update(&part[..length]);
                bytes += length as u64;
            }
        }
    }
}
