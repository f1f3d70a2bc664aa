//! Reads, appends to and merges the JSON-lines file. A point counts once, whichever file it comes from.

use super::{POINT_VERSION, Point, RUN_AGAIN};
use crate::platform::bounds::Bound;
use crate::platform::{files, secrets};
use crate::trace::{Seal, seal, sealed};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Reason why a history cannot be used; the file is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The file cannot be read or written.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        #[source]
        error: io::Error,
    },
    /// The file exceeds the size limit.
    #[error("{path}: larger than {}, the limit for one history; {}", Bound::HistorySize.shown(), Bound::HistorySize.advice(), path = path.display())]
    TooLarge { path: PathBuf },
    /// A line is not a valid point.
    #[error("{path}, line {line}: not a point of a history: {error}; repair or remove the line", path = path.display())]
    Line { path: PathBuf, line: usize, error: serde_json::Error },
    /// A point with figures that contradict each other.
    #[error("{path}, line {line}: no run gives such figures (more successes than units, or a median above p95); repair or remove the line", path = path.display())]
    Impossible { path: PathBuf, line: usize },
    /// A point was written by a newer build.
    #[error("{path}, line {line}: version {version} is newer than this build reads ({POINT_VERSION}); update ragcheck", path = path.display())]
    Newer { path: PathBuf, line: usize, version: u32 },
}

/// Returns the points of a file, each once, in order; empty when there is no file.
pub fn load(path: &Path) -> Result<Vec<Point>, HistoryError> {
    Ok(read(path)?.into_iter().map(|line| line.point).collect())
}

/// Warning about a line that was edited after it was written.
pub(crate) const EDITED: &str = "EDITED BY HAND";
/// Warning about a line that an older build wrote, or whose digest was removed.
pub(crate) const NO_DIGEST: &str = "without a digest: an edit would not show";

/// Returns the lines of a file (from 1) that may have been changed, with the reason.
pub fn doubtful(path: &Path) -> Result<Vec<(usize, &'static str)>, HistoryError> {
    let lines = read(path)?.into_iter().map(|line| (line.number, line.point.doubt));
    Ok(lines.filter(|(_, doubt)| !doubt.is_empty()).collect())
}

/// A line of a history.
struct Line {
    number: usize,
    point: Point,
    /// Its text in the file.
    text: String,
}

fn read(path: &Path) -> Result<Vec<Line>, HistoryError> {
    let text = match files::read_text_at_most(path, Bound::HistorySize.most()) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            return Err(HistoryError::TooLarge { path: path.to_owned() });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(HistoryError::File { path: path.to_owned(), error }),
    };
    let (mut lines, mut known) = (Vec::new(), BTreeSet::new());
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |error| HistoryError::Line { path: path.to_owned(), line: index + 1, error };
        let mut point: Point = serde_json::from_str(line).map_err(wrong)?;
        if point.version > POINT_VERSION {
            return Err(HistoryError::Newer { path: path.to_owned(), line: index + 1, version: point.version });
        }
        if !point.is_possible() {
            return Err(HistoryError::Impossible { path: path.to_owned(), line: index + 1 });
        }
        point.doubt = match sealed(line) {
            Seal::Whole => "",
            Seal::Edited => EDITED,
            Seal::None => NO_DIGEST,
        };
        let line = Line { number: index + 1, point, text: line.to_owned() };
        if known.insert(line.point.id.clone()) {
            lines.push(line);
        } else if line.point.labels.contains_key(RUN_AGAIN) {
            // The same draws, some of which were re-run since.
            lines.iter_mut().filter(|other| other.point.id == line.point.id).for_each(|other| {
                (other.point, other.text) = (line.point.clone(), line.text.clone());
            });
        }
    }
    Ok(lines)
}

/// Appends a point unless the file already has it; returns whether it was added. If trials of an existing point were
/// re-run, the point is written again with its labels and time: the last line of an id counts.
pub fn append(path: &Path, point: &Point) -> Result<bool, HistoryError> {
    let _turn = files::turn();
    let known = load(path)?.into_iter().find(|known| known.id == point.id);
    let again = known.map(|Point { at, mut labels, .. }| {
        let news = point.labels.get(RUN_AGAIN).is_some_and(|words| labels.get(RUN_AGAIN) != Some(words));
        labels.extend(point.labels.clone());
        news.then(|| Point { at, labels, ..point.clone() })
    });
    let point = match &again {
        Some(None) => return Ok(false),
        Some(Some(again)) => again,
        None => point,
    };
    let file = |error| HistoryError::File { path: path.to_owned(), error };
    // A truncated or edited file may end without a line break.
    let open_line = files::read(path).is_ok_and(|bytes| bytes.last().is_some_and(|last| *last != b'\n'));
    let mut line = if open_line { "\n".to_owned() } else { String::new() };
    line += &seal(&secrets::clean(&serde_json::to_string(point).map_err(|error| file(io::Error::other(error)))?)).0;
    line.push('\n');
    let mut out = files::append(path).map_err(file)?;
    out.write_all(line.as_bytes()).and_then(|()| out.sync_all()).map_err(file)?;
    Ok(true)
}

