"""What was planned, and what happened: a trial of the plan with its trace, turn by turn."""
import math
import re


class Turn:
    def __init__(self, conversation, number, planned):
        self.conversation, self.number, self.planned = conversation, number, planned
        self.events, self.began, self.query, self.end = [], False, None, None

    def of(self, kind):
        return [what[kind] for what in self.events if kind in what]

    def results(self, kind):
        """What the calls and the flow's own searches of the turn gave, of one kind."""
        made = [what.get("tool_called") or what.get("searched") for what in self.events if "tool_called" in what or "searched" in what]
        return [found for found in (given(call, kind) for call in made) if found]

    def own_words(self):
        """The answer's text without the notices of the agent."""
        text = self.answer()["text"]
        for entry in self.of("logged"):
            if isinstance(entry, dict) and "notice" in entry:
                text = text.replace("Note: " + entry["notice"]["text"], "").replace(entry["notice"]["text"], "")
        return text

    def words(self):
        """Words of the answer between spaces, without citations."""
        found = re.sub(r"\[[\d\s,;^#–-]+\]", " ", self.own_words()).split()
        return [word for word in found if any(one.isalnum() for one in word)]

    def answer(self):
        return (self.end or {}).get("outcome", {}).get("answered")


class Trial:
    """One trial of the plan with its trace: conversations in the order of the script, each with its planned turns."""

    def __init__(self, plan, planned, trace):
        scenario = plan["scenarios"][planned["scenario"]]
        self.id, self.scenario, self.lane, self.trace = planned["id"], scenario, planned["lane"], trace
        self.case = scenario["cases"][planned["case"]]["case"]
        self.roles = trace["roles"]
        variants = {variant["name"]: variant for variant in scenario["variants"]}
        self.settings = variants[planned["lane"]["variant"]].get("settings") or {}
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

    def in_order(self):
        """The turns in the order in which they ended."""
        ends = {(e["conversation"], e["turn"]): at for at, e in enumerate(self.trace["events"])}
        return sorted(self.turns.values(), key=lambda turn: ends.get((turn.conversation, turn.number), math.inf))

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


