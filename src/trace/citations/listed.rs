//! Lists of sources and footnotes that answers write themselves.

use super::numbers_of;
use regex::Regex;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// An entry of such a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listed<'t> {
    /// The number by which the text before it cites the source.
    pub number: usize,
    /// What the entry says of the source.
    pub text: &'t str,
    /// Whether its number is written as a citation (`[1]`, `[^1]:`), which makes it an entry whatever it says; `1.` may
    /// also be a step of instructions.
    pub is_marked: bool,
}

/// One entry, after the entries before it on its line and a heading such as `Sources:`.
static ENTRY: LazyLock<Regex> = LazyLock::new(|| {
    let number = r"(?:\[\^?(?P<marked>\d{1,3})\]:?|(?P<plain>\d{1,3})[.)])";
    Regex::new(&format!(r"{number}(?P<text>[ \t]+[^\[\n]*[^\[\s][^\[\n]*(?:\[[^\]\n]+\]\([^)\n]*\)[^\[\n]*)?|[ \t]*\[[^\]\n]+\]\([^)\n]*\)[^\[\n]*|\([^)\s]+\)[^\[\n]*)"))
        .expect("an expression")
});
/// What may stand before the first entry of a line: marks of a list, and a short heading.
static HEADING: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[\s*•#>_-]*(?:[\p{L} ]{1,30}[*_]{0,2}:[*_\s]*)?$").expect("an expression"));

/// The entries of the lists in a text: lines that begin with the number of a source that is cited before them.
pub(crate) fn listed(text: &str) -> Vec<Listed<'_>> {
    let mut found = Vec::new();
    let mut cited = BTreeSet::new();
    for line in text.lines() {
        let mut from = 0;
        for parts in ENTRY.captures_iter(line) {
            let (whole, entry) = (parts.get(0).expect("the whole"), parts.name("text").expect("a part"));
            let marked = parts.name("marked");
            let number = marked.or(parts.name("plain")).and_then(|digits| digits.as_str().parse().ok());
            let before = &line[from..whole.start()];
            let begins = if from == 0 { HEADING.is_match(before) } else { marked.is_some() && before.is_empty() };
            let Some(number) = number.filter(|number| begins && cited.contains(number)) else { break };
            let text = entry.as_str().trim().trim_end_matches([',', ';']);
            found.push(Listed { number, text, is_marked: marked.is_some() });
            from = whole.end();
        }
        if from == 0 {
            cited.extend(numbers_of(line));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_begins_with_a_number_that_the_text_before_it_cites() {
        for (list, expected) in [
            (
                "Sources:\n[1] returns.md\n[2] https://example.org/a",
                vec![(1, "returns.md"), (2, "https://example.org/a")],
            ),
            ("**Sources**: [1] returns.md; [2] shipping.md", vec![(1, "returns.md"), (2, "shipping.md")]),
            ("[^1]: Returns policy, page 3", vec![(1, "Returns policy, page 3")]),
            ("- [2]: [Shipping](https://example.org/b)", vec![(2, "[Shipping](https://example.org/b)")]),
            ("## Sources\n1. returns.md\n2. shipping.md", vec![(1, "returns.md"), (2, "shipping.md")]),
            ("Quellen:\n1) Rückgabe.pdf", vec![(1, "Rückgabe.pdf")]),
            ("[3] never-cited.md", vec![]),
            ("It is also said in [1] that it is so.", vec![]),
            ("Thanks [1].", vec![]),
            ("[1]", vec![]),
        ] {
            let text = format!("It takes 30 days [1], and 3 by post [2].\n\n{list}");
            let found: Vec<_> = listed(&text).into_iter().map(|entry| (entry.number, entry.text)).collect();
            assert_eq!(found, expected, "{list}");
        }
        assert_eq!(listed("1. Pack it [1].\n2. Send it [2]."), []);
        assert!(!listed("So [1].\n1. a.md")[0].is_marked);
    }
}
