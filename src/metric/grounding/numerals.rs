//! Numbers in words: English ones, and those up to twelve of other languages.

use super::units::scale_of;
use std::ops::Range;

const ONES: &[&str] = &[
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
];
const TENS: &[&str] = &["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// Ordinals from the third on, as `second` is also a unit: who wins for the seventh year has won for seven years.
const ORDINALS: &[&str] =
    &["third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth"];

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
    /// Whether it may count nothing: an article (`one day`, `une semaine`, and `dos` of Portuguese) or an ordinal.
    is_weak: bool,
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
    longer: usize,
    is_weak: bool,
}

impl InDigits {
    /// Rewrites a text; `None` where it has no number in words. A scale behind them stays: `three million` is `3 million`.
    pub(super) fn of(text: &str) -> Option<Self> {
        let numerals = numerals(text);
        if numerals.is_empty() {
            return None;
        }
        let (mut written, mut moves, mut from) = (String::with_capacity(text.len()), Vec::new(), 0);
        for Numeral { words, digits, is_weak } in numerals {
            written.push_str(&text[from..words.start]);
            let at = written.len();
            written.push_str(&digits);
            from = words.end;
            moves.push(Move { at, longer: from - written.len(), is_weak });
        }
        written.push_str(&text[from..]);
        Some(Self { text: written, moves })
    }

    /// The place in the text with words of a place in that with digits, and whether it begins with a word that may count
    /// nothing.
    pub(super) fn place(&self, place: Range<usize>) -> (Range<usize>, bool) {
        let before = |end: usize| self.moves.partition_point(|one| one.at < end);
        let moved = |end: usize| before(end).checked_sub(1).map_or(0, |last| self.moves[last].longer);
        let first = self.moves.get(before(place.start)).filter(|first| first.at == place.start);
        (place.start + moved(place.start)..place.end + moved(place.end), first.is_some_and(|first| first.is_weak))
    }
}

/// The numbers in words of a text, in order.
fn numerals(text: &str) -> Vec<Numeral> {
    let mut found = Vec::new();
    let mut run = Run::default();
    for word in words(text) {
        let lower = text[word.clone()].to_lowercase();
        let joined = matches!(&text[run.end..word.start], " " | "-" | "\u{2011}" | "\u{a0}");
        if !(joined && run.add(&lower, word.clone())) {
            let is_part = joined && run.number_end > 0 && run.number_end == run.end;
            found.extend(std::mem::take(&mut run).end());
            // The end of `twenty-third` is no number of its own.
            if !is_part || !ORDINALS.contains(&&*lower) {
                run.begin(&lower, word);
            }
        }
    }
    found.extend(run.end());
    let is_digit = |letter: Option<char>| letter.is_some_and(char::is_numeric);
    // `one 250 g pack` has no 1,250, and `thirty (30) days` no number without a unit.
    found.retain(|numeral: &Numeral| {
        let before = text[..numeral.words.start].trim_end();
        let after = text[numeral.words.end..].trim_start_matches([' ', '\u{a0}', '(']);
        !is_digit(before.chars().next_back()) && !is_digit(after.chars().next())
    });
    found
}

/// Places of the words of a text.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text[from..].find(char::is_alphanumeric)?;
        from = text[start..].find(|letter: char| !letter.is_alphanumeric()).map_or(text.len(), |length| start + length);
        Some(start..from)
    })
}

/// The words of one number so far.
#[derive(Debug, Default)]
struct Run {
    start: usize,
    /// Ends of the last word, and of the last one that is no `and`.
    end: usize,
    number_end: usize,
    /// What is complete by its scale (`two thousand`), and what is not.
    total: u64,
    current: u64,
    /// The number before its last word, and the end of that, where the last word is a scale.
    unscaled: Option<(u64, usize)>,
    is_weak: bool,
}

