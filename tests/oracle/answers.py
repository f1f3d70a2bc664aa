"""Metrics of what answers cite and say."""
import re

from text import addresses, contains, marks, numbers, subject_words


def searches(turn):
    return turn.results("search")


def hits(turn):
    return [hit for search in searches(turn) for hit in search["hits"]]


def citation_range(trial):
    units = []
    for turn in trial.turns.values():
        cited = numbers((turn.answer() or {}).get("text", ""))
        if cited and searches(turn):
            units.append(all(1 <= number <= len(hits(turn)) for number in cited))
    return units


def cited_answer_rate(trial):
    units = []
    for turn in trial.turns.values():
        answer = turn.answer()
        if answer and hits(turn) and not answer.get("refused") and (numbers(answer["text"]) or not refuses(answer, turn)):
            units.append(bool(numbers(answer["text"])) and any(one.isalpha() for one in answer["text"]))
    return units


def declared_refusal_rate(trial):
    searched = [turn for turn in trial.turns.values() if turn.answer() and searches(turn) and not hits(turn)]
    return [not numbers(turn.answer()["text"]) and refuses(turn.answer(), turn) for turn in searched]


REFUSALS = re.compile(
    r"\b(?:found|find|know) nothing\b|\b(?:cannot|can not|could not|couldn't|unable to) (?:\w+ )?(?:answer|find|say|tell|confirm)\b"
    r"|\b(?:do not|don't) know\b|\bno (?:\w+ ){0,3}(?:information|answer|source|document|result)s?\b"
    r"|\bnichts (?:\w+ ){0,6}gefunden\b|\bkeine (?:\w+ )?(?:information|angabe|antwort)|\brien trouvé"
)


def refuses(answer, turn):
    """Marked as a refusal, or says that it cannot answer without a number or code that the user did not write."""
    if answer.get("refused"):
        return True
    text, asked = turn.own_words().lower(), (turn.query or "").lower()
    return bool(REFUSALS.search(text)) and all(fact in asked for fact in re.findall(r"\S*\d\S*", text))


def satisfaction(trial):
    """Without ratings the proxy: of the answers with evidence from both sources, those that name both and use both."""
    if not (trial.plays("knowledge") and trial.plays("external")):
        return None
    units = []
    for turn in trial.turns.values():
        answer = turn.answer()
        if answer and hits(turn) and turn.results("external") and has_evidence(answer, turn):
            units.append(all(named(answer, turn, kind) and used(answer, turn, kind) for kind in ("internal", "external")))
    return units


def passage_words(hit):
    return subject_words(hit["title"]) | subject_words(hit["excerpt"])


def has_evidence(answer, turn):
    asked = subject_words(turn.query)
    near = any(not asked or not passage_words(hit) or 3 * len(asked & passage_words(hit)) >= len(asked) for hit in hits(turn))
    return near or any(source["kind"] == "internal" for source in answer["sources"])


def kinds_given(turn):
    """The kind of each source that this turn retrieved, by its id."""
    given = {}
    for found in turn.results("external"):
        given[found["result"]] = "external"
        given.update({page["url"]: "external" for page in found["citations"]})
    for hit in hits(turn):
        given[hit["id"]] = "internal"
        given.update({url: "external" for url in (hit.get("learned") or {}).get("urls", [])})
    return given


def named(answer, turn, kind):
    given = kinds_given(turn)
    return any(source["kind"] == kind and given.get(source["id"], kind) == kind for source in answer["sources"])


def source_of(answer, number):
    sources = answer["sources"]
    if any(source.get("number") is not None for source in sources):
        return next((source for source in sources if source.get("number") == number), None)
    return sources[number - 1] if 1 <= number <= len(sources) else None


def used(answer, turn, kind):
    """In place, by a number, an id or an address; or by two words that only the sources of this kind have."""
    ids = {source["id"] for source in answer["sources"] if source["kind"] == kind}
    for mark in marks(answer["text"]):
        if (source_of(answer, mark[1]) or {}).get("kind") == kind if mark[0] == "number" else mark[1] in ids:
            return True
    internal = [passage_words(hit) for hit in hits(turn) if kind == "external" or hit["id"] in ids]
    external = [subject_words(found["answer"]) for found in turn.results("external")]
    mine, others = (internal, external) if kind == "internal" else (external, internal)
    own = set().union(*mine) - set().union(*others) - subject_words(turn.query)
    return len(own) < 2 or len(own & subject_words(answer["text"])) >= 2


def citation_validity(trial):
    """Answers with sources: all of them were retrieved earlier in the conversation, before the response was called."""
    units, given = [], {}
    for turn in trial.turns.values():
        known = given.setdefault(turn.conversation, set())
        responses = [at for at, what in enumerate(turn.events) if (what.get("tool_called") or {"outcome": {}})["outcome"].get("ok") == "responded"]
        whole, before = turn.events, turn.events[: responses[-1]] if responses else turn.events
        turn.events = before
        now = set(kinds_given(turn).items())
        turn.events = whole
        if turn.answer() and turn.answer()["sources"]:
            units.append(all((source["id"], source["kind"]) in known | now for source in turn.answer()["sources"]))
        known |= set(kinds_given(turn).items())
    return units


def source_flags(trial):
    """Each flag of an answer that is known says whether a source of its kind is there."""
    units = []
    for turn in trial.turns.values():
        answer = turn.answer()
        if answer and "sources" not in answer.get("unseen", []):
            kinds = {source["kind"] for source in answer["sources"]}
            said = {kind: f"used_{kind}_kb" for kind in ("internal", "external")}
            known = [kind for kind in said if said[kind] not in answer.get("unseen", [])]
            if known:
                flagged = all(answer[said[kind]] == (kind in kinds) for kind in known)
                units.append(flagged and 0 <= (answer.get("confidence") or 0) <= 1)
    return units


