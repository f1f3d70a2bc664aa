"""Recompute criteria.csv of a run folder from plan.json and traces.jsonl alone.

    python3 tests/oracle.py RUN_FOLDER

Written from docs/why/verdicts.md and the words of `ragcheck explain`, not from the Rust code, with the standard library alone. A row is
recomputed whole (n, successes, clusters, left out, observed, both shares, both bounds, verdict) or not at all: rows of a metric
that is not in METRICS are named and counted, never passed over. Exits with 1 where any row disagrees.
"""
import csv
import json
import math
import os
import re
import sys

ALPHA = 0.05
STAKES = [1 - 2.0**-j for j in range(1, 12)] + [0.1, 0.25, 1.0]
TOLERANCE = 2e-6  # the table has six decimals, rounded away from the claim


# Bounds. A cluster is (units, successes); each function gives a lower bound, and `upper` mirrors it.

def crossing(holds):
    """The smallest p of 0 to 1 at which `holds` ends: a grid for the first crossing, then bisection."""
    step, low = 1 / 2000, 0.0
    for k in range(1, 2000):
        if not holds(k * step):
            break
        low = k * step
    high = min(1.0, low + step)
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def log_tail(n, k, p):
    """ln P(Bin(n, p) >= k)."""
    if k <= 0:
        return 0.0
    logs = [
        math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * math.log(p) + (n - i) * math.log1p(-p)
        for i in range(k, n + 1)
    ]
    top = max(logs)
    return top + math.log(math.fsum(math.exp(x - top) for x in logs))


def tail_bound(n, s, alpha):
    """The p with P(Bin(n, p) >= s) = alpha, its logarithm linear between whole s; Clopper-Pearson where s is whole."""
    if s <= 0:
        return 0.0
    s = round(s, 9)
    whole = math.floor(s)
    part = s - whole

    def tail(p):
        value = (1 - part) * log_tail(n, whole, p)
        return value + (part * log_tail(n, whole + 1, p) if part else 0.0)

    low, high = 1e-12, 1 - 1e-12
    if tail(high) < math.log(alpha):
        return 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) < math.log(alpha) else (low, middle)
    return low


def mean_of_products(products):
    """ln of the mean of numbers given by their logarithms."""
    top = max(products)
    if top == -math.inf:
        return top
    return top + math.log(math.fsum(math.exp(x - top) for x in products) / len(products))


def product(factors):
    """ln of a product of (factor, times)."""
    total = 0.0
    for factor, times in factors:
        if factor <= 0:
            return -math.inf
        total += times * math.log(factor)
    return total


def counted(clusters):
    kinds = {}
    for cluster in clusters:
        kinds[cluster] = kinds.get(cluster, 0) + 1
    return sorted(kinds.items())


def old_bet(kinds, p, largest):
    return [product((1 + theta / (p * largest) * (s - p * n), times) for (n, s), times in kinds) for theta in STAKES]


def least_favourable(kinds, p):
    total = sum(n * times for (n, _), times in kinds)
    sizes = sorted((n / total, times) for (n, _), times in kinds)
    # sum of min(w, c) over the trials is p: the trials above c are worth c each
    below, above = 0.0, sum(times for _, times in sizes)
    c = p / above
    for weight, times in sizes:
        c = (p - below) / above
        if c <= weight:
            break
        below, above = below + weight * times, above - times
    bets = []
    for theta in STAKES:
        factors = []
        for (n, s), times in kinds:
            weight = n / total
            mean = min(1.0, c / weight)
            stake = theta if mean < 1 else theta * weight / c
            factors.append((1 - stake + stake * (s / n) / mean, times))
        bets.append(product(factors))
    return bets


def unit_bound(clusters, alpha):
    """Per unit, numbers planned."""
    if all(n == 1 for n, _ in clusters):
        return tail_bound(len(clusters), sum(s for _, s in clusters), alpha)
    if not any(s for _, s in clusters):
        return 0.0
    kinds = counted(clusters)
    most = max(n for n, _ in clusters)

    def holds(p):
        return mean_of_products(old_bet(kinds, p, most) + least_favourable(kinds, p)) >= -math.log(alpha)

    return crossing(holds)


def conversation_bound(clusters, alpha):
    return tail_bound(len(clusters), math.fsum(s / n for n, s in clusters), alpha)


