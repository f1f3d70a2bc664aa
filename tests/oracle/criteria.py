"""One row of criteria.csv: its units, rates, bounds and verdict."""
import math

import answers
import expectations
import pipelines
import steps
import tool_rag
from bounds import lower_bound, upper_bound

ALPHA = 0.05

# Metrics that look up words of answers in passages. Labelled answers of people are their oracle, in the corpus tests;
# what is made of their units is not recomputed here, and every row of theirs is named as such.
BY_LABELLED_ANSWERS = {"grounded", "unsupported_facts"}

# The function of a metric, what its rate counts where nothing is written, and whether a success is a violation.
METRICS = {
    "mandatory_call_rate": (tool_rag.mandatory_call_rate, "unit", False),
    "first_attempt_rate": (tool_rag.first_attempt_rate, "unit", False),
    "keyword_coverage": (tool_rag.keyword_coverage, "conversation", False),
    "latency_p95": (tool_rag.latency, "unit", False),
    "learned_retrieval": (tool_rag.learned_retrieval, "unit", False),
    "learned_found": (tool_rag.learned_found, "unit", False),
    "learned_harm": (tool_rag.learned_harm, "conversation", True),
    "turn_success_rate": (tool_rag.turn_success_rate, "unit", False),
    "citation_validity": (answers.citation_validity, "conversation", False),
    "retry_recovery": (tool_rag.retry_recovery, "conversation", False),
    "context_preservation": (tool_rag.context_preservation, "unit", False),
    "turn_context": (tool_rag.turn_context, "unit", False),
    "failure_messages": (answers.failure_messages, "conversation", False),
    "reply_agreement": (answers.reply_agreement, "conversation", False),
    "step_log": (steps.step_log, "conversation", False),
    "passage_order": (tool_rag.passage_order, "conversation", False),
    "order_violation_rate": (tool_rag.order_violation_rate, "unit", True),
    "verbatim_query_rate": (tool_rag.verbatim_query_rate, "conversation", True),
    "rewritten_query_rate": (tool_rag.rewritten_query_rate, "conversation", False),
    "distinct_query_rate": (tool_rag.distinct_query_rate, "conversation", False),
    "keyword_quality": (tool_rag.keyword_quality, "conversation", False),
    "answer_length": (steps.answer_length, "conversation", False),
    "step_efficiency": (steps.step_efficiency, "conversation", False),
    "estimate_accuracy": (steps.estimate_accuracy, "conversation", False),
    "compaction_probes": (steps.compaction_probes, "conversation", False),
    "state_machine_conformance": (tool_rag.state_machine_conformance, "unit", False),
    "step_limit": (steps.step_limit, "unit", False),
    "reasoned_calls": (steps.reasoned_calls, "conversation", False),
    "session_budget": (steps.session_budget, "conversation", False),
    "tenant_isolation": (pipelines.tenant_isolation, "conversation", False),
    "forced_retrieval_rate": (pipelines.forced_retrieval_rate, "conversation", False),
    "forbidden_call_rate": (pipelines.forbidden_call_rate, "conversation", True),
    "citation_range": (answers.citation_range, "conversation", False),
    "failure_contexts": (steps.failure_contexts, "conversation", False),
    "gateway_links": (pipelines.gateway_links, "conversation", False),
    "lessons_shown": (steps.lessons_shown, "conversation", False),
    "compaction_savings": (steps.compaction_savings, "conversation", False),
    "artifact_versions": (pipelines.artifact_versions, "conversation", False),
    "artifact_answers": (pipelines.artifact_answers, "conversation", False),
    "citation_numbering": (pipelines.citation_numbering, "conversation", False),
    "case_pass_rate": (expectations.case_pass_rate, "unit", False),
    "approach_changes": (steps.approach_changes, "conversation", False),
    "cited_answer_rate": (answers.cited_answer_rate, "conversation", False),
    "compaction_keeps": (steps.compaction_keeps, "conversation", False),
    "declared_refusal_rate": (answers.declared_refusal_rate, "conversation", False),
    "degradation_notices": (steps.degradation_notices, "conversation", False),
    "marker_placement": (pipelines.marker_placement, "conversation", False),
    "irrelevant_citation_rate": (steps.irrelevant_citation_rate, "conversation", True),
    "required_parameters": (pipelines.required_parameters, "conversation", False),
    "state_persistence": (steps.state_persistence, "conversation", False),
    "citation_provenance": (answers.citation_provenance, "conversation", False),
    "source_flags": (answers.source_flags, "conversation", False),
    "satisfaction": (answers.satisfaction, "conversation", False),
}


def parsed(metric):
    """`name(a, key=value)` as the name, its arguments and its named arguments."""
    name, _, inside = metric.partition("(")
    words = [word.strip() for word in inside.rstrip(")").split(",") if word.strip()]
    named = dict(word.split("=", 1) for word in words if "=" in word)
    return name, [word for word in words if "=" not in word], named


def target(text):
    operator, value = text.split()
    number = float(value.rstrip("%s"))  # seconds, or per cent
    return operator, number / 100 if value.endswith("%") else number


