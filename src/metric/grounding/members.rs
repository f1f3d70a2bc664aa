//! Units that the members of data state: `"weight_g": 850` is 850 g, and so is a 850 with `"unit": "g"` beside it.

use super::units::unit_of;
use crate::trace::text::CURRENCY_CODES;
use regex::Regex;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A member with a number or a short text, in JSON or on a line: `"weight_g": 850`, `currency: USD`.
static MEMBER: LazyLock<Regex> = LazyLock::new(|| {
    let value = r#""?(?:(?P<number>-?\d+(?:[.,]\d+)*)|(?P<text>[\p{L}%°$£¥€][\p{L}%°/²³ ]{0,15}))"?"#;
    let end = r"[ \t]*(?:[,;}\]\n]|$)";
    Regex::new(&format!(r#"\b(?P<name>[A-Za-z][\w.-]*)"?\s?[:=]\s{{0,4}}{value}{end}"#)).expect("an expression")
});
/// The words of a name, some with the digit of a square: `priceUsd`, `area_m2`.
static WORDS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[A-Z]+[a-z]*[23]?|[a-z]+[23]?").expect("an expression"));

/// Members that say the unit of the numbers beside them, and the currency of the amounts of money.
const UNITS: [&str; 4] = ["unit", "units", "uom", "unitcode"];
const CURRENCIES: [&str; 3] = ["currency", "currencycode", "pricecurrency"];
/// Words in the names of what has such a unit where other numbers stand there too.
const MEASURED: [&str; 16] = [
    "value", "amount", "quantity", "min", "max", "minimum", "maximum", "from", "to", "low", "high", "length", "width",
    "height", "depth", "thickness",
];
/// Those of amounts of money.
const MONEY: [&str; 23] = [
    "price", "prices", "amount", "total", "subtotal", "cost", "costs", "fee", "fees", "value", "balance", "sum",
    "rent", "salary", "tax", "discount", "deposit", "refund", "paid", "due", "min", "max", "revenue",
];
/// Words in the names of what `min` is a minute of.
const TIMES: [&str; 6] = ["duration", "time", "timeout", "interval", "delay", "wait"];
/// Units that are seldom one at the end of a name: they are those of dates, marks and forms of other words.
const NO_UNITS: [&str; 15] =
    ["day", "week", "month", "year", "hour", "minute", "second", "tag", "bit", "pa", "mes", "ore", "dag", "ay", "mil"];

/// A number that a member of data holds.
struct Number<'t> {
    words: Vec<String>,
    /// Where its digits end.
    end: usize,
    /// The object that it stands in.
    object: usize,
    /// The unit that its name states.
    unit: Option<Cow<'t, str>>,
}

/// A text in which such numbers have their units behind them.
pub(super) fn with_units(text: &str) -> Cow<'_, str> {
    let (mut numbers, mut beside) = (Vec::new(), BTreeMap::new());
    let mut braces = text.match_indices(['{', '}']).peekable();
    let (mut open, mut objects) = (vec![0], 0);
    for parts in MEMBER.captures_iter(text) {
        let name = parts.name("name").expect("a part of the expression");
        while let Some((_, brace)) = braces.next_if(|(place, _)| *place < name.start()) {
            if brace == "{" {
                objects += 1;
                open.push(objects);
            } else {
                open.pop();
            }
        }
        let object = open.last().copied().unwrap_or_default();
        let name = name.as_str().rsplit('.').next().unwrap_or_default();
        let words: Vec<String> = WORDS.find_iter(name).map(|word| word.as_str().to_lowercase()).collect();
        if let Some(number) = parts.name("number") {
            numbers.push(Number { words, end: number.end(), object, unit: stated(name) });
        } else if let Some(said) = parts.name("text") {
            let (name, is_currency) = (words.concat(), CURRENCIES.contains(&&*words.concat()));
            if is_currency || UNITS.contains(&&*name) {
                beside.insert((object, is_currency), said.as_str().trim());
            }
        }
    }
    let mut without_unit: BTreeMap<usize, usize> = BTreeMap::new();
    for number in numbers.iter().filter(|number| number.unit.is_none()) {
        *without_unit.entry(number.object).or_default() += 1;
    }
    let beside_it = |number: &Number<'_>, is_currency: bool, known: &[&str]| {
        let is_alone = without_unit.get(&number.object) == Some(&1);
        let is_meant = is_alone || number.words.iter().any(|word| known.contains(&&**word));
        beside.get(&(number.object, is_currency)).copied().filter(|_| is_meant)
    };
    let (mut read, mut from) = (String::new(), 0);
    for number in &numbers {
        let unit = number.unit.as_deref().or_else(|| beside_it(number, false, &MEASURED));
        if let Some(unit) = unit.or_else(|| beside_it(number, true, &MONEY)) {
            read.extend([&text[from..number.end], " ", unit]);
            from = number.end;
        }
    }
    if from == 0 { Cow::Borrowed(text) } else { Cow::Owned(read + &text[from..]) }
}

