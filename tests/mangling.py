"""What the fuzzing tests read: a log of every format, and what happens to logs before somebody hands them in.

A writer prints a run's losses; a mangling makes other bytes of a log, and draws what it does from a `random.Random`, so
that a seed tells it all. `others` are the logs from which a mangling takes rows that do not belong there.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from random import Random

BANNER = "训练开始 ***** Running training *****\n"
MOST = 1 << 16  # bytes of a mangled log
_DECIMAL = re.compile(rb"\d{1,15}\.\d{1,20}(?:[eE][+-]\d\d)?")
_PLACES = re.compile(rb"(\d{1,15}\.)(\d{1,20})")

Rows = Sequence[tuple[int, float]]
Mangling = Callable[[bytes, Sequence[bytes], Random], bytes]


# --- one log of each format: (step, loss), the other columns follow from them


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


def _tensorboard(rows: Rows) -> bytes:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    file = io.BytesIO()
    writer = RecordWriter(file)
    writer.write(Event(wall_time=1.0, file_version="brain.Event:2").SerializeToString())
    for step, loss in rows:
        value = Summary.Value(tag="training/loss", simple_value=loss)
        writer.write(Event(step=step, wall_time=1.0, summary=Summary(value=[value])).SerializeToString())
    return file.getvalue()


WRITERS: Mapping[str, Callable[[Rows], str]] = {
    "lingbot": _lingbot, "megatron": _megatron, "lerobot": _lerobot, "openpi": _openpi, "torchtitan": _torchtitan,
    "mllog": _mllog, "hf-state": _hf_state, "wandb": _wandb, "jsonl": _jsonl, "hf-stdout": _hf_stdout,
    "hf-stdout bare": _hf_stdout_bare, "csv": _csv, "deepspeed": _deepspeed, "deepspeed bare": _deepspeed_bare}
EVERY: Mapping[str, int] = {"lerobot": 10, "hf-state": 10, "hf-stdout": 10}  # steps from row to row; 1 for the others


def log(kind: str, losses: Sequence[float]) -> bytes:
    """A log of these losses, `kind` one of WRITERS or "tensorboard", from the first logged step on."""
    rows = [(EVERY.get(kind, 1) * number, float(loss)) for number, loss in enumerate(losses, 1)]
    return _tensorboard(rows) if kind == "tensorboard" else WRITERS[kind](rows).encode()


# --- manglings


def drop(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Lines are lost: one, a block, or many."""
    lines = data.splitlines(keepends=True)
    begin, end = _block(lines, draw)
    share = draw.choice((0.0, 0.1, 0.5))
    if share:
        return b"".join(line for line in lines if draw.random() >= share)
    return b"".join(lines[:begin] + lines[end:])


