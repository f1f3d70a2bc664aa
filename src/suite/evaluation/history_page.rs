//! `history.html` in a folder of reports. It is written with every list of runs, even without a point, so that reports can
//! link to it whatever else the folder holds.

use crate::history::{self, HISTORY, Series};
use crate::platform::{files, secrets};
use crate::report::history::Links;
use crate::report::runs::RunRow;
use crate::{report, trace};
use std::io;
use std::path::Path;

/// File name of the page.
pub(crate) const HISTORY_HTML: &str = "history.html";
/// Marker of a page written here.
const OWN: &str = "<p class=\"brand\">ragcheck history</p>";

/// Writes the page of the history at `root` beside the list of `runs`; a page of somebody's own is left unchanged, and so
/// is an earlier page if the history cannot be read. Returns whether the page is one of a history.
pub(super) fn write_beside(reports: &Path, root: &Path, runs: &[RunRow], listed: bool) -> io::Result<bool> {
    let page = reports.join(HISTORY_HTML);
    let present = page.exists();
    if present && !is_own(&page) {
        return Ok(false);
    }
    let mut links = links(runs, listed);
    let series = match history::load(&root.join(HISTORY)) {
        Ok(points) => {
            let (series, left_out) = history::series(&points);
            links.note = left_out;
            series
        }
        Err(_) if present => return Ok(true),
        Err(why) => {
            links.note = why.to_string();
            Vec::new()
        }
    };
    write_history_page(&page, &series, &links)?;
    Ok(true)
}

/// Whether there is a page that was written here.
pub(super) fn is_own(page: &Path) -> bool {
    files::read_to_string(page).is_ok_and(|text| text.contains(OWN))
}

/// Writes a page of `series`.
pub(crate) fn write_history_page(page: &Path, series: &[Series], links: &Links) -> io::Result<()> {
    files::replace(page, secrets::clean_text_bytes(&report::history::html(series, links)?))
}

/// Links for the page beside `runs`, which a page lists if they are `listed`.
pub(super) fn links(runs: &[RunRow], listed: bool) -> Links {
    let mut links = Links { runs: listed, ..Links::default() };
    for run in runs.iter().filter(|run| run.pages.iter().any(|page| page == trace::INDEX_HTML)) {
        // Newest first: a recording that was replayed again has its newest report.
        run.point.clone().map(|point| links.reports.entry(point).or_insert_with(|| run.name.clone()));
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn there_is_a_page_without_a_point_and_with_a_history_that_cannot_be_read_and_nobodys_own_is_overwritten() {
        let reports = tempfile::tempdir().expect("a folder");
        let (reports, page) = (reports.path(), reports.path().join(HISTORY_HTML));
        let written = || {
            write_beside(reports, reports, &[], true).expect("a page");
            fs::read_to_string(&page).expect("the page")
        };
        let empty = written();
        assert!(empty.contains("There is no point yet") && empty.contains("href=\"./index.html\""), "{empty}");
        // What cannot be read leaves an earlier page as it is, and is said where there is none.
        fs::write(reports.join(HISTORY), "not a point\n").expect("written");
        assert_eq!(written(), empty);
        fs::remove_file(&page).expect("removed");
        let unread = written();
        assert!(unread.contains("The history cannot be read") && unread.contains("history.jsonl"), "{unread}");
        fs::write(&page, "<h1>my history</h1>").expect("written");
        assert_eq!(written(), "<h1>my history</h1>");
    }
}
