//! Expectations on tool calls: patterns against calls, in order or not.
//!
//! Empty cases: `in_order`, `superset` and `before` without patterns expect nothing and fail; `exact` and `any_order`
//! without patterns mean "no call"; `subset` holds when nothing was called, because nothing has to be called and a
//! separate check requires every turn to answer.
//!
//! A required call must have succeeded: one that failed, was rejected or came out of order does not count, unless the
//! pattern names its outcome. A forbidden call counts as an attempt, run or not. What `before` puts second counts when
//! it ran, failed or not.
//!
//! Where the trace does not show whether a call ran, every possible outcome is tried. An expectation that holds for
//! all of them holds, one that holds for none fails, and any other is undetermined. A call with unknown arguments has its
//! name: conditions on them are tried as met and as not met.

mod patterns;

pub(crate) use patterns::Patterns;
use patterns::given;

use super::assignment::largest;
use super::{Held, Seen, TurnView, quote};
use crate::scenario::expect::{ArgumentPattern, CallExpectation, CallOutcome, CallPattern};
use crate::trace::text::listed;
use crate::trace::{ModelCalled, Reply, ToolCalled, ToolOutcome, ToolResult};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Largest number of calls with unknown outcome for which all combinations are tried.
const MOST_OPEN: usize = 4;

/// Outcome of a call, observed or assumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    /// Succeeded, with the recorded result.
    Ok,
    /// Assumed to have succeeded, with any result that the pattern asks for.
    OkAsAsked,
    Failed,
    NotRun,
}

impl Came {
    /// Possible outcomes of a call whose outcome, or whose result, the trace does not show.
    fn possible(call: &ToolCalled) -> &'static [Self] {
        let all = &[Self::NotRun, Self::Ok, Self::OkAsAsked, Self::Failed];
        if call.outcome.is_unseen() { all } else { &all[1..3] }
    }

    fn worked(self) -> bool {
        matches!(self, Self::Ok | Self::OkAsAsked)
    }
}

/// Whether calls with unknown arguments are assumed to meet conditions on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fitting {
    None,
    All,
}

/// One call, reduced to what expectations compare.
struct Called<'a> {
    call: &'a ToolCalled,
    arguments: Cow<'a, Value>,
    turn: usize,
    came: Came,
    recovered: bool,
    /// Assumed to have been called with the arguments that the pattern asks for.
    as_asked: bool,
    /// Whether numbers whose digits are not known are assumed to be those that the pattern asks for.
    fitting: Fitting,
}

/// Why the digits of a number are not known.
pub(super) const NEAREST: &str = "not measured: of a number beyond 64 bits, the trace keeps the nearest one and not its digits; \
                                  let the agent send such a number as text";

/// The finding that the arguments of a tool's calls are not shown.
pub(super) fn hidden(tool: &str) -> Seen {
    Seen::hidden(format!("not measured: the trace does not show what {} was called with", quote(tool, 60)))
}

/// Whether the trace does not show what a call ran with.
pub(super) fn hides_arguments(call: &ToolCalled) -> bool {
    call.arguments.is_null() && !matches!(call.outcome, ToolOutcome::Rejected(_) | ToolOutcome::OutOfOrder(_))
}

/// Whether the trace does not show what a call that worked returned.
fn hides_result(call: &ToolCalled) -> bool {
    matches!(&call.outcome, ToolOutcome::Ok(ToolResult::Other(result)) if *result == ToolResult::UNSHOWN)
}

/// Whether one completion asked for both calls of a tool, so that neither is a retry of the other.
fn are_together(view: &TurnView<'_>, one: &ToolCalled, other: &ToolCalled) -> bool {
    let asks = |model: &ModelCalled| match &model.reply {
        Reply::Completion(said) => said.calls.iter().filter(|tool| **tool == one.tool).count() > 1,
        Reply::Failure { .. } => false,
    };
    one.call == other.call && view.models().any(|model| model.call == one.call && asks(model))
}

/// The arguments of a call; those that were encoded twice are decoded.
fn arguments(call: &ToolCalled) -> Cow<'_, Value> {
    let decoded = call.arguments.as_str().and_then(|text| serde_json::from_str(text).ok()).filter(Value::is_object);
    decoded.map_or(Cow::Borrowed(&call.arguments), Cow::Owned)
}

