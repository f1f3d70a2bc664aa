//! Formats figures for people, with units and a fixed number of decimals, and parses targets into numbers for charts.
//!
//! For display only; verdicts are decided by the bounds in `gate`.

use crate::gate::{CriterionResult, Edge, Evaluation, ItemGrades, Latency, Quantile, Repeats, Spent, Unshown, Verdict};
use crate::history::Unit;
use crate::metric::catalogue;
use crate::scenario::{Target, parse_target, resolve_metric, target_text};
use crate::settings::price::dollars;
use crate::stats::percent::{interval, percent};
use crate::stats::rate::wilson;
use crate::trace::text::{listed, quote};

/// A duration in microseconds as `0.12 ms`, `3.2 ms`, `812 ms`, `8.41 s` or `2 min 05 s`.
pub(super) fn duration(us: u64) -> String {
    let (milliseconds, seconds) = (us as f64 / 1e3, us as f64 / 1e6);
    match us {
        0 => "0 ms".into(),
        1..995 => format!("{milliseconds:.2} ms"),
        995..9_950 => format!("{milliseconds:.1} ms"),
        9_950..999_500 => format!("{milliseconds:.0} ms"),
        999_500..119_995_000 => format!("{seconds:.2} s"),
        _ => {
            let whole = us.saturating_add(500_000) / 1_000_000;
            format!("{} min {:02} s", whole / 60, whole % 60)
        }
    }
}

/// A declared time limit without needless decimals: `5 s`, `250 ms`.
pub(super) fn limit(us: u64) -> String {
    if us >= 1_000_000 && us.is_multiple_of(1_000_000) { format!("{} s", us / 1_000_000) } else { duration(us) }
}

/// A time, or a bound on one.
pub(super) fn edge(edge: Edge) -> String {
    match edge {
        Edge::Us(us) => duration(us),
        Edge::Unanswered => "no answer".into(),
        Edge::Unbounded => "unbounded".into(),
    }
}

/// One-sided bounds of a quantile: `1.18 s to unbounded`.
pub(super) fn bounds(one: &Quantile) -> String {
    match (one.lower, one.upper) {
        (Edge::Unbounded, Edge::Unbounded) => "unbounded".into(),
        (Edge::Unanswered, _) => "longer than any limit".into(),
        (lower, upper) => format!("{} to {}", edge(lower), edge(upper)),
    }
}

/// Name of a quantile: `p50` for 0.5.
pub(super) fn quantile_name(q: f64) -> String {
    format!("p{:.0}", q * 100.0)
}

/// Times in a sentence: `tool-rag.base, simulator, 164 turns: p50 1.20 s, p95 3.10 s (2.80 s to unbounded); model 92 %, …`.
pub(super) fn latency(row: &Latency) -> String {
    let bounded = |one: &Quantile| format!(" ({})", bounds(one));
    let share = |us: u64| us as f64 / row.answered_us.max(1) as f64;
    let spent = row.stages.iter().filter(|one| share(one.took_us) >= 0.0005);
    let stages: Vec<String> =
        spent.map(|one| format!("{} {}", one.stage.as_str(), percent(share(one.took_us)))).collect();
    let stages = if stages.is_empty() { String::new() } else { format!("; {}", stages.join(", ")) };
    format!("{}, {}: {}{stages}", timed(row), turns(row), middle_and_p95(row, bounded))
}

/// Short form: `tool-rag.base, simulator: p50 1.20 s, p95 3.10 s (164 turns, 2 without an answer)`.
pub(super) fn latency_in_brief(row: &Latency) -> String {
    format!("{}: {} ({})", timed(row), middle_and_p95(row, |_| String::new()), turns(row))
}

/// Variant and source of the times: `tool-rag.base, simulator`.
fn timed(row: &Latency) -> String {
    format!("{}.{}, {}", row.flow, row.variant, row.kind)
}

/// Number of turns: `164 turns, 2 without an answer`.
fn turns(row: &Latency) -> String {
    let unanswered = match row.unanswered {
        0 => String::new(),
        n => format!(", {} without an answer", thousands(n)),
    };
    format!("{}{unanswered}", counted(row.turns, "turn"))
}

