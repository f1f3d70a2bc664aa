//! The list of a set's files. Who can write to the bucket wrote it, so nothing in it is trusted before it was checked here.
//!
//! A build that knows only format 1 refuses a later one, and names the remedy.

use super::Kind;
use crate::platform::bounds::Bound;
use crate::trace::text::quote;
use crate::trace::{PLAN, TRACES};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The format that this build reads and writes.
const FORMAT: u32 = 1;
/// Maximum length of a name, which a path has between its slashes.
const LONGEST_NAME: usize = 200;

/// The files of a run folder, or of the recordings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    format: u32,
    /// By path, with `/` between folders.
    pub(super) files: BTreeMap<String, Item>,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Item {
    pub(super) bytes: u64,
    /// SHA-256 in hexadecimal digits.
    pub(super) sha256: String,
}

/// Why a manifest is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ManifestError {
    /// It is cut off, or was written by something else.
    #[error("it is no manifest: {0}")]
    Syntax(String),
    /// A later build wrote it.
    #[error("it has format {0}, and this build reads format {FORMAT}: use the version of ragcheck that pushed it")]
    Format(u32),
    /// A path could lead out of the folder, or cannot be a file on every system.
    #[error("it names a file {}, which is no path below a folder on every system", quote(.0, 100))]
    Path(String),
    /// Two paths are one on some systems, or one is the folder of the other.
    #[error("it names {} twice, or as a file and as a folder", quote(.0, 100))]
    Twice(String),
    /// A digest is none.
    #[error("the SHA-256 of {} is none", quote(.0, 100))]
    Digest(String),
    /// A run folder has these two.
    #[error("it is no run: {PLAN} and {TRACES} are not both in it")]
    NoRun,
    /// The files are too large or too many.
    #[error("its files exceed the limit {} ({}); {}", .0.name(), .0.shown(), .0.advice())]
    Large(Bound),
}

impl Manifest {
    pub(super) fn new(files: BTreeMap<String, Item>) -> Self {
        Self { format: FORMAT, files }
    }

    /// Reads and checks the manifest of a set.
    pub(super) fn read(text: &[u8], kind: Kind) -> Result<Self, ManifestError> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let syntax = |why: serde_json::Error| ManifestError::Syntax(why.to_string());
        let Head { format } = serde_json::from_slice(text).map_err(syntax)?;
        if format != FORMAT {
            return Err(ManifestError::Format(format));
        }
        let read: Self = serde_json::from_slice(text).map_err(syntax)?;
        read.check(kind)?;
        Ok(read)
    }

    /// Checks paths, digests and sizes; also before a push, which stores nothing that a pull would refuse.
    pub(super) fn check(&self, kind: Kind) -> Result<(), ManifestError> {
        if kind == Kind::Run && [PLAN, TRACES].iter().any(|name| !self.files.contains_key(*name)) {
            return Err(ManifestError::NoRun);
        }
        if self.files.len() as u64 > Bound::Entries.most() {
            return Err(ManifestError::Large(Bound::Entries));
        }
        let mut bytes = 0_u64;
        let (mut paths, mut folders) = (BTreeSet::new(), BTreeSet::new());
        for (path, item) in &self.files {
            let depth = path.split('/').count();
            if !path.split('/').all(is_name) || depth > 8 || kind == Kind::Run && depth > 1 {
                return Err(ManifestError::Path(path.clone()));
            }
            let plain = path.to_lowercase();
            folders.extend(plain.match_indices('/').map(|(end, _)| plain[..end].to_owned()));
            if !paths.insert(plain) {
                return Err(ManifestError::Twice(path.clone()));
            }
            let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            if item.sha256.len() != 64 || !item.sha256.bytes().all(hex) {
                return Err(ManifestError::Digest(path.clone()));
            }
            bytes = bytes.saturating_add(item.bytes);
        }
        if let Some(both) = paths.intersection(&folders).next() {
            return Err(ManifestError::Twice(both.clone()));
        }
        if bytes > Bound::PullSize.most() { Err(ManifestError::Large(Bound::PullSize)) } else { Ok(()) }
    }

    /// Total size of the files.
    pub(super) fn bytes(&self) -> u64 {
        self.files.values().map(|item| item.bytes).sum()
    }

    /// Text as it is stored: equal sets have equal texts.
    pub(super) fn text(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec_pretty(self)
    }

    /// Paths that both have, with different contents.
    pub(super) fn differing(&self, other: &Self) -> Vec<String> {
        let differs = |(path, item): &(&String, &Item)| other.files.get(*path).is_some_and(|there| there != *item);
        self.files.iter().filter(differs).map(|(path, _)| path.clone()).collect()
    }

    /// Whether it has every file of another, with the same content.
    pub(super) fn holds(&self, other: &Self) -> bool {
        other.files.iter().all(|(path, item)| self.files.get(path) == Some(item))
    }

    /// Whether both are of one run: the plan and the traces decide, everything else follows from them or was added.
    pub(super) fn is_same_run(&self, other: &Self) -> bool {
        [PLAN, TRACES].iter().all(|name| self.files.get(*name) == other.files.get(*name))
    }
}

