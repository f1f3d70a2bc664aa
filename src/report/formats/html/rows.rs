//! The trials table's data: one array a trial, names as numbers into lists, so that 10,000 rows stay below a megabyte.
//!
//! A row is `[id or 0, scenario, case, flow, variant, repetition, control, verdict, turns, model calls, tool calls,
//! transport retries, model retries, tool retries, input tokens, output tokens, slowest turn us, took us, checks that
//! failed, departures, error or 0, why it fails or 0]`; id 0 means `scenario/case/flow.variant.repetition`. `table.js` reads it.
//! A table of more than [`TABLE_ROWS`] rows shows so many, those that did not pass first.

use crate::gate::{TrialResults, TrialRow, Verdict};
use crate::report::{TABLE_ROWS, View};
use crate::trace::Arm;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// Bytes of what criteria say of one trial.
const BROKEN: usize = 1_000;

/// Characters of what a case asks.
const ASKED: usize = 300;

/// Characters of the reasons of one trial.
const WHY: usize = 240;

/// The trials in the table: all of them, or those that did not pass first, in plan order.
fn shown(trials: &TrialResults, most: usize) -> impl Iterator<Item = TrialRow<'_>> {
    let all = trials.len() <= most;
    let troubled = if all { 0 } else { trials.iter().filter(|trial| trial.verdict != Verdict::Pass).count() };
    let (mut failed, mut passed) = (troubled.min(most), most - troubled.min(most));
    trials.iter().filter(move |trial| {
        let left = if trial.verdict == Verdict::Pass { &mut passed } else { &mut failed };
        let shows = all || *left > 0;
        *left = left.saturating_sub(1);
        shows
    })
}

/// Everything that the script needs beside the conversations, as JSON.
pub(super) fn data(view: &View<'_>) -> serde_json::Result<String> {
    let mut names = Names::default();
    let mut rows = Vec::new();
    let mut ordinals: HashMap<String, usize> = HashMap::new();
    for (ordinal, trial) in shown(&view.evaluation.trials, TABLE_ROWS).enumerate() {
        if ordinal > 0 {
            rows.push(b',');
        }
        serde_json::to_writer(&mut rows, &row(&trial, &mut names))?;
        ordinals.insert(trial.id.into_owned(), ordinal);
    }
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
    let mut asks: BTreeMap<String, String> = BTreeMap::new();
    for scenario in &view.plan.scenarios {
        for planned in &scenario.cases {
            let turns = planned.case.steps.iter().flatten().flat_map(|conversation| &conversation.turns);
            let asked: Vec<&str> = turns.map(|turn| turn.ask.as_str()).collect();
            let asked = crate::trace::text::quote(&asked.join(" / "), ASKED);
            asks.insert(format!("{}/{}", scenario.name, planned.case.case), asked);
        }
    }
    // What criteria say of trials, those too that passed: the search finds them by it.
    let mut broken: BTreeMap<usize, String> = BTreeMap::new();
    for violation in view.evaluation.criteria.iter().chain(&view.evaluation.gates).flat_map(|row| &row.violations) {
        if let Some(ordinal) = ordinals.get(&violation.trial) {
            let known = broken.entry(*ordinal).or_default();
            let note = crate::trace::text::quote(&violation.note, WHY);
            if !known.contains(&note) && known.len() < BROKEN {
                known.push(' ');
                known.push_str(&note);
            }
        }
    }
    let (asks, broken) = (serde_json::to_string(&asks)?, serde_json::to_string(&broken)?);
    let (names, abouts) = (serde_json::to_string(&names.list)?, serde_json::to_string(&abouts)?);
    let blocks = serde_json::to_string(&blocks)?;
    let rows = String::from_utf8_lossy(&rows);
    Ok(format!("{{\"names\":{names},\"abouts\":{abouts},\"asks\":{asks},\"broken\":{broken},\"rows\":[{rows}],\"blocks\":{blocks}}}"))
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

fn row(trial: &TrialRow<'_>, names: &mut Names) -> Value {
    let lane = &trial.lane;
    let usual = format!("{}/{}/{lane}", trial.scenario, trial.case);
    let id = if usual == trial.id { json!(0) } else { json!(trial.id) };
    let error = if trial.error.is_empty() { json!(0) } else { json!(trial.error) };
    let (transport, model, tool) = trial.retries;
    json!([
        id,
        names.number(trial.scenario),
        names.number(trial.case),
        names.number(lane.flow),
        names.number(lane.variant),
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
        why(trial),
    ])
}

/// What a trial did not meet, for the search and the table; of a trial that passed nothing.
fn why(trial: &TrialRow<'_>) -> Value {
    let failed = trial.checks.iter().filter(|check| !check.passed).map(|check| format!("{}: {}", check.what, check.seen));
    let all: Vec<String> = failed.chain(trial.departures.iter().cloned()).collect();
    if all.is_empty() { json!(0) } else { json!(crate::trace::text::quote(&all.join("; "), WHY)) }
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

    fn read(view: &View<'_>) -> Value {
        serde_json::from_str(&data(view).expect("written")).expect("JSON")
    }

    #[test]
    fn an_unusual_id_is_kept_and_a_usual_one_is_left_to_its_parts() {
        let mut run = sample::run(1);
        let mut trials = run.evaluation.trials.to_vec();
        trials[0].id = "elsewhere".into();
        run.evaluation.trials = trials.into_iter().collect();
        let data = read(&run.view());
        assert_eq!((&data["rows"][0][0], &data["rows"][1][0]), (&json!("elsewhere"), &json!(0)));
    }

    #[test]
    fn the_search_finds_a_trial_by_what_a_criterion_says_of_it() {
        let run = sample::run(2);
        let results = || run.evaluation.criteria.iter().chain(&run.evaluation.gates);
        let violation = results().flat_map(|row| &row.violations).next().expect("the sample has one");
        let place = run.evaluation.trials.iter().position(|trial| trial.id == violation.trial).expect("its trial");
        let data = read(&run.view());
        let said = data["broken"][place.to_string()].as_str().expect("words");
        assert!(said.contains(&crate::trace::text::quote(&violation.note, WHY)), "{said}");
        assert!(data["asks"].as_object().is_some_and(|asks| !asks.is_empty()));
    }

    #[test]
    fn a_table_that_is_too_long_shows_what_did_not_pass_first() {
        let trials = sample::run(5).evaluation.trials;
        let troubled = trials.iter().filter(|trial| trial.verdict != Verdict::Pass).count();
        assert!(troubled > 3 && troubled + 2 < trials.len());
        let few: Vec<_> = shown(&trials, 3).collect();
        let first: Vec<_> = trials.iter().filter(|trial| trial.verdict != Verdict::Pass).take(3).collect();
        assert_eq!(few, first);
        let more: Vec<_> = shown(&trials, troubled + 2).collect();
        assert_eq!(more.len(), troubled + 2);
        assert_eq!(more.iter().filter(|trial| trial.verdict == Verdict::Pass).count(), 2);
        assert_eq!(shown(&trials, trials.len()).count(), trials.len());
    }

    #[test]
    fn every_conversation_points_to_its_row() {
        let run = sample::run(2);
        let data = read(&run.view());
        let trials = run.evaluation.trials.to_vec();
        for (block, packed) in data["blocks"].as_array().expect("blocks").iter().zip(run.timelines.blocks()) {
            for (ordinal, id) in block.as_array().expect("ordinals").iter().zip(&packed.trials) {
                let ordinal = ordinal.as_u64().expect("a number") as usize;
                assert_eq!(trials[ordinal].id, *id);
            }
        }
    }
}
