//! Numbers in a text, compared by value after locale and unit: `1.234,5 kg` is `1234.5 kg` is `1,234,500 g`.

use super::behind::{self, said_per};
use super::clock;
use super::numerals::{InDigits, Spelled};
use super::units::{
    are_one_unit, is_of_length, is_unspaced, scale_before_words, scale_of, scale_of_money, scaled_sign,
    unit_before_words, unit_of, word,
};
use crate::trace::text::{CURRENCY_CODES, ascii_digit};
use regex::Regex;
use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

/// A number with its unit, if it has a known one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Quantity {
    /// Where it stands, in bytes, with sign, currency, scale and unit.
    pub start: usize,
    pub end: usize,
    /// Its possible values in the base unit: `1.234` may be 1234 or 1.234.
    pub values: Vec<f64>,
    /// The base unit.
    pub unit: Option<&'static str>,
    /// The base units that it is per, and the factors to them: `month` of `30 euros a month`.
    pub per: Vec<(&'static str, f64)>,
    /// Whether its unit is written `h`, which a duration and a time of day may have: `9–17 h`, `1h45`.
    pub hours: bool,
    /// Whether it is a bare whole number without separator, scale or unit.
    pub bare: bool,
    /// Whether it names something, as `page 30` and `DOC-30` do, and counts nothing.
    pub is_label: bool,
    pub spelled: Spelled,
    /// A version with a point, as it is written.
    version: Option<String>,
    /// The digits of a whole number of [`LONG`] digits or more, which often names something: an order, an account.
    long: Option<String>,
    /// Digits behind the decimal mark, and significant digits, for rounding.
    decimals: usize,
    pub significant: usize,
    /// The factor between the written number and its value.
    pub scale: f64,
    /// The factor of a word such as `million` in it: such numbers are rounded ones.
    scaled: Option<f64>,
}

/// Words of English texts. Some are words elsewhere too, or in names: two of them make a text English, or `the` alone.
const ENGLISH: [&str; 14] =
    ["the", "and", "are", "with", "it", "its", "this", "that", "you", "your", "has", "have", "costs", "for"];

/// Endings of ordinals of three letters, or with marks: `20ème`, `20º`.
const ORDINALS: [&str; 12] = ["º", "ª", "ème", "ième", "eme", "ieme", "ère", "ste", "nde", "ter", "tes", "ten"];

/// Words and marks between the ends of a range.
const RANGE: [&str; 14] = ["to", "-", "–", "and", "or", "bis", "und", "oder", "à", "a", "o", "tot", "до", "или"];

/// Marks between the sides of something.
const BY: [&str; 3] = ["x", "X", "×"];

/// The fewest digits of a long number.
const LONG: usize = 10;

/// The largest whole number that is as often a count of anything.
pub(super) const COUNT: f64 = 12.0;

static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    // Those of two letters are words, and not written in capitals.
    let codes: Vec<String> = CURRENCY_CODES
        .iter()
        .map(|code| if code.len() > 2 { code.to_uppercase() } else { format!("(?i:{}){}", &code[..1], &code[1..]) })
        .collect();
    let codes = codes.join("|");
    let before = format!(r"(?P<before>(?:\b[A-Z]{{1,3}}\$|[$€£¥₹₩₽₺]|\b(?:{codes}))\s?)?");
    // A comma between other digits may part a list: `99，199，299元`.
    let wide = r"[０-９]{1,3}(?:，[０-９]{3})+";
    let lakhs = r"\d{1,2}(?:,\d\d)+,\d{3}\b(?:\.\d+)?";
    let number = format!(
        r"(?P<number>{lakhs}|{wide}|\d{{1,3}}(?:[\u{{a0}}\u{{2006}}-\u{{200b}}\u{{202f}}'’,. ٬]\d{{3}})+(?:[.,٫]\d+)?|\d+(?:[.,٫]\d+)?)"
    );
    let area = r"[ckm]?m[²³]|[ckm]?m[23]\b|(?:square|cubic) \p{L}+";
    let product = r"N/mm[²2]|N[·⋅ ]m\b|k?W[·⋅ ]h\b|A[·⋅ ]h\b|newton met(?:re|er)s";
    let compound = format!("(?i:km/hr?|m/s|{area})|{product}|(?:[kKM]|Mds?|Mio|Mrd)[€$£]");
    let word = format!(
        r"(?P<word>{compound}|(?:per|pour) cent|(?:por|per) ciento|(?:por|per) cento|[%٪‰¢Ω€$£¥₩₽₺]|[°º][CFcf]|{})",
        word()
    );
    Regex::new(&format!(r"{before}{number}(?:[\s\u{{a0}}\u{{202f}}-]?{word})?")).expect("an expression")
});

