//! The spans of one trace id in order, each with what it says and with the span that it happened within.

use super::Span;
use super::meaning::{self, Completed, Operation, is_tool};
use super::messages::Said;
use super::parts::plainly;
use super::published::{self, OUTCOME, REWARD, TASK};
use crate::platform::secrets;
use crate::trace::Logged;
use crate::trace::text::{plural, quote};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Ancestors of a span that are looked at.
const MOST_ANCESTORS: usize = 1_000;
/// Why completions end, by all services, if they end with a call.
const CALLING: [&str; 4] = ["toolcalls", "toolcall", "tooluse", "functioncall"];
/// Attributes with the id of a session, of OpenTelemetry, OpenInference and Langfuse.
const SESSIONS: [&str; 3] = ["session.id", "langfuse.session.id", "gen_ai.conversation.id"];
/// Characters of one line about an operation.
const LONGEST_LINE: usize = 1_000;

/// What an agent did in one trace.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Story {
    /// The trace id.
    pub(crate) trace: String,
    /// Its operations, by the time at which they began.
    pub(crate) operations: Vec<SpanOperation>,
    /// Entries of its trajectory log, with the time of the span that has them.
    pub(crate) logged: Vec<(u64, Logged)>,
    /// What is odd about the spans.
    pub(crate) notes: Vec<String>,
    /// What of its completions may be a call and cannot be read.
    pub(crate) unread: Vec<String>,
    /// Number of its other spans of which the exporter dropped what may be a call or a search.
    pub(crate) lost: usize,
    /// Number of spans of other work, which are not read.
    pub(crate) others: usize,
    /// Whether its spans say how calls ended: [`published::OUTCOME`].
    pub(crate) has_outcomes: bool,
    /// Attributes of all spans that say which task, trial and grade the trace belongs to.
    pub(crate) task: Option<String>,
    pub(crate) reward: Option<Value>,
    /// The session that the trace is a part of.
    pub(crate) session: Option<String>,
    /// How two spans contradict each other about one of them.
    pub(crate) contradiction: Option<String>,
}

/// One operation, with the span that reports it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SpanOperation {
    pub(crate) operation: Operation,
    /// The operation that it happened within, by index.
    pub(crate) within: Option<usize>,
    /// Id of the outermost span around it.
    pub(crate) root: String,
    /// When it began, in nanoseconds since 1970.
    pub(crate) at_ns: u64,
    /// Duration, in microseconds; 0 if its times are impossible.
    pub(crate) took_us: u64,
    /// Whether its times are possible.
    pub(crate) is_timed: bool,
    /// Message of its error.
    pub(crate) failed: Option<String>,
    /// Whether the server of a tool reports it, and no client.
    pub(crate) is_of_server: bool,
    /// Whether a client reports it as a call by the Model Context Protocol.
    pub(crate) is_mcp: bool,
    /// Whether another instrumentation reported the same operation, around this span: it counts once.
    pub(crate) is_repeated: bool,
}

/// The stories in some spans, by the first span of each trace id. `outside` are ids of spans that others report.
pub(crate) fn stories(spans: Vec<Span>, outside: &[String]) -> Vec<Story> {
    let mut by_trace: Vec<Vec<Span>> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for span in spans {
        let place = *known.entry(span.trace.clone()).or_insert(by_trace.len());
        if place == by_trace.len() {
            by_trace.push(Vec::new());
        }
        by_trace[place].push(span);
    }
    by_trace.into_iter().map(|spans| Story::of(spans, outside)).collect()
}

