//! The page of `ragcheck review`: one conversation, without variant, verdict or grades, and two answers to give.
//!
//! It is served, and no file. Its only script maps keys to the buttons and links that are on the page.

use super::page;
use crate::trace::{Trace, TurnOutcome, What};
use serde::Serialize;
use std::io;

const PAGE: page::PageTemplate = page::PageTemplate {
    file: "the review page",
    kind: "review",
    template: include_str!("page.html"),
    style: include_str!("review.css"),
    script: include_str!("keys.js"),
};

#[derive(Debug, Serialize)]
pub(crate) struct ReviewPage<'r> {
    /// Number of the conversation, from 1; 0 for the page that says that all are rated.
    pub number: usize,
    /// Conversations of the review.
    pub of: usize,
    /// Those of them with a rating.
    pub rated: usize,
    /// The rating of this one.
    pub satisfied: Option<bool>,
    /// What was said.
    pub conversations: &'r [Vec<ReviewTurn>],
    /// The ratings file, as shown.
    pub file: &'r str,
    /// What to do once all are rated.
    pub then: &'r str,
}

/// One turn, as a rater sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ReviewTurn {
    question: String,
    /// The answer, or what the user was told instead.
    answer: String,
    failed: bool,
    sources: Vec<String>,
}

/// What was said in each conversation of a trial.
pub(crate) fn conversations(trace: &Trace) -> Vec<Vec<ReviewTurn>> {
    let mut found: Vec<Vec<ReviewTurn>> = Vec::new();
    let mut at = None;
    let mut question = String::new();
    for event in &trace.events {
        let (answer, failed, sources) = match &event.what {
            What::TurnStarted { query } => {
                question.clone_from(query);
                continue;
            }
            What::TurnEnded(end) => match &end.outcome {
                TurnOutcome::Answered(answer) => (&answer.text, false, &answer.sources[..]),
                TurnOutcome::Failed { message, .. } => (message, true, &[][..]),
            },
            _ => continue,
        };
        if at.replace(event.conversation) != Some(event.conversation) {
            found.push(Vec::new());
        }
        let named = |(place, source): (usize, &crate::trace::SourceRef)| {
            let number = source.number.map_or(place + 1, |number| number as usize);
            let title = if source.title.is_empty() { "" } else { " " };
            format!("[{number}] {}{title}{}", source.id, source.title)
        };
        let sources = sources.iter().enumerate().map(named).collect();
        let turn = ReviewTurn { question: std::mem::take(&mut question), answer: answer.clone(), failed, sources };
        if let Some(last) = found.last_mut() {
            last.push(turn);
        }
    }
    found
}

/// Renders a page.
///
/// # Errors
/// If the template cannot be rendered, which would be a bug.
pub(crate) fn html(page: &ReviewPage<'_>) -> io::Result<String> {
    page::render(&PAGE, page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::sample::{plan, story};

    #[test]
    fn a_page_shows_what_was_said_and_neither_case_nor_variant_and_hostile_text_is_no_markup() {
        let plan = plan("[{case: secret-name, turns: [{ask: q}, {ask: r}]}]", "[]", 1);
        let trace =
            story(&plan, 0).turn("<script>alert(1)</script>").answer("so \u{202e}[1]", &[("internal", "doc#1")]);
        let trace = trace.turn("and?").fail("timeout").done();
        let conversations = conversations(&trace);
        assert_eq!(conversations.iter().map(Vec::len).collect::<Vec<_>>(), [2]);
        let page = |number| {
            let (file, then) = ("ratings.csv", "ragcheck run");
            html(&ReviewPage { number, of: 3, rated: 1, satisfied: None, conversations: &conversations, file, then })
        };
        let shown = page(2).expect("a page");
        assert!(shown.contains("&lt;script&gt;alert(1)") && !shown.contains("<script>alert"), "{shown}");
        assert!(shown.contains("[1] doc#1") && shown.contains("Conversation 2 of 3") && !shown.contains('\u{202e}'));
        assert!(!shown.contains("secret-name") && !shown.contains("tool-rag"), "{shown}");
        assert!(page(0).expect("a page").contains("ragcheck run"));
    }
}
