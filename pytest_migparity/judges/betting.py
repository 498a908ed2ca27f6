"""Anytime-valid certificates on paired episodes: a gambler's capital against "a loss of the margin" and "no loss".

Each pair is (b, D): the baseline's success, 0 or 1, and D = candidate - baseline, -1, 0 or 1, in a fixed random order.
Capital starts at 1 and is multiplied by 1 + l (D + margin), or for the other certificate by 1 - u D, with bets that
depend on earlier pairs alone. Under its null hypothesis each factor has expectation <= 1, so capital reaches 1/alpha
with probability at most alpha, however often one looks (Ville's inequality). Bets are the Kelly bets of a working guess
of how often pairs are lost and gained; a bad guess costs pairs, never validity.

Plain scalars and loops, so that the benchmark can compile these very functions.
"""

import math
from collections.abc import Sequence

HALF_WIDTH = 20.0  # pairs that the guess of discordance counts for before data outweigh it (facts/closedloop.md: w)
CORRELATED, INDEPENDENT = 0.3, 1.0  # guesses of lost pairs over p (1 - p): outcomes correlated by 0.7, or not at all
BELIEF_PASS, BELIEF_FAIL = 0.1, 0.03  # first belief in the second guess; chosen by simulation
ALMOST = 0.98  # of the largest bet: one lost pair never ruins, and 29 of 29 still certify a margin of .10
NEVER = -1


def one_bet(lost: float, gained: float, centre: float, sign: float) -> float:
    """The l >= 0 that maximises E log(1 + l sign (D - centre)) where a pair is lost or gained so often.

    The condition is a quadratic equation in l, since D has three values.
    """
    x = (sign * (-1.0 - centre), sign * (1.0 - centre), -sign * centre)
    tied = max(1.0 - lost - gained, 0.0)
    drift = lost * x[0] + gained * x[1] + tied * x[2]
    if drift <= 0.0:
        return 0.0
    most = ALMOST / max(-x[0], -x[1], -x[2])
    b = lost * x[0] * (x[1] + x[2]) + gained * x[1] * (x[0] + x[2]) + tied * x[2] * (x[0] + x[1])
    a = x[0] * x[1] * x[2]
    if abs(a) < 1e-14:
        return most if b >= 0.0 else min(most, -drift / b)
    square = b * b - 4.0 * a * drift
    if square < 0.0:
        return most
    root = math.sqrt(square)
    first, second = (-b + root) / (2.0 * a), (-b - root) / (2.0 * a)
    best = most
    if 0.0 < first < best:
        best = first
    if 0.0 < second < best:
        best = second
    return best


def two_bets(x: Sequence[float], y: Sequence[float], chance: Sequence[float], first: float,
             second: float) -> tuple[float, float]:
    """(l, k): the l >= 0 and k that maximise E log(1 + l x + k y) over four outcomes, by damped Newton steps.

    `first`, `second`: where to start. Every factor stays above 0.
    """
    for i in range(4):
        if 1.0 + first * x[i] + second * y[i] < 1e-6:
            first, second = 0.0, 0.0
    for _ in range(12):
        gx = gy = hxx = hxy = hyy = 0.0
        for i in range(4):
            z = 1.0 + first * x[i] + second * y[i]
            u = chance[i] / z
            v = u / z
            gx += u * x[i]
            gy += u * y[i]
            hxx += v * x[i] * x[i]
            hxy += v * x[i] * y[i]
            hyy += v * y[i] * y[i]
        hxx += 1e-12
        hyy += 1e-12
        determinant = max(hxx * hyy - hxy * hxy, 1e-300)
        dx, dy = (gx * hyy - gy * hxy) / determinant, (gy * hxx - gx * hxy) / determinant
        step = 1.0
        while step > 1e-6:
            fits = first + step * dx >= 0.0
            for i in range(4):
                z = 1.0 + first * x[i] + second * y[i]
                if 1.0 + (first + step * dx) * x[i] + (second + step * dy) * y[i] < 0.02 * z + 1e-7:
                    fits = False
            if fits:
                break
            step *= 0.6
        if step <= 1e-6:
            break
        first += step * dx
        second += step * dy
        if abs(step * dx) < 1e-5 and abs(step * dy) < 1e-5:
            break
    return first, second


