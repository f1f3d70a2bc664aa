//! Sanitises text for tools: NFKC, no control or invisible characters, trimmed.

use super::Refusal;
use unicode_normalization::UnicodeNormalization;

/// Invisible characters that can hide content: zero-width, direction marks, tags.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Normalises text; line breaks and tabs stay, other control characters are removed.
pub(crate) fn text(raw: &str) -> String {
    if raw.bytes().all(|byte| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\n' | b'\t')) {
        return raw.trim().to_owned();
    }
    let stays = |letter: &char| !is_invisible(*letter) && (!letter.is_control() || matches!(letter, '\n' | '\t'));
    // ASCII is already normalised.
    let plain: String =
        if raw.is_ascii() { raw.chars().filter(stays).collect() } else { raw.nfkc().filter(stays).collect() };
    plain.trim().to_owned()
}

/// Normalises text to one line.
pub(crate) fn line(raw: &str) -> String {
    text(raw).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Refuses text outside `least..=most` characters, counted after sanitising.
pub(crate) fn length(field: &str, text: &str, least: usize, most: usize) -> Result<(), Refusal> {
    let count = text.chars().count();
    if count < least {
        let reason =
            if count == 0 { format!("`{field}` is empty") } else { format!("`{field}` has {count} characters") };
        return Err(Refusal::new("length", reason, format!("Give `{field}` at least {least} characters of text.")));
    }
    if count > most {
        let reason = format!("`{field}` has {count} characters, {most} are allowed");
        return Err(Refusal::new("length", reason, format!("Shorten `{field}` to its essential words.")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_and_invisible_characters_are_stripped_and_wide_letters_become_plain() {
        assert_eq!(line(" \u{7}bat\u{200b}tery\u{0}  ｗａｒｒａｎｔｙ \n"), "battery warranty");
        assert_eq!(text("one\r\ntwo"), "one\ntwo");
    }

    #[test]
    fn lengths_count_characters_and_not_bytes() {
        assert!(length("query", "ü", 1, 1).is_ok());
        assert_eq!(length("query", "", 1, 9).expect_err("is refused").cause, "length");
        assert_eq!(length("query", "abc", 1, 2).expect_err("is refused").cause, "length");
    }

    proptest! {
        #[test]
        fn sanitising_twice_changes_nothing(raw in any::<String>()) {
            let once = line(&raw);
            prop_assert_eq!(line(&once), once);
        }
    }
}
