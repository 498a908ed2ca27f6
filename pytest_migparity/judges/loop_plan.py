"""How many pairs a margin costs: the betting test's pairs to a PASS where nothing was lost."""

from __future__ import annotations

import math

from .betting import ALMOST, one_bet

_LEARNING = 0.4  # pairs, over the margin: what not knowing the discordance costs; fitted to simulated means, within 7 %
_RUIN = 1e-9


def pairs_needed(discordant: float, margin: float, alpha: float) -> int:
    """Mean pairs until the betting test certifies `margin`, where lost and gained pairs balance.

    ln(1/alpha) over the growth of capital per pair under the best constant bet, and what learning that bet takes.
    discordant: the share of pairs that are lost or gained; 0 is the least there is, whatever the policy.
    """
    half = discordant / 2
    bet = one_bet(half, half, -margin, 1.0)
    growth = (half * math.log(max(1 - bet * (1 - margin), _RUIN)) + half * math.log(1 + bet * (1 + margin))
              + (1 - discordant) * math.log(1 + bet * margin))
    least = math.log(1 / alpha) / math.log(1 + ALMOST * margin / (1 - margin))
    if growth <= 0:
        return -1
    return math.ceil(max(least, math.log(1 / alpha) / growth + (_LEARNING / margin if discordant > 0 else 0.0)))


def discordance(rate: float, correlation: float) -> float:
    """Share of pairs that are lost or gained where both sides succeed at `rate` and outcomes correlate so."""
    return 2 * rate * (1 - rate) * (1 - correlation)
