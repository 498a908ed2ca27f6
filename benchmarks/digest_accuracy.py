"""How often a digest's interval holds the true distance, and how often it names another fault than the one made.

    python benchmarks/digest_accuracy.py --json [--trials 40]

Weights: those of the rehearsal's policy after 200 training steps, of a small torch transformer trained to copy (where
torch is installed), and drawn ones (normal, and Student's t with 3 degrees of freedom). Each gets differences of
several shapes (all elements, one row, one column, one block of 64, one element in a hundred) at relative L2 distances
from 1e-7 to 1, and faults whose name is known. The digests are compared as they travel, through their texts.
`coverage`: the share of 95 % intervals that hold the true distance, by the 16 lanes of a digest and by the 64 of a
recording, for each shape and each size; `resolved` leaves out the sizes near and below the lanes' floor (up to 1e-4 and
1e-7), where an interval that reaches down to 0 holds nearly always. `misread`: faults named otherwise; the transpose of
a square matrix is a permutation, which is all that can be said of it. Seeds start at 1000, which no threshold was tuned
on.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pytest_migparity.host.digest import digest, fine_lanes, measured, summary
from pytest_migparity.host.tensors import of_array
from pytest_migparity.host.zoom import rounded
from pytest_migparity.judges.digest_fault import Fault
from pytest_migparity.judges.digestmatch import match
from pytest_migparity.judges.event_relation import apart
from pytest_migparity.wire import digest_text
from pytest_migparity.wire.record import Event

FIRST_SEED = 1000
SIZES = [10.0**power for power in range(-7, 1)]
FLOOR = {"16": 3e-4, "64": 3e-7}
Array = Any


def trained_by_the_rehearsal() -> dict[str, Array]:
    """The four weight matrices of the arm's policy after 200 steps."""
    from pytest_migparity.rehearsal.policy import layers
    from pytest_migparity.rehearsal.recipe import Recipe
    from pytest_migparity.rehearsal.train import train

    return {f"rehearsal.{k}": layer.weight.copy() for k, layer in enumerate(layers(train(Recipe(), steps=200).weights))}


def trained_by_torch() -> dict[str, Array]:
    """The larger matrices of a transformer layer after 150 steps of learning to copy; empty without torch."""
    try:
        import torch
    except ImportError:
        return {}
    torch.manual_seed(7)
    embed, head = torch.nn.Embedding(64, 96), torch.nn.Linear(96, 64)
    body = torch.nn.TransformerEncoderLayer(96, 4, 256, dropout=0.0, batch_first=True)
    parameters = [*embed.parameters(), *head.parameters(), *body.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=2e-3)
    for _ in range(150):
        tokens = torch.randint(0, 64, (32, 16))
        loss = torch.nn.functional.cross_entropy(head(body(embed(tokens))).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    held = {**{f"torch.{name}": value for name, value in body.state_dict().items()}, "torch.head": head.weight}
    return {name: value.detach().numpy().copy() for name, value in held.items() if value.dim() == 2}


def drawn() -> dict[str, Array]:
    """Matrices of two distributions."""
    random = np.random.default_rng(FIRST_SEED - 1)
    return {"normal": (random.standard_normal((300, 200)) * 0.02).astype(np.float32),
            "student": (random.standard_t(3, (300, 200)) * 0.02).astype(np.float32)}


SHAPES: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    "all": lambda w, random: np.ones(w.shape, bool),
    "row": lambda w, random: np.arange(len(w))[:, None] == random.integers(len(w)) + np.zeros(w.shape, int),
    "column": lambda w, random: np.arange(w.shape[1])[None] == random.integers(w.shape[1]) + np.zeros(w.shape, int),
    "block": lambda w, random: _block(w, random),
    "sparse": lambda w, random: random.random(w.shape) < 0.01,
}


def _block(w: Array, random: np.random.Generator) -> Array:
    place = np.zeros(w.size, bool)
    start = random.integers(w.size - 64)
    place[start:start + 64] = True
    return place.reshape(w.shape)


def norm_of(array: Array) -> float:
    """Euclidean norm, in float64; without BLAS, whose threads wait for each other on small arrays."""
    return math.sqrt(float(np.square(array, dtype=np.float64).sum()))


def spoiled(w: Array, shape: str, size: float, random: np.random.Generator) -> Array:
    """`w` with a difference of one shape and relative L2 size, as float32 holds it."""
    noise = random.standard_normal(w.shape) * SHAPES[shape](w, random)
    noise *= size * norm_of(w) / norm_of(noise)
    return (w + noise).astype(np.float32)


