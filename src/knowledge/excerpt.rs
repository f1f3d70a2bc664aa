//! The beginning of a text, for lists.

use crate::platform::secrets;

/// At most `most` characters from the beginning of `text`: up to the last end of a sentence in the second half of
/// them, else up to the last space, with an ellipsis for what is left out. A short text is returned whole.
pub(crate) fn excerpt(text: &str, most: usize) -> String {
    if text.char_indices().nth(most).is_none() {
        return text.to_owned();
    }
    // A secret that was cut could not be recognised afterwards.
    let text = &*secrets::clean(text);
    let Some((end, _)) = text.char_indices().nth(most) else { return text.to_owned() };
    let head = &text[..end];
    let ends = |place: usize, letter: char| {
        let next = text[place + letter.len_utf8()..].chars().next();
        match letter {
            '.' | '!' | '?' => next.is_none_or(char::is_whitespace),
            '\u{3002}' | '\u{ff01}' | '\u{ff1f}' | '\n' => true,
            _ => false,
        }
    };
    let half = most / 2;
    let places = head.char_indices().enumerate().filter(|(count, _)| *count >= half).map(|(_, place)| place);
    if let Some((place, letter)) = places.filter(|(place, letter)| ends(*place, *letter)).last() {
        return head[..place + letter.len_utf8()].trim_end().to_owned();
    }
    // One character less: the ellipsis counts too.
    let room = head.char_indices().next_back().map_or(0, |(place, _)| place);
    let cut = head[..room].rfind(char::is_whitespace).filter(|place| *place * 2 >= room).unwrap_or(room);
    format!("{}\u{2026}", head[..cut].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_excerpt_ends_at_a_sentence_or_else_at_a_word() {
        assert_eq!(excerpt("Short.", 20), "Short.");
        assert_eq!(excerpt("Range is 4.5 km. It falls in winter.", 24), "Range is 4.5 km.");
        assert_eq!(excerpt("one two three four five", 12), "one two\u{2026}");
        assert_eq!(excerpt("abcdefghijkl", 6), "abcde\u{2026}");
        assert_eq!(excerpt("保証は二年です。充電は四時間です。", 10), "保証は二年です。");
    }

    #[test]
    fn a_secret_goes_before_the_cut_so_that_no_part_of_it_stays() {
        secrets::declare([("EXCERPT_KEY".to_owned(), "only-in-the-excerpt-0453-and-long".to_owned())]);
        let told = excerpt(&format!("{}-only-in-the-excerpt-0453-and-long", "x".repeat(150)), 160);
        assert!(!told.contains("only-in"), "{told}");
    }

    proptest! {
        #[test]
        fn it_is_never_longer_than_asked_and_begins_like_the_text(text in "(\\PC|[. \n]){0,60}", most in 1_usize..40) {
            let told = excerpt(&text, most);
            prop_assert!(told.chars().count() <= most);
            let begins = text.starts_with(told.trim_end_matches('\u{2026}'));
            prop_assert!(begins, "{} of {}", told, text);
        }
    }
}