/// `p50 1.20 s, p95 3.10 s`, each followed by the text of `more`.
pub(super) fn middle_and_p95(row: &Latency, more: impl Fn(&Quantile) -> String) -> String {
    let shown = |q: f64| {
        let one = row.quantiles.iter().find(|one| (one.q - q).abs() < 1e-9)?;
        Some(format!("{} {}{}", quantile_name(q), edge(one.value), more(one)))
    };
    [0.5, 0.95].into_iter().filter_map(shown).collect::<Vec<_>>().join(", ")
}

pub(super) fn verdict_of(exit_code: u8) -> Verdict {
    match exit_code {
        0 => Verdict::Pass,
        1 => Verdict::Fail,
        4 => Verdict::Inconclusive,
        _ => Verdict::Error,
    }
}

/// Verdict of a criterion in tables: `INCONCLUSIVE, met` if the observed figure reaches the target.
pub(super) fn verdict(row: &CriterionResult) -> &'static str {
    match (row.verdict, row.unshown) {
        (Verdict::Inconclusive, Some(Unshown::Met)) => INCONCLUSIVE[0],
        (Verdict::Inconclusive, Some(Unshown::Below)) => INCONCLUSIVE[1],
        (Verdict::Inconclusive, Some(Unshown::CannotPass)) => INCONCLUSIVE[2],
        (verdict, _) => verdict.as_str(),
    }
}

/// Variants of INCONCLUSIVE: target met but not proven, target missed, unable to pass.
pub(super) const INCONCLUSIVE: [&str; 3] = ["INCONCLUSIVE, met", "INCONCLUSIVE, below", "INCONCLUSIVE, cannot pass"];

/// Name of a criterion, with its scenario: `refunds: cases`.
pub(super) fn name(row: &CriterionResult) -> String {
    row.scenario.as_ref().map_or_else(|| row.id.clone(), |of| format!("{of}: {}", row.id))
}

/// A number with thousands separators: `10,000`.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with its noun, with a plural in `s`: `1 trial`, `2 trials`.
pub(super) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// Target as people read it: `≥ 95 %`.
pub(super) fn goal(row: &CriterionResult) -> String {
    target_text(&row.target)
}

/// Meaning of an exit code in words; `fails` is whether a required gate fails.
pub(super) fn exit_meaning(exit_code: u8, fails: bool) -> &'static str {
    match exit_code {
        0 => "passed",
        1 => "failed",
        3 if fails => "trials could not be run, and a required gate fails (alone, exit code 1)",
        3 => "trials could not be run, so the run shows nothing yet",
        4 => "nothing fails, but a required gate is undecided",
        _ => "not judged",
    }
}

/// Number of required criteria and gates that fail, or were not measured without being declared so.
pub(super) fn failing(evaluation: &Evaluation) -> u64 {
    let failed = |row: &CriterionResult| {
        row.verdict == Verdict::Fail || row.verdict == Verdict::NotMeasured && !row.not_measured_ok
    };
    evaluation.rows().filter(|row| row.required && failed(row)).count() as u64
}

/// Target of a result; `None` if a chart cannot show it.
pub(super) fn target(row: &CriterionResult) -> Option<Target> {
    parse_target(&row.target).ok()
}

/// The deciding bound in short: `≥ 92.8 %`, or words if there is no number.
pub(super) fn bound(row: &CriterionResult) -> String {
    let brief = row
        .bound_text
        .strip_prefix("true rate ")
        .map(|bound| bound.replacen("at least", "≥", 1).replacen("at most", "≤", 1));
    match (target(row), brief) {
        (Some(Target::AtMostTime(_)), Some(brief)) => format!("{brief} in time"),
        (_, Some(brief)) => brief,
        (_, None) if row.bound_text.is_empty() => "–".into(),
        (_, None) => row.bound_text.clone(),
    }
}

/// Number of units, of independent units if there are fewer, and of different conversations if some repeat others: `448
/// in 283, 83 different`.
pub(super) fn units(row: &CriterionResult) -> String {
    let in_clusters = || format!("{} in {}", thousands(row.n), thousands(row.clusters));
    let units = if row.sample_text.is_empty() { thousands(row.n) } else { in_clusters() };
    let repeats = row.distinct > 0 && row.distinct < row.clusters.min(row.n);
    if repeats { format!("{units}, {} different", thousands(row.distinct)) } else { units }
}