impl Story {
    fn of(spans: Vec<Span>, outside: &[String]) -> Self {
        let mut story =
            Self { trace: spans.first().map(|span| span.trace.clone()).unwrap_or_default(), ..Self::default() };
        let mut spans = story.distinct(spans);
        sort(&mut spans);
        let mut operations: Vec<Option<Operation>> = spans.iter().map(meaning::of).collect();
        leave_out_servers(&spans, &mut operations);
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for (place, span) in spans.iter().enumerate() {
            places.entry(&span.id).or_insert(place);
        }
        let (mut orphans, mut circles) = (0, 0);
        let mut numbers: Vec<Option<usize>> = vec![None; spans.len()];
        let mut enclosing: Vec<Option<usize>> = Vec::new();
        for (place, span) in spans.iter().enumerate() {
            let (mut root, mut around, mut seen) = (place, None, BTreeSet::from([place]));
            while let Some(parent) = &spans[root].parent {
                let Some(next) = places.get(parent.as_str()).copied() else {
                    orphans += usize::from(root == place && !outside.contains(parent));
                    break;
                };
                if !seen.insert(next) || seen.len() > MOST_ANCESTORS {
                    circles += 1;
                    break;
                }
                root = next;
                if around.is_none() && operations[next].is_some() {
                    around = Some(next);
                }
            }
            story.logged(span);
            story.about(span);
            story.lost += usize::from(span.dropped > 0 && may_miss(operations[place].as_ref()));
            let Some(operation) = &operations[place] else { continue };
            numbers[place] = Some(story.operations.len());
            enclosing.push(around);
            let is_run = matches!(operation, Operation::Ran(_));
            story.operations.push(SpanOperation {
                operation: operation.clone(),
                within: None,
                root: spans[root].id.clone(),
                at_ns: span.start_ns,
                took_us: if span.is_timed() { (span.end_ns - span.start_ns) / 1_000 } else { 0 },
                is_timed: span.is_timed(),
                failed: span
                    .failed
                    .clone()
                    .or_else(|| exception(span))
                    .or_else(|| observed(span))
                    .or_else(|| if is_run { meaning::failed_result(span) } else { None }),
                is_of_server: is_of_server(span),
                is_mcp: meaning::is_mcp_call(span),
                is_repeated: false,
            });
        }
        for (done, around) in story.operations.iter_mut().zip(enclosing) {
            done.within = around.and_then(|place| numbers[place]);
        }
        let unread = story.completions().filter_map(|done| match &done.operation {
            Operation::Completed(completed) => completed.unread.clone(),
            _ => None,
        });
        story.unread = unread.collect();
        story.fold();
        story.unread.extend(story.missing());
        story.others = operations.iter().filter(|operation| operation.is_none()).count();
        let clocks = spans.iter().filter(|span| !span.is_timed()).count();
        let dropped: u64 = spans.iter().map(|span| span.dropped).sum();
        for (count, what) in [
            (orphans, "whose parent did not come"),
            (circles, "in a circle of parents"),
            (clocks, "with an impossible time"),
        ] {
            if count > 0 {
                story.notes.push(format!("{} {what}", plural(count, "span")));
            }
        }
        if dropped > 0 {
            story.notes.push(format!("the exporter dropped {dropped} attributes"));
        }
        story
    }

    /// The spans without exact copies, which exporters send again.
    fn distinct(&mut self, spans: Vec<Span>) -> Vec<Span> {
        let mut known: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut kept: Vec<Span> = Vec::with_capacity(spans.len());
        let (mut copies, mut others) = (0, 0);
        for span in spans {
            let same = known.entry(span.id.clone()).or_default();
            if same.iter().any(|place| kept[*place] == span) {
                copies += 1;
                continue;
            }
            others += usize::from(!same.is_empty());
            same.push(kept.len());
            kept.push(span);
        }
        for (count, what) in [(copies, "sent twice, counted once"), (others, "with the id of another span")] {
            if count > 0 {
                self.notes.push(format!("{} {what}", plural(count, "span")));
            }
        }
        kept
    }

    /// Entries of the trajectory log in the events of a span.
    fn logged(&mut self, span: &Span) {
        for (at_ns, entry) in published::logged(span) {
            match entry {
                Ok(entry) => self.logged.push((at_ns, entry)),
                Err(why) => self.notes.push(why.to_string()),
            }
        }
    }

    fn about(&mut self, span: &Span) {
        self.has_outcomes |= span.attributes.contains_key(OUTCOME);
        let mut contradicts = |name: &str, one: &dyn fmt::Display, other: &dyn fmt::Display| {
            let why = || format!("`{name}` is {one} in a span and {other} in another");
            self.contradiction.get_or_insert_with(why);
        };
        let session = || SESSIONS.iter().find_map(|name| span.attributes.get(*name)).map(super::messages::plain);
        self.session = self.session.take().or_else(session).filter(|session| !session.is_empty());
        if let Some(task) = span.attributes.get(TASK).map(super::messages::plain) {
            match &self.task {
                Some(known) if *known != task => contradicts(TASK, &quote(known, 60), &quote(&task, 60)),
                _ => self.task = Some(task),
            }
        }
        let number = |grade: &Value| grade.as_bool().map(|full| f64::from(u8::from(full))).or_else(|| grade.as_f64());
        if let Some(reward) = span.attributes.get(REWARD).filter(|reward| !reward.is_null()) {
            match &self.reward {
                Some(known) if known != reward && (number(known) != number(reward) || number(known).is_none()) => {
                    contradicts(REWARD, known, reward);
                }
                _ => self.reward = Some(reward.clone()),
            }
        }
    }

