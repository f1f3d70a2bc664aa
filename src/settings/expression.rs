//! User-written regular expressions, with limits.

use regex::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Largest size of a compiled expression, in bytes: ample for real expressions, and exceeded within milliseconds.
const LARGEST: usize = 512 << 10;
/// Deepest nesting of parentheses and other groups.
const DEEPEST: u32 = 100;
/// Longest expression, in characters.
const LONGEST: usize = 10_000;

/// Compiles an expression of a scenario or a criterion.
///
/// # Errors
/// If it is invalid or exceeds the limits.
pub(crate) fn expression(pattern: &str) -> Result<Regex, regex::Error> {
    if pattern.len() > LONGEST {
        return Err(regex::Error::Syntax(format!("it has more than {LONGEST} characters")));
    }
    RegexBuilder::new(pattern).size_limit(LARGEST).dfa_size_limit(LARGEST).nest_limit(DEEPEST).build()
}

/// Most characters that the first group of an expression finds, or all of it without one; `None` without a limit, and for
/// letters beyond ASCII.
pub(crate) fn longest_found(pattern: &str) -> Option<usize> {
    let parsed = ParserBuilder::new().nest_limit(DEEPEST).unicode(false).utf8(false).build().parse(pattern).ok()?;
    first_group(&parsed).unwrap_or(&parsed).properties().maximum_len()
}

fn first_group(hir: &Hir) -> Option<&Hir> {
    match hir.kind() {
        HirKind::Capture(group) if group.index == 1 => Some(&group.sub),
        HirKind::Capture(group) => first_group(&group.sub),
        HirKind::Repetition(repeated) => first_group(&repeated.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().find_map(first_group),
        _ => None,
    }
}

/// Estimates the cost of compiling an expression, in states of its automaton: a letter is 1, `\w` about 800, and a
/// repetition multiplies by its maximum. Does not compile it; 1 for an invalid expression.
pub(crate) fn expression_work(pattern: &str) -> u64 {
    let within = pattern.len() <= LONGEST;
    let parsed = within.then(|| ParserBuilder::new().nest_limit(DEEPEST).build().parse(pattern).ok()).flatten();
    // Reading it takes time as well.
    parsed.map_or(1, |parsed| work(&parsed)).saturating_add(100)
}

fn work(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(Class::Unicode(class)) => class.ranges().len() as u64 + 3,
        HirKind::Class(Class::Bytes(class)) => class.ranges().len() as u64,
        HirKind::Repetition(repeated) => {
            let times = repeated.max.map_or(repeated.min.saturating_add(1), |most| most.max(1));
            work(&repeated.sub).saturating_add(1).saturating_mul(u64::from(times))
        }
        HirKind::Capture(capture) => work(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().fold(1, |sum: u64, part| sum.saturating_add(work(part)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_grows_with_what_an_expression_compiles_to() {
        let (plain, words) = (expression_work("refund|money back"), expression_work(r"\w{1,900}x"));
        assert!(plain < 150, "{plain}");
        assert!(words > 600_000, "{words}");
        assert!(expression_work("((a{1000}){1000}){1000}") >= 1_000_000_000);
        assert_eq!(expression_work("(((((((a{1000}){1000}){1000}){1000}){1000}){1000}){1000}){1000}"), u64::MAX);
        assert!(expression_work(&"(".repeat(5_000)) < 200);
    }

    #[test]
    fn the_longest_text_that_an_expression_finds_is_that_of_its_first_group() {
        for (pattern, longest) in [
            (r"day (\d{3})", Some(3)),
            (r"\w{2}", Some(2)),
            (r"(?:day|date) (?:no\. )?(\d{1,2}|\d{4}) of (.*)", Some(4)),
            (r"day (\d+)", None),
            (r"(?P<day>\d\d)", Some(2)),
            ("(", None),
        ] {
            assert_eq!(longest_found(pattern), longest, "{pattern}");
        }
    }

    #[test]
    fn what_would_take_minutes_or_much_memory_is_refused() {
        assert!(expression(r"(?i)\b(refund|money back)\b.{0,40}\d{4}-\d{2}-\d{2}").is_ok());
        for pattern in [r"\w{1,900}x".to_owned(), "(".repeat(200) + &")".repeat(200), "a|".repeat(6_000)] {
            assert!(expression(&pattern).is_err(), "{}", &pattern[..8]);
        }
    }
}