def working_guess(sign: int, lost: int, gained: int, pairs: int, aim: float, spread: float,
                  likely: float) -> tuple[float, float]:
    """(lost, gained) chances of the next pair if the certificate is true: difference `aim` on average.

    `spread`: expected lost pairs among HALF_WIDTH of them; `likely`: the chance that the baseline succeeds.
    """
    if sign > 0:
        even = min((0.5 * (lost + gained) + spread) / (pairs + HALF_WIDTH), likely, 1.0 - likely)
        down = max(even - 0.5 * aim, 1e-4 * likely * (1.0 - likely))
    else:
        down = max((gained + spread) / (pairs + HALF_WIDTH), 1e-4) + max(-aim, 0.0)
    up = max(down + aim, 1e-4)
    return min(down, ALMOST * likely), min(up, ALMOST * (1.0 - likely))


def certificate(baseline: Sequence[int], difference: Sequence[int], sign: int, margin: float, rate: float,
                weight: float, episodes: int, known: bool, target: float) -> tuple[int, float]:
    """(pairs, capital): after how many pairs log capital reached `target` (NEVER: not), and the largest it was.

    sign 1: against "the mean of D is -margin or less", what a PASS needs. sign -1: against "the mean of D is 0 or
    more", what a FAIL needs; it counts from the pair where the loss so far is the margin at least.
    rate: a guess of the baseline's rate that counts for `weight` episodes. known: the baseline's outcomes were recorded
    before, at `rate`, and these pairs are a random draw of that record: its surprise is bet on beside (zero mean).
    episodes: 0 for the population's mean; N for the mean over these N registered episodes, `rate` being theirs.
    """
    lost = gained = successes = 0
    capital, best = 0.0, 0.0
    first, second = 0.0, 0.0
    belief = BELIEF_PASS if sign > 0 else BELIEF_FAIL
    for n in range(len(baseline)):
        net = gained - lost
        likely = rate if known else (successes + weight * rate) / (n + weight)
        centre = -margin if sign > 0 else 0.0
        loss = 0.0 if sign > 0 else max(margin, (HALF_WIDTH * 2.0 * margin - net) / (n + HALF_WIDTH))
        aim = -loss
        if episodes > 0:
            left = episodes - n
            likely = (episodes * rate - successes) / left
            centre = (-episodes * margin - net) / left if sign > 0 else -net / left
            aim = (-episodes * loss - net) / left
            if sign > 0 and centre < -likely - 1e-12:
                return n, math.inf  # the episodes that are left cannot make it a loss of the margin any more
            if sign < 0 and centre > 1.0 - likely + 1e-12:
                capital = math.inf
        share = rate if known else likely
        unit = HALF_WIDTH * share * (1.0 - share)
        spread = unit * (CORRELATED + belief * (INDEPENDENT - CORRELATED))
        down, up = working_guess(sign, lost, gained, n, aim, spread, likely)
        b, d = baseline[n], difference[n]
        if known:
            some, none = 1.0 if likely > 0.0 else 0.0, 1.0 if likely < 1.0 else 0.0
            tie = sign * -centre
            x = (sign * (-1.0 - centre) * some, tie * some, sign * (1.0 - centre) * none, tie * none)
            y = ((1.0 - likely) * some, (1.0 - likely) * some, -likely * none, -likely * none)
            chance = (down, max(likely - down, 0.0), up, max(1.0 - likely - up, 0.0))
            first, second = two_bets(x, y, chance, first, second)
        else:
            first = one_bet(down, up, centre, sign)
            if sign > 0:  # no more than it takes, where the pair ties
                first = min(first, (math.exp(target - capital) - 1.0) / margin + 1e-9)
        capital += math.log(max(1.0 + first * sign * (d - centre) + second * (b - likely), 1e-300))
        odds = belief / (1.0 - belief)
        near, far = lost + gained + 2.0 * unit * CORRELATED, lost + gained + 2.0 * unit * INDEPENDENT
        if d == 0:
            near, far = max(n + HALF_WIDTH - near, 1e-9), max(n + HALF_WIDTH - far, 1e-9)
        odds *= far / max(near, 1e-9)
        belief = odds / (1.0 + odds)
        lost += d < 0
        gained += d > 0
        successes += b
        best = max(best, capital)
        if capital >= target and (sign > 0 or lost - gained >= margin * (n + 1)):
            return n + 1, best
    return NEVER, best