/// Merges the points of all files into `path`, each once, by time; returns its number of points, and how many are
/// new.
///
/// # Errors
/// If a file is missing or cannot be read or written; `path` is then unchanged.
pub(crate) fn merge(path: &Path, others: &[PathBuf]) -> Result<(usize, usize), HistoryError> {
    let _turn = files::turn();
    let mut lines = read(path)?;
    let before = lines.len();
    let mut known: BTreeMap<String, usize> =
        lines.iter().enumerate().map(|(place, line)| (line.point.id.clone(), place)).collect();
    for other in others {
        if !other.is_file() {
            let error = io::Error::new(io::ErrorKind::NotFound, "there is no such file");
            return Err(HistoryError::File { path: other.clone(), error });
        }
        for line in read(other)? {
            let was_run_again = |line: &Line| line.point.labels.contains_key(RUN_AGAIN);
            match known.entry(line.point.id.clone()) {
                Entry::Vacant(entry) => {
                    entry.insert(lines.len());
                    lines.push(line);
                }
                Entry::Occupied(place) if was_run_again(&line) && !was_run_again(&lines[*place.get()]) => {
                    lines[*place.get()] = line;
                }
                Entry::Occupied(_) => {}
            }
        }
    }
    lines.sort_by(|one, other| (&one.point.at, &one.point.id).cmp(&(&other.point.at, &other.point.id)));
    let file = |error| HistoryError::File { path: path.to_owned(), error };
    // Unchanged lines, so that edits by hand remain detectable.
    let text: String = lines.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect();
    files::replace(path, text).map_err(file)?;
    Ok((lines.len(), lines.len() - before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::trend::tests::point;
    use std::fs;

    #[test]
    fn a_point_counts_once_and_files_merge_by_time_in_any_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name);
        let (one, two, three) = (point(1, 0.9), point(2, 0.9), point(3, 0.9));
        assert!(append(&file("a"), &three).expect("added"));
        assert!(append(&file("a"), &one).expect("added"));
        assert!(!append(&file("a"), &one).expect("there already"));
        append(&file("b"), &two).expect("added");
        append(&file("b"), &one).expect("added");
        fs::copy(file("a"), file("c")).expect("a copy");
        assert_eq!(merge(&file("a"), &[file("b")]).expect("merged"), (3, 1));
        assert_eq!(merge(&file("b"), &[file("c")]).expect("merged"), (3, 1));
        assert_eq!(fs::read(file("a")).expect("a"), fs::read(file("b")).expect("b"));
        assert_eq!(load(&file("a")).expect("read"), [one, two.clone(), three]);
        // A point whose trials were run again says so, whichever file it is in.
        let mut again = two.clone();
        again.labels.insert(RUN_AGAIN.to_owned(), "2 trials, 1 PASS; first draws count".to_owned());
        append(&file("d"), &again).expect("added");
        append(&file("e"), &two).expect("added");
        assert_eq!(merge(&file("e"), &[file("d")]).expect("merged"), (1, 0));
        assert_eq!(merge(&file("d"), &[file("b")]).expect("merged"), (3, 2));
        assert!(load(&file("e")).expect("read") == [again.clone()] && load(&file("d")).expect("read")[1] == again);
    }

    #[test]
    fn a_file_that_cannot_be_read_stays_as_it_is_and_the_message_has_the_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history.jsonl");
        append(&path, &point(1, 0.9)).expect("added");
        let text = fs::read_to_string(&path).expect("text") + "<<<<<<< HEAD\n";
        fs::write(&path, &text).expect("written");
        let error = append(&path, &point(2, 0.9)).expect_err("broken").to_string();
        assert!(error.contains("line 2"), "{error}");
        assert!(merge(&path, &[]).is_err());
        assert_eq!(fs::read_to_string(&path).expect("text"), text);
        fs::write(&path, text.replace("\"version\":1", "\"version\":9").replace("<<<<<<< HEAD\n", ""))
            .expect("written");
        assert!(matches!(load(&path), Err(HistoryError::Newer { line: 1, version: 9, .. })));
    }

    #[test]
    fn a_time_without_an_answer_is_kept_and_lines_of_older_builds_read_as_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history.jsonl");
        let mut lost = point(1, 0.9);
        lost.version = POINT_VERSION;
        lost.times.as_mut().expect("timed").p95_us = None;
        append(&path, &lost).expect("added");
        assert_eq!(load(&path).expect("read"), [lost]);
        let old = r#"{"version":1,"id":"a","at":"2026-03-01T08:00:00Z","conditions":{"mode":"LIVE","models":[],"answered_by":[],"concurrency":1,"cases":"c"},"trials":1,"rates":[],"times":{"n":1,"p50_us":1,"p95_us":2}}"#;
        fs::write(&path, old).expect("written");
        let times = load(&path).expect("read")[0].times.expect("timed");
        assert_eq!((times.p50_us, times.p95_us), (Some(1), Some(2)));
        fs::write(&path, old.replace(r#""p50_us":1"#, r#""p50_us":null"#)).expect("written");
        assert!(matches!(load(&path), Err(HistoryError::Impossible { .. })), "no median is longer than the p95");
    }

    #[test]
    fn a_last_line_without_its_end_is_not_written_into() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history.jsonl");
        append(&path, &point(1, 0.9)).expect("added");
        let text = fs::read_to_string(&path).expect("text");
        fs::write(&path, text.trim_end()).expect("written");
        append(&path, &point(2, 0.9)).expect("added");
        assert_eq!(load(&path).expect("read").len(), 2);
    }
}
