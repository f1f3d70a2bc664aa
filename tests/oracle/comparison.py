"""Rows of comparison.csv and pairs.csv: two settings, paired by case."""
import itertools
import math
import random
import statistics
from fractions import Fraction

from bounds import tail_bound
from criteria import BY_LABELLED_ANSWERS, METRICS, counts_for, parsed, target
from expectations import case_pass_rate

ALPHA, MARGIN, TIME_MARGIN = 0.05, 0.02, 0.10
MEDIAN_ROW, TAIL_ROW = "turn time (median case)", "turn time (p95)"


def lower_is_better(metric):
    """A metric whose success is a violation."""
    return METRICS[parsed(metric)[0]][2]


# Figures of one side.

def by_case(trials, variant=None):
    cases = {}
    for trial in trials:
        if trial.lane["arm"] == "main" and variant in (None, trial.lane["variant"]):
            case = cases.setdefault((trial.scenario["name"], trial.case["case"]), {})
            case.setdefault(trial.lane["variant"], {})[trial.lane["repetition"]] = trial
    return cases


def paired_cases(a, b):
    """Per case on both sides the pairs of repetitions of each pair of variants; lone variants are paired whatever their names."""
    found = []
    for name in a.keys() & b.keys():
        ours, theirs = a[name], b[name]
        names = [(one, one) for one in ours if one in theirs] or ([(*ours, *theirs)] if len(ours) == len(theirs) == 1 else [])
        if names:
            found.append([(ours[one], theirs[other]) for one, other in names])
    return found


def rates(pairs, units):
    """Per case the mean rate of A and of B over the repetitions that both have."""
    found = []
    for pair in pairs:
        sides = []
        for ours, theirs in pair:
            both = [(units(ours[number]), units(theirs[number])) for number in ours.keys() & theirs.keys()]
            both = [(one, other) for one, other in both if one and other]
            if both:
                one, other = ([unit for units in side for unit in units] for side in zip(*both))
                sides.append((Fraction(sum(one), len(one)), Fraction(sum(other), len(other))))
        if sides:
            found.append((sum(a for a, _ in sides) / len(sides), sum(b for _, b in sides) / len(sides)))
    return found


# The sign-flip test of a shift: flipping a subset of the differences changes their sum by twice its own.

class Subsets:
    """The subsets of some differences by size and sum; those of differences that are 0 only by their size."""

    def __init__(self, differences):
        self.scale = math.lcm(*(value.denominator for value in differences))
        kinds = {(0, 0): 1}
        for value in (int(value * self.scale) for value in differences if value):
            grown = dict(kinds)
            for (size, total), number in kinds.items():
                grown[size + 1, total + value] = grown.get((size + 1, total + value), 0) + number
            kinds = grown
        self.kinds, zeros = kinds, sum(not value for value in differences)
        counts = [math.comb(zeros, taken) for taken in range(zeros + 1)]
        self.up_to, self.everything = list(itertools.accumulate(counts)), 2 ** len(differences)

    def one_sided(self, shift, towards):
        """Share of the subsets whose sum is at most their size times the shift, all of it mirrored where `towards` is -1."""
        shift, hits = towards * shift, 0
        for (size, total), number in self.kinds.items():
            room = size * shift - towards * total / self.scale
            if abs(shift) < 1e-12:
                hits += number * self.up_to[-1] * (room >= -1e-12)
            else:
                # So many of the differences that are 0 must be in the subset, or may be.
                taken = -room / shift
                most = math.floor(taken + 1e-9) if shift < 0 else math.ceil(taken - 1e-9) - 1
                some = self.up_to[min(most, len(self.up_to) - 1)] if most >= 0 else 0
                hits += number * (some if shift < 0 else self.up_to[-1] - some)
        return hits / self.everything

    def p(self):
        return min(1.0, 2 * min(self.one_sided(0.0, 1), self.one_sided(0.0, -1)))

    def end(self, level, towards):
        """The shift furthest to that side that the test does not reject."""
        held = lambda shift: 2 * self.one_sided(shift, -towards) > level
        if held(float(towards)):
            return float(towards)
        low, high = (0.0, float(towards)) if held(0.0) else (-float(towards), 0.0)
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if held(middle) else (low, middle)
        return low


