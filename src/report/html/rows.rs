//! The trials table's data: one array a trial, names as numbers into lists, so that 10,000 rows stay below a megabyte.
//!
//! A row is `[id or 0, scenario, case, flow, variant, repetition, control, verdict, turns, model calls, tool calls,
//! transport retries, model retries, tool retries, input tokens, output tokens, slowest turn us, took us, checks that
//! failed, departures, error or 0]`; id 0 means `scenario/case/flow.variant.repetition`. `table.js` reads it.

use crate::gate::{TrialResult, Verdict};
use crate::report::View;
use crate::trace::Arm;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// Everything that the script needs beside the conversations.
pub fn data(view: &View<'_>) -> Value {
    let mut names = Names::default();
    let rows: Vec<Value> = view.judgement.trials.iter().map(|trial| row(trial, &mut names)).collect();
    let ordinals: HashMap<&str, usize> =
        view.judgement.trials.iter().enumerate().map(|(ordinal, trial)| (trial.id.as_str(), ordinal)).collect();
    let block = |block: &crate::report::timelines::Block| -> Vec<Value> {
        block.trials.iter().map(|id| ordinals.get(id.as_str()).map_or(Value::Null, |&ordinal| json!(ordinal))).collect()
    };
    let blocks: Vec<Vec<Value>> = view.timelines.blocks().iter().map(block).collect();
    let mut abouts: BTreeMap<String, &str> = BTreeMap::new();
    for scenario in &view.plan.scenarios {
        for planned in scenario.cases.iter().filter(|planned| !planned.case.about.is_empty()) {
            abouts.insert(format!("{}/{}", scenario.name, planned.case.case), &planned.case.about);
        }
    }
    json!({ "names": names.list, "abouts": abouts, "rows": rows, "blocks": blocks })
}

#[derive(Default)]
struct Names {
    numbers: HashMap<String, usize>,
    list: Vec<String>,
}

impl Names {
    fn number(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.numbers.insert(name.into(), self.list.len());
        self.list.push(name.into());
        self.list.len() - 1
    }
}

fn row(trial: &TrialResult, names: &mut Names) -> Value {
    let lane = &trial.lane;
    let usual = format!("{}/{}/{lane}", trial.scenario, trial.case);
    let id = if usual == trial.id { json!(0) } else { json!(trial.id) };
    let error = if trial.error.is_empty() { json!(0) } else { json!(trial.error) };
    let (transport, model, tool) = trial.retries;
    json!([
        id,
        names.number(&trial.scenario),
        names.number(&trial.case),
        names.number(&lane.flow),
        names.number(&lane.variant),
        lane.repetition,
        u8::from(lane.arm == Arm::Control),
        place(trial.verdict),
        trial.turns,
        trial.model_calls,
        trial.tool_calls,
        transport,
        model,
        tool,
        trial.input_tokens,
        trial.output_tokens,
        trial.slowest_turn_us,
        trial.took_us,
        trial.checks.iter().filter(|check| !check.passed).count(),
        trial.departures.len(),
        error,
    ])
}

/// The verdict's place in the script's list, worst first.
fn place(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Error => 0,
        Verdict::Fail => 1,
        Verdict::Inconclusive => 2,
        Verdict::NotMeasured => 3,
        Verdict::Pass => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn an_unusual_id_is_kept_and_a_usual_one_is_left_to_its_parts() {
        let mut run = sample::run(1);
        run.judgement.trials[0].id = "elsewhere".into();
        let data = data(&run.view());
        assert_eq!((&data["rows"][0][0], &data["rows"][1][0]), (&json!("elsewhere"), &json!(0)));
    }

    #[test]
    fn every_conversation_points_to_its_row() {
        let run = sample::run(2);
        let data = data(&run.view());
        for (block, packed) in data["blocks"].as_array().expect("blocks").iter().zip(run.timelines.blocks()) {
            for (ordinal, id) in block.as_array().expect("ordinals").iter().zip(&packed.trials) {
                let ordinal = ordinal.as_u64().expect("a number") as usize;
                assert_eq!(run.judgement.trials[ordinal].id, *id);
            }
        }
    }
}
