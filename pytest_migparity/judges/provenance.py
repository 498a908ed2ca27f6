"""Were the intended weights really loaded? What was asked, what the log says, what the weights are: all must agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pytest_migparity.core.verdict import Note, note
from pytest_migparity.wire.provenance import Asked, Restored, Weights

from .checkpoint_name import same_checkpoint, step_of

_LISTED = 8
_AUTOMATIC = ("enable_resume", "auto_resume")


@dataclass(frozen=True, slots=True)
class Witnesses:
    """One side's three witnesses, each as far as it was heard."""

    asked: tuple[Asked, ...] = ()
    restored: tuple[Restored, ...] = ()
    weights: Weights | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """What the manifest says of a run's start: the `checkpoint`, whether it is a `resume` (None: it does not say), and
    patterns of tensors that may start `new`, such as a head for other actions.
    """

    checkpoint: str = ""
    resume: bool | None = None
    new: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Start:
    """How one side's run began, and what was found wrong or missing on the way there."""

    failed: tuple[Note, ...]
    unsure: tuple[Note, ...]
    resumed: bool | None
    step: int | None = None
    new: frozenset[str] = frozenset()


def judge_provenance(baseline: Witnesses | None, candidate: Witnesses | None,
                     expected: Expected) -> tuple[list[Note], bool, bool]:
    """(what to tell, did anything fail, is anything open).

    Fails where a witness contradicts another or the manifest: another checkpoint restored than asked for, a fallback
    after a failed load, a resume asked for and a fresh start made (or the other way round), tensors that the checkpoint
    did not fill, memory that holds other values than the file; and where the two sides began differently. A witness
    that was not heard leaves it open: silence proves nothing.
    """
    starts = [_start(side, witnesses or Witnesses(), expected)
              for side, witnesses in (("baseline", baseline), ("candidate", candidate))]
    failed = [item for start in starts for item in start.failed]
    unsure = [item for start in starts for item in start.unsure]
    failed += _between(*starts)
    return [*failed, *unsure], bool(failed), bool(unsure)


def _start(side: str, witnesses: Witnesses, expected: Expected) -> _Start:
    """Judge one side alone."""
    failed: list[Note] = []
    unsure: list[Note] = []
    events = [event for event in witnesses.restored if event.kind != "partial"]
    if not witnesses.restored:
        unsure.append(note("provenance-no-restored", side=side))
    resumed = _resumed(side, events, unsure)
    _check_asked(side, witnesses.asked, events, resumed, expected, failed, unsure)
    new = _new_tensors(side, witnesses.restored, expected, failed)
    _check_weights(side, witnesses.weights, failed, unsure)
    step = next((event.step if event.step is not None else step_of(event.path) for event in reversed(events)
                 if event.kind == "resume" and (event.step is not None or event.path)), None)
    return _Start(tuple(failed), tuple(unsure), resumed, step if resumed else None, new)


def _resumed(side: str, events: Sequence[Restored], unsure: list[Note]) -> bool | None:
    """Did the run go on from an earlier one? The last event tells; None where nothing was said.

    A loader first fills a model (init) and then goes on (resume). An init after a resume is a new start, if it is not
    the line of another rank.
    """
    telling = [event for event in events if event.kind in ("resume", "init", "fresh")]
    if not telling:
        return False if events else None
    last = max((at for at, event in enumerate(telling) if event.kind == "resume"), default=-1)
    after = telling[last + 1:]
    if last < 0 or any(event.kind == "fresh" for event in after):
        return False
    before = {event.path for event in telling[:last] if event.kind == "init"}
    if after and all(event.path in before for event in after):
        unsure.append(note("provenance-restarted", side=side, line=after[0].line))
        return None
    return not after


def _check_asked(side: str, asked: Sequence[Asked], events: Sequence[Restored], resumed: bool | None,
                 expected: Expected, failed: list[Note], unsure: list[Note]) -> None:
    """Hold the configuration against the log."""
    chosen = {intent: [item for item in asked if item.chosen and item.intent == intent]
              for intent in ("init", "resume")}
    if not any(chosen.values()):
        unsure.append(note("provenance-no-asked", side=side))
        return
    for items in chosen.values():
        if len({item.value for item in items}) > 1:
            unsure.append(note("provenance-ambiguous", side=side, fields=", ".join(
                f"{item.field} = {item.value or 'none'} ({item.file})" for item in items)))
            return
    init, resume = (items[0] if items else None for items in (chosen["init"], chosen["resume"]))
    fell = [event for event in events if event.kind == "fallback"]
    if fell:
        failed.append(note("provenance-fallback", side=side, line=fell[0].line, text=fell[0].text))
    if expected.resume is not None and resumed is not None and resumed is not expected.resume:
        failed.append(note(f"provenance-start-{'resume' if expected.resume else 'fresh'}", side=side))
    if resume is not None and resume.value and not (resumed is False and _may_start(resume, expected)):
        _check_resume(side, resume, events, resumed, expected, failed, unsure)
        return
    if resumed:
        event = next(event for event in reversed(events) if event.kind == "resume")
        failed.append(note("provenance-resumed-unasked", side=side, line=event.line, text=event.text))
        return
    _check_init(side, init, events, expected, failed, unsure)


