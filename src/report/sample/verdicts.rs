//! Evaluation of the synthetic run.

use super::HOSTILE;
use super::script::error;
use crate::gate::{
    CaseCounts, CriterionResult, ErrorGroup, Evaluation, Excluded, Interval, RUN_VERSION, RequirementCoverage,
    RetryCounts, TransitionCount, TransitionCoverage, TrialResult, Unshown, VariantCounts, Verdict, Violation,
};
use crate::metric::Check;
use crate::stats::percent::{at_least, percent};
use crate::trace::{Trace, TrialErrorKind, What};

pub fn result(trace: &Trace, verdict: Verdict, kind: usize) -> TrialResult {
    let number = |test: fn(&What) -> bool| trace.events.iter().filter(|event| test(&event.what)).count() as u32;
    let turns: Vec<u64> = turn_times(trace).collect();
    let check =
        |what: &str, passed: bool, seen: &str| Check { what: what.into(), passed, seen: seen.into(), unknown: None };
    let mut checks = vec![check("turn 1: within: 10s", true, "")];
    if verdict == Verdict::Fail {
        let seen = if kind == 3 { HOSTILE } else { "never called" };
        checks.push(check("turn 1: calls.exactly_once: knowledge_base_search", false, seen));
    } else {
        checks.push(check("turn 1: calls.before: knowledge_base_search, generate_response", true, ""));
    }
    TrialResult {
        id: trace.trial.clone(),
        scenario: trace.scenario.clone(),
        case: trace.case.clone(),
        lane: trace.lane.clone(),
        verdict,
        checks: if verdict == Verdict::Error { Vec::new() } else { checks },
        departures: if kind == 3 {
            vec!["turn 1: `judging` -skipped-> `done` is not declared".into()]
        } else {
            Vec::new()
        },
        error: if verdict == Verdict::Error { error().message } else { String::new() },
        turns: number(|what| matches!(what, What::TurnStarted { .. })),
        model_calls: number(|what| matches!(what, What::ModelCalled(_))),
        tool_calls: number(|what| matches!(what, What::ToolCalled(_))),
        retries: RetryCounts {
            transport: u32::from(kind == 1),
            model: if kind == 2 { 2 } else { 0 },
            tool: u32::from(kind == 1),
        },
        input_tokens: (verdict != Verdict::Error).then_some(5_400),
        output_tokens: (verdict != Verdict::Error).then_some(380),
        slowest_turn_us: turns.iter().copied().max(),
        took_us: trace.took_us,
        evidence: "REPLAYED, recorded from simulator on 2026-11-21".into(),
        model: trace.evidence.model.clone(),
        ..TrialResult::default()
    }
}

fn turn_times(trace: &Trace) -> impl Iterator<Item = u64> {
    trace.events.iter().filter_map(|event| Some(event.what.ended()?.took_us))
}

fn wilson(successes: u64, n: u64) -> (f64, f64) {
    let (n, z) = (n as f64, 1.959_964);
    let share = successes as f64 / n;
    let (middle, half) = (share + z * z / (2.0 * n), z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt());
    ((middle - half) / (1.0 + z * z / n), ((middle + half) / (1.0 + z * z / n)).min(1.0))
}

fn criterion(
    id: &str,
    about: &str,
    metric: &str,
    target: &str,
    verdict: Verdict,
    n: u64,
    successes: u64,
) -> CriterionResult {
    let interval = (n > 0).then(|| wilson(successes, n));
    let share = successes as f64 / n.max(1) as f64;
    let lower = interval.map(|(lower, _)| lower + (share - lower) * 0.1);
    let bound_text = lower.map(|lower| format!("true rate at least {}", at_least(lower))).unwrap_or_default();
    let time = metric.starts_with("latency");
    let observed_text = match (n, time) {
        (0, _) => "nothing measured".into(),
        (_, true) => "p95 8.41 s".into(),
        (_, false) => format!("{successes}/{n} = {}", percent(share)),
    };
    CriterionResult {
        id: id.into(),
        about: about.into(),
        metric: metric.into(),
        target: target.into(),
        kind: if target.contains("100") { "invariant" } else { "confidence" }.into(),
        required: id != "SC-004",
        not_measured_ok: id == "SC-004",
        verdict,
        units: "queries".into(),
        n,
        clusters: n,
        per: "unit".into(),
        successes,
        observed: (n > 0).then_some(if time { 8.41 } else { share }),
        sentence: format!("{observed_text} on {n} queries; the target is {target}; {bound_text}."),
        observed_text,
        lower,
        upper: interval.map(|(_, upper)| upper),
        interval: interval.map(|(lower, upper)| Interval { lower, upper }),
        bound_text,
        evidence: "REPLAYED, recorded from simulator on 2026-11-21".into(),
        proxy: id == "SC-004",
        errors: u64::from(verdict == Verdict::Error) * 4,
        unshown: (verdict == Verdict::Inconclusive).then_some(Unshown::Met),
        ..CriterionResult::default()
    }
}

