"""The rehearsal under the recorder: what L1 to L4 judge of a run, from hooks in the training loop."""

from pathlib import Path

from pytest_migparity.host.digest import digest
from pytest_migparity.host.record import Recorder
from pytest_migparity.host.tensors import of_array
from pytest_migparity.rehearsal.dataset import samples
from pytest_migparity.rehearsal.policy import LAYERS, PARAMETERS, Activations, layers
from pytest_migparity.rehearsal.precision import Singles
from pytest_migparity.rehearsal.recipe import Recipe
from pytest_migparity.wire import digest_text

WEIGHTS, DATA, RECORD = "weights.digest", "data.digest", "rank0.record"
HASH = "sha256"  # that of every machine: embedded evidence answers to evidence recorded elsewhere


class Watch:
    """Records the first two steps and the one whose gradient is clipped; every array is digested as it passes."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self._recorder = Recorder(str(folder / RECORD), steps={0, 1, recipe.hard_step}, algorithm=HASH,
                                  meta={"framework": "numpy", "noise": "injected", "seed": str(recipe.seed)})
        self._before: Singles | None = None

    def wants(self, step: int) -> bool:
        """A step begins; is it recorded?"""
        return self._recorder.begin(step)

    def given(self, seen: Singles, noise: Singles, time: Singles, target: Singles) -> None:
        """The batch of a step."""
        for stage, name, array in (("input", "features", seen), ("input", "target", target),
                                   ("draw", "noise", noise), ("draw", "time", time)):
            self._recorder.event(stage, name, array)

    def passed(self, step: int, part: int, kept: list[Activations], output: Singles) -> None:
        """One micro-batch's way through the network; of the first step only, where both sides hold equal weights."""
        if step:
            return
        after = [here.source for here in kept[1:]] + [output]
        for index, (here, out) in enumerate(zip(kept, after, strict=True)):
            if index < LAYERS - 1:
                self._recorder.event("output", f"layers.{index}.linear@{part}", here.before, depth=2 * index)
            self._recorder.event("output", f"layers.{index}@{part}", out, depth=2 * index + 1)

    def gradient(self, stage: str, gradient: Singles) -> None:
        """The gradient of a step at one stage."""
        self._vector(stage, gradient)

    def before_update(self, weights: Singles) -> None:
        """The weights as they were when the update began."""
        self._before = weights.copy()

    def after_update(self, step: int, weights: Singles, first: Singles, second: Singles) -> None:
        """The weights and the optimizer's moments after it."""
        assert self._before is not None
        self._vector("update", weights - self._before)
        if step == 0:
            for name, moment in (("exp_avg", first), ("exp_avg_sq", second)):
                self._vector("state", moment, f".{name}")

    def facts(self, loss: float, norm: float, factor: float, rate: float, weights: Singles,
              scale: float, *, skipped: bool) -> None:
        """The numbers of a step."""
        moved = 0 if self._before is None or skipped else int((weights != self._before).sum())
        self._recorder.end(loss=loss, grad_norm=norm, clip_factor=factor, lr=rate, moved=moved, parameters=PARAMETERS,
                           skipped=skipped, loss_scale=scale)
        self._before = None

    def _vector(self, stage: str, flat: Singles, suffix: str = "") -> None:
        for index, layer in enumerate(layers(flat)):
            for name in ("weight", "bias"):
                self._recorder.event(stage, f"layers.{index}.{name}{suffix}", getattr(layer, name), depth=2 * index)


def write_digests(folder: Path, weights: Singles) -> None:
    """The digests of the weights as loaded and of the data set."""
    named = [of_array(f"layers.{index}.{name}", getattr(layer, name))
             for index, layer in enumerate(layers(weights)) for name in ("weight", "bias")]
    (folder / WEIGHTS).write_text(digest_text.to_text(digest(named, algorithm=HASH)), encoding="ascii", newline="\n")
    data = samples()
    columns = [of_array(name, getattr(data, name)) for name in ("joints", "goal", "actions")]
    (folder / DATA).write_text(digest_text.to_text(digest(columns, algorithm=HASH)), encoding="ascii", newline="\n")
