//! Splits HTML pages as a browser does: elements with their attributes, and the text of scripts and styles.

use serde_json::Value;

/// Elements and attributes of the report.
const ELEMENTS: &str = "html head meta title style script body svg symbol path rect circle line text use g polyline polygon \
    header footer main nav section div p span a b bdi h1 h2 h3 ul ol li dl dt dd table caption thead tbody tr th td details \
    summary pre code br label input select option fieldset legend form noscript figure figcaption";
const ATTRIBUTES: &str = "lang charset http-equiv content name id class role scope href viewBox aria-label aria-labelledby \
    aria-hidden aria-live tabindex d type width height value x y x1 x2 y1 y2 rx ry r cx cy colspan data-label spellcheck \
    placeholder autocomplete hidden open for points transform text-anchor selected disabled checked";

/// One start tag.
#[derive(Debug)]
struct Element<'a> {
    /// Its name as written.
    name: &'a str,
    /// Names and values of its attributes, as written.
    attributes: Vec<(&'a str, &'a str)>,
    /// Text up to the end tag, of scripts and styles.
    text: &'a str,
}

impl Element<'_> {
    /// The value of an attribute.
    fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

const SPACE: [char; 5] = [' ', '\n', '\t', '\r', '\u{c}'];

/// The elements of a page, in order.
///
/// # Panics
/// If a tag, a comment or a script does not end.
fn elements(page: &str) -> Vec<Element<'_>> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some((_, tag)) = rest.split_once('<') {
        rest = tag;
        if let Some(comment) = tag.strip_prefix("!--") {
            rest = comment.split_once("-->").expect("a comment ends").1;
        } else if tag.starts_with(['!', '?', '/']) {
            rest = tag.split_once('>').expect("a tag ends").1;
        } else if tag.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            let (mut element, after) = element(tag);
            rest = after;
            if ["script", "style"].iter().any(|name| name.eq_ignore_ascii_case(element.name)) {
                let end = format!("</{}", element.name.to_ascii_lowercase());
                let end = after.to_ascii_lowercase().find(&end).expect("a script ends");
                (element.text, rest) = after.split_at(end);
            }
            found.push(element);
        }
    }
    found
}

/// The element that a text begins with, behind its `<`, and the text after its tag.
fn element(text: &str) -> (Element<'_>, &str) {
    let ends = |character: char| SPACE.contains(&character) || "/>=".contains(character);
    let (name, mut rest) = text.split_at(text.find(ends).expect("a tag ends"));
    let mut attributes = Vec::new();
    loop {
        rest = rest.trim_start_matches(SPACE).trim_start_matches('/').trim_start_matches(SPACE);
        if let Some(after) = rest.strip_prefix('>') {
            return (Element { name, attributes, text: "" }, after);
        }
        // A name may begin with `=`, and ends before the next.
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let (name, after) = rest.split_at(first + rest[first..].find(ends).expect("a tag ends"));
        let Some(value) = after.trim_start_matches(SPACE).strip_prefix('=') else {
            (rest, _) = (after, attributes.push((name, "")));
            continue;
        };
        let value = value.trim_start_matches(SPACE);
        let quote = value.chars().next().filter(|quote| ['"', '\''].contains(quote));
        let (value, after) = match quote {
            Some(quote) => value[1..].split_once(quote).expect("a value ends"),
            None => value.split_at(value.find(|end: char| SPACE.contains(&end) || end == '>').expect("a tag ends")),
        };
        (rest, _) = (after, attributes.push((name, value)));
    }
}

/// Checks that the report has no element, attribute, link or script but its own.
///
/// # Panics
/// If it has one.
pub fn is_ours(html: &str) {
    let mut scripts = 0;
    for element in elements(html) {
        assert!(ELEMENTS.split_whitespace().any(|known| known == element.name), "{element:?}");
        for (name, value) in &element.attributes {
            assert!(ATTRIBUTES.split_whitespace().any(|known| known == *name), "{element:?}");
            let plain = |one: char| one.is_ascii_alphanumeric() || "#./_~%-?=&;".contains(one);
            let inside = value.starts_with(['#', '.']) || ["comparison.html", "variants.html"].contains(value);
            assert!(*name != "href" || inside && value.chars().all(plain), "{element:?}");
        }
        match (element.name, element.get("type")) {
            ("script", None) => scripts += 1,
            ("script", Some("application/json")) => {
                assert!(!element.text.contains('<'));
                serde_json::from_str::<Value>(element.text).expect("JSON");
            }
            ("script", Some("text/plain")) => {
                assert!(element.text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)));
            }
            ("script", Some(_)) => panic!("{element:?}"),
            _ => {}
        }
    }
    assert_eq!(scripts, 1);
}
