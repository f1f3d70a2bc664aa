//! The least text beside a generated value by which it is found again, in other requests too: what stands directly before
//! it, or the fewest words before it, and never words of a question, which are others in the next turn.

use crate::trace::text::is_currency;
use regex::{Regex, escape};
use std::ops::Range;

/// Characters that end a part of a text that has no spaces, as in JSON and in queries.
const STOPS: [char; 9] = [',', ';', '{', '}', '&', '?', '!', '|', '('];
/// Ends of sentences, which belong to the question that they follow.
const ENDS: [char; 6] = ['?', '!', '.', '…', ',', ':'];
/// Maximum number of words before a value that are tried.
const MOST_WORDS: usize = 6;
/// Successive words that tell a part of a question from words that it has by chance.
const ALIKE: usize = 3;
/// Words that identify no place, and name no value.
const FILLERS: [&str; 12] = ["is", "are", "the", "of", "at", "on", "for", "no", "nr", "it", "and", "this"];

/// Texts that change: the questions of the user, others in each turn, and dates, others each day.
pub(super) struct Questions {
    asked: Vec<Vec<String>>,
    dates: Vec<Vec<String>>,
}

/// Where a value stands, and which text around it may identify it.
pub(super) struct Spot<'t> {
    pub text: &'t str,
    pub value: Range<usize>,
    /// From the end of the value before it to the beginning of the one after it.
    pub around: Range<usize>,
}

impl Questions {
    pub(super) fn new(asked: &[&str], dates: &[&str]) -> Self {
        let lower = |text: &&str| words(text).into_iter().map(|(_, word)| word.to_lowercase()).collect();
        let lowered =
            |texts: &[&str]| texts.iter().map(lower).filter(|words: &Vec<String>| !words.is_empty()).collect();
        Self { asked: lowered(asked), dates: lowered(dates) }
    }

    /// Whether a text holds one of the questions as a whole.
    pub(super) fn stand_in(&self, text: &str) -> bool {
        let said: Vec<String> = words(text).into_iter().map(|(_, word)| word.to_lowercase()).collect();
        self.asked.iter().any(|asked| said.windows(asked.len()).any(|part| part == asked.as_slice()))
    }

    /// Where the last part of a question or a date in a text ends; 0 if there is none.
    fn end_in(&self, text: &str) -> usize {
        let said: Vec<(usize, String)> =
            words(text).into_iter().map(|(begin, word)| (begin + word.len(), word.to_lowercase())).collect();
        let ends = self.asked.iter().chain(&self.dates).filter_map(|asked| {
            let length = asked.len().min(ALIKE);
            let is_asked = |part: &[(usize, String)]| {
                asked.windows(length).any(|words| words.iter().zip(part).all(|(word, (_, said))| word == said))
            };
            said.windows(length).filter(|part| is_asked(part)).filter_map(|part| part.last()).map(|(end, _)| *end).max()
        });
        ends.max().map_or(0, |end| text.len() - text[end..].trim_start_matches(ENDS).len())
    }
}

