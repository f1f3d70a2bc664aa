//! Finds the API keys that a live run would lack, without sending anything.

use super::SetupError;
use super::opened::{Opened, Setup};
use super::services::{self, Keys, providers};
use crate::plan::Plan;
use std::collections::{BTreeMap, BTreeSet};

/// Key problems that prevent live and recording runs of `plan`: keys that are not set, and keys that may not be sent to
/// their address, each with the scenario files that need them.
pub(crate) fn missing_keys(opened: &Opened, plan: &Plan) -> BTreeMap<String, BTreeSet<String>> {
    let mut missing: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (scenario, setups) in opened.setups(plan) {
        for problem in setups.values().flat_map(|setup| key_problems(opened, setup)) {
            missing.entry(problem.to_string()).or_default().insert(scenario.file.clone());
        }
    }
    missing
}

fn key_problems(opened: &Opened, setup: &Setup) -> Vec<SetupError> {
    let (keys, retrieval, providers) = match setup {
        Setup::Flow(setup) => (Keys::Ours, Some(&setup.retrieval), providers(&setup.declared)),
        Setup::Agent(setup) => (Keys::TheAgents, None, setup.services.providers()),
    };
    let own = providers.into_values().filter_map(|name| {
        let provider = opened.loaded.project.providers.get(name)?;
        services::key(name, provider, &opened.variables, keys).err()
    });
    own.chain(retrieval.into_iter().flat_map(|services| services.key_problems(&opened.variables))).collect()
}
