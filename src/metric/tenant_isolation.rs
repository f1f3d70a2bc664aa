//! `tenant_isolation`: searches that ran in the knowledge base of the conversation's tenant / searches that returned
//! a result in conversations with a tenant.
//!
//! A conversation without a tenant has no unit. The base searched is the one that answered, as recorded by the flow,
//! not the one requested.

use super::catalogue::Registered;
use super::{Member, Metric, Observation, TrialView, quote};
use crate::settings::catalogue::Units;
use crate::trace::What;
use std::collections::BTreeMap;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("tenant_isolation", |_| Metric {
    members: &[Member::Tenant, Member::Bases],
    ..Metric::new("searches", observe)
})
.about("Of the searches in conversations of a tenant, those of the tenant's own knowledge base.")
.counted(Units::Unlimited)];

fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    let started = view.trace.events.iter().filter_map(|event| match &event.what {
        What::ConversationStarted { tenant: Some(tenant), .. } => Some((event.conversation, tenant.as_str())),
        _ => None,
    });
    let tenants: BTreeMap<u32, &str> = started.collect();
    let mut units = Vec::new();
    for turn in view.turns {
        let Some(tenant) = tenants.get(&turn.conversation) else { continue };
        for (number, search) in (1..).zip(turn.searches()) {
            let unit = format!("{}, search {number}", turn.label());
            let why = || format!("`{}` searched in `{}`", quote(tenant, 60), quote(&search.kb_id, 60));
            units.push(Observation::unless(unit, (search.kb_id != *tenant).then(why)));
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use crate::metric::Outcome;
    use crate::metric::sample::observe;
    use crate::trace::What;

    #[test]
    fn a_search_in_a_conversation_of_a_tenant_is_in_the_base_of_that_tenant() {
        for (tenant, expected) in
            [(Some("default_kb"), Some(Outcome::Success)), (Some("other"), Some(Outcome::Failure)), (None, None)]
        {
            let (name, tenant) = ("a".to_owned(), tenant.map(str::to_owned));
            let started = What::ConversationStarted { session: name.clone(), name, tenant };
            let units = observe("tenant_isolation", "[{case: a, ask: q}]", |s| {
                s.push(started.clone()).turn("q").search(&["d#1"]).answer("x", &[])
            });
            assert_eq!(units.into_iter().map(|unit| unit.outcome).next(), expected);
        }
    }
}
