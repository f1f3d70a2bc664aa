//! Text of models and documents, made fit for a message: one line, bounded, without control characters.

/// At most `limit` characters of `text` on one line; what could move the cursor or the reading direction becomes a
/// space.
pub fn quote(text: &str, limit: usize) -> String {
    let mut out = String::with_capacity(text.len().min(4 * limit));
    let mut characters = text.trim().chars();
    for character in characters.by_ref().take(limit) {
        let moves = character.is_control()
            || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        out.push(if moves { ' ' } else { character });
    }
    if characters.next().is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn it_is_one_bounded_line_without_escapes() {
        assert_eq!(quote(" a\nb\u{1b}[31m\u{202e}c ", 40), "a b [31m c");
        assert_eq!(quote("ääääää", 3), "äää…");
        assert_eq!(quote("äää", 3), "äää");
    }
}