def least(differences, sign, alpha):
    """A lower bound on the gains less an upper bound on the losses, over cases like these."""
    n = len(differences)
    gains, losses = (float(sum(max(way * value, 0) for value in differences)) for way in (sign, -sign))
    return tail_bound(n, gains, alpha / 4) - (1 - tail_bound(n, n - losses, alpha / 4))


# Turn times.

NO_ANSWER = 13.8


def nearest_rank(times, q):
    return sorted(times)[math.ceil(q * len(times) - 1e-9) - 1]


def turn_times(trials):
    return [turn.end["took_us"] / 1e6 if turn.answer() else math.inf for trial in trials.values() for turn in trial.turns.values()]


def common(pairs):
    """The trials of the repetitions that both sides have."""
    def both(ours, theirs):
        return tuple({number: trial for number, trial in side.items() if number in ours and number in theirs} for side in (ours, theirs))
    return [[both(*pair) for pair in case] for case in pairs]


def log_ratios(pairs):
    medians = [[tuple(statistics.median(turn_times(side)) for side in pair) for pair in case] for case in pairs]
    logs = [[statistics.fmean(math.log(pair[side]) for pair in case) for side in (0, 1)] for case in medians if case]
    values = [ratio(*case) for case in logs]
    return values, *(statistics.median(math.exp(one[side]) for one in logs) for side in (0, 1))


def ratio(a, b):
    """The logarithm of B's time over A's; a side without an answer to half of its turns is slower than any time."""
    if math.inf in (a, b):
        return NO_ANSWER * ((b == math.inf) - (a == math.inf))
    return b - a if abs(b - a) > 1e-12 else 0.0


def signed_rank_null(n):
    """The number of subsets of the ranks 1 to n by their sum."""
    counts = [1]
    for rank in range(1, n + 1):
        counts = [(counts[k] if k < len(counts) else 0) + (counts[k - rank] if k >= rank else 0) for k in range(len(counts) + rank)]
    return counts


def walsh(values):
    return sorted((one + other) / 2 for one, other in itertools.combinations_with_replacement(values, 2))


def signed_rank_p(values):
    averages, n = walsh(values), len(values)
    smaller = min(sum(one <= 0 for one in averages), sum(one >= 0 for one in averages))
    return min(1.0, 2 * sum(signed_rank_null(n)[: smaller + 1]) / 2**n)


def walsh_interval(values, alpha):
    averages, n, total, skipped = walsh(values), len(values), 0, -1
    for count in signed_rank_null(n):
        total += count
        if total / 2**n > alpha / 2 + 1e-12:
            break
        skipped += 1
    return None if skipped < 0 else (averages[skipped], averages[-1 - skipped])


def exchanged(pairs, exact, draws=4000):
    """The p-value of the ratio of both p95 under exchanges of whole cases: of all, or drawn, with an error of sqrt(p(1 - p)/n)."""
    cases = [tuple([t for pair in case for t in turn_times(pair[side])] for side in (0, 1)) for case in pairs]

    def size(flips):
        sides = [[], []]
        for (a, b), flip in zip(cases, flips):
            sides[0] += b if flip else a
            sides[1] += a if flip else b
        a, b = (min(nearest_rank(side, 0.95), 1e9) for side in sides)
        return abs(math.log(b / a))

    seen, rng = size([False] * len(cases)) - 1e-12, random.Random(24)
    if exact:
        ways = list(itertools.product(*([False, True] if sorted(a) != sorted(b) else [False] for a, b in cases)))
        return sum(size(flips) >= seen for flips in ways) / len(ways)
    return sum(size([rng.random() < 0.5 for _ in cases]) >= seen for _ in range(draws)) / draws


# Corrections over all rows that are read together.

