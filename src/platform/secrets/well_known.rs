//! Keys recognised by their form, or by the preceding name, without knowing their value.

use super::invisible::Visible;
use super::query_keys;
use super::redactor::MARK;
use memchr::memmem;
use regex::{Captures, Regex};
use serde_json::Value;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

const WELL_KNOWN: &str = r"(?x)
    (?P<openai>\bsk-[A-Za-z0-9_-]{16,})
    | (?P<perplexity>\bpplx-[A-Za-z0-9_-]{16,})
    | (?P<groq>\bgsk_[A-Za-z0-9]{16,})
    | (?P<xai>\bxai-[A-Za-z0-9]{20,})
    | (?P<google>\bAIza[A-Za-z0-9_-]{30,}|\bAQ\.Ab[A-Za-z0-9_-]{40,}|\bGOCSPX-[A-Za-z0-9_-]{24,})
    | (?P<google_token>\bya29\.[A-Za-z0-9_-]{16,}|\b1//0[A-Za-z0-9_-]{30,})
    | (?P<aws>\b(?:AKIA|ASIA)[0-9A-Z]{16}\b)
    | (?P<github>\b(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{20,})
    | (?P<huggingface>\bhf_[A-Za-z0-9]{20,})
    | (?P<slack>\bxox[abcdeprs]-[A-Za-z0-9%-]{16,}|\bxapp-[0-9]-[A-Za-z0-9-]{16,}|\bhooks\.slack\.com/services/T[A-Za-z0-9_]{6,}/B[A-Za-z0-9_]{6,}/[A-Za-z0-9]{20,}|/services/T[A-Z0-9]{8,}/B[A-Z0-9]{8,}/[A-Za-z0-9]{20,})
    | (?P<stripe>\b(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{24,}))
    | (?P<jwt>\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})
    | (?P<service>\b(?:nvapi-|csk-|tvly-|glpat-|pcsk_|jina_|tgp_v1_|lsv2_(?:pt|sk)_)[A-Za-z0-9_-]{20,}|\br8_[A-Za-z0-9]{30,})
    | (?P<gitlab>\bgl(?:ptt|dt|rt|rtr|cbt|oas|soat|ffct|agent|imt|ft)-[A-Za-z0-9_-]{20,})
    | (?P<registry>\b(?:npm_[A-Za-z0-9]{36,}|pypi-AgE[A-Za-z0-9_-]{40,}|dckr_[po]at_[A-Za-z0-9_-]{20,}|rubygems_[0-9a-f]{48}))
    | (?P<mail>\b(?:SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}|xkeysib-[0-9a-f]{64}))
    | (?P<shop>\b(?:shp(?:at|ca|pa|ss|tka)_[0-9A-Fa-f]{32}|sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}))
    | (?P<tracker>\b(?:AT(?:ATT|CTT)3[A-Za-z0-9_=-]{40,}|lin_(?:api|oauth)_[A-Za-z0-9]{32,}|fig[du]_[A-Za-z0-9_-]{36,}|ntn_[A-Za-z0-9]{40,}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}))
    | (?P<hosting>\b(?:do[opr]_v1_[0-9a-f]{64}|sbp_[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{20,}|nfp_[A-Za-z0-9]{36,}|pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,}|dapi[0-9a-f]{32}|hv[bs]\.[A-Za-z0-9_-]{24,}))
    | (?P<watching>\b(?:glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_eyJ[A-Za-z0-9+/=_-]{30,}|sntrys_eyJ[A-Za-z0-9+/=_-]{30,}|sntryu_[0-9a-f]{64}|NRAK-[A-Z0-9]{27}))
    | (?P<search>\b(?:fc-[0-9a-f]{32}|llx-[A-Za-z0-9]{40,}|sk_[0-9a-f]{48}))
    | (?P<chat>(?:\b|\bbot)[0-9]{8,10}(?::|%3[Aa])AA[A-Za-z0-9_-]{32,34}|\b(?:[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}))
    | (?P<account>\bAccountKey=[A-Za-z0-9+/]{40,}=*|\bSharedAccessKey=[A-Za-z0-9+/]{40,}=*)
    | (?P<private_key>-----BEGIN\ [A-Z\ ]{0,20}PRIVATE\ KEY-----[A-Za-z0-9+/=\s\\]{16,})
    | (?P<head>(?i:bearer)\ +|(?i:bearer)(?:%20)+|\b(?:api_?key|access_token|client_secret|key)(?:=|%3[Dd]))(?P<value>[A-Za-z0-9._~+/-]{16,}=*)
    ";

/// Name of a group, and what it finds.
pub(super) type Kind = (&'static str, &'static str);

