//! Values of numbers, whichever language wrote their separators.

use super::is_digit;
use crate::trace::text::is_currency;

/// The euro and currencies of languages that write points between thousands.
const POINTED_CURRENCIES: [&str; 6] = ["€", "eur", "euro", "euros", "kr", "zł"];

/// The value of a number, with its sign.
#[derive(Debug)]
pub(super) struct Value {
    usual: String,
    /// As the languages read it whose points are between thousands: `1.450` is 1450.
    pointed: Option<String>,
    /// It is read so by what is beside it, too.
    pub(super) means_thousands: bool,
    /// It is written with a comma before decimals.
    comma: bool,
    /// It is written as in English, with a comma between thousands or a point before decimals other than three.
    pub(super) english: bool,
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
        Self {
            // An address such as `192.168.100.200` has three points.
            means_thousands: pointed && (groups.len() == 3 || amount()),
            pointed: pointed.then(|| format!("{sign}{}", groups.concat())),
            comma,
            english: match written.split_once(',') {
                Some((whole, _)) => usual.strip_prefix(whole).is_some_and(|rest| rest.starts_with(is_digit)),
                None => groups.len() == 2 && groups[1].len() != 3,
            },
            usual: format!("{sign}{usual}"),
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        let thousands = |one: &Self, other: &Self| one.means_thousands && one.pointed.as_ref() == Some(&other.usual);
        // Who writes `1,45` means 1450 by `1.450`.
        let decimals = |one: &Self, other: &Self| one.pointed.is_some() && other.comma;
        let usual = self.usual == other.usual && !decimals(self, other) && !decimals(other, self);
        usual || thousands(self, other) || thousands(other, self)
    }
}

/// Whether one of [`POINTED_CURRENCIES`] stands beside a number, with or without a space.
fn has_pointed_currency(before: &[char], after: &[char]) -> bool {
    let of_word = |letter: &&char| letter.is_alphabetic() || is_currency(**letter);
    let before = before.strip_suffix(&[' ']).unwrap_or(before);
    let after = after.strip_prefix(&[' ']).unwrap_or(after);
    let first: String = after.iter().take_while(of_word).collect();
    let length = before.iter().rev().take_while(of_word).count();
    let last: String = before[before.len() - length..].iter().collect();
    [first, last].iter().any(|word| POINTED_CURRENCIES.contains(&word.as_str()))
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
