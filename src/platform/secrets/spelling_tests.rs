//! A planted key in every spelling and position.

use super::tests::{knowing, url_encoded};
use super::*;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use proptest::prelude::*;
use serde_json::json;

/// Spelling of a text in a file.
#[derive(Debug, Clone, Copy)]
enum Spelling {
    Plain,
    Json,
    JsonTwice,
    SlashEscaped,
    EveryLetterAsUnicode { upper: bool },
    Percent { upper: bool },
    EveryBytePercent,
    PercentTwice,
    Html,
    HtmlDecimal,
    HtmlHex,
    Base64 { lead: usize },
    Base64Url { lead: usize },
    Base64Twice { lead: usize, again: usize },
    Hex { upper: bool },
    HexOfBothCases,
    PercentOfBothCases,
}

fn quoted(text: &str) -> String {
    let quoted = json!(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn percent(text: &str, upper: bool) -> String {
    let all = url_encoded(text);
    if upper {
        all
    } else {
        all.replace("%2F", "%2f").replace("%2B", "%2b").replace("%3D", "%3d").replace("%5C", "%5c")
    }
}

/// Every third letter in upper case.
fn both_cases(text: &str) -> String {
    let letter = |(place, letter): (usize, char)| if place % 3 == 0 { letter.to_ascii_uppercase() } else { letter };
    text.chars().enumerate().map(letter).collect()
}

impl Spelling {
    fn of(self, text: &str) -> String {
        let each = |spell: &dyn Fn(char) -> String| text.chars().map(spell).collect::<String>();
        let around = |lead: usize| ["", "a", "ab"][lead].to_owned() + text + "tail";
        match self {
            Self::Plain => text.to_owned(),
            Self::Json => quoted(text),
            Self::JsonTwice => quoted(&quoted(text)),
            Self::SlashEscaped => quoted(text).replace('/', "\\/"),
            Self::EveryLetterAsUnicode { upper: true } => each(&|letter| format!("\\u{:04X}", u32::from(letter))),
            Self::EveryLetterAsUnicode { upper: false } => each(&|letter| format!("\\u{:04x}", u32::from(letter))),
            Self::Percent { upper } => percent(text, upper),
            Self::EveryBytePercent => text.bytes().map(|byte| format!("%{byte:02x}")).collect::<Vec<_>>().concat(),
            Self::PercentTwice => url_encoded(&url_encoded(text)),
            Self::Html => text
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;")
                .replace('"', "&quot;")
                .replace('\'', "&#39;")
                .replace('/', "&#x2f;"),
            Self::HtmlDecimal => each(&|letter| format!("&#{};", u32::from(letter))),
            Self::HtmlHex => each(&|letter| format!("&#x{:X};", u32::from(letter))),
            Self::Base64 { lead } => STANDARD.encode(around(lead)),
            Self::Base64Url { lead } => URL_SAFE.encode(around(lead)),
            Self::Base64Twice { lead, again } => {
                STANDARD.encode(["", "x", "xy"][again].to_owned() + &STANDARD.encode(around(lead)))
            }
            Self::Hex { upper: true } => hex::encode_upper(text),
            Self::Hex { upper: false } => hex::encode(text),
            Self::HexOfBothCases => both_cases(&hex::encode(text)),
            Self::PercentOfBothCases => {
                both_cases(&text.bytes().fold(String::new(), |told, byte| told + &format!("%{byte:02x}")))
            }
        }
    }

    /// The part of the key that can be read back from the text.
    fn read_back(self, text: &str) -> String {
        let decoded = |text: &str| {
            let runs = text.split(|letter: char| !letter.is_ascii_alphanumeric() && !"+/=-_".contains(letter));
            let bytes = runs.flat_map(|run| {
                let run = run.replace('-', "+").replace('_', "/");
                let whole = run.trim_end_matches('=');
                // The text around a mark may not be aligned to base64 groups: every offset is tried.
                (0..4.min(whole.len()))
                    .flat_map(|skip| {
                        let part = &whole[skip..];
                        STANDARD.decode(&part[..part.len() / 4 * 4]).unwrap_or_default()
                    })
                    .collect::<Vec<u8>>()
            });
            String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
        };
        match self {
            Self::Base64 { .. } | Self::Base64Url { .. } => decoded(text),
            Self::Base64Twice { .. } => decoded(&decoded(text)),
            _ => text.to_owned(),
        }
    }
}

fn spelling() -> impl Strategy<Value = Spelling> {
    prop_oneof![
        Just(Spelling::Plain),
        Just(Spelling::Json),
        Just(Spelling::JsonTwice),
        Just(Spelling::SlashEscaped),
        any::<bool>().prop_map(|upper| Spelling::EveryLetterAsUnicode { upper }),
        any::<bool>().prop_map(|upper| Spelling::Percent { upper }),
        Just(Spelling::EveryBytePercent),
        Just(Spelling::PercentTwice),
        Just(Spelling::Html),
        Just(Spelling::HtmlDecimal),
        Just(Spelling::HtmlHex),
        (0..3_usize).prop_map(|lead| Spelling::Base64 { lead }),
        (0..3_usize).prop_map(|lead| Spelling::Base64Url { lead }),
        (0..3_usize, 0..3_usize).prop_map(|(lead, again)| Spelling::Base64Twice { lead, again }),
        any::<bool>().prop_map(|upper| Spelling::Hex { upper }),
        Just(Spelling::HexOfBothCases),
        Just(Spelling::PercentOfBothCases),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn a_key_in_any_spelling_and_place_is_in_nothing_that_is_written(
        key in "[A-Za-z0-9/+=_.\"\\\\&<'-]{8,40}".prop_filter("a letter", |key| key.chars().any(char::is_alphanumeric)),
        spelling in spelling(),
        before in "[ .,a-z]{0,12}", after in "[ .,a-z]{0,12}",
    ) {
        let redactor = knowing(&key);
        let spelt = spelling.of(&key);
        let text = format!("{before} {spelt} {after}");
        let clean = redactor.redact(&text).into_owned();
        prop_assert!(clean.contains("[redacted:"), "{:?}: {} is left of {}", spelling, clean, text);
        prop_assert!(!spelling.read_back(&clean).contains(&key), "{:?}: {}", spelling, clean);
        prop_assert!(redactor.is_clean(&clean), "{}", clean);
        // In a body, a stream, a member name, and an error text.
        for body in [json!({"a": [text]}).to_string(), json!({ text.clone(): 1 }).to_string(), text.clone(), format!("data: {}\n\n", json!({"d": text}))] {
            let written = redactor.redact_body(body.as_bytes()).map_or(body.clone(), |body| String::from_utf8_lossy(&body).into_owned());
            prop_assert!(redactor.is_clean(&written), "{:?}: {} of {}", spelling, written, body);
            prop_assert!(!spelling.read_back(&written).contains(&quoted(&key)), "{:?}: {}", spelling, written);
        }
    }

    #[test]
    fn a_key_in_any_spelling_is_in_no_panic_no_header_value_and_no_label(
        key in "[A-Za-z0-9/+=_.\"\\\\&<'-]{8,40}".prop_filter("a letter", |key| key.chars().any(char::is_alphanumeric)),
        spelling in spelling(),
        before in "[ .,a-z]{0,12}",
    ) {
        declare([("FUZZED_KEY".to_owned(), key.clone())]);
        let spelt = format!("{before} {}", spelling.of(&key));
        // As printed by the panic hook, as stored in an ERROR, and as formatted by `expect`.
        let panics = [
            format!("thread 'main' panicked at src/run/live.rs:1:2:\n{spelt}"),
            format!("called `Result::unwrap()` on an `Err` value: Odd({spelt:?})"),
        ];
        for text in &panics {
            let printed = clean(text);
            prop_assert!(!spelling.read_back(&printed).contains(&key), "{:?}: {}", spelling, printed);
            let stored = clean_bytes(&serde_json::to_vec(&json!({"end": {"error": {"message": text}}})).expect("JSON")).into_owned();
            let stored = String::from_utf8(stored).expect("UTF-8");
            prop_assert!(!spelling.read_back(&stored).contains(&quoted(&key)), "{:?}: {}", spelling, stored);
        }
        // Stored headers, and labels: names and values.
        let headers = ["content-type", "retry-after", "retry-after-ms", "x-should-retry"]
            .map(|name| (name.to_owned(), format!("text/plain; note=\"{spelt}\"")));
        for (name, value) in knowing(&key).headers(&headers) {
            prop_assert!(!spelling.read_back(&value).contains(&key), "{:?}: {}: {}", spelling, name, value);
        }
        let point = serde_json::to_vec(&json!({"labels": {spelt.clone(): spelt}})).expect("JSON");
        for stored in [clean_bytes(&point), clean_text_bytes(&point)] {
            let stored = String::from_utf8_lossy(&stored).into_owned();
            prop_assert!(!spelling.read_back(&stored).contains(&quoted(&key)), "{:?}: {}", spelling, stored);
        }
    }

    #[test]
    fn a_short_key_that_the_project_declares_goes_where_it_stands_alone(key in "[a-z][A-Z0-9][A-Za-z0-9]{2,5}", before in "[ .,:\"(]{1,3}") {
        prop_assume!(!["none", "null", "empty", "dummy", "test", "ollama", "local", "nokey", "unused", "testing"].contains(&key.to_lowercase().as_str()));
        let redactor = knowing(&key);
        for text in [format!("{before}{key}, and"), key.clone(), json!({"a": format!("x\n{key}")}).to_string(), format!("q=%20{key}&x=1")] {
            let clean = redactor.redact(&text).into_owned();
            prop_assert!(redactor.is_clean(&clean) && clean.contains("[redacted:SERVICE_KEY]"), "{} of {}", clean, text);
        }
        for word in [format!("a{key}a"), format!("look_{key}"), format!("{key}-up"), format!("a__{key}__b")] {
            prop_assert_eq!(redactor.redact(&word), word.as_str(), "a word is not torn apart");
        }
        let option = redactor.redact(&format!("--{key}")).into_owned();
        prop_assert!(!option.contains(&key) || "SERVICE_KEY".contains(&key), "{}", option);
    }
}
