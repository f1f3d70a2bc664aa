"""What a run folder says of a pull request, as GitHub's workflow commands and, for other lines, Markdown.

One annotation a failing case, at its line of the scenario file; causes of ERROR; what changed against the baseline first. Reads
plan.json, run.json and, where there is one, comparison.json, and nothing else. Text of models and documents is escaped."""

import json
import os
import re
import shlex
import sys
from pathlib import Path

MOST = 10  # GitHub shows ten annotations of a kind and step.

folder = Path(sys.argv[1])
plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
compared = folder / "comparison.json"
comparison = json.loads(compared.read_text(encoding="utf-8")) if compared.exists() else None


def data(text):
    """Escapes the text of an annotation."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def value(text):
    """Escapes a property of an annotation."""
    return data(text).replace(":", "%3A").replace(",", "%2C")


def markdown(text):
    """Text without markup, mentions or links."""
    return re.sub(r"([\\`*_{}\[\]<>()#+!|@~])", r"\\\1", " ".join(text.split()))


# Annotations name files from the repository's folder, plans from the project's.
workspace = os.environ.get("GITHUB_WORKSPACE")
prefix = os.path.relpath(os.getcwd(), workspace).replace("\\", "/") + "/" if workspace else ""
prefix = "" if prefix == "./" or prefix.startswith("..") else prefix

places = {}
for scenario in plan["scenarios"]:
    for case in scenario["cases"]:
        # `line` stands beside the case.
        name = case.get("case", case.get("name"))
        name = name["case"] if isinstance(name, dict) else name
        places[f"{scenario['name']}/{name}"] = (prefix + scenario["file"], case.get("line", 1))


def annotate(kind, title, text, case=None):
    file, line = places.get(case, (None, None))
    where = f"file={value(file)},line={line}," if file else ""
    print(f"::{kind} {where}title={value(title)}::{data(text[:1500])}")


worse = {}
if comparison:
    worse = {flip["case"]: flip for flip in comparison.get("flips", []) if flip.get("worse")}

failed = {}
for trial in run["trials"]:
    if trial["verdict"] == "FAIL":
        failed.setdefault(f"{trial['scenario']}/{trial['case']}", []).append(trial)

words = {}
for case, trials in failed.items():
    first = next((check for check in trials[0]["checks"] if not check["passed"]), None)
    why = f"{first['what']}: {first.get('seen', '')}" if first else "; ".join(trials[0]["departures"])
    if not comparison:
        state = "FAILS"
    else:
        state = "REGRESSED" if case in worse else "FAILS ON BASE TOO"
    words[case] = (state, len(trials), why, trials[0]["id"])

order = {"REGRESSED": 0, "FAILS": 1, "FAILS ON BASE TOO": 2}
told = sorted(words.items(), key=lambda item: (order[item[1][0]], item[0]))
for case, (state, number, why, trial) in told[:MOST]:
    kind = "warning" if state == "FAILS ON BASE TOO" else "error"
    annotate(kind, f"{state}: {case}", f"{why}\n{number} of its trials; ragcheck show {trial}", case)
for group in run["errors"][:MOST]:
    text = "\n".join([group["message"], *group["detail"]])
    case = "/".join(group["trials"][0].split("/")[:2]) if group["trials"] else None
    annotate("error", f"OUTAGE or miss: {group['kind']} ({len(group['trials'])} trials)", text, case)
undecided = [row["id"] for row in run["criteria"] if row["verdict"] == "INCONCLUSIVE" and row["required"]]
if undecided:
    annotate("warning", "UNDECIDED", ", ".join(undecided))

print("## ragcheck: what changed\n" if comparison else "## ragcheck\n")
if comparison:
    print(markdown(comparison["conclusion"]) + "\n")
rows = [(state, case, number, why) for case, (state, number, why, _) in told]
rows += [("OUTAGE", group["kind"], len(group["trials"]), group["message"]) for group in run["errors"]]
rows += [("UNDECIDED", name, "", "") for name in undecided]
if rows:
    print("| | case or criterion | trials | why |\n|---|---|---:|---|")
    for state, name, number, why in rows[:50]:
        print(f"| **{state}** | {markdown(name)} | {number} | {markdown(why[:300])} |")
    print()
spent = run.get("spending", {}).get("run", {})
facts = []
if spent.get("cost") is not None:
    facts.append(f"cost {spent['cost']:.4f} USD")
for row in run.get("latency", [])[:3]:
    p95 = next((one["value"] for one in row["quantiles"] if abs(one["q"] - 0.95) < 1e-9), None)
    if isinstance(p95, dict) and "us" in p95:
        facts.append(f"p95 of {row['flow']}.{row['variant']} {p95['us'] / 1e6:.2f} s")
for row in (comparison or {}).get("rows", []):
    if row.get("scale") == "time" and row.get("a") and row.get("b"):
        facts.append(f"turn time {row['b']:.2f} s, on the base {row['a']:.2f} s")
if facts:
    print(markdown("; ".join(facts)) + "\n")
for change in (comparison or {}).get("prompts", [])[:5]:
    # A fence that is longer than any run of backticks in the text: nothing in it ends the block.
    lines = change["lines"][:60]
    fence = "`" * max(3, 1 + max((len(ticks) for line in lines for ticks in re.findall("`+", line)), default=0))
    print(f"<details><summary>The prompt {markdown(change['name'])} changed</summary>\n\n{fence}diff")
    print("\n".join(line.replace("\r", " ") for line in lines))
    print(f"{fence}\n\n</details>\n")

# As it would be typed: the action's own words, quoted for a shell, and the first trial that went wrong.
typed = shlex.join(["ragcheck", "run", *os.environ.get("RAGCHECK_ARGUMENTS", "").split()])
first = [trial for _, (_, _, _, trial) in told[:1]] or [group["trials"][0] for group in run["errors"][:1] if group["trials"]]
commands = [typed, *(shlex.join(["ragcheck", "show", trial]) for trial in first)]
print("Reproduce it:\n\n```sh\n" + "\n".join(command.replace("`", "") for command in commands) + "\n```\n")