def rate_target(metric, text):
    """The target as one of a rate: a quantile of times asks that share to lie within the limit."""
    if metric.startswith("latency_p"):
        return ">=", int(metric[len("latency_p"):]) / 100
    return target(text)


def counts_for(criterion, scenario, trial):
    """Whether a criterion, or a gate of that scenario, counts a trial."""
    if trial.lane["arm"] != "main" or (scenario and trial.scenario["name"] != scenario):
        return False
    return criterion.get("flow", trial.lane["flow"]) == trial.lane["flow"] or trial.lane["flow"] == "external"


def recompute(plan, trials, criterion, scenario, sharing):
    name, words, named = parsed(criterion["metric"])
    function, per, _ = METRICS[name]
    per = criterion.get("per", per)
    extra = [plan["machines"]] if name in ("state_machine_conformance", "first_attempt_rate") else []
    if name.startswith("latency"):
        extra = [target(criterion["target"])[1]]
    clusters, left_out, times, details = [], [], [], []
    for trial in trials:
        if not counts_for(criterion, scenario, trial):
            continue
        units = function(trial, *extra, *words, **named)
        if not units:
            continue
        reasons = {**(trial.scenario.get("excluded_from") or {}), **(trial.case.get("excluded_from") or {})}
        if criterion["id"] in reasons:
            left_out.append((len(units), sum(units)))
            continue
        clusters.append((len(units), sum(units)))
        details.append((trial.id, units))
        if name.startswith("latency"):
            times += [tool_rag.seconds(turn) for turn in trial.turns.values()]
    n, successes = sum(n for n, _ in clusters), sum(s for _, s in clusters)
    found = {"n": n, "successes": successes, "clusters": len(clusters), "excluded_n": sum(n for n, _ in left_out), "per": per}
    found["with_excluded"] = f"{successes + sum(s for _, s in left_out)}/{n + sum(n for n, _ in left_out)}"
    found["details"] = details
    if name == "satisfaction" and plan["ratings"] is None:
        found["proxy"] = True  # what an answer is made of says nothing about its reader
    if not n:
        found["verdict"] = "NOT_MEASURED"
        return found
    if "most" in criterion:
        raise SystemExit(f"{criterion['id']}: `most` is not known to this oracle")
    found["per_unit"] = successes / n
    found["per_conversation"] = math.fsum(s / n for n, s in clusters) / len(clusters)
    rate = found["per_conversation"] if per == "conversation" else found["per_unit"]
    found["observed"] = sorted(times)[math.ceil(rate_target(name, criterion["target"])[1] * len(times)) - 1] if times else rate
    operator, wanted = rate_target(name, criterion["target"])
    low = operator == "<=" or (operator == "=" and wanted == 0)
    if criterion.get("self_test"):  # what the flow promises: no sample of anything, so without bounds
        found["lower"] = found["upper"] = None
        found["verdict"] = verdict(criterion, low, wanted, found)
        return found
    # The side that can only make it FAIL shares its 5 % among the required confidence gates; PASS keeps its own.
    against = ALPHA / max(sharing, 1)
    found["lower"] = lower_bound(clusters, per, against if low else ALPHA)
    found["upper"] = upper_bound(clusters, per, ALPHA if low else against)
    found["verdict"] = "NOT_MEASURED" if found.get("proxy") else verdict(criterion, low, wanted, found)
    return found


def concluded(criterion, row):
    """What follows from the units, shares and bounds that a row has: of units that are not recomputed."""
    found = {column: int(row[column]) for column in ("n", "successes", "clusters", "excluded_n")}
    found |= {column: float(row[column]) for column in ("observed", "per_conversation", "lower", "upper")}
    found |= {"per": criterion.get("per", "conversation"), "per_unit": found["successes"] / found["n"], "details": []}
    operator, wanted = rate_target(criterion["metric"], criterion["target"])
    found["verdict"] = verdict(criterion, operator == "<=" or (operator == "=" and wanted == 0), wanted, found)
    return found


def verdict(criterion, low, wanted, found):
    per, lower, upper = found["per"], found["lower"], found["upper"]
    enough = found["clusters"] >= criterion.get("min_n", 0)
    if criterion["kind"] == "invariant":
        if found["successes"] if low else found["n"] - found["successes"]:
            return "FAIL"
        floor = "floor" not in criterion or lower >= target(criterion["floor"])[1]
        return "PASS" if floor and enough else "INCONCLUSIVE"
    rates = [found["per_unit"], found["per_conversation"]] if per == "conversation" else [found["per_unit"]]
    reached = all(rate <= wanted if low else rate >= wanted for rate in rates)
    if criterion["kind"] == "point":
        return "INCONCLUSIVE" if not enough else "PASS" if reached else "FAIL"
    if lower > wanted if low else upper < wanted:
        return "FAIL"
    shown = upper <= wanted if low else lower >= wanted
    return "PASS" if shown and reached and enough else "INCONCLUSIVE"
