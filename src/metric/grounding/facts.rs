//! Facts of an answer that can be looked up: numbers, dates, codes, names and quoted words.
//!
//! List markers, ordinals and whole numbers up to twelve without a unit are left out. So are code, addresses and
//! citations. A name is a word with a capital where the language marks names by capitals, and not the first word of a
//! sentence, which has one anyway.

use super::accounts::{accounts, telephones};
use super::date::{Date, dates};
use super::duration::{Duration, durations};
use super::quantity::{COUNT, Quantity, quantities};
use super::units::{is_of_time, unit_of};
use super::{behind, clock};
use crate::trace::text::CURRENCY_CODES;
use regex::Regex;
use std::cell::LazyCell;
use std::ops::Range;
use std::sync::LazyLock;

/// A fact in a statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fact {
    /// Its words, as the answer has them.
    pub words: String,
    /// Where they stand in the answer, in bytes.
    pub place: Range<usize>,
    pub(super) kind: Kind,
}

impl Fact {
    /// Whether it is a number with a unit that is not one of time.
    pub(super) fn is_amount(&self) -> bool {
        let of_time = |unit: &str| is_of_time(unit) || unit == clock::UNIT;
        matches!(&self.kind, Kind::Number(quantity) if quantity.unit.is_some_and(|unit| !of_time(unit)))
    }
}

/// What has to be found.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Number(Quantity),
    /// A duration in two units, or each of its parts.
    Duration(Box<Duration>),
    Date(Date),
    /// Letters and digits, lower case, without marks.
    Code(String),
    /// The digits of a telephone number, with those of its country if it is named.
    Telephone(String),
    /// One capitalised word, and the initials of the run that it is in.
    Name(String, String),
    /// Words in quotation marks.
    Quote(Vec<String>),
}

/// One sentence or line of an answer with the numbers that it cites.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Statement {
    /// Where it stands, in bytes.
    pub place: Range<usize>,
    /// Its citations by number.
    pub cited: Vec<usize>,
    /// Its facts, in order.
    pub facts: Vec<Fact>,
}

static HIDDEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?s)```.*?(?:```|$)|`[^`\n]*`|\]\([^)\s]*\)|https?://[^\s<>)\]]*|\S+@\S+\.\S+").expect("an expression")
});
static CITED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\[?\[[^\[\]\n]{0,60}\]\]?|【[^】\n]{0,60}】|[¹²³⁰⁴-⁹]+").expect("an expression"));
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"“([^”\n]{2,200})”|„([^“”\n]{2,200})[“”]|«([^»\n]{2,200})»|"([^"\n]{2,200})""#).expect("an expression")
});
/// A run of letters, digits and marks of a code. Letters of scripts without spaces end it: `型番はRS232です` has `RS232`.
static CODE: LazyLock<Regex> = LazyLock::new(|| {
    let unspaced = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}";
    let letter = format!(r"[\p{{L}}\d--[{unspaced}ー]]");
    Regex::new(&format!("{letter}(?:(?:{letter}|[._/-])*{letter})?")).expect("an expression")
});
static MARKER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)^\s*(?:[-*•#>]+\s*)*\d{1,3}[.):]\s").expect("an expression"));
static WORD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\p{L}[\p{L}\p{M}]*(?:['’-]\p{L}[\p{L}\p{M}]*)*").expect("an expression"));
/// Lengths of something: `120x80x15`.
static SIZE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)^[1-9]\d*(?:[.,]\d+)?(?:x\d+(?:[.,]\d+)?)+$").expect("an expression"));
/// A duration or a time of day: `1h45`.
static HOURS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\d{1,2}[hH][0-5]\d$").expect("an expression"));
/// What may stand before the first word of a sentence: the source of the sentence before it, an emoji, a list's mark.
static LEADING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:\[[^\[\]\n]*\]|\([^()\n]*[\d_.:†-][^()\n]*\)|【[^】\n]*】|[^\p{L}\p{N}\[(【]|[¹²³⁰⁴-⁹])*$")
        .expect("an expression")
});
/// The last word of a label that begins a line, an item or a row: `**Return Window:** 30 days`.
static LABEL: LazyLock<Regex> = LazyLock::new(|| {
    let words = r"\p{Lu}[\p{L}'’-]*(?: (?:and |of |or |& )?\p{Lu}[\p{L}'’-]*){0,3}";
    let bold = r"(?:\*\*|__)";
    Regex::new(&format!(
        r"^[\s>#•+*|-]*{bold}?{words} (?:and |of |or |& )?(?P<last>\p{{Lu}}\p{{Ll}}+)(?:{bold}?:|{bold} ?[–—-]|{bold}? *\|)"
    ))
    .expect("an expression")
});
/// Words of labels that name what is said behind them, and nothing of its subject.
const LABELS: [&str; 33] = [
    "Address", "Amount", "Condition", "Contact", "Cost", "Date", "Day", "Deadline", "Detail", "Duration", "Fee",
    "Hour", "Information", "Limit", "Method", "Name", "Note", "Number", "Option", "Period", "Point", "Policy", "Price",
    "Process", "Rate", "Requirement", "Status", "Step", "Summary", "Takeaway", "Time", "Type", "Window",
];
static SMALL: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\p{Ll}").expect("an expression"));

/// The statements of an answer. A citation behind the full stop belongs to the sentence before it on the line, unless that
/// has one of its own.
pub(crate) fn statements(answer: &str) -> Vec<Statement> {
    let (blank, citations) = blanked(answer);
    let names = marks_names(answer);
    let mut found: Vec<Statement> = Vec::new();
    for place in sentences(&blank) {
        let facts = facts(answer, &blank, place.clone(), names);
        let empty = blank[place.clone()].trim().trim_matches(['.', ',', ';']).is_empty();
        let uncited = found.last().is_some_and(|last| last.cited.is_empty());
        let behind = uncited && !blank[..place.start].ends_with('\n');
        let mut cited = Vec::new();
        for (at, numbers) in citations.iter().filter(|(at, _)| place.contains(at)) {
            let leads = behind && blank[place.start..*at].trim().is_empty();
            match found.last_mut() {
                Some(last) if empty || leads => last.cited.extend(numbers),
                _ => cited.extend(numbers),
            }
        }
        if !empty || found.is_empty() {
            found.push(Statement { place, cited, facts });
        }
    }
    found
}

/// The text with spaces in place of code, addresses and citations, and the citations by place.
fn blanked(answer: &str) -> (String, Vec<(usize, Vec<usize>)>) {
    let mut text = answer.to_owned();
    let mut citations = Vec::new();
    let mut hide = |place: Range<usize>| text.replace_range(place.clone(), &" ".repeat(place.len()));
    for found in HIDDEN.find_iter(answer) {
        hide(found.range());
    }
    for found in CITED.find_iter(answer) {
        let numbers = crate::trace::citations::numbers_of(found.as_str());
        if !numbers.is_empty() {
            citations.push((found.start(), numbers));
            hide(found.range());
        }
    }
    for found in MARKER.find_iter(answer) {
        hide(found.range());
    }
    // A newline that was hidden still ends a line.
    let lines: Vec<usize> = answer.match_indices('\n').map(|(at, _)| at).collect();
    for at in lines {
        text.replace_range(at..=at, "\n");
    }
    (text, citations)
}

/// Places of sentences and lines.
fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut ends = Vec::new();
    let dates = LazyCell::new(|| dates(text));
    // `5. März` ends no sentence.
    let in_date = |at: usize| dates.iter().any(|date| date.start < at && at < date.end);
    let letters: Vec<(usize, char)> = text.char_indices().collect();
    for (place, &(at, letter)) in letters.iter().enumerate() {
        let next = letters.get(place + 1).map(|(_, next)| *next);
        let ends_sentence = match letter {
            '\n' | '。' | '！' | '？' => true,
            '.' if behind::abbreviates(&text[..at], &text[at + 1..]) => false,
            '.' | '!' | '?' | '…' => next.is_none_or(ends_before) && !abbreviates(&text[..at]) && !in_date(at),
            '"' | '”' | '»' => text[..at].ends_with(['.', '!', '?']) && next.is_some_and(char::is_whitespace),
            _ => false,
        };
        if ends_sentence {
            ends.push(at + letter.len_utf8());
        }
    }
    ends.push(text.len());
    let mut from = 0;
    let mut places = Vec::new();
    for end in ends {
        // What is blank after a sentence may have been its citation.
        if from < end && !(places.is_empty() && text[from..end].chars().all(char::is_whitespace)) {
            places.push(from..end);
        }
        from = end;
    }
    places
}

/// Whether a sentence may end before that letter: white space, or the source that it cites.
fn ends_before(next: char) -> bool {
    next.is_whitespace() || matches!(next, '[' | '【' | '¹' | '²' | '³' | '⁰' | '⁴'..='⁹')
}

/// Whether the full stop behind `text` belongs to an initial or a short title.
fn abbreviates(text: &str) -> bool {
    let word = text.rsplit(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default();
    let titles = ["mr", "mrs", "ms", "dr", "st", "prof", "no", "vs", "approx", "e", "g", "i", "z", "b", "bzw", "ca"];
    (word.chars().count() == 1 && word.chars().all(char::is_uppercase))
        || titles.contains(&word.to_lowercase().as_str())
}

/// Whether capitals in the middle of a sentence mark names: not in German, where they mark nouns, and not in a text in
/// capitals.
fn marks_names(text: &str) -> bool {
    let written: Vec<&str> = WORD.find_iter(text).map(|word| word.as_str()).collect();
    let words: Vec<String> = written.iter().map(|word| word.to_lowercase()).collect();
    let among = |list: &[&str]| words.iter().filter(|word| list.contains(&word.as_str())).count();
    let german = among(&[
        "der", "die", "das", "und", "ist", "nicht", "ein", "eine", "mit", "für", "auf", "den", "dem", "sie", "von",
    ]);
    let other = among(&["the", "of", "and", "is", "to", "in", "a", "le", "la", "de", "el", "et", "y", "il", "che"]);
    // Short answers may have none of those words. `Zum` and `Zur` begin names, also in English texts.
    let short = among(&["ihr", "ihre", "ihren", "wir", "wird", "wurde", "kommt", "monate", "werktage"])
        + written.iter().filter(|word| ["bitte", "zum", "zur"].contains(word)).count()
        + usize::from(written.first() == Some(&"Bitte"));
    let english = among(&["by", "with", "for", "at", "our", "please", "via"]);
    german <= other && (short == 0 || german + short <= other + english) && SMALL.is_match(text)
}

fn facts(answer: &str, blank: &str, place: Range<usize>, names: bool) -> Vec<Fact> {
    let text = &blank[place.clone()];
    let mut taken: Vec<Range<usize>> = Vec::new();
    let mut facts = Vec::new();
    let mut add = |within: Range<usize>, kind: Kind| {
        let at = place.start + within.start..place.start + within.end;
        facts.push(Fact { words: answer[at.clone()].trim().to_owned(), place: at, kind });
    };
    let free = |taken: &[Range<usize>], one: &Range<usize>| {
        taken.iter().all(|other| one.end <= other.start || other.end <= one.start)
    };
    for found in QUOTED.captures_iter(text) {
        let Some(inside) = found.iter().skip(1).flatten().next() else { continue };
        let words = words(inside.as_str());
        if !words.is_empty() {
            taken.push(found.get(0).map_or(inside.range(), |whole| whole.range()));
            add(inside.range(), Kind::Quote(words));
        }
    }
    for found in accounts(text) {
        if free(&taken, &found.range()) {
            taken.push(found.range());
            add(found.range(), Kind::Code(plain_code(found.as_str())));
        }
    }
    for (place, digits) in telephones(text) {
        if free(&taken, &place) {
            taken.push(place.clone());
            add(place, Kind::Telephone(digits));
        }
    }
    for date in dates(text) {
        let within = date.start..date.end;
        if free(&taken, &within) {
            taken.push(within.clone());
            add(within, Kind::Date(date));
        }
    }
    for found in tokens(text) {
        let code = plain_code(found.as_str());
        if free(&taken, &found.range()) && is_code(found.as_str()) {
            taken.push(found.range());
            add(found.range(), Kind::Code(code));
        }
    }
    let numbers = quantities(text);
    for duration in durations(text, &numbers) {
        let within = duration.whole.start..duration.whole.end;
        if free(&taken, &within) {
            taken.push(within.clone());
            add(within, Kind::Duration(Box::new(duration)));
        }
    }
    for number in numbers {
        let within = number.start..number.end;
        if free(&taken, &within) && !number.is_count() {
            taken.push(within.clone());
            if !number.is_weak() {
                add(within, Kind::Number(number));
            }
        }
    }
    if names {
        let line = blank[..place.start].trim_end_matches(|space: char| space.is_whitespace() && space != '\n');
        let begins_line = line.is_empty() || line.ends_with('\n');
        let label = LABEL.captures(text).filter(|_| begins_line).and_then(|parts| parts.name("last"));
        // `Steps` and `Address`.
        let label = label.filter(|last| {
            let last = last.as_str();
            LABELS.contains(&last) || last.strip_suffix('s').is_some_and(|last| LABELS.contains(&last))
        });
        for (found, initials) in capitalised(text) {
            if free(&taken, &found) && label.is_none_or(|last| last.start() != found.start) {
                let word = text[found.clone()].to_owned();
                add(found, Kind::Name(word, initials));
            }
        }
    }
    facts.sort_by_key(|fact| (fact.place.start, fact.place.end));
    facts
}

/// Places of capitalised words that do not begin a sentence, a line, a quotation or a clause behind a colon.
fn capitalised(text: &str) -> Vec<(Range<usize>, String)> {
    let words: Vec<regex::Match<'_>> = WORD.find_iter(text).collect();
    let is_capital = |word: &str| word.chars().next().is_some_and(char::is_uppercase);
    let capitals = words.iter().filter(|word| is_capital(word.as_str())).count();
    // A heading has capitals throughout.
    if words.len() > 1 && capitals * 10 >= words.len() * 8 && !text.trim_end().ends_with('.') {
        return Vec::new();
    }
    let begins = |word: &regex::Match<'_>| {
        // Emphasis begins no sentence.
        let before =
            text[..word.start()].trim_end_matches(|letter: char| letter.is_whitespace() || "*_".contains(letter));
        LEADING.is_match(before)
            || before
                .ends_with(['[', '【', ':', ';', '"', '“', '„', '«', '(', '–', '—', '*', '#', '|', '-', '•', '/', '\''])
    };
    let counts = |word: &&regex::Match<'_>| {
        let text = word.as_str();
        is_capital(text) && text.chars().count() > 1 && !COMMON.contains(&text) && !begins(word)
    };
    let mut initials = vec![String::new(); words.len()];
    let mut from = 0;
    for at in 0..words.len() {
        let adjoins = at > 0 && words[at - 1].end() + 1 == words[at].start();
        let runs_on = adjoins && is_capital(words[at].as_str()) && is_capital(words[at - 1].as_str());
        from = if runs_on { from } else { at };
        let run: String = words[from..=at]
            .iter()
            .filter_map(|word| word.as_str().chars().next())
            .flat_map(char::to_lowercase)
            .collect();
        initials[from..=at].fill(run);
    }
    words.iter().zip(initials).filter(|(word, _)| counts(word)).map(|(word, run)| (word.range(), run)).collect()
}

/// The runs of letters and digits of a text that may be codes.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = regex::Match<'_>> {
    CODE.find_iter(text)
}

/// Lower-case words and numbers of a text.
pub(super) fn words(text: &str) -> Vec<String> {
    let parts = text.split(|letter: char| !letter.is_alphanumeric());
    parts.filter(|part| !part.is_empty()).map(str::to_lowercase).collect()
}

/// Whether a token has letters and digits, and is neither an ordinal, a decade, nor a number with its unit; or is a version
/// or an address of the network, such as `15.2.1`.
pub(super) fn is_code(token: &str) -> bool {
    if is_version(token) {
        return true;
    }
    let has = |of: fn(&char) -> bool| token.chars().any(|letter| of(&letter));
    let lower = token.to_lowercase();
    let is_number = |amount: &str| amount.chars().all(|letter| letter.is_ascii_digit() || ".,".contains(letter));
    // `EUR120` and `kr120` are amounts; `RS232` is a code.
    let is_written = |code: &str| token.starts_with(&code.to_uppercase()) == (code.len() > 2);
    let is_amount = |code: &&str| is_written(code) && lower.strip_prefix(code).is_some_and(is_number);
    let is_side = |side: &str| side.parse::<f64>().is_ok_and(|side| side > COUNT);
    // `5 l/100 km`.
    let is_rate = |(unit, per): (&str, &str)| unit_of(unit).is_some() && is_number(per);
    if CURRENCY_CODES.iter().any(is_amount)
        || token.split_once('/').is_some_and(is_rate)
        || HOURS.is_match(token)
        || SIZE.is_match(token) && lower.split('x').any(is_side)
    {
        return false;
    }
    let rest = lower.trim_start_matches(|letter: char| letter.is_ascii_digit() || ".,/-".contains(letter));
    let behind_digits = ["st", "nd", "rd", "th", "s", "am", "pm", "er", "ème", "º", "ª"];
    has(char::is_ascii_digit)
        && has(|letter| letter.is_alphabetic())
        && !behind_digits.contains(&rest)
        && !AREAS.contains(&lower.as_str())
        && !(rest.chars().all(|letter| letter.is_alphabetic() || letter == '-') && rest.len() < lower.len())
}

/// Words in capitals that name nothing of a subject.
const COMMON: [&str; 8] = ["I'm", "I'll", "AI", "FAQ", "FAQs", "PDF", "ASAP", "OK"];

/// Units that look like codes.
const AREAS: [&str; 8] = ["m2", "m3", "mm2", "mm3", "cm2", "cm3", "km2", "km3"];

/// Whether a token is three numbers or more with points, and no number with separated thousands; `2.1.0-beta` is one, too.
fn is_version(token: &str) -> bool {
    let token = match token.split_once('-') {
        Some((bare, rest)) if rest.starts_with(char::is_alphabetic) => bare,
        _ => token,
    };
    let groups: Vec<&str> = token.split('.').collect();
    let is_number = |group: &&str| !group.is_empty() && group.chars().all(|letter| letter.is_ascii_digit());
    groups.len() > 2 && groups.iter().all(is_number) && groups[1..].iter().any(|group| group.len() != 3)
}

/// Letters and digits of a code, lower case; a version with its points, without a `v` before it.
pub(super) fn plain_code(token: &str) -> String {
    let bare = token.strip_prefix(['v', 'V']).unwrap_or(token);
    if is_version(bare) {
        return bare.to_lowercase();
    }
    token.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