def lower_bound(clusters, per, alpha):
    return conversation_bound(clusters, alpha) if per == "conversation" else unit_bound(clusters, alpha)


def upper_bound(clusters, per, alpha):
    return 1 - lower_bound([(n, n - s) for n, s in clusters], per, alpha)


# What was planned, and what happened.

class Turn:
    def __init__(self, conversation, number, planned):
        self.conversation, self.number, self.planned = conversation, number, planned
        self.events, self.began, self.query, self.end = [], False, None, None

    def of(self, kind):
        return [what[kind] for what in self.events if kind in what]

    def answer(self):
        return (self.end or {}).get("outcome", {}).get("answered")


class Trial:
    """One trial of the plan with its trace: conversations in the order of the script, each with its planned turns."""

    def __init__(self, plan, planned, trace):
        scenario = plan["scenarios"][planned["scenario"]]
        self.id, self.scenario, self.lane, self.trace = planned["id"], scenario, planned["lane"], trace
        self.case = scenario["cases"][planned["case"]]["case"]
        self.roles = trace["roles"]
        self.script = [script for group in self.case["steps"] for script in group]
        self.turns = {}
        for number, script in enumerate(self.script):
            for turn, said in enumerate(script["turns"]):
                self.turns[number, turn] = Turn(number, turn, said)
        for event in trace["events"]:
            turn = self.turns.get((event["conversation"], event["turn"]))
            if turn is None:
                continue
            turn.events.append(event["what"])
            if "turn_started" in event["what"]:
                turn.began, turn.query = True, event["what"]["turn_started"]["query"]
            if "turn_ended" in event["what"]:
                turn.end = event["what"]["turn_ended"]

    def role(self, call):
        return self.roles.get(call["tool"])

    def plays(self, role):
        return role in self.roles.values()

    def calls(self, turn, role):
        return [call for call in turn.of("tool_called") if self.role(call) == role]


def ran(call):
    return "ok" in call["outcome"] or "failed" in call["outcome"]


def given(call, kind):
    ok = call["outcome"].get("ok")
    return ok.get(kind) if isinstance(ok, dict) else None


# Metrics: a trial gives one True or False a unit, or None where it cannot be asked.

def mandatory_call_rate(trial, role, at="after_retry"):
    if not trial.plays(role):
        return None
    units = []
    for turn in trial.turns.values():
        called = any(ran(call) for call in trial.calls(turn, role))
        fed_back = any(trial.roles.get(note.get("tool")) == role for note in turn.of("fed_back"))
        units.append(called and not (at == "first" and fed_back))
    return units


def first_attempt_rate(trial, machines, role="respond"):
    """The first attempt is the first completion in the final phase that calls the tool or calls nothing.

    The final phase is a state from which an answer ends the turn. Before it nothing is consumed: a reply that comes while
    the keywords are due is refused, and is no attempt.
    """
    if not trial.plays(role):
        return None
    moves = machines[trial.lane["flow"]]["transitions"]
    final = {move["from"] for move in moves if move["on"] == "answered"}
    return [first_attempt(trial, turn, role, final) for turn in trial.turns.values()]


def first_attempt(trial, turn, role, final):
    for request in turn.of("model_called"):
        completion = request["reply"].get("completion")
        if not completion or request["state"] not in final:
            continue
        made = [call for call in turn.of("tool_called") if call["call"] == request["call"] and trial.role(call) == role]
        if made or not completion.get("calls"):
            return len(made) == 1 and made[0]["outcome"].get("ok") == "responded"
    return False


def keyword_coverage(trial):
    if not trial.plays("external"):
        return None
    units = []
    for turn in trial.turns.values():
        results = [given(call, "external")["result"] for call in trial.calls(turn, "external") if given(call, "external")]
        if results:
            kept = [given(call, "indexed") for call in trial.calls(turn, "index")]
            units.append(all(any(k and k["result"] == r and k["keywords"] and set(k["keywords"]) <= set(k["read_back"]) for k in kept) for r in results))
    return units


def latency(trial):
    return [seconds(turn) < 10 for turn in trial.turns.values()]


def seconds(turn):
    return turn.end["took_us"] / 1e6 if turn.answer() else math.inf


