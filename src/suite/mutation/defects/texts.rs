//! Defects of texts: numbers, citations and notices of answers, and the history that requests show.

use super::edits::{answers, keep};
use crate::trace::{Logged, Trace, What};

/// The text with other numbers in place of those of two digits and more.
pub(super) fn other_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut digits = 0;
    for letter in text.chars() {
        digits = if letter.is_ascii_digit() { digits + 1 } else { 0 };
        let other = letter.to_digit(10).and_then(|digit| char::from_digit((digit + 3) % 10, 10));
        out.push(other.filter(|_| digits > 1).unwrap_or(letter));
    }
    out
}

/// The text with every `[n]` as `new` says.
pub(super) fn numbered(text: &str, new: impl Fn(u32) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        let (before, after) = rest.split_at(open);
        out.push_str(before);
        let number = after.find(']').and_then(|close| Some((close, after[1..close].parse::<u32>().ok()?)));
        if let Some((close, number)) = number {
            out.push_str(&new(number));
            rest = &after[close + 1..];
        } else {
            out.push('[');
            rest = &after[1..];
        }
    }
    out + rest
}

pub(super) fn shifted(text: &str) -> String {
    numbered(text, |number| format!("[{}]", number.saturating_add(1)))
}

/// Takes what earlier turns said out of the requests of later ones, or puts another message in its place.
pub(super) fn history(trace: &mut Trace, other: Option<&str>) -> bool {
    let mut said: Vec<String> = Vec::new();
    let mut of = None;
    let mut changed = false;
    for event in &mut trace.events {
        if of != Some(event.conversation) {
            (of, said) = (Some(event.conversation), Vec::new());
        }
        match &mut event.what {
            What::ModelCalled(called) => {
                let before = called.shown.clone();
                called.shown.retain(|message| !said.contains(message));
                if called.shown != before {
                    called.shown.extend(other.map(str::to_owned));
                    changed = true;
                }
            }
            What::TurnEnded(end) => said.clone_from(&end.history),
            _ => {}
        }
    }
    changed
}

pub(super) fn notice_removed(trace: &mut Trace) -> bool {
    let mut notices = Vec::new();
    let removed = keep(trace, |what| match what {
        What::Logged(Logged::Notice { text, .. }) => {
            notices.push(text.clone());
            false
        }
        What::Degraded { .. } => false,
        _ => true,
    });
    answers(trace, |answer| {
        for notice in &notices {
            answer.text = answer.text.replace(notice.as_str(), "");
        }
        false
    });
    removed
}
