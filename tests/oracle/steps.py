"""Metrics of an agent that logs its steps."""
import re

from expectations import remembered
from text import numbers
from trial import given, ran


def logged(turn, kind):
    return [(at, what["logged"][kind]) for at, what in enumerate(turn.events) if kind in logs(what)]


def logs(what):
    entry = what.get("logged", {})
    return entry if isinstance(entry, dict) else {entry: None}


def logging_turns(trial):
    return [turn for turn in trial.turns.values() if any("logged" in what for what in turn.events)]


def approach_changes(trial):
    """After the second failure of a kind, the next step of the turn takes another approach; the model's own failures are none."""
    units = []
    for turn in logging_turns(trial):
        steps = [
            (entry["step"], entry["approach"], entry.get("kind"))
            for what in turn.events
            for kind, entry in logs(what).items()
            if kind == "thought" or kind == "failure" and entry["kind"] != "model_unavailable"
        ]
        seen = set()
        for at, (step, approach, kind) in enumerate(steps):
            if kind is None:
                continue
            later = next((other for number, other, _ in steps[at + 1:] if number > step), None)
            if kind in seen and later is not None:
                units.append(later != approach)
            seen.add(kind)
    return units


def irrelevant_citation_rate(trial):
    """Of the sources of answers, and of numbers that stand for none: True where it was not graded relevant in its turn."""
    units = []
    for turn in logging_turns(trial):
        if turn.answer():
            relevant = {name for _, note in logged(turn, "graded") for name in note["relevant"]}
            sources = turn.answer()["sources"]
            units += [source["id"] not in relevant for source in sources]
            units += [True for number in numbers(turn.answer()["text"]) if not 1 <= number <= len(sources)]
    return units


def compaction_keeps(trial):
    """The completion after a compaction is shown the decisions, preferences and lessons of the session, of each the last sixteen."""
    units, sessions = [], {}
    for turn in logging_turns(trial):
        known = sessions.setdefault(turn.conversation, {"noted": [], "reflection": []})
        due = None
        for what in turn.events:
            for kind, entry in logs(what).items():
                if kind == "started_afresh":
                    known["noted"], known["reflection"] = [], []
                if kind in known and entry["shown"] not in known[kind]:
                    known[kind] = (known[kind] + [entry["shown"]])[-16:]
                if kind == "compacted" and entry["done"]:
                    due = set(known["noted"] + known["reflection"] + entry["keeps"])
            if "model_called" in what and due is not None:
                units.append(due <= set(what["model_called"]["shown"]))
                due = None
    return units


STOPPING = ("steps_used_up", "retries_used_up", "budget_used_up", "timeout", "model_unavailable")


def degradation_notices(trial):
    """What a turn went on without, by its moves and results; each must be told in the answer or the error."""
    units = []
    for turn in logging_turns(trial):
        if turn.end is None:
            continue
        moves = {move["on"] for move in turn.of("moved")}
        lacks = {about for on, about in (("shorter_context", "context"), ("partial_result", "partial")) if on in moves}
        lacks |= {"stopped"} if moves & set(STOPPING) else set()
        lacks |= {"window" for _, note in logged(turn, "compacted") if not note["done"]}
        lacks |= {"session" for _ in logged(turn, "started_afresh")}
        lacks |= {"budget" for _, note in logged(turn, "estimated") if note.get("warn") and note["most"] > note["warn"]}
        searched = [call for call in trial.calls(turn, "knowledge") if ran(call)]
        lacks |= {"search"} if searched and given(searched[-1], "search") is None else set()
        lacks |= {"own_knowledge"} if turn.answer() and not turn.answer()["sources"] else set()
        ended = turn.end["outcome"]
        got = ended["answered"]["text"] if "answered" in ended else ended["failed"]["message"]
        told = {note["about"]: note["text"] for _, note in logged(turn, "notice") if note["text"] in got}
        units += [about in told and (about != "context" or names_cause(told[about], turn)) for about in sorted(lacks)]
    return units


def names_cause(notice, turn):
    """The notice about a shorter context names the status or kind of the failure before it, and a time-out only if it was one."""
    failed = None
    for what in turn.events:
        if (what.get("moved") or {}).get("on") == "shorter_context":
            break
        if "failure" in what.get("model_called", {}).get("reply", {}):
            failed = what["model_called"]
    if failed is None:
        return True
    kind, notice = failed["reply"]["failure"]["kind"], notice.lower()
    statuses = [str(attempt["status"]) for attempt in failed["attempts"][-1:] if (attempt.get("status") or 0) >= 400]
    late = any(words in notice for words in ("in time", "timed out", "timeout", "time-out", "too slow"))
    named = not statuses or any(words in notice for words in (kind, kind.replace("_", " "), *statuses))
    return late == (kind == "timeout") and named


