//! Parses citations in answers: numbers in brackets, in every common spelling, ids in brackets, and addresses.
//!
//! Recognised as citations: `[1]`, `[ 1 ]`, `[1, 9]`, `[1; 9]`, `[1-9]`, `[1][9]`, `[^9]`, `[#9]`, `[+9]`, `[0]`,
//! `[1000]`, `[source 9]`, `[9, p. 3]`, `[9 §2]`, `[9†source]`, `[9](url)`, `[[9]]`, `\[9\]`, `［9］`, `【9】`, `〔9〕`;
//! `[doc#7]` and `[learned:7]`; any `http` address. In a text without any of these in brackets, `<sup>9</sup>` and
//! `⁹` too. Other words in brackets cite nothing, and neither does code ([`code`]).

mod code;
mod listed;
mod superscripts;

pub(crate) use listed::{Listed, listed};
use std::borrow::Cow;

/// Number of words before a number that must agree for it to count as copied.
pub(crate) const WORDS: usize = 4;

/// Longest text in brackets that is parsed.
const LONGEST: usize = 120;

/// Words for "source" before a number.
const NOUNS: &[&str] = &[
    "sources", "source", "src", "references", "reference", "refs", "ref", "citations", "citation", "cite", "documents",
    "document", "docs", "doc", "no", "see",
];

/// Words before the number of a place within a source.
const PLACES: &[&str] = &[
    "p", "page", "seite", "s", "sec", "section", "abschnitt", "ch", "chap", "chapter", "kap", "kapitel", "par", "para",
    "paragraph", "abs", "line", "fig", "figure", "abb", "table", "tab",
];
/// Words before the numbers of several places.
const SEVERAL_PLACES: &[&str] = &["pp", "pages", "seiten", "ss", "sections", "chapters", "lines", "figures", "tables"];

/// A citation at one place of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A source by its number, with the words before it, lower case, at most [`WORDS`], the nearest first.
    Number(usize, Vec<String>),
    /// A source by its id.
    Id(String),
    Address(String),
}

/// The numbers among what `text` cites, in order.
pub(crate) fn numbers_of(text: &str) -> Vec<usize> {
    let number = |mark| if let Mark::Number(number, _) = mark { Some(number) } else { None };
    marks(text).into_iter().filter_map(number).collect()
}

/// Everything that `text` cites, in order.
pub(crate) fn marks(text: &str) -> Vec<Mark> {
    let mut plain = Cow::Borrowed(text);
    if plain.contains(['`', '~', '{']) || plain.contains("[[") || plain.contains("[ [") {
        plain = Cow::Owned(code::without_code(&plain));
    }
    if !plain.is_ascii() || plain.contains('\\') {
        plain = Cow::Owned(plain.chars().filter_map(bracket).collect());
    }
    let untagged = if plain.contains("<sup>") {
        plain.replace("<sup>", "").replace("</sup>", "").into()
    } else {
        Cow::Borrowed(&*plain)
    };
    let mut found = in_brackets(&untagged);
    if found.is_empty() {
        found = superscripts::superscripts(&plain);
    }
    found.extend(addresses(&plain).into_iter().map(Mark::Address));
    found
}

/// The sources that stand in brackets, in order.
fn in_brackets(text: &str) -> Vec<Mark> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(open) = text[from..].find('[').map(|at| from + at) {
        from = open + 1;
        let rest = &text[from..];
        let Some((inside, after)) = rest
            .find(['[', ']'])
            .filter(|end| rest[*end..].starts_with(']'))
            .map(|end| (&rest[..end], &rest[end + 1..]))
        else {
            continue;
        };
        if inside.chars().count() > LONGEST {
            continue;
        }
        if let Some(id) = id(inside) {
            found.push(Mark::Id(id));
        } else if let Some(numbers) =
            numbers(inside).filter(|numbers| !code::is_index_or_list(&text[..open], numbers, after))
        {
            let words = words_before(&text[..open]);
            found.extend(numbers.into_iter().map(|number| Mark::Number(number, words.clone())));
        }
    }
    found
}

/// Maps brackets and digits of other widths to the plain ones; a backslash escapes brackets and cites nothing itself.
fn bracket(letter: char) -> Option<char> {
    Some(match letter {
        '\\' => return None,
        '【' | '〔' | '〖' | '⟦' => '[',
        '】' | '〕' | '〗' | '⟧' => ']',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(letter) - 0xfee0).unwrap_or(letter),
        other => other,
    })
}

