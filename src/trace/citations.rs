//! How answers cite in their text: numbers in brackets, in every common spelling, ids in brackets, and addresses.
//!
//! Read as citations: `[1]`, `[ 1 ]`, `[1, 9]`, `[1; 9]`, `[1-9]`, `[1][9]`, `[^9]`, `[#9]`, `[+9]`, `[0]`, `[1000]`,
//! `[source 9]`, `[9†source]`, `[9](url)`, `[[9]]`, `\[9\]`, `［9］`, `【9】`, `〔9〕`, `<sup>9</sup>`; `[doc#7]` and `[learned:7]`;
//! any `http` address. Other words in brackets cite nothing.

use std::borrow::Cow;

/// Words before a number that must agree for it to be taken for a copied one.
pub const WORDS: usize = 4;

/// Longest text in brackets that is read.
const LONGEST: usize = 120;

/// Words that stand for "source" before a number.
const NOUNS: &[&str] = &[
    "source",
    "sources",
    "src",
    "ref",
    "refs",
    "reference",
    "references",
    "citation",
    "cite",
    "doc",
    "document",
    "no",
    "see",
];

/// What one place of a text cites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// A source by its number, with the words before it, lower case, at most [`WORDS`], the nearest first.
    Number(usize, Vec<String>),
    /// A source by its id.
    Id(String),
    /// A page by its address.
    Address(String),
}

/// The numbers among what `text` cites, in order.
pub fn numbers_of(text: &str) -> Vec<usize> {
    let number = |mark| if let Mark::Number(number, _) = mark { Some(number) } else { None };
    marks(text).into_iter().filter_map(number).collect()
}

/// Everything that `text` cites, in order.
pub fn marks(text: &str) -> Vec<Mark> {
    let mut plain = Cow::Borrowed(text);
    if !text.is_ascii() || text.contains('\\') {
        plain = Cow::Owned(text.chars().filter_map(bracket).collect());
    }
    if plain.contains("sup>") {
        plain = Cow::Owned(plain.replace("<sup>", "[").replace("</sup>", "]"));
    }
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(open) = plain[from..].find('[').map(|at| from + at) {
        from = open + 1;
        let rest = &plain[from..];
        let Some(inside) = rest.find(['[', ']']).filter(|end| rest[*end..].starts_with(']')).map(|end| &rest[..end])
        else {
            continue;
        };
        if inside.chars().count() > LONGEST {
            continue;
        }
        if let Some(id) = id(inside) {
            found.push(Mark::Id(id));
        } else if let Some(numbers) = numbers(inside) {
            let words = words_before(&plain[..open]);
            found.extend(numbers.into_iter().map(|number| Mark::Number(number, words.clone())));
        }
    }
    found.extend(addresses(&plain).into_iter().map(Mark::Address));
    found
}

/// Brackets and digits of other widths as the plain ones; a backslash escapes brackets and cites nothing itself.
fn bracket(letter: char) -> Option<char> {
    Some(match letter {
        '\\' => return None,
        '【' | '〔' | '〖' | '⟦' => '[',
        '】' | '〕' | '〗' | '⟧' => ']',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(letter) - 0xfee0).unwrap_or(letter),
        other => other,
    })
}

/// The numbers of a list or range in brackets; nothing where anything else stands there.
fn numbers(inside: &str) -> Option<Vec<usize>> {
    let plain = inside.to_lowercase().replace(['\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}'], "-");
    let inside = plain.replace(" and ", ",").replace(" und ", ",").replace(" et ", ",");
    // `9†source`: what follows the dagger names the source, or a place in it.
    let inside = inside.split('†').next().unwrap_or_default();
    let mut found = Vec::new();
    for item in inside.split([',', ';', '/', '&', '|']) {
        let item = item.trim();
        let item = NOUNS.iter().find_map(|noun| item.strip_prefix(noun)).unwrap_or(item);
        let item = item.trim_matches(|one: char| one == ' ' || "^#+*.:_".contains(one));
        let ends: Vec<&str> = item.split('-').map(str::trim).collect();
        let ends: Vec<usize> = ends.iter().map(|end| number(end)).collect::<Option<_>>()?;
        match ends.as_slice() {
            [one] => found.push(*one),
            [low, high] if low < high && high - low < 100 => found.extend(*low..=*high),
            more => found.extend(more),
        }
    }
    Some(found)
}