pub fn evaluation(trials: Vec<TrialResult>, turn_times_us: Vec<u64>) -> Evaluation {
    use Verdict::{Error, Fail, Inconclusive, NotMeasured, Pass};
    let failing: Vec<_> = trials.iter().filter(|trial| trial.verdict == Fail).take(100).collect();
    let violation = |trial: &&TrialResult| Violation {
        trial: trial.id.clone(),
        unit: "turn 1".into(),
        note: if trial.case == "hostile-words" {
            HOSTILE.into()
        } else {
            "knowledge_base_search was never called".into()
        },
    };
    let mut criteria = vec![
        criterion(
            "SC-001",
            "Every query searches the knowledge base",
            "mandatory_call_rate(knowledge_base_search)",
            ">= 100%",
            Fail,
            132,
            128,
        ),
        criterion(
            "SC-002",
            "The response tool is called at the first attempt",
            "first_attempt_rate(generate_response)",
            ">= 95%",
            Pass,
            164,
            163,
        ),
        criterion(
            "SC-003",
            "External answers end with keywords indexed and read back",
            "keyword_coverage",
            ">= 100%",
            Pass,
            66,
            66,
        ),
        criterion(
            "SC-004",
            "Users are satisfied with answers that combine sources",
            "satisfaction",
            ">= 90%",
            NotMeasured,
            0,
            0,
        ),
        criterion("SC-005", "A query takes at most 10 s end to end", "latency_p95", "<= 10s", Pass, 164, 161),
        criterion(
            "SC-006",
            "Later related queries find what was learned",
            "learned_retrieval",
            ">= 20%",
            Inconclusive,
            40,
            11,
        ),
        criterion("SC-007", "Retries recover", "retry_recovery(model, tool)", ">= 80%", Inconclusive, 34, 29),
        criterion("SC-008", "Conversations keep their context", "context_kept", ">= 100%", Error, 60, 60),
    ];
    criteria[0].violations = failing.iter().map(violation).collect();
    criteria[0].by_variant = [("base", 62), ("forced", 66)]
        .map(|(variant, successes)| VariantCounts { variant: variant.into(), successes, n: 66 })
        .into();
    let reason = "The model is scripted to refuse, to show that FR-003 ends in an error.".to_owned();
    criteria[1].excluded = vec![Excluded { case: "heat-pumps/skips-the-manual".into(), reason, n: 12, successes: 3 }];
    criteria[1].with_excluded = "166/176 = 94.3 %".into();
    let mut gates = vec![
        criterion("gate 1", "Every case meets its expectations", "case_pass_rate", ">= 100%", Pass, 24, 24),
        criterion("gate 1", "Every case meets its expectations", "case_pass_rate", ">= 100%", Fail, 24, 20),
    ];
    gates[0].scenario = Some("heat-pumps".into());
    gates[1].scenario = Some("edge-cases".into());
    gates[1].violations = failing.iter().take(3).map(violation).collect();
    let broken: Vec<_> = trials.iter().filter(|trial| trial.verdict == Error).map(|trial| trial.id.clone()).collect();
    let row = |from: &str, on: &str, to: &str, times| {
        let (from, on, to) = (from.into(), on.into(), to.into());
        TransitionCount { from, on, to, times }
    };
    let requirement = |id: &str, about: &str, cases: &[(&str, u32, u32)]| RequirementCoverage {
        id: id.into(),
        about: about.into(),
        source: if id == "FR-003" { "specification, page 4".into() } else { String::new() },
        cases: cases
            .iter()
            .map(|(case, passed, trials)| CaseCounts { case: (*case).to_owned(), passed: *passed, trials: *trials })
            .collect(),
        state: None,
        why: String::new(),
    };
    Evaluation {
        version: RUN_VERSION,
        exit_code: 3,
        conclusion: "The run is incomplete: trials could not be replayed, and SC-001 fails.".into(),
        evidence: vec!["REPLAYED, recorded from simulator on 2026-11-21 (model gpt-sim-1)".into()],
        criteria,
        gates,
        errors: vec![ErrorGroup {
            kind: TrialErrorKind::CassetteMiss.label().into(),
            message: error().message,
            detail: error().detail,
            trials: broken,
        }],
        turn_times_us,
        transitions: vec![TransitionCoverage {
            flow: "tool-rag".into(),
            taken: vec![
                row("start", "searched", "judging", 41),
                row("judging", "answered", "done", 33),
                row("judging", "external_answer", "indexing", 8),
                row("indexing", "indexed", "responding", 8),
                row("indexing", "gave_up", "responding", 0),
                row("start", "missing_again", "failed", 4),
            ],
        }],
        requirements: vec![
            requirement(
                "FR-002",
                "Knowledge base search",
                &[("heat-pumps/defrost-cycle", 4, 4), ("edge-cases/hostile-words", 0, 4)],
            ),
            requirement("FR-003", "It is mandatory", &[("heat-pumps/skips-the-manual", 0, 4)]),
            requirement("FR-014", "Citations of both kept to the end", &[]),
        ],
        trials: std::sync::Arc::new(trials.into_iter().collect()),
        ..Evaluation::default()
    }
}
