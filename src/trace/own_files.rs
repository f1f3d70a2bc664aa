//! Which additions to a run folder (grades, comparisons) this program made on this machine.
//!
//! The name of a run folder follows from its traces, so a checkout may hold the folder of a coming run with grades or a
//! comparison of a stranger. `own-files.json` lists a keyed hash of each addition, which only the user's key
//! ([`files::OwnKey`]) can produce. A run with the same traces keeps the additions that it lists and moves the others to
//! `earlier`, where nothing reads them.

use super::{
    AGREEMENT, COMPARISON_CSV, COMPARISON_HTML, COMPARISON_JSON, GRADES, JUDGEMENTS_CSV, MUTANTS, PAIRS_CSV,
    VARIANTS_CSV, VARIANTS_HTML, VARIANTS_JSON,
};
use crate::platform::files;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Keyed hashes of additions, by file name.
const OWN_FILES: &str = "own-files.json";
/// Folder for additions that were not made here.
pub(crate) const EARLIER: &str = "earlier";
/// Files that `judge`, `mutate` and `compare` add to a run folder.
const ADDITIONS: [&str; 11] = [
    GRADES, JUDGEMENTS_CSV, AGREEMENT, MUTANTS, COMPARISON_CSV, COMPARISON_HTML, COMPARISON_JSON, VARIANTS_CSV,
    PAIRS_CSV, VARIANTS_HTML, VARIANTS_JSON,
];

/// Notes that this program wrote its additions among `names` to the run folder. Without a key nothing is noted.
///
/// # Errors
/// If a file cannot be read, or the list cannot be written.
pub(crate) fn claim(folder: &Path, names: &[&str]) -> io::Result<()> {
    let Some(name) = name_of(folder) else { return Ok(()) };
    let mut claimed = claimed(folder);
    for file in names.iter().filter(|file| ADDITIONS.contains(file)) {
        claimed.extend(keyed(&name, folder, file)?.map(|hash| ((*file).to_owned(), hash)));
    }
    if claimed.is_empty() {
        return Ok(());
    }
    files::replace(folder.join(OWN_FILES), serde_json::to_string_pretty(&claimed)? + "\n")
}

/// Moves the additions that were not made here to [`EARLIER`], and removes links; returns their names.
pub(crate) fn set_aside(folder: &Path) -> io::Result<Vec<&'static str>> {
    let Some(name) = name_of(folder) else { return Ok(Vec::new()) };
    let claimed = claimed(folder);
    let mut moved = Vec::new();
    for file in ADDITIONS {
        let path = folder.join(file);
        let Ok(there) = path.symlink_metadata() else { continue };
        // What cannot be read was not made here.
        let hash = keyed(&name, folder, file).ok().flatten();
        if hash.is_none() || hash.as_ref() != claimed.get(file) {
            // A link is nothing that a run leaves, and may lead anywhere.
            if there.is_symlink() {
                files::remove_file(&path)?;
            } else {
                files::create_dir_all(folder.join(EARLIER))?;
                files::move_file(&path, &folder.join(EARLIER).join(file))?;
            }
            moved.push(file);
        }
    }
    Ok(moved)
}

/// Name of a run folder, also through `latest`.
fn name_of(folder: &Path) -> Option<String> {
    let folder = files::resolved(folder).ok()?;
    folder.file_name().map(|name| name.to_string_lossy().into_owned())
}

/// The list; empty if it is missing or unreadable, because a stranger may have written it.
fn claimed(folder: &Path) -> BTreeMap<String, String> {
    let text = files::read_to_string(folder.join(OWN_FILES)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Keyed hash of a file of the run `name`; `None` without a key.
fn keyed(name: &str, folder: &Path, file: &str) -> io::Result<Option<String>> {
    let Some(key) = files::own_key() else { return Ok(None) };
    let mut hash = key.hash();
    for part in ["run folder", name, file] {
        hash.update_text(part);
    }
    hash.update(&files::read(folder.join(file))?);
    Ok(Some(hash.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_this_program_added_stays_and_what_a_stranger_added_or_changed_is_set_aside() {
        let reports = tempfile::tempdir().expect("a folder");
        let run = reports.path().join("a1");
        fs::create_dir(&run).expect("a folder");
        let put = |file: &str, text: &str| fs::write(run.join(file), text).expect("written");
        put(GRADES, "{}\n");
        put(COMPARISON_JSON, "{}");
        put("run.json", "{}");
        claim(&run, &[GRADES, "run.json"]).expect("claimed");
        let list = fs::read_to_string(run.join(OWN_FILES)).expect("the list");
        assert!(list.contains(GRADES) && !list.contains("run.json"), "{list}");
        assert_eq!(set_aside(&run).expect("looked at"), [COMPARISON_JSON]);
        assert!(run.join(EARLIER).join(COMPARISON_JSON).exists() && run.join(GRADES).exists());
        // The same bytes in another run, and other bytes in this one.
        let other = reports.path().join("b2");
        fs::create_dir(&other).expect("a folder");
        for file in [GRADES, OWN_FILES] {
            fs::copy(run.join(file), other.join(file)).expect("copied");
        }
        assert_eq!(set_aside(&other).expect("looked at"), [GRADES]);
        put(GRADES, "{ }\n");
        assert_eq!(set_aside(&run).expect("looked at"), [GRADES]);
        assert!(set_aside(&run).expect("looked at").is_empty());
        // A folder in the place of a file.
        fs::create_dir(run.join(GRADES)).expect("a folder");
        let _ = fs::remove_dir_all(run.join(EARLIER));
        assert!(set_aside(&run).is_err() || !run.join(GRADES).exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_place_of_an_addition_is_removed_and_what_it_leads_to_stays() {
        let reports = tempfile::tempdir().expect("a folder");
        let (run, other) = (reports.path().join("a1"), reports.path().join("other"));
        fs::create_dir(&run).expect("a folder");
        fs::write(&other, "{}\n").expect("written");
        std::os::unix::fs::symlink(&other, run.join(GRADES)).expect("a link");
        assert_eq!(set_aside(&run).expect("looked at"), [GRADES]);
        assert!(run.join(GRADES).symlink_metadata().is_err() && other.exists() && !run.join(EARLIER).exists());
    }
}