    /// What is missing, with what of the completions cannot be read.
    pub(crate) fn because(&self, missing: String) -> String {
        let unread = self.unread.first();
        unread.map_or_else(|| missing.clone(), |unread| format!("{missing}; not read: {unread}"))
    }

    /// Leaves out completions of other models than these, if `count` remain: an instrumented client may also ask a search
    /// service, which is no completion of the agent's model.
    pub(crate) fn keep_completions(&mut self, count: usize, models: &[&str]) {
        let is_other = |done: &SpanOperation| match &done.operation {
            Operation::Completed(completed) => !models.contains(&completed.model.as_str()),
            _ => false,
        };
        let told = self.completions().count();
        let others = self.completions().filter(|done| is_other(done)).count();
        if told > count && told - others == count {
            self.operations.iter_mut().filter(|done| is_other(done)).for_each(|done| done.is_repeated = true);
        }
    }

    /// Deeds in the order in which they began; those that overlap in time come in the order of what they say.
    pub(crate) fn in_order(&self, operations: Vec<usize>) -> Vec<usize> {
        let mut ordered: Vec<usize> = Vec::with_capacity(operations.len());
        let (mut first, mut end) = (0, 0);
        for place in operations {
            let done = &self.operations[place];
            if done.at_ns >= end {
                ordered[first..].sort_by_cached_key(|place| format!("{:?}", self.operations[*place].operation));
                first = ordered.len();
            }
            end = end.max(done.at_ns.saturating_add(done.took_us.saturating_mul(1_000)));
            ordered.push(place);
        }
        ordered[first..].sort_by_cached_key(|place| format!("{:?}", self.operations[*place].operation));
        ordered
    }

    /// The completions, each once.
    pub(crate) fn completions(&self) -> impl Iterator<Item = &SpanOperation> {
        self.operations.iter().filter(|done| !done.is_repeated && matches!(done.operation, Operation::Completed(_)))
    }

    /// What completions say of calls that nothing shows: that they ended with a call, or nothing beside others with an
    /// answer. The next completion, or a run or a search before its end, may show it.
    fn missing(&self) -> Vec<String> {
        let completions: Vec<(&SpanOperation, &Completed)> = self
            .completions()
            .filter_map(|done| if let Operation::Completed(one) = &done.operation { Some((done, one)) } else { None })
            .collect();
        let calls = |said: &Option<Vec<Said>>| said.iter().flatten().any(|said| !said.calls.is_empty());
        let are_captured = completions.iter().any(|(_, one)| one.output.is_some());
        let unknown = completions.iter().enumerate().filter_map(|(at, (done, one))| {
            let is_call = |finish: &String| CALLING.contains(&plainly(finish).as_str());
            let what = match &one.finish {
                Some(finish) if is_call(finish) => {
                    format!("the call with which a completion ended (`{}`)", quote(finish, 40))
                }
                None if one.output.is_none() && are_captured => "a completion without an output".to_owned(),
                _ => return None,
            };
            let next = completions.get(at + 1);
            let until =
                next.map_or(u64::MAX, |(next, _)| next.at_ns.saturating_add(next.took_us.saturating_mul(1_000)));
            let since = self.operations.partition_point(|other| other.at_ns < done.at_ns);
            let mut after = self.operations[since..].iter().take_while(|other| other.at_ns <= until);
            let is_shown = calls(&one.output)
                || next.is_some_and(|(_, next)| calls(&next.input))
                || after.any(|other| matches!(other.operation, Operation::Ran(_) | Operation::Found(_)));
            (!is_shown && done.failed.is_none()).then_some(what)
        });
        unknown.collect()
    }

    /// The middles of the completions, in order: a completion is before a time if its middle is, because clocks of SDKs
    /// differ by a millisecond.
    pub(crate) fn completions_in_order(&self) -> Vec<u64> {
        let mut middles: Vec<u64> = self.completions().map(middle).collect();
        middles.sort_unstable();
        middles
    }