/// The numbers and times of day of a text, in digits or words, in order. A number within a word (`AB-12`, `3rd`) is none.
pub(super) fn quantities(text: &str) -> Vec<Quantity> {
    let Some(written) = InDigits::of(text) else { return in_digits(text) };
    let mut found = in_digits(&written.text);
    for number in &mut found {
        let (place, spelled) = written.place(number.start..number.end);
        (number.start, number.end, number.spelled) = (place.start, place.end, spelled);
    }
    found
}

/// The numbers and times of day of a text without numbers in words.
fn in_digits(text: &str) -> Vec<Quantity> {
    let mut found = clock::times(text);
    let times: Vec<Range<usize>> = found.iter().map(|time| time.start..time.end).collect();
    let (mut from, mut next) = (0, 0);
    let groups = LazyCell::new(|| groups_by_commas(text));
    let markers = LazyCell::new(|| behind::markers(text));
    while let Some(parts) = NUMBER.captures_at(text, from) {
        let whole = parts.get(0).expect("the whole");
        let mut number = parts.name("number").expect("a part of the expression").range();
        let mut word = parts.name("word");
        // `47 223344` and `3.14159` have no groups of three digits.
        if text[number.end..].starts_with(|next: char| ascii_digit(next).is_ascii_digit()) {
            (number.end, word) = (number.start + ungrouped(&text[number.start..]), None);
        }
        from = number.end;
        // Both are in order.
        next += times[next..].iter().take_while(|time| time.end <= number.start).count();
        if let Some(time) = times.get(next).filter(|time| time.start < number.end) {
            from = from.max(time.end);
            continue;
        }
        let before = text[..whole.start()].chars().next_back();
        if before.is_some_and(|before| before.is_alphabetic() && !is_unspaced(before))
            && !is_side(&text[..whole.start()])
        {
            continue;
        }
        let attached = word.is_some_and(|word| word.start() == number.end);
        let currency = parts.name("before").and_then(|sign| unit_of(sign.as_str().trim()));
        let (mut scale, mut unit, mut end) = (1.0, currency, from);
        if let Some(word) = word {
            let lower = word.as_str().to_lowercase();
            if let Some(factor) = scale_of(&lower) {
                let (more, named, length) = behind::scaled(&lower, &text[word.end()..]);
                (scale, unit, end) = (factor * more, named.or(unit), word.end() + length);
            } else if currency.is_some() {
                if let Some(factor) = scale_of_money(&lower).filter(|_| attached) {
                    (scale, end) = (factor, word.end());
                }
            } else if let Some((factor, known)) = scaled_sign(word.as_str()) {
                (scale, unit, end) = (factor, Some(known), word.end());
            } else if let Some(known) = unit_of(word.as_str()) {
                (unit, end) = (Some(known), word.end());
            } else if let Some((factor, length)) = scale_before_words(word.as_str()) {
                let named = unit_before_words(&word.as_str()[length..]);
                (scale, end) = (factor, word.start() + length + named.map_or(0, |(.., length)| length));
                unit = named.map(|(base, factor, _)| (base, factor));
            } else if let Some((base, factor, length)) = unit_before_words(word.as_str()) {
                (unit, end) = (Some((base, factor)), word.start() + length);
            } else if attached && !is_apart(word.as_str(), &text[word.end()..]) {
                continue;
            }
        }
        // A bracket that closes belongs to the number only if one opens before it, unlike that of a list: `1) Days`.
        let closes = text[from..].starts_with(')') && !text[..whole.start()].ends_with('(');
        if unit.is_none()
            && equal(scale, 1.0)
            && !closes
            && let Some((known, length)) = behind::unit(&text[from..])
        {
            (unit, end) = (Some(known), from + length);
        }
        let mut per = unit.map_or_else(Vec::new, |_| said_per(&text[end..]));
        // `100 kilometres per hour`.
        if let (Some((base @ ("m" | "mile"), factor)), [("s", time @ (1.0 | 3600.0))]) = (unit, per.as_slice()) {
            unit = Some(if base == "m" { ("m/s", factor / time) } else { ("mile/h", 3600.0 / time) });
            per.clear();
        }
        let written: String = text[number.clone()].chars().map(ascii_digit).collect();
        let (readings, decimals) = match readings(&written) {
            // `1,250` of an English text is no 1.25.
            (readings, 3) if written.contains(',') && *groups => (readings[..1].to_vec(), 0),
            // `€1.749 per litre`.
            (readings, 3)
                if unit.is_some_and(|(base, _)| base == "€") && behind::says_price_per_small_unit(&text[end..]) =>
            {
                (readings[readings.len() - 1..].to_vec(), 3)
            }
            others => others,
        };
        let sign = sign_before(&text[..whole.start()]);
        let below = is_below_zero(&text[end..]) || sign == Sign::Word;
        let factor = scale * unit.map_or(1.0, |(_, factor)| factor);
        let digits: String = written.chars().filter(char::is_ascii_digit).collect();
        found.push(Quantity {
            start: whole.start() - if let Sign::Minus(length) = sign { length } else { 0 },
            end,
            values: readings
                .into_iter()
                .flat_map(|value| match sign {
                    Sign::Minus(_) => vec![-value * factor],
                    _ if below => vec![value * factor, -value * factor],
                    _ => vec![value * factor],
                })
                .collect(),
            unit: unit.map(|(base, _)| base),
            per,
            hours: word.is_some_and(|word| word.as_str() == "h"),
            bare: unit.is_none()
                && equal(scale, 1.0)
                && written.chars().all(|letter| letter.is_ascii_digit())
                && sign == Sign::None,
            is_label: unit.is_none() && (behind::labels(&text[..whole.start()]) || markers.contains(&whole.start())),
            spelled: Spelled::Digits,
            version: Some(&written)
                .filter(|written| unit.is_none() && decimals > 0 && !written.contains(','))
                .filter(|_| behind::names_version(&text[..whole.start()]))
                .cloned(),
            long: (decimals == 0 && equal(factor, 1.0))
                .then(|| digits.trim_start_matches('0').to_owned())
                .filter(|digits| digits.len() >= LONG),
            decimals,
            significant: digits.trim_start_matches('0').trim_end_matches('0').len(),
            scale: factor,
            scaled: (!equal(scale, 1.0)).then_some(scale),
        });
        from = from.max(end);
    }
    found.sort_by_key(|one| one.start);
    // `48 to 56 ohms`: the unit of the second is that of the first too.
    for at in (1..found.len()).rev() {
        let between = text.get(found[at - 1].end..found[at].start).unwrap_or_default().trim();
        let (unit, scale, hours) = (found[at].unit, found[at].scale, found[at].hours);
        let first = &mut found[at - 1];
        if first.unit.is_none()
            && equal(first.scale, 1.0)
            && unit.is_some_and(|unit| unit != clock::UNIT)
            && (RANGE.contains(&between)
                || BY.contains(&between) && !first.is_count() && unit.is_some_and(is_of_length))
        {
            first.values.iter_mut().for_each(|value| *value *= scale);
            (first.unit, first.scale, first.bare, first.hours) = (unit, scale, false, hours);
        }
    }
    found
}

