//! Checks a new recording before it counts.
//!
//! A recording is written only if the trial ran to its end and every service was reachable. It is then loaded and
//! replayed, and the run reports the replay. A replay that differs from the live trial in anything but time is an
//! error.

use super::lane::NO_DRAW;
use super::opened::Trial;
use super::outage::{Origin, with_outage};
use super::outcome::{Finished, error};
use super::recording::{Recorder, RecordingError};
use crate::cassette::{Cassette, Header, LocalTimes};
use crate::flow::external::{CRASHED, NO_REPLY};
use crate::platform::secrets::Redactor;
use crate::trace::{Event, Trace, TrialEnd, TrialError, TrialErrorKind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Words of a miss whose request differs in the order of its parts alone.
const SAME_IN_ANOTHER_ORDER: &str = " in another order: let the agent ";
/// Beginning of the difference of two traces whose steps are the same.
const ANOTHER_ORDER: &str = "the same requests came in another order";

/// A live trial, with what its recording will hold besides the exchanges.
pub(super) struct Draft<'t> {
    /// The redacted trace.
    pub(super) trace: Trace,
    /// Durations of local stages.
    pub(super) times: &'t LocalTimes,
    /// Values that the agent generated.
    pub(super) vars: BTreeMap<String, Vec<String>>,
    /// Redacts every key in use.
    pub(super) redactor: Arc<Redactor>,
    /// A request that an external agent abandoned before it was answered.
    pub(super) abandoned: Option<String>,
}

/// Writes the recording of a live trial and replays it. If the replay is equal, the recording replaces the old one and
/// the replay is the trial's result.
pub(super) async fn keep<F>(
    trial: Trial<'_>,
    recorder: Recorder,
    draft: Draft<'_>,
    replay: impl Fn(Cassette) -> F,
) -> Finished
where
    F: Future<Output = Result<Finished, Box<TrialError>>>,
{
    let Draft { trace, times, vars, redactor, abandoned } = draft;
    let mut trace = with_outage(trial, trace, &Origin::new());
    if let TrialEnd::Error(why) = &mut trace.end {
        use TrialErrorKind::{AgentUnreached, NoUsableReply, NothingAsked, Provider, ProxyRefused};
        if matches!(why.kind, Provider | ProxyRefused | NothingAsked | AgentUnreached | NoUsableReply) {
            why.detail.push("nothing was written; an earlier recording is as it was".to_owned());
        }
        return Finished::of(trace);
    }
    let broken = |why: RecordingError| {
        end_unless_writable(trial, &why);
        trial.failed(&error(TrialErrorKind::CassetteBroken, &why.to_string(), Vec::new()))
    };
    let (cassette, written) = match recorder.write(times, vars, trace.evidence.knowledge.clone(), &redactor) {
        Ok(written) => written,
        Err(why) => return broken(why),
    };
    let mut finished = match replay(cassette).await {
        Ok(finished) => finished,
        Err(why) => return trial.failed(&why),
    };
    if let Some(difference) = difference(&trace, &finished.trace) {
        let mut message = "the replay of what was just recorded differs from the live trial".to_owned();
        let mut detail: Vec<String> = difference.lines().map(str::to_owned).collect();
        detail.push("an earlier recording is as it was".to_owned());
        if let Some(asked) = abandoned {
            let cut = format!("your agent broke off {asked} before it was answered, and a replay cannot repeat that");
            detail.insert(0, std::mem::replace(&mut message, cut));
            detail.push("let its client wait longer, or record it with a service that answers sooner".to_owned());
        } else if trial.planned.is_external() && difference.starts_with(ANOTHER_ORDER) {
            detail.push(
                "its agent sends requests at once, or in an order of chance (of a set, of threads): record this case again; if it \
                 happens often, let the agent send the second request when the first is under way or answered"
                    .to_owned(),
            );
        } else if trial.planned.is_external() {
            let usual = "values that the agent generates per run (dates, ids) are declared in `vars`";
            let reordered = difference.contains(SAME_IN_ANOTHER_ORDER);
            detail.extend((!reordered && !difference.contains(TrialError::GENERATED)).then(|| usual.to_owned()));
            let agent = trial.opened.agent(trial.planned);
            detail.extend(agent.filter(|agent| !reordered && !agent.forgets()).map(|agent| {
                let remedy = if agent.is_started() {
                    "the replay ran in a process that no other trial ran in: if your agent remembers earlier trials, \
                     declare `reset`, or `target.restart: trial`"
                } else {
                    "if your agent remembers earlier trials, declare `reset`"
                };
                remedy.to_owned()
            }));
        }
        let why = *error(TrialErrorKind::CassetteBroken, &message, detail);
        // Each trial that differs is shown with its own difference.
        finished.trace.end = TrialEnd::Error(TrialError { cause: format!("{message}: {difference}"), ..why });
    } else if let Err(why) = trial.opened.agents.place_start(trial).await {
        return broken(why);
    } else if let Some(first) = first_draw(trial, &trace, &replay).await {
        return first.run_again(finished);
    } else if let Err(why) = written.place() {
        return broken(why);
    }
    finished
}