/// Evidence of a figure in short: `REPLAYED simulator 2026-11-21`.
pub(super) fn evidence(row: &CriterionResult) -> String {
    let brief = row.evidence.replace(", recorded from ", " ").replace(", from ", " ");
    let brief = brief.replace(", no service was asked, recorded ", " no service ");
    match brief.rsplit_once(" on ") {
        _ if brief.is_empty() => "–".into(),
        Some((who, when)) => format!("{who} {when}"),
        None => brief,
    }
}

/// Observed figure, or a dash.
pub(super) fn observed(row: &CriterionResult) -> String {
    if row.observed_text.is_empty() { "–".into() } else { row.observed_text.clone() }
}

/// The same for a table; for a time, the quantile and the units below the limit: `p95 6.77 s, 626/632`; for a mean of
/// conversations, the counts of units as well.
pub(super) fn observed_in_brief(row: &CriterionResult) -> String {
    let text = observed(row);
    if row.n > 0 && row.per == "conversation" && text.starts_with("per conversation") {
        return format!("{text} ({}/{})", row.successes, row.n);
    }
    let brief = matches!(target(row), Some(Target::AtMostTime(_))).then(|| text.split(" = ").next());
    brief.flatten().map_or_else(|| text.clone(), str::to_owned)
}

/// Share that a time metric claims: 0.95 for `latency_p95`; `None` for other metrics.
pub(super) fn claimed_share(metric: &str) -> Option<f64> {
    resolve_metric(metric, &catalogue::entries()).ok()?.entry.figure.quantile()
}

/// The first `most` names, and the number of further ones: `a, b and 3 more`.
pub(super) fn first_names<'n>(names: impl Iterator<Item = &'n String>, most: usize) -> String {
    listed(names.map(|name| quote(name, 40)), most)
}

/// Replaces the spaces between a number and its unit, and around `=`, so that no line breaks there: `591/602 = 98.2 %`, `6.77 s`.
pub(super) fn together(text: &str) -> String {
    let mut text =
        text.replace(" %", "\u{a0}%").replace(" = ", "\u{a0}=\u{a0}").replace("≥ ", "≥\u{a0}").replace("≤ ", "≤\u{a0}");
    for end in [" s,", " s)", " s;", " s "] {
        text = text.replace(end, &end.replacen(' ', "\u{a0}", 1));
    }
    text.strip_suffix(" s").map(|start| format!("{start}\u{a0}s")).unwrap_or(text)
}

/// A value of a line of the history.
pub(super) fn line_value(unit: Unit, value: f64) -> String {
    match unit {
        _ if value.is_infinite() => "no answer".to_owned(),
        Unit::Rate => percent(value),
        Unit::Time => duration(value.round() as u64),
    }
}

/// Trials by verdict, in the order PASS, FAIL, INCONCLUSIVE, NOT_MEASURED, ERROR; empty verdicts are left out.
pub(super) fn tally(evaluation: &Evaluation) -> Vec<(Verdict, u64)> {
    let mut numbers = Verdict::ALL.map(|verdict| (verdict, 0));
    for trial in evaluation.trials.iter() {
        numbers.iter_mut().filter(|(verdict, _)| *verdict == trial.verdict).for_each(|(_, number)| *number += 1);
    }
    numbers.into_iter().filter(|(_, number)| *number > 0).collect()
}

/// Trials and their verdicts: `552 trials: 548 PASS, 4 FAIL`.
pub(super) fn trials(evaluation: &Evaluation) -> String {
    let by_verdict: Vec<String> =
        tally(evaluation).into_iter().map(|(verdict, n)| format!("{} {}", thousands(n), verdict.as_str())).collect();
    let split = if by_verdict.is_empty() { String::new() } else { format!(": {}", by_verdict.join(", ")) };
    format!("{}{split}", counted(evaluation.trials.len() as u64, "trial"))
}

/// Shares of 0 to 1 as `42.0 %, 27.3 %`.
pub(super) fn percents(shares: &[f64]) -> String {
    shares.iter().map(|share| percent(*share)).collect::<Vec<_>>().join(", ")
}