/// Groups of [`WELL_KNOWN`] whose whole match is a secret, with their descriptions.
const KINDS: [Kind; 24] = [
    ("openai", "a key that begins like those of OpenAI, Anthropic or OpenRouter"),
    ("perplexity", "a key that begins like those of Perplexity"),
    ("groq", "a key that begins like those of Groq"),
    ("xai", "a key that begins like those of xAI"),
    ("google", "a key that begins like those of Google"),
    ("google_token", "a token that begins like those of Google"),
    ("aws", "a key id that begins like those of AWS"),
    ("github", "a token that begins like those of GitHub"),
    ("huggingface", "a token that begins like those of Hugging Face"),
    ("slack", "a token that begins like those of Slack"),
    ("stripe", "a key that begins like those of Stripe"),
    ("jwt", "a JSON Web Token"),
    (
        "service",
        "a key that begins like those of NVIDIA, Cerebras, Tavily, GitLab, Pinecone, Jina, Together, LangSmith or Replicate",
    ),
    ("gitlab", "a token that begins like those of GitLab"),
    ("registry", "a token that begins like those of npm, PyPI, Docker Hub or RubyGems"),
    ("mail", "a key that begins like those of SendGrid or Brevo"),
    ("shop", "a token that begins like those of Shopify or Square"),
    ("tracker", "a token that begins like those of Atlassian, Linear, Figma, Notion or Postman"),
    ("hosting", "a token that begins like those of DigitalOcean, Supabase, Netlify, PlanetScale, Databricks or Vault"),
    ("watching", "a token that begins like those of Grafana, Sentry or New Relic"),
    ("search", "a key that begins like those of Firecrawl, LlamaCloud or ElevenLabs"),
    ("chat", "a token that looks like those of Telegram's or Discord's bots"),
    ("account", "a key of an Azure connection string"),
    ("private_key", "a private key"),
];

/// Names whose value is a secret, in headers, members, variables and lists of names and values.
const NAMES: &str = "api[-_]?key|api[-_]?token|subscription[-_]key|access[-_]?token|refresh[-_]?token|id[-_]token|session[-_]?token\
    |security[-_]token|auth[-_]?token|csrf[-_]?token|client[-_]?secret|secret[-_]?access[-_]?key|authorization";
/// Headers whose value is cookies, and names of cookies that frameworks set.
const COOKIES: &str = "set-cookie2?|cookies?";
/// Parameters of signed URLs; one-word names count only after `?` or `&`, as in URLs.
const SIGNED: &str = "x-amz-(?:signature|security-token|credential)|x-goog-(?:signature|credential)|x-oss-signature\
    |signature|sig|token|access_token|policy|hmac";
/// A password in a URL, after the name of the user: `postgres://app:…@host`.
const USER: &str = r"://[A-Za-z0-9._~%+-]*:(?P<password>[^\s:/@\x22'<>\\{}$]{3,})@";
/// Passwords of examples and of templates, which are no secrets.
const NO_PASSWORDS: [&str; 6] = ["password", "pass", "secret", "xxx", "xxxx", "changeme"];
/// Minimum characters of a cookie with its name: a shorter one identifies nobody.
const SHORTEST_COOKIE: usize = 12;
/// Between a name and its value: `name: value`, `"name": "value"`, `name=value`, `name:\n  - value`, `["name", "value"]`,
/// `{"name": "name", "value": "value"}`, `- name: name\n  value: value`, `name%3A%20value`.
const BETWEEN: &str = r#"(?:["']?[ \t]*(?:[:=]|%3[AaDd])>?(?:%20)*|["']\s*,(?:\s*["']?value["']?\s*:)?|[ \t]+,?[ \t]*value[ \t]*:|["']?\r?\n[ \t]*["']?value["']?[ \t]*:)[ \t"']*(?:\[\s*|\r?\n[ \t]*-[ \t]+|\s*["'])?["' \t]*"#;
/// One cookie and what may follow: further cookies, attributes, a date with spaces.
const COOKIE: &str = r#"[^\s=;,:"'\\\[\]<>(){}]+=[^\s;,"'\\\[\]<>{}]*(?:[;,][ ]?(?:(?i:expires)=[A-Za-z]{3,9},[ ][0-9A-Za-z :-]{10,25}GMT|[^\s=;,:"'\\\[\]<>(){}]+(?:=[^\s;,"'\\\[\]<>{}]*)?))*"#;

/// A word boundary of ASCII: a boundary of Unicode makes the search many times slower in texts that are not ASCII.
const BOUNDARY: &str = r"(?-u:\b)";

static PATTERNS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&WELL_KNOWN.replace(r"\b", BOUNDARY)).ok());
/// What a text must hold for [`PATTERNS`] or [`NAMED`] to match, without word boundaries: in escaped text, the `n` of a line
/// break touches the key after it, and an escape may replace a space. One pattern, so that a text is searched once.
static SUSPICIONS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let spaced = format!("{HEAD}\\ +");
    let escaped = format!(r"{HEAD}(?:\ |\\[nrtbf\x22]?)+");
    let forms = WELL_KNOWN.replace(&spaced, &escaped).replace(r"\b", "");
    Regex::new(&format!("(?:{forms})|{}", names_alone())).ok()
});
/// A word that marks the following text as a key.
const HEAD: &str = "(?i:bearer)";

