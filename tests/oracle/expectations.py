"""`case_pass_rate`: every key of docs/reference/scenario.md that a case expects, checked in the trace."""
import re
import unicodedata

from text import contains

# Common words that say nothing alone; the product has its own list.
GENERIC = set(
    "a about all an and answer answers are as at by can data detail details do document documents does example fact facts for from general "
    "help how in info information is it item keyword keywords knowledge list more new of on or other page problem query question questions "
    "result results search some source sources stuff text that the thing things this tips to topic topics user various was what when where "
    "which who why with you".split()
)


def case_pass_rate(trial):
    return [not any(failures(trial))]


def failures(trial):
    """What fails, in words; a case that expects nothing cannot fail, for every turn must answer at least."""
    last = list(trial.turns.values())[-1]
    whole = trial.case.get("expect") or {}
    for turn in trial.turns.values():
        expect = turn.planned.get("expect") or {}
        if not turn.answer() and "error" not in expect and not (turn is last and "error" in whole):
            yield f"turn {turn.number}: no answer"
        yield from unmet(expect, [turn], turn, trial)
    yield from unmet(whole, list(trial.turns.values()), last, trial)
    if trial.case.get("asks_nothing"):
        raise SystemExit("`asks_nothing` is not known to this oracle")


def unmet(expect, turns, turn, trial):
    known = {"calls", "answer", "sources", "reply", "keywords", "retries", "log", "context", "error", "optimal_steps"}
    if set(expect) - known:
        raise SystemExit(f"{sorted(set(expect) - known)} of an expectation are not known to this oracle")
    checks = [calls_hold(one, turns) for one in expect.get("calls", [])]
    checks += [retries_hold(one, turns) for one in expect.get("retries", [])]
    kinds = [entry if isinstance(entry, str) else next(iter(entry)) for turn in turns for entry in turn.of("logged")]
    checks += [kind in kinds for kind in expect.get("log", [])]
    checks += list(keywords_hold(expect.get("keywords", {}), turns, trial))
    checks += list(answer_holds(expect.get("answer", {}), turn))
    checks += list(sources_hold(expect.get("sources", {}), turn))
    checks += [reply_holds(place, condition, turn) for place, condition in expect.get("reply", {}).items()]
    checks += [remembered(probe, turn) for probe in expect.get("context", {}).get("probes", [])]
    if "error" in expect:
        ended = ((turn.end or {}).get("outcome", {})).get("failed")
        wanted = expect["error"]
        checks.append(bool(ended) and ended["kind"] == wanted["kind"] and all(contains(ended["message"], part) for part in wanted.get("contains", [])))
    for at, held in enumerate(checks):
        if not held:
            yield f"check {at} of {sorted(expect)}"


# Calls. A required call must have run, unless its outcome is named; a forbidden one counts as soon as it is tried.

def outcome(call):
    return next(iter(call["outcome"])) if isinstance(call["outcome"], dict) else call["outcome"]


def listed_calls(turns):
    listed = []
    for number, turn in enumerate(turns):
        for call in turn.of("tool_called"):
            broken = any(at == number and one["tool"] == call["tool"] and outcome(one) != "ok" for at, one, _ in listed)
            listed.append((number, call, outcome(call) == "ok" and broken))
    return listed


def tried(pattern, call, recovered):
    pattern = {"tool": pattern} if isinstance(pattern, str) else pattern
    wanted, came = pattern.get("outcome"), outcome(call)
    if pattern["tool"] != call["tool"]:
        return False
    if wanted and not {"ok": came == "ok", "failed": came != "ok", "recovered": recovered}[wanted]:
        return False
    for name, condition in pattern.get("arguments", {}).items():
        found = at_pointer(call["arguments"], name if name.startswith("/") else "/" + name)
        if found is MISSING or not meets(condition, found):
            return False
    ok = call["outcome"].get("ok")
    result = next(iter(ok.values())) if isinstance(ok, dict) else MISSING
    for pointer, condition in pattern.get("result", {}).items():
        found = result if result is MISSING or not pointer else at_pointer(result, pointer)
        if found is MISSING or not meets(condition, found):
            return False
    return True


def fits(pattern, call, recovered):
    named = not isinstance(pattern, str) and pattern.get("outcome")
    return tried(pattern, call, recovered) and bool(named or outcome(call) in ("ok", "failed"))


