"""L0: the same software stack and effective configuration, apart from what was declared to differ?"""

from __future__ import annotations

from pytest_migparity.core.evidence import EnvLock, Evidence, Policy
from pytest_migparity.core.levels import Direction
from pytest_migparity.core.limits import Floors, Limit, Limits
from pytest_migparity.core.verdict import Check, Coverage, Divergence, Finding, note, settle

from .envconfig import (
    describe_port,
    is_option,
    judge_configs,
    judge_option,
    judge_requested,
    judge_upstream,
)
from .envpackages import judge_others, judge_package
from .envranks import Members, judge_absent, judge_ranks, judge_worlds
from .envregime import judge_built, judge_flags, judge_switches
from .envremark import SIDES, Excuses, Grade, Remark, listing, remark, unsure
from .envview import View, normal, view

# L0 counts violated rules: one is too many, and no floor or digit excuses it
NONE_ALLOWED = Limit(declared=0, direction=Direction.MAX, source="rule", cap=0)


def judge_env(baseline: Evidence[EnvLock], candidate: Evidence[EnvLock], *,
              limits: Limits, floors: Floors, policy: Policy) -> Finding:
    """Hold two environments against `policy.env`.

    A violated rule is a FAIL, and the first in the order packages, origin, processes, configuration, requested options,
    upstream tree, numeric switches, builds is the divergence that is named. What a rule needs and the locks do not hold
    (absent on both sides, unreadable, stated on one side only) is INCONCLUSIVE, and so are locks in which no rule had
    anything to judge. Differences outside the rules are listed. `limits` and `floors` are not used: L0 has no numbers
    to loosen. Raises nothing on bad data.
    """
    evidence = (baseline, candidate)
    processes = (_processes(baseline), _processes(candidate))
    members = [[one for run in runs for one in run] for runs in processes]
    problems = [item for one in evidence for item in one.problems]
    problems += [note("env-missing", side=one.side) for one, found in zip(evidence, members, strict=True) if not found]
    repairs = [item for one in evidence for run in one.runs for item in run.repairs]
    required = len(policy.env.must_match)
    if not all(members):
        nothing = (Check("mismatches", 0.0, NONE_ALLOWED, blocked="env-nothing"),)
        return Finding(settle(nothing, unsure=True), nothing, Coverage("packages", 0, required),
                       notes=(*problems, *repairs), mode=policy.mode)
    left, right = members[0][0][1], members[1][0][1]
    remarks, compared, judged = _rules(left, right, policy)
    options = {name for name in (*policy.env.must_match, *policy.env.requested) if is_option(name)}
    ranks = [item for one, runs in zip(SIDES, processes, strict=True) for item in judge_ranks(one, runs, options)]
    ranks += judge_worlds(processes, policy.world_size, Excuses(policy.env))
    ranks += [item for one, runs in zip(SIDES, processes, strict=True) for item in judge_absent(one, runs)]
    head = [item for item in remarks if item.divergence and item.divergence.kind in ("package", "origin")]
    remarks = [*head, *ranks, *(item for item in remarks if item not in head), *_for_the_reader(left, right, policy)]
    if judged == 0:
        remarks.append(unsure("env-nothing"))
    remarks += _same_file(*evidence)
    mismatches = sum(item.grade is Grade.MISMATCH for item in remarks)
    open_ = sum(item.grade is Grade.UNSURE for item in remarks)
    checks = (Check("mismatches", float(mismatches), NONE_ALLOWED), Check("open", float(open_)))
    return Finding(
        settle(checks, unsure=bool(open_ or problems)), checks, _coverage(left, right, policy, compared, evidence),
        first_divergence=_first(remarks),
        notes=(*problems, *(item.note for item in sorted(remarks, key=lambda item: item.grade.value)), *repairs),
        mode=policy.mode,
    )


