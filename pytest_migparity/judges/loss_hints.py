"""What the shape of the difference suggests, likeliest first. Hints never decide an outcome."""

from __future__ import annotations

import numpy as np

from pytest_migparity.core.verdict import Check, Note, note

from .loss_checks import effective, violated
from .traj_align import Aligned

CONSTANT_SPREAD = 0.1  # sd(d) below a tenth of |mean d|: one factor explains the pair
RATIO_AT_LEAST = 0.01  # smaller factors are not what a reduction or accumulation mistake makes
GROWTH = 10.0
ORDER_BROKEN = 0.5  # facts/loss.md: loader bugs .43-.64, other data .01, same data on another vendor >= .998


def hints_of(pair: Aligned, checks: tuple[Check, ...]) -> tuple[Note, ...]:
    """Likely causes of a violated pair; empty where nothing is violated."""
    if pair.broken.any():
        return tuple(_broken(pair))
    beyond = violated(checks)
    d = pair.d[pair.usable]
    if not beyond or not d.size:
        return ()
    values = {check.name: check.value for check in checks if not check.blocked}
    found: list[Note] = []
    if "order" in values and values["order"] < ORDER_BROKEN:
        found.append(note("hint-data-order", order=values["order"]))
    mean = float(d.mean())
    if d.size >= 5 and abs(mean) >= RATIO_AT_LEAST and float(d.std()) <= CONSTANT_SPREAD * abs(mean):
        with np.errstate(over="ignore"):
            found.append(note("hint-constant-ratio", ratio=float(np.exp(mean))))
    if "step0" in beyond:
        found.append(note("hint-forward", step0=values["step0"]))
    elif "step0" in values:
        quiet = max(effective(checks, "step0"), values["step0"])
        late = float(np.abs(d[d.size // 2:]).mean())
        if late > GROWTH * quiet:
            step, peak = pair.step[pair.usable], int(np.argmax(np.abs(d)))
            grown = float(abs(d[peak])) - values["step0"]
            found.append(note("hint-optimizer", peak=float(abs(d[peak])), step=int(step[peak]),
                              slope=grown / max(1, int(step[peak] - step[0]))))
    return tuple(found)


def _broken(pair: Aligned) -> list[Note]:
    i = int(np.flatnonzero(pair.broken)[0])
    finite = (bool(np.isfinite(pair.baseline[i])), bool(np.isfinite(pair.candidate[i])))
    if all(finite):
        return [note("hint-sign", side="baseline" if pair.baseline[i] <= 0 else "candidate", step=int(pair.step[i]))]
    return [note("hint-non-finite", side="candidate" if finite[0] else "baseline", step=int(pair.step[i]))]
