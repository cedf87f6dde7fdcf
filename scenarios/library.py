"""The scenarios there are: every module of this folder, or any Python file of a user, that holds a `SCENARIO`."""

import importlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from common import user_code
from common.terminal.choices import no_such
from scenarios.scenario import Scenario, Setting

__all__ = ["NAMES", "check", "file_of", "find", "is_shipped", "is_workload", "load", "own_file", "scenarios"]

T = TypeVar("T")

NAMES = (
    "smoke",
    "link-flap",
    "switch-reboot",
    "nic-port",
    "grey-link",
    "spray",
    "incast",
    "collision",
    "cold-start",
    "maintenance",
)
"""Those whose traffic is the hosts' own."""
OF_THE_PAPER = ("nic-optics", "lossy-port", "flap-trace")
"""Those that retell one more statement of the paper. Tables of all scenarios leave them out."""
WITH_PROGRAMS = ("job", "job-port", "ddp")
"""Those with programs of their own."""
SHIPPED = (*NAMES, *OF_THE_PAPER, *WITH_PROGRAMS)
"""All of them, in the order in which a newcomer should meet them."""


WORKLOADS = (".cm", ".goal")
"""The endings of workload files, each of which makes a scenario (`user_traffic/replay.py`)."""


class ScenarioError(ValueError):
    """No such scenario, or a file that holds none; the message names the valid choices."""


def scenarios() -> list[Scenario]:
    """All shipped scenarios, in the order of `SHIPPED`."""
    return [find(name) for name in SHIPPED]


def find(name: str) -> Scenario:
    """A shipped scenario by name, `NAME@FORM` for a form of it, or a user's own by the path of its file."""
    check(name)
    if is_shipped(name):
        base, at, form = name.partition("@")
        scenario = importlib.import_module(f"scenarios.{base.replace('-', '_')}").SCENARIO
        assert isinstance(scenario, Scenario)
        return scenario.form(form) if at else scenario
    if name.endswith(".py"):
        return load(Path(name))
    replay = importlib.import_module("scenarios.user_traffic.replay").find(name)  # late: it needs numpy
    assert isinstance(replay, Scenario)
    return replay


def check(name: str) -> None:
    """ScenarioError for what is neither the name of a shipped scenario nor that of a file; no file is looked at."""
    if is_shipped(name) or name.endswith(".py") or is_workload(name):
        return
    if "," in name and all(map(is_shipped, name.split(","))):
        raise ScenarioError(f"{name!r} is one name: where a command takes several scenarios, put spaces between them")
    raise ScenarioError(
        f"{no_such('scenario', name, SHIPPED)}, a .py file of your own, or a workload file: {' or '.join(WORKLOADS)}"
    )


def is_shipped(name: str) -> bool:
    """Whether a scenario's name is that of a shipped one, or of a form of one."""
    return name.partition("@")[0] in SHIPPED


def is_workload(name: str) -> bool:
    """Whether a scenario's name is that of one or more workload files, `FILE[,FILE…][@PLACEMENT]`."""
    return any(file.endswith(WORKLOADS) for file in name.partition("@")[0].split(","))


def file_of(name: str) -> Path | None:
    """The file that holds the scenario of this name or path; None for one that was made in code."""
    if is_shipped(name):
        return Path(__file__).with_name(f"{name.partition('@')[0].replace('-', '_')}.py")
    return Path(name) if name.endswith(".py") else None


def own_file(name: str) -> Path | None:
    """The file of a scenario that is not shipped; None for a shipped one, and for one that was made in code."""
    file = None if is_shipped(name) else file_of(name)
    return file if file is not None and file.is_file() else None


def load(path: Path) -> Scenario:
    """The SCENARIO of a user's file."""
    module = user_code.load(path, path.stem, ScenarioError)
    scenario = getattr(module, "SCENARIO", None)
    if not isinstance(scenario, Scenario):
        raise ScenarioError(f"{path}: a scenario file must hold SCENARIO = Scenario(…) (scenarios/scenario.py)")
    return replace(
        scenario,
        workloads=guarded(scenario.workloads, path),
        programs=guarded(scenario.programs, path),
        timeline=guarded(scenario.timeline, path),
        checks=guarded(scenario.checks, path),
    )


def guarded(function: Callable[[Setting], T], path: Path) -> Callable[[Setting], T]:
    """A function of a user's file, whose exceptions name the file and the line at which it broke."""

    def call(setting: Setting) -> T:
        try:
            return function(setting)
        except user_code.RAISED as error:
            raise ScenarioError(user_code.located_error(error, path)) from error

    return call