/// The numbers of a list or range in brackets; `None` if there is anything else.
fn numbers(inside: &str) -> Option<Vec<usize>> {
    let plain = inside.to_lowercase().replace(['\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}'], "-");
    let inside = plain.replace(" and ", ",").replace(" und ", ",").replace(" et ", ",");
    // `9†source`: what follows the dagger names the source, or a place in it.
    let inside = inside.split('†').next().unwrap_or_default();
    let mut found = Vec::new();
    for group in inside.split(';') {
        // Whether further numbers are places in the last source: `[9, pp. 3, 5]`.
        let mut places = false;
        for item in group.split([',', '/', '&', '|']) {
            let item = item.trim();
            let item = NOUNS.iter().find_map(|noun| item.strip_prefix(noun)).unwrap_or(item);
            let (item, place) = without_place(item);
            let item = item.trim_matches(|one: char| one == ' ' || "^#+*.:_".contains(one));
            let ends: Option<Vec<usize>> = item.split('-').map(|end| number(end.trim())).collect();
            let of_the_last = if place.is_some() { item.is_empty() } else { places && ends.is_some() };
            places = place.map_or(places && of_the_last, |place| place == Places::Several);
            if of_the_last && !found.is_empty() {
                continue;
            }
            match ends?.as_slice() {
                [one] => found.push(*one),
                [low, high] if low < high && high - low < 100 => found.extend(*low..=*high),
                more => found.extend(more),
            }
        }
    }
    Some(found)
}

/// Whether the words before a place in a source are of one place or of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Places {
    One,
    Several,
}

/// Prefix of a place in a source (`§2`, `p. 3`), and its kind.
fn without_place(item: &str) -> (&str, Option<Places>) {
    let numbered = |rest: &str| rest.trim_start_matches(['.', ' ']).starts_with(|one: char| one.is_ascii_digit());
    for (at, letter) in item.char_indices() {
        let rest = &item[at..];
        if letter == '§' {
            return (&item[..at], Some(if rest.starts_with("§§") { Places::Several } else { Places::One }));
        }
        if !letter.is_alphabetic() || item[..at].ends_with(char::is_alphabetic) {
            continue;
        }
        let end = rest.find(|one: char| !one.is_alphabetic()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if numbered(after) && PLACES.contains(&word) {
            return (&item[..at], Some(Places::One));
        }
        if numbered(after) && SEVERAL_PLACES.contains(&word) {
            return (&item[..at], Some(Places::Several));
        }
    }
    (item, None)
}

fn number(text: &str) -> Option<usize> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(usize::MAX))
}

