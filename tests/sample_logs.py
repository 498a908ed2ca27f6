"""A valid log of every format that is read, from a run's losses: in each format's shape, with lines of our own."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence

BANNER = "训练开始 ***** Running training *****\n"

Rows = Sequence[tuple[int, float]]  # step and loss; the other columns follow from them


def _norm(loss: float) -> float:
    return 0.5 + loss / 7


def _lingbot(rows: Rows) -> str:
    return BANNER + "".join(
        f"Step: 7{step}/100000 [1:38:24<205:32:22,  7.46s/it]01/02/2026 10:00:00 - INFO - __main__ - Step {step}/8204, "
        f"Epoch 1, Loss {loss:.4f}, VLA_Loss {loss * 0.9:.4f}, GradNorm {_norm(loss):.4f}, LR 1.00e-04, StepTime 7.492s, \n"
        for step, loss in rows)


def _megatron(rows: Rows) -> str:
    return BANNER + "".join(
        f"[default0]: [2026-01-02 10:00:00.987995] iteration {step:8}/ 7629408 | consumed samples: {32 * step:12} | "
        f"learning rate: 1.406250E-04 | global batch size:    32 | lm loss: {loss:.6E} | loss scale: 1.0 | "
        f"grad norm: {_norm(loss):.3f} | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        for step, loss in rows)


def _short(number: int) -> str:
    return f"{number}" if number < 1000 else f"{number / 1000:.0f}K"


def _lerobot(rows: Rows) -> str:
    return BANNER + "".join(
        f"INFO 2026-01-02 10:00:00 ot_train.py:423 step:{_short(step)} smpl:{_short(step * 8)} ep:3 epch:{step / 1250:.2f} "
        f"loss:{loss:.3f} grdn:{_norm(loss):.3f} lr:1.0e-05 updt_s:0.047 data_s:0.002\n" for step, loss in rows)


def _openpi(rows: Rows) -> str:
    return BANNER + "".join(
        f"  5%|▌         | {step}/30000 [01:00<05:00, 10.00it/s]Step {step}: grad_norm={_norm(loss):.4f}, "
        f"loss={loss:.4f}, param_norm=1801.2500\n" for step, loss in rows)


def _torchtitan(rows: Rows) -> str:
    return BANNER + "".join(
        f"[titan] 2026-01-02 10:00:00,123 - root - INFO - step: {step:2}  loss: {loss:8.5f}  "
        f"grad_norm: {_norm(loss):7.4f}  memory: 40.12GiB(50.00%)  tps: 1,234,567\n" for step, loss in rows)


def _mllog(rows: Rows) -> str:
    return BANNER + "".join(":::MLLOG " + json.dumps({
        "namespace": "", "time_ms": 1745154985229, "event_type": "POINT_IN_TIME", "key": "train_loss", "value": loss,
        "metadata": {"file": "/w/callbacks.py", "lineno": 71, "step_num": step, "lr": 0.00055}}) + "\n"
        for step, loss in rows)


def _hf_state(rows: Rows) -> str:
    history = [{"epoch": step / 2500, "grad_norm": _norm(loss), "learning_rate": 4e-05, "loss": loss, "step": step}
               for step, loss in rows]
    return json.dumps({"best_metric": None, "log_history": history, "max_steps": 2500}, indent=2) + "\n"


def _wandb(rows: Rows) -> str:
    return '"Step","run a - train/loss","run a - train/loss__MIN","run a - train/loss__MAX"\n' + "".join(
        f'"{step}","{loss!r}","{loss!r}","{loss!r}"\n' for step, loss in rows)


def _jsonl(rows: Rows) -> str:
    return "".join(json.dumps({"step": step, "epoch": 1, "loss": loss, "grad_norm": _norm(loss), "lr": 1e-4,
                               "note": "数据"}, ensure_ascii=False) + "\n" for step, loss in rows)


def _hf_dict(step: int, loss: float) -> str:
    return (f"{{'loss': {loss:.4f}, 'grad_norm': {_norm(loss)!r}, 'learning_rate': 4.5e-06, "
            f"'epoch': {step / 2500:.3f}}}\n")


def _hf_stdout(rows: Rows) -> str:
    return BANNER + "".join(f"  1%|▏         | {step}/1389 [00:41<1:20:11,  3.52s/it]{_hf_dict(step, loss)}"
                            for step, loss in rows)


def _hf_stdout_bare(rows: Rows) -> str:
    return BANNER + "".join(_hf_dict(step, loss) for step, loss in rows)


def _csv(rows: Rows) -> str:
    return "# 训练\nstep,loss,grad_norm\n" + "".join(f"{step},{loss!r},{_norm(loss)!r}\n" for step, loss in rows)


def _deepspeed(rows: Rows) -> str:
    return BANNER + "".join(f"steps: {step} loss: {loss:.4f} iter time (s): 1.202 samples/sec: 26.614\n"
                            for step, loss in rows)


def _deepspeed_bare(rows: Rows) -> str:
    return BANNER + "".join(
        f"chosen: 0.25, rejected: -0.25, loss: {loss!r}\n[2026-01-02 10:00:00,142] [INFO] [logging.py:96:log_dist] "
        f"[Rank 0] step={step}, skipped=0, lr=[9.5e-06, 9.5e-06], mom=[(0.9, 0.95), (0.9, 0.95)]\n"
        for step, loss in rows)


def events(rows: Rows) -> list[bytes]:
    """TensorBoard's events, one by one."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    scalars = [Event(step=step, wall_time=1.0, summary=Summary(value=[Summary.Value(tag="training/loss", simple_value=loss)]))
               for step, loss in rows]
    return [event.SerializeToString() for event in (Event(wall_time=1.0, file_version="brain.Event:2"), *scalars)]


def event_file(records: Iterable[bytes]) -> bytes:
    """Events as a file: lengths and checksums are right, whatever the events are."""
    from tensorboard.summary.writer.record_writer import RecordWriter

    file = io.BytesIO()
    writer = RecordWriter(file)
    for record in records:
        writer.write(record)
    return file.getvalue()


WRITERS: Mapping[str, Callable[[Rows], str]] = {
    "lingbot": _lingbot, "megatron": _megatron, "lerobot": _lerobot, "openpi": _openpi, "torchtitan": _torchtitan,
    "mllog": _mllog, "hf-state": _hf_state, "wandb": _wandb, "jsonl": _jsonl, "hf-stdout": _hf_stdout,
    "hf-stdout bare": _hf_stdout_bare, "csv": _csv, "deepspeed": _deepspeed, "deepspeed bare": _deepspeed_bare}
EVERY: Mapping[str, int] = {"lerobot": 10, "hf-state": 10, "hf-stdout": 10}  # steps from row to row; 1 for the others


def log(kind: str, losses: Sequence[float]) -> bytes:
    """A log of these losses, `kind` one of WRITERS or "tensorboard", from the first logged step on."""
    rows = [(EVERY.get(kind, 1) * number, float(loss)) for number, loss in enumerate(losses, 1)]
    return event_file(events(rows)) if kind == "tensorboard" else WRITERS[kind](rows).encode()
