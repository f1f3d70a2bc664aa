//! Aligns two conversations at the first event that differs.
//!
//! Both are texts as printed by `ragcheck show`: a head, an empty line, and one numbered line per event. Numbers and
//! times are ignored.

/// Two aligned conversations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Aligned {
    /// Common leading lines, as in the first one.
    pub same: Vec<String>,
    /// The rest of each: the first differing line, and the lines after it.
    pub sides: [(String, String); 2],
}

/// Aligns two conversations.
pub(super) fn align(one: &str, other: &str) -> Aligned {
    let (a, b): (Vec<&str>, Vec<&str>) = (events(one).collect(), events(other).collect());
    let common = a.iter().zip(&b).take_while(|(a, b)| said(a) == said(b)).count();
    let side = |lines: &[&str]| {
        let rest = &lines[common..];
        let first = rest.first().map_or_else(|| "(nothing more)".to_owned(), |line| (*line).to_owned());
        (first, rest.get(1..).unwrap_or_default().join("\n"))
    };
    Aligned { same: a[..common].iter().map(|line| (*line).to_owned()).collect(), sides: [side(&a), side(&b)] }
}

/// Lines after the head.
fn events(text: &str) -> impl Iterator<Item = &str> {
    let body = text.split_once("\n\n").map_or(text, |(_, body)| body);
    body.lines().filter(|line| !line.trim().is_empty())
}

/// A line without its number and without times.
fn said(line: &str) -> String {
    let mut words = Vec::new();
    for word in line.split_whitespace() {
        if word.starts_with("ms") && words.last().is_some_and(|last: &&str| is_number(last)) {
            words.pop();
        }
        words.push(word);
    }
    if words.first().is_some_and(|first| is_number(first)) {
        words.remove(0);
    }
    words.join(" ")
}

fn is_number(word: &str) -> bool {
    let digits = word.trim_start_matches('(');
    !digits.is_empty() && digits.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "s/c/f.base.1\nREPLAYED: recorded\n\n  1       0.0 ms  user: q\n  2       0.0 ms  model (811.2 ms) calls search\n  3     811.2 ms    search {} -> 2 hits\n  4     812.0 ms  answer: yes\n";

    #[test]
    fn conversations_part_at_the_first_event_that_differs_whatever_it_took() {
        let b = A.replace("811.2", "5.0").replace("2 hits", "nothing").replace("base", "other");
        let found = align(A, &b);
        assert_eq!(found.same.len(), 2, "{found:?}");
        assert!(found.sides[0].0.ends_with("-> 2 hits") && found.sides[1].0.ends_with("-> nothing"), "{found:?}");
        assert!(found.sides[0].1.contains("answer: yes"), "{found:?}");
    }

    #[test]
    fn one_that_ends_earlier_says_so_and_none_is_never_a_mistake() {
        let shorter = A.rsplit_once("  4 ").map(|(text, _)| text).expect("four events");
        let found = align(A, shorter);
        assert_eq!((found.same.len(), found.sides[1].0.as_str()), (3, "(nothing more)"));
        assert_eq!(align("", "").same.len(), 0);
    }
}