impl<'t> Spot<'t> {
    /// The text before the value on its line, without questions.
    pub(super) fn before(&self, questions: &Questions) -> &'t str {
        let line = &self.text[self.line()..self.value.start];
        &line[questions.end_in(line)..]
    }

    /// Beginning of the value's line, or of what may identify the value.
    fn line(&self) -> usize {
        let before = &self.text[self.around.start..self.value.start];
        before.rfind('\n').map_or(self.around.start, |place| self.around.start + place + 1)
    }

    /// The expression that finds the value, whose form is `shape`.
    pub(super) fn expression(&self, questions: &Questions, shape: &str) -> String {
        let before = self.before(questions);
        let said = contexts(before);
        let longest = said.last().copied().filter(|said| said.contains(char::is_alphabetic));
        let with = |context: &str| format!("{}({shape})", escape(context));
        let mut named = said.into_iter().filter(|context| names_something(context)).map(|context| {
            let expression = with(context);
            (self.is_alone(&expression), expression)
        });
        let Some((alone, least)) = named.next() else {
            return longest.map_or_else(|| self.bare(before, shape), with);
        };
        if alone {
            return least;
        }
        named.find(|(alone, _)| *alone).map_or(least, |(_, longer)| longer)
    }

    /// Whether an expression finds the value and nothing else in its text.
    fn is_alone(&self, expression: &str) -> bool {
        let Ok(expression) = Regex::new(expression) else { return false };
        let mut found = expression.captures_iter(self.text).filter_map(|found| found.get(1));
        found.all(|found| found.start() == self.value.start)
    }

    /// The expression for a value that no words identify: by its place on the line and by the signs beside it.
    fn bare(&self, before: &str, shape: &str) -> String {
        let Self { text, value, around } = self;
        let after = &text[value.end..around.end];
        let signs = after.split(|letter: char| letter.is_alphanumeric() || letter.is_whitespace()).next();
        let line = self.line();
        let begins = line + before.len() == value.start && (line == 0 || text[..line].ends_with('\n'));
        let ends = after.is_empty() && around.end == text.len() || after.starts_with('\n');
        let within = begins && line > 0 || ends && value.end < text.len();
        let lines = if within { "(?m)" } else { "" };
        let (edge, before) = match before.trim_start() {
            _ if begins => ("^", before),
            "" => (r"\b", ""),
            signs => ("", signs),
        };
        let after = match signs.filter(|signs| !signs.is_empty()) {
            _ if ends => "$".to_owned(),
            Some(signs) => escape(signs),
            None => r"\b".to_owned(),
        };
        format!("{lines}{edge}{}({shape}){after}", escape(before))
    }
}

/// What may stand before a value in its expression, the shortest first: the characters directly before it, then one word
/// more each time.
fn contexts(before: &str) -> Vec<&str> {
    let mut begin = before.rfind(char::is_whitespace).map_or(0, |place| place + width(before, place));
    // Without spaces, the last part.
    let run = &before[begin..];
    let said = run.trim_end_matches(|letter: char| !letter.is_alphanumeric());
    let last = said.rfind(STOPS).map_or(run, |place| &run[place + 1..]);
    let mut found = vec![last];
    for _ in 0..MOST_WORDS {
        let rest = before[..begin].trim_end();
        if rest.is_empty() {
            break;
        }
        begin = rest.rfind(char::is_whitespace).map_or(0, |place| place + width(rest, place));
        found.push(&before[begin..]);
    }
    found
}

/// Bytes of the character at a place.
fn width(text: &str, place: usize) -> usize {
    text[place..].chars().next().map_or(1, char::len_utf8)
}

/// Whether a word of a text says which value follows: any that is the name of a member does.
fn names_something(text: &str) -> bool {
    let is_member = text.contains("\":");
    words(text).into_iter().any(|(_, word)| {
        word.contains(char::is_alphabetic) && (is_member || !FILLERS.contains(&word.to_lowercase().as_str()))
    })
}

/// A name by the words before the value, else by the last member that leads to it.
pub(super) fn name(line: &str, at: &str, shape: &str) -> String {
    let simple = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let plain = |word: &str| {
        let alphabetic = word.chars().any(|letter| letter.is_ascii_alphabetic());
        alphabetic && word.len() <= 40 && word.chars().all(simple) && !FILLERS.contains(&word)
    };
    let lower = line.to_ascii_lowercase();
    let mut said = lower.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let said = said.rfind(|word| plain(word)).map(str::to_owned);
    let member = at.rsplit('/').find(|step| plain(step));
    let word = said.or_else(|| member.map(str::to_ascii_lowercase));
    let word = word.map(|word| word.replace('_', "-").trim_matches('-').to_owned());
    word.filter(|word| !word.is_empty())
        .unwrap_or_else(|| if shape.starts_with("\\d{4}-\\d{2}") { "date".to_owned() } else { "value".to_owned() })
}

/// Whether a number is an amount: with a currency or a percent sign beside it, or one or two decimals.
pub(super) fn is_amount(before: &str, word: &str, after: &str) -> bool {
    let sign = |letter: char| is_currency(letter) || letter == '%';
    let decimals = word.split_once('.').map(|(_, decimals)| decimals.len());
    let number = word.chars().all(|letter| letter.is_ascii_digit() || letter == '.') && word.matches('.').count() <= 1;
    // `1,223.45` is two words.
    let before = before.trim_end_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, ',' | ' '));
    number && (before.ends_with(sign) || after.trim_start().starts_with(sign) || matches!(decimals, Some(1 | 2)))
}

