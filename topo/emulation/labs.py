"""All labs of this machine: a row a lab, and the end of all that are a user's own."""

from __future__ import annotations

import os
from typing import Any

from topo.emulation import labname, state
from topo.emulation.lab import down
from topo.emulation.labname import LabName
from topo.emulation.state import LabError

_HEAD = ("NAME", "PLAN", "STATE", "OWNER", "AGE", "RUN", "FAULTS")
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400


def rows() -> list[dict[str, Any]]:
    """Every lab on record as JSON: name, plan, state, owner, age in seconds, the run it is for, faults in force."""
    found: list[dict[str, Any]] = []
    for name, record in state.records().items():
        if isinstance(record, LabError):
            found.append({"name": name.text, "state": "unreadable", "error": str(record)})
            continue
        found.append(
            {
                "name": name.text,
                "plan": record.plan.name,
                "state": "abandoned" if record.abandoned else record.phase,
                "owner": record.owner,
                "age_s": round(record.age_s, 1),
                "run": record.run,
                "faults": len(state.read_faults(name.root)),
            }
        )
    return found


def table(labs: list[dict[str, Any]]) -> str:
    """The rows for people."""
    lines: list[tuple[str, ...]] = [_HEAD]
    for lab in labs:
        age = age_words(lab["age_s"]) if "age_s" in lab else ""
        cells = (lab.get(key, "") for key in ("name", "plan", "state", "owner"))
        lines.append((*map(str, cells), age, lab.get("run") or "-", str(lab.get("faults", ""))))
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def age_words(age_s: float) -> str:
    """Such as 40 s, 12 min, 3.5 h, 2.0 days."""
    if age_s < 2 * _MINUTE_S:
        return f"{age_s:.0f} s"
    if age_s < 2 * _HOUR_S:
        return f"{age_s / _MINUTE_S:.0f} min"
    return f"{age_s / _HOUR_S:.1f} h" if age_s < 2 * _DAY_S else f"{age_s / _DAY_S:.1f} days"


def down_all(*, wait: bool = False) -> tuple[list[LabName], dict[LabName, str]]:
    """End every lab of this user; root itself, without sudo, ends everybody's.

    The names of the ended labs, and for each that stays, why it does.
    """
    me, everybody = state.user(), os.geteuid() == 0 and "SUDO_USER" not in os.environ
    ended: list[LabName] = []
    left: dict[LabName, str] = {}
    for name in labname.named():
        try:
            record = state.read_record(name.root)
        except LabError:
            record = None  # of another version: it has no owner that could be read
        if record is not None and not everybody and record.owner != me:
            left[name] = f"it is {record.owner or 'another user'}'s: down{name.option()} ends it"
            continue
        try:
            if down(name, wait=wait):
                ended.append(name)
        except LabError as error:
            left[name] = str(error)
    return ended, left