/// What says that a number is negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    None,
    /// A minus of that many bytes, which joins the number to nothing before it.
    Minus(usize),
    /// The word, which may also take the number away: `the price minus 20 %`.
    Word,
}

fn sign_before(text: &str) -> Sign {
    let joins = |last: char| last.is_alphanumeric() || matches!(last, ')' | ']' | '%' | '°');
    for sign in ["-", "\u{2212}", "\u{2011}", "\u{2013}", "－"] {
        if let Some(rest) = text.strip_suffix(sign) {
            return if rest.ends_with(joins) { Sign::None } else { Sign::Minus(sign.len()) };
        }
    }
    let is_minus = |text: &str| {
        let word = text.get(text.len().saturating_sub(5)..);
        word.is_some_and(|word| word.eq_ignore_ascii_case("minus"))
    };
    if text.strip_suffix(' ').is_some_and(is_minus) { Sign::Word } else { Sign::None }
}

/// Whether the text behind a number puts it below zero, as `40 degrees below zero`.
fn is_below_zero(after: &str) -> bool {
    let near: String = after.chars().take(24).collect::<String>().to_lowercase();
    ["below 0", "below freezing", "unter null"].iter().any(|words| {
        let (_, rest) = near.split_once(words).unwrap_or(("", "0"));
        !rest.trim_start_matches(['.', ',']).starts_with(|next: char| next.is_ascii_digit())
    })
}