def holm(values, alpha):
    order, adjusted, levels, largest, stopped = sorted(range(len(values)), key=values.__getitem__), {}, {}, 0.0, None
    for step, place in enumerate(order):
        left = len(values) - step
        largest = max(largest, min(1.0, left * values[place]))
        stopped = stopped or (alpha / left if values[place] > alpha / left else None)
        adjusted[place], levels[place] = largest, stopped or alpha / left
    return adjusted, levels


def benjamini_hochberg(values, alpha):
    order, adjusted, n, smallest = sorted(range(len(values)), key=values.__getitem__), {}, len(values), 1.0
    for step in range(n, 0, -1):
        smallest = min(smallest, values[order[step - 1]] * n / step)
        adjusted[order[step - 1]] = smallest
    rejected = max((step for step in range(1, n + 1) if values[order[step - 1]] <= step * alpha / n), default=0)
    level = {place: (rejected if step < rejected else min(rejected + 1, n)) * alpha / n for step, place in enumerate(order)}
    for place in level:  # ties of the last one rejected
        if rejected and values[place] <= values[order[rejected - 1]]:
            level[place] = rejected * alpha / n
    return adjusted, level


# Rows.

def units_of(criterion, plan, scenario):
    name, words, named = parsed(criterion["metric"])
    extra = [plan["machines"]] if name in ("state_machine_conformance", "first_attempt_rate") else []
    if name.startswith("latency"):
        extra = [target(criterion["target"])[1]]

    def units(trial):
        reasons = {**(trial.scenario.get("excluded_from") or {}), **(trial.case.get("excluded_from") or {})}
        if criterion["id"] in reasons or not counts_for(criterion, scenario, trial):
            return []
        return METRICS[name][0](trial, *extra, *words, **named) or []

    return units


def rows(a, b, plan_a, plan_b):
    """Rows before correction, by criterion: both sides are trials by case."""
    pairs, found = paired_cases(a, b), {}
    asked = [("", one) for one in plan_b["criteria"]["criteria"]]
    asked += [(s["name"], gate) for s in plan_b["scenarios"] for gate in s["gates"] if gate["metric"] != "case_pass_rate"]
    asked = [(scenario, one) for scenario, one in asked if not one.get("self_test")]
    before = {("", one["id"]): one for one in plan_a["criteria"]["criteria"]}
    before.update({(s["name"], gate["id"]): gate for s in plan_a["scenarios"] for gate in s["gates"]})
    for scenario, criterion in asked:
        other = before.get((scenario, criterion["id"]))
        if other and other["metric"] == criterion["metric"]:
            key = f"{scenario}/{criterion['id']}" if scenario else criterion["id"]
            proxy = criterion["metric"] == "satisfaction" and plan_b["ratings"] is None
            required = any(one.get("required", one["kind"] != "point") for one in (criterion, other)) and not proxy
            if parsed(criterion["metric"])[0] in BY_LABELLED_ANSWERS:
                found[key] = {"taken": True, "gated": required}
                continue
            found[key] = rate_row(rates(pairs, units_of(criterion, plan_b, scenario)), required, lower_is_better(criterion["metric"]))
    gates = [gate for plan in (plan_a, plan_b) for s in plan["scenarios"] for gate in s["gates"] if gate["metric"] == "case_pass_rate"]
    found["cases"] = rate_row(rates(pairs, case_pass_rate), any(gate.get("required", True) for gate in gates), False)
    timed = any(one["metric"].startswith("latency") and one.get("required", one["kind"] != "point") for plan in (plan_a, plan_b) for one in plan["criteria"]["criteria"])
    pairs = common(pairs)
    values, median_a, median_b = log_ratios(pairs)
    row = {"values": values, "gated": timed, "cases": len(values), "a": median_a, "b": median_b, "lower": True}
    row["difference"] = math.expm1(statistics.median(walsh(values)))
    row["p"] = signed_rank_p(values) if any(values) else None
    row["better"], row["worse"] = sum(v < 0 for v in values), sum(v > 0 for v in values)
    found[MEDIAN_ROW] = row
    sides = [[t for case in pairs for pair in case for t in turn_times(pair[side])] for side in (0, 1)]
    tails = [nearest_rank(side, 0.95) for side in sides]
    each = [[nearest_rank([t for pair in case for t in turn_times(pair[side])], 0.95) for side in (0, 1)] for case in pairs]
    row = {"gated": False, "cases": len(pairs), "a": tails[0], "b": tails[1], "difference": tails[1] / tails[0] - 1}
    # A p95 without an answer has no value.
    row.update({key: None for key in ("a", "b", "difference") if not math.isfinite(row[key])})
    row["better"], row["worse"] = sum(b < a for a, b in each), sum(b > a for a, b in each)
    row["p"] = "drawn" if any(sorted(turn_times(x)) != sorted(turn_times(y)) for case in pairs for x, y in case) else None
    row["pairs"] = pairs
    found[TAIL_ROW] = row
    return found


