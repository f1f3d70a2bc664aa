//! Data of the trials table: one array per trial, names as indices into lists, so that 10,000 rows stay below a
//! megabyte.
//!
//! A row is `[id or 0, scenario, case, flow, variant, repetition, control, verdict, turns, model calls, tool calls,
//! transport retries, model retries, tool retries, input tokens, output tokens, slowest turn us, took us, checks that
//! failed, departures, error or 0, why it fails or 0, whether a citation is flawed]`; id 0 means
//! `scenario/case/flow.variant.repetition`. `table.js` reads it. A larger table is limited to [`TABLE_ROWS`] rows,
//! those that did not pass first.

use super::model::{anchored, worst_first};
use crate::gate::{Evaluation, RetryCounts, TrialResults, TrialRow, Verdict, reason};
use crate::platform::secrets;
use crate::report::{TABLE_ROWS, View, figures};
use crate::trace::Arm;
use crate::trace::text::quote;
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;

/// Maximum bytes of criteria notes for one trial.
const BROKEN: usize = 2_000;

/// Maximum characters of a case's question.
const ASKED: usize = 300;

/// Maximum characters of a trial's failure reasons.
const WHY: usize = 240;

/// Trials in the table: all, or those that did not pass first, each group in plan order.
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

/// All data of the script except the conversations, as JSON.
pub(super) fn data(view: &View<'_>) -> serde_json::Result<String> {
    let mut names = Names::default();
    let mut rows = Vec::new();
    let mut ordinals: HashMap<String, usize> = HashMap::new();
    for (ordinal, trial) in shown(&view.evaluation.trials, TABLE_ROWS).enumerate() {
        if ordinal > 0 {
            rows.push(b',');
        }
        let flawed = view.timelines.searchable(&trial.id).is_some_and(|found| found.flawed);
        serde_json::to_writer(&mut rows, &row(&trial, flawed, &mut names))?;
        ordinals.insert(trial.id.into_owned(), ordinal);
    }
    let block = |block: &crate::report::timelines::Block| -> Vec<Value> {
        block.trials.iter().map(|id| ordinals.get(id.as_str()).map_or(Value::Null, |&ordinal| json!(ordinal))).collect()
    };
    let blocks: Vec<Vec<Value>> = view.timelines.blocks().iter().map(block).collect();
    let mut abouts: BTreeMap<String, &str> = BTreeMap::new();
    let mut asks: BTreeMap<String, String> = BTreeMap::new();
    for scenario in &view.plan.scenarios {
        for planned in &scenario.cases {
            let name = format!("{}/{}", scenario.name, planned.case.case);
            if !planned.case.about.is_empty() {
                abouts.insert(name.clone(), &planned.case.about);
            }
            let turns = planned.case.steps.iter().flatten().flat_map(|conversation| &conversation.turns);
            let asked: Vec<&str> = turns.map(|turn| turn.ask.as_str()).collect();
            asks.insert(name, quote(&asked.join(" / "), ASKED));
        }
    }
    let files: BTreeMap<&str, &str> =
        view.plan.scenarios.iter().map(|scenario| (scenario.name.as_str(), scenario.file.as_str())).collect();
    let Broken { criteria, causes, of_trials } = broken(view.evaluation, &ordinals);
    let limit = super::latency::limits(view.evaluation).into_iter().next();
    let beside = json!({
        "names": names.list,
        "abouts": abouts,
        "asks": asks,
        "files": files,
        "seed": view.plan.seed,
        "prompts": view.plan.prompts,
        "criteria": criteria,
        "causes": causes,
        "broken": of_trials,
        "limit": limit,
        "blocks": blocks,
    });
    // The rows are already serialised: they are inserted before the object is closed.
    let mut data = serde_json::to_string(&beside)?;
    data.pop();
    Ok(format!("{data},\"rows\":[{}]}}", String::from_utf8_lossy(&rows)))
}