def _same_file(baseline: Evidence[EnvLock], candidate: Evidence[EnvLock]) -> list[Remark]:
    """One lock handed in for both sides agrees with itself whatever the hosts are.

    Two accelerators do not give byte-identical locks. A rehearsal may: it runs both sides on one machine.
    """
    ours, theirs = ({item.sha256 for item in side.witnesses if item.sha256} for side in (baseline, candidate))
    rehearsed = all(item.producer == "rehearsal" for item in (*baseline.witnesses, *candidate.witnesses))
    return [] if rehearsed or not ours & theirs else [unsure("env-same-file", sha256=min(ours & theirs)[:12])]


def _processes(evidence: Evidence[EnvLock]) -> list[Members]:
    """Every process of every run, with what to call it."""
    runs: list[Members] = []
    for index, run in enumerate(evidence.runs):
        found = []
        for position, document in enumerate(run.table.ranks):
            seen = view(document)
            label = f"rank {position if seen.rank is None else seen.rank}"
            found.append((f"run {index} {label}" if len(evidence.runs) > 1 else label, seen))
        runs.append(found)
    return runs


def _rules(left: View, right: View, policy: Policy) -> tuple[list[Remark], int, int]:
    """Every rule between the sides, in order of importance: (remarks, must-match names compared, things judged)."""
    rules, excuses = policy.env, Excuses(policy.env)
    packages: list[Remark] = []
    options: list[Remark] = []
    compared = 0
    for name in sorted(rules.must_match):
        judge, into = (judge_option, options) if is_option(name) else (judge_package, packages)
        found = judge(name, rules.must_match[name], left, right, excuses)
        compared += not any(item.note.code in ("env-absent", "env-unrecorded", "env-bad-rule", "env-one-sided",
                                              "env-package-unread")
                            for item in found)
        into += found
    handled = set(filter(is_option, (*rules.must_match, *rules.requested)))
    configs, values = judge_configs(left, right, excuses, handled)
    options += configs
    for name in sorted(rules.requested):
        options += judge_requested(name, rules.requested[name], left, right, excuses)
    trees, judged_trees = ([], 0) if not (rules.upstream_repo or rules.upstream_commit) else judge_upstream(
        rules.upstream_repo, rules.upstream_commit, left)
    regime = [*judge_switches(left, right, excuses), *judge_flags(left, right, excuses),
              *judge_built(left, right, excuses)]
    # origins after versions: another version explains more than another build of the same one
    packages.sort(key=lambda item: item.note.code == "env-origin")
    return ([*packages, *options, *trees, *regime], compared,
            len(rules.must_match) + values + len(rules.requested) + judged_trees)


def _for_the_reader(left: View, right: View, policy: Policy) -> list[Remark]:
    """Undeclared differences, the port's size, parts that broke, packages whose files nobody compared."""
    names = {normal(name) for name in policy.env.must_match if not is_option(name)}
    remarks = judge_others(names, left, right, Excuses(policy.env)) + describe_port(right)
    for side, one in zip(SIDES, (left, right), strict=True):
        remarks += [remark("env-part-error", side=side, part=part, error=error) for part, error in one.errors]
        unverified = [name for name in sorted(names) if (package := (one.packages or {}).get(name)) is not None
                      and package.payload and (package.unchecked or not package.checked)]
        if unverified:
            remarks.append(remark("env-unverified", side=side, names=listing(unverified)))
    return remarks


def _first(remarks: list[Remark]) -> Divergence | None:
    """The most important mismatch; where there is none, the first difference that leaves the level open."""
    for grade in (Grade.MISMATCH, Grade.UNSURE):
        for item in remarks:
            if item.grade is grade and item.divergence is not None:
                return item.divergence
    return None


def _coverage(left: View, right: View, policy: Policy, compared: int,
              evidence: tuple[Evidence[EnvLock], Evidence[EnvLock]]) -> Coverage:
    """Must-match names compared out of all; those on one side only."""
    names = {normal(name) for name in policy.env.must_match if not is_option(name)}
    one, other = names & set(left.packages or {}), names & set(right.packages or {})
    runs = [run for side in evidence for run in side.runs]
    return Coverage("packages", compared, len(policy.env.must_match), len(one - other), len(other - one),
                    sum(run.repaired for run in runs), sum(run.dropped for run in runs))
