//! Builds a plan and traces from conversations: one case per task, one repetition per conversation.

use super::copies::{drop_copies, input, keep_shared_sessions, shared};
use super::error::TraceMistake;
use super::record::{Record, Told};
use super::{Aside, ImportError, Imported, conversation, matching, published};
use crate::flow;
use crate::plan::{
    PLAN_VERSION, Plan, PlannedCase, PlannedScenario, PlannedTrial, PlannedVariant, ResolvedCase, trial_seed,
};
use crate::scenario::expect::Expectation;
use crate::scenario::external::AgentRoles;
use crate::scenario::{Criteria, Criterion, GateKind, Scenario, Turn};
use crate::trace::{
    Arm, Evidence, IMPORTED, Lane, Mode, NamedPassage, Role, Roles, Searched, Trace, TrialEnd, TrialError,
    TrialErrorKind, cut_off, version_1, version_of,
};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Builds the plan and traces of the file `name`.
///
/// # Errors
/// If two conversations have the same task and trial.
pub(super) fn imported(
    name: &str,
    mut records: Vec<Record>,
    criteria: Option<Criteria>,
    agent: Option<&Scenario>,
) -> Result<Imported, ImportError> {
    let roles = agent.map(roles_of).unwrap_or_default();
    let scenario = scenario_name(name);
    let mut ignored: BTreeMap<String, usize> = BTreeMap::new();
    for member in records.iter().flat_map(|record| &record.ignored) {
        *ignored.entry(member.clone()).or_default() += 1;
    }
    if let Some(agent) = agent {
        matching::name_tasks(&mut records, agent);
    }
    let are_timed = published::are_timed(records.iter().filter_map(|record| record.published.as_deref()));
    let copies = drop_copies(&mut records);
    let in_sessions = keep_shared_sessions(&mut records);
    let copied: BTreeSet<usize> = copies.iter().map(|(_, first)| *first).collect();
    let dropped: BTreeSet<usize> = copies.iter().map(|(copy, _)| *copy).collect();
    // Positions in the file, without duplicates.
    let places: Vec<usize> = (1..=records.len() + copies.len()).filter(|place| !dropped.contains(place)).collect();
    let inputs: Vec<Option<String>> = records.iter().map(input).collect();
    let placed = placed(&records, &inputs, &places)?;
    let mut cases: Vec<String> = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for (case, _) in &placed {
        known.entry(case).or_insert_with(|| {
            cases.push(case.clone());
            cases.len() - 1
        });
    }
    let of: Vec<(usize, Option<String>)> =
        placed.iter().zip(inputs).map(|((case, _), input)| (known[case.as_str()], input)).collect();
    // Cases of one session are no independent evidence about unseen ones either.
    let sessions = of.iter().zip(&records).map(|((case, _), record)| (*case, record.session.clone()));
    let alike = shared(cases.len(), &of.iter().cloned().chain(sessions).collect::<Vec<_>>());
    let mut own: BTreeMap<usize, (Vec<Turn>, Option<Expectation>)> = BTreeMap::new();
    for ((case, _), record) in of.iter().zip(&mut records) {
        own.extend(record.case.take().map(|own| (*case, own)));
    }
    let mut order: Vec<(usize, u32, Record, bool)> = placed
        .iter()
        .zip(records)
        .zip(&places)
        .map(|(((case, repetition), record), place)| {
            (known[case.as_str()], *repetition, record, copied.contains(place))
        })
        .collect();
    order.sort_by_key(|(case, repetition, ..)| (*case, *repetition));
    let (mut trials, mut traces, mut rewards) = (Vec::new(), Vec::new(), BTreeMap::new());
    let (mut passages, mut earlier, mut machine) = (Vec::new(), Vec::new(), None);
    let mut resolved: Vec<ResolvedCase> =
        (0..).zip(&cases).map(|(place, name)| matching::case(name, own.remove(&place), agent)).collect();
    let mut longer = BTreeSet::new();
    for (case, repetition, mut record, copied) in order {
        let own = record.published.as_ref().and_then(|one| one.machine.as_ref());
        if own.is_some_and(|own| machine.get_or_insert_with(|| own.clone()) != own) {
            let why = "differs from that of an earlier trace: import traces of different agents separately";
            record.messages = Err(TraceMistake::new("machine", why).into());
        }
        earlier.push(record.told.as_mut().map(|told| std::mem::take(&mut told.earlier)).unwrap_or_default());
        let lane = Lane { flow: IMPORTED.into(), variant: "base".into(), repetition, arm: Arm::Main };
        let id = format!("{scenario}/{}/{lane}", cases[case]);
        let seed = trial_seed(0, &id);
        if let Some(reward) = record.reward {
            rewards.insert(id.clone(), reward);
        }
        let given = record.published.as_ref().and_then(|one| one.roles.clone());
        let of_agent = || agent.is_some().then(|| roles.clone());
        let known = given.or_else(of_agent);
        let (mut told, found) =
            trace((&id, &scenario, &resolved[case], name), lane.clone(), seed, (record, are_timed), known.as_ref());
        passages.push(found);
        told.notes.extend(agent.and_then(|agent| matching::other_question(agent, &told)));
        if told.events.iter().any(|event| (event.conversation, event.turn) > (0, 0)) {
            longer.insert(case);
        }
        if copied {
            told.notes.push("the log holds exact copies of it, which were dropped".to_owned());
        }
        let roles = known.unwrap_or_else(|| response_tools(&told));
        traces.push(Trace { roles, ..told });
        trials.push(PlannedTrial { id, scenario: 0, case, lane, seed });
    }
    for case in longer {
        matching::expect_of_all_turns(&mut resolved[case], agent);
    }
    let expected = !rewards.is_empty() || resolved.iter().any(ResolvedCase::expects_something);
    let open = |(one, trace): &(&PlannedTrial, &Trace)| {
        let is_judged = rewards.contains_key(&one.id) || resolved[one.case].expects_something();
        !is_judged && trace.end == TrialEnd::Completed
    };
    let ungraded = matching::ungraded(trials.iter().zip(&traces).filter(open).count(), rewards.len());
    let unnamed = agent.map(|agent| matching::unnamed(agent, &cases)).unwrap_or_default();
    let gates = agent.map(|agent| match &agent.gates {
        // Otherwise a misspelt name would switch off all expectations.
        _ if !unnamed.is_empty() && !expected => agent.applied_gates(),
        gates => gates.clone().unwrap_or_default(),
    });
    let planned = PlannedScenario {
        name: scenario,
        file: name.to_owned(),
        about: format!("Conversations of another agent, imported from {name}."),
        agent: None,
        knowledge: BTreeMap::new(),
        variants: vec![PlannedVariant::named("base", "as imported", "imported")],
        cases: resolved
            .into_iter()
            .zip(&alike)
            .map(|(case, first)| PlannedCase { table: None, line: 1, case, input: cases[*first].clone() })
            .collect(),
        gates: gates.unwrap_or_default(),
    };
    let plan = Plan {
        version: PLAN_VERSION,
        mode: Some(Mode::Imported),
        scenarios: vec![planned],
        trials: trials.into(),
        criteria: criteria.unwrap_or_else(|| usual(expected)),
        machines: machine
            .and_then(|one| Some((IMPORTED.to_owned(), serde_json::to_value(one).ok()?)))
            .into_iter()
            .collect(),
        rewards,
        ..Plan::default()
    };
    let remarks = in_sessions.into_iter().chain(matching::remark(&unnamed)).chain(ungraded).collect();
    Ok(Imported { plan, traces, passages, earlier, ignored, copies, remarks, aside: Aside::default() })
}

