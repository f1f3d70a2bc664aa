//! Replay of one trial, matching, scoring, and the report; `cargo bench --bench figures`.

#![allow(clippy::disallowed_methods, reason = "it makes and reads files of its own")]

mod ground;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use ground::Ground;
use ragcheck::internals::cassette::{self, Cassette, Pool, Redactor, Request};
use ragcheck::internals::gate::{Evaluator, TrialResult};
use ragcheck::internals::plan::{Plan, PlannedTrial};
use ragcheck::internals::provider::wire::openai_chat;
use ragcheck::internals::report::{Pages, TimelineBuilder, View, html};
use ragcheck::internals::trace::Trace;
use serde_json::{Value, json};
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

/// Recorded trials.
const RECORDED: usize = 100;
/// Repetitions of each that scoring and the report pretend to.
const COPIES: u32 = 10;

fn figures(criterion: &mut Criterion) {
    let ground = Ground::new(RECORDED);
    replay(criterion, &ground);
    matching(criterion, &ground);
    let (plan, traces) = thousand(&ground);
    scoring(criterion, &plan, &traces);
    report(criterion, &plan, &traces);
}

fn replay(criterion: &mut Criterion, ground: &Ground) {
    let mut next = (0..RECORDED).cycle();
    criterion.bench_function("replay/one trial", |bencher| {
        bencher.iter(|| next.next().map(|trial| ground.replay(trial)));
    });
}

fn matching(criterion: &mut Criterion, ground: &Ground) {
    let body = request();
    let redactor = Redactor::default();
    let mut group = criterion.benchmark_group("matching");
    group.throughput(Throughput::Bytes(body.to_string().len() as u64));
    group.bench_function("key of a request of 15 KB", |bencher| {
        let profile = openai_chat::DIALECT.profile;
        let request = Request { profile, method: "POST", path: "/chat/completions", body: &body };
        bencher.iter(|| cassette::key(black_box(request), &redactor));
    });
    group.finish();
    let lane = lane(ground);
    criterion.bench_function("matching/every exchange of a lane", |bencher| {
        bencher.iter_batched_ref(
            || Pool::new(&lane),
            |pool| {
                let take = |exchange: &cassette::Exchange| pool.take(&exchange.service, &exchange.key, |_| false);
                lane.exchanges.iter().map(take).collect::<Vec<_>>()
            },
            BatchSize::SmallInput,
        );
    });
}

/// A request late in a conversation: two searches with five passages each.
fn request() -> Value {
    let passage =
        |n: usize| json!({"id": format!("chapter-{n}#1"), "text": "The lock gate opens inwards. ".repeat(45)});
    let chunks: Vec<Value> = (0..5).map(passage).collect();
    let results = (0..2).flat_map(|n| {
        let id = format!("call-{n}");
        let call = json!({"id": id, "type": "function",
            "function": {"name": "knowledge_base_search", "arguments": "{\"query\":\"lock gate\"}"}});
        [
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": id, "content": json!({"chunks": chunks}).to_string()}),
        ]
    });
    let first = [json!({"role": "system", "content": "Answer."}), json!({"role": "user", "content": "Which way?"})];
    let messages: Vec<Value> = first.into_iter().chain(results).collect();
    json!({"model": "scripted-model", "messages": messages, "temperature": 0, "tool_choice": "auto"})
}

fn lane(ground: &Ground) -> Cassette {
    let trial = &ground.plan.trials[0];
    let scenario = &ground.plan.scenarios[trial.scenario];
    let root: &Path = &ground.opened.cassettes;
    let path = cassette::path(root, &scenario.name, &scenario.cases[trial.case].case.case, &trial.lane);
    Cassette::load(&path, &cassette::blobs_dir(root, &scenario.name)).expect("a recorded lane")
}

/// Every recorded trial, repeated.
fn thousand(ground: &Ground) -> (Plan, Vec<Trace>) {
    let mut plan = ground.plan.clone();
    let mut trials = Vec::new();
    let mut traces = Vec::new();
    for (index, recorded) in ground.plan.trials.iter().enumerate() {
        let trace = ground.replay(index);
        for repetition in 1..=COPIES {
            let mut lane = recorded.lane.clone();
            lane.repetition = repetition;
            let id = format!("{}/{}/{lane}", trace.scenario, trace.case);
            traces.push(Trace { trial: id.clone(), lane: lane.clone(), ..trace.clone() });
            trials.push(PlannedTrial { id, lane, ..recorded.clone() });
        }
    }
    plan.trials = trials.into();
    (plan, traces)
}

fn scoring(criterion: &mut Criterion, plan: &Plan, traces: &[Trace]) {
    criterion.bench_function("scoring/1000 traces", |bencher| {
        bencher.iter(|| {
            let mut evaluator = Evaluator::new(plan).expect("a sound plan");
            let examiner = evaluator.examiner();
            for trace in traces {
                let examined = examiner.examine(trace, &[]).expect("a planned trial");
                evaluator.add(examined).expect("added once");
            }
            evaluator.finish()
        });
    });
}

fn report(criterion: &mut Criterion, plan: &Plan, traces: &[Trace]) {
    let evaluation = ragcheck::internals::gate::evaluate(plan, traces.iter().cloned().map(Ok)).expect("a sound plan");
    let conversations = || {
        let mut builder = TimelineBuilder::default();
        for (trace, result) in traces.iter().zip(evaluation.trials.iter()) {
            let unpacked: TrialResult = serde_json::from_value(json!(result)).expect("a result");
            builder.add(Some(trace), ragcheck::internals::report::Beside::default(), &unpacked);
        }
        builder.finish()
    };
    criterion.bench_function("report/conversations of 1000 trials", |bencher| bencher.iter(conversations));
    let timelines = conversations();
    let view = View {
        plan,
        evaluation: &evaluation,
        timelines: &timelines,
        comparison: None,
        decided: None,
        pages: Pages::default(),
    };
    criterion.bench_function("report/html of 1000 trials", |bencher| {
        bencher.iter(|| {
            let mut page = Vec::new();
            html(&view, &mut page).expect("memory");
            page
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(4))
        .without_plots();
    targets = figures
}
criterion_main!(benches);
