//! Nugget scores of an answer (AutoNuggetizer, Pradeep et al. 2024): which of the facts that a good answer holds it has.

/// How far an answer supports a nugget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// Not at all.
    Missing,
    /// In part: one half, or nothing when strict.
    Partial,
    /// Wholly.
    Full,
}

/// A fact that a good answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nugget {
    /// Whether an answer without it is not good; otherwise it is welcome.
    pub vital: bool,
    /// How far the answer supports it.
    pub support: Support,
}

/// The four scores of an answer; `None` where there is no nugget of that kind, which the original counts as 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NuggetScores {
    /// Mean support of vital nuggets.
    pub vital: Option<f64>,
    /// The same, partial support counting nothing.
    pub strict_vital: Option<f64>,
    /// Mean support of all nuggets.
    pub all: Option<f64>,
    /// The same, partial support counting nothing.
    pub strict_all: Option<f64>,
}

/// Scores an answer by its nuggets.
pub fn nugget_scores(nuggets: &[Nugget]) -> NuggetScores {
    let mean = |only_vital: bool, partial: f64| {
        let counted = nuggets.iter().filter(|nugget| nugget.vital || !only_vital);
        let n = counted.clone().count();
        let sum: f64 = counted
            .map(|nugget| match nugget.support {
                Support::Missing => 0.0,
                Support::Partial => partial,
                Support::Full => 1.0,
            })
            .sum();
        (n > 0).then(|| sum / n as f64)
    };
    NuggetScores {
        vital: mean(true, 0.5),
        strict_vital: mean(true, 0.0),
        all: mean(false, 0.5),
        strict_all: mean(false, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nugget(vital: bool, support: Support) -> Nugget {
        Nugget { vital, support }
    }

    #[test]
    fn three_vital_and_two_welcome_nuggets_score_as_published() {
        let found = nugget_scores(&[
            nugget(true, Support::Full),
            nugget(true, Support::Partial),
            nugget(true, Support::Missing),
            nugget(false, Support::Full),
            nugget(false, Support::Missing),
        ]);
        let near = |score: Option<f64>, expected: f64| (score.expect("measured") - expected).abs() < 5e-4;
        assert!(near(found.vital, 0.5) && near(found.strict_vital, 0.333), "{found:?}");
        assert!(near(found.all, 0.5) && near(found.strict_all, 0.4), "{found:?}");
    }

    #[test]
    fn no_vital_nugget_is_not_a_score_of_zero() {
        let found = nugget_scores(&[nugget(false, Support::Full)]);
        assert_eq!((found.vital, found.all), (None, Some(1.0)));
        assert_eq!(nugget_scores(&[]).strict_all, None);
    }

    proptest! {
        #[test]
        fn strict_scores_are_never_higher_and_order_changes_nothing(
            mut nuggets in proptest::collection::vec((any::<bool>(), 0_u8..3), 0..12),
        ) {
            let score = |nuggets: &[(bool, u8)]| {
                let support = [Support::Missing, Support::Partial, Support::Full];
                nugget_scores(&nuggets.iter().map(|(v, s)| nugget(*v, support[usize::from(*s)])).collect::<Vec<_>>())
            };
            let found = score(&nuggets);
            prop_assert!(found.strict_vital <= found.vital && found.strict_all <= found.all);
            nuggets.reverse();
            prop_assert_eq!(found, score(&nuggets));
        }
    }
}
