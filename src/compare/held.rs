//! Cases of runs with held services: those that recordings answered in full, and those that left the recordings. The
//! split is shown and decides nothing.

use super::pairing::Pair;
use super::summary::CaseFigures;
use crate::trace::text::plural;

/// Whether recordings answered calls of a case on either side.
pub(super) fn is_held(pairs: &[Pair<'_>]) -> bool {
    both(pairs).any(|(a, b)| calls(a).0 + calls(b).0 > 0)
}

/// Trials that passed, by what the recordings answered; `None` if nothing was held.
pub(super) fn split(pairs: &[Pair<'_>]) -> Option<String> {
    if !is_held(pairs) {
        return None;
    }
    let mut groups = [Group::default(), Group::default()];
    for (a, b) in both(pairs) {
        groups[usize::from(calls(a).1 + calls(b).1 > 0)].add(a, b);
    }
    let [held, left] = groups.map(|group| group.words());
    Some(format!(
        "held services: {held} stayed within the recordings; {left} left them on a side or both. All cases decide \
         together, and times are not compared"
    ))
}

fn both<'p>(pairs: &'p [Pair<'_>]) -> impl Iterator<Item = (&'p CaseFigures, &'p CaseFigures)> {
    pairs.iter().flat_map(|pair| &pair.rows).map(|(a, b)| (*a, *b))
}

/// Calls of a case that recordings answered, and those that were not recorded.
fn calls(case: &CaseFigures) -> (u64, u64) {
    case.usage.as_ref().map_or((0, 0), |usage| (usage.held, usage.new))
}

#[derive(Default)]
struct Group {
    cases: usize,
    a: (u64, u64),
    b: (u64, u64),
}

impl Group {
    fn add(&mut self, a: &CaseFigures, b: &CaseFigures) {
        self.cases += 1;
        let sum = |(passed, trials): (u64, u64), one: (u64, u64)| (passed + one.0, trials + one.1);
        (self.a, self.b) = (sum(self.a, a.graded()), sum(self.b, b.graded()));
    }

    fn words(&self) -> String {
        let Self { cases, a, b } = self;
        let cases = plural(*cases, "case");
        format!("{cases} (trials passed: A {} of {}, B {} of {})", a.0, a.1, b.0, b.1)
    }
}