/// Search texts besides names and reasons, as gzip of JSON: distinct texts in lower case, and for each row the index of
/// its text.
pub(super) fn searchable(view: &View<'_>) -> serde_json::Result<Vec<u8>> {
    #[derive(serde::Serialize)]
    struct SearchEntry<'v> {
        s: Vec<&'v str>,
        t: Vec<usize>,
    }
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut texts = Vec::new();
    let mut number = |trial: TrialRow<'_>| {
        let words = view.timelines.searchable(&trial.id).map_or("", |found| found.words.as_ref());
        *numbers.entry(words).or_insert_with(|| {
            texts.push(words);
            texts.len() - 1
        })
    };
    let rows = shown(&view.evaluation.trials, TABLE_ROWS).map(&mut number).collect();
    let found = secrets::clean_packed(serde_json::to_vec(&SearchEntry { s: texts, t: rows })?);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&found).and_then(|()| gzip.finish()).map_err(serde_json::Error::io)
}

/// Criteria notes on the trials in the table, including trials that passed.
struct Broken {
    /// Anchor and name of each criterion.
    criteria: Vec<(String, String)>,
    /// Distinct reasons.
    causes: Vec<String>,
    /// By row of the trial: criterion, cause, unit and note of each violation.
    of_trials: BTreeMap<usize, Vec<(usize, usize, String, String)>>,
}

fn broken(evaluation: &Evaluation, ordinals: &HashMap<String, usize>) -> Broken {
    let mut found = Broken { criteria: Vec::new(), causes: Vec::new(), of_trials: BTreeMap::new() };
    let mut causes: HashMap<String, usize> = HashMap::new();
    let mut bytes: HashMap<usize, usize> = HashMap::new();
    for (anchor, row) in anchored(evaluation) {
        let criterion = found.criteria.len();
        found.criteria.push((anchor, figures::name(row)));
        for violation in &row.violations {
            let Some(&ordinal) = ordinals.get(&violation.trial) else { continue };
            let note = quote(&violation.note, WHY);
            let spent = bytes.entry(ordinal).or_default();
            *spent += note.len();
            if *spent > BROKEN {
                continue;
            }
            let reason = reason(&violation.note);
            let next = causes.len();
            let cause = *causes.entry(reason.clone()).or_insert_with(|| {
                found.causes.push(reason);
                next
            });
            found.of_trials.entry(ordinal).or_default().push((criterion, cause, quote(&violation.unit, 80), note));
        }
    }
    found
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

fn row(trial: &TrialRow<'_>, flawed: bool, names: &mut Names) -> Value {
    let lane = &trial.lane;
    let usual = format!("{}/{}/{lane}", trial.scenario, trial.case);
    let id = if usual == trial.id { json!(0) } else { json!(trial.id) };
    let error = if trial.error.is_empty() { json!(0) } else { json!(trial.error) };
    let RetryCounts { transport, model, tool } = trial.retries;
    json!([
        id,
        names.number(trial.scenario),
        names.number(trial.case),
        names.number(lane.flow),
        names.number(lane.variant),
        lane.repetition,
        u8::from(lane.arm == Arm::Control),
        worst_first(trial.verdict),
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
        u8::from(flawed),
    ])
}

/// Failure reasons of a trial, for the search and the table; empty if it passed.
fn why(trial: &TrialRow<'_>) -> Value {
    let failed =
        trial.checks.iter().filter(|check| !check.passed).map(|check| format!("{}: {}", check.what, check.seen));
    let all: Vec<String> = failed.chain(trial.departures.iter().cloned()).collect();
    if all.is_empty() { json!(0) } else { json!(quote(&all.join("; "), WHY)) }
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
        run.evaluation.trials = std::sync::Arc::new(trials.into_iter().collect());
        let data = read(&run.view());
        assert_eq!((&data["rows"][0][0], &data["rows"][1][0]), (&json!("elsewhere"), &json!(0)));
    }

    #[test]
    fn the_search_finds_a_trial_by_what_a_criterion_says_of_it() {
        let run = sample::run(2);
        let results = || run.evaluation.rows();
        let violation = results().flat_map(|row| &row.violations).next().expect("the sample has one");
        let place = run.evaluation.trials.iter().position(|trial| trial.id == violation.trial).expect("its trial");
        let data = read(&run.view());
        let said = data["broken"][place.to_string()].as_array().expect("violations");
        let own = said.iter().find(|one| one[3] == quote(&violation.note, WHY)).expect("this one");
        let criterion = &data["criteria"][own[0].as_u64().expect("a number") as usize];
        assert!(criterion[0].as_str().is_some_and(|anchor| anchor.starts_with("criterion-")), "{criterion}");
        let cause = &data["causes"][own[1].as_u64().expect("a number") as usize];
        assert_eq!(cause, &reason(&violation.note));
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
