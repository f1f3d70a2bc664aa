//! Numbers in words: English ones, and those up to twelve of other languages; and fractions.

use super::fraction::fractions;
use super::units::scale_of;
use std::ops::Range;

const ONES: &[&str] = &[
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
];
const TENS: &[&str] = &["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// Ordinals that may say how many years: who wins in the seventh year in a row has won in seven years.
const ORDINALS: &[&str] = &[
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth",
];

/// Words beside a number that make another thing of it: `three point five`, `twenty past seven`, `acht Uhr dreißig`.
const OTHERS: &[&str] = &["point", "past", "uhr", "oh"];

/// Words before a number that say which ones, or that it is a manner of speaking.
const BEFORE: &[&str] = &["these", "those", "both", "my", "me", "us", "another"];

/// Tens of French before `six`, which English has too.
const BEFORE_SIX: &[&str] = &["vingt", "trente", "quarante", "cinquante", "soixante"];

/// The numbers from one to twelve in other languages. Words that are another word of English or German are left out.
const SMALL: &[&[&str]] = &[
    &["ein", "eine", "einem", "einen", "einer", "une", "uno", "una", "uma", "een", "ett", "один"],
    &["zwei", "deux", "dos", "dois", "duas", "twee", "två", "dwa", "dwie", "два", "две"],
    &["drei", "trois", "tres", "tre", "três", "drie", "trzy", "три"],
    &["vier", "quatre", "cuatro", "quattro", "quatro", "fyra", "cztery", "четыре"],
    &["fünf", "cinq", "cinco", "cinque", "vijf", "pięć", "пять"],
    &["sechs", "seis", "zes", "seks", "sześć", "шесть"],
    &["sieben", "siete", "sette", "sete", "zeven", "sju", "syv", "siedem", "семь"],
    &["acht", "huit", "ocho", "otto", "oito", "åtta", "otte", "osiem", "восемь"],
    &["neun", "neuf", "nueve", "nove", "negen", "nio", "dziewięć", "девять"],
    &["zehn", "dix", "diez", "dieci", "dez", "tien", "tio", "dziesięć", "десять"],
    &["elf", "onze", "undici", "elva", "elleve", "одиннадцать"],
    &["zwölf", "douze", "doce", "dodici", "twaalf", "tolv", "двенадцать"],
];

/// A number in words, and the same number in digits.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Numeral {
    /// Place of the words.
    words: Range<usize>,
    digits: String,
    spelled: Spelled,
}

/// How a number is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Spelled {
    #[default]
    Digits,
    Words,
    /// In words that may count nothing: an article (`one day`, `une semaine`), an ordinal, a word of a language whose larger
    /// numbers are not known, `those two days`.
    Weakly,
}

/// A text with digits in place of its numbers in words.
#[derive(Debug)]
pub(super) struct InDigits {
    pub text: String,
    moves: Vec<Move>,
}

/// What a number in words does to the places behind it.
#[derive(Debug)]
struct Move {
    /// Where its digits stand.
    at: usize,
    /// By how many bytes the words up to its end are longer than the digits.
    longer: isize,
    spelled: Spelled,
}

