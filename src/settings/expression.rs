//! Regular expressions that people write, within bounds.

use regex::{Regex, RegexBuilder};

/// Bytes that one compiled expression may take: thousands of honest ones fit, and one that does not is told in
/// milliseconds.
const LARGEST: usize = 512 << 10;
/// Parentheses inside parentheses, and the like.
const DEEPEST: u32 = 100;
/// Characters of an expression.
const LONGEST: usize = 10_000;

/// Compiles an expression of a scenario or a criterion.
///
/// # Errors
/// What is wrong with it, or that it is larger than the bounds.
pub fn expression(pattern: &str) -> Result<Regex, regex::Error> {
    if pattern.len() > LONGEST {
        return Err(regex::Error::Syntax(format!("it has more than {LONGEST} characters")));
    }
    RegexBuilder::new(pattern).size_limit(LARGEST).dfa_size_limit(LARGEST).nest_limit(DEEPEST).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_take_minutes_or_much_memory_is_refused() {
        assert!(expression(r"(?i)\b(refund|money back)\b.{0,40}\d{4}-\d{2}-\d{2}").is_ok());
        for pattern in [r"\w{1,900}x".to_owned(), "(".repeat(200) + &")".repeat(200), "a|".repeat(6_000)] {
            assert!(expression(&pattern).is_err(), "{}", &pattern[..8]);
        }
    }
}
