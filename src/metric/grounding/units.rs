//! Units and scales of numbers, by their spellings in a text.

use super::support::unmarked;
use regex::Regex;
use std::sync::LazyLock;

/// Units by their spellings, each with its base unit and factor.
const UNITS: &[(&str, &[&str], f64)] = &[
    (
        "%",
        &[
            "%", "٪", "percent", "per cent", "prozent", "pct", "pour cent", "por ciento", "por cento", "per cento",
            "procent", "prosent", "procento", "процент", "процента", "процентов",
        ],
        1.0,
    ),
    ("%", &["‰", "per mille", "promille"], 1e-1),
    ("m", &["m", "м", "メートル"], 1.0),
    ("m", &["mm", "мм", "ミリメートル"], 1e-3),
    ("m", &["cm", "см", "センチメートル"], 1e-2),
    ("m", &["km", "км", "キロメートル"], 1e3),
    ("m", &["µm", "μm"], 1e-6),
    (
        "m²",
        &["m²", "m2", "sqm", "qm", "square metre", "square metres", "square meter", "square meters", "quadratmeter"],
        1.0,
    ),
    ("m²", &["cm²", "cm2"], 1e-4),
    ("m²", &["mm²", "mm2"], 1e-6),
    ("m²", &["km²", "km2"], 1e6),
    ("m²", &["ha", "hectare", "hectares", "hektar"], 1e4),
    ("m²", &["square kilometre", "square kilometres", "square kilometer", "square kilometers"], 1e6),
    ("foot²", &["square foot", "square feet"], 1.0),
    ("mile²", &["square mile", "square miles"], 1.0),
    ("acre", &["acre", "acres"], 1.0),
    ("m³", &["m³", "m3", "cubic metre", "cubic metres", "cubic meter", "cubic meters", "kubikmeter"], 1.0),
    ("foot³", &["cubic foot", "cubic feet"], 1.0),
    ("m³", &["cm³", "cm3"], 1e-6),
    ("m³", &["mm³", "mm3"], 1e-9),
    ("m³", &["km³", "km3"], 1e9),
    ("m/s", &["m/s"], 1.0),
    ("m/s", &["km/h", "km/hr", "kmh", "kph"], 1.0 / 3.6),
    ("mile/h", &["mph"], 1.0),
    ("mile", &["mile", "miles", "mi"], 1.0),
    ("yard", &["yard", "yards", "yd"], 1.0),
    ("foot", &["foot", "feet", "ft"], 1.0),
    ("inch", &["inch", "inches"], 1.0),
    ("g", &["g", "グラム"], 1.0),
    ("g", &["mg", "ミリグラム"], 1e-3),
    ("g", &["µg", "μg", "mcg"], 1e-6),
    ("g", &["kg", "кг", "kilo", "kilos", "キログラム"], 1e3),
    ("g", &["tonne", "tonnes"], 1e6),
    ("pound", &["lb", "lbs"], 1.0),
    ("pounds", &["pounds"], 1.0),
    ("ounce", &["oz", "ounce", "ounces"], 1.0),
    ("l", &["l", "л", "リットル"], 1.0),
    ("l", &["cl"], 1e-2),
    ("l", &["dl"], 1e-1),
    ("gallon", &["gal", "gallon", "gallons"], 1.0),
    ("l", &["ml", "мл", "ミリリットル"], 1e-3),
    (
        "s",
        &[
            "s", "sec", "second", "seconds", "sekunde", "sekunden", "seconde", "secondes", "segundo", "segundos",
            "secondo", "secondi", "seconden", "sekund", "sekunder", "sekunda", "sekundy", "секунда", "секунды",
            "секунд", "сек", "saniye", "秒",
        ],
        1.0,
    ),
    ("s", &["µs", "μs", "microsecond", "microseconds"], 1e-6),
    ("s", &["ms", "millisecond", "milliseconds", "мс"], 1e-3),
    (
        "s",
        &[
            "min", "mins", "minute", "minutes", "minuten", "minuto", "minutos", "minuti", "minuut", "minut", "minuter",
            "minutter", "minutt", "minuta", "minuty", "минута", "минуты", "минут", "мин", "dakika", "分間", "分钟",
            "分鐘",
        ],
        60.0,
    ),
    (
        "s",
        &[
            "h", "hr", "hrs", "hour", "hours", "stunde", "stunden", "heure", "heures", "hora", "horas", "ora", "ore",
            "uur", "uren", "timme", "timmar", "godzina", "godziny", "godzin", "час", "часа", "часов", "ч", "saat",
            "時間", "小时", "小時", "个小时", "個小時", "시간",
        ],
        3600.0,
    ),
    (
        "s",
        &[
            "day", "days", "tag", "tage", "tagen", "jour", "jours", "día", "días", "dia", "dias", "giorno", "giorni",
            "tages", "dag", "dagen", "dagar", "dage", "dager", "dygn", "dzień", "dni", "день", "дня", "дней", "дні",
            "днів", "gün", "günü", "日間", "天", "営業日", "工作日", "个工作日", "個工作日", "工作天", "個工作天",
            "영업일", "日",
        ],
        86400.0,
    ),
    (
        "s",
        &[
            "week", "weeks", "woche", "wochen", "semaine", "semaines", "semana", "semanas", "settimana", "settimane",
            "weken", "vecka", "veckor", "uge", "uger", "uke", "uker", "tydzień", "tygodnie", "tygodni", "неделя",
            "недели", "недель", "hafta", "週間", "星期", "个星期",
        ],
        7.0 * 86400.0,
    ),
    (
        "month",
        &[
            "month", "months", "monat", "monate", "monaten", "mois", "mes", "meses", "mese", "mesi", "mês", "maand",
            "maanden", "månad", "månader", "måned", "måneder", "miesiąc", "miesiące", "miesięcy", "месяц", "месяца",
            "месяцев", "ay", "monats", "ヵ月", "か月", "ヶ月", "カ月", "个月", "個月", "개월",
        ],
        1.0,
    ),
    (
        "month",
        &[
            "year", "years", "jahr", "jahre", "jahren", "ans", "année", "années", "año", "años", "anno", "anni", "ano",
            "anos", "jaar", "jaren", "år", "lata", "lat", "год", "года", "лет", "yıl", "jahres", "年間", "年", "년",
        ],
        12.0,
    ),
    ("V", &["v", "volt", "volts"], 1.0),
    ("V", &["mv", "millivolt", "millivolts"], 1e-3),
    ("V", &["kv", "kilovolt", "kilovolts"], 1e3),
    ("A", &["A", "amp", "amps", "ampere", "amperes"], 1.0),
    ("A", &["ma", "milliamp", "milliamps", "milliampere"], 1e-3),
    ("Ah", &["ah", "a·h", "a⋅h", "a h"], 1.0),
    ("Ah", &["mah"], 1e-3),
    ("W", &["w", "watt", "watts"], 1.0),
    ("W", &["mW", "milliwatt", "milliwatts"], 1e-3),
    ("W", &["kw", "kilowatt", "kilowatts"], 1e3),
    ("W", &["MW", "megawatt", "megawatts"], 1e6),
    ("Wh", &["wh", "w·h", "w⋅h", "w h"], 1.0),
    ("Wh", &["kwh", "kw·h", "kw⋅h", "kw h"], 1e3),
    ("Wh", &["MWh"], 1e6),
    ("Wh", &["mWh"], 1e-3),
    ("J", &["j", "joule", "joules"], 1.0),
    ("J", &["mJ"], 1e-3),
    ("J", &["kj", "kilojoule", "kilojoules"], 1e3),
    ("J", &["MJ"], 1e6),
    ("kcal", &["kcal"], 1.0),
    ("N", &["n", "newton", "newtons"], 1.0),
    ("Nm", &["Nm", "N·m", "N⋅m", "N m", "newton metres", "newton meters"], 1.0),
    ("dB", &["db", "dba", "decibel", "decibels"], 1.0),
    ("lm", &["lm", "lumen", "lumens"], 1.0),
    ("rpm", &["rpm"], 1.0),
    ("Ω", &["Ω", "ω", "ohm", "ohms"], 1.0),
    ("Hz", &["hz", "hertz"], 1.0),
    ("Hz", &["khz"], 1e3),
    ("Hz", &["mhz"], 1e6),
    ("Hz", &["ghz"], 1e9),
    ("Pa", &["bar"], 1e5),
    ("Pa", &["mbar", "millibar"], 1e2),
    ("Pa", &["pa", "pascal"], 1.0),
    ("Pa", &["hpa"], 1e2),
    ("Pa", &["kpa"], 1e3),
    ("Pa", &["MPa", "N/mm²", "N/mm2"], 1e6),
    ("psi", &["psi"], 1.0),
    ("°C", &["°c", "ºc", "celsius"], 1.0),
    ("°F", &["°f", "ºf", "fahrenheit"], 1.0),
    ("bit", &["bit", "bits", "bps"], 1.0),
    ("bit", &["kbit", "kbps"], 1e3),
    ("bit", &["mbit", "mbps"], 1e6),
    ("bit", &["gbit", "gbps"], 1e9),
    ("byte", &["byte", "bytes"], 1.0),
    ("byte", &["kb", "kilobyte", "kilobytes"], 1e3),
    ("byte", &["mb", "megabyte", "megabytes"], 1e6),
    ("byte", &["gb", "gigabyte", "gigabytes"], 1e9),
    ("byte", &["tb", "terabyte", "terabytes"], 1e12),
    ("$", &["$", "dollar", "dollars"], 1.0),
    ("US$", &["us$", "usd"], 1.0),
    ("HK$", &["hk$", "hkd"], 1.0),
    ("NZ$", &["nz$", "nzd"], 1.0),
    ("S$", &["s$", "sgd"], 1.0),
    ("A$", &["a$", "au$", "aud"], 1.0),
    ("C$", &["c$", "ca$", "cad"], 1.0),
    ("BRL", &["r$", "brl", "reais"], 1.0),
    ("¥", &["¥"], 1.0),
    ("JPY", &["jpy", "yen", "円"], 1.0),
    ("CNY", &["cny", "rmb", "yuan", "元"], 1.0),
    ("KRW", &["₩", "krw", "원"], 1.0),
    ("₹", &["₹", "inr", "rs", "rupee", "rupees"], 1.0),
    ("CHF", &["chf"], 1.0),
    ("SEK", &["sek"], 1.0),
    ("NOK", &["nok"], 1.0),
    ("DKK", &["dkk"], 1.0),
    ("kr", &["kr", "kronor", "kroner", "krone", "krona"], 1.0),
    ("PLN", &["pln", "zł", "złoty", "złote", "złotych"], 1.0),
    ("CZK", &["czk", "kč"], 1.0),
    ("RUB", &["₽", "RUB", "руб", "рубль", "рубля", "рублей"], 1.0),
    ("TRY", &["₺", "TRY", "TL", "lira"], 1.0),
    ("€", &["€", "eur", "euro", "euros", "евро", "유로", "ユーロ"], 1.0),
    ("£", &["£", "gbp"], 1.0),
    ("£", &["pence", "penny"], 1e-2),
    ("cent", &["¢", "cent", "cents", "centimes", "centavos", "céntimos"], 1e-2),
];

