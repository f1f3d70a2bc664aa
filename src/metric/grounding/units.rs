//! Units and scales of numbers, by their spellings in a text.

use super::quantity::equal;
use super::support::unmarked;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

/// Base units, factors to them, and spellings.
const UNITS: &[(&str, f64, &str)] = &[
    ("%", 1.0, "%, ٪, percent, per cent, prozent, pct, pour cent, por ciento, por cento, per cento, procent, prosent"),
    ("%", 1.0, "procento, процент, процента, процентов"),
    ("%", 1e-1, "‰, per mille, promille"),
    ("m", 1.0, "m, м, メートル"),
    ("m", 1e-3, "mm, мм, ミリメートル"),
    ("m", 1e-2, "cm, см, センチメートル"),
    ("m", 1e3, "km, км, キロメートル"),
    ("m", 1e-6, "µm, μm"),
    ("m²", 1.0, "m², m2, sqm, qm, square metre, square metres, square meter, square meters, quadratmeter"),
    ("m²", 1e-4, "cm², cm2"),
    ("m²", 1e-6, "mm², mm2"),
    ("m²", 1e6, "km², km2"),
    ("m²", 1e4, "ha, hectare, hectares, hektar"),
    ("m²", 1e6, "square kilometre, square kilometres, square kilometer, square kilometers"),
    ("foot²", 1.0, "square foot, square feet"),
    ("mile²", 1.0, "square mile, square miles"),
    ("acre", 1.0, "acre, acres"),
    ("m³", 1.0, "m³, m3, cubic metre, cubic metres, cubic meter, cubic meters, kubikmeter"),
    ("foot³", 1.0, "cubic foot, cubic feet"),
    ("m³", 1e-6, "cm³, cm3"),
    ("m³", 1e-9, "mm³, mm3"),
    ("m³", 1e9, "km³, km3"),
    ("m/s", 1.0, "m/s"),
    ("m/s", 1.0 / 3.6, "km/h, km/hr, kmh, kph"),
    ("mile/h", 1.0, "mph"),
    ("mile", 1.0, "mile, miles, mi"),
    ("yard", 1.0, "yard, yards, yd"),
    ("foot", 1.0, "foot, feet, ft"),
    ("inch", 1.0, "inch, inches"),
    ("g", 1.0, "g, グラム"),
    ("g", 1e-3, "mg, ミリグラム"),
    ("g", 1e-6, "µg, μg, mcg"),
    ("g", 1e3, "kg, кг, kilo, kilos, キログラム"),
    ("g", 1e6, "tonne, tonnes"),
    ("pound", 1.0, "lb, lbs"),
    ("pounds", 1.0, "pounds"),
    ("ounce", 1.0, "oz, ounce, ounces"),
    ("l", 1.0, "l, л, リットル"),
    ("l", 1e-2, "cl"),
    ("l", 1e-1, "dl"),
    ("gallon", 1.0, "gal, gallon, gallons"),
    ("l", 1e-3, "ml, мл, ミリリットル"),
    ("s", 1.0, "s, sec, second, seconds, sekunde, sekunden, seconde, secondes, segundo, segundos, secondo, secondi"),
    ("s", 1.0, "seconden, sekund, sekunder, sekunda, sekundy, секунда, секунды, секунд, сек, saniye, 秒"),
    ("s", 1e-6, "µs, μs"),
    ("s", 1e-3, "ms, мс"),
    ("s", 60.0, "min, mins, minute, minutes, minuten, minuto, minutos, minuti, minuut, minut, minuter, minutter"),
    ("s", 60.0, "minutt, minuuttia, minuta, minuty, минута, минуты, минут, мин, dakika, 分間, 分钟, 分鐘"),
    ("s", 3600.0, "h, hr, hrs, hour, hours, stunde, stunden, heure, heures, hora, horas, ora, ore, uur, uren, timme"),
    (
        "s",
        3600.0,
        "timmar, hodin, hodiny, godzina, godziny, godzin, час, часа, часов, ч, saat, 時間, 小时, 小時, 个小时, 個小時",
    ),
    ("s", 3600.0, "시간"),
    ("s", 86400.0, "day, days, tag, tage, tagen, jour, jours, día, días, dia, dias, giorno, giorni, tages, dag"),
    ("s", 86400.0, "dagen, dagar, dage, dager, dygn, dzień, dni, день, дня, дней, дні, днів, gün, günü, 日間, 天"),
    ("s", 86400.0, "営業日, 工作日, 个工作日, 個工作日, 工作天, 個工作天, 영업일, 日"),
    (
        "s",
        7.0 * 86400.0,
        "week, weeks, wk, wks, woche, wochen, semaine, semaines, semana, semanas, settimana, settimane",
    ),
    ("s", 7.0 * 86400.0, "weken, vecka, veckor, uge, uger, uke, uker, tydzień, tygodnie, tygodni, неделя, недели"),
    ("s", 7.0 * 86400.0, "недель, hafta, 週間, 星期, 个星期"),
    (
        "month",
        1.0,
        "month, months, mo, mos, monat, monate, monaten, mois, mes, meses, mese, mesi, mês, maand, maanden, månad",
    ),
    ("month", 1.0, "månader, måned, måneder, miesiąc, miesiące, miesięcy, месяц, месяца, месяцев, ay, monats, ヵ月"),
    ("month", 1.0, "か月, ヶ月, カ月, 个月, 個月, 개월"),
    (
        "month",
        12.0,
        "year, years, yr, yrs, jahr, jahre, jahren, ans, année, années, año, años, anno, anni, ano, anos, jaar",
    ),
    ("month", 12.0, "jaren, år, lata, lat, год, года, лет, yıl, jahres, 年間, 年, 년"),
    ("V", 1.0, "v, volt, volts"),
    ("V", 1e-3, "mv"),
    ("V", 1e3, "kv"),
    ("A", 1.0, "A, amp, amps, ampere, amperes"),
    ("A", 1e-3, "ma"),
    ("Ah", 1.0, "ah, a·h, a⋅h, a h"),
    ("Ah", 1e-3, "mah"),
    ("W", 1.0, "w, watt, watts"),
    ("W", 1e-3, "mW"),
    ("W", 1e3, "kw"),
    ("W", 1e6, "MW"),
    ("Wh", 1.0, "wh, w·h, w⋅h, w h"),
    ("Wh", 1e3, "kwh, kw·h, kw⋅h, kw h"),
    ("Wh", 1e6, "MWh"),
    ("Wh", 1e-3, "mWh"),
    ("J", 1.0, "j, joule, joules"),
    ("J", 1e-3, "mJ"),
    ("J", 1e3, "kj"),
    ("J", 1e6, "MJ"),
    ("kcal", 1.0, "kcal"),
    ("N", 1.0, "n, newton, newtons"),
    ("Nm", 1.0, "Nm, N·m, N⋅m, N m, newton metres, newton meters"),
    ("dB", 1.0, "db, dba, decibel, decibels"),
    ("lm", 1.0, "lm, lumen, lumens"),
    ("rpm", 1.0, "rpm"),
    ("Ω", 1.0, "Ω, ω, ohm, ohms"),
    ("Ω", 1e-3, "mΩ"),
    ("Ω", 1e3, "kΩ, kω, kilohm, kilohms"),
    ("Ω", 1e6, "MΩ, megohm, megohms"),
    ("Hz", 1.0, "hz, hertz"),
    ("Hz", 1e3, "khz"),
    ("Hz", 1e6, "mhz"),
    ("Hz", 1e9, "ghz"),
    ("Pa", 1e5, "bar"),
    ("Pa", 1e2, "mbar"),
    ("Pa", 1.0, "pa, pascal"),
    ("Pa", 1e-3, "mPa"),
    ("Pa", 1e2, "hpa"),
    ("Pa", 1e3, "kpa"),
    ("Pa", 1e6, "MPa, N/mm², N/mm2"),
    ("psi", 1.0, "psi"),
    ("°C", 1.0, "°c, ºc, celsius"),
    ("°F", 1.0, "°f, ºf, fahrenheit"),
    ("byte", 1e3, "kBps, KBps"),
    ("byte", 1e6, "MBps"),
    ("byte", 1e9, "GBps"),
    ("bit", 1.0, "bit, bits, bps"),
    ("bit", 1e3, "kbit, kbps"),
    ("bit", 1e6, "mbit, mbps"),
    ("bit", 1e9, "gbit, gbps"),
    ("byte", 1.0, "byte, bytes"),
    ("byte", 1e3, "kb"),
    ("byte", 1e6, "mb"),
    ("byte", 1e9, "gb"),
    ("byte", 1e12, "tb"),
    ("$", 1.0, "$, dollar, dollars"),
    ("US$", 1.0, "us$, usd, us dollar, us dollars, american dollars"),
    ("HK$", 1.0, "hk$, hkd"),
    ("NZ$", 1.0, "nz$, nzd"),
    ("S$", 1.0, "s$, sgd"),
    ("A$", 1.0, "a$, au$, aud, australian dollar, australian dollars"),
    ("C$", 1.0, "c$, ca$, cad, canadian dollar, canadian dollars"),
    ("BRL", 1.0, "r$, brl, reais"),
    ("¥", 1.0, "¥"),
    ("JPY", 1.0, "jpy, yen, 円"),
    ("CNY", 1.0, "cny, rmb, yuan, 元"),
    ("KRW", 1.0, "₩, krw, 원"),
    ("₹", 1.0, "₹, inr, rs, rupee, rupees"),
    ("CHF", 1.0, "chf"),
    ("SEK", 1.0, "sek"),
    ("NOK", 1.0, "nok"),
    ("DKK", 1.0, "dkk"),
    ("kr", 1.0, "kr, kronor, kroner, krone, krona"),
    ("PLN", 1.0, "pln, zł, złoty, złote, złotych"),
    ("CZK", 1.0, "czk, kč"),
    ("RUB", 1.0, "₽, RUB, руб, рубль, рубля, рублей"),
    ("TRY", 1.0, "₺, TRY, TL, lira"),
    ("€", 1.0, "€, eur, euro, euros, евро, 유로, ユーロ"),
    ("£", 1.0, "£, gbp"),
    ("£", 1e-2, "pence, penny"),
    ("cent", 1e-2, "¢, cent, cents, centimes, centavos, céntimos"),
];

