//! Citation recall and precision of an answer (ALCE, Gao et al. 2023), given what entails what.
//!
//! The original leaves citations out of range out of the precision, and skips empty answers; both are failures here,
//! beside the original figure. Who decides what entails what is not known here.

/// One citation of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Citation {
    /// It names no evidence that the answer was given.
    Invalid,
    /// It names evidence.
    Evidence {
        /// Whether that evidence alone entails the sentence.
        alone: bool,
        /// Whether the other citations of the sentence entail it without this one.
        rest: bool,
    },
}

/// One sentence of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// Whether all its citations together entail it; of no meaning without citations.
    pub entailed: bool,
    /// Its citations.
    pub citations: Vec<Citation>,
}

/// Citation figures of an answer; `None` where there is nothing to count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CitationScores {
    /// Share of sentences whose citations, all valid, together entail them.
    pub recall: Option<f64>,
    /// Share of citations that are valid, stand in an entailed sentence, and are not irrelevant.
    pub precision: Option<f64>,
    /// Precision as ALCE computes it: sentences with an invalid citation are left out.
    pub alce_precision: Option<f64>,
}

impl Sentence {
    fn is_valid(&self) -> bool {
        !self.citations.contains(&Citation::Invalid)
    }

    fn is_supported(&self) -> bool {
        self.entailed && !self.citations.is_empty() && self.is_valid()
    }

    /// Citations that the sentence needs; none when it is not supported.
    fn relevant(&self) -> usize {
        if !self.is_supported() {
            return 0;
        }
        // A citation on its own is what entails the sentence: there is no rest.
        let needed = |citation: &&Citation| {
            self.citations.len() == 1 || matches!(citation, Citation::Evidence { alone, rest } if *alone || !*rest)
        };
        self.citations.iter().filter(needed).count()
    }
}

/// Scores the sentences of one answer; an answer without sentences has no recall, and counts as a failure where
/// answers are counted.
pub fn citation_scores(sentences: &[Sentence]) -> CitationScores {
    let share = |part: usize, whole: usize| (whole > 0).then(|| part as f64 / whole as f64);
    let relevant: usize = sentences.iter().map(Sentence::relevant).sum();
    let cited = |only_valid: bool| {
        sentences.iter().filter(|sentence| !only_valid || sentence.is_valid()).map(|s| s.citations.len()).sum()
    };
    CitationScores {
        recall: share(sentences.iter().filter(|sentence| sentence.is_supported()).count(), sentences.len()),
        precision: share(relevant, cited(false)),
        alce_precision: share(relevant, cited(true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn evidence(alone: bool, rest: bool) -> Citation {
        Citation::Evidence { alone, rest }
    }

    fn sentence(entailed: bool, citations: &[Citation]) -> Sentence {
        Sentence { entailed, citations: citations.to_vec() }
    }

    #[test]
    fn the_toy_answer_of_four_sentences() {
        let found = citation_scores(&[
            sentence(true, &[evidence(true, false)]),
            sentence(true, &[evidence(true, false), evidence(false, true)]),
            sentence(false, &[]),
            sentence(false, &[Citation::Invalid]),
        ]);
        assert_eq!((found.recall, found.precision), (Some(0.5), Some(0.5)));
        assert!((found.alce_precision.expect("citations") - 0.6667).abs() < 5e-5, "{found:?}");
    }

    #[test]
    fn an_answer_without_citations_has_recall_0_and_no_precision() {
        let found = citation_scores(&[sentence(true, &[])]);
        assert_eq!(found, CitationScores { recall: Some(0.0), precision: None, alce_precision: None });
        assert_eq!(citation_scores(&[]).recall, None);
    }

    #[test]
    fn two_citations_that_only_together_entail_are_both_needed() {
        let found = citation_scores(&[sentence(true, &[evidence(false, false), evidence(false, false)])]);
        assert_eq!((found.recall, found.precision), (Some(1.0), Some(1.0)));
    }

    #[test]
    fn a_valid_citation_beside_an_invented_one_supports_nothing() {
        let found = citation_scores(&[sentence(true, &[evidence(true, false), Citation::Invalid])]);
        assert_eq!((found.recall, found.precision, found.alce_precision), (Some(0.0), Some(0.0), None));
    }

    proptest! {
        #[test]
        fn the_strict_figure_never_exceeds_the_original(
            answer in proptest::collection::vec((any::<bool>(), proptest::collection::vec(0_u8..5, 0..4)), 0..8),
        ) {
            let kinds = [evidence(true, true), evidence(true, false), evidence(false, true), evidence(false, false)];
            let sentences: Vec<Sentence> = answer
                .iter()
                .map(|(entailed, citations)| {
                    let kind = |k: &u8| kinds.get(usize::from(*k)).copied().unwrap_or(Citation::Invalid);
                    sentence(*entailed, &citations.iter().map(kind).collect::<Vec<_>>())
                })
                .collect();
            let found = citation_scores(&sentences);
            if let (Some(strict), Some(original)) = (found.precision, found.alce_precision) {
                prop_assert!(strict <= original && original <= 1.0);
            }
        }
    }
}