/// Case and repetition of each conversation, in file order. The case is its task; without one it is named by its input,
/// so that it has the same name in every log. `places` are positions in the file, from 1.
fn placed(records: &[Record], inputs: &[Option<String>], places: &[usize]) -> Result<Vec<(String, u32)>, ImportError> {
    // Some logs count trials from 0 and some from 1; repetitions count from 1.
    let shift = u32::from(records.iter().any(|record| record.trial == Some(0)));
    let mut taken: BTreeSet<(String, u32)> = BTreeSet::new();
    let mut highest: BTreeMap<String, u32> = BTreeMap::new();
    let mut placed = Vec::with_capacity(records.len());
    for ((ordinal, record), input) in places.iter().copied().zip(records).zip(inputs) {
        let unnamed = || format!("conversation-{}", input.clone().unwrap_or_else(|| ordinal.to_string()));
        let case = record.task.as_deref().map_or_else(unnamed, plain);
        let highest = highest.entry(case.clone()).or_default();
        // Two variants in one log may number the trials of one question alike.
        let own = record.trial.map(|trial| trial + shift);
        let own = own.filter(|own| record.task.is_some() || !taken.contains(&(case.clone(), *own)));
        let repetition = own.unwrap_or(*highest + 1);
        *highest = repetition.max(*highest);
        if !taken.insert((case.clone(), repetition)) {
            let trial = record.trial.unwrap_or(repetition);
            return Err(ImportError::Twice { ordinal, task: case, trial });
        }
        placed.push((case, repetition));
    }
    Ok(placed)
}

/// Passages that a trial found.
type Found = Vec<Arc<NamedPassage>>;