/// Words with their offsets: letters, digits, and what joins them in dates and ids.
pub(super) fn words(text: &str) -> Vec<(usize, &str)> {
    let joins = |letter: char| matches!(letter, '-' | '_' | ':' | '.' | '+');
    let mut found = Vec::new();
    let mut rest = 0;
    while let Some(begin) = text[rest..].find(char::is_alphanumeric).map(|at| rest + at) {
        let end = text[begin..]
            .find(|letter: char| !letter.is_alphanumeric() && !joins(letter))
            .map_or(text.len(), |at| begin + at);
        let word = text[begin..end].trim_end_matches(joins);
        found.push((begin, word));
        rest = begin + word.len();
        if rest == begin {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: &str = "How long do I have to return a damaged battery?";

    /// The expression for the last `1795486781234` in a text.
    fn found(text: &str) -> String {
        let begin = text.rfind("1795486781234").expect("a value");
        let value = begin..begin + 13;
        let spot = Spot { text, value, around: 0..text.len() };
        let expression = spot.expression(&Questions::new(&[ASKED, "And then?"], &[]), r"\d{13}");
        let sound = Regex::new(&expression).expect("sound");
        let places: Vec<usize> = sound.captures_iter(text).filter_map(|found| Some(found.get(1)?.start())).collect();
        assert!(places.contains(&begin), "{text}: {expression}");
        expression
    }

    #[test]
    fn a_value_is_found_by_what_stands_directly_before_it_or_by_the_fewest_words() {
        for (text, expression) in [
            ("Be brief. Session sid=1795486781234 begins", r"sid=(\d{13})"),
            ("Be brief, and polite. Today is 1795486781234", r"Today is (\d{13})"),
            ("It is 1795486781234.", r"It is (\d{13})"),
            ("Answer for ticket #1795486781234.", r"ticket \#(\d{13})"),
            (r#"{"results": ["a text"],"retrieved":"1795486781234"}"#, r#""retrieved":"(\d{13})"#),
            (r#"{"results": ["a text"], "retrieved": "1795486781234"}"#, r#""retrieved": "(\d{13})"#),
            (r#"{"results": ["RB-30."], "at": "1795486781234"}"#, r#""at": "(\d{13})"#),
            ("run 1795486781000, then the next run 1795486781234", r"next run (\d{13})"),
        ] {
            assert_eq!(found(text), expression);
        }
    }

    #[test]
    fn no_word_of_a_question_is_in_an_expression() {
        for (text, expression) in [
            (format!("{ASKED} sid=1795486781234"), r"sid=(\d{13})"),
            (format!("{ASKED}sid=1795486781234"), r"sid=(\d{13})"),
            (format!("{ASKED} [sid 1795486781234]"), r"\[sid (\d{13})"),
            (format!("{ASKED} 1795486781234"), r"\b(\d{13})$"),
            (format!("{ASKED} (1795486781234)"), r"\((\d{13})\)"),
            (format!("{ASKED}\n1795486781234\nBe brief."), r"(?m)^(\d{13})$"),
            (format!("[1795486781234] {ASKED}"), r"^\[(\d{13})\]"),
            (format!("1795486781234 {ASKED}"), r"^(\d{13})\b"),
            (format!("{} 1795486781234", ASKED.to_uppercase()), r"\b(\d{13})$"),
            ("And then? 1795486781234".to_owned(), r"\b(\d{13})$"),
            ("What about a damaged battery, id 1795486781234".to_owned(), r"id (\d{13})"),
        ] {
            assert_eq!(found(&text), expression, "{text}");
        }
    }

    #[test]
    fn a_question_stands_in_a_text_whatever_its_signs_and_letters() {
        let questions = Questions::new(&[ASKED, "?"], &[]);
        for (text, stands) in [
            (format!("{ASKED} sid=1"), true),
            (format!("{}!", ASKED.to_uppercase().trim_end_matches('?')), true),
            ("How long do I have to wait?".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(questions.stand_in(&text), stands, "{text}");
        }
    }
}
