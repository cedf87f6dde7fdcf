"""With which checks an old run is judged again, and what the reader must be told about them.

A run folder is data. Its plan and its choices are read from it; its scenario is the shipped one, or a file of the
user's whose copy lies in the folder. The copy is code that may come from another user: it runs only on request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import plain_file
from judging import Story, checks
from judging.checks import Check
from running import identity
from running.directory import SCENARIO, RunDirectory
from scenarios import Scenario, Setting, library
from scenarios.user_traffic import command, replay
from topo import Plan

__all__ = ["assessment"]


def setting_of(options: Mapping[str, Any], plan: Plan) -> Setting:
    """`plan` is the run's own, from its folder. Raises KeyError when the options are not those of a run."""
    ports = plan.planes if options["single_plane"] else 1
    return Setting(
        plan.at_rate(int(options["port_rate_bps"]) // ports),
        options["transport"],
        int(options["seed"]),
        options["phases"],
        int(options["queue_pairs"]),
        bool(options["single_plane"]),
        float(options.get("pace", 1.0)),
    )


@dataclass(frozen=True, slots=True)
class Assessment:
    """`notice` is "" when the checks are those that the run was made with."""

    checks: Sequence[Check]
    story: Story
    notice: str = ""


def assessment(path: Path, trust: bool = False) -> Assessment:
    """The checks for the run in this folder; `trust` runs the scenario file that the folder holds.

    ValueError or OSError names the file that is missing or damaged.
    """
    directory = RunDirectory(path)
    options = directory.options()
    if "scenario" in options and "phases" not in options:
        raise ValueError(f"{path} has no phases to judge: a run of an incident has its page, incident.html, instead")
    try:
        setting = setting_of(options, directory.plan())
        source, made_with = str(options["source"]), str(options["hashes"]["scenario"])
        name = str(options["scenario"])
    except (LookupError, TypeError, AttributeError) as error:
        place = path / "options.json"
        raise ValueError(f"{place} must hold the options of a run ({type(error).__name__}: {error})") from None
    commanded = bool(options.get("program"))
    if library.is_shipped(source):
        return _shipped(source, made_with, setting, commanded)
    if library.is_workload(source):
        return Assessment(list(replay.judge(setting)), replay.story(name))
    copy = path / SCENARIO
    if trust:
        now = identity.digest(plain_file.read_bytes(copy))
        scenario = library.load(copy)
        other = f"judged with other checks: {copy} is not the file that the run was made with"
        notice = "" if now == made_with else other
        return Assessment(list(_checks(scenario, setting, commanded)), scenario.story, notice)
    notice = (
        "judged with other checks: only those that hold for every run, because the run's own scenario is code"
        " (--trust runs the copy in the run folder)"
    )
    always = command.judge_any() if commanded else checks.always()
    return Assessment(always, Story(name, f"A scenario in a separate file: {Path(source).name}."), notice)


def _checks(scenario: Scenario, setting: Setting, commanded: bool) -> Sequence[Check]:
    """The scenario's own checks, or those of a command that took the place of its traffic."""
    return command.judge(scenario, setting) if commanded else scenario.checks(setting)


def _shipped(name: str, made_with: str, setting: Setting, commanded: bool) -> Assessment:
    scenario = library.find(name)
    file = library.file_of(name)
    assert file is not None
    same = identity.digest(file.read_bytes()) == made_with
    notice = "" if same else f"judged with other checks: the scenario {name} has changed since the run was made"
    return Assessment(list(_checks(scenario, setting, commanded)), scenario.story, notice)