/// The trace of one conversation and the passages in it; `are_timed` says whether every answer of the file has a time,
/// `roles` are those of its tools, if known.
fn trace(
    (id, scenario, case, file): (&str, &str, &ResolvedCase, &str),
    lane: Lane,
    seed: u64,
    (record, are_timed): (Record, bool),
    roles: Option<&Roles>,
) -> (Trace, Found) {
    let model = record.model.unwrap_or_else(|| "unknown".into());
    let absent = record.published.as_deref().map(|given| published::absent(given, are_timed));
    let told = record.messages.and_then(|messages| match (record.told, &record.published) {
        (Some(told), _) => Ok(told),
        (None, Some(given)) => Ok(published::events(given, roles.unwrap_or(&version_1()), case)?),
        (None, None) => {
            let none = Roles::default();
            conversation::events(&messages, &record.mapping, &model, record.reward, roles.unwrap_or(&none))
        }
    });
    let (told, end) = match told {
        Ok(told) => (told, TrialEnd::Completed),
        Err(mistake) => {
            let cause = mistake.cause();
            let message = format!("this conversation cannot be read: {mistake}");
            let detail = vec![format!("correct it in {file} and import the file again")];
            let kind = TrialErrorKind::ConversationBroken;
            (Told::default(), TrialEnd::Error(TrialError { kind, message, cause, detail }))
        }
    };
    let recorded_at = record.published.as_ref().and_then(|one| one.recorded_at.clone());
    let evidence =
        Evidence { recorded_at, session: record.session, ..Evidence::new(Mode::Imported, file.to_owned(), &model) };
    let mut searched: BTreeMap<&str, BTreeMap<String, String>> = BTreeMap::new();
    for passage in &told.passages {
        searched.entry(&passage.base).or_default().insert(passage.id.clone(), passage.name().to_owned());
    }
    let passages = searched.into_iter().map(|(base, passages)| Searched { base: base.to_owned(), passages }).collect();
    let trace = Trace {
        version: version_of(&told.events),
        scenario: scenario.to_owned(),
        case: case.case.clone(),
        offered: record.offered,
        notes: told.notes.into_iter().chain(cut_off(&told.events)).collect(),
        passages,
        absent: told.absent.or(absent),
        end,
        took_us: told.took_us,
        events: told.events,
        ..Trace::of(id.to_owned(), lane, seed, evidence)
    };
    (trace, told.passages)
}

/// Roles of the agent's tools: those that the scenario gives them, or those of its built-in flow.
fn roles_of(agent: &Scenario) -> Roles {
    let own = || flow::by_name(&agent.flow).map(flow::roles);
    agent.roles.as_ref().map(AgentRoles::by_tool).or_else(own).unwrap_or_default()
}

/// Tools through which a conversation answers, by the names used in our flows, if no scenario gives roles. A call after
/// one of them came after the answer.
fn response_tools(trace: &Trace) -> Roles {
    version_1().into_iter().filter(|(tool, role)| *role == Role::Respond && trace.called(tool)).collect()
}

/// File name without its format suffixes.
fn scenario_name(file: &str) -> String {
    let mut stem = file;
    for ending in [".gz", ".json", ".jsonl", ".ndjson"] {
        stem = stem.strip_suffix(ending).unwrap_or(stem);
    }
    plain(stem)
}

/// A name of letters, digits, `-`, `_` and `.`; different names stay different.
pub(super) fn plain(name: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let kept: String = name.chars().take(60).map(|letter| if fits(letter) { letter } else { '-' }).collect();
    if kept == name && !kept.is_empty() {
        return kept;
    }
    format!("{kept}-{}", hex::encode(&Sha256::digest(name.as_bytes())[..4]))
}

