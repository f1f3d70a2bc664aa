//! The runs of a folder of reports: a list on a terminal, and `index.html` beside the run folders.
//!
//! Every date is one that a run folder holds: the same folders give the same list. Names and models come from people and
//! providers, and are made harmless like everything else.

mod html;
mod terminal;

pub(crate) use html::html;
pub(crate) use terminal::terminal;

use super::figures::{counted, verdict_of};
use crate::gate::Verdict;
use crate::trace::text::quote;
use serde::Serialize;

/// Names that stand there one by one.
const NAMED: usize = 3;

/// One run folder, as far as it can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RunRow {
    /// The folder's name below the reports.
    pub name: String,
    /// When it was written (RFC 3339), by its `environment.json`; `None` where that does not say.
    pub made_at: Option<String>,
    /// `replay`, `live`, `record` or `import`; empty where it is not known.
    pub mode: String,
    /// Why the folder cannot be read as a run; the fields below are empty then.
    pub broken: Option<String>,
    /// Exit code of its verdicts.
    pub exit_code: u8,
    /// Why that exit code, in a sentence.
    pub conclusion: String,
    /// Of what it is a part; empty for a whole run.
    pub part: String,
    /// The scenarios, by name.
    pub scenarios: Vec<String>,
    /// The models, by the names that requests gave.
    pub models: Vec<String>,
    /// Days of the recordings that it replays, in order.
    pub recorded_on: Vec<String>,
    /// Required criteria and gates that failed: `SC-002`, `refunds/gate 1`.
    pub failed: Vec<String>,
    /// Pages in the folder: of `index.html`, `comparison.html` and `variants.html`, those that are there.
    pub pages: Vec<String>,
    /// The identity of what was run, as the history has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<String>,
    /// Whether `latest` points to it.
    pub latest: bool,
}

impl RunRow {
    /// The verdict on the whole run: a broken folder is in ERROR.
    pub(crate) fn verdict(&self) -> Verdict {
        if self.broken.is_some() { Verdict::Error } else { verdict_of(self.exit_code) }
    }

    /// `2026-11-22 23:18 UTC`.
    fn made(&self) -> String {
        let day_and_time = |at: &str| Some(format!("{} {} UTC", at.get(..10)?, at.get(11..16)?));
        self.made_at.as_deref().and_then(day_and_time).map_or_else(|| "date unknown".to_owned(), |at| quote(&at, 24))
    }

    /// The scenarios in few words.
    fn suite(&self) -> String {
        match self.scenarios.len() {
            0 => "no scenario".to_owned(),
            1..=NAMED => named(&self.scenarios),
            more => counted(more as u64, "scenario"),
        }
    }

    /// What did not hold, in few words; empty where everything did.
    fn failures(&self) -> String {
        match &self.broken {
            Some(why) => format!("broken run folder: {}", quote(why, 160)),
            None if !self.failed.is_empty() => format!("failed: {}", named(&self.failed)),
            None if self.exit_code == 0 => String::new(),
            None => quote(&self.conclusion, 160),
        }
    }
}

/// The first of some names, and how many more there are.
fn named(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(NAMED).map(|name| quote(name, 40)).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
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
