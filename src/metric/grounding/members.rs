//! Units that the names of members state: `"weight_g": 850` is 850 g.
//!
//! Only endings that are a unit in every name count, or that stand behind a word of what they measure. A unit or a currency in
//! a member beside the number is not read: it may belong to another number.

use super::units::unit_of;
use crate::trace::text::CURRENCY_CODES;
use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// A member with a number, in JSON or on a line: `"weight_g": 850`.
static MEMBER: LazyLock<Regex> = LazyLock::new(|| {
    let end = r"[ \t]*(?:[,;}\]\n]|$)";
    let number = r#""?(?P<number>-?\d+(?:[.,]\d+)*)"?"#;
    Regex::new(&format!(r#"\b(?P<name>[A-Za-z][\w.-]*)"?\s?[:=]\s{{0,4}}{number}{end}"#)).expect("an expression")
});
/// The words of a name, some with the digit of a square: `priceUsd`, `area_m2`.
static WORDS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[A-Z]+[a-z]*[23]?|[a-z]+[23]?").expect("an expression"));

/// Endings of a name that are a unit behind a word of what they measure alone.
const OF_MEASURES: [(&[&str], &[&str], Option<&str>); 6] = [
    (&["c"], &["temp", "temperature"], Some("°C")),
    (&["f"], &["temp", "temperature"], Some("°F")),
    (&["s", "h", "min"], &["duration"], None),
    (&["m"], &["height", "length", "width", "depth", "distance", "altitude"], None),
    (&["l"], &["volume", "capacity"], None),
    (&["g"], &["weight", "mass"], None),
];
/// Units that are seldom one at the end of a name: they are those of dates, marks and forms of other words.
const NO_UNITS: [&str; 15] =
    ["day", "week", "month", "year", "hour", "minute", "second", "tag", "bit", "pa", "mes", "ore", "dag", "ay", "mil"];

/// A text in which such numbers have their units behind them.
pub(super) fn with_units(text: &str) -> Cow<'_, str> {
    let (mut read, mut from) = (String::new(), 0);
    for parts in MEMBER.captures_iter(text) {
        let name = parts.name("name").map_or("", |name| name.as_str().rsplit('.').next().unwrap_or_default());
        let end = parts.name("number").map_or(from, |number| number.end());
        if let Some(unit) = stated(name) {
            read.extend([&text[from..end], " ", &unit]);
            from = end;
        }
    }
    if from == 0 { Cow::Borrowed(text) } else { Cow::Owned(read + &text[from..]) }
}

/// The unit that a name ends with, and what it is per: `price_usd_per_kg`. A word alone is one where it is plural or a code.
fn stated(name: &str) -> Option<String> {
    let words: Vec<&str> = WORDS.find_iter(name).map(|word| word.as_str()).collect();
    let end = words.iter().position(|word| word.eq_ignore_ascii_case("per")).unwrap_or(words.len());
    let (last, before) = words[..end].split_last()?;
    let lower = last.to_lowercase();
    let is_of = |measures: &[&str]| before.iter().any(|word| measures.contains(&&*word.to_lowercase()));
    // Of `speed_km_h` and `density_g_cm3`, the last word alone is another unit.
    let is_compound = before.last().is_some_and(|word| word.len() == 1 || unit_of(word).is_some());
    let may_be_alone = lower.len() > 3 && lower.ends_with('s') || lower.len() == 3 && CURRENCY_CODES.contains(&&*lower);
    let is_alone = before.is_empty() && end == words.len() && !may_be_alone;
    if is_compound || is_alone || NO_UNITS.contains(&&*lower) {
        return None;
    }
    let unit = match OF_MEASURES.iter().find(|(endings, ..)| endings.contains(&&*lower)) {
        Some((_, measures, unit)) => unit.or(Some(last)).filter(|_| is_of(measures))?,
        None if lower.len() == 1 => return None,
        None => unit_of(last).map(|_| *last)?,
    };
    let per = words[end..].join(" ").to_lowercase();
    Some(if per.is_empty() { unit.to_owned() } else { format!("{unit} {per}") })
}

#[cfg(test)]
mod tests {
    use super::super::unsupported;
    use super::with_units;

    #[test]
    fn a_unit_that_a_member_states_contradicts_another_and_is_converted() {
        for (answer, source) in [
            ("It weighs 850 kg.", r#"{"weight_g": 850}"#),
            ("It costs 850 EUR.", r#"{"priceUsd": 850}"#),
            ("It costs $1,999.", r#"{"price_cents": 1999}"#),
            ("It takes 1200 hours.", r#"{"duration_minutes": 1200}"#),
            ("It takes 20 hours.", r#"{"duration_min": 20}"#),
            ("It takes 1200 minutes.", r#"{"seconds": 1200}"#),
            ("It is 25 °F.", r#"{"temp_c": 25}"#),
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
            ("It takes 20 minutes.", r#"{"duration_s": 1200}"#),
            ("It costs 850 USD for 24 months.", r#"{"price": 850, "currency": "USD", "warranty": 24}"#),
            ("It is 12 mm thick and weighs 30 kg.", r#"{"thickness": 12, "unit": "mm", "weight": 30}"#),
            ("It costs 30 euros a day.", r#"{"price_per_day": 30}"#),
            ("It costs 15 euros.", r#"{"price_min": 15}"#),
            ("It costs 15 euros.", r#"{"price": 15, "end_day": 15, "progress": 15}"#),
            ("It ends on day 20, and 30 people come.", r#"{"end_day": 20, "people": 30}"#),
            ("It has 45 seats at 13 %.", "seats: 45, share_percent: 13"),
            ("It costs 2.50 EUR per kg.", r#"{"price": 2.5, "currency": "EUR", "unit": "kg"}"#),
            ("It is for 18 years and 23 kg.", r#"{"price": 40, "currency": "EUR", "min_age": 18, "max_weight": 23}"#),
            ("It drives at 50 km/h with 5 mg/l.", r#"{"speed_km_h": 50, "nitrate_mg_l": 5}"#),
            ("It takes 30 minutes, and 5 million USD.", r#"{"timeout_m": 30, "revenue_usd_m": 5}"#),
            ("It takes 5 days.", r#"{"delivery_time_min": 5, "delivery_time_max": 9}"#),
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
