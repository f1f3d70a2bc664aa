//! Texts of two sides beside each other: the words that one side lacks are marked on the other.

use crate::trace::text::clip;
use crate::trace::{Trace, TurnOutcome, What};
use serde::Serialize;
use similar::{DiffTag, TextDiff};

/// Maximum characters of a text.
const TEXT: usize = 4_000;

/// A question and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// What the user asked.
    pub asked: String,
    /// The answer, or what the user saw in its place.
    pub answered: String,
}

/// Questions and answers of a trial, in order.
pub(crate) fn exchanges(trace: &Trace) -> Vec<Exchange> {
    let mut found: Vec<Exchange> = Vec::new();
    for event in &trace.events {
        match &event.what {
            What::TurnStarted { query } => {
                found.push(Exchange { asked: clip(query, TEXT).into_owned(), answered: String::new() });
            }
            What::TurnEnded(ended) => {
                let said = match &ended.outcome {
                    TurnOutcome::Answered(answer) => clip(&answer.text, TEXT).into_owned(),
                    TurnOutcome::Failed { kind, message } => format!("no answer ({kind}): {}", clip(message, TEXT)),
                };
                // Turns of several conversations may overlap: an answer belongs to the first turn without one.
                if let Some(open) = found.iter_mut().find(|one| one.answered.is_empty()) {
                    open.answered = said;
                }
            }
            _ => {}
        }
    }
    found
}

/// A stretch of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::report) struct Stretch {
    text: String,
    /// Whether the other side lacks it.
    marked: bool,
}

/// Both texts, with the words marked that the other one lacks.
pub(in crate::report) fn marked(one: &str, other: &str) -> [Vec<Stretch>; 2] {
    let (one, other) = (clip(one, TEXT), clip(other, TEXT));
    let diff = TextDiff::from_words(&*one, &*other);
    let mut sides = [Vec::new(), Vec::new()];
    for op in diff.ops() {
        let marked = op.tag() != DiffTag::Equal;
        let words = [
            diff.iter_old_slices().skip(op.old_range().start).take(op.old_range().len()).collect::<String>(),
            diff.iter_new_slices().skip(op.new_range().start).take(op.new_range().len()).collect::<String>(),
        ];
        for (side, text) in sides.iter_mut().zip(words) {
            push(side, text, marked);
        }
    }
    sides
}

/// Adds a stretch; a space alone between two marked ones does not end the mark.
fn push(side: &mut Vec<Stretch>, text: String, marked: bool) {
    if text.is_empty() {
        return;
    }
    match side.last_mut() {
        Some(last) if last.marked == marked => last.text.push_str(&text),
        Some(last) if last.marked && text.trim().is_empty() && !text.contains('\n') => last.text.push_str(&text),
        _ => side.push(Stretch { text, marked }),
    }
}

/// A line diff as two texts: lines that begin with `-` or a space, and those with `+` or a space.
pub(in crate::report) fn sides_of(lines: &[String]) -> [String; 2] {
    let side = |own: char| {
        let of = |line: &String| match line.chars().next() {
            Some('@') => Some("…".to_owned()),
            Some(first) if first == own || first == ' ' => Some(line[1..].to_owned()),
            None => Some(String::new()),
            _ => None,
        };
        let mut lines: Vec<String> = lines.iter().filter_map(of).collect();
        // The first hunk begins the text, or shortly after it.
        if lines.first().is_some_and(|line| line == "…") {
            lines.remove(0);
        }
        lines.join("\n")
    };
    [side('-'), side('+')]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(side: &[Stretch]) -> String {
        side.iter().map(|one| if one.marked { format!("[{}]", one.text) } else { one.text.clone() }).collect()
    }

    #[test]
    fn the_words_that_the_other_side_lacks_are_marked_and_the_texts_are_whole() {
        let (a, b) = ("Measure the coil: 48 to 56 ohms.", "Measure the coil: 38 to 46 ohms.");
        let [one, other] = marked(a, b);
        assert_eq!(shown(&one), "Measure the coil: [48] to [56] ohms.");
        assert_eq!(shown(&other), "Measure the coil: [38] to [46] ohms.");
        let whole = |side: &[Stretch]| side.iter().map(|one| one.text.as_str()).collect::<String>();
        assert_eq!((whole(&one).as_str(), whole(&other).as_str()), (a, b));
        assert_eq!(shown(&marked("same", "same")[0]), "same");
    }

    #[test]
    fn a_line_diff_becomes_the_two_texts() {
        let lines = ["@@ -1,2 +1,2 @@", "-Always search.", "+Search.", " Be brief."].map(str::to_owned);
        assert_eq!(sides_of(&lines), ["Always search.\nBe brief.", "Search.\nBe brief."]);
    }

    #[test]
    fn a_trial_has_its_questions_with_their_answers() {
        let run = crate::report::sample::run(1);
        let found = exchanges(&run.traces[0]);
        assert!(!found.is_empty() && found.iter().all(|one| !one.asked.is_empty() && !one.answered.is_empty()));
    }
}
