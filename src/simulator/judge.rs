//! The simulated judge: it grades by counting words, with declared tolerance and mistakes.
//!
//! It is selected by the name of its model. It reads the items by the ids in brackets and the data between fences, as
//! any judge does, and uses nothing else of the request.

use super::dice::{Dice, Latency};
use super::model::{Completion, Outcome};
use super::sentences::{content_words, overlap, sentences};
use crate::provider::chat::{Finish, Message};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// The declared behaviour of the simulated judge.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JudgeBehaviour {
    /// Name of the model that selects it.
    pub model: String,
    /// Response time.
    pub latency: Latency,
    /// Fraction of verdicts that are inverted, the same in every order.
    #[serde(default)]
    pub errs: f64,
    /// Fraction of items whose verdict is inverted if they are in the second half.
    #[serde(default)]
    pub swayed: f64,
    /// Fraction of replies that are not JSON.
    #[serde(default)]
    pub garbles: f64,
    /// Checks by item id; any other item checks for the question's words in the answer.
    #[serde(default)]
    pub items: BTreeMap<String, Looks>,
}

/// A check: the fraction of the words of one part that occur in another.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Looks {
    /// Part whose words are looked up.
    pub of: String,
    /// Part that is searched.
    pub within: String,
    /// Fraction that passes, 0 to 1.
    pub at_least: f64,
}

impl Looks {
    fn usual() -> Self {
        Self { of: "question".into(), within: "answer".into(), at_least: 0.3 }
    }
}

/// Grades the items in `messages`; `purpose` is the client's name for the request.
pub(super) fn grade(behaviour: &JudgeBehaviour, seed: u64, messages: &[Message], purpose: &str) -> Outcome {
    let rules = messages.first().map_or("", |message| message.content.as_str());
    let data = messages.last().map_or("", |message| message.content.as_str());
    let items = items(rules);
    let dice = Dice::new(seed, &["judge", purpose, data]);
    let first = items.first().copied().unwrap_or_default();
    let latency = behaviour.latency.draw(&Dice::new(seed, &["judge moment", purpose, first]));
    let graded: Vec<_> = items
        .iter()
        .enumerate()
        .map(|(place, item)| {
            let looks = behaviour.items.get(*item).cloned().unwrap_or_else(Looks::usual);
            let (asked, place_of) = (content_words(&part(data, &looks.of)), part(data, &looks.within));
            let late = place >= items.len().div_ceil(2);
            let honest = overlap(&asked, &place_of) >= looks.at_least;
            let errs = dice.roll(&format!("errs {item}")) < behaviour.errs;
            let swayed = late && dice.roll(&format!("swayed {item}")) < behaviour.swayed;
            let verdict = if honest ^ errs ^ swayed { "pass" } else { "fail" };
            json!({"id": item, "evidence": quote(&place_of, &asked), "verdict": verdict})
        })
        .collect();
    let mut text = json!({"items": graded}).to_string();
    if dice.roll(&format!("garbles {first}")) < behaviour.garbles {
        text = format!("Here is my assessment: {text}");
    }
    let completion = Completion { text, refusal: None, calls: Vec::new(), finish: Finish::Stop };
    Outcome { completion, latency: latency.max(Duration::from_millis(1)), rate_limited: 0, server_errors: 0 }
}

/// The ids in brackets in numbered lines.
fn items(rules: &str) -> Vec<&str> {
    let lines = rules.lines().filter_map(|line| {
        let (number, rest) = line.split_once(". [")?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then_some(rest.split_once(']')?.0)
    });
    lines.collect()
}

/// The text between the fences of that name; empty if there are none.
fn part(data: &str, name: &str) -> String {
    let open = format!("<<<{name} ");
    let found = data.split_once(&open).and_then(|(_, rest)| {
        let (mark, rest) = rest.split_once('\n')?;
        Some(rest.split_once(&format!("\n{name} {mark}>>>"))?.0.to_owned())
    });
    found.unwrap_or_default()
}

/// The sentence that contains the most of the words, cut to 200 characters.
fn quote(text: &str, asked: &[String]) -> String {
    let best = text.lines().flat_map(sentences).fold(("", 0.0), |best, sentence| {
        let share = overlap(asked, sentence);
        if share > best.1 { (sentence, share) } else { best }
    });
    best.0.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::chat::Role;

    fn behaviour(more: &str) -> JudgeBehaviour {
        let text = format!(
            "{{model: j, latency: {{constant: 1s}}, items: {{grounded: {{of: answer, within: evidence, at_least: 0.8}}}}{more}}}"
        );
        serde_saphyr::from_str(&text).expect("a judge")
    }

    fn said(behaviour: &JudgeBehaviour, items: [&str; 2], answer: &str) -> String {
        let rules = format!("Grade.\n1. [{}] Is it? Passes when: so.\n2. [{}] And?", items[0], items[1]);
        let data = format!(
            "<<<question ab\nHow long is the warranty?\nquestion ab>>>\n\n<<<answer cd\n{answer}\nanswer cd>>>\n\n<<<evidence ef\npassage w#1: The warranty lasts two years.\nevidence ef>>>"
        );
        let messages = [Message::text(Role::System, rules), Message::text(Role::User, data)];
        grade(behaviour, 1, &messages, "judge/x").completion.text
    }

    #[test]
    fn it_grades_each_item_by_what_it_declares_and_quotes_before_it_judges() {
        let said = said(&behaviour(""), ["grounded", "other"], "The warranty lasts two years.");
        let expected = r#"{"items":[{"id":"grounded","evidence":"passage w#1: The warranty lasts two years.","verdict":"pass"},{"id":"other","evidence":"The warranty lasts two years.","verdict":"pass"}]}"#;
        assert_eq!(said, expected);
    }

    #[test]
    fn what_is_not_in_the_evidence_is_not_grounded() {
        let said = said(&behaviour(""), ["grounded", "other"], "Zebras graze near lakes.");
        assert_eq!(said.matches("\"fail\"").count(), 2, "{said}");
    }

    #[test]
    fn a_judge_that_is_always_swayed_says_the_opposite_in_the_other_order() {
        let swayed = behaviour(", swayed: 1");
        let answer = "The warranty lasts two years.";
        let (one, two) = (said(&swayed, ["grounded", "other"], answer), said(&swayed, ["other", "grounded"], answer));
        let grounded = |said: &str| {
            said.split("\"grounded\"").nth(1).expect("it").split("\"verdict\":\"").nth(1).expect("it")[..4].to_owned()
        };
        assert_eq!((grounded(&one), grounded(&two)), ("pass".to_owned(), "fail".to_owned()));
        assert!(!said(&behaviour(", garbles: 1"), ["grounded", "other"], answer).starts_with('{'));
    }
}
