//! Whose money an amount is: `$120` is no `AU$120`.

use super::Token;
use crate::trace::text::is_currency;

/// Codes of money that is written with a dollar sign, too: `$120 CAD`.
const OF_DOLLARS: [&str; 8] = ["aud", "cad", "nzd", "hkd", "sgd", "twd", "mxn", "brl"];

/// Whether the amount of money that `part` begins with is one of another country at that place of the text, by the letters
/// before it or a code behind it: `$120` is in neither `AU$120` nor `$120 CAD`. A dollar sign alone may be that of `US$120`
/// or `USD$120`.
pub(super) fn is_other_money(text: &[Token], part: &[Token], start: usize) -> bool {
    let letter = |token: &Token| match token {
        Token::Letter(letter) => Some(*letter),
        Token::Number { .. } => None,
    };
    let is_of_prefix = |letter: &char| letter.is_ascii_lowercase();
    let word =
        |tokens: &[Token]| tokens.iter().map_while(letter).take_while(char::is_ascii_lowercase).collect::<String>();
    let own = part.iter().map_while(letter).take_while(is_of_prefix).count();
    let (sign, number) = (part.get(own).and_then(letter), part.get(own + 1));
    let Some(sign) = sign.filter(|sign| is_currency(*sign) && matches!(number, Some(Token::Number { .. }))) else {
        return false;
    };
    let before = text[..start].iter().rev().map_while(letter).take_while(is_of_prefix).count();
    let before = word(&text[start - before..start]);
    let is_bare = own == 0 && sign == '$';
    let behind = word(&text[start + part.len()..]);
    match before.len() {
        0 => is_bare && OF_DOLLARS.contains(&behind.as_str()),
        1..=3 => !(is_bare && ["us", "usd"].contains(&before.as_str())),
        _ => own > 0,
    }
}
