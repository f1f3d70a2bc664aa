//! The runs of a reports folder: a list for a terminal, and `index.html` beside the run folders.
//!
//! All dates come from run folders, so the same folders give the same list. Names and models come from people and
//! providers, and are escaped like all text.

mod html;
mod terminal;

pub(crate) use html::html;
pub(crate) use terminal::terminal;

use super::figures::{counted, first_names, verdict_of};
use crate::gate::Verdict;
use crate::trace::text::quote;
use schemars::JsonSchema;
use serde::Serialize;

/// Maximum number of names listed.
const NAMED: usize = 3;

/// One run folder, as far as it can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct RunRow {
    /// Folder name below the reports folder.
    pub name: String,
    /// Time of writing (RFC 3339), from its `environment.json`; `None` if missing there.
    pub made_at: Option<String>,
    /// `replay`, `live`, `record` or `import`; empty if unknown.
    pub mode: String,
    /// Why the folder cannot be read as a run; the following fields are then empty.
    pub broken: Option<String>,
    /// Exit code of its verdicts.
    pub exit_code: u8,
    /// Reason of the exit code, in a sentence.
    pub conclusion: String,
    /// Selection of a partial run; empty for a whole run.
    pub part: String,
    /// Scenario names.
    pub scenarios: Vec<String>,
    /// Models, as named in requests.
    pub models: Vec<String>,
    /// Days of the replayed recordings, in order.
    pub recorded_on: Vec<String>,
    /// Required criteria and gates that failed: `SC-002`, `refunds/gate 1`.
    pub failed: Vec<String>,
    /// Existing pages of the folder, among `index.html`, `comparison.html` and `variants.html`.
    pub pages: Vec<String>,
    /// Identity of the run in the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<String>,
    /// Whether `latest` points to it.
    pub latest: bool,
}

impl RunRow {
    /// Verdict on the whole run: a broken folder is in ERROR.
    pub(crate) fn verdict(&self) -> Verdict {
        if self.broken.is_some() { Verdict::Error } else { verdict_of(self.exit_code) }
    }

    /// Time of writing: `2026-11-22 23:18 UTC`.
    fn made(&self) -> String {
        let day_and_time = |at: &str| Some(format!("{} {} UTC", at.get(..10)?, at.get(11..16)?));
        self.made_at.as_deref().and_then(day_and_time).map_or_else(|| "date unknown".to_owned(), |at| quote(&at, 24))
    }

    /// Short list of the scenarios.
    fn suite(&self) -> String {
        match self.scenarios.len() {
            0 => "no scenario".to_owned(),
            1..=NAMED => first_names(self.scenarios.iter(), NAMED),
            more => counted(more as u64, "scenario"),
        }
    }

    /// Short list of failures; empty if there are none.
    fn failures(&self) -> String {
        match &self.broken {
            Some(why) => format!("broken run folder: {}", quote(why, 160)),
            None if !self.failed.is_empty() => format!("failed: {}", first_names(self.failed.iter(), NAMED)),
            None if self.exit_code == 0 => String::new(),
            None => quote(&self.conclusion, 160),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn row(name: &str) -> RunRow {
        RunRow {
            name: name.into(),
            made_at: Some("2026-11-22T23:18:12.6Z".into()),
            mode: "replay".into(),
            broken: None,
            exit_code: 0,
            conclusion: "3 required gates passed".into(),
            part: String::new(),
            scenarios: vec!["refunds".into()],
            models: vec!["fernlight-sim".into()],
            recorded_on: vec!["2026-11-20".into()],
            failed: Vec::new(),
            pages: vec!["index.html".into()],
            point: None,
            latest: false,
        }
    }

    #[test]
    fn a_run_says_its_verdict_date_suite_and_what_failed() {
        let failed = ["SC-001", "SC-002", "a/gate 1", "b/gate 1"].map(str::to_owned).to_vec();
        let text = terminal(&[RunRow { exit_code: 1, failed, latest: true, ..row("0123456789ab") }], 100);
        for words in ["FAIL", "2026-11-22 23:18 UTC", "0123456789ab", "refunds", "fernlight-sim", "latest"] {
            assert!(text.contains(words), "{words} in\n{text}");
        }
        assert!(text.contains("failed: SC-001, SC-002, a/gate 1 and 1 more"), "{text}");
    }

    #[test]
    fn a_broken_folder_is_in_error_and_says_why_in_both() {
        let rows = [RunRow { broken: Some("run.json: <b>cut</b> off".into()), ..row("x") }];
        assert_eq!(rows[0].verdict(), Verdict::Error);
        assert!(terminal(&rows, 80).contains("broken run folder: run.json: <b>cut</b> off"));
        let page = String::from_utf8(html(&rows, false).expect("a page")).expect("UTF-8");
        assert!(page.contains("broken run folder") && !page.contains("<b>cut"), "{page}");
    }

    #[test]
    fn a_page_links_only_to_what_lies_there_and_a_name_is_no_markup() {
        let pages = vec!["index.html".to_owned(), "comparison.html".to_owned()];
        let hostile = RunRow { name: "\"><script>".into(), pages, ..row("x") };
        let rows = [hostile, RunRow { pages: Vec::new(), ..row("bare") }];
        let page = String::from_utf8(html(&rows, true).expect("a page")).expect("UTF-8");
        assert!(!page.contains("\"><script>") && page.contains("comparison.html"), "{page}");
        assert!(!page.contains("bare/index.html") && page.contains("history.html"), "{page}");
    }
}
