"""A run's log in the form that LingBot-VLA v2 prints: 4 decimals, a tqdm prefix glued on, steps from 1.

Step k of `loss.jsonl` is `Step k+1/N` here, as in the tool itself; the manifest's series says so to the reader.
The line's shape is that of facts/formats-logs.txt; fields that the rehearsal does not have are left out.
"""

from collections.abc import Iterable, Mapping

STAMP = "01/01/2026 00:00:00"
"""A fixed time: a log must not differ between two runs that do not."""


def printed_log(records: Iterable[Mapping[str, float]]) -> str:
    """The log lines of records with step, loss, grad_norm and lr."""
    rows = list(records)
    return "".join(_line(row, len(rows)) for row in rows)


def _line(row: Mapping[str, float], total: int) -> str:
    step = int(row["step"]) + 1
    return (
        f"Step: {step}/{total} [00:00<00:00,  1.00s/it]{STAMP} - INFO - __main__ - Step {step}/{total}, Epoch 1, "
        f"Loss {row['loss']:.4f}, VLA_Loss {row['loss']:.4f}, GradNorm {row['grad_norm']:.4f}, LR {row['lr']:.2e}, "
        "StepTime 1.000s, Ignore_Batch_Num 0\n"
    )
