//! Finds the files of a project: its root, its scenarios, and which files hold criteria.

use super::check_criteria::MOST_PATTERNS;
use super::diagnostic::{Diagnostic, nearest};
use super::project::Project;
use crate::platform::bounds::Bound;
use crate::platform::{files, yaml};
use globset::{GlobBuilder, GlobMatcher};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

pub(super) const PROJECT_FILE: &str = "ragcheck.yaml";
/// Folders below that of a pattern in which scenarios are looked for that it does not match.
const LEVELS_BELOW: usize = 4;

/// The nearest parent folder with `ragcheck.yaml`; `start` if there is none.
pub(crate) fn find_root(start: &Path) -> PathBuf {
    start.ancestors().find(|folder| folder.join(PROJECT_FILE).is_file()).unwrap_or(start).to_path_buf()
}

/// A path as written in messages and plans: relative to the root where possible, with forward slashes.
pub(super) fn shown(root: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(root).unwrap_or(path);
    let parts: Vec<_> = relative.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/").replace("//", "/")
}

/// The same with `.` and `..` resolved lexically.
pub(super) fn from_root(root: &Path, path: &Path) -> String {
    shown(&files::absolute(root), &files::absolute(path))
}

/// Whether a YAML text is a criteria file: it has `criteria:` and no `scenario:` at the top level.
pub(super) fn is_criteria(text: &str) -> bool {
    has(text, "criteria") && !has(text, "scenario")
}

/// Whether a YAML text is a rubric: it has `rubric:` and no `scenario:` at the top level.
pub(super) fn is_rubric(text: &str) -> bool {
    has(text, "rubric") && !has(text, "scenario")
}

fn has(text: &str, key: &str) -> bool {
    let is_written = |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':'));
    let begins = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with(['#', '-']));
    match begins {
        // In flow style, as in JSON, and with quoted keys, lines say nothing.
        Some(line) if line.trim_start().starts_with(['{', '"', '\'']) => {
            yaml::read::<Map<String, Value>>(text).is_ok_and(|map| map.contains_key(key))
        }
        _ => text.lines().any(is_written),
    }
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// Compiles a glob: `*` never crosses a folder; `**` does.
fn glob(pattern: &str) -> Option<GlobMatcher> {
    GlobBuilder::new(pattern).literal_separator(true).build().ok().map(|glob| glob.compile_matcher())
}

/// The YAML files that `paths` name, or the project's own without any, sorted. A folder means the YAML files directly
/// in it; a path may be a pattern. The project file is never included.
pub(super) fn discover(root: &Path, project: &Project, paths: &[PathBuf]) -> Result<Vec<PathBuf>, Vec<Diagnostic>> {
    let (mut found, mut mistakes) = (BTreeSet::new(), Vec::new());
    let mut room = Bound::Entries.most();
    if paths.is_empty() {
        for pattern in project.scenarios.iter().take(MOST_PATTERNS) {
            found.extend(matching(root, pattern, &mut room));
        }
    }
    for path in paths {
        let absolute = root.join(path);
        if absolute.is_file() {
            found.insert(absolute);
        } else if absolute.is_dir() {
            found.extend(yaml_in(&absolute));
        } else {
            let hits = matching(root, &shown(root, &absolute), &mut room);
            if hits.is_empty() {
                mistakes.push(missing(root, &absolute));
            }
            found.extend(hits);
        }
    }
    if room == 0 {
        let message =
            format!("more than {} files and folders were looked through for scenarios", Bound::Entries.shown());
        let diagnostic = Diagnostic::error("too-large", PROJECT_FILE, message);
        let advice = Bound::Entries.advice();
        mistakes.push(diagnostic.with_help(format!("name the folders in `scenarios` without `**`; {advice}")));
    }
    found.retain(|path| path.file_name().is_none_or(|name| name != PROJECT_FILE));
    if mistakes.is_empty() { Ok(found.into_iter().collect()) } else { Err(mistakes) }
}

