"""Are two runs alike in all but one thing? Only then does a difference between their outcomes tell of that thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judging.run import Run
from judging.single_plane import on_single_plane_target

# Options that must be the same in both runs, with the names that a user knows.
SAME = {
    "scenario": "the scenario",
    "plan": "the plan",
    "seed": "the seed",
    "world": "the world",
    "phases": "the lengths of the phases",
    "host_rate_bps": "the rate of a host",
    "version": "the version of mrclab",
}
USUAL = "the default"  # a key that a run left alone
# Options in which the two runs may differ: in one of these.
SUBJECTS = {
    "transport": "the transport",
    "overrides": "keys of the plan",
    "settings": "settings of the transport",
    "reconvergence_s": "routing's reconvergence",
    "added_faults": "faults added by --fault",
}
# The digests of `running.identity`; the two runs may differ in one of these instead.
HASHED = {
    "program": "the P4 program",
    "plan": "the plan's file",
    "transport": "the transport's code",
    "switch": "the switch's code",
    "lab": "the lab's code",
    "imports": "a module that the scenario imports",
    "programs": "a file of the programs in hosts",
}


@dataclass(frozen=True, slots=True)
class Likeness:
    """`subject` is the thing in which the runs differ, "" for none; `unlike` says why they cannot be compared."""

    subject: str
    unlike: tuple[str, ...]

    @property
    def alike(self) -> bool:
        """Whether the two differ in one thing at most."""
        return not self.unlike


def likeness(first: Run, second: Run) -> Likeness:
    """The likeness of two runs, by their options and by the faults that were really injected."""
    one, other = first.options, second.options
    unlike = [
        f"not the same: {title} ({brief(one.get(key))} and {brief(other.get(key))})"
        for key, title in SAME.items()
        if one.get(key) != other.get(key)
    ]
    if bool(one.get("hashes")) != bool(other.get("hashes")):
        unlike.append("only one of them recorded its P4 program, scenario and code")
    elif hashed(one, "scenario") != hashed(other, "scenario"):
        unlike.append("not the same: the scenario's file")
    subjects = {title: contrast(one.get(k), other.get(k)) for k, title in SUBJECTS.items() if differs(k, one, other)}
    subjects |= edited(one, other)
    if len(subjects) > 1:
        unlike.append("more than one thing differs: " + " and ".join(subjects))
    if not unlike and SUBJECTS["added_faults"] not in subjects and targets(first) != targets(second):
        unlike.append("other faults were injected")
    subject = "; ".join(f"{title}, {difference}" for title, difference in subjects.items())
    return Likeness(subject, tuple(unlike))


def hashed(options: Mapping[str, Any], name: str) -> str:
    """A digest of a run; "" when the run did not record it."""
    return str((options.get("hashes") or {}).get(name, ""))


def edited(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, str]:
    """The things that were edited between two runs, by their digests; none when a run recorded no digests.

    A plan's digest follows its overrides and rates: it tells of the file only where those are the same. The transport's
    has the files that settings name, so it tells of the code only where those settings are the same.
    """
    if not (one.get("hashes") and other.get("hashes")):
        return {}
    names = [name for name in HASHED if hashed(one, name) != hashed(other, name)]
    if differs("overrides", one, other) or one.get("host_rate_bps") != other.get("host_rate_bps"):
        names = [name for name in names if name != "plan"]
    if files_named(one) != files_named(other):
        names = [name for name in names if name != "transport"]
    return {HASHED[name]: f"{hashed(one, name)[:8]} against {hashed(other, name)[:8]}" for name in names}


def files_named(options: Mapping[str, Any]) -> dict[str, str]:
    """The settings whose algorithm is a class in a file."""
    return {name: value for name, value in (options.get("settings") or {}).items() if ".py:" in str(value)}


def differs(key: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Settings follow from the transport: they are a separate difference only under the same one."""
    if key == "settings" and one.get("transport") != other.get("transport"):
        return False
    return bool((one.get(key) or None) != (other.get(key) or None))


def contrast(one: Any, other: Any) -> str:
    """Two values in words; of two mappings, only the keys that differ."""
    if isinstance(one or other, Mapping):
        one, other = one or {}, other or {}
        keys = sorted(key for key in {*one, *other} if one.get(key) != other.get(key))
        return ", ".join(f"{key} {one.get(key, USUAL)} against {other.get(key, USUAL)}" for key in keys)
    if isinstance(one or other, list):
        one, other = (", ".join(items or []) or None for items in (one, other))
    return f"{'none' if one is None else one} against {'none' if other is None else other}"


def brief(value: Any) -> str:
    """An option's value for a sentence."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item:g} s" for key, item in value.items())
    return "not recorded" if value is None else str(value)


def targets(run: Run) -> set[tuple[str, str]]:
    """The faults of a run as they would be on a single plane, where two planes' links are one."""
    return {(fault.verb, on_single_plane_target(fault.target)) for fault in run.faults}