def calls_hold(expected, turns):
    (kind, what), = expected.items()
    made = listed_calls(turns)
    ran = [[fits(pattern, call, again) for _, call, again in made] for pattern in (what if isinstance(what, list) else [what])]
    if kind == "in_order":
        at = 0
        for row in ran:
            at = next((place + 1 for place in range(at, len(row)) if row[place]), None)
            if at is None:
                return False
        return bool(what)
    if kind == "exact":
        return len(what) == len(made) and all(ran[at][at] for at in range(len(made)))
    if kind == "any_order":
        return len(what) == len(made) and matching(ran) == len(made)
    if kind == "superset":
        return bool(what) and matching(ran) == len(what)
    if kind == "subset":
        return matching([[tried(pattern, call, again) for _, call, again in made] for pattern in what]) == len(made)
    if kind == "before":
        return bool(what) and all(precedes(ran[at], ran[at + 1], made) for at in range(len(what) - 1))
    call = what["call"] if kind == "at_most" else what
    times = sum(tried(call, one, again) for _, one, again in made)
    return {"exactly_once": times == 1, "never": times == 0, "at_most": kind == "at_most" and times <= what["times"]}[kind]


def precedes(first, second, made):
    seconds = [at for at, fit in enumerate(second) if fit]
    return bool(seconds) and all(any(first[one] and made[one][0] == made[at][0] for one in range(at)) for at in seconds)


def matching(table):
    """Largest number of rows that can have a column each."""
    taken = {}

    def place(row, seen):
        for column, fit in enumerate(table[row]):
            if fit and column not in seen:
                seen.add(column)
                if column not in taken or place(taken[column], seen):
                    taken[column] = row
                    return True
        return False

    return sum(place(row, set()) for row in range(len(table)))


# Values.

MISSING = object()


def at_pointer(value, pointer):
    for name in pointer.split("/")[1:] if pointer else []:
        name = name.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return MISSING
    return value


def meets(condition, value):
    (kind, wanted), = condition.items()
    if kind == "equals":
        return isinstance(wanted, bool) == isinstance(value, bool) and wanted == value
    if kind == "matches":
        if isinstance(value, bool):
            value = "true" if value else "false"
        return isinstance(value, (str, int, float)) and searched(wanted, str(value))
    return valid(value, wanted)


def searched(pattern, text):
    """Regular expressions of the scenarios are Rust's, whose `\\x{1F40C}` Python spells otherwise."""
    pattern = re.sub(r"\\x\{([0-9A-Fa-f]+)\}", lambda code: re.escape(chr(int(code.group(1), 16))), pattern)
    return re.search(pattern, text) is not None


TYPES = {"object": dict, "array": list, "string": str, "number": (int, float), "integer": int, "boolean": bool, "null": type(None)}


def valid(value, schema):
    """The keywords of JSON Schema that the suite uses; any other ends this oracle."""
    checks = {
        "type": lambda of: any(isinstance(value, TYPES[one]) and (one == "boolean") >= isinstance(value, bool) for one in ([of] if isinstance(of, str) else of)),
        "required": lambda of: not isinstance(value, dict) or all(name in value for name in of),
        "properties": lambda of: not isinstance(value, dict) or all(valid(value[name], one) for name, one in of.items() if name in value),
        "items": lambda of: not isinstance(value, list) or all(valid(one, of) for one in value),
        "minItems": lambda of: not isinstance(value, list) or len(value) >= of,
        "maxItems": lambda of: not isinstance(value, list) or len(value) <= of,
        "minLength": lambda of: not isinstance(value, str) or len(value) >= of,
        "enum": lambda of: value in of,
        "minimum": lambda of: not number(value) or value >= of,
        "maximum": lambda of: not number(value) or value <= of,
        "exclusiveMinimum": lambda of: not number(value) or value > of,
    }
    if set(schema) - set(checks):
        raise SystemExit(f"{sorted(set(schema) - set(checks))} of a JSON Schema are not known to this oracle")
    return all(checks[name](of) for name, of in schema.items())


def number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def reply_holds(place, condition, turn):
    found = at_pointer((turn.end or {}).get("reply"), place)
    return found is not MISSING and meets(condition, found)


# Answers, sources, retries, keywords, memory.