def labelled(trial, kind, unrelated):
    wanted = {"all": {"repeat", "paraphrase", "related"} | ({"unrelated"} if unrelated else set())}.get(kind, {kind})
    for turn in trial.turns.values():
        label = trial.script[turn.conversation].get("related")
        if label and label.get("kind", "related") in wanted:
            source = [script["name"] for script in trial.script].index(label["to"])
            searches = [given(call, "search") for call in trial.calls(turn, "knowledge")]
            yield label, source, [search for search in searches if search]


def is_relevant(chunk, label):
    return any(chunk == name or chunk.split("#")[0] == name for name in label.get("relevant", []))


def with_learned(search, label, source):
    learned = "learned" in label.get("relevant", [])
    return any(
        (learned and hit["learned"]["conversation"] == source) if hit.get("learned") else is_relevant(hit["id"], label)
        for hit in search["hits"]
    )


def learned_retrieval(trial, kind="all"):
    return [
        any(with_learned(search, label, source) for search in searches)
        and not any(is_relevant(chunk, label) for search in searches for chunk in search.get("without_learned", []))
        for label, source, searches in labelled(trial, kind, False)
    ]


def learned_found(trial, kind="all"):
    return [
        "learned" in label["relevant"]
        and any(hit.get("learned", {}).get("conversation") == source for search in searches for hit in search["hits"])
        for label, source, searches in labelled(trial, kind, False)
    ]


def learned_harm(trial, kind="all"):
    units = []
    for label, _, searches in labelled(trial, kind, True):
        if not searches:
            continue
        if label.get("kind") == "unrelated":
            units.append(any(hit.get("learned") for search in searches for hit in search["hits"]))
            continue
        found = {hit["id"] for search in searches for hit in search["hits"] if not hit.get("learned")}
        before = {chunk for search in searches for chunk in search.get("without_learned", [])}
        units.append(any(is_relevant(chunk, label) and chunk not in found for chunk in before))
    return units


def retry_recovery(trial, by="attempt", accounts="model+tool"):
    named = accounts.split("+")
    return [retry["recovered"] for turn in trial.turns.values() for retry in turn.of("retried") if retry["account"] in named]


def folded(text):
    return " ".join(re.findall(r"\w+", text.casefold()))


def context_preservation(trial):
    """One unit a trial with a conversation of several turns."""
    if not any(len(script["turns"]) > 1 for script in trial.script):
        return []
    return [all(history_shown(trial, turn) and probes_hold(turn) for turn in trial.turns.values())]


def history_shown(trial, turn):
    if turn.end is None:
        return False
    if turn.number == 0:
        return True
    before = trial.turns[turn.conversation, turn.number - 1].end["history"]
    return all(
        [shown for shown in call["shown"] if not shown.startswith("system:")][: len(before)] == before
        for call in turn.of("model_called")
    )


def probes_hold(turn):
    for probe in (turn.planned.get("expect") or {}).get("context", {}).get("probes", []):
        tool = probe.get("in_arguments_of")
        if tool:
            texts = [json.dumps(c["arguments"], ensure_ascii=False) for c in turn.of("tool_called") if c["tool"] == tool]
        else:
            texts = [(turn.answer() or {}).get("text", "")]
        if not any(folded(word) in folded(text) for word in probe["any_of"] for text in texts):
            return False
    return True


def order_violation_rate(trial):
    return [any("out_of_order" in call["outcome"] for call in turn.of("tool_called")) for turn in trial.turns.values()]


def verbatim_query_rate(trial, role):
    if not trial.plays(role):
        return None
    return [
        folded(call["arguments"]["query"]) == folded(turn.query)
        for turn in trial.turns.values()
        for call in trial.calls(turn, role)
        if isinstance(call["arguments"], dict) and isinstance(call["arguments"].get("query"), str)
    ]


def state_machine_conformance(trial, machines):
    machine = machines[trial.lane["flow"]]
    allowed = {(move["from"], move["on"], move["to"]) for move in machine["transitions"]}
    for turn in trial.turns.values():
        state = machine["initial"]
        for move in turn.of("moved"):
            if move["from"] != state or (move["from"], move["on"], move["to"]) not in allowed:
                return [False]
            state = move["to"]
        if turn.began and state not in machine["terminal"]:
            return [False]
    return [True]


# Metrics of the other flows.

def logged(turn, kind):
    return [(at, what["logged"][kind]) for at, what in enumerate(turn.events) if kind in what.get("logged", {})]


