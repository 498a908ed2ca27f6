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


class Plain(torch.nn.Module):
    """Returns a prediction; its loss is computed outside."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.inner, self.head = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x, padding=None):
        hidden = torch.utils.checkpoint.checkpoint(self.inner, x, use_reentrant=False)
        return self.head(hidden)


def steps_of(model, out, optimizers, clip=None, steps=1, scaler=None, scale=1.0, **options):
    random = torch.Generator().manual_seed(1)
    losses = []
    with record(model, out=str(out), **options) as recorder:
        for _ in range(steps):
            x = torch.randn(4, 8, generator=random)
            loss = (model(x) ** 2).mean() * scale
            losses.append(float(loss.detach()))
            (scaler.scale(loss) if scaler else loss).backward()
            if clip:
                clip(model.parameters(), 1e-3)
            for optimizer in optimizers:
                if scaler:
                    scaler.step(optimizer)
                else:
                    optimizer.step()
                optimizer.zero_grad()
            if scaler:
                scaler.update()
    assert recorder.seconds <= recorder.step_seconds
    return losses, wire.read(str(out))


def test_a_loss_computed_outside_is_what_backward_begins_with_and_a_checkpoint_is_seen_once(tmp_path):
    model = Plain()
    losses, made = steps_of(model, tmp_path / "r.record", [torch.optim.SGD(model.parameters(), lr=0.1)])
    assert [facts.loss for facts in made.facts] == losses
    assert set(events(made, "output")) == {"inner", "head", "output"}
    assert set(events(made, "loss")) == {"loss"}
    assert dict(made.meta)["overhead"].endswith(" s")


def test_clipping_that_a_module_imported_by_name_is_seen(tmp_path, monkeypatch):
    import sys

    monkeypatch.setattr(sys.modules[__name__], "clip_grad_norm_", torch.nn.utils.clip_grad_norm_, raising=False)
    plain, model = torch.nn.utils.clip_grad_norm_, Plain()
    _, made = steps_of(model, tmp_path / "r.record", [torch.optim.SGD(model.parameters(), lr=0.1)],
                       clip=lambda *words: globals()["clip_grad_norm_"](*words))
    (facts,) = made.facts
    assert facts.clip_factor == pytest.approx(1e-3 / facts.grad_norm, rel=1e-3)
    assert set(events(made, "grad-clipped")) == {name for name, _ in model.named_parameters()}
    assert torch.nn.utils.clip_grad_norm_ is globals()["clip_grad_norm_"] is plain


def test_a_step_that_the_scaler_skips_is_a_step_with_nothing_moved(tmp_path):
    model = Plain()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)
    losses, made = steps_of(model, tmp_path / "r.record", [torch.optim.SGD(model.parameters(), lr=0.1)], steps=2,
                            scaler=scaler, scale=1e5)
    assert [facts.loss for facts in made.facts] == losses  # not times the scale
    assert [(facts.skipped, facts.moved, facts.loss_scale) for facts in made.facts] == [
        (True, 0, 2.0**120), (True, 0, 2.0**119)]
    assert made.facts[0].parameters == 144


def test_two_optimizers_make_one_step(tmp_path):
    model = Plain()
    pair = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (model.inner, model.head)]
    _, made = steps_of(model, tmp_path / "r.record", pair, steps=2)
    assert [(facts.step, facts.moved, facts.parameters) for facts in made.facts] == [(0, 144, 144), (1, 144, 144)]
    assert len(events(made, "update", 1)) == 4


def test_a_parameter_that_no_optimizer_holds_does_not_stop_the_step(tmp_path):
    model = Plain()
    _, made = steps_of(model, tmp_path / "r.record", [torch.optim.SGD(model.head.parameters(), lr=0.1)], steps=2)
    assert [(facts.step, facts.parameters) for facts in made.facts] == [(0, 72), (1, 72)]
    assert set(events(made, "update", 0)) == {"head.weight", "head.bias"}


def test_an_update_of_16_bits_is_the_exact_difference(tmp_path):
    model = torch.nn.Linear(4, 4, bias=False).to(torch.bfloat16)
    with torch.no_grad():
        model.weight.copy_(torch.linspace(1, 2, 16).reshape(4, 4))
    before = model.weight.detach().float().numpy().copy()
    optimizer = torch.optim.SGD(model.parameters(), lr=3.0)
    with record(model, out=str(tmp_path / "r.record")):
        model(torch.ones(2, 4, dtype=torch.bfloat16)).sum().backward()
        optimizer.step()
    made = wire.read(str(tmp_path / "r.record"))
    assert events(made, "update")["weight"].hash == hash_of(model.weight.detach().float().numpy() - before)


def test_masks_are_inputs_by_name_or_lengths_and_one_that_fits_not_leaves_the_tensor_unrecorded(tmp_path):
    model, x = Plain(), torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(0))
    lengths = torch.tensor([5, 2, 1])
    padding = torch.arange(5)[None, :] < lengths[:, None]
    for name, mask in (("a", "padding"), ("b", lambda: lengths), ("c", torch.ones(9, dtype=torch.bool)), ("d", "none")):
        with record(model, out=str(tmp_path / name), forward_only=True, valid={"head": mask}), torch.no_grad():
            model(x, padding=padding.long())
    made = {name: wire.read(str(tmp_path / name)) for name in "abcd"}
    expected = model(x).detach().numpy()[padding.numpy()]
    for name in "ab":
        (event,) = [event for event in made[name].events if event.name == "head"]
        assert event.tensor.hash == hash_of(expected)
        assert event.valid == pytest.approx(8 / 15)
    for name, why in (("c", "its mask has the shape [9]"), ("d", "'none' is no input")):
        assert [(what, why in text) for what, text in made[name].unrecorded] == [("output head", True)]
        assert judged("L3", made[name], made[name]).outcome is Outcome.INCONCLUSIVE


def test_a_model_called_past_its_hooks_has_no_inputs_and_says_so(tmp_path):
    model = Plain()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(model, out=str(tmp_path / "r.record")):
        model.forward(torch.ones(4, 8)).sum().backward()
        optimizer.step()
    made = wire.read(str(tmp_path / "r.record"))
    assert [what for what, _ in made.unrecorded] == ["input"]
    assert made.facts[0].loss is not None


def test_chosen_tensors_are_kept_in_full(tmp_path):
    model, x = Plain().to(torch.bfloat16), torch.ones(4, 8, dtype=torch.bfloat16)
    with record(model, out=str(tmp_path / "r.record"), forward_only=True, keep=["head"]), torch.no_grad():
        model(x)
    (path,) = sorted((tmp_path / "r.record.kept").iterdir())
    assert path.name == "00000-step0-output-head.npy"
    assert (np.load(path, allow_pickle=False) == model(x).detach().float().numpy()).all()
    assert dict(wire.read(str(tmp_path / "r.record")).meta)["kept"].startswith("1 tensors, 0 left out")


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