/// Words that multiply the number before them.
const SCALES: &[(&[&str], f64)] = &[
    (&["hundred"], 1e2),
    (
        &[
            "thousand", "k", "tausend", "tsd", "mille", "mil", "tysiąc", "tysiące", "tysięcy", "tys", "тыс", "тысяч",
            "тысячи",
        ],
        1e3,
    ),
    (&["lakh", "lakhs", "lac", "lacs"], 1e5),
    (
        &[
            "million", "millions", "mio", "millionen", "millones", "millón", "milione", "milioni", "milhão", "milhões",
            "miljoen", "miljon", "miljoner", "millioner", "milion", "miliony", "milionów", "mln", "миллион",
            "миллиона", "миллионов", "млн", "milyon",
        ],
        1e6,
    ),
    (&["crore", "crores"], 1e7),
    (
        &[
            "billion", "billions", "bn", "milliarde", "milliarden", "mrd", "milliard", "milliards", "miliardo",
            "miliardi", "mld", "miljard", "miljarder", "milliarder", "miliard", "miliardy", "miliardów", "миллиард",
            "миллиарда", "миллиардов", "млрд", "milyar",
        ],
        1e9,
    ),
    (&["trillion"], 1e12),
];

/// Scales of scripts without spaces, longest first. Those of a thousand and of 10¹² also begin units (`千克`, `兆赫`).
const UNSPACED_SCALES: &[(&str, f64)] = &[
    ("百万", 1e6),
    ("百萬", 1e6),
    ("千万", 1e7),
    ("千萬", 1e7),
    ("万", 1e4),
    ("萬", 1e4),
    ("만", 1e4),
    ("億", 1e8),
    ("亿", 1e8),
    ("억", 1e8),
    ("千", 1e3),
    ("천", 1e3),
    ("兆", 1e12),
    ("조", 1e12),
];