/// Whether something else stands in place of arguments: JSON that was cut off, or a list of them without their names.
fn is_unreadable(arguments: &Value) -> bool {
    let is_nothing = arguments.is_null() || arguments.as_str().is_some_and(|text| text.trim().is_empty());
    !is_nothing && !arguments.is_object()
}

/// The calls of each turn. One whose result a later turn shows is counted there alone.
fn counted<'v, 'a>(turns: &[&'v TurnView<'a>]) -> Vec<(&'v TurnView<'a>, Vec<&'a ToolCalled>)> {
    let key = |call: &'a ToolCalled| (call.call, call.id.as_str(), call.tool.as_str());
    let all = turns.iter().enumerate().flat_map(|(turn, view)| view.calls().map(move |call| (turn, call)));
    let shown = all.filter(|(_, call)| !call.id.is_empty() && !call.outcome.is_unseen());
    let last: BTreeMap<_, usize> = shown.map(|(turn, call)| (key(call), turn)).collect();
    let is_later = |turn: usize, call: &'a ToolCalled| last.get(&key(call)).is_some_and(|shown| *shown > turn);
    let of = |(turn, view): (usize, &&'v TurnView<'a>)| {
        let calls = view.calls().filter(|call| !(call.outcome.is_unseen() && is_later(turn, call)));
        (*view, calls.collect())
    };
    turns.iter().enumerate().map(of).collect()
}

/// Collects the calls of the turns; unknown outcomes are taken from `assumed`, in order.
fn called<'a>(turns: &[&TurnView<'a>], assumed: &mut dyn Iterator<Item = Came>, fitting: Fitting) -> Vec<Called<'a>> {
    let mut all: Vec<Called<'a>> = Vec::new();
    for (turn, (view, calls)) in counted(turns).into_iter().enumerate() {
        for call in calls {
            let came = match &call.outcome {
                ToolOutcome::Ok(_) if hides_result(call) => assumed.next().unwrap_or(Came::Ok),
                ToolOutcome::Ok(_) => Came::Ok,
                ToolOutcome::Failed { .. } => Came::Failed,
                ToolOutcome::Rejected(_) | ToolOutcome::OutOfOrder(_) => Came::NotRun,
                ToolOutcome::Unseen { .. } => assumed.next().unwrap_or(Came::NotRun),
            };
            let failed_before = all.iter().any(|earlier| {
                earlier.turn == turn
                    && earlier.call.tool == call.tool
                    && !earlier.came.worked()
                    && !are_together(view, earlier.call, call)
            });
            let arguments = arguments(call);
            let as_asked = fitting == Fitting::All && (hides_arguments(call) || is_unreadable(&arguments));
            all.push(Called {
                call,
                arguments,
                turn,
                came,
                recovered: came.worked() && failed_before,
                as_asked,
                fitting,
            });
        }
    }
    all
}

fn fits(pattern: &CallPattern, called: &Called<'_>, patterns: &Patterns) -> bool {
    let holds = |condition: &ArgumentPattern, value: &Value| {
        let is_open = patterns.is_open(condition, value);
        if is_open { called.fitting == Fitting::All } else { patterns.holds(condition, value) }
    };
    let worked = called.came.worked();
    let outcome = match pattern.outcome {
        None => true,
        Some(CallOutcome::Ok) => worked,
        Some(CallOutcome::Failed) => !worked,
        Some(CallOutcome::Recovered) => called.recovered,
    };
    let arguments = || {
        let values = || given(pattern, &called.arguments);
        called.as_asked || values().all(|(condition, value)| value.is_some_and(|value| holds(condition, value)))
    };
    let result = || {
        let value = result_of(called.call);
        let part = |place: &str| value.as_ref().and_then(|value| value.pointer(place));
        pattern.result.iter().all(|(place, condition)| part(place).is_some_and(|part| holds(condition, part)))
    };
    outcome
        && pattern.tool == called.call.tool
        && arguments()
        && (pattern.result.is_empty() || called.came == Came::OkAsAsked || result())
}

/// The result that a call returned.
fn result_of(call: &ToolCalled) -> Option<Cow<'_, Value>> {
    let ToolOutcome::Ok(result) = &call.outcome else { return None };
    result.value()
}

