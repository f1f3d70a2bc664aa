"""Recompute criteria.csv of a run folder from plan.json and traces.jsonl alone.

    python3 tests/oracle RUN_FOLDER                   (criteria.csv, and pairs.csv if there)
    python3 tests/oracle RUN_FOLDER_A RUN_FOLDER_B    (comparison.csv of B)

Written from docs/ and the words of `ragcheck explain`, not from the Rust code, with the standard library alone. Every row is recomputed whole
(n, successes, clusters, left out, observed, both shares, both bounds, verdict), except those of `grounded` and `unsupported_facts`, whose units
are taken from the table; an unknown metric is an error. Exits with 1 where any row disagrees.
"""
import csv
import json
import os
import sys

sys.dont_write_bytecode = True

import comparison
from criteria import BY_LABELLED_ANSWERS, METRICS, concluded, parsed, recompute
from trial import Trial

TOLERANCE = 2e-6  # the table has six decimals, rounded away from the claim


def disagreements(row, found):
    told = []
    for column in ("n", "successes", "clusters", "excluded_n", "per", "verdict"):
        if str(found.get(column)) != row[column]:
            told.append(f"{column}: {row[column]} in criteria.csv, {found.get(column)} here")
    for column in ("observed", "per_unit", "per_conversation", "lower", "upper"):
        mine = found.get(column)
        if mine is not None and found["n"] and abs(float(row[column] or "nan") - mine) <= TOLERANCE:
            continue
        if mine is not None and found["n"] or row[column]:
            told.append(f"{column}: {row[column]} in criteria.csv, {found.get(column)} here")
    if found["excluded_n"] and f"{found['with_excluded']} = " not in row["sentence"]:
        told.append(f"with the cases left out: {found['with_excluded']} here, {row['sentence']}")
    return told


def loaded(folder):
    with open(os.path.join(folder, "plan.json"), encoding="utf-8") as file:
        plan = json.load(file)
    with open(os.path.join(folder, "traces.jsonl"), encoding="utf-8") as file:
        traces = {trace["trial"]: trace for trace in map(json.loads, file)}
    return plan, [Trial(plan, planned, traces[planned["id"]]) for planned in plan["trials"]]


def table(folder, name, key):
    with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
        return {key(row): row for row in csv.DictReader(file)}


def criteria(folder):
    plan, trials = loaded(folder)
    rows = table(folder, "criteria.csv", lambda row: (row["scenario"], row["id"]))
    asked = [("", criterion) for criterion in plan["criteria"]["criteria"]]
    asked += [(scenario["name"], gate) for scenario in plan["scenarios"] for gate in scenario["gates"]]
    sharing = sum(c["kind"] == "confidence" and c.get("required", True) for _, c in asked)
    right, wrong, others = 0, 0, 0
    for scenario, criterion in asked:
        name = f"{scenario}: {criterion['id']}" if scenario else criterion["id"]
        row = rows.pop((scenario, criterion["id"]), None)
        if row is None:
            told = ["planned, and not in criteria.csv"]
        elif parsed(criterion["metric"])[0] in BY_LABELLED_ANSWERS and row["n"] != "0":
            told = disagreements(row, concluded(criterion, row))
            print(f"units not recomputed {name}: {row['successes']} of {row['n']}")
            others += not told
        elif parsed(criterion["metric"])[0] not in METRICS:
            told = [f"the metric {criterion['metric']} is unknown to this oracle"]
        else:
            found = recompute(plan, trials, criterion, scenario, sharing)
            told = disagreements(row, found)
            if not told:
                print(f"right {name}: {row['successes']} of {row['n']}, {row['lower']} to {row['upper']}, {row['verdict']}")
            else:
                ill = METRICS[parsed(criterion["metric"])[0]][2]
                told += [f"{trial}: {units}" for trial, units in found["details"] if ill in units][:12]
        right, wrong = right + (not told), wrong + bool(told)
        print(*(f"WRONG {name}: {line}\n" for line in told), sep="", end="")
    for left in rows:
        print(f"WRONG {left}: in criteria.csv, and not planned")
        wrong += 1
    print(f"{right - others} rows recomputed, {others} of units that are not recomputed, {wrong} wrong")
    return 1 if wrong or not right else 0


