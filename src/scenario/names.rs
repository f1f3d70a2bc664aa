//! Names that become part of paths and trial ids.

/// Whether a name can be a segment of a path and of a trial id: 1 to 100 of `a`–`z`, `0`–`9` and `-`.
pub(super) fn is_name(name: &str) -> bool {
    let allowed = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    !name.is_empty() && name.len() <= 100 && name.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_as_path_segments() {
        assert!(is_name("refund-03"));
        for bad in ["", "..", "a/b", "A", "a b", "ä", "a.b", "a_b"] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