/// The unit that a name ends with, and what it is per: `price_usd_per_kg`. A word alone is one where it is plural or a code.
fn stated(name: &str) -> Option<Cow<'_, str>> {
    let words: Vec<&str> = WORDS.find_iter(name).map(|word| word.as_str()).collect();
    let end = words.iter().position(|word| word.eq_ignore_ascii_case("per")).unwrap_or(words.len());
    let (last, before) = words[..end].split_last()?;
    let lower = last.to_lowercase();
    let is_of = |known: &[&str]| before.iter().any(|word| known.contains(&&*word.to_lowercase()));
    let may_be_alone = lower.len() > 3 && lower.ends_with('s') || lower.len() == 3 && CURRENCY_CODES.contains(&&*lower);
    let unit = match &*lower {
        "c" if is_of(&["temp", "temperature"]) => "°C",
        "f" if is_of(&["temp", "temperature"]) => "°F",
        "min" if !is_of(&TIMES) => return None,
        "s" | "m" | "l" if is_of(&["size"]) => return None,
        word if NO_UNITS.contains(&word) || before.is_empty() && end == words.len() && !may_be_alone => return None,
        _ => unit_of(last).map(|_| *last)?,
    };
    let per = words[end..].join(" ").to_lowercase();
    Some(if per.is_empty() { unit.into() } else { format!("{unit} {per}").into() })
}

#[cfg(test)]
mod tests {
    use super::super::unsupported;
    use super::with_units;

    #[test]
    fn a_unit_that_a_member_states_contradicts_another_and_is_converted() {
        for (answer, source) in [
            ("It weighs 850 kg.", r#"{"weight_g": 850}"#),
            ("It weighs 850 kg.", r#"{"weight": {"value": 850, "unit": "g"}}"#),
            ("It costs 850 EUR.", r#"{"price": 850, "currency": "USD"}"#),
            ("It costs 850 EUR.", r#"{"id": 7, "price": "850.00", "specs": {"w": 1}, "currency_code": "USD"}"#),
            ("It costs 850 EUR.", r#"{"priceUsd": 850}"#),
            ("It costs 850 EUR.", "\"metadata.price\": 850\n\"metadata.currency\": \"USD\""),
            ("It costs $1,999.", r#"{"price_cents": 1999}"#),
            ("It takes 1200 hours.", r#"{"duration_minutes": 1200}"#),
            ("It takes 20 hours.", r#"{"duration_min": 20}"#),
            ("It takes 1200 minutes.", r#"{"seconds": 1200}"#),
            ("It is 25 °F.", r#"{"temp_c": 25}"#),
            ("It is 12 cm thick.", r#"{"thickness": 12, "unit": "mm"}"#),
            ("It is 12 cm thick.", "thickness_mm: 12"),
            ("It is 30 m² large.", r#"{"area_m2": 20, "height_m": 30}"#),
            ("It costs 5 euros a litre.", r#"{"price_eur_per_kg": 5}"#),
            ("Rent is 900 EUR per month.", r#"{"rent_eur_per_week": 900}"#),
        ] {
            assert_eq!(unsupported(answer, source).1.len(), 1, "{answer} {source}: {}", with_units(source));
        }
        for (answer, source) in [
            ("It weighs 850 g, which is 0.85 kg.", r#"{"weight_g": 850}"#),
            ("It costs $19.99.", r#"{"price_cents": 1999}"#),
            ("It costs 19.99 USD.", r#"{"price": {"amount": 1999, "currency": "USD", "unit": "cents"}}"#),
            ("It takes 20 minutes.", r#"{"duration_s": 1200}"#),
            ("It costs 850 USD for 24 months.", r#"{"price": 850, "currency": "USD", "warranty": 24}"#),
            ("It is 12 mm thick and weighs 30 kg.", r#"{"thickness": 12, "unit": "mm", "weight": 30}"#),
            ("It costs 30 euros a day.", r#"{"price_per_day": 30}"#),
            ("It costs 15 euros.", r#"{"price_min": 15}"#),
            ("It costs 15 euros.", r#"{"price": 15, "end_day": 15, "progress": 15}"#),
            ("It ends on day 20, and 30 people come.", r#"{"end_day": 20, "people": 30}"#),
            ("It has 45 seats at 13 %.", "seats: 45, share_percent: 13"),
        ] {
            assert!(unsupported(answer, source).1.is_empty(), "{answer} {source}: {}", with_units(source));
        }
    }

    #[test]
    fn dates_times_and_amounts_with_a_unit_stay_as_they_are() {
        for text in [
            r#"{"start_s": "2026-05-01", "at_m": "10:30", "length_m": "12 km", "name": "m", "m": 5}"#,
            "Duration_s is 5. It costs: 5 euros",
            "Currency: USD. Price: 850 in all",
            "}} {",
        ] {
            assert_eq!(with_units(text), text);
        }
    }
}
