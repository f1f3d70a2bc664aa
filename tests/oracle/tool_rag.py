"""Metrics of the agent with tools: each returns one True or False per unit, or None where it cannot be asked."""
import math

from expectations import remembered
from text import FUNCTION, content, words_of
from trial import given, ran


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


def turn_success_rate(trial):
    return [turn.answer() is not None for turn in trial.turns.values()]


def latency(trial, limit):
    return [seconds(turn) < limit for turn in trial.turns.values()]


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
    return all(remembered(probe, turn) for probe in (turn.planned.get("expect") or {}).get("context", {}).get("probes", []))


def order_violation_rate(trial):
    return [any("out_of_order" in call["outcome"] for call in turn.of("tool_called")) for turn in trial.turns.values()]


def queries(calls):
    asked = [(call, call["arguments"].get("query")) for call in calls if isinstance(call["arguments"], dict)]
    return [(call, query) for call, query in asked if isinstance(query, str)]


def verbatim_query_rate(trial, role):
    """More than four fifths of the user's words in order with a function word among them, or all of them."""
    if not trial.plays(role):
        return None
    return [copied(query, turn.query) for turn in trial.turns.values() for _, query in queries(trial.calls(turn, role))]


def copied(query, said):
    query, said = words_of(query)[:400], words_of(said)[:400]
    common = in_order(query, said)
    return bool(said) and (len(common) == len(said) or 5 * len(common) > 4 * len(said) and any(word in FUNCTION for word in common))


def in_order(a, b):
    """One longest list of words that both have in order."""
    rows = [[[] for _ in range(len(b) + 1)] for _ in range(len(a) + 1)]
    for i in range(len(a) - 1, -1, -1):
        for j in range(len(b) - 1, -1, -1):
            rows[i][j] = [a[i]] + rows[i + 1][j + 1] if a[i] == b[j] else max(rows[i + 1][j], rows[i][j + 1], key=len)
    return rows[0][0]


def rewritten_query_rate(trial, role):
    """Searches that ran after another one of the turn that gave a result: other content than each of those."""
    if not trial.plays(role):
        return None
    units = []
    for turn in trial.turns.values():
        before = []
        for call, query in queries(trial.calls(turn, role)):
            if ran(call) and before:
                units.append(content(query) not in before)
            if "ok" in call["outcome"]:
                before.append(content(query))
    return units


def distinct_query_rate(trial):
    if not (trial.plays("knowledge") and trial.plays("external")):
        return None
    units = []
    for turn in trial.turns.values():
        known = [content(query) for _, query in queries(trial.calls(turn, "knowledge"))]
        if known:
            units += [content(query) not in known for _, query in queries(trial.calls(turn, "external"))]
    return units


def keyword_quality(trial):
    """Stored keywords with a content word of the result, its titles, its query or the question."""
    if not (trial.plays("external") and trial.plays("index")):
        return None
    units, subjects = [], {}
    for turn in trial.turns.values():
        for found in turn.results("external"):
            texts = [found["answer"], found["query"], turn.query] + [page["title"] for page in found["citations"]]
            subjects[turn.conversation, found["result"]] = set().union(*(parts(content(text)) for text in texts))
        for index in turn.results("indexed"):
            subject = subjects.get((turn.conversation, index["result"]))
            if subject is not None:
                units += [bool(parts(content(keyword)) & subject) for keyword in index["keywords"]]
    return units


def parts(words):
    return words | {part for word in words for part in word.split("-") if "-" in word}


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


def turn_context(trial, context="whole"):
    """Turns whose completions were shown the system prompt, the question, their history and the results so far."""
    units, histories, notes = [], {}, {}
    for turn in trial.turns.values():
        noted = [entry["noted"]["shown"] for entry in turn.of("logged") if isinstance(entry, dict) and "noted" in entry]
        notes.setdefault(turn.conversation, []).extend(noted)
        asked = [(at, what["model_called"]) for at, what in enumerate(turn.events) if "model_called" in what]
        asked = [(at, call["shown"]) for at, call in asked if not call.get("service")]
        if asked:
            units.append(shown_what_it_answers_from(turn, asked, histories.get(turn.conversation, []), notes[turn.conversation], context == "whole"))
        histories[turn.conversation] = turn.end["history"] if turn.end else histories.get(turn.conversation, [])
    return units


def shown_what_it_answers_from(turn, asked, history, notes, whole):
    if not all(shown and shown[0].startswith(("sys", "developer")) for _, shown in asked):
        return False
    said = [one for one in asked[0][1] if not one.startswith(("sys", "developer")) and one not in notes]
    rest = iter(history)
    if not said or not said[-1].startswith("user:") or not all(one in rest for one in said[:-1]):
        return False
    if whole and said[:-1] != history:
        return False
    if not all(said[-1] in shown for _, shown in asked):
        return False
    counts = [sum(one.startswith("tool:") for one in shown) for _, shown in asked]
    for number in range(1, len(asked)):
        between = turn.events[asked[number - 1][0] + 1:asked[number][0]]
        calls = sum("ok" in what["tool_called"]["outcome"] for what in between if "tool_called" in what)
        if whole and counts[number] < counts[number - 1] + calls:
            return False
    return not ((turn.answer() or {}).get("sources") and counts[-1] == 0)


def passage_order(trial):
    """Searches with several passages that stand best first, learned entries aside."""
    units = []
    for turn in trial.turns.values():
        for found in turn.results("search"):
            scores = [hit["raw_score"] for hit in found["hits"] if not hit.get("learned")]
            if len(scores) > 1:
                units.append(scores == sorted(scores, reverse=True))
    return units
