"""L3 from a comparison that another tool made with both sides at hand: its metrics, judged by our rules."""

from __future__ import annotations

from dataclasses import replace

from pytest_migparity.core.dumped import Comparison, Dump, DumpedTensor
from pytest_migparity.core.evidence import Evidence, Policy
from pytest_migparity.core.limits import Floors, Limits
from pytest_migparity.core.verdict import Finding, note

from .dump_pairs import key_of, layer_of
from .dumped import judge_outputs


def judge_comparison(comparison: Evidence[Comparison], *, limits: Limits, floors: Floors, policy: Policy) -> Finding:
    """As `judge_dumped_forward`, from one table of both sides. Where it has cosines and distances those count as well.

    Nobody can check whose tensors were compared: the table is taken at its word, which a note says.
    """
    rows = comparison.runs[0].table.rows
    ours = tuple(row.baseline for row in rows if row.baseline)
    theirs = tuple(_beside(row.candidate, row.baseline) for row in rows if row.candidate)
    metrics = {key_of(row.baseline): (row.cosine, row.distance) for row in rows if row.baseline and row.candidate}
    level = "L0" if all(layer_of(tensor.name) is not None or tensor.name.startswith(("Module.", "Cell."))
                        for tensor in (*ours, *theirs)) else "mix"
    finding = judge_outputs(Dump(ours, "compare", level), Dump(theirs, "compare", level), comparison.problems, metrics,
                            limits=limits, floors=floors, policy=policy)
    return replace(finding, notes=(*finding.notes, note("dump-comparison", rows=len(rows))))


def _beside(tensor: DumpedTensor, other: DumpedTensor | None) -> DumpedTensor:
    """A tensor under the name that the table gives its partner."""
    return tensor if other is None else replace(tensor, stage=other.stage, name=other.name)