/// Scenario and variant of repeated trials: `refunds, tool-rag.base`.
pub(super) fn place(row: &Repeats) -> String {
    format!("{}, {}.{}", row.scenario, row.flow, row.variant)
}

/// A model's grades on one item: `graded by fernlight-judge, grounded: 38 of 40 pass (95.0 %, …)`.
pub(crate) fn grades(row: &ItemGrades) -> String {
    let (low, high) = wilson(row.passed as f64, row.n as f64);
    let rate = if row.n == 0 {
        "no answer has a verdict".to_owned()
    } else {
        let share = percent(row.passed as f64 / row.n as f64);
        format!("{} of {} pass ({share}, 95 % interval {})", row.passed, row.n, interval(low, high))
    };
    let without = [
        (row.inconsistent, "depend on the order of the items"),
        (row.errors, "with an unusable reply"),
        (row.not_graded, "not graded"),
    ];
    let without = without.iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!(", {count} {why}"));
    let (model, item) = (quote(&row.model, 60), quote(&row.item, 60));
    format!("graded by {model}, {item}: {rate}{}; a model's opinion, no verdict", without.collect::<String>())
}

/// Repeated trials in a sentence: `all of 1 to 4 trials pass: 42.0 %, 27.3 %, …`, or why nothing was measured.
pub(super) fn repeats(row: &Repeats) -> String {
    let place = place(row);
    if !row.not_measured.is_empty() {
        return format!("{place}: pass^k and pass@k NOT_MEASURED, {}", row.not_measured);
    }
    let error = match (row.standard_error, row.naive_error) {
        (Some(clustered), Some(naive)) => format!(
            "; standard error of the rate {} by case ({} if trials were independent)",
            percent(clustered),
            percent(naive)
        ),
        _ => String::new(),
    };
    format!(
        "{place}, {} of {} each: all of 1 to {} pass (pass^k) {}; any passes (pass@k) {}{error}",
        counted(row.cases, "case"),
        counted(row.repetitions, "trial"),
        row.all.len(),
        percents(&row.all),
        percents(&row.any),
    )
}

/// Verdict counts of judged rows: `5 PASS, 1 FAIL`; empty without rows.
pub(super) fn verdict_counts<'a>(rows: impl Iterator<Item = &'a CriterionResult> + Clone) -> String {
    let counts =
        Verdict::ALL.map(|verdict| (rows.clone().filter(|row| row.verdict == verdict).count() as u64, verdict));
    let words = counts.into_iter().filter(|(number, _)| *number > 0);
    words.map(|(number, verdict)| format!("{} {}", thousands(number), verdict.as_str())).collect::<Vec<_>>().join(", ")
}

/// The counts of a run in one sentence: `552 trials: 548 PASS, 4 FAIL; 20 required criteria: 19 PASS, 1 FAIL; 2 more for
/// information: 1 PASS, 1 NOT_MEASURED (SC-004); 41 required scenario gates: 41 PASS`.
pub(super) fn sums(evaluation: &Evaluation) -> String {
    let mut said = vec![trials(evaluation)];
    for (rows, one, many) in
        [(&evaluation.criteria, "criterion", "criteria"), (&evaluation.gates, "scenario gate", "scenario gates")]
    {
        let noun = |rows: &[&CriterionResult]| if rows.len() == 1 { one } else { many };
        let (required, others): (Vec<&CriterionResult>, Vec<&CriterionResult>) =
            rows.iter().partition(|row| row.required);
        if !required.is_empty() {
            let counts = verdict_counts(required.iter().copied());
            said.push(format!("{} required {}: {counts}", thousands(required.len() as u64), noun(&required)));
        }
        if !others.is_empty() {
            let more = if required.is_empty() { noun(&others) } else { "more" };
            let open: Vec<String> =
                others.iter().filter(|row| row.verdict != Verdict::Pass).map(|row| name(row)).collect();
            let open = if open.is_empty() { String::new() } else { format!(" ({})", first_names(open.iter(), 4)) };
            let counts = verdict_counts(others.iter().copied());
            said.push(format!("{} {more} for information: {counts}{open}", thousands(others.len() as u64)));
        }
    }
    said.join("; ")
}

