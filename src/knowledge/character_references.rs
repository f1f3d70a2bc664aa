//! HTML's character references: finds them and decodes the numbered ones. The caller knows the named ones.

/// Maximum characters of a reference, with its ampersand.
const LONGEST: usize = 12;

/// Replaces `&#65;`, `&#x41;` and the references whose names `named` knows; others are unchanged.
pub(crate) fn decoded(text: &str, named: impl Fn(&str) -> Option<char>) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        decoded.push_str(&rest[..start]);
        let tail = &rest[start..];
        let end = tail.char_indices().take(LONGEST).find(|(_, letter)| *letter == ';').map(|(index, _)| index);
        if let Some((letter, end)) = end.and_then(|end| Some((character(&tail[1..end], &named)?, end))) {
            decoded.push(letter);
            rest = &tail[end + 1..];
        } else {
            decoded.push('&');
            rest = &tail[1..];
        }
    }
    decoded.push_str(rest);
    decoded
}

fn character(reference: &str, named: impl Fn(&str) -> Option<char>) -> Option<char> {
    let Some(number) = reference.strip_prefix('#') else { return named(reference) };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => number.parse().ok()?,
    };
    char::from_u32(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_known_names_are_replaced_and_all_else_stays() {
        let named = |name: &str| (name == "lt").then_some('<');
        assert_eq!(decoded("&lt;&#65;&#x42;&#X43; & &gt; &#xD800; &; &lt", named), "<ABC & &gt; &#xD800; &; &lt");
        assert_eq!(decoded("&#0000000000065;", named), "&#0000000000065;", "longer than a reference is");
    }
}
