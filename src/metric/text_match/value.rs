//! Values of numbers, whichever language wrote their separators.

use super::super::grounding::{says_price_per_small_unit, scale_of, unit_of};
use super::{Token, is_digit, is_money};
use crate::trace::text::is_currency;

/// The euro and currencies of languages that write points between thousands.
const POINTED_CURRENCIES: [&str; 6] = ["€", "eur", "euro", "euros", "kr", "zł"];

/// The value of a number, with its sign.
#[derive(Debug)]
pub(super) struct Value {
    usual: String,
    /// As the languages read it whose points are between thousands: `1.450` is 1450.
    pointed: Option<String>,
    /// It has points between several groups.
    is_grouped: bool,
    /// It is read so by what is beside it, too.
    means_thousands: bool,
    /// As languages with a decimal comma read one before three digits: `1,450` is 1.45.
    commaed: Option<String>,
    /// It is written with a comma before decimals.
    comma: bool,
    /// It is an amount that is written so, and no list such as `4,5`.
    has_comma_decimals: bool,
    /// It is written as in English, with a comma between thousands or a point before decimals other than three.
    english: bool,
}

impl Value {
    /// `beside`: what is before and behind the number. `expected`: an author wrote it, who writes no three zeros as decimals.
    pub(super) fn new(sign: &str, written: &str, beside: (&[char], &[char]), expected: bool) -> Self {
        let groups: Vec<&str> = written.split('.').collect();
        let pointed = matches!(groups[0].len(), 1..=3)
            && !groups[0].starts_with('0')
            && groups.len() > 1
            && groups[1..].iter().all(|group| group.len() == 3 && group.chars().all(is_digit));
        let comma = written.split_once(',').is_some_and(|(_, rest)| rest.len() != 3 && rest.chars().all(is_digit));
        let amount = || has_pointed_currency(beside.0, beside.1) || expected && groups[1] == "000";
        let usual = value(written);
        let parts =
            written.split_once(',').filter(|(whole, rest)| rest.len() == 3 && usual == format!("{whole}{rest}"));
        let is_per_small_unit = is_price_per_small_unit(beside.0, beside.1);
        let mut read = Self {
            // An address such as `192.168.100.200` has three points.
            means_thousands: pointed && (groups.len() == 3 || amount() && !is_per_small_unit),
            is_grouped: groups.len() > 2,
            commaed: parts.map(|(whole, rest)| format!("{sign}{}", value(&format!("{whole}.{rest}")))),
            pointed: pointed.then(|| format!("{sign}{}", groups.concat())),
            comma,
            has_comma_decimals: comma && is_amount(written, beside.0, beside.1),
            english: match written.split_once(',') {
                Some((whole, _)) => {
                    !is_per_small_unit && usual.strip_prefix(whole).is_some_and(|rest| rest.starts_with(is_digit))
                }
                None => groups.len() == 2 && groups[1].len() != 3,
            },
            usual: format!("{sign}{usual}"),
        };
        if is_per_small_unit {
            read.read_decimals();
        }
        read
    }

