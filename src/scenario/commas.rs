//! Finds numbers with a comma that YAML splits: `[49,99 €]` is a list of `49` and `99 €`.

use super::diagnostic::Mistake;
use crate::platform::yaml::{self, Kind, Node, Place, Style};
use crate::trace::text::CURRENCY_CODES;
use regex::Regex;
use std::sync::LazyLock;

/// Lists of texts that an answer or a passage has, by the keys around them. Ids and values of arguments are often numbers.
const TEXTS: [(&str, &str); 4] =
    [("answer", "contains"), ("answer", "not_contains"), ("nuggets", "any_of"), ("probes", "any_of")];

/// A list in brackets that may have such a number: other files are not read as a tree.
static IN_BRACKETS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\[[^\[\]]*?[0-9],[0-9]").ok());

/// A number with a comma, and nothing before it that makes a code, a date or a time of it.
const NUMBER: &str = r"(?:^|[^\w.,:/'-])[+-]?\d+(?:[.,' ]\d{3})*";

/// Such a number before a currency or a percent sign. Before another word both may be entries: `[30,60 days]`.
static AMOUNT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let codes = CURRENCY_CODES.map(str::to_uppercase).join("|");
    let words = "(?i:euros?|dollars?|yen|francs?|franken|kr|zł)";
    let sign = r"[A-Z]{0,3}\p{Sc}(?:$|[^\d.])";
    Regex::new(&format!(r"{NUMBER},\d{{1,3}} ?(?:%|{sign}|(?:{codes}|{words})\b)")).ok()
});

/// The mistakes in a scenario's text: neighbours of a list, written without a space between them, that make one number.
pub(super) fn split_numbers(text: &str) -> Vec<Mistake> {
    let mut found = Vec::new();
    if IN_BRACKETS.as_ref().is_some_and(|brackets| brackets.is_match(text))
        && let Ok(tree) = yaml::parse(text)
    {
        walk(&tree, ("", ""), &mut found);
    }
    // A list behind an anchor is there once for each alias.
    found.sort_by_key(|mistake| mistake.told.place);
    found.dedup();
    found
}

/// `keys`: those of the map around the node and of the node itself.
fn walk(node: &Node<'_>, keys: (&str, &str), found: &mut Vec<Mistake>) {
    match node.kind() {
        Kind::Map(pairs) => {
            for (key, value) in pairs {
                walk(value, (keys.1, key.written().unwrap_or_default()), found);
            }
        }
        Kind::List(items) if TEXTS.contains(&keys) => {
            for run in items.chunk_by(halves).filter(|run| run.len() > 1) {
                found.extend(mistake(run));
            }
        }
        Kind::List(items) => items.iter().for_each(|item| walk(item, keys, found)),
        _ => {}
    }
}

/// Whether nothing but a comma stands between two entries without quotes, and digits beside it.
fn halves(one: &Node<'_>, next: &Node<'_>) -> bool {
    let touch = one.place.line == next.place.line && one.place.column + one.place.length + 1 == next.place.column;
    match (one.kind(), next.kind()) {
        (Kind::Scalar(one, Style::Plain), Kind::Scalar(next, Style::Plain)) => {
            touch && one.ends_with(is_digit) && next.starts_with(is_digit)
        }
        _ => false,
    }
}

fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit()
}

/// The mistake of `run`, if its entries make a number of one thing.
fn mistake(run: &[Node<'_>]) -> Option<Mistake> {
    let parts: Vec<&str> = run.iter().filter_map(Node::written).collect();
    let whole = parts.join(",");
    if !AMOUNT.as_ref().is_some_and(|amount| amount.is_match(&whole)) {
        return None;
    }
    let place = Place { length: whole.chars().count() as u32, ..run[0].place };
    let message = format!("YAML reads this as {} entries: `{}`", parts.len(), parts.join("`, `"));
    let mistake = Mistake::placed(place, "split-number", message)
        .label(format!("write \"{}\"", whole.replace('"', "\\\"")))
        .help("put a space behind the comma if they are entries");
    Some(mistake)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(expect: &str) -> String {
        let text = format!("cases:\n  - case: a\n    expect: {expect}\n");
        let labels = split_numbers(&text).into_iter().filter_map(|mistake| mistake.told.label);
        labels.map(|label| label.replace("write ", "")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_number_that_a_comma_splits_is_a_mistake() {
        for (list, number) in [
            ("[49,99 €]", "49,99 €"),
            ("[1,299 dollars]", "1,299 dollars"),
            ("[a refund, the price of 1.299,00 €, b]", "the price of 1.299,00 €"),
            ("[2,5 %]", "2,5 %"),
            ("[12,5%]", "12,5%"),
            ("[49,99 US$ plus tax]", "49,99 US$ plus tax"),
            ("[49,99 Euro]", "49,99 Euro"),
            ("[1.500,00 zł]", "1.500,00 zł"),
            ("[1299,99 EUR]", "1299,99 EUR"),
            ("[1,234,567 yen]", "1,234,567 yen"),
            ("[-3,50 €]", "-3,50 €"),
            ("['a', \"b\", don't, 12,50 €]", "12,50 €"),
            ("[(49,99 €)]", "(49,99 €)"),
            ("[\n  59,99 €,\n  x]", "59,99 €"),
        ] {
            assert_eq!(told(&format!("{{answer: {{contains: {list}}}}}")), format!("\"{number}\""), "{list}");
        }
        for expect in [
            "{answer: {not_contains: [49,99 €, 59,99 €]}}",
            "{answer: {nuggets: [{any_of: [49,99 €]}, {any_of: [59,99 €]}]}}",
            "{context: {probes: [{any_of: [49,99 €, 59,99 €]}]}}",
            "{answer: {contains: &m [49,99 €, 59,99 €]}}\n  - expect: {answer: {contains: *m}}",
        ] {
            assert_eq!(told(expect), "\"49,99 €\" \"59,99 €\"", "{expect}");
        }
    }

    #[test]
    fn a_list_of_numbers_is_no_mistake() {
        for list in [
            "[1,2,3]", "[1,2]", "[49, 99 €]", "['49,99 €']", "[\"49\",\"99\"]", "49,99 €", "[10,20,30]", "[A1,20 mm]",
            "[E-21,22]", "[10:30,11:45]", "[2024,2025]", "[a,b]", "[12.5,13.5]", "[v1,20]", "[M8,10 mm]", "[§ 5,6]",
            "[2024-01-15,16 Uhr]", "[10 km,20 km]", "[3 days,12 days]", "[49 ,99 €]", "[7,12-14]",
            "[10.0.0.1,10.0.0.2]", "[49,99]", "[10,20]", "[30,60 days]", "[7,14 Tage]", "[16,32 GB]", "[1,2 or 3]",
            "[2025,26 Season]", "[2,4 GHz,5 GHz]", "[1,5l]", "[€49,99]", "[10,20 $5 coupons]", "[5,10 krill]",
            "[1,2 try]",
        ] {
            assert_eq!(told(&format!("{{answer: {{contains: {list}}}}}")), "", "{list}");
        }
        for expect in [
            "{answer: {cites: [101,102], evidence: [10,20]}}",
            "{calls: [{never: {tool: t, arguments: {include: [10,20], any_of: {one_of: [10,20]}}}}]}",
            "{reply: {/numbers: {equals: [10,20]}}}",
        ] {
            assert_eq!(told(expect), "", "{expect}");
        }
    }
}
