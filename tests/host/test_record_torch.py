"""The recorder on a torch model, against what autograd and a calculation by hand give for the same step."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from recordings import judged  # noqa: E402

from pytest_migparity.core.verdict import Outcome  # noqa: E402
from pytest_migparity.host.digest import digest_tensor  # noqa: E402
from pytest_migparity.host.record import Recorder, RecordingExistsError  # noqa: E402
from pytest_migparity.host.record_torch import record  # noqa: E402
from pytest_migparity.host.tensors import of_array  # noqa: E402
from pytest_migparity.wire import record as wire  # noqa: E402


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


class Model(torch.nn.Module):
    """Returns a loss and a dict, as models of transformers do."""

    def __init__(self, width=8):
        super().__init__()
        torch.manual_seed(0)
        self.blocks = torch.nn.ModuleList(Block(width) for _ in range(2))

    def forward(self, batch, scale=1.0):
        x = batch["x"]
        for block in self.blocks:
            x = block(x)
        return {"loss": ((x - batch["y"]) ** 2).mean() * scale, "prediction": x}


def batches(count, micro=1, width=8):
    random = torch.Generator().manual_seed(1)
    return [[{"x": torch.randn(4, width, generator=random), "y": torch.randn(4, width, generator=random)}
             for _ in range(micro)] for _ in range(count)]


def train(model, count, clip=None, out=None, spoil=None, micro=1, **options):
    """The losses of a plain training loop, and its recording where one was asked for."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []

    def loop():
        for step, parts in enumerate(batches(count, micro)):
            optimizer.zero_grad()
            for batch in parts:
                loss = model(batch)["loss"] / micro
                loss.backward()
                losses.append(float(loss.detach()))
            if spoil:
                spoil(step, model)
            if clip:
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()

    if out is None:
        loop()
        return losses, None
    with record(model, out=str(out), **options):
        loop()
    return losses, wire.read(str(out))


def hash_of(array):
    return digest_tensor(of_array("t", array), level=0, algorithm="xxh3_128" if _xxhash() else "sha256").hash


def _xxhash():
    try:
        import xxhash  # noqa: F401
    except ImportError:
        return False
    return True


def events(recording, stage, step=0):
    return {event.name: event.tensor for event in recording.events if (event.stage, event.step) == (stage, step)}


def test_a_recorded_run_trains_to_the_same_bits(tmp_path):
    plain, _ = train(Model(), 4, clip=0.1)
    recorded, made = train(Model(), 4, clip=0.1, out=tmp_path / "r.record", steps=range(3))
    assert plain == recorded
    assert [facts.step for facts in made.facts] == [0, 1, 2]
    assert made.unrecorded == ()


def test_inputs_outputs_gradients_and_updates_are_those_of_the_step(tmp_path):
    _, made = train(Model(), 1, out=tmp_path / "r.record")
    model, batch = Model(), batches(1)[0][0]
    assert {name: item.hash for name, item in events(made, "input").items()} == \
        {"0.x": hash_of(batch["x"].numpy()), "0.y": hash_of(batch["y"].numpy())}
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    x = batch["x"]
    first = model.blocks[0].up(x)
    assert events(made, "output")["blocks.0.up"].hash == hash_of(first.detach().numpy())
    assert list(events(made, "output")) == ["blocks.0.up", "blocks.0.down", "blocks.0", "blocks.1.up", "blocks.1.down",
                                            "blocks.1", "loss", "prediction"]
    loss = model(batch)["loss"]
    loss.backward()
    for name, parameter in model.named_parameters():
        assert events(made, "grad")[name].hash == hash_of(parameter.grad.numpy())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    optimizer.step()
    for name, parameter in model.named_parameters():
        assert events(made, "update")[name].hash == hash_of((parameter.detach() - before[name]).numpy())
    (facts,) = made.facts
    assert facts.loss == float(loss.detach())
    assert (facts.moved, facts.parameters) == (sum(p.numel() for p in model.parameters()),) * 2
    assert (facts.lr, facts.skipped, facts.clip_factor) == (1e-2, False, None)
    assert set(events(made, "state")) == {f"{name}.{key}" for name in before for key in ("exp_avg", "exp_avg_sq")}


def test_the_clip_factor_is_what_the_gradient_was_multiplied_by(tmp_path):
    _, made = train(Model(), 1, clip=0.05, out=tmp_path / "r.record")
    before, after = events(made, "grad-reduced"), events(made, "grad-clipped")
    norm = np.sqrt(sum(item.stats.l2**2 for item in before.values()))
    (facts,) = made.facts
    assert facts.grad_norm == pytest.approx(norm, rel=1e-5)
    assert facts.clip_factor == pytest.approx(0.05 / norm, rel=1e-4)
    for name, item in after.items():
        assert item.stats.l2 == pytest.approx(before[name].stats.l2 * facts.clip_factor, rel=1e-4)


def test_micro_batches_of_one_step_are_told_apart(tmp_path):
    losses, made = train(Model(), 1, micro=2, out=tmp_path / "r.record")
    assert set(events(made, "input")) == {"0.x", "0.y", "0.x@1", "0.y@1"}
    assert "blocks.1@1" in events(made, "output")
    assert made.facts[0].loss == pytest.approx(sum(losses), rel=1e-6)  # the mean of what the model returned


