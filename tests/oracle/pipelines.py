"""Metrics of the two-stage flow and of the flow with managed retrieval."""
import re
import unicodedata

from expectations import MISSING, at_pointer
from trial import given


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


def gateway_links(trial):
    units = []
    for _, result in managed(trial, "artifact"):
        if result.get("sources"):
            links = re.findall(r"\]\(([^)]*)\)", result["artifact"]["content"]) + [source["link"] for source in result["sources"]]
            units.append(all(re.fullmatch(r"/gateway/download/[^?#]+(#page=\d+)?", link) for link in links))
    return units


def required_parameters(trial):
    """Calls of a flow whose service declares required parameters: all are in the conversation's context, or nothing was asked."""
    declared = (trial.settings.get("managed_retrieval") or {}).get("settings", {}).get("template_parameters", [])
    required = [one for one in declared if one.get("required")]
    if not required:
        return []
    units = []
    for turn in trial.turns.values():
        context = trial.script[turn.conversation].get("tool_context", {})
        missing = [one for one in required if "default" not in one and at_pointer(context, "/" + one.get("from", one["name"]).replace(".", "/")) in (MISSING, None, "")]
        units += [not missing or "ok" not in call["outcome"] for call in trial.calls(turn, "knowledge")]
    return units


MARKER = "\ue000"


def marker_placement(trial):
    """An artifact is the service's text with a marker where each group of cited words ends, moved out of code and characters."""
    links = (trial.settings.get("managed_retrieval") or {}).get("settings", {}).get("inline_citation_links", True)
    return [body(result["artifact"]["content"], links) == marked(result, links) for _, result in managed(trial, "artifact")]


def body(content, links):
    text = content.rpartition("\n\n## Sources\n")[0] or content
    return re.sub(r"\[\[\d+\]\]\([^)\s]*\)" if links else r"\[\d+\]", MARKER, text.rstrip())


def marked(result, links):
    text, places = result["text"], set()
    pages = [(source["source"], source.get("page")) for source in result.get("sources", [])]
    for citation in result.get("citations", []):
        if citation.get("source") is None:
            continue
        number = pages.index((citation["source"], citation.get("page"))) + 1
        ends = {span["end"] for span in citation["spans"] if span["start"] < span["end"]} or {len(text.rstrip())}
        places |= {(place, number) for place in map(lambda end: moved(text, end), ends) if place is not None}
    for place in sorted({place for place, _ in places}, reverse=True):
        count = sum(one == place for one, _ in places)
        before = " " if text[:place].endswith(("!", "\\")) else ""
        after = " " if not links and text[place:].startswith(("(", ":")) else ""
        text = text[:place] + before + MARKER * count + after + text[place:]
    # The service's own text may hold what looks like a marker.
    return re.sub(r"\[\[\d+\]\]\([^)\s]*\)" if links else r"\[\d+\]", MARKER, text.rstrip())


def moved(text, place):
    """The end of the character, the code or, before it, of the words in front of a code block."""
    place = min(place, len(text))
    while 0 < place < len(text) and joins(text, place):
        place += 1
    blocks = [match.span() for match in re.finditer(r"^ {0,3}(```+|~~~+)[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", text, re.M | re.S)]
    for start, end in reversed(blocks):
        if start <= place <= end:
            place = len(text[:start].rstrip())
            return place or None
    for match in re.finditer(r"(?<!`)(`+)(?!`)(?:(?!\n\n).)*?(?<!`)\1(?!`)", text, re.S):
        inside = any(start <= match.start() < end for start, end in blocks)
        if not inside and match.start() < place < match.end():
            return match.end()
    return place


def joins(text, place):
    """Whether the character at `place` belongs to the one before: accents, joiners, variants, skin tones, pairs of flag letters."""
    one, before = ord(text[place]), ord(text[place - 1])
    if one == 0x200D or before == 0x200D or unicodedata.combining(text[place]) or 0xFE00 <= one <= 0xFE0F or 0x1F3FB <= one <= 0x1F3FF or one == 0x20E3:
        return True
    flags = re.search("[\U0001F1E6-\U0001F1FF]*$", text[:place]).group()
    return 0x1F1E6 <= one <= 0x1F1FF and len(flags) % 2 == 1