/// Words that multiply the number before them.
const SCALES: &[(f64, &str)] = &[
    (1e2, "hundred"),
    (1e3, "thousand, k, tausend, tsd, mille, mil, tysiąc, tysiące, tysięcy, tys, тыс, тысяч, тысячи"),
    (1e5, "lakh, lakhs, lac, lacs"),
    (1e6, "million, millions, mio, millionen, millones, millón, milione, milioni, milhão, milhões, miljoen, miljon"),
    (1e6, "miljoner, millioner, milion, miliony, milionów, mln, миллион, миллиона, миллионов, млн, milyon"),
    (1e7, "crore, crores"),
    (1e9, "billion, billions, bn, milliarde, milliarden, mrd, milliard, milliards, miliardo, miliardi, mld, miljard"),
    (1e9, "miljarder, milliarder, miliard, miliardy, miliardów, миллиард, миллиарда, миллиардов, млрд, milyar"),
    (1e12, "trillion"),
];

/// Scales of scripts without spaces, longest first. Those of a thousand and of 10¹² also begin units (`千克`, `兆赫`).
const UNSPACED_SCALES: &[(f64, &str)] = &[
    (1e6, "百万, 百萬"),
    (1e7, "千万, 千萬"),
    (1e4, "万, 萬, 만"),
    (1e8, "億, 亿, 억"),
    (1e3, "千, 천"),
    (1e12, "兆, 조"),
];

