"""Packages: the same version, from the same origin."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from .envremark import SIDES, Excuses, Remark, listing, parted, remark, unsure
from .envview import Package, View, normal, show

_FOLDERS = ("editable", "develop", "local")
"""Kinds of origin whose code is that of a source folder, known by git's commit if at all."""


def judge_package(name: str, wanted: str, baseline: View, candidate: View, excuses: Excuses) -> list[Remark]:
    """A package that must match: present on both sides, one version, inside the specifier, from one origin.

    `wanted` is "*", a PEP 440 specifier or a bare version. Only a declared override excuses a difference: may_differ
    patterns are wider than a name that was written out. The baseline's own version must satisfy the specifier in any
    case.
    """
    if baseline.packages is None or candidate.packages is None:
        return [unsure("env-unrecorded", name=name, side=side) for side, one in zip(SIDES, (baseline, candidate),
                                                                                    strict=True)
                if one.packages is None]
    left, right = baseline.packages.get(normal(name)), candidate.packages.get(normal(name))
    if left is None and right is None:
        return [unsure("env-absent", name=name)]
    try:
        specifier = SpecifierSet(_specifier(wanted), prereleases=True)
    except InvalidSpecifier:
        return [unsure("env-bad-rule", name=name, wanted=show(wanted))]
    own = list(_outside(name, specifier, "baseline", left, wanted))
    between = list(_outside(name, specifier, "candidate", right, wanted))
    if left is None or right is None:
        side = "candidate" if left is None else "baseline"
        between.append(parted("env-one-sided", "package", name, left and left.version, right and right.version,
                              name=name, side=side))
    else:
        between = list(_between(name, left, right)) + between
    for side, package, into in zip(SIDES, (left, right), (own, between), strict=True):
        if package is not None and package.unread:
            into.append(unsure("env-package-unread", name=name, side=side, error=show(package.unread)))
        elif package is not None and _version(package.version) is None:
            into.append(unsure("env-bad-version", name=name, side=side, version=show(package.version)))
        others = sorted({other for other in package.shadowed if other != package.version}) if package else []
        if package is not None and others:
            between.append(unsure("env-shadowed", name=name, side=side, version=package.version,
                                  others=listing(others)))
    return own + excuses.apply(name, between, may_differ=False)


def _specifier(wanted: str) -> str:
    text = wanted.strip()
    return "" if text == "*" else f"=={text}" if text[:1] in tuple("0123456789") else text


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _outside(name: str, specifier: SpecifierSet, side: str, package: Package | None, wanted: str) -> Iterator[Remark]:
    version = _version(package.version) if package is not None and not package.unread else None
    if package is not None and version is not None and not specifier.contains(version):
        own = (package.version, wanted) if side == "baseline" else (wanted, package.version)
        yield parted("env-outside", "package", name, *own, name=name, side=side, wanted=wanted)


def _between(name: str, left: Package, right: Package) -> Iterator[Remark]:
    if left.unread or right.unread:
        return
    if not same_version(left.version, right.version):
        yield parted("env-version", "package", name, left.version, right.version, name=name)
        return
    what = origin_difference(left, right)
    if what is not None:
        yield parted("env-origin", "origin", name, what[1], what[2], name=name, version=left.version, what=what[0])
    elif left.kind in _FOLDERS and not _same_payload(left, right) and not (
            left.commit and left.dirty == right.dirty == 0):
        yield unsure("env-origin-unknown", name=name, version=left.version)
    elif (left.modified or left.missing) and not left.patch:
        yield unsure("env-modified-unverified", name=name, version=left.version)
    elif left.patch:
        yield remark("env-patched-alike", name=name, files=_changed(left))


def same_version(left: str, right: str) -> bool:
    """PEP 440 equality apart from the local tag, which is a matter of origin; other version strings literally."""
    one, other = _version(left), _version(right)
    return left == right if one is None or other is None else Version(one.public) == Version(other.public)


