//! Fractions of a text: `½`, `1½`, `2 1/2 hours`, `half an hour`.

use super::behind;
use super::numerals::Spelled;
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// The signs of fractions, with what they divide.
const SIGNS: [(char, f64, f64); 15] = [
    ('½', 1.0, 2.0),
    ('⅓', 1.0, 3.0),
    ('⅔', 2.0, 3.0),
    ('¼', 1.0, 4.0),
    ('¾', 3.0, 4.0),
    ('⅕', 1.0, 5.0),
    ('⅖', 2.0, 5.0),
    ('⅗', 3.0, 5.0),
    ('⅘', 4.0, 5.0),
    ('⅙', 1.0, 6.0),
    ('⅚', 5.0, 6.0),
    ('⅛', 1.0, 8.0),
    ('⅜', 3.0, 8.0),
    ('⅝', 5.0, 8.0),
    ('⅞', 7.0, 8.0),
];

static FRACTION: LazyLock<Regex> = LazyLock::new(|| {
    let whole = r"(?:(?P<whole>\d{1,4})[ \u{a0}-]?)?";
    let apart = r"(?:(?P<apart>\d{1,3})[ \u{a0}-])?";
    Regex::new(&format!(
        r"{whole}(?P<sign>[¼-¾⅓-⅞])|{apart}\b(?P<over>[1-7])[/⁄](?P<under>[2-8])\b|\b(?P<half>(?i:half an?))\b"
    ))
    .expect("an expression")
});

/// The fractions of a text with their values as decimals, in order. Digits over digits are one before a unit: others are dates
/// and ratios.
pub(super) fn fractions(text: &str) -> Vec<(Range<usize>, String, Spelled)> {
    FRACTION
        .captures_iter(text)
        .filter_map(|parts| {
            let place = parts.get(0)?.range();
            let digits = |name: &str| parts.name(name).and_then(|part| part.as_str().parse::<f64>().ok());
            let joined = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | ',' | '/');
            if text[..place.start].ends_with(joined) {
                return None;
            }
            let (value, spelled) = if parts.name("half").is_some() {
                (0.5, Spelled::Weakly)
            } else if let Some(sign) = parts.name("sign") {
                let (_, over, under) = SIGNS.iter().find(|(one, ..)| sign.as_str().starts_with(*one))?;
                (digits("whole").unwrap_or_default() + over / under, Spelled::Digits)
            } else {
                let (over, under) = (digits("over")?, digits("under")?);
                if over >= under || behind::unit(&text[place.end..]).is_none() {
                    return None;
                }
                (digits("apart").unwrap_or_default() + over / under, Spelled::Digits)
            };
            // As many decimals as make it equal to what it is in another unit.
            Some((place, format!("{value:.12}"), spelled))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::quantity::quantities;

    #[test]
    fn a_fraction_is_an_amount_and_its_parts_are_none() {
        for (answer, source, agrees) in [
            ("½ hour", "30 minutes", true),
            ("1½ hours", "1.5 hours", true),
            ("1.5 hours", "1½ hours", true),
            ("1.5 hours", "1 1/2 hours", true),
            ("20 minutes", "⅓ hour", true),
            ("0.33 hours", "⅓ hour", true),
            ("30 minutes", "half an hour", true),
            ("¾ kg", "750 g", true),
            ("½ hour", "2 hours", false),
            ("1½ hours", "1 hour", false),
            ("1½ hours", "2 hours", false),
            ("2 hours", "1/2 hours", false),
            ("1 hour", "1½ hours", false),
            ("20 kg", "20½ kg", false),
        ] {
            let (of_answer, of_source) = (quantities(answer), quantities(source));
            let found = of_answer.iter().all(|one| of_source.iter().any(|other| one.agrees(other)));
            assert!(!of_answer.is_empty() && found == agrees, "{answer} by {source}: {of_answer:?}, {of_source:?}");
        }
        for none in ["on 1/2/2026", "open 24/7", "the 2/3 majority", "version 1/2"] {
            assert!(super::fractions(none).is_empty(), "{none}");
        }
        assert_eq!(quantities("about 1½ hours, or so")[0].start..quantities("about 1½ hours, or so")[0].end, 6..15);
    }
}