/// The scenarios in and below the folders of the project's patterns that none of these matches: no run of the project has them.
/// A folder below that has its own criteria is a separate suite. `found` are the files that the patterns match.
pub(super) fn unmatched(root: &Path, project: &Project, found: &[PathBuf]) -> Vec<String> {
    let mut room = Bound::Entries.most();
    let sound = project.scenarios.iter().take(MOST_PATTERNS).filter(|pattern| glob(pattern).is_some());
    let folders: BTreeSet<PathBuf> = sound.map(|pattern| root.join(fixed(pattern))).collect();
    let (found, cassettes) =
        (found.iter().map(PathBuf::as_path).collect::<BTreeSet<_>>(), root.join(&project.cassettes));
    let mut left = BTreeSet::new();
    for folder in &folders {
        // A pattern at the root, where everything else is too, stands for the root alone.
        let levels = if folder == root { 0 } else { LEVELS_BELOW };
        descend(folder, levels, &mut room, &mut |path| {
            let is_known = found.contains(path) || path.starts_with(&cassettes) || path.is_symlink();
            if is_yaml(path) && !is_known {
                left.insert(path.to_path_buf());
            }
        });
    }
    let read = |path| (path, files::read_text_within(path, Bound::ScenarioSize).unwrap_or_default());
    let texts: Vec<(&PathBuf, String)> = left.iter().map(read).collect();
    let suites: BTreeSet<&Path> =
        texts.iter().filter(|(_, text)| is_criteria(text)).filter_map(|(path, _)| path.parent()).collect();
    let is_of_project =
        |path: &Path| path.parent().is_some_and(|folder| folders.contains(folder) || !suites.contains(folder));
    let scenarios =
        texts.iter().filter(|(path, text)| has(text, "scenario") && has(text, "cases") && is_of_project(path));
    scenarios.map(|(path, _)| shown(root, path)).collect()
}

fn missing(root: &Path, path: &Path) -> Diagnostic {
    let file = shown(root, path);
    if path.exists() {
        return Diagnostic::error(
            "not-a-file",
            &file,
            "it is not a regular file: a pipe, a socket or a device is not read",
        )
        .with_help("name a YAML file or a folder of them".to_owned());
    }
    let mut diagnostic = Diagnostic::error("no-such-file", &file, "there is no such file or folder");
    let folder = path.parent().unwrap_or(root);
    let known: Vec<String> = yaml_in(folder).iter().map(|path| shown(root, path)).collect();
    if let Some(meant) = nearest(&file, known.iter().map(String::as_str)) {
        diagnostic = diagnostic.with_help(format!("did you mean {meant}?"));
    }
    diagnostic
}

fn yaml_in(folder: &Path) -> Vec<PathBuf> {
    let entries = files::entries(folder).into_iter().flatten().map(|entry| entry.path);
    let mut found: Vec<PathBuf> = entries.filter(|path| is_yaml(path) && path.is_file()).collect();
    found.sort();
    found
}

/// YAML files below `root` that match a pattern; reads only folders that the pattern can reach, within the remaining
/// `room`.
fn matching(root: &Path, pattern: &str, room: &mut u64) -> Vec<PathBuf> {
    let pattern = pattern.trim_start_matches("./");
    let Some(matcher) = glob(pattern.trim_end_matches('/')) else { return Vec::new() };
    if root.join(pattern).is_dir() {
        return yaml_in(&root.join(pattern));
    }
    let fixed = fixed(pattern);
    let levels = if pattern.contains("**") { 16 } else { pattern.matches('/').count() };
    let mut found = Vec::new();
    let start = root.join(&fixed);
    if start.is_file() {
        return vec![start];
    }
    descend(&start, levels, room, &mut |path| {
        if is_yaml(path) && matcher.is_match(shown(root, path)) {
            found.push(path.to_path_buf());
        }
    });
    found
}

/// The beginning of a pattern that is a path.
fn fixed(pattern: &str) -> PathBuf {
    let is_plain = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
    Path::new(pattern.trim_start_matches("./")).components().take_while(is_plain).collect()
}