fn number(text: &str) -> Option<usize> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(usize::MAX))
}

/// The id in brackets, where it has the shape of one: a chunk of a document, a learned entry or an external result.
fn id(inside: &str) -> Option<String> {
    let inside = inside.trim();
    let chunk = inside.rsplit_once('#').is_some_and(|(document, number)| {
        document.contains(char::is_alphabetic) && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    let one = !inside.contains(char::is_whitespace);
    (one && (chunk || inside.starts_with("learned:"))).then(|| inside.to_owned())
}

/// The words before a place, the nearest first; numbers are none.
fn words_before(text: &str) -> Vec<String> {
    text.rsplit(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty() && word.parse::<usize>().is_err())
        .take(WORDS)
        .map(str::to_lowercase)
        .collect()
}

/// The addresses in a text, without the punctuation after them.
pub fn addresses(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if memchr::memmem::find(text.as_bytes(), b"://").is_none() {
        return found;
    }
    let lower = text.to_ascii_lowercase();
    let mut from = 0;
    while let Some(at) = lower[from..].find("http").map(|at| from + at) {
        from = at + 4;
        if !lower[at..].starts_with("http://") && !lower[at..].starts_with("https://") {
            continue;
        }
        let ends = |one: char| one.is_whitespace() || "<>\"'`()[]{}|，。；）".contains(one);
        let end = text[at..].find(ends).map_or(text.len(), |end| at + end);
        let address = text[at..end].trim_end_matches(['.', ',', ';', ':', '!', '?', '*', '_']);
        found.push(address.to_owned());
        from = end.max(from);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_common_spelling_of_numbers_is_read() {
        for (text, expected) in [
            ("so [1]", vec![1]),
            ("so[1].", vec![1]),
            ("so [ 9 ]", vec![9]),
            ("so [1, 9]", vec![1, 9]),
            ("so [1,9]", vec![1, 9]),
            ("so [1;9]", vec![1, 9]),
            ("so [1 and 9]", vec![1, 9]),
            ("so [1-3]", vec![1, 2, 3]),
            ("so [1–3]", vec![1, 2, 3]),
            ("so [1][9]", vec![1, 9]),
            ("so [[9]]", vec![9]),
            (r"so \[9\]", vec![9]),
            ("so [^9]", vec![9]),
            ("so [^9^]", vec![9]),
            ("so [#9]", vec![9]),
            ("so [+9]", vec![9]),
            ("so [**9**]", vec![9]),
            ("so [0]", vec![0]),
            ("so [1000]", vec![1000]),
            ("so [99999999999999999999999999]", vec![usize::MAX]),
            ("so [source 9]", vec![9]),
            ("so [Ref. 9]", vec![9]),
            ("so 【9】", vec![9]),
            ("so 【9†source】", vec![9]),
            ("so ［9］", vec![9]),
            ("so [９]", vec![9]),
            ("so<sup>9</sup>", vec![9]),
            ("so [9](https://example.org)", vec![9]),
        ] {
            assert_eq!(numbers_of(text), expected, "{text}");
        }
    }

    #[test]
    fn other_words_in_brackets_cite_nothing() {
        for text in ["[sic]", "[x]", "[ ]", "[]", "[5 minutes]", "[see the manual]", "[link](#part)", "[1", "1]", "(1)"]
        {
            assert_eq!(marks(text), Vec::new(), "{text}");
        }
    }

    #[test]
    fn ids_and_addresses_are_read() {
        assert_eq!(marks("as in [doc#77]"), [Mark::Id("doc#77".into())]);
        assert_eq!(marks("as in [learned:ab]"), [Mark::Id("learned:ab".into())]);
        assert_eq!(marks("see https://a.example/x?y=1, please"), [Mark::Address("https://a.example/x?y=1".into())]);
        assert_eq!(addresses("(http://a.example/b). <HTTPS://C.example>"), ["http://a.example/b", "HTTPS://C.example"]);
        assert_eq!(addresses("the http protocol"), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn any_text_has_marks_or_none_and_nothing_panics(text in "[\\[\\]0-9a-zé ü(#^,【】https:/.-]{0,60}") {
            let numbered = |mark: &Mark| if let Mark::Number(_, words) = mark { words.len() <= WORDS } else { true };
            prop_assert!(marks(&text).iter().all(numbered));
        }
    }
}