/// Default criteria for any conversation; `expected` says whether cases have expectations beyond an answer.
fn usual(expected: bool) -> Criteria {
    let criterion = |id: &str, about: &str, metric: &str, required: bool| Criterion {
        id: id.into(),
        about: about.into(),
        metric: metric.into(),
        target: ">= 95%".into(),
        kind: GateKind::Confidence,
        required: Some(required),
        ..Criterion::every_case()
    };
    Criteria {
        about: "What can be asked of any conversation; name others with --criteria.".into(),
        criteria: vec![
            criterion("answers", "Every query gets an answer", "turn_success_rate", true),
            criterion(
                "tasks",
                "Conversations get the full reward, or meet what their case expects",
                "case_pass_rate",
                expected,
            ),
        ],
        ..Criteria::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::import::{Format, messages};
    use serde_json::{Value, json};

    fn import(value: &Value) -> Result<Imported, ImportError> {
        messages("some logs.jsonl.gz", value.to_string().as_bytes(), None)
    }

    fn conversation(task: &str, trial: Option<u32>) -> Value {
        json!({"task_id": task, "trial": trial, "reward": 0.5, "model": "m-1",
            "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})
    }

    #[test]
    fn a_task_is_a_case_and_its_conversations_are_repetitions() {
        let read = import(&json!([conversation("b", Some(1)), conversation("a", Some(0)), conversation("b", Some(0))]))
            .expect("a file");
        let ids: Vec<_> = read.plan.trials.iter().map(|trial| trial.id.as_str()).collect();
        let scenario = &read.plan.scenarios[0].name;
        assert!(scenario.starts_with("some-logs-"), "{scenario}");
        let expected = ["b/imported.base.1", "b/imported.base.2", "a/imported.base.1"];
        assert_eq!(ids, expected.map(|id| format!("{scenario}/{id}")));
        let told: Vec<_> = read.traces.iter().map(|trace| trace.trial.as_str()).collect();
        assert_eq!(told, ids);
        assert_eq!(read.plan.rewards.len(), 3);
        assert_eq!((read.traces[0].evidence.mode, read.traces[0].evidence.model.as_str()), (Mode::Imported, "m-1"));
    }

    #[test]
    fn conversations_without_a_grade_beside_graded_ones_are_counted_in_a_remark() {
        let mut ungraded = conversation("b", None);
        ungraded["reward"] = Value::Null;
        let read = import(&json!([conversation("a", None), ungraded, conversation("c", None)])).expect("a file");
        let told = "1 conversation has no grade that is a number, beside 2 with one, and no expectation";
        assert_eq!((read.plan.rewards.len(), read.remarks), (2, vec![told.to_owned()]));
        let mut other = conversation("b", None);
        other["reward"] = Value::Null;
        assert_eq!(import(&json!([other])).expect("a file").remarks, Vec::<String>::new(), "nothing was graded");
    }

    #[test]
    fn conversations_of_a_built_in_flow_have_the_roles_of_its_tools() {
        let written = json!({"scenario": "own", "flow": "tool-rag", "cases": [{"case": "a", "ask": "q"}]});
        let agent: Scenario = serde_json::from_value(written).expect("a scenario");
        let log = json!([conversation("a", None)]);
        let text = log.to_string();
        let read = Format::Messages.read("log.jsonl", text.as_bytes(), None, Some(&agent)).expect("a file");
        assert_eq!(read.traces[0].roles, version_1());
    }

    #[test]
    fn one_trial_cannot_be_two_conversations() {
        let mistake =
            import(&json!([conversation("a", Some(3)), conversation("a", Some(3))])).expect_err("twice").to_string();
        assert!(mistake.contains("conversation 2") && mistake.contains("trial 3"), "{mistake}");
        let counted = import(&json!([conversation("a", None), conversation("a", None)])).expect("counted in order");
        assert_eq!(counted.plan.trials[1].lane.repetition, 2);
    }

    #[test]
    fn a_broken_conversation_keeps_its_trial_in_error() {
        let read = import(&json!([conversation("a", None), {"task_id": "a"}])).expect("a file");
        let TrialEnd::Error(error) = &read.traces[1].end else { panic!("not an error") };
        assert_eq!(error.kind, TrialErrorKind::ConversationBroken);
        assert!(error.message.contains("no `messages`"), "{}", error.message);
    }

    #[test]
    fn an_answer_that_was_cut_off_has_a_note_in_every_shape_of_messages() {
        let asked = json!({"role": "user", "content": "q"});
        let of = |member: &str, value: Value| {
            let mut answer = json!({"role": "assistant", "content": "a"});
            answer[member] = value;
            json!([{"messages": [asked, answer]}])
        };
        let langchain = json!({"type": "ai", "content": "a", "response_metadata": {"finish_reason": "length"}});
        let item = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]});
        let response = |status: &str, details: Value| json!([{"input": [asked], "status": status, "incomplete_details": details, "output": [item]}]);
        for (log, is_noted) in [
            (of("finish_reason", json!("length")), true),
            (of("stop_reason", json!("max_tokens")), true),
            (of("finish_reason", json!("stop")), false),
            (json!([{"messages": [{"type": "human", "content": "q"}, langchain]}]), true),
            (response("incomplete", json!({"reason": "max_output_tokens"})), true),
            (response("completed", Value::Null), false),
        ] {
            let read = import(&log).expect("a file");
            let noted = read.traces[0].notes.iter().any(|note| note.contains("was cut off (`"));
            assert_eq!(noted, is_noted, "{log}: {:?}", read.traces[0].notes);
        }
    }

    #[test]
    fn names_stay_apart_and_harmless() {
        assert_eq!(plain("task-7"), "task-7");
        assert_ne!(plain("a/b"), plain("a-b"));
        assert_ne!(plain("a/b"), plain("a\u{1b}b"));
        assert!(plain("../x").bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)));
        assert_ne!(plain(""), "");
    }
}
