"""Judges the captures of a bundle again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from conform import rule
from conform.nic import run
from conform.nic.device_file import parse
from conform.nic.session import ReplayError
from conform.result import UNREACHED, Result


def again(manifest: Mapping[str, Any], held: Mapping[str, bytes]) -> list[Result]:
    """The results of all rules that have captures."""
    about = manifest["about"]
    device = replace(parse(about["device_file"]), ev_probe=about["ev_probe"])
    rules = {one.id: one for one in rule.load(run.ROLES)}
    results = []
    for told in manifest["results"]:
        known = rules.get(told["rule"])
        if known is None or not told["captures"]:
            continue
        captures = [held[name] for name in told["captures"] if name in held]
        try:
            if known.role == "hunt":
                number, schedule = about["schedules"][known.id]
                results.append(run.hunted_again(known, device, about["seed"], number, schedule, captures[0]))
            else:
                results.append(run.again(known, device, about["seed"], captures))
        except (ReplayError, ValueError, KeyError) as error:
            results.append(Result(known.id, UNREACHED, f"cannot be judged again: {error}"))
    return results