/// What the compounds of Germanic languages have before a unit: `Werktage`, `arbetsdagar`, `workdays`.
const COMPOUNDS: &[&str] = &[
    "bankarbeits", "arbeits", "werk", "kalender", "geschäfts", "bank", "urlaubs", "lebens", "arbets", "arbejds",
    "virke", "hver", "work", "week",
];

/// The base unit of a spelling, and the factor to it. Case matters where a spelling of the table has capitals: `MW`, `mW`.
pub(super) fn unit_of(word: &str) -> Option<(&'static str, f64)> {
    let lower = word.to_lowercase();
    let known = || UNITS.iter().find(|(_, names, _)| names.contains(&word) || names.contains(&lower.as_str()));
    // `banks` has no seconds.
    let of_time =
        |of: &str| UNITS.iter().find(|(base, names, _)| of.len() > 2 && is_of_time(base) && names.contains(&of));
    let compound = || COMPOUNDS.iter().find_map(|first| of_time(lower.strip_prefix(first)?));
    // `3-monatige`, `14-tägiges`.
    let adjective = || {
        let ending = lower.strip_suffix(['e', 'm', 'n', 'r', 's']).unwrap_or(&lower);
        let noun = unmarked(ending.strip_suffix('e').unwrap_or(ending).strip_suffix("ig")?);
        of_time(&noun).or_else(|| of_time(&format!("{noun}e")))
    };
    let found = known().or_else(compound).or_else(adjective).map(|(base, _, factor)| (*base, *factor));
    // `metro` alone is also a railway.
    found.or_else(|| metric(&lower).filter(|_| lower != "metro"))
}