def answer_length(trial):
    """By the style of the case, else by the logged one: at most 60 words, or at least 30."""
    units = []
    for turn in trial.turns.values():
        if not turn.answer():
            continue
        expected = [expect.get("answer") or {} for expect in expectations_of(trial, turn)]
        styles = [one["style"] for one in expected if one.get("style")] + [note["style"] for _, note in logged(turn, "style")]
        found = turn.words()
        if styles and sum(map(len, found)) <= 20 * len(found):
            units.append(len(found) <= 60 if styles[0] == "concise" else len(found) >= 30)
    return units


def expectations_of(trial, turn):
    """What the case expects of a turn: of itself and, on the last, of the whole."""
    whole = trial.case.get("expect") if turn is list(trial.turns.values())[-1] else None
    return [expect for expect in (turn.planned.get("expect"), whole) if expect]


def step_efficiency(trial):
    """The searches of a turn up to the optimum of its case, of all."""
    units = []
    for turn in trial.turns.values():
        optimum = next((expect["optimal_steps"] for expect in expectations_of(trial, turn) if expect.get("optimal_steps")), None)
        if optimum:
            taken = len(trial.calls(turn, "knowledge")) + len(trial.calls(turn, "external")) + len(turn.of("searched"))
            units += [step < optimum for step in range(taken)]
    return units


def estimate_accuracy(trial):
    if not reported(trial):
        return []
    units = []
    for turn in trial.turns.values():
        made = next((note for _, note in logged(turn, "estimated") if note.get("expected") is not None), None)
        if made and turn.answer():
            used = sum(note["input"] + note["output"] for _, note in logged(turn, "used"))
            near = used <= 2 * made["expected"] and made["expected"] <= 2 * used
            units.append(near and used <= made["most"] <= made["limit"])
    return units


def reported(trial):
    """Whether any completion says how many tokens it used."""
    said = [call["reply"].get("completion") or {} for turn in trial.turns.values() for call in turn.of("model_called")]
    return any(one.get("input_tokens") is not None or one.get("output_tokens") is not None for one in said)


def compaction_probes(trial):
    units, compacted = [], set()
    for turn in trial.turns.values():
        if any(note["done"] for _, note in logged(turn, "compacted")):
            compacted.add(turn.conversation)
        if turn.conversation in compacted:
            probes = [probe for expect in expectations_of(trial, turn) for probe in (expect.get("context") or {}).get("probes", [])]
            units += [remembered(probe, turn) for probe in probes]
    return units


def state_persistence(trial):
    """Each change of state is followed by its storing before anything else is done; a restart goes on in the state stored last."""
    units, stored = [], {}
    for turn in logging_turns(trial):
        excused = any(note["about"] == "session" for _, note in logged(turn, "notice")) and not logged(turn, "started_afresh")
        if excused:
            continue  # the store is broken and the user knows: nothing can be stored
        due = []
        for what in turn.events:
            if "persisted" in logs(what):
                stored[turn.conversation] = state = logs(what)["persisted"]["state"]
                units += [wanted in (None, state) for wanted in due]
                due = []
            elif "restored" in logs(what):
                if logs(what)["restored"].get("state"):
                    units.append(logs(what)["restored"]["state"] == stored.get(turn.conversation))
            elif "turn_started" in what or "turn_ended" in what or "moved" in what:
                units += [False for _ in due]
                due = [what["moved"]["to"] if "moved" in what else "ended" if "turn_ended" in what else None]
            elif "model_called" in what or "tool_called" in what:
                units += [False for _ in due]
                due = []
        units += [False for _ in due]
    return units


def step_limit(trial, most):
    """A step is the stretch from one grounding to the next; it counts where a search ran in it."""
    units = []
    for turn in trial.turns.values():
        steps, current, any_step = set(), None, False
        for what in turn.events:
            if "grounding" in logs(what):
                current, any_step = logs(what)["grounding"]["step"], True
            call = what.get("tool_called")
            if call and trial.role(call) == "knowledge" and ran(call):
                steps.add(current)
        if any_step:
            units.append(len(steps) <= int(most) and efficiency_of_grades(turn))
    return units


