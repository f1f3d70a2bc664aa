//! Note of `ragcheck check` on a long case that dominates a rate per query.

use super::decidable::place;
use crate::metric::catalogue;
use crate::plan::Plan;
use crate::scenario::criteria::{Estimand, Per};
use crate::scenario::{Criterion, Diagnostic, GateKind, Loaded};
use crate::settings::catalogue::Units;
use crate::stats::percent::at_least;
use crate::stats::{ALPHA, Clusters, Sample};
use crate::suite::evaluation::can_count;
use std::collections::BTreeMap;

/// Threshold on the gap left by a perfect run with the case, as a multiple of the gap without it.
const MOST: f64 = 2.0;

/// One note for each required criterion that counts queries, and of which one long case takes more than half of what a
/// run without a failure could prove.
pub(super) fn long_cases(loaded: &Loaded, plan: &Plan) -> Vec<Diagnostic> {
    if plan.criteria.estimand != Estimand::FixedSuite {
        return Vec::new();
    }
    let note = |(of, written): (Option<usize>, &Criterion)| {
        let (id, turns, with, without) = longest(plan, of, written)?;
        let (file, key) = place(loaded, plan, of, written);
        let message = format!(
            "{key} counts queries, and the case `{id}` with its {turns} turns takes most of what they can show: without a failure at \
             least {}, and {} without this case",
            at_least(with),
            at_least(without)
        );
        let help = "split the case, repeat the others, or count `per: conversation`";
        Some(Diagnostic::note("long-case", file, message).with_help(help))
    };
    plan.criteria_and_gates().filter_map(note).collect()
}

/// The longest case of a criterion, its number of turns, and the lower bounds of a run without a failure with and
/// without it; `None` if it does not dominate.
fn longest(plan: &Plan, of: Option<usize>, written: &Criterion) -> Option<(String, u64, f64, f64)> {
    let read = written.read(&catalogue::entries()).ok()?;
    let metric = catalogue::resolve(&read.metric).ok()?;
    let bounded = written.kind == GateKind::Confidence || read.floor.is_some();
    let counts = read.per == Per::Unit && read.metric.entry.units == Units::Planned && metric.units == "queries";
    if !bounded || !counts || !written.is_required() {
        return None;
    }
    let mut sizes: BTreeMap<(usize, usize), (u64, u64)> = BTreeMap::new();
    for trial in &plan.trials {
        let case = &plan.scenarios[trial.scenario].cases[trial.case].case;
        if can_count(plan, of, written, &metric, trial) {
            let turns = case.turns().count() as u64;
            sizes.entry((trial.scenario, trial.case)).or_insert((turns, 0)).1 += 1;
        }
    }
    let (at, (turns, _)) = sizes.iter().max_by_key(|(at, (turns, _))| (*turns, std::cmp::Reverse(*at)))?;
    let show = |without: bool| {
        let mut clusters = Clusters::default();
        for (_, (turns, number)) in sizes.iter().filter(|(other, _)| !without || *other != at) {
            clusters.add_many(*turns, *turns, *number);
        }
        Sample::Fixed(clusters).lower_at(ALPHA)
    };
    let (with, without) = (show(false), show(true));
    let id = plan.scenarios[at.0].cases[at.1].case.case.clone();
    (1.0 - with > MOST * (1.0 - without)).then_some((id, *turns, with, without))
}