/// What happens to a set in a place where one of its name may be already.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// All of its files are there.
    Unchanged,
    /// The same run is there, and stays as it is; these files differ or are not there.
    Keep(Vec<String>),
    /// These are the files afterwards.
    Write(Manifest),
    /// Another set is there; these files differ.
    Refuse(Vec<String>),
}

/// Decides what happens to the set `new` where `there` is: nothing that is there is lost, unless `replace` says so.
pub(super) fn decide(kind: Kind, there: Option<&Manifest>, new: &Manifest, replace: bool) -> Decision {
    let Some(there) = there else { return Decision::Write(new.clone()) };
    if there.holds(new) {
        return Decision::Unchanged;
    }
    let differing = new.differing(there);
    match kind {
        Kind::Run if !new.is_same_run(there) => Decision::Refuse(differing),
        Kind::Run if replace => Decision::Write(new.clone()),
        Kind::Run => {
            let missing = new.files.keys().filter(|path| !there.files.contains_key(*path)).cloned();
            Decision::Keep(differing.into_iter().chain(missing).collect())
        }
        Kind::Recordings if differing.is_empty() || replace => {
            let all = there.files.iter().chain(&new.files);
            Decision::Write(Manifest::new(all.map(|(path, item)| (path.clone(), item.clone())).collect()))
        }
        Kind::Recordings => Decision::Refuse(differing),
    }
}