def rate_row(sides, gated, lower):
    differences = [b - a for a, b in sides]
    row = {"differences": differences, "gated": gated, "cases": len(sides), "lower": lower, "p": None}
    up, down = sum(value > 0 for value in differences), sum(value < 0 for value in differences)
    row["better"], row["worse"] = (down, up) if lower else (up, down)
    if sides:
        row["a"], row["b"], row["difference"] = (float(sum(values) / len(sides)) for values in ([a for a, _ in sides], [b for _, b in sides], differences))
    if any(differences):
        row["subsets"] = Subsets(differences)
        row["p"] = row["subsets"].p()
    return row


def corrected(all_rows):
    """Sets p_adjusted, level and family of rows that are read together: Holm over required ones, Benjamini and Hochberg over others."""
    for gated, correct in ((True, holm), (False, benjamini_hochberg)):
        family = [row for row in all_rows if row["gated"] == gated and row["cases"]]
        adjusted, levels = correct([1.0 if row["p"] is None else row["p"] for row in family], ALPHA)
        for place, row in enumerate(family):
            row["p_adjusted"] = None if row["p"] is None else adjusted[place]
            row["level"], row["family"] = levels[place], len(family)


def concluded(key, row):
    """Sets the interval and the finding. What would have been seen rests on measured margins, which tests in Rust hold by simulation."""
    if not row["cases"]:
        row["finding"], row["family"] = "not compared", 0
        return
    slack = (TIME_MARGIN if "differences" not in row else MARGIN) + 1e-12
    gain, limit = (-1 if row.get("lower", True) else 1) * (row["difference"] or 0), None
    if "differences" in row:
        d = row["differences"]
        if row["p"] is None:
            row["low"], row["high"] = least(d, 1, row["level"]), -least(d, -1, row["level"])
        else:
            row["low"], row["high"] = (row["subsets"].end(row["level"], way) for way in (-1, 1))
            if len(set(d)) == 1:
                # All cases changed alike: at least so many of all cases do (Clopper and Pearson), and the others may not,
                # or entirely.
                share, shift = (row["level"] / 2) ** (1 / len(d)), float(d[0])
                ends = (share * shift, share * shift + math.copysign(1 - share, shift))
                row["low"], row["high"] = min(row["low"], *ends), max(row["high"], *ends)
        limit = least(d, -1 if row["lower"] else 1, ALPHA)
    elif key == MEDIAN_ROW:
        interval, at_five = walsh_interval(row["values"], row["level"]), walsh_interval(row["values"], ALPHA)
        if interval:
            row["low"], row["high"] = map(math.expm1, interval)
        limit = -math.expm1(at_five[1]) if at_five else None
    if limit is not None and row.get("low") is not None:
        # "Not worse" is claimed at no lower level than that of the interval.
        limit = min(limit, -row["high"] if row.get("lower", True) else row["low"])
    if row["p"] is None:
        row["finding"] = "no case changed"
    elif row["p"] <= row["level"] and abs(gain) > slack:
        row["finding"] = "better" if gain > 0 else "worse"
    elif limit is not None and limit > -slack:
        row["finding"] = "not worse"
    else:
        row["finding"] = "inconclusive"
