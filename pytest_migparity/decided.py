"""Is L7 decided by the episodes that have ended so far?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from .core.errors import UserError
from .core.evidence import Evidence, Policy, Recorded
from .core.levels import LEVELS
from .core.limits import Declared, Floors
from .core.verdict import Outcome, Witness
from .judges.closedloop import judge_rollouts
from .judges.loop_pairs import Key, place
from .wire.rollouts import Episode, RolloutError, Rollouts, from_text


def in_order(planned: Iterable[Key]) -> list[Key]:
    """Episodes in the fixed random order in which L7 judges them: it may look after each, and a run may stop there."""
    return sorted(planned, key=place)


class Decided:
    """Judges the episodes that ended, up to the first of the plan that has not: `outcome` is the last answer."""

    def __init__(self, baseline: Path, planned: Sequence[Key], margin: float, alpha: float) -> None:
        try:
            raw = baseline.read_bytes()
            table = from_text(raw.decode("utf-8"))
        except OSError as error:
            raise UserError(f"{baseline}: {error.strerror}") from None
        except (RolloutError, UnicodeDecodeError) as error:
            raise UserError(f"{baseline}: {error}") from None
        wanted = set(planned)
        kept = tuple(episode for episode in table.episodes if (episode.task, episode.seed) in wanted)
        self._baseline = _evidence("baseline", table._replace(episodes=kept), hashlib.sha256(raw).hexdigest())
        self._planned = planned
        specs = LEVELS["L7"].checks
        values = {"margin": margin, "alpha": alpha}
        self._limits = {name: Declared(values.get(name, spec.default), "option") for name, spec in specs.items()}
        self.outcome = Outcome.INCONCLUSIVE

    def __call__(self, done: Sequence[Episode]) -> bool:
        """Has one of the certificates been reached?"""
        ended = {(episode.task, episode.seed): episode for episode in done}
        beginning = []
        for key in self._planned:
            if key not in ended:
                break
            beginning.append(ended[key])
        if not beginning:
            return False
        self.outcome = judge_rollouts(self._baseline, _evidence("candidate", Rollouts(tuple(beginning))),
                                      limits=self._limits, floors=Floors(), policy=Policy()).outcome
        return self.outcome is not Outcome.INCONCLUSIVE


def _evidence(side: str, table: Rollouts, sha256: str = "") -> Evidence[Rollouts]:
    """Without a sha256: of a file that is still being written."""
    return Evidence(side, "rollouts", (Recorded(table, Witness(side, "manual", side, sha256)),))