/// Length of the number that a text begins with, if nothing parts its thousands.
fn ungrouped(text: &str) -> usize {
    let digits = |from: usize| {
        let digits = text[from..].chars().take_while(|letter| ascii_digit(*letter).is_ascii_digit());
        digits.map(char::len_utf8).sum::<usize>()
    };
    let whole = digits(0);
    let behind = if text[whole..].starts_with(['.', ',']) { digits(whole + 1) } else { 0 };
    if behind > 0 { whole + 1 + behind } else { whole }
}

/// Whether the text before a number ends with the side of something before it: `120x80`.
fn is_side(before: &str) -> bool {
    before.strip_suffix(['x', 'X']).is_some_and(|side| side.ends_with(|last: char| last.is_ascii_digit()))
}

/// Whether a word directly behind a number is another word than that of a code or an ordinal: `99seats`, `80유로`.
fn is_apart(word: &str, after: &str) -> bool {
    let written = |letter: char| letter.is_lowercase() || (letter.is_alphabetic() && !letter.is_uppercase());
    if ORDINALS.contains(&word) {
        return false;
    }
    let (long, is_ascii) = (word.chars().count() > 2, word.is_ascii());
    matches!(word.to_lowercase().as_str(), "s" | "am" | "pm")
        || word.eq_ignore_ascii_case("x") && after.starts_with(|next: char| next.is_ascii_digit())
        || (long || !is_ascii) && word.chars().all(written) && !after.starts_with(|next: char| next.is_ascii_digit())
}

