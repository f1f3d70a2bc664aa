//! Note on services that a scenario declares and its agent never asks: it reaches them past the proxy, or not at all, and nothing
//! that they say is recorded.

use super::Mode;
use crate::plan::Plan;
use crate::scenario::external::ExternalAgent;
use crate::trial::Opened;
use std::collections::BTreeSet;

/// Declared services that no trial asked: the name of the scenario, its agent, and the name of the service.
pub(super) fn never_asked<'p>(
    plan: &'p Plan,
    opened: &Opened,
    judged: &BTreeSet<String>,
) -> Vec<(&'p str, &'p ExternalAgent, &'p str)> {
    let judged = plan.scenarios.iter().enumerate().filter(|(_, one)| judged.contains(&one.name));
    let silent = judged.flat_map(|(index, one)| {
        let (agent, asked) = (one.agent.as_ref(), opened.agents.asked(index));
        agent.zip(asked).into_iter().flat_map(move |(agent, asked)| {
            let unasked = agent.services.iter().filter(move |(name, service)| {
                service.http.is_some() && !service.optional && !asked.contains(name.as_str())
            });
            unasked.map(move |(name, _)| (one.name.as_str(), agent, name.as_str()))
        })
    });
    silent.collect()
}

/// The note on one of them.
pub(super) fn note((scenario, agent, name): (&str, &ExternalAgent, &str), mode: Mode) -> String {
    let place = if mode == Mode::Live { "this run" } else { "these recordings" };
    let variables = agent.services.get(name).map(|service| service.env.join(" or ")).unwrap_or_default();
    let question = if !variables.is_empty() {
        format!("does the agent read {variables}?")
    } else if agent.target.command.is_empty() {
        format!("is its base URL http://{}/{name}?", agent.proxy)
    } else {
        "`env` names the variable in which the agent finds its base URL.".to_owned()
    };
    format!(
        "note: {scenario}: `{name}` was never asked in {place}: {question} What the agent asks past the proxy is not recorded, and \
         asked anew in each replay; if no case needs `{name}`, declare it `optional: true`"
    )
}
