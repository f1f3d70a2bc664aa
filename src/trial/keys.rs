//! Finds the API keys that a live run would lack, without sending anything.

use super::services::{self, Keys, providers};
use super::{Setup, SetupError, TrialRunner};
use crate::plan::Plan;
use std::collections::{BTreeMap, BTreeSet};

impl TrialRunner {
    /// Key problems that prevent live and recording runs of `plan`: keys that are not set, and keys that may not be
    /// sent to their address, each with the scenario files that need them.
    pub fn missing_keys(&self, plan: &Plan) -> BTreeMap<String, BTreeSet<String>> {
        let mut missing: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (scenario, setups) in plan.scenarios.iter().zip(&self.setups) {
            for problem in setups.values().flat_map(|setup| self.key_problems(setup)) {
                missing.entry(problem.to_string()).or_default().insert(scenario.file.clone());
            }
        }
        missing
    }

    fn key_problems(&self, setup: &Setup) -> Vec<SetupError> {
        let (declared, keys, asked) = match setup {
            Setup::Flow(setup) => (&setup.declared, Keys::Ours, Some(&setup.asked)),
            Setup::Agent(setup) => (&setup.declared, Keys::TheAgents, None),
        };
        let own = providers(declared).into_values().filter_map(|name| {
            let provider = self.loaded.project.providers.get(name)?;
            services::key(name, provider, &self.variables, keys).err()
        });
        own.chain(asked.into_iter().flat_map(|asked| asked.key_problems(&self.variables))).collect()
    }
}
