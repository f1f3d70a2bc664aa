//! What the answer and the calls of the first trial show that an expectation can name.

use super::generated::dates;
use super::project::{Findings, Shown};
use crate::metric::contains;
use crate::platform::distinct::distinct;
use crate::provider::tool_result::leaves;
use crate::trace::refusal::says_that_it_cannot_answer;
use crate::trace::{Event, ToolCalled, ToolOutcome, ToolResult, Trace, TurnEnded, TurnOutcome, What};
use serde_json::Value;

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
    shown.facts = facts(&shown.answer, &passing, &findings.question, &given(&trace.events));
    shown.refuses = says_that_it_cannot_answer(&shown.answer);
    if shown.facts.is_empty() && !shown.refuses {
        shown.facts.extend(longest_clause(&shown.answer, &passing, &findings.question));
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

/// The part of an answer without punctuation, a break or these `passing` words that says most beside the question, whole
/// words of it; `None` if it has none, or says what the question does.
fn longest_clause(answer: &str, passing: &[String], question: &str) -> Option<String> {
    let ends = |letter: char| letter.is_control() || ".!?:;*_`#[]()\"".contains(letter);
    let clauses = answer.split(ends).map(|clause| {
        let cut = clause.char_indices().nth(QUOTED).map_or(clause.len(), |(at, _)| at);
        let whole = clause[..cut].rfind(' ').filter(|_| cut < clause.len()).unwrap_or(cut);
        clause[..whole].trim_matches(|letter: char| !letter.is_alphanumeric())
    });
    let clauses =
        clauses.filter(|clause| !clause.is_empty() && !passing.iter().any(|word| clause.contains(word.as_str())));
    let clauses = clauses.filter(|clause| !contains(question, clause));
    let is_new = |word: &&str| !contains(question, word);
    let said = |clause: &&str| {
        let new: usize = clause.split_whitespace().filter(is_new).map(|word| word.chars().count()).sum();
        (new, clause.chars().count())
    };
    clauses.rev().max_by_key(said).map(str::to_owned)
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

/// Numbers and codes of an answer, which other words for the same thing keep: first those that the results of tools gave. None
/// stands in the question, where an agent that finds nothing has it from; none is of these dates or differs each time, nor
/// part of a longer number, such as the `120` of `1 120`.
pub(in crate::cli) fn facts(answer: &str, passing: &[String], question: &str, results: &str) -> Vec<String> {
    let words = answer.split_whitespace().map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric()));
    let is_fact = |word: &&str| {
        let plain = word.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '.' | ':' | ','));
        let code = word.len() >= 2 && word.chars().any(|letter| letter.is_ascii_digit()) && plain;
        code && contains(answer, word) && !contains(question, word)
    };
    // The `30` of `30 days` is no part of a date, although it may be the day of today's.
    let lasting = passing.iter().fold(results.to_owned(), |text, date| text.replace(date.as_str(), " "));
    let (given, others): (Vec<&str>, Vec<&str>) =
        distinct(words.filter(is_fact)).into_iter().partition(|word| contains(&lasting, word));
    let others = others.into_iter().filter(|word| !passing.iter().any(|date| date.contains(word)));
    given.into_iter().chain(others).take(FACTS).map(str::to_owned).collect()
}

/// The texts and numbers that the tools and searches of these events gave, without what they were asked.
pub(in crate::cli) fn given<'e>(events: impl IntoIterator<Item = &'e Event>) -> String {
    let mut texts = Vec::new();
    for result in events.into_iter().filter_map(|event| event.what.given()) {
        let Some(value) = result.value() else { continue };
        let mut value = value.into_owned();
        if let (ToolResult::Search(_) | ToolResult::External(_), Value::Object(members)) = (result, &mut value) {
            members.remove("query");
        }
        let text = |leaf: &Value| leaf.as_str().map_or_else(|| leaf.to_string(), str::to_owned);
        texts.extend(leaves(&value).into_iter().map(text));
    }
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_numbers_and_codes_and_never_todays_date() {
        let today = &dates()[0];
        let answer = format!("Order A-1042 comes in 14 days, 14 exactly; today is {today}, and 3 of 99 wait.");
        assert_eq!(facts(&answer, &dates(), "", ""), ["A-1042", "14"]);
        let once = said_once("Order A-1042: balance 7714 EUR.", "The balance of order A-1042 is 9120 EUR.");
        assert_eq!(once, ["7714"]);
        assert_eq!(facts("Order A-1042: balance 7714 EUR.", &once, "", "7714"), ["A-1042"]);
        assert_eq!(
            longest_clause("Order A: it is 7714 EUR as of now. It is fine", &once, "").as_deref(),
            Some("It is fine")
        );
        assert!(facts("I can help with returns.", &[], "", "").is_empty());
        assert_eq!(facts("Of 1 120 seats at -$45, 300 are free.", &[], "", ""), ["300"]);
    }

    #[test]
    fn what_the_question_holds_is_never_asserted_and_what_the_tools_gave_comes_first() {
        let question = "How long do I have to return a damaged battery, and is FB-7 in stock?";
        let answer =
            "You can return it within 30 days in the bag FB-7, or from 9:00 on; 12 of them are left, says M-2.";
        let (results, passing) = ("return within 30 days\n12", ["November 30, 2026".to_owned()]);
        assert_eq!(facts(answer, &passing, question, results), ["30", "12"]);
        assert_eq!(facts(answer, &passing, question, ""), ["9:00", "12"]);
        assert_eq!(facts(answer, &passing, question, "12 since November 30, 2026"), ["12", "9:00"]);
        assert!(facts("FB-7 is in stock.", &[], question, "FB-7").is_empty());
        let clause = |answer| longest_clause(answer, &[], question);
        assert_eq!(clause("A damaged battery: thirty days. FB-7 in stock.").as_deref(), Some("thirty days"));
        assert_eq!(clause("FB-7 in stock"), None);
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
            assert_eq!(longest_clause(answer, &dates(), "").as_deref(), quoted, "{answer}");
        }
    }
}