/// Replay of the existing recording, which stays because the trial was drawn before and nothing under test has changed.
/// `None` if all trials of the scenario are drawn, there is no recording, or it no longer replays.
async fn first_draw<F>(trial: Trial<'_>, live: &Trace, replay: &impl Fn(Cassette) -> F) -> Option<Finished>
where
    F: Future<Output = Result<Finished, Box<TrialError>>>,
{
    if !trial.opened.in_part.contains(&trial.planned.scenario) {
        return None;
    }
    let cassette = trial.recording().ok()?;
    let Header { subject, knowledge, take, takes, .. } = &cassette.header;
    let same = subject.is_empty() || *subject == trial.plan.subject(trial.planned);
    let drawn = takes.get(take).is_none_or(|take| take.verdict != NO_DRAW);
    if !drawn || !same || *knowledge != live.evidence.knowledge {
        return None;
    }
    let first = replay(cassette).await.ok()?;
    (first.trace.end == TrialEnd::Completed).then_some(first)
}

/// Ends the run if a recording failed for lack of disk space or permission: later recordings would be paid for and fail
/// too.
fn end_unless_writable(trial: Trial<'_>, why: &RecordingError) {
    if let Some((what, remedy)) = why.lasting() {
        trial.opened.budget.end(&format!("{what} ({why}): {remedy}"));
    }
}

/// First difference, other than time, between two traces of one trial. Parallel conversations are compared one by one.
fn difference(live: &Trace, replayed: &Trace) -> Option<String> {
    if let TrialEnd::Error(problem) = &replayed.end {
        let detail = problem.detail.join("\n");
        // The message of a miss begins with its kind.
        let kind = format!("{}: ", problem.kind.label());
        let message = problem.message.strip_prefix(&kind).unwrap_or(&problem.message);
        return Some(format!("{kind}{message}\n{detail}"));
    }
    let (ours, theirs) = (by_conversation(live), by_conversation(replayed));
    for (conversation, events) in &ours {
        let others = theirs.get(conversation).map_or(&[][..], Vec::as_slice);
        if let Some(step) = reordered(events, others) {
            return Some(format!(
                "{ANOTHER_ORDER} (conversation {conversation}, from step {step} of {})",
                events.len()
            ));
        }
        for (index, event) in events.iter().enumerate() {
            if others.get(index) != Some(event) {
                let other = others.get(index).cloned().unwrap_or_default();
                return Some(format!("conversation {conversation}, event {index}: live {event}, replayed {other}"));
            }
        }
        if others.len() > events.len() {
            return Some(format!("conversation {conversation}: the replay has more events"));
        }
    }
    None
}

/// Number of the first event that differs, if the events are the same ones in another order.
fn reordered(events: &[Value], others: &[Value]) -> Option<usize> {
    let sorted = |events: &[Value]| {
        let mut all: Vec<String> = events.iter().map(Value::to_string).collect();
        all.sort_unstable();
        all
    };
    let first = events.iter().zip(others).position(|(one, other)| one != other)?;
    (sorted(events) == sorted(others)).then_some(first + 1)
}

fn by_conversation(trace: &Trace) -> BTreeMap<u32, Vec<Value>> {
    let mut events: BTreeMap<u32, Vec<Value>> = BTreeMap::new();
    for event in &trace.events {
        events.entry(event.conversation).or_default().push(timeless(event));
    }
    events
}

fn timeless(event: &Event) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|key, _| !key.ends_with("_us"));
                map.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(event).unwrap_or_default();
    strip(&mut value);
    // What a process prints differs from run to run: times, ports, numbers of processes.
    if let Some(failed) = value.pointer_mut("/what/turn_ended/outcome/failed")
        && [CRASHED, NO_REPLY].iter().any(|kind| failed["kind"] == *kind)
    {
        failed["message"] = Value::Null;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn steps_in_another_order_are_told_from_other_steps() {
        let steps = |names: &str| names.chars().map(|name| json!({"what": {"model_called": name}})).collect::<Vec<_>>();
        for (live, replayed, from) in [
            ("abc", "acb", Some(2)),
            ("aab", "aba", Some(2)),
            ("abc", "abc", None),
            ("abc", "abd", None),
            ("abc", "ab", None),
            ("ab", "abc", None),
            ("aab", "abb", None),
        ] {
            assert_eq!(reordered(&steps(live), &steps(replayed)), from, "{live} {replayed}");
        }
    }
}