def bare(name):
    return "".join(name.split())


def citation_provenance(trial):
    """Each source and mark of an answer was given by retrieval, named by the response call, and shown with its number."""
    units, talks, externals = [], {}, []
    for turn in trial.in_order():
        talk = talks.setdefault(turn.conversation, {"kinds": {}, "mentioned": set(), "learned": {}})
        talk["mentioned"] |= set(addresses(turn.query or ""))
        named_ids, late, pending = None, {}, False
        for what in turn.events:
            call = what.get("tool_called")
            result = call["outcome"].get("ok") if call else (what.get("searched") or {}).get("outcome", {}).get("ok")
            given = late if pending else talk["kinds"]
            if result == "responded":
                talk["kinds"] = {**late, **talk["kinds"]}
                late, pending = {}, True
                sources = call["arguments"].get("sources")
                named_ids = None if sources is None else [source["id"] for source in sources]
            elif isinstance(result, dict) and "external" in result:
                found = result["external"]
                externals.append((turn.conversation, found))
                for name in [found["result"]] + [page["url"] for page in found["citations"]]:
                    given.setdefault(name, "external")
                talk["mentioned"] |= set(addresses(found["answer"]))
            elif isinstance(result, dict) and "search" in result:
                for hit in result["search"]["hits"]:
                    given.setdefault(hit["id"], "internal")
                    talk["mentioned"] |= set(addresses(hit["excerpt"]))
                    if hit.get("learned"):
                        talk["learned"][hit["id"]] = hit["learned"]["conversation"], hit["learned"]["result"]
                        for url in hit["learned"]["urls"]:
                            given.setdefault(url, "external")
        if turn.answer():
            unit = sound(turn.answer(), turn.conversation, talk, named_ids, externals)
            units += [] if unit is None else [unit]
        talk["kinds"] = {**late, **talk["kinds"]}  # what came too late is there in the next turn
    return units


def sound(answer, conversation, talk, named_ids, externals):
    """True or False for an answer that cites, None for one that does not."""
    shown = [source["id"] for source in answer["sources"]]
    kept, cited = {bare(one) for one in shown}, marks(answer["text"])
    flawed = any(talk["kinds"].get(source["id"]) != source["kind"] for source in answer["sources"])
    if named_ids is not None:
        flawed |= {bare(one) for one in named_ids} != kept
    for mark in cited:
        if mark[0] == "number":
            flawed |= not number_kept(mark, answer, conversation, talk, externals)
        elif mark[0] == "id":
            flawed |= bare(mark[1]) not in kept
        else:
            flawed |= bare(mark[1]) not in kept and mark[1] not in talk["kinds"] and mark[1] not in talk["mentioned"]
    return not flawed if shown or flawed or any(mark[0] != "address" for mark in cited) else None


def number_kept(mark, answer, conversation, talk, externals):
    """Where the four words before it are an external result's, it must stand for the page that stood there, in any of the equal results."""
    here = (source_of(answer, mark[1]) or {}).get("id")
    learned_here = {talk["learned"][source["id"]] for source in answer["sources"] if source["id"] in talk["learned"]}
    kept = []
    for owner, found in externals:
        if owner != conversation and (owner, found["result"]) not in talk["learned"].values():
            continue
        there = [one[1] for one in marks(found["answer"]) if one[0] == "number" and len(one[2]) == 4 and one[2] == mark[2]]
        pages = [found["citations"][number - 1]["url"] for number in there if 1 <= number <= len(found["citations"])]
        if pages:
            kept.append((owner, found["result"]) in learned_here or here is not None and bare(here) in map(bare, pages))
    return any(kept) if kept else here is not None


def reply_agreement(trial):
    """Replies with the answer or error of their turn, and one session for a conversation."""
    units, sessions = [], {}
    for turn in trial.turns.values():
        reply = (turn.end or {}).get("reply")
        if reply is None:
            continue
        answer, named = turn.answer(), reply.get("session_id")
        if answer:
            same = [reply.get("answer", "") == answer["text"], "confidence_score" in reply, reply.get("confidence_score") == answer.get("confidence")]
            same += [reply.get(flag) == answer[flag] for flag in ("used_internal_kb", "used_external_kb")]
            same.append(len(reply.get("sources", [None] * 99)) == len(answer["sources"]))
        else:
            failed = turn.end["outcome"]["failed"]
            same = [reply.get("error") == {"kind": failed["kind"], "message": failed["message"]}]
        kept = bool(named) and sessions.setdefault(turn.conversation, named) == named
        units.append(all(same) and kept)
    return units


def failure_messages(trial):
    """Feedback that names its tool, refusals with reason and guidance, errors that say more than that they are one."""
    units, bare = [], trial.trace["evidence"]["mode"] == "imported" or trial.lane["flow"] == "external"
    for turn in trial.turns.values():
        for what in turn.events:
            if "fed_back" in what:
                told = what["fed_back"]
                units.append(told["tool"] in told["message"] or any(quote in told["message"] for quote in "`«\""))
            outcome = what.get("tool_called", {}).get("outcome", {})
            outcome = outcome if isinstance(outcome, dict) else {}
            for refused in (outcome.get("rejected"), outcome.get("out_of_order")):
                if refused:
                    units.append(bool(refused["reason"].strip() and (bare or refused["guidance"].strip())))
            for failed in (outcome.get("failed"), what.get("turn_ended", {}).get("outcome", {}).get("failed")):
                if failed:
                    units.append(len(failed["message"].split()) > 3)
    return units
