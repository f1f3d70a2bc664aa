"""Bounds on rates. A cluster is (units, successes); each function gives a lower bound, and `upper_bound` mirrors it."""
import math

STAKES = [1 - 2.0**-j for j in range(1, 12)] + [0.1, 0.25, 1.0]


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