def answer_holds(expect, turn):
    answer = turn.answer()
    # `grounded` is not recomputed: labelled answers of people are its oracle, in the corpus tests.
    unknown = set(expect) - {"contains", "not_contains", "matches", "cites", "refusal", "evidence", "nuggets", "style", "grounded"}
    if unknown:
        raise SystemExit(f"{sorted(unknown)} of an expected answer are not known to this oracle")
    text = (answer or {}).get("text", "")
    ids = [source["id"] for source in (answer or {}).get("sources", [])]
    yield from (answer and contains(text, part) for part in expect.get("contains", []))
    yield from (answer and not contains(text, part) for part in expect.get("not_contains", []))
    yield from (answer and searched(pattern, text) for pattern in expect.get("matches", []))
    yield from (any(one == wanted or one.startswith(wanted + "#") for one in ids) for wanted in expect.get("cites", []))
    if "style" in expect:
        yield answer and (len(turn.words()) <= 60 if expect["style"] == "concise" else len(turn.words()) >= 30)
    if "refusal" in expect:
        bare = answer and not (ids or answer["used_internal_kb"] or answer["used_external_kb"])
        # The case's own words decide where it gives some; otherwise the flow declares its refusals.
        own = expect.get("contains") or expect.get("matches")
        refused = lambda text: re.search(r"\b(?:cannot|can't|could not|do not|found no|nothing)\b", text, re.I)
        says = own or (answer or {}).get("refused") or refused(text)
        # An answer that lists no source and says nothing of the kind is an answer.
        yield bool(bare and says) if expect["refusal"] else bool(answer and not (bare and (answer.get("refused") or refused(text))))


def sources_hold(expect, turn):
    answer = turn.answer()
    for key, member in (("internal", "used_internal_kb"), ("external", "used_external_kb")):
        if key in expect:
            yield bool(answer) and answer.get(member) == expect[key]
    if "at_least" in expect:
        yield bool(answer) and len(answer.get("sources", [])) >= expect["at_least"]


def retries_hold(expect, turns):
    made = [(number, retry) for number, turn in enumerate(turns) for retry in turn.of("retried") if retry["account"] == expect["account"]]
    episodes = {}
    for number, retry in made:
        key = number, retry["episode"]
        episodes[key] = episodes.get(key, False) or retry["recovered"]
    if "recovered" in expect and not (episodes and all(episodes.values()) == expect["recovered"]):
        return False
    return expect.get("at_least", 0) <= len(made) <= expect.get("at_most", len(made))


def keyword(text):
    return " ".join(unicodedata.normalize("NFKC", text).lower().split())


def keywords_hold(expect, turns, trial):
    indexed = [entry for turn in turns for entry in turn.results("indexed")]
    stored = {keyword(word) for entry in indexed for word in entry["keywords"]}
    merged = {keyword(word) for entry in indexed for word in entry.get("merged", [])}
    if expect.get("indexed"):
        yield any(turn.results("external") for turn in turns) and all(all_indexed(turn) for turn in turns)
    elif "indexed" in expect:
        yield not indexed
    yield from (keyword(word) in stored for word in expect.get("include", []))
    yield from (keyword(word) in merged for word in expect.get("merged", []))
    if "none_generic" in expect:
        generic = any(set(re.findall(r"[^\W_]+", word)) <= GENERIC for word in stored)
        yield bool(stored) and generic != expect["none_generic"]
    if "found_by" in expect:
        later = [turn for turn in trial.turns.values() if trial.script[turn.conversation]["name"] == expect["found_by"]]
        own = {turn.conversation for turn in turns if turn not in later}
        hits = [hit for turn in later for search in turn.results("search") for hit in search["hits"]]
        yield any(hit.get("learned") and hit["learned"]["conversation"] in own for hit in hits)


def all_indexed(turn):
    """Every external result of the turn has keywords that were read back."""
    kept = turn.results("indexed")
    return all(
        any(k["result"] == found["result"] and k["keywords"] and set(k["keywords"]) <= set(k["read_back"]) for k in kept)
        for found in turn.results("external")
    )


def remembered(probe, turn):
    tool = probe.get("in_arguments_of")
    if tool:
        said = [leaf for call in turn.of("tool_called") if call["tool"] == tool for leaf in leaves(call["arguments"])]
    else:
        said = [(turn.answer() or {}).get("text", "")]
    return any(contains(text, word) for word in probe["any_of"] for text in said)


def leaves(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [leaf for one in value for leaf in leaves(one)]
    return [] if value is None else [value if isinstance(value, str) else str(value).lower()]