/// Describes an expectation for reports: `calls.in_order: lookup_order, create_ticket`.
pub(super) fn describe(expectation: &CallExpectation) -> String {
    let name = match expectation {
        CallExpectation::InOrder(_) => "in_order",
        CallExpectation::Exact(_) => "exact",
        CallExpectation::AnyOrder(_) => "any_order",
        CallExpectation::Subset(_) => "subset",
        CallExpectation::Superset(_) => "superset",
        CallExpectation::Before(_) => "before",
        CallExpectation::ExactlyOnce(_) => "exactly_once",
        CallExpectation::AtMost(bound) => {
            return format!("calls.at_most: {} times {}", bound.times, describe_pattern(&bound.call));
        }
        CallExpectation::Never(_) => "never",
    };
    let patterns: Vec<_> = expectation.patterns().iter().map(describe_pattern).collect();
    format!("calls.{name}: {}", if patterns.is_empty() { "no call".to_owned() } else { patterns.join(", ") })
}

/// Describes a condition on the named value.
pub(super) fn describe_condition(name: &str, condition: &ArgumentPattern) -> String {
    match condition {
        ArgumentPattern::Equals(value) => format!("{name} = {}", quote(&value.to_string(), 60)),
        ArgumentPattern::Matches(expression) => format!("{name} matches {}", quote(expression, 60)),
        ArgumentPattern::Schema(_) => format!("{name} valid against its schema"),
    }
}

fn describe_pattern(pattern: &CallPattern) -> String {
    let mut text = pattern.tool.clone();
    if !pattern.arguments.is_empty() {
        let conditions = pattern.arguments.iter().map(|(name, condition)| describe_condition(name, condition));
        let _ = write!(text, " ({})", conditions.collect::<Vec<_>>().join(", "));
    }
    if !pattern.result.is_empty() {
        let place = |place: &str| if place.is_empty() { "result".to_owned() } else { format!("result{place}") };
        let conditions = pattern.result.iter().map(|(at, condition)| describe_condition(&place(at), condition));
        let _ = write!(text, " ({})", conditions.collect::<Vec<_>>().join(", "));
    }
    text += match pattern.outcome {
        None => "",
        Some(CallOutcome::Ok) => " [ok]",
        Some(CallOutcome::Failed) => " [failed]",
        Some(CallOutcome::Recovered) => " [recovered]",
    };
    text
}

/// Lists the observed calls for reports: `calls were: lookup_order (ok), create_ticket (ok)`.
fn seen(all: &[Called<'_>]) -> Seen {
    if all.is_empty() {
        return Seen::new("no tool was called");
    }
    let call = |called: &Called<'_>| {
        let outcome = match &called.call.outcome {
            ToolOutcome::Ok(_) if called.recovered => "ok, recovered".to_owned(),
            ToolOutcome::Ok(_) => "ok".to_owned(),
            ToolOutcome::Rejected(rejection) => format!("rejected: {}", quote(&rejection.cause, 40)),
            ToolOutcome::OutOfOrder(_) => "out of order".to_owned(),
            ToolOutcome::Failed { .. } => "failed".to_owned(),
            ToolOutcome::Unseen { .. } => "no result shown".to_owned(),
        };
        format!("{} ({outcome})", quote(&called.call.tool, 60))
    };
    Seen::new(format!("calls were: {}", listed(all.iter().map(call), 12)))
}