impl Run {
    /// Begins a number with a word, if it is one.
    fn begin(&mut self, word: &str, place: Range<usize>) {
        let english = ONES.iter().position(|one| *one == word).or_else(|| tens(word));
        let ordinal = || ORDINALS.iter().position(|ordinal| *ordinal == word).map(|at| at + 3);
        let other = || SMALL.iter().position(|spelled| spelled.contains(&word)).map(|at| at + 1);
        if let Some(value) = english.or_else(ordinal).or_else(other) {
            (self.start, self.end, self.number_end) = (place.start, place.end, place.end);
            self.current = value as u64;
            self.is_weak = value == 1 || word == "dos" || ordinal().is_some();
            // Ordinals and numbers of other languages are one word here.
            if english.is_none() {
                self.total = u64::MAX;
            }
        }
    }

    /// Whether a word goes on with the number, which then has it.
    fn add(&mut self, word: &str, place: Range<usize>) -> bool {
        if self.number_end == 0 || self.total == u64::MAX {
            return false;
        }
        let has_and = self.end != self.number_end;
        if let Some(value) = ONES.iter().position(|one| *one == word).or_else(|| tens(word)).map(|value| value as u64) {
            let after_tens =
                (20..100).contains(&(self.current % 100)) && self.current % 10 == 0 && (1..10).contains(&value);
            let after_scale = self.current % 100 == 0 && self.unscaled.is_some();
            if !(after_scale || after_tens && !has_and) {
                return false;
            }
            (self.current, self.unscaled) = (self.current + value, None);
        } else if word == "and" && self.unscaled.is_some() && !has_and {
            self.end = place.end;
            return true;
        } else if let Some(factor) = (word.len() > 3 && !has_and).then(|| scale_of(word)).flatten()
            && self.current > 0
        {
            let (factor, before) = (factor as u64, (self.total + self.current, self.number_end));
            if factor > 100 {
                (self.total, self.current) = (self.total + self.current.saturating_mul(factor), 0);
            } else {
                self.current = self.current.saturating_mul(factor);
            }
            self.unscaled = Some(before);
        } else {
            return false;
        }
        (self.end, self.number_end, self.is_weak) = (place.end, place.end, false);
        true
    }

    fn end(self) -> Option<Numeral> {
        if self.number_end == 0 {
            return None;
        }
        let total = if self.total == u64::MAX { 0 } else { self.total };
        // Of `three million`, the scale says that the number is a rounded one.
        let (value, end) = match self.unscaled {
            Some((before, end)) if self.current == 0 && before < 1000 => (before, end),
            _ => (total.saturating_add(self.current), self.number_end),
        };
        Some(Numeral { words: self.start..end, digits: value.to_string(), is_weak: self.is_weak })
    }
}

fn tens(word: &str) -> Option<usize> {
    TENS.iter().position(|ten| *ten == word).map(|at| (at + 2) * 10)
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
            ("nine thirty", "9 30"),
            ("five, twenty", "5, 20"),
            ("fünf Tage", "5 Tage"),
            ("dos mil euros", "2 mil euros"),
            ("two hundred and more", "200 and more"),
            ("the seventh year", "the 7 year"),
            ("twenty-third", "20-third"),
        ] {
            let found = InDigits::of(text).expect("a number");
            assert_eq!(found.text, written);
            assert_eq!(found.place(0..written.len()).0, 0..text.len(), "{text}");
        }
        for none in ["one 250 g pack", "thirty (30) days", "a hundred", "tension", "someone", "oneself", ""] {
            assert!(InDigits::of(none).is_none(), "{none}");
        }
        let found = InDigits::of("Of two shops, forty days and 10 euros").expect("numbers");
        let at = found.text.find("40").expect("a number");
        assert_eq!(found.place(at..at + "40 days".len()), (14..24, false));
        let at = found.text.find("10").expect("a number");
        assert_eq!(found.place(at..at + 2), (29..31, false));
        assert!(InDigits::of("one day").expect("a number").place(0..5).1);
    }

    proptest::proptest! {
        #[test]
        fn places_are_those_of_the_text_with_words(
            parts in proptest::collection::vec("one|two|twenty|hundred|thousand|and|million|five|dos|7|[ ,-]|ж|day", 0..14)
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
