//! Plans from a few lines of YAML and traces scripted event by event, for tests of metrics and gates.

use super::{Metric, Observation, TrialView, catalogue, grounding, turns::turns};
use crate::plan::{PLAN_VERSION, Plan, PlannedCase, PlannedScenario, PlannedTrial, PlannedVariant, ResolvedCase};
use crate::scenario::{Case, Criteria, resolve_metric};
use crate::trace::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The same trace from a flow that makes its searches itself.
pub(crate) fn searching_itself(trace: &Trace) -> Trace {
    let mut trace = trace.clone();
    for event in &mut trace.events {
        let Some(ToolResult::Search(search)) = event.what.given() else { continue };
        let query = search.query.clone();
        let What::ToolCalled(ToolCalled { outcome, took_us, attempts, .. }) = event.what.clone() else { continue };
        event.what = What::Searched(FlowSearch { query, outcome, took_us, attempts });
    }
    trace
}

/// A plan of one scenario, `s`: `cases` is a YAML list of cases, `criteria` a list of criteria, and each case has
/// `lanes` lanes.
pub(crate) fn plan(cases: &str, criteria: &str, lanes: u32) -> Plan {
    let cases: Vec<Case> = serde_saphyr::from_str(cases).expect("cases");
    let mut trials = Vec::new();
    let mut planned = Vec::new();
    for (index, mut case) in cases.into_iter().enumerate() {
        let whole = case.expect.take();
        let case = ResolvedCase { expect: whole, ..ResolvedCase::from(case) };
        for repetition in 1..=lanes {
            for arm in [Arm::Main, Arm::Control].into_iter().take(1 + usize::from(case.control)) {
                let lane = Lane { flow: "tool-rag".into(), variant: "base".into(), repetition, arm };
                trials.push(PlannedTrial {
                    id: format!("s/{}/{lane}", case.case),
                    scenario: 0,
                    case: index,
                    lane,
                    seed: 1,
                });
            }
        }
        planned.push(PlannedCase { table: None, line: 1, case, input: String::new() });
    }
    let scenario = PlannedScenario {
        name: "s".into(),
        file: "scenarios/s.yaml".into(),
        about: String::new(),
        agent: None,
        knowledge: BTreeMap::new(),
        variants: vec![PlannedVariant::named("base", "", "tool-rag")],
        cases: planned,
        gates: Vec::new(),
    };
    Plan {
        version: PLAN_VERSION,
        seed: 1,
        scenarios: vec![scenario],
        trials: trials.into(),
        criteria: Criteria { criteria: serde_saphyr::from_str(criteria).expect("criteria"), ..Criteria::default() },
        ..Plan::default()
    }
}

