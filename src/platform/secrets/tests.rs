//! Tests with a planted key.

use super::well_known::without_escapes;
use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::json;

pub(super) fn url_encoded(value: &str) -> String {
    value
        .bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

pub(super) fn knowing(value: &str) -> Redactor {
    Redactor::new([("SERVICE_KEY".to_owned(), value.to_owned())])
}

#[test]
fn a_key_in_the_query_of_a_path_has_one_name_whether_its_value_or_its_form_is_known() {
    let path = |key: &str| format!("/models/m:generateContent?key={key}&alt=sse");
    let known = Redactor::new([("SERVICE_KEY".to_owned(), "known-key-0453".to_owned())]);
    for key in ["known-key-0453", "AIzaSyD4t8w2kq9s6m1xv3z7b5n0cfgh", "test123", "Zm9vYmFyYmF6cXV4Zm9v%2Bqux%3D"] {
        assert_eq!(known.redact_path(&path(key), false), path("[redacted:key]"));
    }
    for unset in ["", "None", "none", "test-123"] {
        assert_eq!(known.redact_path(&path(unset), true), path("[redacted:key]"));
        assert_eq!(known.redact_path(&path(unset), false), path(unset));
    }
    assert_eq!(known.redact_path("/models?alt=sse", true), "/models?alt=sse");
}

#[test]
fn a_known_secret_goes_in_every_spelling() {
    let secret = "pass/word+\"1234\"";
    let redactor = knowing(secret);
    for spelled in [
        secret.to_owned(),
        url_encoded(secret),
        json!(secret).to_string(),
        STANDARD.encode(secret.as_bytes()),
        STANDARD.encode(format!("u:{secret}").as_bytes()),
        STANDARD.encode(format!("me:{secret}").as_bytes()),
        STANDARD.encode(format!("you:{secret}@host").as_bytes()),
    ] {
        assert!(redactor.leak(&spelled).is_some(), "{spelled}");
        let text = redactor.redact(&spelled).into_owned();
        assert!(text.contains("[redacted:SERVICE_KEY]"), "{spelled} became {text}");
        assert!(redactor.is_clean(&text), "{text}");
    }
}

#[test]
fn well_known_keys_go_without_being_known() {
    let redactor = Redactor::default();
    for (text, clean) in [
        ("use sk-abcdefghijklmnop1234 now", "use [redacted:openai] now"),
        ("pplx-abcdefghijklmnop1234", "[redacted:perplexity]"),
        ("Authorization: Bearer abcdefghijklmnop.1234", "Authorization: Bearer [redacted:key]"),
        ("AKIAABCDEFGHIJKLMNOP", "[redacted:aws]"),
        ("https://host/v1?key=abcdefghijklmnop1234&x=1", "https://host/v1?key=[redacted:key]&x=1"),
        ("a risk-assessment-of-some-length, a key=short", "a risk-assessment-of-some-length, a key=short"),
    ] {
        assert_eq!(redactor.redact(text), clean);
    }
}

#[test]
fn a_key_behind_an_escaped_line_break_is_found() {
    let redactor = Redactor::default();
    let body = json!({"a": ["x\nsk-abcdefghijklmnop1234"], "n": 1.0}).to_string();
    assert!(body.contains("\\nsk-"));
    let redacted = redactor.redact_body(body.as_bytes()).expect("something to redact");
    assert_eq!(redacted, br#"{"a":["x\n[redacted:openai]"],"n":1.0}"#);
    assert_eq!(redactor.redact_body(&redacted), None);
    let binary = redactor.redact_body(b"\xff sk-abcdefghijklmnop1234");
    assert_eq!(binary, Some(b"[redacted:key: a binary body of 25 bytes]".to_vec()));
    assert_eq!(redactor.redact_body(b"no json: sk-abcdefghijklmnop1234"), Some(b"no json: [redacted:openai]".to_vec()));
}

#[test]
fn a_key_behind_a_line_break_in_the_arguments_of_a_call_goes_too() {
    let arguments = json!({"query": "x\nsk-abcdefghijklmnop1234"}).to_string();
    let redacted = Redactor::default().redact_value(&json!({ "arguments": arguments }));
    assert_eq!(redacted["arguments"], r#"{"query":"x\n[redacted:openai]"}"#);
    assert_eq!(without_escapes(r#"a\nb\"c\\n\"#), "a  b  c  n ");
}

#[test]
fn headers_pass_by_an_allow_list() {
    let headers = [("content-type", "text/plain"), ("set-cookie", "s=1"), ("retry-after", "2"), ("x-request-id", "r")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let kept: Vec<String> = Redactor::default().headers(&headers).into_iter().map(|(name, _)| name).collect();
    assert_eq!(kept, ["content-type", "retry-after"]);
}

#[test]
fn names_of_members_are_redacted_too_and_debug_shows_no_value() {
    let redactor = knowing("hunter2hunter2");
    assert_eq!(redactor.redact_value(&json!({"hunter2hunter2": [1]})), json!({"[redacted:SERVICE_KEY]": [1]}));
    assert!(!format!("{redactor:?}").contains("hunter2"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_surely_clean_as_json_however_deep_has_nothing_to_redact(
        parts in prop::collection::vec(prop_oneof![
            Just("Bearer".to_owned()), Just("bearer ".to_owned()), Just("api_key=".to_owned()), Just("key=".to_owned()),
            "[ \\\\nrt\"]{1,3}", "[\n\r\t\u{1} ]{1,2}", "[a-n0-9.-]{16,18}", "[nrt]", Just("sk-".to_owned()), Just("é".to_owned()),
        ], 1..7),
    ) {
        let redactor = Redactor::default();
        let text = parts.concat();
        let once = json!({"a": text}).to_string();
        for (outer, inner) in [(json!(text).to_string(), &text), (json!({"arguments": once}).to_string(), &once)] {
            if redactor.is_surely_clean(&outer) {
                prop_assert_eq!(redactor.redact(inner), inner.as_str(), "{}", outer);
            }
        }
    }
}

proptest! {
    #[test]
    fn redacting_twice_is_redacting_once(
        secret in "[A-Za-z0-9+/]{12,24}",
        parts in prop::collection::vec(prop_oneof![
            "[ -~]{0,20}", Just("SECRET".to_owned()), Just("Bearer ".to_owned()), Just("key=".to_owned()),
            Just("sk-abcdefghijklmnopqrst".to_owned()), "[A-Za-z0-9]{16,20}",
        ], 0..8),
    ) {
        let redactor = knowing(&secret);
        let text = parts.concat().replace("SECRET", &secret);
        let once = redactor.redact(&text).into_owned();
        prop_assert_eq!(redactor.redact(&once), once.as_str());
        prop_assert!(redactor.is_clean(&once));
    }
}

#[test]
fn words_that_stand_for_no_key_are_left_alone_and_long_keys_go_whole() {
    let redactor = Redactor::new([("LOCAL".to_owned(), "ollama".to_owned()), ("NONE".to_owned(), "-".to_owned())]);
    assert_eq!(redactor.redact("ollama llama3 - none"), "ollama llama3 - none");
    let long: String = (0..700).map(|number| char::from(b'a' + (number * 7 % 26) as u8)).collect();
    let redactor = knowing(&format!("-----BEGIN KEY-----\n{long}\n-----END KEY-----\n"));
    let body = json!({"private_key": format!("-----BEGIN KEY-----\n{long}\n-----END KEY-----\n")}).to_string();
    let written = redactor.redact_body(body.as_bytes()).expect("redacted");
    assert!(!String::from_utf8_lossy(&written).contains(&long[..40]), "{}", String::from_utf8_lossy(&written));
}

#[test]
fn a_key_that_is_a_short_word_or_number_is_not_redacted_and_one_of_mixed_characters_is() {
    for (key, kept) in [
        ("x", true),
        ("abc", true),
        ("a1-", true),
        ("capital", true),
        ("Capital", true),
        ("CAPITAL", true),
        ("1234567", true),
        ("a1b2", false),
        ("hunter2", false),
        ("cApiTal", false),
        ("capitals", false),
        ("12345678", false),
    ] {
        let text = format!("the capital: {key}, 4711");
        assert_eq!(knowing(key).redact(&text) == text, kept, "{key}");
        assert_eq!(is_unredacted(key), kept, "{key}");
    }
    assert!(!is_unredacted("test") && !is_unredacted(" "), "placeholders are known as what they are");
}

#[test]
fn a_binary_body_with_a_key_is_not_kept() {
    let body = b"\xff\xfe hunter2hunter2 \x00";
    let written = knowing("hunter2hunter2").redact_body(body).expect("redacted");
    assert_eq!(written, b"[redacted:SERVICE_KEY: a binary body of 19 bytes]");
}

#[test]
fn what_the_process_declared_is_cleaned_from_documents_that_stay_documents() {
    declare([("TEST_ONLY_KEY".to_owned(), "only-in-this-test-0451/x".to_owned())]);
    let line = "{\"a\":\"only-in-this-test-0451\\/x\",\"n\":[1,2.5]}\n";
    assert_eq!(clean_bytes(line.as_bytes()).as_ref(), b"{\"a\":\"[redacted:TEST_ONLY_KEY]\",\"n\":[1,2.5]}\n");
    assert_eq!(clean("only-in-this-test-0451%2fx is it"), "[redacted:TEST_ONLY_KEY] is it");
    let plain = b"{\"a\": 1}";
    assert_eq!(clean_bytes(plain).as_ref(), plain, "what is clean is left as it was written");
}

#[test]
fn a_secret_goes_before_a_text_is_cut_so_that_no_part_of_it_stays() {
    declare([("CUT_KEY".to_owned(), "only-in-that-test-0452-and-long".to_owned())]);
    assert_eq!(beginning("about only-in-that-test-0452-and-long here", 20), "about [redacted:CUT_");
    let key = "only-in-that-test-0452-and-long";
    let hidden = key.replacen('n', &format!("n{}", "\u{200b}".repeat(20_000)), 1);
    let escaped: String = key.chars().map(|letter| format!("{}u{:04x}", "\\".repeat(8), u32::from(letter))).collect();
    for text in [
        format!("{key} {}", "x".repeat(50_000)),
        format!("12345 {hidden} {}", "x".repeat(50_000)),
        format!("12345 {escaped} {}", "x".repeat(50_000)),
        // Redacting shortens it to less than is asked for.
        format!("{}{}", format!("{escaped} ").repeat(100), "x".repeat(50_000)),
        "ü".repeat(50_000),
    ] {
        for most in [3, 10, 300] {
            assert_eq!(beginning(&text, most), clean(&text).chars().take(most).collect::<String>());
        }
    }
}

/// Secrets of well-known forms, undeclared, as recorders and logs spell them.
const UNDECLARED: [&str; 49] = [
    "token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P, good for a day",
    r#"{"id_token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"}"#,
    r#"{"jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"}"#,
    "ya29.a0AfH6SMBx0451-planted_Value9",
    r#"{"access_token": "ya29.a0AfH6SMBx0451-planted_Value9", "expires_in": 3599}"#,
    r#"{"refresh_token": "1//04abcdefghijklmnopqrstuvwxyz0451planted"}"#,
    "XAI_API_KEY=xai-plantedKey0451plantedKey0451plantedKey0451",
    "sk_live_plantedKey0451plantedKey0451",
    "rk_test_plantedKey0451plantedKey0451",
    "whsec_plantedKey0451plantedKey0451plan",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYplanted0451",
    "export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYplanted0451",
    r#"{"SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYplanted0451"}"#,
    "ASIAPLANTEDKEY0451AB",
    "aws_session_token: IQoJb3JpZ2luX2VjEHplanted0451//////////wEaCXVz",
    r#"{"SessionToken": "IQoJb3JpZ2luX2VjEHplanted0451AAAAAAAAwEaCXVz=="}"#,
    "session_token=planted0451-abcdefghijkl",
    "api-key: 0451planted0451planted0451plante",
    "X-Api-Key: 0451planted0451planted0451plante",
    "headers:\n  api-key:\n  - 0451planted0451planted0451plante\n",
    r#"{"headers": {"x-goog-api-key": ["0451planted0451planted0451plante"]}}"#,
    r#"{"headers": [["api-key", "0451planted0451planted0451plante"]]}"#,
    r#"{"name": "Ocp-Apim-Subscription-Key", "value": "0451planted0451planted0451plante"}"#,
    "Authorization: Basic dXNlcjpwbGFudGVkMDQ1MQ==",
    r#"{"authorization": "planted0451plantedkey"}"#,
    r#"{"arguments": "{\"api_key\": \"0451planted0451planted0451plante\"}"}"#,
    "Cookie: theme=dark; session=planted0451",
    "Set-Cookie: sid=planted0451; Path=/; Expires=Wed, 21 Oct 2026 07:28:00 GMT; HttpOnly",
    "    Set-Cookie:\n    - __cf_bm=planted0451.abc-1.0.1; path=/\n",
    r#"{"name": "Cookie", "value": "session=planted0451"}"#,
    "https://b.s3.amazonaws.com/a.pdf?X-Amz-Date=20261123T000000Z&X-Amz-Signature=04510451planted04510451planted045104510451",
    "https://b.s3.amazonaws.com/a.pdf?X-Amz-Security-Token=IQoJb3JpZ2luX2VjEHplanted0451",
    "https://storage.googleapis.com/b/a?X-Goog-Signature=04510451planted04510451planted045104510451",
    "https://a.blob.core.windows.net/c/b?sv=2024-11-04&sig=planted0451%2Babcdefg%2Fhijk%3D",
    "https://d1.cloudfront.net/a?Expires=1767225600&amp;Signature=planted0451-abcdef~ghij__&Key-Pair-Id=K1",
    r#"{"url": "https://host/a?token=planted0451planted0451"}"#,
    "headers:\n- name: api-key\n  value: 0451planted0451planted0451plante\n",
    "next=https%3A%2F%2Fh%2Fa%3Faccess_token%3D0451planted0451plante",
    "Authorization%3A%20Bearer%200451planted0451plante",
    "BEARER 0451planted0451plante",
    r#"{"Authorization": "Negotiate 0451planted0451plante"}"#,
    "X-Api-Token: 0451planted0451plante",
    "nvapi-0451planted0451planted0451plante",
    "lsv2_pt_0451planted0451planted0451plante",
    "r8_0451planted0451planted0451plantexxx",
    "postgres://app:planted0451@db.example:5432/shop is down",
    r#"{"url": "https://me:planted-0451%21@search.example/index"}"#,
    "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=plantedPlantedPlantedPlantedPlantedPlanted0451==;EndpointSuffix=core.windows.net",
    "Endpoint=sb://b.example/;SharedAccessKeyName=Root;SharedAccessKey=plantedPlantedPlantedPlantedPlantedPl0451=",
];

#[test]
fn secrets_of_forms_that_nobody_declares_go_in_text_and_as_members() {
    let redactor = Redactor::default();
    let tells = |text: &str| text.contains("0451") || text.contains("dozjgNryP4") || text.contains("dXNlcjpw");
    for text in UNDECLARED {
        let mut written = vec![redactor.redact(text).into_owned()];
        let documents = serde_json::from_str(text).into_iter().chain([json!({"a": [text]})]);
        for document in documents {
            let body: serde_json::Value = document;
            assert!(!redactor.is_surely_clean(&body.to_string()), "{text}");
            let redacted = redactor.redact_value(&body);
            // Recorded text is searched once more.
            assert_eq!(redactor.leak(&redacted.to_string()), None, "{text} became {redacted}");
            assert_eq!(redactor.leak(&crate::platform::yaml::write(&redacted)), None, "{text} became {redacted}");
            written.push(redacted.to_string());
        }
        for clean in written {
            assert!(clean.contains("[redacted:") && !tells(&clean), "{text} became {clean}");
            assert_eq!(redactor.redact(&clean), clean, "redacting twice is redacting once");
        }
    }
}

/// Tokens by the prefix that their service documents, and the characters that follow it: letters, digits, or hexadecimal
/// digits.
const PREFIXED: [(&str, &str, usize); 52] = [
    ("npm_", "Aa0", 36),
    ("SG.abcdefghijklmnopqrst-v.", "Aa0", 43),
    ("pypi-AgEIcHlwaS5vcmc", "Aa0", 60),
    ("dckr_pat_", "Aa0", 27),
    ("dckr_oat_", "Aa0", 32),
    ("rubygems_", "0a", 48),
    ("xkeysib-", "0a", 64),
    ("shpat_", "0a", 32),
    ("shpss_", "0a", 32),
    ("sq0atp-", "Aa0", 22),
    ("ATATT3xFfGF0", "Aa0", 60),
    ("lin_api_", "Aa0", 40),
    ("figd_", "Aa0", 40),
    ("ntn_", "Aa0", 46),
    ("PMAK-0123456789abcdef01234567-", "0a", 34),
    ("dop_v1_", "0a", 64),
    ("sbp_", "0a", 40),
    ("sb_secret_", "Aa0", 31),
    ("nfp_", "Aa0", 36),
    ("pscale_tkn_", "Aa0", 43),
    ("dapi", "0a", 32),
    ("hvs.", "Aa0", 90),
    ("glsa_Abcdefghijklmnopqrstuvwxyz012345_", "0a", 8),
    ("glc_eyJ", "Aa0", 80),
    ("sntrys_eyJ", "Aa0", 80),
    ("sntryu_", "0a", 64),
    ("NRAK-", "A0", 27),
    ("fc-", "0a", 32),
    ("llx-", "Aa0", 48),
    ("sk_", "0a", 48),
    ("glpat-", "Aa0", 20),
    ("glptt-", "0a", 40),
    ("gldt-", "Aa0", 20),
    ("hf_", "Aa0", 34),
    ("xoxb-", "0", 24),
    ("xoxp-", "0", 24),
    ("xoxc-", "0", 24),
    ("xapp-1-A", "A0", 40),
    ("https://hooks.slack.com/services/T0123ABCD/B0123ABCD/", "Aa0", 24),
    ("/services/T0123ABCD/B0123ABCD/", "Aa0", 24),
    ("/bot1234567890:AA", "Aa0", 33),
    ("sk_live_", "Aa0", 24),
    ("rk_live_", "Aa0", 24),
    ("r8_", "Aa0", 37),
    ("gsk_", "Aa0", 52),
    ("pplx-", "0a", 48),
    ("tvly-", "Aa0", 32),
    ("pcsk_", "Aa0", 60),
    ("AIzaSy", "Aa0", 33),
    ("GOCSPX-", "Aa0", 28),
    ("1234567890:AA", "Aa0", 33),
    ("MTIzNDU2Nzg5MDEyMzQ1Njc4.GabCdE.", "Aa0", 38),
];

#[test]
fn tokens_of_documented_prefixes_go_and_what_only_begins_like_one_stays() {
    let redactor = Redactor::default();
    for (prefix, kind, length) in PREFIXED {
        let letters: Vec<char> = match kind {
            "0" => ('0'..='9').collect(),
            "0a" => ('a'..='f').chain('0'..='9').collect(),
            "A0" => ('A'..='Z').chain('0'..='9').collect(),
            _ => ('a'..='z').chain('A'..='Z').chain('0'..='9').collect(),
        };
        let rest: String = letters.iter().cycle().take(length).collect();
        let token = format!("{prefix}{rest}");
        let text = format!("is ({token}), and \"{token}\"");
        let clean = redactor.redact(&text).into_owned();
        assert_eq!(clean.matches("[redacted:").count(), 2, "{token} became {clean}");
        assert!(!clean.contains(&rest), "{token} became {clean}");
        for body in [json!({"a": text}), json!({"arguments": json!({"a": format!("x\n{token}")}).to_string()})] {
            assert!(!redactor.is_surely_clean(&body.to_string()), "{body}");
            assert!(!redactor.redact_value(&body).to_string().contains(&rest), "{body}");
        }
        let short = format!("the prefix {prefix} and {prefix}{} and more", &rest[..7.min(length - 1)]);
        assert_eq!(redactor.redact(&short), short);
    }
}

#[test]
fn words_that_only_speak_of_keys_stay() {
    let redactor = Redactor::default();
    for text in [
        "api_key: your-api-key-goes-here, then Authorization: see the documentation",
        "Cookies: none are set. A cookie is a small text.",
        r#"{"api_key": null, "authorization": "required", "session_token": "string"}"#,
        "https://host/a?token=short&page=2&sig=none",
        "the signature=of-some-length-1 stands outside an address",
        r#"{"type": "object", "properties": {"access_token": {"type": "string"}}}"#,
        "OPENAI_API_KEY=${{ secrets.OPENAI_API_KEY }}",
        "npm_config_registry, npm_lifecycle_event and npm_package_dependencies_with_a_long_name_of_a_package",
        "SG.1 and SG.2 are chapters; MSG.abcdefghijklmnopqrstuvwx is a name, as are fc-barcelona and dapifere",
        "figd_ and lin_api_ are prefixes; ntn_short_names_are_joined_by_underscores_here_and_there_and_everywhere",
        "https://hooks.slack.com/services/ takes three parts; glrt-short, shpat_and_others, ATATT and dop_v1_",
        "Password: at least 12 characters. Your password is sent by post; password=${PASSWORD1}",
        r#"{"password": "[redacted:KEY_2]", "passphrase": "required", "password_hint": {"type": "string"}}"#,
    ] {
        assert_eq!(redactor.redact(text), text);
        if let Ok(body) = serde_json::from_str::<serde_json::Value>(text) {
            assert_eq!(redactor.redact_value(&body), body);
        }
    }
}

#[test]
fn a_key_in_a_body_that_is_no_utf_8_is_cut_out_and_all_other_bytes_stay() {
    let body = |key: &str| {
        let text = format!("<suche><key>{key}</key><text>R\u{fc}ckgabe</text></suche>");
        let bytes: Vec<u8> = text.chars().map(|letter| u8::try_from(letter).expect("Latin-1")).collect();
        json!({ BYTES: STANDARD.encode(bytes) })
    };
    let redactor = Redactor::default();
    let (dirty, clean) = (body("sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"), body("[redacted:openai]"));
    assert_eq!((redactor.redact_value(&dirty), redactor.redact_value(&clean)), (clean.clone(), clean.clone()));
    assert!(!redactor.is_surely_clean(&dirty.to_string()), "its key in a recording is that of the clean body");
    for other in [json!({ BYTES: "no base64!" }), json!({ BYTES: "/9j/4AAQSkZJRg==" }), json!({ BYTES: 7 })] {
        assert_eq!(redactor.redact_value(&other), other);
    }
    // Two bodies that differ in anything but their keys stay two.
    let more = |text: &str| json!({ BYTES: STANDARD.encode([&b"\xfc sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z "[..], text.as_bytes()].concat()) });
    assert_ne!(redactor.redact_value(&more("one")), redactor.redact_value(&more("two")));
}

#[test]
fn the_name_of_a_cookie_is_no_secret_where_its_value_is_a_placeholder() {
    for clean in [
        "set-cookie: AuthSession=[redacted:cookie]; Path=/couch; HttpOnly",
        "cookie: \"__Host-session=[redacted:cookie]\"",
    ] {
        assert!(Redactor::default().is_clean(clean), "{clean}");
    }
    assert!(!Redactor::default().is_clean("set-cookie: AuthSession=c2Vzc2lvbi0xMjM0; Path=/couch"));
}