/// Whether a name between slashes is that of a visible file or folder on every system.
pub(super) fn is_name(name: &str) -> bool {
    let devices = ["aux", "con", "nul", "prn"];
    let stem = name.split('.').next().unwrap_or_default().to_lowercase();
    let barred = |letter: char| letter.is_control() || r#"\/:*?"<>|"#.contains(letter);
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && !name.starts_with('.')
        && !name.ends_with(['.', ' '])
        && !name.contains(barred)
        && !devices.contains(&stem.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn item(bytes: u64) -> serde_json::Value {
        json!({"bytes": bytes, "sha256": "a".repeat(64)})
    }

    /// A manifest of these files, beside those that a run has.
    fn manifest(files: &[&str]) -> String {
        let all = files.iter().chain(&[PLAN, TRACES]);
        let files: serde_json::Map<_, _> = all.map(|path| ((*path).to_owned(), item(1))).collect();
        json!({"format": 1, "files": files}).to_string()
    }

    fn read(text: &str, kind: Kind) -> Result<Manifest, ManifestError> {
        Manifest::read(text.as_bytes(), kind)
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let sound = read(&manifest(&["blobs/1.txt", "a b.yaml"]), Kind::Recordings).expect("sound");
        assert_eq!(Manifest::read(&sound.text().expect("JSON"), Kind::Recordings), Ok(sound.clone()));
        assert_eq!((sound.bytes(), sound.files.len()), (4, 4));
    }

    #[test]
    fn a_path_that_leads_out_or_is_hidden_or_no_file_everywhere_is_refused() {
        for path in [
            "../x", "a/../x", "..", ".", "/etc/passwd", "//x", "a//b", "a/", "", "C:\\x", "C:x", "a\\b",
            "a/.git/config", ".ssh", "a\nb", "a\0b", "nul", "NUL.txt", "a.", "a ", "a?", "1/2/3/4/5/6/7/8/9",
        ] {
            let refused = read(&manifest(&[path]), Kind::Recordings);
            assert_eq!(refused, Err(ManifestError::Path(path.to_owned())), "{path:?}");
        }
        let long = "a".repeat(201);
        assert_eq!(read(&manifest(&[&long]), Kind::Run), Err(ManifestError::Path(long)));
        assert_eq!(read(&manifest(&["a/b"]), Kind::Run), Err(ManifestError::Path("a/b".into())), "runs are flat");
    }

    #[test]
    fn paths_that_are_one_on_some_systems_are_refused() {
        for files in [&["a/B.txt", "a/b.txt"][..], &["a", "A/b"], &["a/b", "a/b/c"]] {
            assert!(matches!(read(&manifest(files), Kind::Recordings), Err(ManifestError::Twice(_))), "{files:?}");
        }
    }

    #[test]
    fn what_is_cut_off_of_another_format_or_no_run_is_refused_with_the_reason() {
        let whole = manifest(&[]);
        for end in 0..whole.len() {
            assert!(matches!(read(&whole[..end], Kind::Run), Err(ManifestError::Syntax(_))), "cut at {end}");
        }
        assert!(read(&whole, Kind::Run).is_ok());
        let later = json!({"format": 2, "parts": []}).to_string();
        assert_eq!(read(&later, Kind::Run), Err(ManifestError::Format(2)));
        let more = json!({"format": 1, "files": {}, "links": {}}).to_string();
        assert!(matches!(read(&more, Kind::Recordings), Err(ManifestError::Syntax(_))));
        let traces = json!({"format": 1, "files": {TRACES: item(1)}}).to_string();
        assert_eq!(read(&traces, Kind::Run), Err(ManifestError::NoRun));
    }

    #[test]
    fn nothing_that_is_there_is_lost_unless_it_is_to_be_replaced() {
        let set = |files: &[(&str, u64)]| {
            let file =
                |(path, bytes): &(&str, u64)| ((*path).to_owned(), Item { bytes: *bytes, sha256: "a".repeat(64) });
            Manifest::new(files.iter().map(file).collect())
        };
        let (old, more, other) = (set(&[("a", 1), ("b", 1)]), set(&[("a", 1), ("c", 1)]), set(&[("a", 2)]));
        let decided = |new: &Manifest, replace: bool| decide(Kind::Recordings, Some(&old), new, replace);
        assert_eq!(decide(Kind::Recordings, None, &old, false), Decision::Write(old.clone()));
        assert_eq!(decided(&set(&[("b", 1)]), false), Decision::Unchanged);
        assert_eq!(decided(&more, false), Decision::Write(set(&[("a", 1), ("b", 1), ("c", 1)])));
        assert_eq!(decided(&other, false), Decision::Refuse(vec!["a".into()]));
        assert_eq!(decided(&other, true), Decision::Write(set(&[("a", 2), ("b", 1)])));
        let run = |traces, page| set(&[(PLAN, 1), (TRACES, traces), ("index.html", page)]);
        let decided = |new: &Manifest, replace: bool| decide(Kind::Run, Some(&run(1, 1)), new, replace);
        assert_eq!(decided(&run(1, 1), false), Decision::Unchanged);
        assert_eq!(decided(&run(1, 2), false), Decision::Keep(vec!["index.html".into()]));
        assert_eq!(decided(&run(1, 2), true), Decision::Write(run(1, 2)));
        for replace in [false, true] {
            assert_eq!(decided(&run(2, 1), replace), Decision::Refuse(vec![TRACES.into()]));
        }
    }

    #[test]
    fn digests_and_sizes_are_checked() {
        for digest in ["", "../../x", &"A".repeat(64), &"a".repeat(63)] {
            let text = json!({"format": 1, "files": {"a": {"bytes": 1, "sha256": digest}}}).to_string();
            assert_eq!(read(&text, Kind::Recordings), Err(ManifestError::Digest("a".into())), "{digest}");
        }
        for sizes in [[u64::MAX, 1], [1 << 40, 0]] {
            let text = json!({"format": 1, "files": {"a": item(sizes[0]), "b": item(sizes[1])}}).to_string();
            assert_eq!(read(&text, Kind::Recordings), Err(ManifestError::Large(Bound::PullSize)));
        }
        let text = json!({"format": 1, "files": {"a": {"bytes": -1, "sha256": "a".repeat(64)}}}).to_string();
        assert!(matches!(read(&text, Kind::Recordings), Err(ManifestError::Syntax(_))));
    }
}