/// The id in brackets, if it has the form of one: a chunk of a document, a learned entry or an external result.
fn id(inside: &str) -> Option<String> {
    let inside = inside.trim();
    let chunk = inside.rsplit_once('#').is_some_and(|(document, number)| {
        document.contains(char::is_alphabetic) && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    let one = !inside.contains(char::is_whitespace);
    (one && (chunk || inside.starts_with("learned:"))).then(|| inside.to_owned())
}

/// The words before a place, nearest first, without numbers.
fn words_before(text: &str) -> Vec<String> {
    text.rsplit(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty() && word.parse::<usize>().is_err())
        .take(WORDS)
        .map(str::to_lowercase)
        .collect()
}

/// A source's id in one spelling: without spaces and control characters, which cleaning a text may change; of an address,
/// its scheme and host in lower case, and no `/` at its end.
pub(crate) fn one_spelling(id: &str) -> Cow<'_, str> {
    let odd = |letter: char| letter.is_control() || letter.is_whitespace();
    let id = if id.contains(odd) { Cow::Owned(id.replace(odd, "")) } else { Cow::Borrowed(id) };
    let Some(scheme) =
        id.find("://").filter(|end| matches!(id[..*end].to_ascii_lowercase().as_str(), "http" | "https"))
    else {
        return id;
    };
    let host = id[scheme + 3..].find(['/', '?', '#']).map_or(id.len(), |length| scheme + 3 + length);
    let end = id.trim_end_matches('/').len().max(host);
    if end == id.len() && !id[..host].contains(|letter: char| letter.is_ascii_uppercase()) {
        return id;
    }
    Cow::Owned(id[..host].to_ascii_lowercase() + &id[host..end])
}

/// The addresses in a text, without the punctuation after them.
pub(crate) fn addresses(text: &str) -> Vec<String> {
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
    fn a_range_is_its_numbers_unless_it_is_too_long_or_runs_backwards() {
        assert_eq!(numbers_of("[3-5]"), [3, 4, 5]);
        assert_eq!(numbers_of("[1-100]").len(), 100);
        assert_eq!(numbers_of("[1-101]"), [1, 101]);
        assert_eq!(numbers_of("[5-5]"), [5, 5]);
        assert_eq!(numbers_of("[9-3]"), [9, 3]);
        let long = |spaces: usize| format!("[1{}]", " ".repeat(spaces));
        assert_eq!((numbers_of(&long(LONGEST - 1)).len(), numbers_of(&long(LONGEST)).len()), (1, 0));
    }

    #[test]
    fn a_place_in_a_source_is_no_source() {
        for (text, expected) in [
            ("so [9, p. 3]", vec![9]),
            ("so [9 §2]", vec![9]),
            ("so [9, §§ 2, 3]", vec![9]),
            ("so [9, pp. 3, 5; 4 p. 1]", vec![9, 4]),
            ("so [9, page 12, 4]", vec![9, 4]),
            ("so [1, 9, S. 3-5]", vec![1, 9]),
            ("so [source 9, section 2.1]", vec![9]),
            ("so [sources 1 and 9]", vec![1, 9]),
            ("see [section 2] and [p. 3]", vec![]),
        ] {
            assert_eq!(numbers_of(text), expected, "{text}");
        }
    }

    #[test]
    fn code_cites_nothing() {
        for text in [
            "Run:\n```python\nprint(row[9])  # [9]\n```\nDone.",
            "Run:\n~~~\nsee [9]\n~~~",
            "```\nnever closed [9]",
            "Call `fields[9]` or ``[9]``.",
            "Then a[9] is the last.",
            "Then x[1][2] is the last.",
            "Set row_ids[9], cells.width[9] and rowIds[9].",
            "Write items[9] = 2.",
            "Read items[9].name.",
            "Take f(x)[9].",
            "The first is list[0].",
            "Set x = [1, 9].",
            "Set x=[9].",
            "ports: [1, 9]",
            "\"ids\": [9]",
            "{\"ids\": [9], \"more\": {\"rows\": [[1, 9]]}}",
            "It says { \"rows\":\n [1, 9]} then.",
            "The matrix is [[1, 2], [3, 9]].",
            "Call sum([1, 9]).",
            "One of [0, 1, 9].",
            "Letters of [0-9].",
            "Use `curl https://never.example/x`.",
        ] {
            assert_eq!(marks(text), Vec::new(), "{text}");
        }
    }

    #[test]
    fn what_stands_beside_code_is_read() {
        for (text, expected) in [
            ("Set `a[9]` to 2 [1].", vec![1]),
            ("```\na[9]\n```\nSo it is [1].", vec![1]),
            ("It is open[1] and closed[2].", vec![1, 2]),
            ("Sources: [1, 9]", vec![1, 9]),
            ("It depends: [1]", vec![1]),
            ("It is open (see [1, 2]).", vec![1, 2]),
            ("It is open (as told)[1].", vec![1]),
            ("An open ` backtick [1].", vec![1]),
            ("A {brace} [1] and {\"an open one [2]", vec![1, 2]),
        ] {
            assert_eq!(numbers_of(text), expected, "{text}");
        }
        assert_eq!(marks("See `https://a.example/x`."), [Mark::Address("https://a.example/x".into())]);
    }

    #[test]
    fn a_raised_number_cites_behind_punctuation_or_a_word_where_nothing_else_does() {
        for (text, expected) in [
            ("It is open.⁹", vec![9]),
            ("It is open⁹ and closed.¹²", vec![9, 12]),
            ("It is open.¹,⁹ Closed.¹⁻³", vec![1, 9, 1, 2, 3]),
            ("It is open.<sup>1,9</sup>", vec![1, 9]),
            ("It is open.<sup>[9]</sup>", vec![9]),
            ("It is 5 m² or 10⁹ or x² or 3 cm³.", vec![]),
            ("It is 10<sup>9</sup> m<sup>2</sup>.", vec![]),
            ("It is (x + y)².", vec![]),
            ("It is open (see the manual)².", vec![2]),
            ("It is open [1], at the valve² too.", vec![1]),
            ("² at the beginning", vec![]),
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
    fn an_address_is_the_same_with_a_slash_at_its_end_and_a_host_in_capitals() {
        let known = one_spelling("https://docs.example.org/Guide?a=B");
        for same in [
            "HTTPS://Docs.Example.org/Guide?a=B",
            "https://docs.example.org/Guide?a=B/",
            "https://docs.exam\nple.org/Guide?a=B",
        ] {
            assert_eq!(one_spelling(same), known, "{same}");
        }
        for other in [
            "http://docs.example.org/Guide?a=B",
            "https://docs.example.org/guide?a=B",
            "https://docs.example.org/Guide",
        ] {
            assert_ne!(one_spelling(other), known, "{other}");
        }
        assert_eq!(one_spelling("https://EXAMPLE.org/"), "https://example.org");
        for kept in ["Manual#3", "s3://Bucket/", "notes/", "https://", ""] {
            assert_eq!(one_spelling(kept), kept);
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
