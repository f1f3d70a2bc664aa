//! Attributes the time of a request to stages: each instant belongs to one stage, so the stages sum to the total.
//!
//! The walk goes backward from the end through the child that finished last; time in which no child ran belongs to the
//! parent. A child that ran beside a longer one counts 0: making it faster would not help. Work that nobody waits for
//! counts 0 too.

use std::collections::BTreeMap;

/// A piece of work with a beginning and an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span<S> {
    /// The stage that its own time counts for.
    pub stage: S,
    /// Index of the span that it is part of; `None` for the whole request.
    pub parent: Option<usize>,
    /// Start, in microseconds.
    pub start_us: u64,
    /// End, in microseconds.
    pub end_us: u64,
    /// Whether its parent waits for it; detached work, such as indexing in the background, is not.
    pub awaited: bool,
}

/// Why spans cannot be attributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    /// There is no root, or there are several.
    #[error("a request needs exactly one span without a parent, not {found}")]
    Roots { found: usize },
    /// A parent is missing.
    #[error("span {span} is part of span {parent}, which does not exist")]
    Parent { span: usize, parent: usize },
}

/// Microseconds on the critical path for each stage that occurs, including those with none; the sum is the length of
/// the root. Children are cut to their parents' times.
pub(crate) fn attribute<S: Ord + Clone>(spans: &[Span<S>]) -> Result<BTreeMap<S, u64>, PathError> {
    let mut roots = (0..spans.len()).filter(|at| spans[*at].parent.is_none());
    let (Some(root), None) = (roots.next(), roots.next()) else {
        return Err(PathError::Roots { found: spans.iter().filter(|span| span.parent.is_none()).count() });
    };
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); spans.len()];
    for (at, span) in spans.iter().enumerate() {
        if let Some(parent) = span.parent {
            let siblings = children.get_mut(parent).ok_or(PathError::Parent { span: at, parent })?;
            if span.awaited {
                siblings.push(at);
            }
        }
    }
    let mut stages: BTreeMap<S, u64> = spans.iter().map(|span| (span.stage.clone(), 0)).collect();
    // A stack and not a recursion: traces come from elsewhere, and may be deep.
    let mut open = vec![(root, spans[root].start_us, spans[root].end_us)];
    while let Some((at, start, end)) = open.pop() {
        let mut cursor = end.max(start);
        let mut own = 0;
        // The latest end first; of equal ends the one that began first, which covers the other.
        children[at].sort_by_key(|child| (spans[*child].end_us, u64::MAX - spans[*child].start_us, usize::MAX - child));
        while let Some(child) = children[at].pop() {
            let (from, to) = (spans[child].start_us.max(start), spans[child].end_us.min(cursor));
            if from < to {
                own += cursor - to;
                open.push((child, from, to));
                cursor = from;
            }
        }
        own += cursor - start;
        if let Some(sum) = stages.get_mut(&spans[at].stage) {
            *sum += own;
        }
    }
    Ok(stages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(stage: &'static str, parent: Option<usize>, start_us: u64, end_us: u64) -> Span<&'static str> {
        Span { stage, parent, start_us, end_us, awaited: true }
    }

    /// Tenths of a second.
    fn request() -> Vec<Span<&'static str>> {
        let child = |stage, start, end| span(stage, Some(0), start, end);
        vec![
            span("overhead", None, 0, 90),
            child("llm", 2, 22),
            child("kb", 23, 29),
            child("perplexity", 23, 53),
            child("llm", 54, 80),
            child("index", 54, 64),
            child("llm", 81, 88),
        ]
    }

    #[test]
    fn the_reference_request_is_attributed_to_the_tenth() {
        let found = attribute(&request()).expect("a request");
        let expected = BTreeMap::from([("overhead", 7), ("llm", 53), ("perplexity", 30), ("kb", 0), ("index", 0)]);
        assert_eq!(found, expected);
    }

    #[test]
    fn detached_work_is_listed_and_not_counted() {
        let mut spans = request();
        spans.push(Span { awaited: false, ..span("mail", Some(0), 80, 90) });
        let found = attribute(&spans).expect("a request");
        assert_eq!((found["mail"], found["overhead"]), (0, 7));
    }

    #[test]
    fn a_child_that_overlaps_the_last_one_counts_up_to_its_begin() {
        let found = attribute(&[span("own", None, 0, 10), span("a", Some(0), 0, 5), span("b", Some(0), 3, 8)]);
        assert_eq!(found.expect("a request"), BTreeMap::from([("own", 2), ("a", 3), ("b", 5)]));
    }

    #[test]
    fn broken_trees_are_refused_with_the_reason() {
        assert_eq!(attribute::<&str>(&[]), Err(PathError::Roots { found: 0 }));
        assert_eq!(attribute(&[span("a", None, 0, 1), span("b", None, 0, 1)]), Err(PathError::Roots { found: 2 }));
        let error = attribute(&[span("a", None, 0, 1), span("b", Some(7), 0, 1)]).expect_err("no span 7");
        assert!(error.to_string().contains("span 7"), "{error}");
        let loops = attribute(&[span("a", None, 0, 4), span("b", Some(2), 0, 1), span("c", Some(1), 0, 1)]);
        assert_eq!(loops.expect("the loop hangs in the air")["a"], 4);
    }

    #[test]
    fn a_chain_of_a_hundred_thousand_spans_does_not_overflow() {
        let spans: Vec<_> = (0..100_000_usize).map(|i| span("deep", i.checked_sub(1), 0, 9)).collect();
        assert_eq!(attribute(&spans).expect("a chain")["deep"], 9);
    }

    proptest! {
        #[test]
        fn the_stages_always_sum_to_the_total(
            parts in proptest::collection::vec((0_usize..8, 0_u64..120, 0_u64..120, any::<bool>()), 0..24),
        ) {
            let stages = ["a", "b", "c", "d"];
            let mut spans = vec![span("root", None, 10, 100)];
            for (at, (parent, start, end, awaited)) in parts.iter().enumerate() {
                let part = span(stages[at % 4], Some(parent % (at + 1)), *start, *end);
                spans.push(Span { awaited: *awaited, ..part });
            }
            prop_assert_eq!(attribute(&spans).expect("a tree").values().sum::<u64>(), 90);
        }
    }
}
