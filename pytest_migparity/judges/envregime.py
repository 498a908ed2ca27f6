"""The numeric regime: switches that change every number, and code built for other hardware than the present."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .envconfig import equal
from .envpackages import same_version
from .envremark import SIDES, Excuses, Remark, listing, parted, remark, unsure
from .envview import View, show


@dataclass(frozen=True, slots=True)
class Switch:
    """An environment variable of one vendor. `default` is what unset means there; `neutral` are the values under which
    that vendor computes as another one does that lacks the switch.
    """

    vendor: str
    default: str | None
    neutral: tuple[str | None, ...]


SWITCHES = {
    # Ascend: "1" (default) keeps Inf and NaN as a GPU does, "0" saturates at the largest finite number
    "INF_NAN_MODE_ENABLE": Switch("npu", "1", ("1",)),
    "INF_NAN_MODE_FORCE_DISABLE": Switch("npu", "0", ("0",)),
    # NVIDIA: "0" forbids TF32, unset leaves it to the program (its flags are compared below)
    "NVIDIA_TF32_OVERRIDE": Switch("cuda", None, ("0", None)),
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": Switch("cuda", "0", ("0",)),
}
# One question, asked of each vendor's own flag: may float32 be rounded to 19 bits (TF32) or 20 (HF32) on the way in?
_REDUCED = {
    "torch:matmul-reduced": {"cuda": "cuda.matmul.allow_tf32", "npu": "npu.matmul.allow_hf32"},
    "torch:conv-reduced": {"cuda": "cudnn.allow_tf32", "npu": "npu.conv.allow_hf32"},
}
_SHARED_FLAGS = ("matmul_precision", "default_dtype")


def judge_switches(baseline: View, candidate: View, excuses: Excuses) -> list[Remark]:
    """Overflow and TF32 variables whose effect differs are mismatches; every other listed variable is only listed."""
    remarks: list[Remark] = []
    for name, switch in SWITCHES.items():
        effects = switch_effects(baseline, candidate, name, switch)
        if effects is not None:
            remarks += excuses.apply(f"env:{name}", [parted("env-regime", "env", name, *effects, name=name)])
    others = [f"{name} {show(baseline.env.get(name))} -> {show(candidate.env.get(name))}"
              for name in sorted(set(baseline.env) | set(candidate.env))
              if name not in SWITCHES and baseline.env.get(name) != candidate.env.get(name)]
    if others:
        remarks.append(remark("env-variables", count=len(others), listed=listing(others)))
    return remarks


def switch_effects(one: View, other: View, name: str, switch: Switch) -> tuple[str | None, str | None] | None:
    """What a switch does in two processes, None where that is the same."""
    left, right = (_state(view, name, switch) for view in (one, other))
    if left == right or (left == "" and right in switch.neutral) or (right == "" and left in switch.neutral):
        return None
    return left if left != "" else "(does not apply)", right if right != "" else "(does not apply)"


def _state(side: View, name: str, switch: Switch) -> str | None:
    """The effective value; "" where the side has no such hardware."""
    if side.vendors and switch.vendor not in side.vendors:
        return ""
    return side.env.get(name) or switch.default


def judge_flags(baseline: View, candidate: View, excuses: Excuses) -> list[Remark]:
    """Numeric flags of torch.

    Where one side's are those of its running program, the other's must be too: a probe's defaults, or nothing, say
    nothing of a run. Two probes are compared for what they are, with a note. An override of torch:flags covers a side
    that cannot record them.
    """
    sides = (baseline, candidate)
    for side, one, other in zip(SIDES, sides, reversed(sides), strict=True):
        if other.flags_in_process and not one.flags_in_process:
            return excuses.apply("torch:flags", [unsure("env-flags-unseen", side=side)])
    if not (baseline.flags and candidate.flags):
        seen = [one.flags_seen or "?" if one.flags else "(not recorded)" for one in sides]
        return [remark("env-flags-apart", baseline=seen[0], candidate=seen[1])] if seen[0] != seen[1] else []
    remarks = [] if baseline.flags_in_process else [remark("env-flags-probed")]
    pairs: list[tuple[str, object, object]]
    pairs = [(f"torch:{name}", baseline.flags.get(name), candidate.flags.get(name)) for name in _SHARED_FLAGS]
    pairs += [(name, _flag(baseline, by_vendor), _flag(candidate, by_vendor)) for name, by_vendor in _REDUCED.items()]
    for name, left, right in pairs:
        if (left is None) != (right is None):
            found = parted("env-flag-one-sided", "env", name, left, right, open_=True, name=name)
        elif not equal(left, right):
            found = parted("env-regime", "env", name, left, right, name=name)
        else:
            continue
        remarks += excuses.apply(name, [found])
    return remarks


def _flag(side: View, by_vendor: dict[str, str]) -> object:
    """The flag of the side's hardware; where that is unknown, of the vendor whose switch its torch has."""
    vendors = [vendor for vendor in by_vendor if vendor in side.vendors]
    if not side.vendors:
        vendors = [vendor for vendor in ("npu", "cuda") if by_vendor[vendor] in side.flags][:1]
    return side.flags.get(by_vendor[vendors[0]]) if len(vendors) == 1 else None


