//! Matches the conversations of a log to the cases of their agent's scenario: by name, and turn by turn.

use super::planning::plain;
use super::record::Record;
use crate::plan::ResolvedCase;
use crate::scenario::expect::Expectation;
use crate::scenario::{Case, Scenario, Turn};
use crate::trace::normalise::same_question;
use crate::trace::text::{listed, plural, quote};
use crate::trace::{Trace, What};

/// Cases that a remark names.
const NAMED: usize = 5;

/// Gives each record the name of the case that its task means: without the scenario's name before it (`scenario/case`),
/// and whatever the letter case.
pub(super) fn name_tasks(records: &mut [Record], agent: &Scenario) {
    let before = format!("{}/", agent.scenario);
    for task in records.iter_mut().filter_map(|record| record.task.as_mut()) {
        let name = task.strip_prefix(&before).unwrap_or(task);
        let exact = agent.cases.iter().find(|one| one.case == name);
        let alike = || agent.cases.iter().find(|one| one.case.to_lowercase() == name.to_lowercase());
        if let Some(case) = exact.or_else(alike) {
            task.clone_from(&case.case);
        }
    }
}

/// The case of that name in the agent's scenario.
fn known<'a>(agent: &'a Scenario, name: &str) -> Option<&'a Case> {
    agent.cases.iter().find(|case| plain(&case.case) == name)
}

/// Case of a task: the case of that name, if the agent's scenario has one, else the one that its source gives. User
/// messages differ between the conversations of a task, so only traces hold them.
pub(super) fn case(
    name: &str,
    own: Option<(Vec<Turn>, Option<Expectation>)>,
    agent: Option<&Scenario>,
) -> ResolvedCase {
    match (agent.and_then(|agent| known(agent, name)), own) {
        (Some(known), _) => {
            let case = ResolvedCase::from(known.clone());
            ResolvedCase { case: name.to_owned(), control: false, ..case }
        }
        (None, Some((turns, expect))) => ResolvedCase { expect, ..ResolvedCase::single(name, turns) },
        (None, None) => ResolvedCase::single(name, Vec::new()),
    }
}

/// For a case of a single `ask` whose conversations have more turns: what it expects of calls, times and every answer
/// holds over all of them.
pub(super) fn expect_of_all_turns(case: &mut ResolvedCase, agent: Option<&Scenario>) {
    let asks_once = agent.and_then(|agent| known(agent, &case.case)).is_some_and(|known| known.ask.is_some());
    let expect = case.turns().next().and_then(|turn| turn.expect.as_ref()).map(Expectation::over_turns);
    if asks_once {
        case.expect = expect;
    }
}

/// Cases of the agent's scenario that expect something, and that no conversation names.
pub(super) fn unnamed<'a>(agent: &'a Scenario, named: &[String]) -> Vec<&'a str> {
    let expects = |case: &&Case| ResolvedCase::from((*case).clone()).expects_something();
    let open = agent.cases.iter().filter(|case| !named.contains(&plain(&case.case))).filter(expects);
    open.map(|case| case.case.as_str()).collect()
}

/// A remark on cases that no conversation names, if there are any.
pub(super) fn remark(unnamed: &[&str]) -> Option<String> {
    let named = listed(unnamed.iter().map(|case| format!("`{case}`")), NAMED);
    (!unnamed.is_empty())
        .then(|| format!("no conversation is of these cases, so what they expect is not checked: {named}"))
}

/// A remark on conversations without a grade, if others have one.
pub(super) fn ungraded(number: usize, graded: usize) -> Option<String> {
    (number > 0 && graded > 0).then(|| {
        let (of, have) = (plural(number, "conversation"), if number == 1 { "has" } else { "have" });
        format!("{of} {have} no grade that is a number, beside {graded} with one, and no expectation")
    })
}

/// A note if the conversation's questions differ from those of its case; it shows the first that does.
pub(super) fn other_question(agent: &Scenario, trace: &Trace) -> Option<String> {
    let case = ResolvedCase::from(known(agent, &trace.case)?.clone());
    let asked = trace.events.iter().filter_map(|event| match &event.what {
        What::TurnStarted { query } => Some(((event.conversation, event.turn), query.as_str())),
        _ => None,
    });
    let mut asked: Vec<((u32, u32), &str)> = asked.collect();
    asked.sort_by_key(|(place, _)| *place);
    let asked: Vec<&str> = asked.into_iter().map(|(_, query)| query).collect();
    let expected: Vec<&str> = case.turns().map(|turn| &*turn.ask).collect();
    let differs =
        |at: &usize| asked.get(*at).map(|one| same_question(one)) != expected.get(*at).map(|one| same_question(one));
    // Spans may not say what a failed turn was asked.
    let is_unknown = |at: &usize| asked.get(*at).is_some_and(|words| words.is_empty());
    let mut places = (0..asked.len().max(expected.len())).filter(|at| !is_unknown(at));
    let first = places.find(differs).filter(|_| !asked.is_empty())?;
    let said =
        |all: &[&str]| all.get(first).map_or_else(|| "nothing".to_owned(), |ask| format!("`{}`", quote(ask, 200)));
    Some(format!(
        "judged as case `{}`, but question {} differs: the case asks {}, the log {}",
        quote(&trace.case, 80),
        first + 1,
        said(&expected),
        said(&asked)
    ))
}