    /// Reads a comma before three digits as the decimal one that the text has elsewhere.
    fn read_decimals(&mut self) {
        if let Some(decimal) = &self.commaed {
            self.usual.clone_from(decimal);
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        let thousands = |one: &Self, other: &Self| one.means_thousands && one.pointed.as_ref() == Some(&other.usual);
        // Who writes `1,45` means 1450 by `1.450`.
        let decimals = |one: &Self, other: &Self| one.pointed.is_some() && other.comma;
        // In one language, `1,450` and `1.450` are two numbers.
        let marked = |one: &Self, other: &Self| one.commaed.is_some() && other.pointed.is_some() && !other.is_grouped;
        if marked(self, other) || marked(other, self) {
            return false;
        }
        let usual = self.usual == other.usual && !decimals(self, other) && !decimals(other, self);
        let written = self.commaed.is_some() && self.commaed == other.commaed;
        usual || written || thousands(self, other) || thousands(other, self)
    }
}

/// Reads the separators of numbers as the other numbers of the text have them: as English, or with decimal commas.
pub(super) fn read_separators(tokens: &mut [Token]) {
    let any = |is: &dyn Fn(&Value) -> bool| {
        tokens.iter().any(|token| matches!(token, Token::Number { value, coded: false, .. } if is(value)))
    };
    let has_commas = any(&|value| value.has_comma_decimals);
    let is_english = any(&|value| value.english && !(has_commas && value.commaed.is_some()));
    for token in tokens {
        match token {
            Token::Number { value, .. } if is_english => value.means_thousands = false,
            Token::Number { value, .. } if has_commas => value.read_decimals(),
            _ => {}
        }
    }
}

/// Whether one of [`POINTED_CURRENCIES`] stands beside a number, with or without a space.
fn has_pointed_currency(before: &[char], after: &[char]) -> bool {
    let before = before.strip_suffix(&[' ']).unwrap_or(before);
    let length = before.iter().rev().take_while(|letter| is_of_currency(**letter)).count();
    let last: String = before[before.len() - length..].iter().collect();
    [first_word(after), last].iter().any(|word| POINTED_CURRENCIES.contains(&word.as_str()))
}

/// Whether a number with a comma is an amount: it has two decimals, or money, a unit, a percent sign or a scale beside it.
fn is_amount(written: &str, before: &[char], after: &[char]) -> bool {
    let word = first_word(after);
    let sign = after.strip_prefix(&[' ']).unwrap_or(after).first();
    is_money(before)
        || sign.is_some_and(|sign| matches!(sign, '%' | '‰' | '°'))
        || unit_of(&word).is_some()
        || scale_of(&word).is_some()
        || written.rsplit(',').next().is_some_and(|decimals| decimals.len() == 2)
}

/// The word or sign behind a number, with or without a space.
fn first_word(after: &[char]) -> String {
    after.strip_prefix(&[' ']).unwrap_or(after).iter().take_while(|letter| is_of_currency(**letter)).collect()
}

fn is_of_currency(letter: char) -> bool {
    letter.is_alphabetic() || is_currency(letter)
}

/// Whether a number, by the text behind it, is a price per litre, kilo, kWh or minute in such a currency: `1,749 € per litre`.
fn is_price_per_small_unit(before: &[char], after: &[char]) -> bool {
    let behind: String = after.iter().collect();
    let currency = Some(first_word(after)).filter(|word| POINTED_CURRENCIES.contains(&word.as_str()));
    let behind = currency.and_then(|word| behind.trim_start().strip_prefix(&word)).unwrap_or(&behind);
    has_pointed_currency(before, after) && says_price_per_small_unit(behind)
}

/// Canonical spelling of a number: no thousands separators, a decimal point, no trailing zeros. Anything else, such
/// as a version or a date, is unchanged.
fn value(written: &str) -> String {
    if written.starts_with('.') {
        return value(&format!("0{written}"));
    }
    // `1.450,5`: points between the thousands, and a comma as the decimal mark.
    if let Some((whole, decimals)) = written.split_once(',')
        && let Some((first, rest)) = whole.split_once('.')
        && (1..=3).contains(&first.len())
        && !first.starts_with('0')
        && rest.split('.').all(|group| group.len() == 3)
        && decimals.chars().all(is_digit)
    {
        return value(&format!("{}.{decimals}", whole.replace('.', "")));
    }
    let groups: Vec<&str> = written.split(',').collect();
    let whole = groups[groups.len() - 1].split('.').next().unwrap_or_default();
    let thousands = groups.len() > 1
        && (1..=3).contains(&groups[0].len())
        && !groups[0].starts_with('0')
        && !groups[0].contains('.')
        && groups[1..groups.len() - 1].iter().all(|group| group.len() == 3)
        && whole.len() == 3;
    let plain = match (thousands, groups.len()) {
        (true, _) => groups.concat(),
        (false, 2) if !written.contains('.') => groups.join("."),
        _ => written.to_owned(),
    };
    if plain.matches(['.', ',']).count() == 1 && plain.contains('.') {
        return plain.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    plain
}
