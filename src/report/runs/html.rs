//! `index.html` of a reports folder: a page without scripts.

use super::RunRow;
use crate::gate::Verdict;
use crate::report::figures::{counted, first_names};
use crate::report::page;
use serde::Serialize;
use std::io;

const PAGE: page::PageTemplate = page::PageTemplate {
    file: "index.html",
    kind: "runs",
    template: include_str!("page.html"),
    style: include_str!("runs.css"),
    script: "",
};

#[derive(Serialize)]
struct RunsPage<'r> {
    outcome: &'static str,
    conclusion: String,
    history: bool,
    runs: Vec<Shown<'r>>,
}

#[derive(Serialize)]
struct Shown<'r> {
    of: &'r RunRow,
    kind: &'static str,
    verdict: &'static str,
    made: String,
    suite: String,
    scenarios: String,
    models: String,
    mode: String,
    failures: String,
    pages: Vec<(&'static str, String)>,
}

/// Renders the runs, newest first, with a link to the history if there is one.
///
/// # Errors
/// If the template cannot be rendered, which would be a bug.
pub(crate) fn html(runs: &[RunRow], history: bool) -> io::Result<Vec<u8>> {
    let conclusion = match runs.first() {
        None => "There is no run yet".to_owned(),
        Some(newest) => {
            let number = counted(runs.len() as u64, "run");
            format!("{number}, the newest {} on {}", newest.verdict().as_str(), newest.made())
        }
    };
    let outcome = runs.first().map_or("undecided", |newest| look(newest.verdict()));
    let page = RunsPage { outcome, conclusion, history, runs: runs.iter().map(shown).collect() };
    Ok(page::render(&PAGE, page)?.into_bytes())
}

fn shown(run: &RunRow) -> Shown<'_> {
    let recorded = match (run.recorded_on.first(), run.recorded_on.last()) {
        (Some(first), Some(last)) if first == last => format!(", recorded on {first}"),
        (Some(first), Some(last)) => format!(", recorded {first} to {last}"),
        _ => String::new(),
    };
    let page = |file: &str, words: &'static str| {
        let there = run.pages.iter().any(|page| page == file);
        there.then(|| (words, page::below(&run.name, file)))
    };
    let verdict = run.verdict();
    Shown {
        of: run,
        kind: look(verdict),
        verdict: verdict.as_str(),
        made: run.made(),
        suite: if run.broken.is_some() { String::new() } else { run.suite() },
        scenarios: run.scenarios.join(", "),
        models: first_names(run.models.iter(), super::NAMED),
        mode: format!("{}{recorded}", run.mode),
        failures: run.failures(),
        pages: [page("index.html", "report"), page("comparison.html", "comparison"), page("variants.html", "variants")]
            .into_iter()
            .flatten()
            .collect(),
    }
}

fn look(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "fail",
        Verdict::Inconclusive | Verdict::NotMeasured => "undecided",
        Verdict::Error => "error",
    }
}