/// Checks the calls of `turns` against the expectation; the error says what was observed instead.
pub(super) fn check(expectation: &CallExpectation, turns: &[&TurnView<'_>], patterns: &Patterns) -> Held {
    // What is required was not done by a call whose arguments cannot be read; what is forbidden may have been.
    let forbids = matches!(expectation, CallExpectation::Never(_) | CallExpectation::AtMost(_));
    let asked = |call: &&ToolCalled| {
        let of_tool = |pattern: &CallPattern| pattern.tool == call.tool && !pattern.arguments.is_empty();
        (hides_arguments(call) || forbids && is_unreadable(&arguments(call)))
            && expectation.patterns().iter().any(of_tool)
            || expectation.patterns().iter().any(|pattern| {
                pattern.tool == call.tool && patterns.leave_open(pattern, &arguments(call), result_of(call))
            })
    };
    let Some(call) = turns.iter().flat_map(|turn| turn.calls()).find(asked) else {
        return check_outcomes(expectation, turns, patterns, Fitting::None);
    };
    let [none, all] = [Fitting::None, Fitting::All].map(|one| check_outcomes(expectation, turns, patterns, one));
    // For the others, a call more that fits can only help, or only harm.
    let is_between = matches!(expectation, CallExpectation::ExactlyOnce(_) | CallExpectation::Before(_));
    match (none, all) {
        (Ok(()), Ok(())) if !is_between => Ok(()),
        (Err(seen), Err(_)) if !is_between => Err(seen),
        _ if call.arguments.is_null() => Err(hidden(&call.tool)),
        _ if !is_unreadable(&arguments(call)) => Err(Seen::hidden(NEAREST)),
        _ => Err(Seen::hidden(format!(
            "not measured: the arguments of a call of {} are no JSON object: {}",
            quote(&call.tool, 60),
            quote(&call.arguments.as_str().map_or_else(|| call.arguments.to_string(), str::to_owned), 60)
        ))),
    }
}

/// Checks the calls of `turns` with every possible outcome of those whose outcome or result is not shown.
fn check_outcomes(
    expectation: &CallExpectation,
    turns: &[&TurnView<'_>],
    patterns: &Patterns,
    fitting: Fitting,
) -> Held {
    let calls = counted(turns).into_iter().flat_map(|(_, calls)| calls);
    let unseen: Vec<&ToolCalled> = calls.filter(|call| call.outcome.is_unseen() || hides_result(call)).collect();
    let concerned = |call: &&ToolCalled| {
        let reads = |pattern: &CallPattern| call.outcome.is_unseen() || !pattern.result.is_empty();
        expectation.patterns().iter().any(|pattern| pattern.tool == call.tool && reads(pattern))
    };
    let open = unseen.iter().filter(|call| concerned(call)).count();
    let under = |assumed: &[Came]| {
        let mut assumed = assumed.iter().copied();
        let of = unseen.iter().map(|call| {
            let given = if concerned(call) { assumed.next() } else { None };
            given.unwrap_or(Came::possible(call)[0])
        });
        let of: Vec<Came> = of.collect();
        check_all(expectation, &called(turns, &mut of.into_iter(), fitting), patterns)
    };
    if open == 0 {
        return under(&[]);
    }
    let cannot_be_told = || {
        let tools: BTreeSet<&str> =
            unseen.iter().filter(|call| concerned(call)).map(|call| call.tool.as_str()).collect();
        let tools: Vec<String> = tools.into_iter().map(|tool| quote(tool, 60)).collect();
        if unseen.iter().filter(|call| concerned(call)).all(|call| hides_result(call)) {
            return Seen::hidden(format!("not measured: the trace does not show what {} returned", tools.join(", ")));
        }
        let why = unseen.iter().filter(|call| concerned(call)).find_map(|call| match &call.outcome {
            ToolOutcome::Unseen { reason } => Some(reason.as_str()),
            _ => None,
        });
        let last = turns.iter().filter_map(|turn| turn.calls().last());
        let role = last.into_iter().find(|call| call.outcome.is_unseen() && concerned(call)).map(|call| {
            format!(
                "; if it gives the answer, declare that in the scenario: `roles: {{respond: {}}}`",
                quote(&call.tool, 60)
            )
        });
        Seen::hidden(format!(
            "not measured: whether {} ran is unknown: {}{}",
            tools.join(", "),
            why.unwrap_or_default(),
            role.unwrap_or_default()
        ))
    };
    if open > MOST_OPEN {
        return Err(cannot_be_told());
    }
    let mut combinations: Vec<Vec<Came>> = vec![Vec::new()];
    for call in unseen.iter().filter(|call| concerned(call)) {
        let longer = |one: &Vec<Came>| {
            let one = one.clone();
            Came::possible(call).iter().map(move |came| [one.as_slice(), &[*came]].concat())
        };
        combinations = combinations.iter().flat_map(longer).collect();
    }
    let none = under(&[]);
    let alike = combinations.iter().all(|assumed| under(assumed).is_ok() == none.is_ok());
    if alike { none } else { Err(cannot_be_told()) }
}

/// Checks calls whose outcomes are all known or assumed.
fn check_all(expectation: &CallExpectation, all: &[Called<'_>], patterns: &Patterns) -> Held {
    let attempt = |pattern: &CallPattern, call: &Called<'_>| fits(pattern, call, patterns);
    let fit = |pattern: &CallPattern, call: &Called<'_>| {
        (pattern.outcome.is_some() || call.came.worked()) && attempt(pattern, call)
    };
    let ran = |pattern: &CallPattern, call: &Called<'_>| {
        (pattern.outcome.is_some() || call.came != Came::NotRun) && attempt(pattern, call)
    };
    let matched = |list: &[CallPattern]| largest(list.len(), all.len(), |left, right| fit(&list[left], &all[right]));
    let count = |pattern: &CallPattern| all.iter().filter(|call| attempt(pattern, call)).count();
    let nothing = || Err(Seen::new("it names no call, so it expects nothing"));
    let how_often =
        |pattern: &CallPattern| Err(Seen::new(format!("it happened {} times; {}", count(pattern), seen(all))));
    let holds = match expectation {
        CallExpectation::InOrder(list) | CallExpectation::Superset(list) | CallExpectation::Before(list)
            if list.is_empty() =>
        {
            return nothing();
        }
        CallExpectation::InOrder(list) => {
            // Taking the earliest fit each time is optimal for a subsequence.
            let mut rest = all.iter();
            if let Some(missing) = list.iter().find(|pattern| !rest.any(|call| fit(pattern, call))) {
                return Err(Seen::new(format!("no {} at its place; {}", describe_pattern(missing), seen(all))));
            }
            true
        }
        CallExpectation::Exact(list) => {
            list.len() == all.len() && list.iter().zip(all).all(|(pattern, call)| fit(pattern, call))
        }
        CallExpectation::AnyOrder(list) => list.len() == all.len() && matched(list) == all.len(),
        CallExpectation::Subset(list) => {
            largest(list.len(), all.len(), |left, right| attempt(&list[left], &all[right])) == all.len()
        }
        CallExpectation::Superset(list) => matched(list) == list.len(),
        CallExpectation::Before(list) => list.windows(2).all(|pair| before(&pair[0], &pair[1], all, (&fit, &ran))),
        CallExpectation::ExactlyOnce(pattern) if count(pattern) == 1 => true,
        CallExpectation::AtMost(bound) if count(&bound.call) <= bound.times as usize => true,
        CallExpectation::Never(pattern) if count(pattern) == 0 => true,
        CallExpectation::ExactlyOnce(pattern) | CallExpectation::Never(pattern) => return how_often(pattern),
        CallExpectation::AtMost(bound) => return how_often(&bound.call),
    };
    if holds { Ok(()) } else { Err(seen(all)) }
}

/// Differences of clocks, in microseconds.
const CLOCKS_US: u64 = 1_000;

/// Whether a call came after another: where times of their runs are shown, it began when the other had ended; else, and where
/// a later completion asked for it, it stands after it. Each is given with its place.
fn follows((place, call): (usize, &ToolCalled), (before, first): (usize, &ToolCalled)) -> bool {
    match (first.began_us, call.began_us) {
        (Some(first_us), Some(began_us)) if call.call <= first.call => {
            let had_ended = first_us.saturating_add(first.took_us) <= began_us.saturating_add(CLOCKS_US);
            had_ended && (first_us, before) < (began_us, place)
        }
        _ => before < place,
    }
}

/// Every call of `second` that ran follows some call of `first` in the same turn, and both succeeded. The scope is one
/// turn because the order of work is per query: a search in an earlier turn does not excuse a later one.
fn before(
    first: &CallPattern,
    second: &CallPattern,
    all: &[Called<'_>],
    (fit, ran): (&impl Fn(&CallPattern, &Called<'_>) -> bool, &impl Fn(&CallPattern, &Called<'_>) -> bool),
) -> bool {
    let mut seconds = all.iter().enumerate().filter(|(_, call)| ran(second, call));
    all.iter().any(|call| fit(second, call))
        && seconds.all(|(at, call)| {
            let mut firsts = all.iter().enumerate().filter(|(_, one)| one.turn == call.turn && fit(first, one));
            firsts.any(|(before, one)| follows((at, call.call), (before, one.call)))
        })
}