/// Whether a comma in the numbers of a text can only part thousands: the text is English, and none of them has one or two
/// digits behind its comma.
fn groups_by_commas(text: &str) -> bool {
    let words = text.split(|letter: char| !letter.is_alphabetic());
    let known = |word: &str| ENGLISH.iter().position(|known| word.eq_ignore_ascii_case(known));
    let english: BTreeSet<usize> = words.clone().filter_map(known).collect();
    let is_english = english.len() > 1 || words.into_iter().any(|word| word == ENGLISH[0]);
    let decimal = |(at, _): (usize, &str)| {
        let digits = text[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        (1..3).contains(&digits) && text[..at].ends_with(|before: char| before.is_ascii_digit())
    };
    is_english && !text.match_indices(',').any(decimal)
}

/// Values that the digits may have, and the digits behind the decimal mark.
fn readings(written: &str) -> (Vec<f64>, usize) {
    let marks: Vec<(usize, char)> = written.char_indices().filter(|(_, letter)| !letter.is_ascii_digit()).collect();
    let whole =
        |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>().parse::<f64>().unwrap_or(f64::NAN);
    let Some(&(last, mark)) = marks.last() else { return (vec![whole(written)], 0) };
    let behind = written.len() - last - mark.len_utf8();
    let decimal = || {
        let text = format!("{}.{}", whole(&written[..last]), &written[last + mark.len_utf8()..]);
        text.parse::<f64>().unwrap_or(f64::NAN)
    };
    let mixed = marks.iter().any(|(_, other)| *other != mark);
    match (marks.len(), behind) {
        _ if !matches!(mark, '.' | ',') => (vec![whole(written)], 0),
        (1, 3) => (vec![whole(written), decimal()], 3),
        (1, _) => (vec![decimal()], behind),
        _ if mixed || behind != 3 => (vec![decimal()], behind),
        _ => (vec![whole(written)], 0),
    }
}

impl Quantity {
    /// A time of day by its possible minutes after midnight; none is a rounded one.
    pub(super) fn time(place: Range<usize>, values: Vec<f64>) -> Self {
        let (start, end, unit) = (place.start, place.end, Some(clock::UNIT));
        Self { start, end, values, unit, scale: 1.0, ..Self::default() }
    }

    /// A number without a unit, such as a year.
    pub(super) fn plain(value: f64) -> Self {
        Self { unit: None, bare: true, significant: 1, ..Self::time(0..0, vec![value]) }
    }

    /// Whether it is a number in words that may count nothing, or that has no unit: a year, a time, a name.
    pub(super) fn is_weak(&self) -> bool {
        self.spelled == Spelled::Weakly || self.spelled == Spelled::Words && self.unit.is_none()
    }

    /// Whether it is a small whole number without a unit.
    pub(super) fn is_count(&self) -> bool {
        self.bare && self.values.iter().all(|value| *value <= COUNT)
    }

    /// Whether `source` says the same: an equal value, or one that rounds to this one as it is written, where both
    /// units are known the same unit. A number without a sign may be the amount of a negative one: `40 degrees below zero`.
    pub(super) fn agrees(&self, source: &Self) -> bool {
        let any = |holds: &dyn Fn(f64, f64) -> bool| {
            self.values.iter().any(|value| source.values.iter().any(|other| holds(*value, *other)))
        };
        let is_elsewhere = |one: &Self, other: &Self| one.is_label && other.unit.is_some();
        // As a version, 3.1 is neither 3.10 nor 3.14.
        let other_version = self.version.as_ref().zip(source.version.as_ref()).is_some_and(|(one, other)| one != other);
        if is_elsewhere(self, source) || is_elsewhere(source, self) || other_version {
            return false;
        }
        match (self.unit, source.unit) {
            (Some(clock::UNIT), None) => return any(&clock::is_written_as),
            // `1h45` is a duration or a time of day.
            (Some(clock::UNIT), Some("s")) if self.hours && self.is_as_long_as(source) => return true,
            (Some("s"), Some(clock::UNIT)) if source.hours && source.is_as_long_as(self) => return true,
            (Some(clock::UNIT), Some("s")) if source.hours => {
                return any(&|value, other| clock::is_written_as(value, other / 3600.0));
            }
            // `Ouvert de 9h à 17h`.
            (Some("s"), Some(clock::UNIT)) if self.hours => return any(&|value, other| equal(value, other * 60.0)),
            (None, Some(clock::UNIT)) => return any(&|value, other| clock::is_written_as(other, value)),
            (Some(one), Some(other)) if !are_one_unit(one, other) => return false,
            _ => {}
        }
        if !self.per.is_empty() && !source.per.is_empty() {
            let of_both = |(base, mine): &(&str, f64)| {
                let (_, theirs) = source.per.iter().find(|(other, _)| other == base)?;
                Some(mine / theirs)
            };
            let Some(ratio) = self.per.iter().filter_map(of_both).reduce(|one, other| one * other) else {
                return false;
            };
            if !equal(ratio, 1.0) {
                return any(&|value, other| equal(value / ratio, other));
            }
        }
        // Digit by digit, unless it may be rounded to thousands.
        let other_digits = |(one, other): (&String, &String)| one != other && !one.ends_with("000");
        if self.long.as_ref().zip(source.long.as_ref()).is_some_and(other_digits) {
            return false;
        }
        let same_unit = self.unit.is_some() == source.unit.is_some();
        // `12 Mio.` is not `12 Mrd. €`.
        let other_scale = self.scaled.zip(source.scaled).is_some_and(|(one, other)| !equal(one, other));
        any(&|value, other| {
            // A unit on one side only may have scaled its value.
            equal(value, other)
                || (other < 0.0 && value > 0.0 && equal(value, -other))
                || (!same_unit && !other_scale && equal(value / self.scale, other / source.scale))
                || self.rounds(value, other)
        })
    }

    /// Whether a time such as `1h45`, as it is written, is that duration.
    fn is_as_long_as(&self, duration: &Self) -> bool {
        self.values.first().is_some_and(|minutes| duration.values.iter().any(|value| equal(minutes * 60.0, *value)))
    }

    /// Whether `exact`, rounded to the digits of this number, is `value`; only for numbers of two digits or more.
    fn rounds(&self, value: f64, exact: f64) -> bool {
        // `180,000` has three decimals only where it is 180.
        let decimals = if (value / self.scale).fract() == 0.0 { 0 } else { self.decimals };
        let step = if decimals > 0 {
            10_f64.powi(-(decimals as i32)) * self.scale
        } else {
            let digits = (value / self.scale).abs().max(1.0).log10().floor() as i32 + 1;
            10_f64.powi((digits - self.significant as i32).max(0)) * self.scale
        };
        // `100` is 99.6 without its decimals.
        let whole = (value / self.scale).abs() >= 100.0 && (value - exact).abs() <= 0.5 * self.scale;
        if whole && self.unit != Some(clock::UNIT) {
            return true;
        }
        let rounded = self.scaled.is_some() || decimals > 0 || self.significant >= 2;
        rounded
            && value != 0.0
            && exact.abs() >= value.abs() * 0.5
            && (value - exact).abs() <= step / 2.0 * (1.0 + 1e-9)
            && step < value.abs()
    }
}

/// Equal but for errors of binary fractions.
pub(super) fn equal(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1.0)
}