impl InDigits {
    /// Rewrites a text; `None` where it has no number in words and no fraction. A scale behind them stays: `three million` is `3 million`.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut numerals = numerals(text);
        for (words, digits, spelled) in fractions(text) {
            let is_free = |one: &Numeral| one.words.end <= words.start || words.end <= one.words.start;
            if numerals.iter().all(is_free) {
                numerals.push(Numeral { words, digits, spelled });
            }
        }
        numerals.sort_by_key(|numeral| numeral.words.start);
        if numerals.is_empty() {
            return None;
        }
        let (mut written, mut moves, mut from) = (String::with_capacity(text.len()), Vec::new(), 0);
        for Numeral { words, digits, spelled } in numerals {
            written.push_str(&text[from..words.start]);
            let at = written.len();
            written.push_str(&digits);
            from = words.end;
            moves.push(Move { at, longer: from as isize - written.len() as isize, spelled });
        }
        written.push_str(&text[from..]);
        Some(Self { text: written, moves })
    }

    /// The place in the text with words of a number in that with digits, and how it is written there.
    pub(super) fn place(&self, place: Range<usize>) -> (Range<usize>, Spelled) {
        let before = |end: usize| self.moves.partition_point(|one| one.at < end);
        let moved = |end: usize| before(end).checked_sub(1).map_or(0, |last| self.moves[last].longer);
        let first = self.moves.get(before(place.start)).filter(|first| first.at == place.start);
        let spelled = first.map_or(Spelled::Digits, |first| first.spelled);
        let there = |end: usize| end.saturating_add_signed(moved(end));
        (there(place.start)..there(place.end), spelled)
    }
}

/// A word of a text, lower case.
struct Word {
    place: Range<usize>,
    lower: String,
    /// Whether nothing but a space, a hyphen or the end of a line stands between it and the word before it.
    is_joined: bool,
}

/// The numbers in words of a text, in order.
fn numerals(text: &str) -> Vec<Numeral> {
    let words = words(text);
    let (mut found, mut at) = (Vec::new(), 0);
    while at < words.len() {
        let Some((value, end)) = number(&words, at) else {
            at += 1;
            continue;
        };
        found.extend(numeral(text, &words, at..end, value));
        at = end;
        // `nineteen eighty-four` and `nine ninety-nine` are no two numbers.
        while let Some((_, end)) = joined(&words, at).and_then(|at| number(&words, at)) {
            found.pop_if(|last| last.words.end == words[at - 1].place.end);
            at = end;
        }
    }
    found
}

/// A number in the words at a place, unless what stands beside it says that it is no number.
fn numeral(text: &str, words: &[Word], at: Range<usize>, value: u64) -> Option<Numeral> {
    let word = |at: usize| words.get(at).map_or("", |word| word.lower.as_str());
    let (first, before, after) = (word(at.start), at.start.checked_sub(1).map_or("", word), word(at.end));
    let place = words[at.start].place.start..words[at.end - 1].place.end;
    let digits = value.to_string();
    let rest = text[place.end..].trim_start_matches([' ', '\u{a0}']);
    let is_part = |rest: &str| rest.chars().take_while(|letter| letter.is_numeric()).count() >= 3;
    // `one 250 g pack` has no 1,250, and `thirty (30) days` no number without a unit.
    let runs_on = is_part(rest)
        || rest.strip_prefix('(').is_some_and(|rest| rest.starts_with(char::is_numeric))
        || digits.len() == 3 && text[..place.start].trim_end_matches([' ', '\u{a0}']).ends_with(char::is_numeric);
    let is_french = first == "six" && BEFORE_SIX.contains(&before);
    if runs_on || is_french || OTHERS.contains(&before) || OTHERS.contains(&after) {
        return None;
    }
    // `an hour and fifteen minutes`, `two hours and a half`.
    let is_rest = before == "and" && at.start > 2 && matches!(word(at.start - 3), "a" | "an");
    let has_half = word(at.end + 1) == "and" && (word(at.end + 2) == "half" || word(at.end + 3) == "half");
    let is_whole = value == 100 && matches!(after, "percent" | "per");
    let is_weak = value == 1
        || !is_english(first)
        || ordinal(first).is_some()
        || ordinal(word(at.end - 1)).is_some()
        || BEFORE.contains(&before)
        || is_rest
        || has_half
        || is_whole;
    let spelled = if is_weak { Spelled::Weakly } else { Spelled::Words };
    Some(Numeral { words: place, digits, spelled })
}

/// The next word, if it is joined to the one before it.
fn joined(words: &[Word], at: usize) -> Option<usize> {
    words.get(at).filter(|word| word.is_joined).map(|_| at)
}