/// The unit of a word for a metre, a gram or a litre, and their parts, in languages of Latin letters; or for a square or cube
/// of a metre in those that name it behind: `mètres carrés`.
fn metric(lower: &str) -> Option<(&'static str, f64)> {
    static METRIC: LazyLock<Regex> = LazyLock::new(|| {
        let prefix = "(?P<prefix>mill?i|[cz]enti|de[cz]i|micro|mikro|kilo|quilo|chilo)?";
        let ending = "(?:e|es|n|o|os|a|as|i|s)?";
        Regex::new(&format!("^{prefix}(?P<base>gramm?|met(?:er|r)|lit(?:er|r)){ending}(?: (?P<of>.+))?$"))
            .expect("an expression")
    });
    let plain = unmarked(lower);
    let parts = METRIC.captures(&plain)?;
    let factor = parts.name("prefix").map_or(1.0, |prefix| match &prefix.as_str()[..2] {
        "mi" if prefix.as_str().ends_with("ro") => 1e-6,
        "mi" => 1e-3,
        "ce" | "ze" => 1e-2,
        "de" => 1e-1,
        _ => 1e3,
    });
    Some(match (&parts["base"][..1], parts.name("of")) {
        ("g", None) => ("g", factor),
        ("l", None) => ("l", factor),
        ("m", None) => ("m", factor),
        ("m", Some(of)) if of.as_str().starts_with("cub") => ("m³", factor.powi(3)),
        ("m", Some(_)) => ("m²", factor.powi(2)),
        _ => return None,
    })
}

/// The factor of a scale at the beginning of a word of a script without spaces, and its length: `5万円` has `万`.
pub(super) fn scale_before_words(word: &str) -> Option<(f64, usize)> {
    let (name, factor) = UNSPACED_SCALES.iter().find(|(name, _)| word.starts_with(name))?;
    let also_unit = [1e3, 1e12].contains(factor);
    (!also_unit || unit_before_words(&word[name.len()..]).is_some()).then_some((*factor, name.len()))
}

/// The factor of a word behind a number.
pub(super) fn scale_of(word: &str) -> Option<f64> {
    SCALES.iter().find(|(names, _)| names.contains(&word)).map(|(_, factor)| *factor)
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

/// A word, for an expression: one of letters with spaces around words ends before those of a script without: `500gです`. The
/// words for a square or a cube are a part of it in languages that have them behind. Capitals are no units before such a
/// script: `16G内存` are gigabytes, as `16GB内存` are, and `5A级` is a grade.
pub(super) const WORD: &str = concat!(
    r"(?:(?i:\p{L}*m[èe]t(?:er|re?)\p{L}*[ \u{a0}]",
    r"(?:carr[ée]s?|cuadrad[oa]s?|quadrad[oa]s?|quadr(?:at)?[io]|cubes?|c[úu]bicos?|cub[io])\b)|[ckm]?m[²³]|",
    r"\p{Lu}+[\u{e00}-\u{eff}\u{1000}-\u{109f}\u{1780}-\u{17ff}\u{3040}-\u{d7a3}]\p{L}*|",
    r"[\p{L}--[\u{e00}-\u{eff}\u{1000}-\u{109f}\u{1780}-\u{17ff}\u{3040}-\u{d7a3}]]+|\p{L}+)"
);

/// Whether a letter is of a script without spaces between words, or of Korean, whose particles join numbers and units.
pub(super) fn is_unspaced(letter: char) -> bool {
    matches!(letter, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{d7a3}')
}

/// The unit at the beginning of a word of a script without spaces: `30日間有効` has `日間`.
pub(super) fn unit_before_words(word: &str) -> Option<(&'static str, f64, usize)> {
    let begins = |name: &&&str| name.starts_with(is_unspaced) && word.starts_with(**name);
    let fitting = |(base, names, factor): &(&'static str, &[&str], f64)| {
        names.iter().find(begins).map(|name| (*base, *factor, name.len()))
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

/// Whether a base unit is one of time.
pub(super) fn is_of_time(base: &str) -> bool {
    ["s", "month"].contains(&base)
}

/// Whether a base unit is one of length.
pub(super) fn is_of_length(base: &str) -> bool {
    ["m", "inch", "foot", "yard", "mile"].contains(&base)
}