def step_limit(trial, most):
    """A step is the stretch from one grounding to the next; it counts where a search ran in it."""
    units = []
    for turn in trial.turns.values():
        steps, current, any_step = set(), None, False
        for what in turn.events:
            if "grounding" in what.get("logged", {}):
                current, any_step = what["logged"]["grounding"]["step"], True
            call = what.get("tool_called")
            if call and trial.role(call) == "knowledge" and ran(call):
                steps.add(current)
        if any_step:
            units.append(len(steps) <= int(most))
    return units


def reasoned_calls(trial):
    units = []
    for turn in trial.turns.values():
        thought = False
        for what in turn.events:
            if "model_called" in what:
                thought = False
            if "thought" in what.get("logged", {}):
                thought = bool(what["logged"]["thought"]["text"].strip())
            call = what.get("tool_called")
            if call and trial.role(call) == "knowledge" and ran(call):
                units.append(thought)
    return units


def session_budget(trial):
    limit = next(
        (note["limit"] for turn in trial.turns.values() for _, note in logged(turn, "estimated") if note.get("limit")), None
    )
    units, used = [], {}
    for turn in trial.turns.values():
        for call in turn.of("model_called"):
            completion = call["reply"].get("completion")
            if completion and "input_tokens" in completion and limit:
                session = turn.conversation
                used[session] = used.get(session, 0) + completion["input_tokens"] + completion["output_tokens"]
                units.append(used[session] <= limit)
    return units


def tenant_isolation(trial):
    units = []
    for turn in trial.turns.values():
        tenant = trial.script[turn.conversation].get("tenant") or trial.case.get("tenant")
        if tenant:
            units += [given(call, "search")["kb_id"] == tenant for call in trial.calls(turn, "knowledge") if given(call, "search")]
    return units


def forced_retrieval_rate(trial):
    units = []
    for turn in trial.turns.values():
        requests = turn.of("model_called")
        if not requests:
            continue  # an unknown tenant is refused before anything is asked: there is no first request
        forced = requests[0]["tool_choice"]
        tool = forced.removeprefix("named ")
        made = tool in requests[0]["reply"].get("completion", {}).get("calls", [])
        results = [c for c in trial.calls(turn, "knowledge") if c["tool"] == tool and c["call"] == requests[0]["call"]] if made else []
        units.append(forced.startswith("named ") and any(given(call, "search") for call in results))
    return units


def forbidden_call_rate(trial):
    return [
        bool(call["reply"]["completion"].get("calls"))
        for turn in trial.turns.values()
        for call in turn.of("model_called")
        if call["tool_choice"] == "none" and "completion" in call["reply"]
    ]


def passages(trial, turn):
    return [hit for call in trial.calls(turn, "knowledge") for hit in (given(call, "search") or {}).get("hits", [])]


def numbers(text):
    return [int(number) for group in re.findall(r"\[(\d+(?:\s*,\s*\d+)*)\]", text) for number in group.split(",")]


def citation_range(trial):
    units = []
    for turn in trial.turns.values():
        cited = numbers((turn.answer() or {}).get("text", ""))
        if cited:
            units.append(all(1 <= number <= len(passages(trial, turn)) for number in cited))
    return units


def later_completions(turn, at):
    return [what["model_called"] for what in turn.events[at + 1:] if "model_called" in what]


def lessons_shown(trial):
    return [
        all(note.get("shown") in call["shown"] for call in later_completions(turn, at))
        for turn in trial.turns.values()
        for at, note in logged(turn, "reflection")
    ]


def compaction_savings(trial):
    return [
        note["after"] <= 0.8 * note["before"] for turn in trial.turns.values() for _, note in logged(turn, "compacted") if note["done"]
    ]


def managed(trial, part):
    """What the managed retrieval gave, call by call, where it has this part."""
    for turn in trial.turns.values():
        for call in trial.calls(turn, "knowledge"):
            result = (given(call, "search") or {}).get("managed", {})
            if result.get(part):
                yield turn, result


def artifact_versions(trial):
    units, seen = [], {}
    for turn, result in managed(trial, "artifact"):
        name = turn.conversation, result["artifact"]["filename"]
        seen[name] = seen.get(name, 0) + 1
        units.append(result["artifact"]["version"] == seen[name])
    return units


