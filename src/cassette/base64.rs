//! Base64 for binary bodies: written with padding, read with or without padding and white space.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Encodes with the standard alphabet, padded.
pub(super) fn encode(bytes: &[u8]) -> String {
    ENGINE.encode(bytes)
}

/// Decodes the standard alphabet, ignoring white space; `None` if the text is not base64.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    if text.bytes().any(|byte| byte.is_ascii_whitespace()) {
        let dense: String = text.split_ascii_whitespace().collect();
        return ENGINE.decode(dense).ok();
    }
    ENGINE.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_and_missing_padding_are_read_and_other_characters_are_not() {
        for text in ["Zm9vYmFyZg==", "Zm9vYmFyZg", "Zm9v\nYmFy\r\n Zg==\n"] {
            assert_eq!(decode(text).as_deref(), Some(&b"foobarf"[..]), "{text}");
        }
        assert_eq!((encode(b"fo"), decode("Zm9v*"), decode("Zm9v=Zm9v")), ("Zm8=".to_owned(), None, None));
    }
}