/// What a unit that is written in full or short may end with in a text: a plural (`kgs`), cases and forms of languages that
/// have them (`godzinach`, `ukene`, `dagarna`, `aylık`, `saatte`), and the kind of a current (`VAC`).
const ENDINGS: [&str; 14] = ["s", "ach", "ami", "ene", "ne", "na", "lık", "lik", "da", "de", "ta", "te", "ac", "dc"];

/// What the compounds of Germanic languages have before a unit: `Werktage`, `arbetsdagar`, `workdays`.
const COMPOUNDS: &[&str] = &[
    "bankarbeits", "arbeits", "werk", "kalender", "geschäfts", "bank", "urlaubs", "lebens", "arbets", "arbejds",
    "virke", "hver", "work", "week",
];

/// The first row of [`UNITS`] with a spelling.
static NAMES: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
    let mut rows = HashMap::new();
    for (row, (_, _, names)) in UNITS.iter().enumerate() {
        names.split(", ").for_each(|name| _ = rows.entry(name).or_insert(row));
    }
    rows
});

/// The factor of the first name that a word begins with, and its length.
fn beginning(names: &[(f64, &str)], word: &str) -> Option<(f64, usize)> {
    let begun = |names: &str| names.split(", ").find(|name| word.starts_with(name)).map(str::len);
    names.iter().find_map(|(factor, names)| Some((*factor, begun(names)?)))
}

/// Whether a name is one of those that commas part.
fn has(names: &str, name: &str) -> bool {
    names.split(", ").any(|one| one == name)
}