def artifact_answers(trial):
    units = []
    for turn in trial.turns.values():
        made = [result["artifact"]["content"].strip() for of, result in managed(trial, "artifact") if of is turn]
        if made and turn.answer():
            units.append(any(content in turn.answer()["text"] for content in made))
    return units


def citation_numbering(trial):
    units = []
    for _, result in managed(trial, "artifact"):
        sources = result.get("sources", [])
        if sources:
            pages = {(source["source"], source["id"]) for source in sources}
            listed = re.findall(r"^(\d+)\. ", result["artifact"]["content"].rpartition("## Sources")[2], re.M)
            numbered = [source["number"] for source in sources]
            units.append(numbered == list(range(1, len(pages) + 1)) and list(map(int, listed)) == numbered)
    return units


def failure_contexts(trial):
    """The log of a failure holds the messages and the state of the last completion before it."""
    units = []
    for turn in trial.turns.values():
        for at, note in logged(turn, "failure"):
            before = [what["model_called"] for what in turn.events[:at] if "model_called" in what]
            context = note.get("context") or {}
            shown = before[-1]["shown"] if before else [None]  # what the model then answered may follow
            units.append(context.get("shown", [])[: len(shown)] == shown and context.get("state") == before[-1]["state"])
    return units


def gateway_links(trial):
    units = []
    for _, result in managed(trial, "artifact"):
        if result.get("sources"):
            links = re.findall(r"\]\(([^)]*)\)", result["artifact"]["content"]) + [source["link"] for source in result["sources"]]
            units.append(all(re.fullmatch(r"/gateway/download/[^?#]+(#page=\d+)?", link) for link in links))
    return units


# Which metrics are known: the function, what a rate counts where nothing is written, and whether a success is a violation.

METRICS = {
    "mandatory_call_rate": (mandatory_call_rate, "unit", False),
    "first_attempt_rate": (first_attempt_rate, "unit", False),
    "keyword_coverage": (keyword_coverage, "conversation", False),
    "latency_p95": (latency, "unit", False),
    "learned_retrieval": (learned_retrieval, "unit", False),
    "learned_found": (learned_found, "unit", False),
    "learned_harm": (learned_harm, "conversation", True),
    "retry_recovery": (retry_recovery, "conversation", False),
    "context_preservation": (context_preservation, "unit", False),
    "order_violation_rate": (order_violation_rate, "unit", True),
    "verbatim_query_rate": (verbatim_query_rate, "conversation", True),
    "state_machine_conformance": (state_machine_conformance, "unit", False),
    "step_limit": (step_limit, "unit", False),
    "reasoned_calls": (reasoned_calls, "conversation", False),
    "session_budget": (session_budget, "conversation", False),
    "tenant_isolation": (tenant_isolation, "conversation", False),
    "forced_retrieval_rate": (forced_retrieval_rate, "conversation", False),
    "forbidden_call_rate": (forbidden_call_rate, "unit", True),
    "citation_range": (citation_range, "conversation", False),
    "failure_contexts": (failure_contexts, "conversation", False),
    "gateway_links": (gateway_links, "conversation", False),
    "lessons_shown": (lessons_shown, "conversation", False),
    "compaction_savings": (compaction_savings, "conversation", False),
    "artifact_versions": (artifact_versions, "conversation", False),
    "artifact_answers": (artifact_answers, "conversation", False),
    "citation_numbering": (citation_numbering, "conversation", False),
}


def parsed(metric):
    """`name(a, key=value)` as the name, its arguments and its named arguments."""
    name, _, inside = metric.partition("(")
    words = [word.strip() for word in inside.rstrip(")").split(",") if word.strip()]
    named = dict(word.split("=", 1) for word in words if "=" in word)
    return name, [word for word in words if "=" not in word], named


def target(text):
    operator, value = text.split()
    number = float(value.rstrip("%s"))
    return operator, number / 100 if value.endswith("%") else number


def rate_target(metric, text):
    """The target as one of a rate: a quantile of times asks that share to lie within the limit."""
    if metric.startswith("latency_p"):
        return ">=", int(metric[len("latency_p"):]) / 100
    return target(text)