/// The next word, or the one behind it if it is `and`.
fn behind_and(words: &[Word], at: usize) -> Option<usize> {
    let next = joined(words, at)?;
    if words[next].lower == "and" { joined(words, next + 1) } else { Some(next) }
}

/// The number at a word, and where its words end: an English one, an ordinal of years, or a word of another language. A
/// scale at its end is left: `three million` has 3.
fn number(words: &[Word], at: usize) -> Option<(u64, usize)> {
    let word = words.get(at)?.lower.as_str();
    let is_year = |at: usize| joined(words, at).is_some_and(|at| matches!(words[at].lower.as_str(), "year" | "years"));
    if let Some(value) = ordinal(word) {
        let next = if words.get(at + 1).is_some_and(|word| matches!(word.lower.as_str(), "consecutive" | "straight")) {
            at + 2
        } else {
            at + 1
        };
        return is_year(next).then_some((value, at + 1));
    }
    let small = || SMALL.iter().position(|spelled| spelled.contains(&word)).map(|small| (small as u64 + 1, at + 1));
    english(words, at).or_else(small)
}

/// An English number: groups with ever smaller scales.
fn english(words: &[Word], at: usize) -> Option<(u64, usize)> {
    let (mut value, mut end) = below_thousand(words, at)?;
    let (mut total, mut last) = (0_u64, u64::MAX);
    loop {
        let Some((factor, after)) = scale(words, end).filter(|(factor, _)| (1000..last).contains(factor)) else {
            return Some((total + value, end));
        };
        // What follows a scale is less than it: `one thousand and two thousand` are two numbers.
        let group = behind_and(words, after).and_then(|from| below_thousand(words, from));
        let group = group.filter(|(_, end)| scale(words, *end).is_none_or(|(next, _)| next < factor));
        let Some((next, next_end)) = group else {
            // `three million` stays so: the scale says that the number is a rounded one.
            return if total == 0 { Some((value, end)) } else { Some((total + value.saturating_mul(factor), after)) };
        };
        (total, last) = (total.saturating_add(value.saturating_mul(factor)), factor);
        (value, end) = (next, next_end);
    }
}

/// `five`, `twenty-five`, `two hundred and five`, `a hundred`; `a thousand` begins with `a` too.
fn below_thousand(words: &[Word], at: usize) -> Option<(u64, usize)> {
    let hundred = |at: usize| joined(words, at).filter(|at| words[*at].lower == "hundred");
    let article = || {
        let is_scale = hundred(at + 1).is_some() || scale(words, at + 1).is_some();
        (words[at].lower == "a" && is_scale).then_some((1, at + 1))
    };
    let (value, end) = below_hundred(words, at).or_else(article)?;
    let Some(after) = hundred(end).map(|at| at + 1) else { return Some((value, end)) };
    let rest = behind_and(words, after).and_then(|from| below_hundred(words, from));
    // `one hundred and two hundred` are two numbers.
    match rest.filter(|(_, end)| hundred(*end).is_none()) {
        Some((rest, end)) => Some((value * 100 + rest, end)),
        None => Some((value * 100, after)),
    }
}

fn below_hundred(words: &[Word], at: usize) -> Option<(u64, usize)> {
    let word = words.get(at)?.lower.as_str();
    if let Some(value) = ONES.iter().position(|one| *one == word) {
        return Some((value as u64, at + 1));
    }
    let tens = TENS.iter().position(|ten| *ten == word)? as u64 * 10 + 20;
    let next = joined(words, at + 1).map(|next| words[next].lower.as_str());
    let one = |next: &str| ONES.iter().position(|one| *one == next).map(|one| one as u64).or_else(|| ordinal(next));
    let ones = next.and_then(one).filter(|ones| (1..10).contains(ones));
    Some(ones.map_or((tens, at + 1), |ones| (tens + ones, at + 2)))
}