fn descend(folder: &Path, levels: usize, room: &mut u64, visit: &mut dyn FnMut(&Path)) {
    for files::Entry { path, is_folder } in files::entries(folder).into_iter().flatten() {
        *room = room.saturating_sub(1);
        if *room == 0 {
            return;
        }
        let hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
        if !is_folder {
            visit(&path);
        } else if levels > 0 && !hidden {
            descend(&path, levels - 1, room, visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("scenarios/deep")).expect("folders");
        for file in ["ragcheck.yaml", "scenarios/b.yaml", "scenarios/a.yml", "scenarios/c.txt", "scenarios/deep/d.yaml"]
        {
            std::fs::write(folder.path().join(file), "x: 1\n").expect("a file");
        }
        folder
    }

    fn names(root: &Path, project: &Project, paths: &[&str]) -> Vec<String> {
        let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        let found = discover(root, project, &paths).expect("files");
        found.iter().map(|path| shown(root, path)).collect()
    }

    #[test]
    fn a_star_stays_in_its_folder_and_two_stars_do_not() {
        let folder = folder();
        let with = |pattern: &str| Project { scenarios: vec![pattern.into()], ..Project::default() };
        assert_eq!(names(folder.path(), &with("scenarios/*.yaml"), &[]), ["scenarios/b.yaml"]);
        assert_eq!(
            names(folder.path(), &with("scenarios/**/*.yaml"), &[]),
            ["scenarios/b.yaml", "scenarios/deep/d.yaml"]
        );
        assert_eq!(names(folder.path(), &with("scenarios/"), &[]), ["scenarios/a.yml", "scenarios/b.yaml"]);
    }

    #[test]
    fn a_scenario_that_no_pattern_matches_is_found_beside_and_below_those_that_it_does() {
        let folder = folder();
        let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text).expect("a file");
        for file in ["scenarios/b.yaml", "scenarios/a.yml", "scenarios/deep/d.yaml", "other.yaml"] {
            write(file, "scenario: x\ncases: []\n");
        }
        std::fs::create_dir_all(folder.path().join("scenarios/own")).expect("a folder");
        write("scenarios/own/d.yaml", "scenario: x\ncases: []\n");
        for file in ["scenarios/criteria.yml", "scenarios/own/criteria.yaml"] {
            write(file, "criteria: []\n");
        }
        let left = |pattern: &str| {
            let project = Project { scenarios: vec![pattern.into()], ..Project::default() };
            let found = discover(folder.path(), &project, &[]).expect("files");
            unmatched(folder.path(), &project, &found)
        };
        assert_eq!(left("scenarios/*.yaml"), ["scenarios/a.yml", "scenarios/deep/d.yaml"]);
        assert_eq!(left("scenarios/**/*.y*ml"), Vec::<String>::new());
        assert_eq!(left("scenarios/own/*.yaml"), Vec::<String>::new());
        assert_eq!(left("scenarios"), ["scenarios/deep/d.yaml"]);
        assert_eq!(left("*.yml"), ["other.yaml"], "at the root, folders hold anything");
    }

    #[test]
    fn a_folder_stands_for_its_own_files_and_a_missing_path_is_an_error() {
        let folder = folder();
        let project = Project::default();
        assert_eq!(names(folder.path(), &project, &["scenarios"]), ["scenarios/a.yml", "scenarios/b.yaml"]);
        assert_eq!(names(folder.path(), &project, &["scenarios/deep/*.yaml"]), ["scenarios/deep/d.yaml"]);
        let mistakes = discover(folder.path(), &project, &["scenarios/bb.yaml".into()]).expect_err("missing");
        assert_eq!(mistakes[0].help, ["did you mean scenarios/b.yaml?"]);
    }

    #[test]
    #[cfg(unix)]
    fn what_is_no_regular_file_is_called_so_and_not_missing() {
        let folder = folder();
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("s.yaml")).expect("a socket");
        let mistakes = discover(folder.path(), &Project::default(), &["s.yaml".into()]).expect_err("no file");
        assert_eq!(mistakes[0].code, "not-a-file");
        assert!(mistakes[0].message.contains("it is not a regular file"), "{mistakes:?}");
    }

    #[test]
    fn the_root_is_found_upwards() {
        let folder = folder();
        assert_eq!(find_root(&folder.path().join("scenarios/deep")), folder.path());
    }

    #[test]
    fn criteria_files_are_told_by_their_keys() {
        assert!(is_criteria("about: x\ncriteria:\n  - id: a\n"));
        assert!(!is_criteria("scenario: x\nabout: the criteria:\n"));
    }
}
