//! Search text of a trial for the page's table, besides its names and reasons: beginnings of its answers, and names of
//! the documents found.

use crate::metric::provenance::provenance;
use crate::platform::secrets;
use crate::trace::text::quote;
use crate::trace::{ToolResult, Trace};
use std::collections::BTreeSet;

/// Maximum characters of one answer.
const ANSWER: usize = 300;
/// Maximum characters of all answers of a trial.
const ANSWERS: usize = 600;
/// Maximum characters of the document names.
const DOCUMENTS: usize = 400;

/// Search text of a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Searchable {
    /// Answers and documents, in lower case.
    pub words: Box<str>,
    /// Whether a citation of an answer is lost, invented or renumbered.
    pub flawed: bool,
}

impl Searchable {
    /// Search text of a trace.
    pub fn of(trace: &Trace) -> Self {
        let (mut answers, mut documents) = (Vec::new(), Vec::new());
        let mut known = BTreeSet::new();
        let mut length = 0;
        let mut document = |name: &str, id: &str| {
            // Enough text after the cut is kept to recognise a secret there.
            if length <= 4 * DOCUMENTS && known.insert(id.to_owned()) {
                documents.push(format!("{name} {id}"));
                length += name.len() + id.len();
            }
        };
        for event in &trace.events {
            answers.extend(event.what.answer().map(|answer| quote(&answer.text, ANSWER)));
            match event.what.given() {
                Some(ToolResult::Search(search)) => {
                    search.hits.iter().for_each(|hit| document(&hit.title, &hit.id));
                }
                Some(ToolResult::External(found)) => {
                    found.citations.iter().for_each(|page| document(&page.title, &page.url));
                }
                _ => {}
            }
        }
        let (answers, documents) = (quote(&answers.join(" / "), ANSWERS), quote(&documents.join(" / "), DOCUMENTS));
        let flawed = !answers.is_empty() && provenance(trace).values().any(|cited| !cited.flaws.is_empty());
        // A key could not be recognised in lower case.
        let words = format!("{answers} {documents}");
        Self { words: secrets::declared().redact(&words).to_lowercase().into(), flawed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;
    use crate::trace::{TurnOutcome, What};

    #[test]
    fn a_trial_is_found_by_its_answers_and_its_documents_and_not_by_endless_text() {
        let run = sample::run(1);
        let mut trace = run.traces[0].clone();
        let found = Searchable::of(&trace);
        let answer = trace.events.iter_mut().find_map(|event| match &mut event.what {
            What::TurnEnded(ended) => match &mut ended.outcome {
                TurnOutcome::Answered(answer) => Some(answer),
                TurnOutcome::Failed { .. } => None,
            },
            _ => None,
        });
        let answer = answer.expect("the first case answers");
        let first: String = answer.text.chars().take(40).collect::<String>().to_lowercase();
        assert!(found.words.contains(&first), "{found:?}");
        answer.text = format!("As in [9]. {}", "x".repeat(100_000));
        let search = run.traces[0].searches().next().expect("a search");
        assert!(found.words.contains(&search.hits[0].id.to_lowercase()), "{found:?}");
        let found = Searchable::of(&trace);
        assert!(found.words.chars().count() <= ANSWERS + DOCUMENTS + 1);
        assert!(found.flawed, "[9] is no source");

        secrets::declare([("SEARCHED_KEY".to_owned(), "OnlyInTheSearch0458".to_owned())]);
        for event in &mut trace.events {
            if let What::TurnEnded(ended) = &mut event.what
                && let TurnOutcome::Answered(answer) = &mut ended.outcome
            {
                answer.text = "It is OnlyIn\u{200e}TheSearch0458.".to_owned();
            }
        }
        let words = Searchable::of(&trace).words;
        assert!(words.contains("[redacted:searched_key]") && !words.contains("0458"), "{words}");
    }
}