def _may_start(resume: Asked, expected: Expected) -> bool:
    """May a run that was asked to go on start instead? Where its field means "if there is something to go on with"."""
    return expected.resume is False or resume.field.rpartition(".")[2] in _AUTOMATIC


def _check_resume(side: str, resume: Asked, events: Sequence[Restored], resumed: bool | None, expected: Expected,
                  failed: list[Note], unsure: list[Note]) -> None:
    if resumed is False and any(event.kind in ("fresh", "fallback") for event in events):
        failed.append(note("provenance-not-resumed", side=side, field=resume.field, value=resume.value))
    elif not resumed:
        unsure.append(note("provenance-resume-unseen", side=side, field=resume.field, value=resume.value))
    elif resume.value != "true":
        paths = [event for event in events if event.kind == "resume" and event.path]
        _compare(side, resume, paths[-1:], failed, unsure)
    if expected.checkpoint and resume.value != "true":
        _as_expected(side, resume, expected, failed, unsure)


def _check_init(side: str, init: Asked | None, events: Sequence[Restored], expected: Expected, failed: list[Note],
                unsure: list[Note]) -> None:
    loaded = [event for event in events if event.kind == "init"]
    if init is None or not init.value:
        if loaded:
            failed.append(note("provenance-init-unasked", side=side, line=loaded[0].line, text=loaded[0].text))
        if expected.checkpoint:
            failed.append(note("provenance-asked-nothing", side=side, checkpoint=expected.checkpoint))
        return
    _compare(side, init, [event for event in loaded if event.path], failed, unsure)
    if expected.checkpoint:
        _as_expected(side, init, expected, failed, unsure)


def _compare(side: str, asked: Asked, events: Sequence[Restored], failed: list[Note], unsure: list[Note]) -> None:
    """One of the paths in the log must be the one that was asked for: a model may be filled from several."""
    answers = [same_checkpoint(asked.value, event.path) for event in events]
    if True in answers:
        return
    if not answers:
        unsure.append(note("provenance-path-unseen", side=side, field=asked.field, value=asked.value))
    elif None in answers:
        unsure.append(note("provenance-path-untold", side=side, field=asked.field, value=asked.value,
                           restored=events[answers.index(None)].path))
    else:
        failed.append(note("provenance-other-checkpoint", side=side, field=asked.field, value=asked.value,
                           restored=events[-1].path, line=events[-1].line))


def _as_expected(side: str, asked: Asked, expected: Expected, failed: list[Note], unsure: list[Note]) -> None:
    same = same_checkpoint(expected.checkpoint, asked.value)
    if same is not True:
        (unsure if same is None else failed).append(note("provenance-asked-other", side=side, field=asked.field,
                                                         value=asked.value, checkpoint=expected.checkpoint))


def _new_tensors(side: str, events: Sequence[Restored], expected: Expected, failed: list[Note]) -> frozenset[str]:
    """The tensors that no checkpoint filled; those that the manifest does not name fail."""
    new = frozenset(name for event in events if event.kind == "partial" for name in event.tensors)
    bad = sorted(name for name in new if not any(fnmatchcase(name, each) for each in expected.new))
    untold = [event for event in events if event.kind == "partial" and not event.tensors]
    if bad:
        failed.append(note("provenance-new-tensors", side=side, count=len(bad), names=_some(bad)))
    if untold:
        failed.append(note("provenance-partial", side=side, line=untold[0].line, text=untold[0].text))
    return new


def _check_weights(side: str, weights: Weights | None, failed: list[Note], unsure: list[Note]) -> None:
    if weights is None or not (weights.file and weights.loaded):
        what = "file" if weights is None or not weights.file else "memory"
        unsure.append(note(f"provenance-no-{what}", side=side))
    elif weights.amount:
        failed.append(note("provenance-replaced", side=side, count=weights.amount, names=_some(weights.differing)))


def _between(baseline: _Start, candidate: _Start) -> list[Note]:
    """Both sides must have begun in the same way."""
    starts = (baseline, candidate)
    found = []
    if {start.resumed for start in starts} == {True, False}:
        found.append(note("provenance-starts-differ", side="baseline" if baseline.resumed else "candidate"))
    steps = [start.step for start in starts]
    if None not in steps and steps[0] != steps[1]:
        found.append(note("provenance-steps-differ", baseline=str(steps[0]), candidate=str(steps[1])))
    if baseline.new != candidate.new:
        found.append(note("provenance-new-differ", names=_some(sorted(baseline.new ^ candidate.new))))
    return found


def _some(names: Sequence[str]) -> str:
    rest = f" (+{len(names) - _LISTED})" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + rest