/// What `read` says of the trial of `trace`, before its expectations are checked.
pub(crate) fn viewed<T>(plan: &Plan, trace: &Trace, read: impl FnOnce(TrialView<'_>) -> T) -> T {
    let trial = plan.trials.iter().find(|trial| trial.id == trace.trial).expect("planned");
    let scenario = &plan.scenarios[trial.scenario];
    let case = &scenario.cases[trial.case];
    read(TrialView {
        plan,
        trial,
        scenario,
        case,
        trace,
        turns: &turns(&case.case, trace),
        checks: &[],
        departures: None,
        grades: &[],
        passages: &[],
        facts: &grounding::FactLookup::default(),
    })
}

/// The metric of that name, with its parameters.
pub(crate) fn metric(written: &str) -> Metric {
    let asked = resolve_metric(written, &catalogue::entries()).expect("a name");
    catalogue::resolve(&asked).expect("metric")
}

/// Observations of a metric, with its parameters, in one scripted trial of the first of these cases.
pub(crate) fn observe(written: &str, cases: &str, tell: impl Fn(Story) -> Story) -> Vec<Observation> {
    let plan = plan(cases, "[]", 1);
    let trace = tell(story(&plan, 0)).done();
    viewed(&plan, &trace, |view| (metric(written).observe)(&view))
}

/// Trace builder; each method adds the event that it names.
pub(crate) struct Story {
    trace: Trace,
    at: (u32, u32),
    turns: BTreeMap<u32, u32>,
    history: BTreeMap<u32, Vec<String>>,
}

/// Starts a trace of the trial at `place` of the plan, replayed from the simulator.
pub(crate) fn story(plan: &Plan, place: usize) -> Story {
    let trial = &plan.trials[place];
    let evidence = Evidence {
        recorded_at: Some("2026-11-21T08:00:00Z".into()),
        knowledge: "k".into(),
        ..Evidence::new(Mode::Replay, "simulator".into(), "sim-1")
    };
    let trace = Trace {
        scenario: "s".into(),
        case: plan.scenarios[0].cases[trial.case].case.case.clone(),
        roles: crate::trace::version_1(),
        took_us: 1,
        ..Trace::of(trial.id.clone(), trial.lane.clone(), 1, evidence)
    };
    Story { trace, at: (0, 0), turns: BTreeMap::new(), history: BTreeMap::new() }
}

impl Story {
    pub(crate) fn push(mut self, what: What) -> Self {
        self.trace.events.push(Event { at_us: 0, conversation: self.at.0, turn: self.at.1, what });
        self
    }

    /// Starts or continues the conversation of that ordinal.
    pub(crate) fn conversation(mut self, ordinal: u32, name: &str) -> Self {
        self.at.0 = ordinal;
        self.push(What::ConversationStarted { name: name.into(), session: name.into(), tenant: None })
    }

    /// A turn whose first completion is shown the whole history.
    pub(crate) fn turn(self, query: &str) -> Self {
        let history = self.history.get(&self.at.0).cloned().unwrap_or_default();
        self.turn_shown(query, history)
    }

    /// Begins a turn without events.
    pub(crate) fn turn_begins(mut self, query: &str) -> Self {
        let next = self.turns.entry(self.at.0).or_default();
        self.at.1 = *next;
        *next += 1;
        self.push(What::TurnStarted { query: query.into() })
    }

    /// A turn whose first completion is shown `history` before the user's words.
    pub(crate) fn turn_shown(mut self, query: &str, mut history: Vec<String>) -> Self {
        let next = self.turns.entry(self.at.0).or_default();
        self.at.1 = *next;
        *next += 1;
        history.insert(0, "system:0".into());
        history.push(format!("user:{query}"));
        self.history.entry(self.at.0).or_default().push(format!("user:{query}"));
        let completion = Completion {
            model: "sim-1".into(),
            text: String::new(),
            refusal: None,
            calls: Vec::new(),
            finish: "tool_calls".into(),
            input_tokens: Some(10),
            cached_tokens: None,
            cache_write_tokens: None,
            output_tokens: Some(2),
        };
        let called = ModelCalled {
            service: None,
            call: 0,
            state: "asking".into(),
            took_us: 1,
            first_token_us: None,
            shown: history,
            tool_choice: "auto".into(),
            attempts: Vec::new(),
            reply: Reply::Completion(completion),
        };
        self.push(What::TurnStarted { query: query.into() }).push(What::ModelCalled(called))
    }

    /// Another completion of the turn, shown these messages.
    pub(crate) fn completion_shown(self, shown: &[&str]) -> Self {
        let last = self.trace.events.iter().rev().find_map(|event| match &event.what {
            What::ModelCalled(called) => Some(called.clone()),
            _ => None,
        });
        let shown = shown.iter().map(ToString::to_string).collect();
        self.push(What::ModelCalled(ModelCalled { shown, ..last.expect("a completion before it") }))
    }

    pub(crate) fn call(self, tool: &str, arguments: Value, outcome: ToolOutcome) -> Self {
        let (call, id, began_us, took_us, tool) = (0, "c".into(), None, 1, tool.into());
        let attempts = Vec::new();
        self.push(What::ToolCalled(ToolCalled { call, id, tool, arguments, outcome, began_us, took_us, attempts }))
    }

    pub(crate) fn rejected(self, tool: &str) -> Self {
        let rejection = Rejection { cause: "schema".into(), reason: "too short".into(), guidance: String::new() };
        self.call(tool, json!({}), ToolOutcome::Rejected(rejection))
    }

    /// A call of a tool that the agent does not have.
    pub(crate) fn unknown(self, tool: &str) -> Self {
        let rejection = Rejection { cause: "unknown_tool".into(), reason: "no tool".into(), guidance: String::new() };
        self.call(tool, json!({}), ToolOutcome::Rejected(rejection))
    }

    pub(crate) fn out_of_order(self, tool: &str) -> Self {
        let rejection = Rejection { cause: "order".into(), reason: "not yet".into(), guidance: String::new() };
        self.call(tool, json!({}), ToolOutcome::OutOfOrder(rejection))
    }

    /// A call whose outcome the trace does not show.
    pub(crate) fn unseen(self, tool: &str) -> Self {
        self.call(tool, json!({"q": "a"}), ToolOutcome::Unseen { reason: "no message shows a result".into() })
    }

    pub(crate) fn failed_call(self, tool: &str) -> Self {
        self.call(tool, json!({}), ToolOutcome::Failed { message: "down".into(), retryable: true })
    }

    /// Sets the tools that the agent was offered.
    pub(crate) fn offered(mut self, tools: Option<&[&str]>) -> Self {
        self.trace.offered = tools.map(|tools| tools.iter().map(ToString::to_string).collect());
        self
    }

    /// Changes every event so far.
    pub(crate) fn each(&mut self, change: impl FnMut(&mut What)) {
        self.trace.events.iter_mut().map(|event| &mut event.what).for_each(change);
    }

    /// A search that returned these ids, none of them learned.
    pub(crate) fn search(self, ids: &[&str]) -> Self {
        self.search_with(ids, None, ids)
    }

    /// A search called by the completion of that ordinal.
    pub(crate) fn search_of_completion(self, call: u32) -> Self {
        let mut story = self.search(&["doc#1"]);
        if let Some(What::ToolCalled(called)) = story.trace.events.last_mut().map(|event| &mut event.what) {
            called.call = call;
        }
        story
    }

    /// A search that returned these ids and, when given, an entry learned in that conversation; without the keyword
    /// index it would have returned `without`.
    pub(crate) fn search_with(self, ids: &[&str], learned: Option<u32>, without: &[&str]) -> Self {
        let hit = |id: &str, learned| Hit {
            id: id.into(),
            title: String::new(),
            raw_score: 1.0,
            excerpt: String::new(),
            names: Vec::new(),
            beside: String::new(),
            learned,
        };
        let mut hits: Vec<_> = ids.iter().map(|id| hit(id, None)).collect();
        if let Some(conversation) = learned {
            let learned =
                Learned { result: "result-1".into(), conversation, keywords: vec!["k".into()], urls: Vec::new() };
            hits.push(hit("learned:1", Some(learned)));
        }
        let without_learned = without.iter().map(ToString::to_string).collect();
        let result = SearchResult { without_learned, ..SearchResult::of("terms".into(), "default_kb".into(), hits) };
        let outcome = ToolOutcome::Ok(ToolResult::Search(result));
        self.call("knowledge_base_search", json!({"query": "terms", "top_k": 5}), outcome)
    }

    pub(crate) fn external(self, result: &str) -> Self {
        let found = ExternalResult {
            input_tokens: None,
            cached_tokens: None,
            output_tokens: None,
            result: result.into(),
            query: "web terms".into(),
            answer: "so".into(),
            citations: vec![CitedPage { title: "t".into(), url: "https://example.org/a".into() }],
            model: "s".into(),
        };
        self.call("perplexity_search", json!({"query": "web terms"}), ToolOutcome::Ok(ToolResult::External(found)))
    }

    /// Keywords indexed for `result`; the first `read` of them were read back.
    pub(crate) fn index(self, result: &str, keywords: &[&str], read: usize) -> Self {
        let keywords: Vec<String> = keywords.iter().map(ToString::to_string).collect();
        let read_back = keywords[..read].to_vec();
        let index = IndexResult { result: result.into(), keywords, merged: Vec::new(), read_back };
        self.call("index_keywords", json!({}), ToolOutcome::Ok(ToolResult::Indexed(index)))
    }

    pub(crate) fn feedback(self, tool: &str) -> Self {
        let (step, cause, message) = ("step".into(), "missing_call".into(), String::new());
        self.push(What::FedBack(FedBack { step, tool: tool.into(), cause, message }))
    }

    pub(crate) fn retried(self, account: Account, episode: u32, attempt: u32, recovered: bool) -> Self {
        let (target, cause) = ("generate_response".into(), "missing_call".into());
        self.push(What::Retried(Retried { account, episode, attempt, target, cause, recovered }))
    }

    /// The response call and the answer, after two seconds.
    pub(crate) fn answer(self, text: &str, sources: &[(&str, &str)]) -> Self {
        let responded = ToolOutcome::Ok(ToolResult::Responded);
        self.call("generate_response", json!({"answer": text}), responded).deliver(text, sources, 2_000_000)
    }

    /// The answer alone.
    pub(crate) fn deliver(mut self, text: &str, sources: &[(&str, &str)], took_us: u64) -> Self {
        let source = |(kind, id): &(&str, &str)| SourceRef {
            kind: (*kind).into(),
            id: (*id).into(),
            title: String::new(),
            number: None,
        };
        let sources: Vec<_> = sources.iter().map(source).collect();
        let used = |kind: &str| sources.iter().any(|source| source.kind == kind);
        let (used_internal_kb, used_external_kb) = (used("internal"), used("external"));
        let text = text.into();
        let answer = Answer { text, sources, used_internal_kb, used_external_kb, ..Answer::default() };
        self.history.entry(self.at.0).or_default().push(format!("assistant:{}", answer.text));
        self.end(TurnOutcome::Answered(answer), took_us)
    }

    pub(crate) fn fail(self, kind: &str) -> Self {
        self.end(TurnOutcome::Failed { kind: kind.into(), message: "we are sorry".into() }, 1_000_000)
    }

    fn end(self, outcome: TurnOutcome, took_us: u64) -> Self {
        let history = self.history.get(&self.at.0).cloned().unwrap_or_default();
        self.push(What::TurnEnded(TurnEnded { took_us, outcome, history, reply: None }))
    }

    pub(crate) fn live(mut self) -> Self {
        (self.trace.evidence.mode, self.trace.evidence.recorded_at) = (Mode::Live, None);
        self
    }

    /// A trial that could not be run.
    pub(crate) fn error(mut self, cause: &str) -> Trace {
        self.trace.end = TrialEnd::Error(TrialError {
            kind: TrialErrorKind::CassetteMiss,
            message: format!("miss: {cause}"),
            cause: cause.into(),
            detail: Vec::new(),
        });
        self.trace
    }

    pub(crate) fn done(self) -> Trace {
        self.trace
    }
}

/// A trial that does everything expected: it searches and answers with the passage found.
pub(crate) fn good(plan: &Plan, place: usize) -> Trace {
    story(plan, place).turn("q").search(&["doc#1"]).answer("so it is", &[("internal", "doc#1")]).done()
}
