"""How well L5 tells good pairs of training logs from bad ones, beside every published rule, on labelled real pairs.

    python benchmarks/loss_power.py --data ../shared/data/loss --json

Every pair goes through the real judge: with the floors that `cases.csv` gives it, and without. `ours` is
cross-validated by test case: no pair is judged by constants that were fitted on a pair of its test case (10 folds,
several shuffles). `transfer` is fitted on one software stack and tried on the other. `shipped` are the constants in
loss_departure.py on the same pairs, so in sample. A bad pair is caught where it FAILs, a good one a false alarm where
it does; INCONCLUSIVE is neither, and stays in every denominator. Pairs of another random stream or seed (pos_rng,
pos_seed) are shown and not counted: strict mode does not apply to them. `steps_needed`: the median first prefix (10,
20, 30, 50, 75, 100 steps) from which the outcome is final. `listed`: every pair on the wrong side, with its figures.

--fit prints the constants fitted on all pairs, as loss_departure.py holds them.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from loss_fit import Sample, cross_validate, fit, rates, roc_area, sample, tally
from loss_pairs import NONE, Pair, load, published

from pytest_migparity.core.verdict import Finding, Outcome
from pytest_migparity.judges.loss_departure import SHIPPED

SHUFFLES = 5
PREFIXES = (10, 20, 30, 50, 75, 100)
COUNTED = ("pos", "neg")


def ours(without: Sequence[Sample], floored: Sequence[Sample]) -> dict[str, Any]:
    """Cross-validated rates with and without floors, the areas under the ROC, and what falls on the wrong side."""
    found: dict[str, Any] = {}
    areas = {}
    for name, judged in (("with_floor", floored), ("no_floor", without)):
        shuffles = [cross_validate([*without, *floored], judged, seed) for seed in range(SHUFFLES)]
        each = [tally([(one.pair.bad, outcome) for one, outcome, _ in shuffle]) for shuffle in shuffles]
        found[name] = {key: float(np.mean([one[key] for one in each])) for key in each[0]}
        found[name]["range"] = {key: [min(one[key] for one in each), max(one[key] for one in each)]
                                for key in ("caught", "false_alarm", "inconclusive")}
        areas[name] = float(np.mean([roc_area(np.array([np.nan_to_num(score) for _, _, score in shuffle]),
                                              np.array([one.pair.bad for one, _, _ in shuffle]))
                                     for shuffle in shuffles]))
        found[name]["listed"] = _listed([(one, outcome) for shuffle in shuffles for one, outcome, _ in shuffle])
    return {**found, "auc": areas["no_floor"], "auc_with_floor": areas["with_floor"]}


def _listed(judged: Sequence[tuple[Sample, Outcome]]) -> list[dict[str, Any]]:
    """Bad pairs that were not always caught and good ones that ever failed, with their figures."""
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    samples = {}
    for one, outcome in judged:
        outcomes[one.pair.case][outcome.value] += 1
        samples[one.pair.case] = one
    listed = []
    for case, one in sorted(samples.items()):
        fails = outcomes[case]["FAIL"]
        if fails == 0 if not one.pair.bad else fails == sum(outcomes[case].values()):
            continue
        figures = one.figures
        listed.append({
            "case": case, "label": one.pair.label, "family": one.pair.family, "outcomes": dict(outcomes[case]),
            "note": one.pair.note, "departure": [round(value, 2) for value in one.departure(SHIPPED)],
            "figures": None if figures is None else {
                "late": figures.late, "jump": figures.jump, "movement": figures.movement, "points": figures.points}})
    return listed


def transfer(without: Sequence[Sample], floored: Sequence[Sample]) -> dict[str, Any]:
    """Fitted on one software stack alone, tried on the other."""
    found = {}
    stacks = {"megatron": "NVIDIA/Megatron-LM", "torchtitan": "pytorch/torchtitan"}
    for one, other in (("megatron", "torchtitan"), ("torchtitan", "megatron")):
        scale = fit([each for each in (*without, *floored) if each.pair.source == stacks[one]])
        for name, judged in (("with_floor", floored), ("no_floor", without)):
            found[f"{one}_to_{other}_{name}"] = rates([each for each in judged if each.pair.source == stacks[other]],
                                                      scale)
    return found


def rules(without: Sequence[Sample]) -> dict[str, Any]:
    """Each published rule on the same pairs: what it does not pass counts as caught, or as a false alarm.

    `ours_there`: what our cross-validated score catches with no more false alarms than the rule has.
    """
    ranked = cross_validate(without, without, 0)
    scores = np.array([np.nan_to_num(score) for _, _, score in ranked])
    bad = np.array([one.pair.bad for one, _, _ in ranked])
    worst = np.sort(scores[~bad])[::-1]
    found = {}
    for name in published(ranked[0][0].pair):
        passed = [(one.pair.bad, Outcome.PASS if published(one.pair)[name] else Outcome.FAIL) for one, _, _ in ranked]
        rule = tally(passed)
        alarms = round(rule["false_alarm"] * rule["n_pos"])
        beyond = worst[alarms] if alarms < worst.size else -np.inf
        found[name] = {**rule, "ours_there": float(np.mean(scores[bad] > beyond))}
    return found


def by_label(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Outcomes of the shipped judge per source and relation, with floors where there are some."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in pairs:
        counts[f"{pair.source} | {pair.label} | {pair.relation}"][pair.judge(pair.floors).outcome.value] += 1
    return {key: dict(counts[key]) for key in sorted(counts)}


def steps_needed(pairs: Sequence[Pair]) -> dict[str, Any]:
    """The median prefix from which on the outcome does not change any more, by label."""
    needed: dict[str, list[float]] = defaultdict(list)
    for pair in pairs:
        first = int(max(pair.baseline.step[0], pair.candidate.step[0]))
        findings: list[Finding] = [pair.judge(pair.floors, steps=first + prefix) for prefix in PREFIXES]
        final = pair.judge(pair.floors).outcome
        settled = [prefix for i, prefix in enumerate(PREFIXES) if all(each.outcome is final for each in findings[i:])]
        needed[pair.label].append(min(settled, default=float("inf")))
    return {label: float(np.median(values)) for label, values in needed.items()}


def main() -> None:
    """Print one JSON object, or a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with cases.csv and runs/")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--fit", action="store_true", help="print the constants fitted on all pairs, and nothing else")
    options = parser.parse_args()
    everything = load(options.data)
    pairs = [pair for pair in everything if pair.label in COUNTED]
    without = [sample(pair, with_floors=False) for pair in pairs]
    floored = [sample(pair, with_floors=True) for pair in pairs if pair.floors.by_check]
    if options.fit:
        print(fit([*without, *floored]))
        return
    result = {
        "ours": ours(without, floored),
        "shipped": {"with_floor": rates(floored, SHIPPED), "no_floor": rates(without, SHIPPED)},
        "shipped_as_judged": {
            "with_floor": tally([(each.pair.bad, each.pair.judge(each.pair.floors).outcome) for each in floored]),
            "no_floor": tally([(each.pair.bad, each.pair.judge(NONE).outcome) for each in without])},
        "transfer": transfer(without, floored),
        "rules": rules(without),
        "by_label": by_label(everything),
        "steps_needed": steps_needed(pairs),
    }
    if options.json:
        print(json.dumps(result, indent=1))
        return
    lines = {f"ours, {name}": result["ours"][name] for name in ("with_floor", "no_floor")}
    lines |= {f"transfer {name}": value for name, value in result["transfer"].items()} | result["rules"]
    print(f"{'':<44}{'caught':>8}{'false':>8}{'unsure':>8}")
    for name, value in lines.items():
        print(f"{name:<44}{value['caught']:>8.3f}{value['false_alarm']:>8.3f}{value['inconclusive']:>8.3f}")
    print(f"area under the ROC {result['ours']['auc']:.3f}, with floors {result['ours']['auc_with_floor']:.3f}")


if __name__ == "__main__":
    main()