def judge_built(baseline: View, candidate: View, excuses: Excuses) -> list[Remark]:
    """Was torch, and was every compiled extension, built for the devices present? Is the imported torch the one
    installed? Two builds of one extension for one kind of device are a mismatch too.
    """
    remarks: list[Remark] = []
    for side, one in zip(SIDES, (baseline, candidate), strict=True):
        for name, (built, present) in unfit(one).items():
            values = (f"built for {built}", "") if side == "baseline" else ("", f"built for {built}")
            remarks += excuses.apply(f"extension:{name}" if name != "torch" else name, [parted(
                "env-arch", "architecture", name, *values, name=name, side=side, built=built, present=present)],
                may_differ=False)
        installed = (one.packages or {}).get("torch")
        if installed and one.torch_version and not same_version(installed.version, one.torch_version):
            said = f"imports {one.torch_version}"
            values = (said, "") if side == "baseline" else ("", said)
            remarks.append(parted("env-imported", "package", "torch", *values, name="torch", side=side,
                                  installed=installed.version, imported=one.torch_version))
    for name in sorted(set(baseline.extensions) & set(candidate.extensions)):
        (left_hash, left), (right_hash, right) = baseline.extensions[name], candidate.extensions[name]
        if left and right and left != right and baseline.present == candidate.present:
            remarks += excuses.apply(f"extension:{name}", [parted(
                "env-extension", "extension", name, listing(list(left), 6), listing(list(right), 6), name=name)])
        elif left_hash != right_hash:
            remarks.append(remark("env-extension-differs", name=name, baseline=left_hash, candidate=right_hash))
    return remarks


def unfit(one: View) -> dict[str, tuple[str, str]]:
    """Torch and extensions that have no code for a device present: name -> (built for, devices)."""
    built = [("torch", one.built_for)] + [(name, archs) for name, (_, archs) in sorted(one.extensions.items())]
    devices = {name: [device for device in one.present if archs and not runs_on(archs, device)]
               for name, archs in built}
    return {name: (listing(list(archs), 6), listing(devices[name], 6)) for name, archs in built if devices[name]}


def runs_on(archs: tuple[str, ...], device: str) -> bool:
    """Can code for `archs` run on `device`? Machine code within its major version upwards (an `a` only exactly), PTX on
    anything newer. Names that are no such architecture claim nothing.
    """
    target = re.fullmatch(r"sm_([0-9]+)([0-9])", device)
    parsed = [match for arch in archs if (match := re.fullmatch(r"(sm|compute)_([0-9]+)([0-9])([a-z]?)", arch))]
    if target is None or not parsed:
        return True
    major, minor = int(target[1]), int(target[2])
    for match in parsed:
        own = int(match[2]), int(match[3])
        if match[4] == "a":
            if own == (major, minor):
                return True
        elif (match[1] == "compute" and own <= (major, minor)) or (own[0] == major and own[1] <= minor):
            return True
    return False