def duplicate(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Lines come again: at once, or as a block further down."""
    lines = data.splitlines(keepends=True)
    begin, end = _block(lines, draw)
    if draw.random() < 0.5:
        at = draw.randint(end, len(lines))
        return b"".join(lines[:at] + lines[begin:end] + lines[at:])
    return b"".join(line for i, line in enumerate(lines) for _ in range(1 + (begin <= i < end)))


def reorder(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Lines in another order: two swapped, all shuffled, a block moved, upside down."""
    lines = data.splitlines(keepends=True)
    begin, end = _block(lines, draw)
    how = draw.randrange(4)
    if how == 0 and lines:
        i, j = draw.randrange(len(lines)), draw.randrange(len(lines))
        lines[i], lines[j] = lines[j], lines[i]
    elif how == 1:
        draw.shuffle(lines)
    elif how == 2:
        block, rest = lines[begin:end], lines[:begin] + lines[end:]
        at = draw.randint(0, len(rest))
        lines = rest[:at] + block + rest[at:]
    else:
        lines.reverse()
    return b"".join(lines)


def glue(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Rows of another log: behind the last, before the first, or in between."""
    lines, theirs = data.splitlines(keepends=True), draw.choice(others).splitlines(keepends=True)
    begin, end = _block(theirs, draw)
    at = draw.choice((0, len(lines), draw.randint(0, len(lines))))
    return b"".join(lines[:at] + theirs[begin:end] + lines[at:])


def concatenate(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Two whole logs, one behind the other."""
    pair = [data, draw.choice(others)]
    draw.shuffle(pair)
    return b"".join(pair)


def join_lines(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Line ends are lost: one, or many."""
    share = draw.choice((0.02, 0.5, 1.0))
    return b"".join(line.rstrip(b"\r\n") if draw.random() < share else line for line in data.splitlines(keepends=True))


def truncate(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Cut anywhere, inside a character of several bytes above all; or the beginning is lost."""
    inside = [i for i, byte in enumerate(data) if 0x80 <= byte < 0xC0]
    at = draw.choice(inside) if inside and draw.random() < 0.3 else draw.randint(0, len(data))
    return data[at:] if draw.random() < 0.3 else data[:at]


def re_encode(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Another encoding, a byte-order mark, other line ends."""
    text = data.decode("utf-8", "replace")
    return draw.choice((
        lambda: text.encode("utf-16"), lambda: text.encode("utf-16-be"), lambda: b"\xfe\xff" + text.encode("utf-16-be"),
        lambda: text.encode("gbk", "replace"), lambda: b"\xef\xbb\xbf" + data, lambda: data.replace(b"\n", b"\r\n"),
        lambda: data.replace(b"\n", b"\r"), lambda: text.encode("latin-1", "replace"),
        lambda: data.replace(b"\n", b"\x1b[0m\n")))()


def not_finite(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """A number, or each of a tenth of them, becomes none that is finite."""
    word = draw.choice((b"nan", b"NaN", b"inf", b"-inf", b"Infinity", b"-Infinity", b"null", b"None", b"", b"1e400", b"0.0",
                        b"N/A", b"-nan(ind)"))
    return _numbers(data, lambda _: word, draw)


def other_numbers(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """A number, or each of a tenth of them, becomes another."""
    return _numbers(data, lambda match: b"%d.%04d" % (draw.randrange(12), draw.randrange(10_000)), draw)


def ranks(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Every line is printed by two or three ranks: equal or not, in turns or in blocks, or glued on one line."""
    count, differ, how = draw.choice((2, 3)), draw.random() < 0.5, draw.randrange(4)
    theirs = [data, *(_jittered(data, draw) if differ else data for _ in range(count - 1))]
    lines = [log.splitlines(keepends=True) for log in theirs]
    if how == 0:
        return b"".join(theirs)
    turns = [[b"[rank%d]: " % rank + line if how == 1 else line for rank, line in enumerate(turn)]
             for turn in zip(*lines, strict=True)]
    if how == 2:
        return b"".join(b"".join(line.rstrip(b"\r\n") for line in turn) + b"\n" for turn in turns)
    return b"".join(line for turn in turns for line in turn)


def fewer_digits(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Every number is rounded to so many decimals."""
    return rounded(data, draw.randrange(5))


def rounded(data: bytes, places: int) -> bytes:
    """`data` with at most so many decimals in its numbers."""
    return _PLACES.sub(lambda match: b"%.*f" % (places, float(match[0])) if len(match[2]) > places else match[0], data)


def flip(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """A few bytes become others."""
    found = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 8)) if found else 0):
        found[draw.randrange(len(found))] = draw.choice((draw.randrange(256), draw.choice(b"0123456789.,-eE \n\r\t\"'{}[]:|=")))
    return bytes(found)


def splice(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """A piece of another log in the middle, cut without regard to lines."""
    theirs, at = draw.choice(others), draw.randint(0, len(data))
    begin = draw.randint(0, len(theirs))
    return data[:at] + theirs[begin: begin + draw.choice((8, 64, 1024, MOST))] + data[at + draw.choice((0, 0, 16)):]


def stretch(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """One piece comes very often, or a line or a number is very long."""
    at = draw.randint(0, len(data))
    piece = draw.choice((b"9", b" ", b"\n", b"\r", b"{", b"[", b'"', b"'", b"|", b",", b"0.", b"nan, ", b"step", b"\x1b[", b"- ",
                         b"=", "１".encode(), data[at: at + draw.choice((1, 3, 20, 200))]))
    return data[:at] + piece * draw.choice((2, 100, 20_000 // max(1, len(piece)))) + data[at:]


MANGLINGS: Mapping[str, Mangling] = {each.__name__: each for each in (
    drop, duplicate, reorder, glue, concatenate, join_lines, truncate, re_encode, not_finite, other_numbers, ranks,
    fewer_digits, flip, splice, stretch)}


def mangled(data: bytes, names: Sequence[str], others: Sequence[bytes], seed: int) -> bytes:
    """`data` after the manglings of these names, one after the other; at most 64 KiB of it."""
    draw = Random(seed)
    for name in names:
        data = MANGLINGS[name](data, others, draw)[:MOST]
    return data


def _block(lines: Sequence[bytes], draw: Random) -> tuple[int, int]:
    """(begin, end) of some lines: one, or a stretch of any length."""
    begin = draw.randint(0, len(lines))
    return begin, min(begin + 1, len(lines)) if draw.random() < 0.3 else draw.randint(begin, len(lines))


def _numbers(data: bytes, better: Callable[[re.Match[bytes]], bytes], draw: Random) -> bytes:
    found = list(_DECIMAL.finditer(data))
    chosen = draw.choice(found).start() if found and draw.random() < 0.5 else None
    return _DECIMAL.sub(lambda match: better(match) if match.start() == chosen or (
        chosen is None and draw.random() < 0.1) else match[0], data)


def _jittered(data: bytes, draw: Random) -> bytes:
    """Every decimal differs in its last places."""
    return _PLACES.sub(lambda match: b"%.*f" % (len(match[2]), float(match[0]) * (1 + draw.uniform(-0.01, 0.01))), data)
