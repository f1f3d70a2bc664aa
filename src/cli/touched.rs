//! Finds changed project files, and which replays read them.
//!
//! Compares modification time and length a few times a second: this works in containers and on network disks, which
//! send no change events, and needs no dependency. Run folders and hidden folders are ignored.

use crate::platform::files;
use crate::scenario::document::PromptText;
use crate::scenario::{Loaded, LoadedScenario};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Maximum number of files per scan.
const MOST: usize = 100_000;
/// Folders of build output, which no replay reads.
const BUILT: [&str; 2] = ["target", "node_modules"];

/// Files of a project at one moment, by path relative to its root with forward slashes; values are modification time
/// and length.
pub(super) type Files = BTreeMap<String, (Option<SystemTime>, u64)>;

/// What changed files require to run again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Touched {
    /// All selected trials.
    Everything,
    /// Cases that match these patterns.
    Cases(BTreeSet<String>),
    /// Nothing: no replay reads these files.
    Nothing,
}

/// Scans the files below `root`, except those below `reports`.
pub(super) fn look(root: &Path, reports: &Path) -> Files {
    let (mut seen, mut open) = (Files::new(), vec![root.to_owned()]);
    while let Some(folder) = open.pop() {
        // A folder removed during the scan has no files.
        for entry in files::entries(&folder).unwrap_or_default() {
            let name = entry.path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('.') || entry.path == reports || seen.len() >= MOST {
                continue;
            }
            if entry.is_folder {
                if !BUILT.contains(&name.as_ref()) {
                    open.push(entry.path);
                }
            } else if let Ok(found) = files::metadata(&entry.path) {
                let changed = found.modified().ok().map(cap_std::time::SystemTime::into_std);
                seen.insert(inside(root, &entry.path), (changed, found.len()));
            }
        }
    }
    seen
}

/// Files that are new, deleted or changed.
pub(super) fn changed(before: &Files, now: &Files) -> BTreeSet<String> {
    let other = |(name, _): &(&String, &(Option<SystemTime>, u64))| before.get(*name) != now.get(*name);
    before.iter().chain(now).filter(other).map(|(name, _)| name.clone()).collect()
}

/// The replays of the project that read these files. `plain` says that no pattern was given; with a pattern, the whole
/// selection runs again.
pub(super) fn touched(loaded: &Loaded, changed: &BTreeSet<String>, plain: bool) -> Touched {
    let mut cases = BTreeSet::new();
    for file in changed {
        match of_file(loaded, file) {
            Touched::Everything => return Touched::Everything,
            Touched::Cases(more) => cases.extend(more),
            Touched::Nothing => {}
        }
    }
    match cases.is_empty() {
        true => Touched::Nothing,
        false if plain => Touched::Cases(cases),
        false => Touched::Everything,
    }
}

fn of_file(loaded: &Loaded, file: &str) -> Touched {
    let project = &loaded.project;
    let whole = |scenario: &LoadedScenario| format!("{}/*", scenario.scenario.scenario);
    if let Some(scenario) = loaded.scenarios.iter().find(|scenario| scenario.file == file) {
        return Touched::Cases([whole(scenario)].into());
    }
    let below = |folder: &str| file.strip_prefix(folder.trim_end_matches('/'))?.strip_prefix('/');
    if let Some(rest) = below(&project.cassettes) {
        let case: Vec<&str> = rest.split('/').take(2).collect();
        // Shared texts belong to all recordings of a scenario.
        let known = loaded.scenarios.iter().any(|one| Some(&one.scenario.scenario.as_str()) == case.first());
        return if known && case.len() == 2 { Touched::Cases([case.join("/")].into()) } else { Touched::Everything };
    }
    let in_knowledge = below(&project.knowledge);
    let reads =
        |one: &&LoadedScenario| match in_knowledge {
            Some(rest) => one.scenario.knowledge.names().values().any(|base| {
                rest == base || rest.starts_with(&format!("{base}/")) || rest.starts_with(&format!("{base}."))
            }),
            None => one.tables.contains(file) || prompts(one).contains(file),
        };
    let readers: BTreeSet<String> = loaded.scenarios.iter().filter(reads).map(whole).collect();
    let named = [project.ratings.as_ref(), project.agreement.as_ref(), project.price_file.as_ref()];
    if !readers.is_empty() {
        Touched::Cases(readers)
    } else if loaded.criteria_file == file
        || loaded.project_file.as_deref() == Some(file)
        || named.into_iter().flatten().any(|name| name == file)
        // A new scenario, or one whose mistakes are fixed.
        || loaded.scenarios.iter().any(|one| folder(&one.file) == folder(file)) && Path::new(file).extension().is_some_and(|end| end == "yaml")
    {
        Touched::Everything
    } else {
        Touched::Nothing
    }
}