/// The base unit of a spelling, and the factor to it. Case matters where a spelling of the table has capitals: `MW`, `mW`.
pub(in crate::metric) fn unit_of(word: &str) -> Option<(&'static str, f64)> {
    let lower = word.to_lowercase();
    let known = || [word, &lower].into_iter().filter_map(|name| NAMES.get(name)).min().map(|row| &UNITS[*row]);
    // `banks` has no seconds.
    let of_time = |of: &str| UNITS.iter().find(|(base, _, names)| of.len() > 2 && is_of_time(base) && has(names, of));
    let compound = || COMPOUNDS.iter().find_map(|first| of_time(lower.strip_prefix(first)?));
    // `3-monatige`, `14-tägiges`.
    let adjective = || {
        let ending = lower.strip_suffix(['e', 'm', 'n', 'r', 's']).unwrap_or(&lower);
        let noun = unmarked(ending.strip_suffix('e').unwrap_or(ending).strip_suffix("ig")?);
        of_time(&noun).or_else(|| of_time(&format!("{noun}e")))
    };
    let found = known().or_else(compound).or_else(adjective).map(|(base, factor, _)| (*base, *factor));
    // `metro` alone is also a railway.
    found.or_else(|| metric(&lower).filter(|_| lower != "metro")).or_else(|| multiple(&lower))
}

/// The unit of a spelling of two words: `Canadian dollars`.
pub(super) fn unit_of_two(one: &str, other: &str) -> Option<(&'static str, f64)> {
    let row = NAMES.get(&*format!("{one} {other}").to_lowercase())?;
    Some((UNITS[*row].0, UNITS[*row].1))
}

/// Prefixes of multiples and parts.
const PREFIXES: &[(f64, &str)] = &[
    (1e-9, "nano"),
    (1e-6, "micro, mikro"),
    (1e-3, "mili, milli"),
    (1e-2, "centi, zenti"),
    (1e-1, "deci, dezi"),
    (1e2, "hecto, hekto"),
    (1e3, "kilo, quilo, chilo"),
    (1e6, "mega"),
    (1e9, "giga"),
    (1e12, "tera"),
];

/// The unit of a word with such a prefix: `megabits`.
fn multiple(lower: &str) -> Option<(&'static str, f64)> {
    let (factor, length) = beginning(PREFIXES, lower)?;
    let (base, own, _) = UNITS[*NAMES.get(&lower[length..]).filter(|_| lower.len() > length + 2)?];
    Some((base, factor * own))
}

/// The unit of a word for a metre, a gram or a litre, and their parts, in languages of Latin letters; or for a square or cube
/// of a metre in those that name it behind: `mètres carrés`.
fn metric(lower: &str) -> Option<(&'static str, f64)> {
    const BASES: [&str; 6] = ["gramm", "gram", "meter", "metr", "liter", "litr"];
    const ENDINGS: [&str; 10] = ["", "e", "es", "n", "o", "os", "a", "as", "i", "s"];
    let plain = unmarked(lower);
    let (word, of) = plain.split_once(' ').map_or((plain.as_str(), None), |(word, of)| (word, Some(of)));
    let (factor, length) = beginning(PREFIXES, word).unwrap_or((1.0, 0));
    let is_base = |base: &&str| word[length..].strip_prefix(base).is_some_and(|rest| ENDINGS.contains(&rest));
    match (&BASES.into_iter().find(is_base)?[..1], of) {
        (base, None) => Some((base, factor)),
        ("m", Some(of)) if of.starts_with("cub") => Some(("m³", factor.powi(3))),
        ("m", Some(_)) => Some(("m²", factor.powi(2))),
        _ => None,
    }
}

/// The factor of a scale at the beginning of a word of a script without spaces, and its length: `5万円` has `万`.
pub(super) fn scale_before_words(word: &str) -> Option<(f64, usize)> {
    let (factor, length) = beginning(UNSPACED_SCALES, word)?;
    let also_unit = [1e3, 1e12].contains(&factor);
    (!also_unit || unit_before_words(&word[length..]).is_some()).then_some((factor, length))
}

/// The factor of a word behind a number.
pub(in crate::metric) fn scale_of(word: &str) -> Option<f64> {
    SCALES.iter().find(|(_, names)| has(names, word)).map(|(factor, _)| *factor)
}