/// The self-tests of a run in one line: `Self-tests, what the flows promise whatever the model does: 12 PASS`, and the names of
/// those that do not hold; `None` without any.
pub(super) fn self_tests(evaluation: &Evaluation) -> Option<String> {
    let rows = &evaluation.self_tests;
    let open: Vec<String> = rows.iter().filter(|row| row.verdict != Verdict::Pass).map(name).collect();
    let open = if open.is_empty() { String::new() } else { format!(": {}", open.join(", ")) };
    let counts = verdict_counts(rows.iter());
    (!rows.is_empty()).then(|| format!("Self-tests, what the flows promise whatever the model does: {counts}{open}"))
}

/// One self-test: `PASS five-steps: No turn takes more than five steps (98/98 = 100.0 %)`.
pub(super) fn self_test(row: &CriterionResult) -> String {
    let about = if row.about.is_empty() { &row.metric } else { &row.about };
    format!("{} {}: {about} ({})", row.verdict.as_str(), name(row), observed(row))
}

/// Tokens of the trials that report them, and the number of trials that do not: `10,000 in, 900 out; 2 trials report none`.
pub(super) fn tokens(evaluation: &Evaluation) -> String {
    let (mut input, mut output, mut known, mut unknown) = (0_u64, 0_u64, 0, 0);
    for trial in evaluation.trials.iter().filter(|trial| trial.model_calls > 0 && trial.verdict != Verdict::Error) {
        match trial.input_tokens.zip(trial.output_tokens) {
            Some((read, written)) => {
                (input, output, known) = (input.saturating_add(read), output.saturating_add(written), known + 1);
            }
            None => unknown += 1,
        }
    }
    let without = match unknown {
        0 => String::new(),
        1 => "1 trial reports none".to_owned(),
        n => format!("{} trials report none", thousands(n)),
    };
    match known {
        0 if unknown == 0 => "none".to_owned(),
        0 => without,
        _ if unknown == 0 => format!("{} in, {} out", thousands(input), thousands(output)),
        _ => format!("{} in, {} out; {without}", thousands(input), thousands(output)),
    }
}

/// Tokens and cost in a sentence; `None` if both are unknown.
pub(super) fn spent(spent: &Spent) -> Option<String> {
    if spent.trials == 0 {
        return None;
    }
    let tokens = spent.input_tokens.zip(spent.output_tokens).map(|(input, output)| {
        let cached = spent.cached_tokens.map_or_else(String::new, |cached| format!(" ({} cached)", thousands(cached)));
        format!("{} input tokens{cached}, {} output tokens", thousands(input), thousands(output))
    });
    let money = match spent.cost {
        Some(cost) => Some(format!("cost {}", dollars(cost))),
        None if spent.not_measured.is_empty() => None,
        None => Some(format!("cost NOT_MEASURED: {}", spent.not_measured)),
    };
    let known = spent.cost.is_some() || tokens.is_some();
    let said: Vec<String> = [tokens, money].into_iter().flatten().collect();
    known.then(|| said.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_carry_a_unit_that_fits() {
        let shown = [0, 3_210, 9_960, 812_345, 8_412_000, 125_400_000].map(duration);
        assert_eq!(shown, ["0 ms", "3.2 ms", "10 ms", "812 ms", "8.41 s", "2 min 05 s"]);
    }

    #[test]
    fn a_bound_is_a_time_or_says_in_words_why_it_is_none() {
        let of = |lower, upper| bounds(&Quantile { q: 0.95, value: Edge::Us(1), lower, upper });
        assert_eq!(of(Edge::Us(1_180_000), Edge::Unbounded), "1.18 s to unbounded");
        assert_eq!(of(Edge::Us(1_180_000), Edge::Unanswered), "1.18 s to no answer");
        assert_eq!(of(Edge::Unanswered, Edge::Unbounded), "longer than any limit");
        assert_eq!(of(Edge::Unbounded, Edge::Unbounded), "unbounded");
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn the_claimed_share_is_read_from_the_name_of_the_metric() {
        assert_eq!(claimed_share("latency_p95"), Some(0.95));
        assert_eq!(claimed_share("latency_p99"), Some(0.99));
        assert_eq!(claimed_share("first_attempt_rate(generate_response)"), None);
    }
}