/// The factor of a scale word at a place, and where it ends.
fn scale(words: &[Word], at: usize) -> Option<(u64, usize)> {
    let word = words[joined(words, at)?].lower.as_str();
    let factor = if word.len() > 3 { scale_of(word)? as u64 } else { return None };
    (factor >= 1000).then_some((factor, at + 1))
}

fn ordinal(word: &str) -> Option<u64> {
    ORDINALS.iter().position(|ordinal| *ordinal == word).map(|at| at as u64 + 1)
}

fn is_english(word: &str) -> bool {
    ONES.contains(&word) || TENS.contains(&word) || word == "a"
}

/// The words of a text.
fn words(text: &str) -> Vec<Word> {
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(start) = text[from..].find(char::is_alphanumeric).map(|length| from + length) {
        let between = &text[from..start];
        let is_mark = |mark: char| mark.is_whitespace() || matches!(mark, '-' | '\u{2011}');
        let is_joined = from > 0 && between.chars().count() < 3 && between.chars().all(is_mark);
        let length = text[start..].find(|letter: char| !letter.is_alphanumeric());
        from = length.map_or(text.len(), |length| start + length);
        found.push(Word { place: start..from, lower: text[start..from].to_lowercase(), is_joined });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_words_are_written_in_digits_at_their_places() {
        for (text, written) in [
            ("within thirty business days", "within 30 business days"),
            ("Twenty-five euros", "25 euros"),
            ("two hundred and five", "205"),
            ("one hundred and thirty thousand", "130 thousand"),
            ("two thousand five hundred watts", "2500 watts"),
            ("three million", "3 million"),
            ("nineteen", "19"),
            ("two and three days", "2 and 3 days"),
            ("five, twenty", "5, 20"),
            ("fünf Tage", "5 Tage"),
            ("dos mil euros", "2 mil euros"),
            ("two hundred and more", "200 and more"),
            ("a hundred and fifty euros", "150 euros"),
            ("a thousand five hundred", "1500"),
            ("one hundred and two hundred euros", "100 and 200 euros"),
            ("one thousand and two thousand euros", "1 thousand and 2 thousand euros"),
            ("the seventh consecutive year", "the 7 consecutive year"),
            ("the twenty-second of May", "the 22 of May"),
            ("twenty-\nfive days", "25 days"),
        ] {
            let found = InDigits::of(text).expect("a number");
            assert_eq!(found.text, written);
            assert_eq!(found.place(0..written.len()).0, 0..text.len(), "{text}");
        }
        for none in [
            "one 250 g pack", "thirty (30) days", "tension", "someone", "oneself", "", "nine thirty",
            "nineteen eighty-four", "three point five percent", "trente-six mois", "the third day", "twenty past",
        ] {
            assert!(InDigits::of(none).is_none(), "{none}");
        }
        let found = InDigits::of("Of two shops, forty days and 10 euros").expect("numbers");
        let at = found.text.find("40").expect("a number");
        assert_eq!(found.place(at..at + "40 days".len()), (14..24, Spelled::Words));
        let at = found.text.find("10").expect("a number");
        assert_eq!(found.place(at..at + 2), (29..31, Spelled::Digits));
        assert_eq!(InDigits::of("one day").expect("a number").place(0..5).1, Spelled::Weakly);
    }

    proptest::proptest! {
        #[test]
        fn places_are_those_of_the_text_with_words(
            parts in proptest::collection::vec("one|two|twenty|hundred|thousand|and|million|five|dos|a|third|year|7|[ ,-]|ж|day", 0..14)
        ) {
            let text = parts.concat();
            if let Some(found) = InDigits::of(&text) {
                for (at, letter) in found.text.char_indices().filter(|(_, letter)| !letter.is_numeric()) {
                    let (place, letter) = (found.place(at..at + letter.len_utf8()).0, letter.to_string());
                    proptest::prop_assert_eq!(text.get(place), Some(letter.as_str()));
                }
            }
        }
    }
}