FAULTS: dict[str, tuple[Fault, Callable[[Array, np.random.Generator], tuple[Array, str]]]] = {
    "scaled": (Fault.SCALED, lambda w, random: (w * np.float32(random.choice([1.05, 1.3, 0.5])), "")),
    "sign flipped": (Fault.NEGATED, lambda w, random: (-w, "")),
    "rows permuted": (Fault.PERMUTED, lambda w, random: (w[random.permutation(len(w))], "")),
    "heads permuted": (Fault.PERMUTED, lambda w, random: (
        np.roll(w.reshape(4, -1, w.shape[1]), 1, axis=0).reshape(w.shape), "")),
    "RoPE layout": (Fault.PERMUTED, lambda w, random: (
        w.reshape(2, 2, -1, w.shape[1]).swapaxes(1, 2).reshape(w.shape), "")),
    "rolled": (Fault.PERMUTED, lambda w, random: (np.roll(w, 1, axis=1), "")),
    "rows permuted, noise": (Fault.PERMUTED_NOISY, lambda w, random: (
        spoiled(w[random.permutation(len(w))], "all", 1e-3, random), "")),
    "transposed": (Fault.TRANSPOSED, lambda w, random: (np.ascontiguousarray(w.T), "")),
    "zeroed": (Fault.ZEROED, lambda w, random: (np.zeros_like(w), "")),
    "one NaN": (Fault.NON_FINITE, lambda w, random: (np.where(np.arange(w.size).reshape(w.shape) == 7, np.nan, w), "")),
    "to bfloat16": (Fault.ROUNDED, lambda w, random: (rounded(w, "float32", "bfloat16"), "bfloat16")),
    "to float16": (Fault.ROUNDED, lambda w, random: (rounded(w, "float32", "float16"), "float16")),
    "to bfloat16, stored wide": (Fault.ROUNDED, lambda w, random: (
        (rounded(w, "float32", "bfloat16").astype(np.uint32) << 16).view(np.float32), "")),
    "cut to bfloat16": (Fault.TRUNCATED, lambda w, random: ((w.view(np.uint32) >> 16).astype(np.uint16), "bfloat16")),
    "to float64": (Fault.VALUE_EQUAL, lambda w, random: (w.astype(np.float64), "")),
    "a row short": (Fault.SHAPE, lambda w, random: (w[:-1], "")),
    "one low bit": (Fault.BELOW_FLOOR, lambda w, random: (
        (w.view(np.uint32) ^ (np.arange(w.size).reshape(w.shape) == 99)).astype(np.uint32).view(np.float32), "")),
    "one block": (Fault.DIFFERENT, lambda w, random: (spoiled(w, "block", 0.05, random), "")),
    "noise": (Fault.DIFFERENT, lambda w, random: (spoiled(w, "all", random.choice([1e-2, 1e-1]), random), "")),
}


def travelled(array: Array, dtype: str = "") -> Any:
    """A digest of one tensor, written and read."""
    made = digest([of_array("w", np.ascontiguousarray(array), dtype)], algorithm="sha256")
    return digest_text.from_text(digest_text.to_text(made))


def event(array: Array) -> Event:
    """The tensor as a recording has it."""
    whole = measured(of_array("w", np.ascontiguousarray(array)), level=1, algorithm="sha256")
    return Event(0, "output", "w", summary(whole, 1), fine=tuple(np.float32(fine_lanes(whole)).tolist()))


def intervals(weights: dict[str, Array], trials: int) -> Iterator[tuple[str, str, float, bool]]:
    """(lanes, shape, size, does the interval hold the true distance?)."""
    for name, w in weights.items():
        norm, whole, recorded = norm_of(w), travelled(w), event(w)
        for trial in range(trials):
            random = np.random.default_rng([FIRST_SEED, trial, len(name)])
            for shape in SHAPES:
                for size in SIZES:
                    other = spoiled(w, shape, size, random)
                    true = norm_of(other.astype(np.float64) - w) / norm
                    if not true:
                        continue
                    (found,) = match(whole, travelled(other)).tensors
                    if found.relation is not None:
                        yield "16", shape, size, found.relation.low <= true <= found.relation.high
                    fine = apart(recorded, event(other))
                    yield "64", shape, size, fine.low <= true <= fine.high


def misreadings(weights: dict[str, Array], trials: int) -> tuple[int, list[str]]:
    """(faults made, those named otherwise)."""
    made, wrong = 0, []
    for name, w in weights.items():
        whole = travelled(w)
        for trial in range(trials):
            for fault, (expected, make) in FAULTS.items():
                random = np.random.default_rng([FIRST_SEED, 5, trial, len(name)])
                other, dtype = make(w, random)
                (found,) = match(whole, travelled(other, dtype)).tensors
                made += 1
                named = {expected}
                if expected is Fault.TRANSPOSED and w.shape[0] == w.shape[1]:
                    named = {Fault.PERMUTED}
                if found.fault not in named:
                    wrong.append(f"{name}, trial {trial}: {fault} read as {found.fault}")
    return made, wrong


def study(trials: int) -> dict[str, Any]:
    """Coverage by lanes and shape, and the misread faults."""
    weights = {**trained_by_the_rehearsal(), **trained_by_torch(), **drawn()}
    held: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for lanes, shape, size, covers in intervals(weights, trials):
        for group in (shape, f"{size:g}", *(["resolved"] if size > FLOOR[lanes] else [])):
            held[lanes, group].append(covers)
    made, wrong = misreadings(weights, trials)
    return {"tensors": sorted(weights), "trials": trials,
            "coverage": {lanes: {group: float(np.mean(found)) for (these, group), found in sorted(held.items())
                                 if these == lanes} for lanes in ("16", "64")},
            "intervals": sum(len(held["16", shape]) for shape in SHAPES), "faults_made": made, "misread": len(wrong),
            "misread_list": wrong[:40]}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--trials", type=int, default=40, help="differences of each shape and size for each tensor")
    asked = parser.parse_args()
    found = study(asked.trials)
    print(json.dumps(found, indent=2) if asked.json else "\n".join(f"{key:14} {value}" for key, value in found.items()))


if __name__ == "__main__":
    main()
