//! What the answer and the calls of the first trial show that an expectation can name.

use super::generated::dates;
use super::project::{Findings, Shown};
use crate::metric::contains;
use crate::trace::refusal::says_that_it_cannot_answer;
use crate::trace::{ToolCalled, ToolOutcome, Trace, TurnEnded, TurnOutcome, What};

/// Facts of an answer that its expectation names.
const FACTS: usize = 2;
/// Characters of an answer that its expectation names if it holds no facts.
const QUOTED: usize = 60;

/// What a trace shows that will hold again.
pub(super) fn shown(trace: &Trace, findings: &Findings) -> Shown {
    let mut shown = Shown::default();
    for event in &trace.events {
        match &event.what {
            // A call whose result no message shows could not be measured.
            What::ToolCalled(ToolCalled { tool, outcome: ToolOutcome::Ok(_), .. })
                if findings.tools.iter().any(|known| known.name == *tool) && shown.calls.last() != Some(tool) =>
            {
                shown.calls.push(tool.clone());
            }
            What::TurnEnded(TurnEnded { outcome: TurnOutcome::Answered(answer), .. }) => {
                shown.answer.clone_from(&answer.text);
            }
            _ => {}
        }
    }
    let passing: Vec<String> = dates().into_iter().chain(said_once(&shown.answer, &findings.met.shape.text)).collect();
    shown.facts = facts(&shown.answer, &passing);
    shown.refuses = says_that_it_cannot_answer(&shown.answer);
    if shown.facts.is_empty() && !shown.refuses {
        shown.facts.extend(longest_clause(&shown.answer, &passing));
        shown.quoted = true;
    }
    shown
}

/// Numbers and codes of an answer that another answer to the question does not have: they differ each time.
fn said_once(answer: &str, other: &str) -> Vec<String> {
    let words = answer.split_whitespace().map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric()));
    let is_once = |word: &&str| word.contains(|letter: char| letter.is_ascii_digit()) && !contains(other, word);
    words.filter(is_once).map(str::to_owned).collect()
}

/// The longest part of an answer without punctuation, a break or these `passing` words, whole words of it; `None` if it has
/// none.
fn longest_clause(answer: &str, passing: &[String]) -> Option<String> {
    let ends = |letter: char| letter.is_control() || ".!?:;*_`#[]()\"".contains(letter);
    let clauses = answer.split(ends).map(|clause| {
        let cut = clause.char_indices().nth(QUOTED).map_or(clause.len(), |(at, _)| at);
        let whole = clause[..cut].rfind(' ').filter(|_| cut < clause.len()).unwrap_or(cut);
        clause[..whole].trim_matches(|letter: char| !letter.is_alphanumeric())
    });
    let clauses =
        clauses.filter(|clause| !clause.is_empty() && !passing.iter().any(|word| clause.contains(word.as_str())));
    clauses.rev().max_by_key(|clause| clause.chars().count()).map(str::to_owned)
}

/// What the expectations of the new scenario say, and what they do not.
pub(super) fn asserted(shown: &Shown) -> String {
    let calls = (!shown.calls.is_empty()).then(|| format!("calls {}", shown.calls.join(", then ")));
    let facts: Vec<String> = shown.facts.iter().map(|fact| format!("`{fact}`")).collect();
    let facts = (!facts.is_empty()).then(|| format!("the answer contains {}", facts.join(" and ")));
    let all: Vec<String> = calls.into_iter().chain(facts).collect();
    let all = if all.is_empty() { "there is an answer".to_owned() } else { all.join("; ") };
    let from = if shown.quoted {
        ", words of the recorded answer: after a recording with another model, name what every answer must hold"
    } else {
        ""
    };
    let refuses = if shown.refuses {
        "note: the recorded answer says that it cannot answer. If it should be able to, check that its search service \
         runs and has the documents, and record again: `ragcheck run --mode record`\n"
    } else {
        ""
    };
    format!(
        "{refuses}asserted: {all}{from}\nand in replay, that the agent sends no request that is not recorded\nnot asserted: that the answer is right, \
         nor its sources: only you know that\n"
    )
}

/// Numbers and codes of an answer, which other words for the same thing keep, but none of these dates, and no part of
/// a longer number, such as the `120` of `1 120`.
pub(in crate::cli) fn facts(answer: &str, today: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in answer.split_whitespace() {
        let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        let plain = word.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '.' | ':' | ','));
        let code = word.len() >= 2 && word.chars().any(|letter| letter.is_ascii_digit()) && plain;
        if code
            && found.len() < FACTS
            && !found.iter().any(|known| known == word)
            && !today.iter().any(|date| date.contains(word))
            && contains(answer, word)
        {
            found.push(word.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_numbers_and_codes_and_never_todays_date() {
        let today = &dates()[0];
        let answer = format!("Order A-1042 comes in 14 days, 14 exactly; today is {today}, and 3 of 99 wait.");
        assert_eq!(facts(&answer, &dates()), ["A-1042", "14"]);
        let once = said_once("Order A-1042: balance 7714 EUR.", "The balance of order A-1042 is 9120 EUR.");
        assert_eq!(once, ["7714"]);
        assert_eq!(facts("Order A-1042: balance 7714 EUR.", &once), ["A-1042"]);
        assert_eq!(
            longest_clause("Order A: it is 7714 EUR as of now. It is fine", &once).as_deref(),
            Some("It is fine")
        );
        assert!(facts("I can help with returns.", &[]).is_empty());
        assert_eq!(facts("Of 1 120 seats at -$45, 300 are free.", &[]), ["300"]);
    }

    #[test]
    fn an_answer_without_facts_is_quoted_by_its_longest_clause_in_whole_words() {
        let today = &dates()[0];
        for (answer, quoted) in [
            ("Sure! I can help with **returns** and orders.", Some("I can help with")),
            ("Yes", Some("Yes")),
            ("… !", None),
            (&format!("On {today} all is well, and nothing else matters. So be it"), Some("So be it")),
            (&"long words ".repeat(20), Some("long words long words long words long words long words long")),
        ] {
            assert_eq!(longest_clause(answer, &dates()).as_deref(), quoted, "{answer}");
        }
    }
}