def compared(a, b, rows, sides):
    """Rows of comparison.csv (sides A and B), or of pairs.csv, where the sides are variants of one run."""
    (plan_a, trials_a), (plan_b, trials_b) = loaded(a), loaded(b)
    made = {}
    for side in sides:
        one, other = (name.rpartition("@")[2] if "@" in name else None for name in side)
        made[side] = comparison.rows(comparison.by_case(trials_a, one), comparison.by_case(trials_b, other), plan_a, plan_b)
    written = {key: row for key, row in rows.items()}
    for side, found in made.items():
        for key, mine in found.items():
            row = written.get((*side, key))
            if "taken" in mine:
                mine |= {"cases": int(row["cases"]) if row else 0, "p": float(row["p"]) if row and row["p"] else None}
            elif row and "drawn" in row["method"] and row["p"]:
                # A drawn p-value depends on its seed: it is held against an exact or another drawn one, and then taken as it stands.
                mine["drawn"], p = True, float(row["p"])
                true = comparison.exchanged(mine["pairs"], exact=False) if mine["p"] == "drawn" else mine["p"]
                error = 5 * (max(true * (1 - true), 1e-4) / 1999) ** 0.5
                mine["p"] = p if abs(p - true) < error else true
            elif mine["p"] == "drawn":
                mine["p"] = comparison.exchanged(mine["pairs"], exact=True) if "exact" in row["method"] else None
    comparison.corrected([row for found in made.values() for row in found.values()])
    right, wrong, others = 0, 0, 0
    for side, found in made.items():
        for key, mine in found.items():
            if "taken" not in mine:
                comparison.concluded(key, mine)
            row = rows.pop((*side, key), None)
            told = ["not in the table"] if row is None else list(differing(row, mine))
            right, wrong, others = right + (not told), wrong + bool(told), others + ("taken" in mine and not told)
            print(*(f"WRONG {' and '.join(side)}: {key}: {line}\n" for line in told), sep="", end="")
    for left in rows:
        print(f"WRONG {left}: in the table, and not compared")
        wrong += 1
    print(f"{right - others} rows recomputed, {others} of units that are not recomputed, {wrong} wrong")
    return 1 if wrong or not right else 0


def differing(row, mine):
    taken = "taken" in mine
    for column in ("family", "gated") if taken else ("cases", "better", "worse", "finding", "family", "gated"):
        if str(mine.get(column)).lower() != row[column].lower():
            yield f"{column}: {row[column]} in the table, {mine.get(column)} here"
    figures = ("a", "b", "difference", "low", "high", "p", "p_adjusted", "level")
    for column in figures[-2:] if taken else figures:
        value = mine.get(column)
        if mine.get("drawn") and column in ("low", "high") and value is not None:
            # The exact test at a drawn end: its probability is that of the level, up to the error of 9,999 draws.
            chance = 2 * mine["subsets"].one_sided(float(row[column]), 1 if column == "low" else -1)
            if abs(chance - mine["level"]) > 10 * (mine["level"] / 9999) ** 0.5:
                yield f"{column}: {row[column]} in the table, where p = {chance}, and {value} here"
            continue
        if (value is None) != (row[column] == "") or value is not None and abs(float(row[column]) - value) > TOLERANCE:
            yield f"{column}: {row[column]} in the table, {value} here"


def main(folders):
    if len(folders) == 2:
        rows = table(folders[1], "comparison.csv", lambda row: (row["side_a"], row["side_b"], row["criterion"]))
        return compared(*folders, rows, sorted({key[:2] for key in rows}))
    result = criteria(folders[0])
    if os.path.exists(os.path.join(folders[0], "pairs.csv")):
        rows = table(folders[0], "pairs.csv", lambda row: (row["side_a"], row["side_b"], row["criterion"]))
        result |= compared(folders[0], folders[0], rows, sorted({key[:2] for key in rows}))
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