def efficiency_of_grades(turn):
    """The logged number of useful steps against those whose grades name a source that none before them named."""
    known, new = set(), 0
    for _, note in logged(turn, "graded"):
        new += bool(set(note["relevant"]) - known)
        known |= set(note["relevant"])
    made = [note for _, note in logged(turn, "efficiency")]
    return all(note["useful"] <= min(new, note["actual"]) and bool(note["useful"]) == bool(new) for note in made)


def reasoned_calls(trial):
    units = []
    for turn in trial.turns.values():
        thought, status = False, not is_whole(turn)
        for what in turn.events:
            if "model_called" in what:
                thought = False
            if "status" in logs(what):
                status |= bool(logs(what)["status"]["text"].strip())
            if "thought" in logs(what):
                thought = bool(logs(what)["thought"]["text"].strip())
            call = what.get("tool_called")
            if call and trial.role(call) == "knowledge" and ran(call):
                units.append(thought and status)
                status = not is_whole(turn)
    return units


def session_budget(trial):
    """Within the limit by what completions report; each logged total is the one before and what its completion used."""
    limit = next((note["limit"] for turn in trial.turns.values() for _, note in logged(turn, "estimated") if note.get("limit")), None)
    units, used, totals = [], {}, {}
    for turn in trial.turns.values():
        session = turn.conversation
        for what in turn.events:
            completion = (what.get("model_called") or {}).get("reply", {}).get("completion")
            if "started_afresh" in logs(what):
                totals.pop(session, None)
            if completion and "input_tokens" in completion and limit:
                used[session] = used.get(session, 0) + completion["input_tokens"] + completion["output_tokens"]
                units.append(used[session] <= limit)
            if "used" in logs(what) and units:
                note = logs(what)["used"]
                now = note["session_input"], note["session_output"]
                units[-1] &= totals.get(session, (now[0] - note["input"], now[1] - note["output"])) == (now[0] - note["input"], now[1] - note["output"])
                totals[session] = now
    return units


def later_completions(turn, at):
    return [what["model_called"] for what in turn.events[at + 1:] if "model_called" in what]


def lessons_shown(trial):
    """Reflections with a completion after them in their turn; every such completion was shown the lesson. And none is missing."""
    units = []
    for turn in trial.turns.values():
        units += [
            all(note.get("shown") in call["shown"] for call in later_completions(turn, at))
            for at, note in logged(turn, "reflection")
            if later_completions(turn, at)
        ]
        units += [False for _ in unanalysed(turn)]
    return units


def is_whole(turn):
    return bool(logged(turn, "efficiency"))


def unanalysed(turn):
    """Failures of an approach, in a log that ends with an efficiency, after which a thought comes before a reflection."""
    kinds = [kind for what in turn.events for kind, note in logs(what).items() if kind in ("reflection", "thought") or kind == "failure" and note["kind"] != "model_unavailable"]
    runs = "".join({"failure": "f", "reflection": "r", "thought": "t"}[kind] for kind in kinds)
    return re.findall("ft", runs) if is_whole(turn) else []


def compaction_savings(trial):
    return [note["after"] <= 0.8 * note["before"] for turn in trial.turns.values() for _, note in logged(turn, "compacted") if note["done"]]


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


def step_log(trial):
    """Searches with grounding and a new thought before them, and with summary, observation and grades after them."""
    units = []
    for turn in trial.turns.values():
        entries = [(at, logs(what)) for at, what in enumerate(turn.events)]
        calls = [(at, what["tool_called"]) for at, what in enumerate(turn.events) if "tool_called" in what]
        searches = [(at, given(call, "search")) for at, call in calls if trial.role(call) == "knowledge" and given(call, "search")]
        earlier = 0
        for number, (at, search) in enumerate(searches):
            end = searches[number + 1][0] if number + 1 < len(searches) else len(turn.events)
            if not any("model_called" in what for what in turn.events[at + 1:end]):
                continue
            thoughts = [entry["thought"]["step"] for place, entry in entries if place < at and "thought" in entry]
            step = thoughts[-1] if thoughts else 0
            if step <= earlier:
                units.append(False)
                continue
            earlier = step
            of = lambda kind, first, last: [e[kind] for p, e in entries if first <= p < last and kind in e and e[kind]["step"] == step]
            hits = {hit["id"] for hit in search["hits"]}
            grades = [hits <= set(one["relevant"]) | set(one["irrelevant"]) for one in of("graded", at, end)]
            seen = not hits or (of("observation", at, end) and any(grades))
            units.append(bool(of("grounding", 0, at) and of("summary", at, end) and seen))
    return units
