//! `verbatim_query_rate(TOOL)`: calls of the tool whose `query` repeats the user's input / calls with a `query`.
//! Lower is better: a query written for the index finds more than the user's sentence.
//!
//! Differences in letter case, white space, spelling variants and final punctuation do not make a query tailored.
//! Calls that were not executed count too: the model wrote them.

use super::catalogue::Registered;
use super::text_match::normalise;
use super::tools::Tools;
use super::{Member, Metric, Observation, TrialView};
use crate::settings::catalogue::{Parameter, Units};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] =
    &[Registered::rate("verbatim_query_rate", |asked| Box::new(VerbatimQueryRate { tools: Tools::of(asked) }))
        .about("Calls of the tool whose query repeats the user's words; lower is better.")
        .takes(&[Parameter::tool(None)])
        .lower_is_better()
        .counted(Units::Unlimited)];

#[derive(Debug)]
pub(super) struct VerbatimQueryRate {
    /// The tools whose calls count.
    pub tools: Tools,
}

fn plain(text: &str) -> String {
    normalise(text).trim_matches(|character: char| !character.is_alphanumeric()).to_owned()
}

impl Metric for VerbatimQueryRate {
    fn units(&self) -> &'static str {
        "calls"
    }

    fn needs(&self) -> Vec<Tools> {
        vec![self.tools.clone()]
    }

    fn members(&self) -> &'static [Member] {
        &[Member::Calls]
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        let mut units = Vec::new();
        for turn in view.turns {
            let said = plain(turn.query);
            let queries = turn
                .calls()
                .filter(|call| self.tools.has(view.trace, &call.tool))
                .filter_map(|call| call.arguments.get("query").and_then(serde_json::Value::as_str));
            for (ordinal, query) in queries.enumerate() {
                let unit = format!("{}, call {} of {}", turn.label(), ordinal + 1, self.tools.label(view.trace));
                units.push(if plain(query) == said {
                    Observation::occurrence(unit, "the user's own words")
                } else {
                    Observation::failure(unit, "")
                });
            }
        }
        units
    }
}
