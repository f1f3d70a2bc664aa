//! The reader of placeholders in texts that people write.
//!
//! | syntax | where |
//! |---|---|
//! | `{{ name }}` | prompts (with `{% if name %}` and `{# … #}`), cases of a table |
//! | `{{ name }}` or `{name}` | bodies for an external agent |
//! | `{name}` | filters, rewordings and audit data for managed retrieval |
//!
//! It finds the placeholders; which names and words are valid is decided where they are used. A value that is filled in
//! is never read again.

/// Opening and closing sign of a placeholder.
pub(crate) type Signs = (&'static str, &'static str);

/// A value, `{{ name }}`.
pub(crate) const VALUE: Signs = ("{{", "}}");
/// A condition in a prompt, `{% if name %}`.
pub(crate) const CONDITION: Signs = ("{%", "%}");
/// A comment in a prompt, `{# … #}`.
pub(crate) const COMMENT: Signs = ("{#", "#}");
const BRACES: Signs = ("{", "}");

/// A piece of a text, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    /// Literal text, never empty.
    Text(&'t str),
    Placeholder(Placeholder<'t>),
    /// An opening sign without its closing sign; the rest of the text is not read.
    Open {
        /// The missing pair.
        signs: Signs,
        /// Place of the opening sign in bytes.
        at: usize,
    },
}

/// A placeholder as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placeholder<'t> {
    pub signs: Signs,
    /// The text between them.
    pub inside: &'t str,
    /// The whole, with its signs.
    pub written: &'t str,
    /// Place of the opening sign in bytes.
    pub at: usize,
}

impl<'t> Piece<'t> {
    /// The name in the braces of a placeholder; `None` for anything else.
    pub(crate) fn name(self) -> Option<&'t str> {
        if let Self::Placeholder(placeholder) = self { Some(placeholder.inside) } else { None }
    }
}

/// Whether a text has a placeholder `{{ … }}`, or begins one.
pub(crate) fn has_value(text: &str) -> bool {
    text.contains(VALUE.0)
}

/// Splits a text at placeholders with these signs.
pub(crate) fn pieces<'t>(text: &'t str, signs: &[Signs]) -> Vec<Piece<'t>> {
    let (mut found, mut rest) = (Vec::new(), 0);
    loop {
        let next = signs.iter().filter_map(|signs| Some((rest + text[rest..].find(signs.0)?, *signs)));
        let next = next.min_by_key(|(at, _)| *at);
        let at = next.map_or(text.len(), |(at, _)| at);
        if rest < at {
            found.push(Piece::Text(&text[rest..at]));
        }
        let Some((at, signs)) = next else { return found };
        let begin = at + signs.0.len();
        let Some(length) = text[begin..].find(signs.1) else {
            found.push(Piece::Open { signs, at });
            return found;
        };
        let end = begin + length;
        rest = end + signs.1.len();
        let (inside, written) = (&text[begin..end], &text[at..rest]);
        found.push(Piece::Placeholder(Placeholder { signs, inside, written, at }));
    }
}

/// Splits a text at placeholders `{name}`: a name without white space in braces. Any other brace is text.
pub(crate) fn braced(text: &str) -> Vec<Piece<'_>> {
    named(text, false)
}

/// Splits a text at placeholders `{{ name }}` and `{name}`, with spaces around the name or without. Any other brace is
/// text.
pub(crate) fn either(text: &str) -> Vec<Piece<'_>> {
    named(text, true)
}

fn named(text: &str, doubled: bool) -> Vec<Piece<'_>> {
    let (mut found, mut rest, mut from) = (Vec::new(), 0, 0);
    while let Some(at) = text[from..].find(BRACES.0).map(|at| from + at) {
        let signs = if doubled && text[at..].starts_with(VALUE.0) { VALUE } else { BRACES };
        from = at + signs.0.len();
        let inside = text[from..].find(['{', '}']).map(|length| &text[from..from + length]);
        let Some(inside) = inside.filter(|inside| text[from + inside.len()..].starts_with(signs.1)) else { continue };
        let name = if doubled { inside.trim() } else { inside };
        if name.is_empty() || name.contains(char::is_whitespace) {
            continue;
        }
        if rest < at {
            found.push(Piece::Text(&text[rest..at]));
        }
        from += inside.len() + signs.1.len();
        rest = from;
        found.push(Piece::Placeholder(Placeholder { signs, inside: name, written: &text[at..rest], at }));
    }
    if rest < text.len() {
        found.push(Piece::Text(&text[rest..]));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(template: &str) -> Vec<&str> {
        braced(template).into_iter().filter_map(Piece::name).collect()
    }

    fn written(found: Vec<Piece<'_>>, text: &str) -> String {
        let piece = |piece| match piece {
            Piece::Text(words) => words,
            Piece::Placeholder(placeholder) => placeholder.written,
            Piece::Open { at, .. } => &text[at..],
        };
        found.into_iter().map(piece).collect()
    }

    #[test]
    fn placeholders_are_names_between_braces_and_every_other_brace_is_text() {
        assert_eq!(
            names("{query} in {user@example.com}, {your-country}"),
            ["query", "user@example.com", "your-country"]
        );
        for text in ["{}", "{ query }", "{open", "a } b", "{two words}", ""] {
            assert_eq!(names(text), Vec::<&str>::new(), "{text}");
        }
        assert_eq!((names("{{query}}"), names("{a{query}")), (vec!["query"], vec!["query"]));
    }

    #[test]
    fn a_body_takes_both_spellings() {
        let names = |text| either(text).into_iter().filter_map(Piece::name).collect::<Vec<_>>();
        assert_eq!(
            names("{{ message }} {{turn}} {trial} { tenant } {{x {message}}}"),
            ["message", "turn", "trial", "tenant", "message"]
        );
        assert_eq!(names("{\"a\": {}} {{two words}} {open"), Vec::<&str>::new());
    }

    #[test]
    fn a_value_is_found_with_its_place_and_an_open_one_ends_the_text() {
        let found = pieces("é {{ a }}{% if b %}{{ c", &[VALUE, CONDITION, COMMENT]);
        let of = |signs, inside, written, at| Piece::Placeholder(Placeholder { signs, inside, written, at });
        assert_eq!(
            found,
            [
                Piece::Text("é "),
                of(VALUE, " a ", "{{ a }}", 3),
                of(CONDITION, " if b ", "{% if b %}", 10),
                Piece::Open { signs: VALUE, at: 20 }
            ]
        );
        assert_eq!(pieces("{% raw %}", &[VALUE]), [Piece::Text("{% raw %}")]);
    }

    proptest! {
        #[test]
        fn the_pieces_of_a_text_are_the_text(text in "[{}%# aé]{0,24}") {
            prop_assert_eq!(written(braced(&text), &text), text.clone());
            prop_assert_eq!(written(either(&text), &text), text.clone());
            prop_assert_eq!(written(pieces(&text, &[VALUE, CONDITION, COMMENT]), &text), text);
        }
    }
}