/// The scale and the unit of a scale written together with the sign of a currency: `120 Md€`.
pub(super) fn scaled_sign(word: &str) -> Option<(f64, (&'static str, f64))> {
    let (scale, sign) = word.split_at(word.find(['€', '$', '£'])?);
    let scale = match scale {
        "k" | "K" => 1e3,
        "M" | "Mio" => 1e6,
        "Md" | "Mds" | "Mrd" => 1e9,
        _ => return None,
    };
    Some((scale, unit_of(sign)?))
}

/// The factor of letters directly behind an amount of money: `$30m`.
pub(super) fn scale_of_money(letters: &str) -> Option<f64> {
    Some(match letters {
        "m" | "mm" | "mn" => 1e6,
        "b" => 1e9,
        "t" | "tn" => 1e12,
        _ => return None,
    })
}

/// Letters of scripts without spaces between words, and of Korean, whose particles join numbers and units.
const UNSPACED: [RangeInclusive<char>; 4] =
    ['\u{e00}'..='\u{eff}', '\u{1000}'..='\u{109f}', '\u{1780}'..='\u{17ff}', '\u{3040}'..='\u{d7a3}'];

/// Whether a letter is of a script without spaces between words, or of Korean.
pub(super) fn is_unspaced(letter: char) -> bool {
    UNSPACED.iter().any(|range| range.contains(&letter))
}

/// A word, for an expression: one of letters with spaces around words ends before those of a script without: `500gです`. The
/// words for a square or a cube are a part of it in languages that have them behind. Capitals are no units before such a
/// script: `16G内存` are gigabytes, as `16GB内存` are, and `5A級` is a grade.
pub(super) fn word() -> String {
    let unspaced: String = UNSPACED.iter().map(|range| format!("{}-{}", range.start(), range.end())).collect();
    let square = r"carr[ée]s?|cuadrad[oa]s?|quadrad[oa]s?|quadr(?:at)?[io]|cubes?|c[úu]bicos?|cub[io]";
    let metres = format!(r"(?i:\p{{L}}*m[èe]t(?:er|re?)\p{{L}}*[ \u{{a0}}](?:{square})\b)|[ckm]?m[²³]");
    format!(r"(?:{metres}|\p{{Lu}}+[{unspaced}]\p{{L}}*|[\p{{L}}--[{unspaced}]]+|\p{{L}}+)")
}

/// The unit at the beginning of a word of a script without spaces: `30日間有効` has `日間`.
pub(super) fn unit_before_words(word: &str) -> Option<(&'static str, f64, usize)> {
    let begins = |name: &&str| name.starts_with(is_unspaced) && word.starts_with(name);
    let fitting = |(base, factor, names): &(&'static str, f64, &str)| {
        names.split(", ").find(begins).map(|name| (*base, *factor, name.len()))
    };
    if word.starts_with(is_unspaced) { UNITS.iter().find_map(fitting) } else { None }
}

/// Units that share a spelling: `$` is that of several countries, and so are `kr`, `¥` and cents; pounds are also weights.
const SHARED: &[(&str, &[&str])] = &[
    ("$", &["US$", "HK$", "NZ$", "S$", "A$", "C$"]),
    ("kr", &["SEK", "NOK", "DKK"]),
    ("¥", &["JPY", "CNY"]),
    ("pounds", &["pound", "£"]),
    ("cent", &["€", "$", "US$", "HK$", "NZ$", "S$", "A$", "C$", "BRL"]),
];

/// Whether two base units are the same, as far as is known: a bare `$` is that of any country that has dollars.
pub(super) fn are_one_unit(one: &str, other: &str) -> bool {
    let shared = |one: &str, other: &str| SHARED.iter().any(|(name, all)| *name == one && all.contains(&other));
    one == other || shared(one, other) || shared(other, one)
}

/// Whether a word behind a number, which begins with the unit `short`, is nothing that it may be short for: a scale, another
/// unit, or no unit. `million`, `mm` and `members` are no `m`; `metres` and `minutes` may be one.
pub(in crate::metric) fn is_another_unit(short: &str, word: &str) -> bool {
    let Some((base, factor)) = unit_of(short) else { return false };
    let is_same = |(other, its): (&str, f64)| are_one_unit(base, other) && equal(factor, its);
    // One letter may be short for the word of several units.
    let is_symbol = short.len() > 1 || word.chars().count() < 4;
    let more = word.get(short.len()..).unwrap_or_default();
    match unit_of(word) {
        _ if scale_of(word).is_some() => true,
        Some(unit) => is_symbol && !is_same(unit),
        None => short.is_ascii() && !more.starts_with(is_unspaced) && !ENDINGS.contains(&more),
    }
}

/// Whether a base unit is one of time.
pub(super) fn is_of_time(base: &str) -> bool {
    ["s", "month"].contains(&base)
}

/// Whether a base unit is one of length.
pub(super) fn is_of_length(base: &str) -> bool {
    ["m", "inch", "foot", "yard", "mile"].contains(&base)
}