def test_a_fault_between_backward_and_update_is_found_and_named(tmp_path):
    _, good = train(Model(), 2, out=tmp_path / "a.record")

    def spoil(step, model):
        model.blocks[1].up.bias.grad.zero_()

    _, bad = train(Model(), 2, out=tmp_path / "b.record", spoil=spoil)
    assert judged("L2", good, bad).outcome is Outcome.PASS
    assert judged("L3", good, bad).outcome is Outcome.PASS
    finding = judged("L4", good, bad)
    assert finding.outcome is Outcome.FAIL
    assert finding.first_divergence.at == "step 0 grad-reduced blocks.1.up.bias"


def test_another_weight_shows_at_its_own_module(tmp_path):
    _, good = train(Model(), 1, out=tmp_path / "a.record")
    other = Model()
    with torch.no_grad():
        other.blocks[1].down.weight *= 1.3
    _, bad = train(other, 1, out=tmp_path / "b.record")
    finding = judged("L3", good, bad)
    assert finding.outcome is Outcome.FAIL
    assert finding.first_divergence.at == "step 0 output blocks.1.down"


def test_probes_without_training_are_steps_of_their_own(tmp_path):
    model = Model()
    with record(model, out=str(tmp_path / "r.record"), steps=range(3), forward_only=True), torch.no_grad():
        for (batch,) in batches(3):
            model(batch)
    made = wire.read(str(tmp_path / "r.record"))
    assert [event.step for event in made.events if event.name == "blocks.0.up"] == [0, 1, 2]
    assert judged("L3", made, made).coverage.of == 3 * 8


def test_a_mask_leaves_only_what_counts(tmp_path):
    model, batch = Model(), batches(1)[0][0]
    mask = torch.tensor([True, False, True, False])
    with record(model, out=str(tmp_path / "r.record"), forward_only=True, valid={"blocks.*": mask}), torch.no_grad():
        model(batch)
    made = wire.read(str(tmp_path / "r.record"))
    (event,) = [event for event in made.events if event.name == "blocks.0.up"]
    assert (event.valid, event.tensor.shape) == (0.5, (2, 16))
    assert event.tensor.hash == hash_of(model.blocks[0].up(batch["x"]).detach().numpy()[[0, 2]])


def test_what_cannot_be_recorded_is_said_and_no_level_passes_over_it(tmp_path):
    recorder = Recorder(str(tmp_path / "r.record"))
    recorder.begin(0)
    recorder.event("input", "a", np.ones(3, np.float32))
    recorder.event("input", "b", np.array(["x"]))
    recorder.end()
    made = wire.read(str(tmp_path / "r.record"))
    assert [name for name, _ in made.unrecorded] == ["input b"]
    assert judged("L2", made, made).outcome is Outcome.INCONCLUSIVE


def test_another_runs_recording_is_never_overwritten(tmp_path):
    (tmp_path / "r.record").write_text("evidence")
    with pytest.raises(RecordingExistsError, match=r"r\.record is there already"):
        Recorder(str(tmp_path / "r.record"))
    assert (tmp_path / "r.record").read_text() == "evidence"


DDP = """
import sys, torch, torch.distributed as dist
sys.path[:0] = [{tests!r}, {here!r}]
from test_record_torch import Model, batches
from pytest_migparity.host.record_torch import record
dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(Model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with record(model, out={out!r} + "/rank%d.record" % rank, steps=range(1)):
    batch = batches(2)[rank][0]
    model(batch)["loss"].backward()
    optimizer.step()
dist.destroy_process_group()
"""


def test_two_ranks_record_their_own_gradients_before_and_one_after_the_reduction(tmp_path):
    here = Path(__file__).parent
    (tmp_path / "train.py").write_text(DDP.format(tests=str(here.parent), here=str(here), out=str(tmp_path)))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = [subprocess.Popen([sys.executable, "train.py"], cwd=tmp_path, stderr=subprocess.PIPE, env={
        **os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "PYTHONPATH": os.pathsep.join(sys.path)}) for rank in range(2)]
    for process in ranks:
        said = process.communicate(timeout=120)[1].decode()
        assert process.returncode == 0, said
    made = tuple(wire.read(str(tmp_path / f"rank{rank}.record")) for rank in range(2))
    assert [(item.rank, item.world_size) for item in made] == [(0, 2), (1, 2)]
    local, reduced = ([events(item, stage)["blocks.0.up.weight"] for item in made] for stage in ("grad", "grad-reduced"))
    assert local[0].hash != local[1].hash
    assert reduced[0].hash == reduced[1].hash
    expected = []
    for (batch,) in batches(2):
        model = Model()
        model(batch)["loss"].backward()
        expected.append(model.blocks[0].up.weight.grad.numpy())
    assert [item.hash for item in local] == [hash_of(grad) for grad in expected]
    assert reduced[0].hash == hash_of((expected[0] + expected[1]) / 2)
    assert judged("L4", made, made).outcome is Outcome.PASS
