//! Numbers in groups that name something, and are compared digit by digit: telephones, accounts, cards.

use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// A telephone number with its country: `+49 (0)30 123-4567`.
static TELEPHONE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\+\d{1,3}(?:[\u{a0} ./-]?\(?\d{1,12}\)?){1,6}").expect("an expression"));
/// A telephone number without its country: `0800 123 4567`, `01 23 45 67 89`.
static NATIONAL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b0(?:\d{2,4}(?:[ \u{a0}/-]{1,3}\d{2,8}){1,4}|\d(?:[ \u{a0}.]\d\d){4})\b").expect("an expression")
});
/// An account or a card in groups of four: `DE89 3704 0044 0532 0130 00`, `4111 1111 1111 1111`. A word in capitals behind an
/// account is no group: only the bank's, which is the first, may be without a digit.
static ACCOUNT: LazyLock<Regex> = LazyLock::new(|| {
    let gap = r"[ \u{a0}]";
    let group = r"(?:\d[A-Z\d]{3}|[A-Z]\d[A-Z\d]{2}|[A-Z]{2}\d[A-Z\d]|[A-Z]{3}\d)";
    Regex::new(&format!(
        r"\b(?:[A-Z]{{2}}\d\d{gap}[A-Z\d]{{4}}(?:{gap}{group}){{1,6}}(?:{gap}\d{{1,3}})?|\d{{4}}(?:[ \u{{a0}}-]\d{{4}}){{3}})\b"
    ))
    .expect("an expression")
});

/// The telephone numbers of a text, with their digits.
pub(super) fn telephones(text: &str) -> impl Iterator<Item = (Range<usize>, String)> {
    let with_country =
        TELEPHONE.find_iter(text).filter_map(|found| Some((found.range(), international(found.as_str())?)));
    let national = |found: &str| Some(plain(found)).filter(|digits| (8..=13).contains(&digits.len()));
    with_country
        .chain(NATIONAL.find_iter(text).filter_map(move |found| Some((found.range(), national(found.as_str())?))))
}

fn plain(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

/// The digits of a telephone number; `None` of an amount, such as `+10 000 000`.
fn international(text: &str) -> Option<String> {
    let text = text.replace("(0)", " ");
    let groups: Vec<&str> = text.split(|letter: char| !letter.is_ascii_digit()).filter(|one| !one.is_empty()).collect();
    let are_thousands = groups[1..].iter().all(|group| group.len() == 3);
    let digits = groups.concat();
    ((8..=15).contains(&digits.len()) && (groups.len() == 1 || !are_thousands)).then_some(digits)
}

/// The accounts and cards of a text that are written in groups.
pub(super) fn accounts(text: &str) -> impl Iterator<Item = regex::Match<'_>> {
    ACCOUNT.find_iter(text).filter(|found| found.as_str().starts_with(char::is_alphabetic) || is_card(found.as_str()))
}

/// Whether sixteen digits are a card by their first and their last one, which checks the others (Luhn); years and round
/// numbers beside each other are none.
fn is_card(groups: &str) -> bool {
    let is_other = |one: &str| one.starts_with("19") || one.starts_with("20") || one.ends_with("00");
    let are_others = groups.split([' ', '\u{a0}', '-']).all(is_other);
    let digits = groups.chars().filter_map(|letter| letter.to_digit(10)).rev().enumerate();
    let sum: u32 = digits.map(|(at, digit)| if at % 2 == 1 { digit * 2 / 10 + digit * 2 % 10 } else { digit }).sum();
    groups.starts_with(['2', '3', '4', '5', '6']) && !are_others && sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use crate::metric::grounding::unsupported;

    #[test]
    fn what_is_written_in_groups_is_compared_as_a_whole() {
        for (answer, source, is_supported) in [
            ("Pay to DE89 3704 0044 0532 0130 00.", "IBAN: DE89370400440532013000", true),
            ("Pay to DE89370400440532013000.", "IBAN: DE89 3704 0044 0532 0130 00", true),
            ("Pay to DE89 3704 0044 0532 0130 00.", "IBAN: DE89 3704 0044 0532 0130 01", false),
            ("Pay to DE89 3704 0044 0532 0130 00.", "IBAN: DE89 0044 3704 0532 0130 00", false),
            ("Pay to AT61 1904 3002 3457 3201 BIC RLNWATWW.", "AT61 1904 3002 3457 3201, BIC: RLNWATWW", true),
            ("Pay to AT61 1904 3002 3457 3201.", "IBAN AT61 1904 3002 3457 3201 BANK Linz", true),
            ("Pay to GB82 WEST 1234 5698 7654 32.", "IBAN GB82WEST12345698765432", true),
            ("Pay to GB82 WEST 1234 5698 7654 32.", "IBAN GB82 WEST 1234 5698 7654 33", false),
            ("The card is 4111 1111 1111 1111.", "card 4111-1111-1111-1111", true),
            ("The card is 4111 1111 1111 1111.", "card 1111 4111 1111 1111", false),
            ("The card is 4111 0111 1111 1113.", "card 4111011111111113", true),
            ("Pay to BE68 5390 0754 7034.", "IBAN BE68539007547034", true),
            ("The sizes are 1000 2000 3000 4000.", "1000, 2000, 3000 and 4000", true),
            ("The sizes are 4000 5123 6234 7345.", "4000, 5123, 6234 and 7345", true),
            ("In 2019 2020 2021 2022 it rose.", "2022, 2021, 2020 and 2019", true),
            ("Call 0800 123 4567.", "Call 0800-1234567.", true),
            ("Call 0800 123 4567.", "Call 0800 or 4567, extension 123.", false),
            ("Call 030 123456.", "Call +49 30 123456.", true),
            ("Call 030 123456.", "Call +49 40 123456.", false),
            ("Call 01 23 45 67 89.", "Call 01.23.45.67.89.", true),
            ("Call 01 23 45 67 89.", "Call 01.23.45.67.80.", false),
            ("It uses 5 l/100 km.", "It uses 6 l/100 km.", false),
            ("It needs 2.1.0-beta.", "It needs 2.1.0.", false),
            ("It needs v2.1.0-beta.", "It needs 2.1.0-beta.", true),
        ] {
            let (_, missing) = unsupported(answer, source);
            assert_eq!(missing.is_empty(), is_supported, "{answer} by {source}");
        }
    }
}
