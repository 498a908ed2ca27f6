"""What the shape of the difference suggests, likeliest first, each with its evidence. Hints never decide an outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pytest_migparity.core.evidence import Trajectory
from pytest_migparity.core.verdict import Check, Divergence, Note, note

from .loss_checks import violated
from .loss_growth import growth_of
from .traj_align import Aligned, series_of
from .traj_stats import ORDER_STEPS, spearman

if TYPE_CHECKING:
    from pytest_migparity.core.evidence import Floats, Ints

CONSTANT_SPREAD = 0.1  # sd(d) below a tenth of |mean d|: one factor explains the pair
RATIO_AT_LEAST = 0.01  # smaller factors are not what a reduction or accumulation mistake makes
ORDER_BROKEN = 0.5  # facts/loss.md: loader bugs .43-.64, other data .01, same data on another vendor >= .998
ORDER_SAME = 0.9
SHIFTS = (1, 2, 3, 4, 5, 8, 10, 16, 32)
EQUAL_START = 2e-5  # another vendor's chip: 5e-6 at 95 %
OTHER_STREAM = (1e-3, 2e-2)  # step 0 of the same model under another random stream: 2.5e-3, 7.6e-3 at 95 %
GROWS = 10.0
NEAR = 2  # logged points between a resume or a change of the learning rate and the divergence it explains
GROWTH = {"constant": "hint-growth-constant", "linear": "hint-growth-linear", "exponential": "hint-growth-exponential"}
KINK = 0.05  # the learning rate's slope changes by more than this share of its peak per step: the end of a warm-up


def hints_of(pair: Aligned, checks: tuple[Check, ...], first: Divergence | None,
             tables: tuple[Trajectory, Trajectory]) -> tuple[Note, ...]:
    """Likely causes of a pair that did not pass: the most specific first; empty where no check is beyond its limit."""
    if pair.broken.any():
        return tuple(_broken(pair))
    beyond = violated(checks)
    d = pair.d[pair.usable]
    if not beyond or not d.size:
        return ()
    values = {check.name: check.value for check in checks if not check.blocked}
    found = [*_at_event(first, tables), *_order(pair, values.get("order"))]
    mean = float(d.mean())
    if d.size >= 5 and abs(mean) >= RATIO_AT_LEAST and float(d.std()) <= CONSTANT_SPREAD * abs(mean):
        with np.errstate(over="ignore"):
            found.append(note("hint-constant-ratio", ratio=float(np.exp(mean))))
    if "step0" in values:
        found += _start(pair, values["step0"], values.get("order"))
    return tuple(found)


def _at_event(first: Divergence | None, tables: tuple[Trajectory, Trajectory]) -> list[Note]:
    """A resume or a change of the learning rate's course just before the first divergence."""
    if first is None or first.kind != "step":
        return []
    at, found = int(first.at), []
    reach = NEAR * max(table.interval for table in tables)
    for side, table in zip(("baseline", "candidate"), tables, strict=True):
        joint = next((joint for joint in table.joints if 0 <= at - joint <= reach), None)
        if joint is not None:
            found.append(note("hint-resume", side=side, step=joint))
    for step in _kinks(tables[0]).tolist():
        if 0 <= at - step <= reach:
            found.append(note("hint-lr-change", step=step))
            break
    return found


def _kinks(table: Trajectory) -> Ints:
    """Steps at which the learning rate changes its course: the end of a warm-up, a drop."""
    rate = series_of(table, "lr")
    if rate is None or rate.step.size < 4 or not np.isfinite(rate.loss).all() or not rate.loss.max() > 0:
        return np.zeros(0, dtype=np.int64)
    slope = np.diff(rate.loss / rate.loss.max())
    at = np.flatnonzero(np.abs(np.diff(slope)) > np.maximum(KINK, rate.quantum[1:-1] * 4 / rate.loss.max())) + 1
    return rate.step[at]


def _order(pair: Aligned, order: float | None) -> list[Note]:
    """Another order of the data; or the same, some steps late: the first differences agree at a shift."""
    if order is None or order >= ORDER_BROKEN or np.count_nonzero(pair.usable) < ORDER_STEPS:
        return []
    a, b = (np.diff(np.log(side[pair.usable])) for side in (pair.baseline, pair.candidate))
    for shift in (each for by in SHIFTS for each in (by, -by) if a.size - by >= ORDER_STEPS):
        agree = _shifted(a, b, shift)
        if agree >= ORDER_SAME:
            return [note("hint-shift", shift=shift, order=order, shifted=agree)]
    return [note("hint-data-order", order=order)]


def _shifted(a: Floats, b: Floats, shift: int) -> float:
    """Spearman's correlation of b[t + shift] with a[t]."""
    return spearman(a[:-shift], b[shift:]) if shift > 0 else spearman(a[-shift:], b[:shift])


def _start(pair: Aligned, step0: float, order: float | None) -> list[Note]:
    """Unequal starts are weights, forward or another random stream; equal ones that part are training's."""
    if step0 > EQUAL_START:
        other = OTHER_STREAM[0] <= step0 <= OTHER_STREAM[1] and (order is None or order >= ORDER_BROKEN)
        return [note("hint-forward", step0=step0), *([note("hint-other-stream", step0=step0)] if other else [])]
    d = np.abs(pair.d[pair.usable])
    step, peak = pair.step[pair.usable], int(np.argmax(d))
    shape = growth_of(pair, int(step[0]))
    growth = [] if shape is None else [note(GROWTH[shape.shape], doubling=shape.doubling)]
    if float(d[d.size // 2:].mean()) <= GROWS * step0:
        return growth
    return [note("hint-optimizer", peak=float(d[peak]), step=int(step[peak]),
                 slope=(float(d[peak]) - step0) / max(1, int(step[peak] - step[0]))), *growth]


def _broken(pair: Aligned) -> list[Note]:
    i = int(np.flatnonzero(pair.broken)[0])
    finite = (bool(np.isfinite(pair.baseline[i])), bool(np.isfinite(pair.candidate[i])))
    if all(finite):
        return [note("hint-sign", side="baseline" if pair.baseline[i] <= 0 else "candidate", step=int(pair.step[i]))]
    return [note("hint-non-finite", side="candidate" if finite[0] else "baseline", step=int(pair.step[i]))]