def recompute(plan, trials, criterion, scenario, sharing):
    name, words, named = parsed(criterion["metric"])
    function, per, _ = METRICS[name]
    per = criterion.get("per", per)
    extra = [plan["machines"]] if name in ("state_machine_conformance", "first_attempt_rate") else []
    clusters, left_out, times, details = [], [], [], []
    for trial in trials:
        if trial.lane["arm"] != "main" or (scenario and trial.scenario["name"] != scenario):
            continue
        if criterion.get("flow", trial.lane["flow"]) != trial.lane["flow"] and trial.lane["flow"] != "external":
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
            times += [seconds(turn) for turn in trial.turns.values()]
    n, successes = sum(n for n, _ in clusters), sum(s for _, s in clusters)
    found = {"n": n, "successes": successes, "clusters": len(clusters), "excluded_n": sum(n for n, _ in left_out), "per": per}
    found["with_excluded"] = f"{successes + sum(s for _, s in left_out)}/{n + sum(n for n, _ in left_out)}"
    found["details"] = details
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
    # The side that can only make it FAIL shares its 5 % among the required confidence gates; PASS keeps its own.
    against = ALPHA / max(sharing, 1) if criterion["kind"] == "confidence" else ALPHA
    found["lower"] = lower_bound(clusters, per, against if low else ALPHA)
    found["upper"] = upper_bound(clusters, per, ALPHA if low else against)
    found["verdict"] = verdict(criterion, low, wanted, found)
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


def disagreements(row, found):
    told = []
    for column in ("n", "successes", "clusters", "excluded_n", "per", "verdict"):
        if str(found.get(column)) != row[column]:
            told.append(f"{column}: {row[column]} in criteria.csv, {found.get(column)} here")
    for column in ("observed", "per_unit", "per_conversation", "lower", "upper"):
        if found["n"] and abs(float(row[column] or "nan") - found[column]) <= TOLERANCE:
            continue
        if found["n"] or row[column]:
            told.append(f"{column}: {row[column]} in criteria.csv, {found.get(column)} here")
    if found["excluded_n"] and f"{found['with_excluded']} = " not in row["sentence"]:
        told.append(f"with the cases left out: {found['with_excluded']} here, {row['sentence']}")
    return told


def main(folder):
    with open(os.path.join(folder, "plan.json"), encoding="utf-8") as file:
        plan = json.load(file)
    with open(os.path.join(folder, "traces.jsonl"), encoding="utf-8") as file:
        traces = {trace["trial"]: trace for trace in map(json.loads, file)}
    with open(os.path.join(folder, "criteria.csv"), encoding="utf-8", newline="") as file:
        rows = {(row["scenario"], row["id"]): row for row in csv.DictReader(file)}
    trials = [Trial(plan, planned, traces[planned["id"]]) for planned in plan["trials"]]
    asked = [("", criterion) for criterion in plan["criteria"]["criteria"]]
    asked += [(scenario["name"], gate) for scenario in plan["scenarios"] for gate in scenario["gates"]]
    sharing = sum(c["kind"] == "confidence" and c.get("required", True) for _, c in asked)
    known, unknown, wrong = [], [], 0
    for scenario, criterion in asked:
        name = f"{scenario}: {criterion['id']}" if scenario else criterion["id"]
        row = rows.pop((scenario, criterion["id"]), None)
        if row is None:
            print(f"WRONG {name}: planned, and not in criteria.csv")
            wrong += 1
        elif parsed(criterion["metric"])[0] not in METRICS:
            unknown.append((parsed(criterion["metric"])[0], name))
        else:
            known.append(name)
            found = recompute(plan, trials, criterion, scenario, sharing)
            told = disagreements(row, found)
            wrong += bool(told)
            print(f"{'WRONG' if told else 'right'} {name}: {row['successes']} of {row['n']}, {row['lower']} to {row['upper']}, {row['verdict']}")
            for line in told:
                print(f"    {line}")
            if told:
                for trial, units in [d for d in found["details"] if len(set(d[1])) > 1 or d[1][0] == METRICS[parsed(criterion["metric"])[0]][2]][:12]:
                    print(f"    {trial}: {units}")
    for left in rows:
        print(f"WRONG {left}: in criteria.csv, and not planned")
        wrong += 1
    print(f"metrics unknown to this oracle: {' '.join(sorted({metric for metric, _ in unknown})) or 'none'}")
    print(f"rows unknown to this oracle: {'; '.join(name for _, name in unknown) or 'none'}")
    print(f"{len(known)} rows recomputed, {wrong} wrong, {len(unknown)} unknown")
    return 1 if wrong or not known else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
