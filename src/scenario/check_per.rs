//! Checks of `per` and `most`: what a rate is counted over.

use super::Criterion;
use super::criteria::Per;
use super::diagnostic::{At, Mistake};
use crate::settings::catalogue::{ResolvedMetric, Units};

/// A rate per unit needs a limit on the units of one conversation wherever the agent's behaviour determines their
/// number. Without it, one conversation could hold more units than all others together.
pub(super) fn check(row: &Criterion, metric: Option<&ResolvedMetric>, at: At<'_>, mistakes: &mut Vec<Mistake>) {
    if row.most == Some(0) {
        mistakes.push(Mistake::at(at.key("most"), "bad-value", "`most` is 1 or more"));
    }
    if row.most.is_some() && row.per != Some(Per::Unit) {
        let mistake =
            Mistake::at(at.key("most"), "bad-value", "only `per: unit` needs the most units of a conversation");
        mistakes.push(mistake.on_key().help("remove it, or write `per: unit`"));
    }
    let unlimited = metric.is_some_and(|metric| metric.entry.units == Units::Unlimited);
    if row.per == Some(Per::Unit) && row.most.is_none() && unlimited {
        let message = "what the agent does says how many units a conversation has, and nothing limits them";
        let mistake = Mistake::at(at.key("per"), "no-maximum", message);
        mistakes.push(mistake.help("write the most that one can have, `most: 8` for example, or `per: conversation`"));
    }
}