static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let token = "[A-Za-z0-9._~+/%|-]{16,}=*";
    let named = format!("(?i:{NAMES}){BETWEEN}(?:(?i:bearer|basic|token|negotiate)(?:[ \t]|%20)+)?(?P<named>{token})");
    let cookie = format!(r"(?i:{BOUNDARY}(?:{COOKIES})){BETWEEN}(?P<cookie>{COOKIE})");
    let signed = format!("(?:[?&]|&amp;)(?i:{SIGNED})=(?P<signed>{token})");
    Regex::new(&format!("{named}|{cookie}|{signed}|{USER}")).ok()
});
/// Words that must occur in a text for [`NAMED`] to match.
static NAMES_ALONE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&names_alone()).ok());

fn names_alone() -> String {
    format!("(?i:{NAMES}|{COOKIES}|[?&;](?:{SIGNED})=)|{USER}")
}

/// Whether escaped text certainly has no key of a well-known form.
pub(super) fn is_surely_clean(json: &str) -> bool {
    let none = |escape: &[u8]| memmem::find(json.as_bytes(), escape).is_none();
    // Any character of a key may be escaped.
    none(b"\\u00") && none(b"\\/") && SUSPICIONS.as_ref().is_some_and(|pattern| !pattern.is_match(json))
}

/// Positions of keys of a well-known form, in order and without overlaps; the kind is `None` for keys recognised by the
/// preceding word alone.
pub(super) fn well_known(text: &str) -> Vec<(Range<usize>, Option<Kind>)> {
    let mut found = places(text);
    if let Some(visible) = Visible::of(text) {
        found.extend(places(&visible.text).into_iter().map(|(place, kind)| (visible.original(&place), kind)));
    }
    found.sort_by_key(|(place, _)| (place.start, std::cmp::Reverse(place.end)));
    let mut merged: Vec<(Range<usize>, Option<Kind>)> = Vec::with_capacity(found.len());
    for (place, kind) in found {
        match merged.last_mut() {
            Some((last, known)) if place.start < last.end => {
                last.end = last.end.max(place.end);
                *known = known.or(kind);
            }
            _ => merged.push((place, kind)),
        }
    }
    merged
}

fn places(text: &str) -> Vec<(Range<usize>, Option<Kind>)> {
    let text = without_escapes(text);
    let by_form =
        PATTERNS.iter().flat_map(|patterns| patterns.captures_iter(&text)).filter_map(|found: Captures<'_>| {
            let whole = found.get(0)?.range();
            let kind = KINDS.into_iter().find(|(name, _)| found.name(name).is_some());
            let start = found.name("head").map_or(whole.start, |head| head.end());
            Some((start..whole.end, kind))
        });
    let by_name = NAMED.iter().flat_map(|named| named.captures_iter(&text)).filter_map(|found: Captures<'_>| {
        let cookie = found.name("cookie").filter(|cookie| {
            // A cookie without its value is a name.
            let is_name = cookie.as_str().ends_with('=') && text[cookie.end()..].starts_with(MARK);
            cookie.len() >= SHORTEST_COOKIE && !is_name
        });
        let value = found.name("named").or_else(|| found.name("signed"));
        let password = found.name("password");
        if let Some(password) = password.filter(|password| !is_placeholder(password.as_str())) {
            return Some(password.range());
        }
        let value = cookie.or_else(|| value.filter(|value| is_random(value.as_str())))?;
        Some(value.range())
    });
    by_form.chain(by_name.map(|place| (place, None))).collect()
}

/// Whether a password stands for one: a word of examples, or stars.
fn is_placeholder(password: &str) -> bool {
    NO_PASSWORDS.iter().any(|known| password.eq_ignore_ascii_case(known))
        || password.bytes().all(|byte| matches!(byte, b'*' | b'.'))
        || password.contains("[redacted")
}

/// The keys of a body that have the name of one and look random, as pairs for a redactor: a session's name may be words. They
/// have the name that such a key has where it is replaced by its place.
pub(crate) fn keys_by_name(body: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    match body {
        // A form.
        Value::String(text) => {
            let named = text.split('&').filter_map(|pair| pair.split_once('=')).filter(|(name, _)| is_name(name));
            found.extend(named.map(|(_, value)| value));
        }
        body => named_in(body, &mut found),
    }
    found.retain(|value| query_keys::looks_random(value));
    found.into_iter().map(|value| ("key".to_owned(), value.to_owned())).collect()
}

/// Adds the texts below members whose names may mark a secret.
fn named_in<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| match value {
            Value::String(text) if is_name(name) => found.push(text),
            value => named_in(value, found),
        }),
        Value::Array(items) => items.iter().for_each(|item| named_in(item, found)),
        _ => {}
    }
}

/// Whether a name may mark its value as a secret.
pub(super) fn is_name(name: &str) -> bool {
    NAMES_ALONE.as_ref().is_none_or(|names| names.is_match(name))
}

/// Whether the value after a name looks random: placeholder words have no digit.
fn is_random(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_digit()) && value.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// The text with escapes replaced by spaces, so that the `n` of an escaped line break is not read as a letter before a
/// key. The length is unchanged, so positions stay valid.
pub(super) fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let next = rest[at + 1..].chars().next();
        let width = if next.is_some_and(|next| "nrtbf\"\\".contains(next)) { 2 } else { 1 };
        out.push_str(&"  "[..width]);
        rest = &rest[at + width..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}