/// Prompt files of a scenario, relative to the project's root.
fn prompts(scenario: &LoadedScenario) -> BTreeSet<String> {
    let written = &scenario.scenario;
    let all = written.prompts.values().chain(written.variants.values().flat_map(|variant| variant.prompts.values()));
    let here = PathBuf::from(folder(&scenario.file));
    let files = all.filter_map(|prompt| match prompt {
        PromptText::File(file) => Some(here.join(file)),
        PromptText::Text(_) => None,
    });
    files.map(|file| inside(&files::absolute(Path::new("/")), &files::absolute(&Path::new("/").join(file)))).collect()
}

fn folder(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// A path relative to `root`, with forward slashes.
fn inside(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The project that `ragcheck init` creates.
    fn starter() -> Loaded {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/starter/project");
        crate::scenario::load(&root, &[], None, &crate::catalogues()).expect("a sound project")
    }

    #[test]
    fn each_kind_of_file_touches_what_reads_it() {
        let mut loaded = starter();
        let of = |file: &str| touched(&loaded, &[file.to_owned()].into(), true);
        let cases = |pattern: &str| Touched::Cases([pattern.to_owned()].into());
        assert_eq!(of("scenarios/questions.yaml"), cases("questions/*"));
        assert_eq!(of("scenarios/prompts/strict.md"), cases("questions/*"));
        assert_eq!(of("knowledge/bikes/hire.md"), cases("questions/*"));
        assert_eq!(of("recordings/questions/deposit/tool-rag.strict.1.yaml"), cases("questions/deposit"));
        assert_eq!(of("recordings/blobs/a.txt"), Touched::Everything);
        for all in ["scenarios/criteria.yaml", "ragcheck.yaml", "scenarios/new.yaml"] {
            assert_eq!(of(all), Touched::Everything, "{all}");
        }
        for none in ["README.md", "simulator/behaviour.yaml", "knowledge/other/a.md"] {
            assert_eq!(of(none), Touched::Nothing, "{none}");
        }
        loaded.scenarios[0].tables = ["scenarios/rows.csv".to_owned()].into();
        let touched_table = touched(&loaded, &["scenarios/rows.csv".to_owned()].into(), true);
        assert_eq!(touched_table, cases("questions/*"));
        // A selection by pattern runs again as a whole.
        let selected = touched(&loaded, &["scenarios/questions.yaml".to_owned()].into(), false);
        assert_eq!(selected, Touched::Everything);
    }

    #[test]
    fn new_changed_and_removed_files_are_seen_and_run_folders_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("reports/a")).expect("a folder");
        fs::create_dir_all(at(".git")).expect("a folder");
        fs::write(at("gone.yaml"), "1").expect("written");
        fs::write(at("other.yaml"), "1").expect("written");
        let before = look(folder.path(), &at("reports"));
        fs::remove_file(at("gone.yaml")).expect("removed");
        fs::write(at("other.yaml"), "12").expect("written");
        fs::write(at("new.yaml"), "1").expect("written");
        fs::write(at("reports/a/run.json"), "1").expect("written");
        fs::write(at(".git/index"), "1").expect("written");
        let now = look(folder.path(), &at("reports"));
        let seen: Vec<String> = changed(&before, &now).into_iter().collect();
        assert_eq!(seen, ["gone.yaml", "new.yaml", "other.yaml"]);
    }
}