    /// What was done, a line each, without ids and times. What was done between two completions is in the order of its
    /// text.
    pub(crate) fn lines(&self) -> Vec<String> {
        let told = |place: &usize| {
            let done = &self.operations[*place];
            !done.is_repeated
                && matches!(done.operation, Operation::Completed(_) | Operation::Ran(_) | Operation::Found(_))
        };
        let json = |value: &Option<Value>| value.as_ref().map_or_else(|| "?".to_owned(), Value::to_string);
        let line = |place: usize| {
            let done = &self.operations[place];
            let line = match &done.operation {
                Operation::Ran(ran) => format!("tool {} {} -> {}", ran.tool, json(&ran.arguments), json(&ran.result)),
                Operation::Found(found) => {
                    format!("search {:?} -> {}", found.query.as_deref().unwrap_or("?"), json(&found.documents))
                }
                _ => "completion".to_owned(),
            };
            let failed = done.failed.as_ref().map_or_else(String::new, |why| format!(" FAILED: {why}"));
            // A key that is cut could no longer be recognised.
            quote(&secrets::declared().redact(&format!("{line}{failed}")), LONGEST_LINE)
        };
        let (mut completions, ordered) = (0, self.completions_in_order());
        let keyed = |place: usize| match &self.operations[place] {
            SpanOperation { operation: Operation::Completed(_), .. } => {
                completions += 1;
                (completions - 1, true, line(place))
            }
            done => (ordered.partition_point(|middle| *middle <= done.at_ns), false, line(place)),
        };
        let mut lines: Vec<(usize, bool, String)> = (0..self.operations.len()).filter(told).map(keyed).collect();
        lines.sort();
        lines.into_iter().map(|(.., line)| line).collect()
    }

    /// The operations around one, from the inside.
    pub(crate) fn around(&self, place: usize) -> impl Iterator<Item = usize> {
        // A circle of parents would go on for ever.
        std::iter::successors(self.operations[place].within, |outer| self.operations[*outer].within)
            .take(MOST_ANCESTORS)
    }
}

pub(super) fn middle(done: &SpanOperation) -> u64 {
    done.at_ns.saturating_add(done.took_us.saturating_mul(500))
}

/// Orders spans by their begin, and the longer ones first. Spans with the same times do not depend on their order in the
/// input, unless they took no time: then that order alone tells which came first.
fn sort(spans: &mut [Span]) {
    spans.sort_by_key(|span| (span.start_ns, Reverse(span.end_ns)));
    let is_same = |one: &Span, other: &Span| (one.start_ns, one.end_ns) == (other.start_ns, other.end_ns);
    for same in spans.chunk_by_mut(is_same).filter(|same| same.len() > 1 && same[0].end_ns > same[0].start_ns) {
        same.sort_by_cached_key(|span| {
            let operation = meaning::of(span);
            // A search may be within a run, and both within an agent.
            let rank = match operation {
                None | Some(Operation::Agent { .. }) => 0,
                Some(Operation::Found(_)) => 2,
                _ => 1,
            };
            (rank, format!("{operation:?}"), span.id.clone())
        });
    }
}

/// Whether an operation may lack contents that its span lost; of an unknown one, its name.
fn may_miss(operation: Option<&Operation>) -> bool {
    match operation {
        None | Some(Operation::Found(_)) => true,
        Some(Operation::Ran(ran)) => ran.arguments.is_none(),
        Some(Operation::Completed(_) | Operation::Agent { .. } | Operation::Vectors) => false,
    }
}

fn is_of_server(span: &Span) -> bool {
    span.is_server && span.attributes.contains_key("mcp.method.name")
}

/// Leaves out calls that servers of tools report, where a client reports runs of the tool.
fn leave_out_servers(spans: &[Span], operations: &mut [Option<Operation>]) {
    let ran = |operation: &Option<Operation>| match operation {
        Some(Operation::Ran(ran)) => Some(ran.tool.clone()),
        _ => None,
    };
    let by_clients = spans.iter().zip(&*operations).filter(|(span, _)| !is_of_server(span));
    let by_clients: BTreeSet<String> = by_clients.filter_map(|(_, operation)| ran(operation)).collect();
    for (_, operation) in spans.iter().zip(operations).filter(|(span, _)| is_of_server(span)) {
        let tool = ran(operation);
        if tool.is_some_and(|tool| by_clients.iter().any(|known| is_tool(known, &tool))) {
            *operation = None;
        }
    }
}

/// The message of an error that Langfuse's SDK reports by the level of an observation.
fn observed(span: &Span) -> Option<String> {
    let text = |name: &str| Some(span.attributes.get(name)?.as_str()?.to_owned());
    text("langfuse.observation.level").filter(|level| level == "ERROR")?;
    Some(text("langfuse.observation.status_message").unwrap_or_default())
}

/// The message of an exception that ended a span, if its status does not say it.
fn exception(span: &Span) -> Option<String> {
    let kind = span.attributes.get("error.type")?.as_str()?.to_owned();
    let told = span.events.iter().rev().find(|(_, name, _)| name == "exception");
    let words = told.and_then(|(_, _, attributes)| Some(attributes.get("exception.message")?.as_str()?.to_owned()));
    Some(words.unwrap_or(kind))
}