def origin_difference(left: Package, right: Package) -> tuple[str, str, str] | None:
    """What shows that one version came from two origins: (what, baseline, candidate), or None.

    In this order. The local tag (2.1.0+cu118). Files that differ on disk from what was installed, changed, added or
    gone: unequal patches, also a patch on one side only. Then, for two pure wheels, the payload hash settles it alone:
    the same files are the same code, whether an index, a mirror's URL or a commit brought them, and other files are
    other code. Binary wheels of one release differ by platform and Python, so between them (and wherever a payload is
    missing) the payload says nothing, and kind of origin, commit, archive hash and uncommitted changes of an editable
    install decide.
    """
    one, other = _version(left.version), _version(right.version)
    if one is not None and other is not None and one.local != other.local:
        return "local tag", left.version, right.version
    if left.patch != right.patch or bool(left.modified) != bool(right.modified) or left.missing != right.missing:
        return "modified files", _patch(left), _patch(right)
    if left.build == right.build == "pure" and left.payload and right.payload:
        return None if left.payload == right.payload else ("files", left.payload, right.payload)
    if left.kind != right.kind:
        return "origin", _origin(left), _origin(right)
    if left.commit != right.commit:
        return "commit", left.commit or "?", right.commit or "?"
    if left.archive and right.archive and left.archive != right.archive and not _binary(left, right):
        return "archive", left.archive, right.archive
    if left.dirty or right.dirty:
        return "uncommitted changes", f"{show(left.dirty)} files", f"{show(right.dirty)} files"
    return None


def _binary(left: Package, right: Package) -> bool:
    """Wheels for two platforms have two hashes; only an archive that fits both can be compared."""
    return "binary" in (left.build, right.build)


def _same_payload(left: Package, right: Package) -> bool:
    return bool(left.payload) and left.payload == right.payload


def _changed(package: Package) -> int:
    return package.modified + package.added + package.missing


def _patch(package: Package) -> str:
    changed = _changed(package)
    return f"{changed} files{' #' + package.patch if package.patch else ''}" if changed else "0 files"


def _origin(package: Package) -> str:
    detail = package.commit[:12] or package.archive
    return f"{package.kind} {detail}" if detail else package.kind


def origin_text(package: Package) -> str:
    """Version, origin and patch in one line."""
    return f"{package.version} {_origin(package)} {_patch(package)}"


def judge_others(named: set[str], baseline: View, candidate: View, excuses: Excuses) -> list[Remark]:
    """Packages that no rule names: differences are listed, as declared (may_differ), waived, or undeclared."""
    left, right = baseline.packages or {}, candidate.packages or {}
    declared: list[str] = []
    undeclared: list[str] = []
    remarks: list[Remark] = []
    for name in sorted((set(left) | set(right)) - named):
        text = _difference(left.get(name), right.get(name))
        if text is None:
            continue
        reason = excuses.reason(name)
        if reason is not None:
            remarks.append(remark("env-waived", name=name, reason=reason, baseline=text[0], candidate=text[1]))
        else:
            (declared if excuses.tolerated(name) else undeclared).append(f"{name} {text[0]} -> {text[1]}")
    if undeclared:
        remarks.append(remark("env-undeclared", count=len(undeclared), listed=listing(undeclared)))
    if declared:
        remarks.append(remark("env-may-differ", count=len(declared), listed=listing(declared)))
    return remarks


def _difference(left: Package | None, right: Package | None) -> tuple[str, str] | None:
    if left is None or right is None:
        return show(left and left.version), show(right and right.version)
    if left.unread or right.unread:
        return left.unread or left.version, right.unread or right.version
    if not same_version(left.version, right.version):
        return left.version, right.version
    what = origin_difference(left, right)
    return None if what is None else (f"{left.version} ({what[0]}: {what[1]})", f"{right.version} ({what[2]})")
