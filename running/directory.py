"""Run directories: `runs/<scenario>/<time>-<seed>/`, and `runs/latest`, a link to the newest."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from common import files, plain_file
from common.fields import TOML_BYTES_MAX
from common.giving import Made
from common.linux.rights import is_trusted
from common.quoting import one_name
from common.terminal.printable import printable
from topo import Plan, PlanError, plan_document
from topo.planfile import parse_plan

__all__ = ["RUNS", "RunDirectory", "before", "by_age", "display_name", "find"]

RUNS = Path("runs")
NAME = re.compile(r"([0-9]{8}-[0-9]{6})-[0-9]+(?:-([0-9]+))?", re.ASCII)
SCENARIO = "scenario.py"
"""The copy of a user's scenario file in the folder of a run: text, which no command runs unless the user says so."""


class RunDirectory:
    """The folder of one run, with the names of its files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journals = path / "journal"
        self.packets = path / "packets.jsonl"
        self.made: tuple[Made, ...] = ()
        """The paths that `create` made, for the user who called sudo: new folders, the run, `latest`."""

    @classmethod
    def create(cls, root: Path, scenario: str, seed: int) -> RunDirectory:
        """Make a new, empty folder; `latest` points to it at once.

        Its name sorts behind those of all runs in `root`, also when the clock was set back: the time is UTC, at least
        that of the newest run, and runs of one second are numbered.
        """
        folder = root / scenario
        missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
        files.make_folder(folder)
        newest = max((moment(path) for path in folders(root)), default=("", 0))
        stamp = max(time.strftime("%Y%m%d-%H%M%S", time.gmtime()), newest[0])
        for number in count(newest[1] + 1 if stamp == newest[0] else 1):
            path = folder / (f"{stamp}-{seed}" if number == 1 else f"{stamp}-{seed}-{number}")
            with suppress(FileExistsError):  # of another run that began in this moment
                path.mkdir()
                break
        directory = cls(path)
        directory.journals.mkdir()
        link = root / f".latest-{scenario}-{path.name}"
        link.symlink_to(path.relative_to(root))
        latest = Made.of(link)._replace(path=root / "latest")
        directory.made = (*map(Made.of, (*missing, path)), latest)
        link.replace(root / "latest")
        return directory

    def journal(self, name: str) -> Path:
        """The file that a process of this name appends to."""
        return self.journals / one_name(f"{name}.jsonl", "the name of a journal")

    def log(self, name: str) -> Path:
        """The file with what a program of this name prints."""
        return self.path / "logs" / one_name(f"{name}.log", "the name of a log")

    def write_options(self, options: Mapping[str, Any]) -> None:
        """Everything that was chosen, as `options.json`."""
        files.write(self.path / "options.json", json.dumps(options, indent=2, sort_keys=True) + "\n")

    def write_plan(self, plan: Plan) -> None:
        """The plan as a plan file with every key, as `up`, `topo` and `run --plan` take it."""
        import tomli_w  # late: options of `run` are checked before it is installed

        files.write(self.path / "plan.toml", tomli_w.dumps(plan_document(plan)))

    def options(self) -> dict[str, Any]:
        """The options of the run. ValueError names the file and the error in it."""
        return plain_file.read_object(self.path / "options.json")

    def plan(self) -> Plan:
        """The run's own plan. PlanError or OSError names the file and what is wrong with it."""
        file = self.path / "plan.toml"
        try:
            text = plain_file.read_bytes(file, TOML_BYTES_MAX).decode()
        except UnicodeDecodeError as error:
            raise PlanError(f"{file} must be UTF-8 ({error})") from None
        return parse_plan(text, source=str(file))


def find(root: Path, name: str) -> Path:
    """A run by path, by `scenario/time-seed`, by its scenario (the newest of it), or "latest".

    Where that link is missing, as in some copies of a folder, or another user's, the latest run is the newest of all.

    FileNotFoundError lists what there is.
    """
    newest = name == "latest" and not may_follow(root / name)
    for candidate in (Path(name), *(() if newest else (root / name,))):
        if (candidate / "options.json").exists():
            return plain_file.followed(candidate)
    runs = by_age(root)
    if newest and runs:
        return plain_file.followed(runs[-1])
    for path in reversed(runs):
        if path.parent.name == name:
            return plain_file.followed(path)
    known = [display_name(path) for path in runs]
    if not known:
        files.check_way(root)
        rule = "a run is a folder SCENARIO/RUN with an options.json, as ./lab run makes it"
        if name == "latest":
            raise FileNotFoundError(f"no run yet in {printable(str(root))}: ./lab run NAME makes one ({rule})")
        raise FileNotFoundError(f"no run {name!r}: there is none in {printable(str(root))} ({rule})")
    choices = ", ".join([*(["latest"] if name != "latest" else []), *known[-8:]])
    raise FileNotFoundError(f"no run {name!r}; there is: {choices}")


def may_follow(link: Path) -> bool:
    """Whether this entry is there, and no link of another user."""
    try:
        status = link.lstat()
    except OSError:
        return False
    return not stat.S_ISLNK(status.st_mode) or is_trusted(status.st_uid)


def display_name(run: Path) -> str:
    """The name of a run for people, SCENARIO/RUN."""
    return printable(f"{run.parent.name}/{run.name}")


def by_age(root: Path) -> list[Path]:
    """All runs, the newest last."""
    return sorted(
        (path for path in folders(root) if (path / "options.json").exists()),
        key=lambda path: (*moment(path), path.name, path.parent.name),
    )


def folders(root: Path) -> Iterator[Path]:
    """Every folder of a run, without those that another process removes or renames meanwhile."""
    for scenario in listing(root):
        if not scenario.is_symlink():  # `latest`, or the next `latest` of a run that is being made
            yield from listing(scenario)


def listing(folder: Path) -> list[Path]:
    """The entries of a folder; empty if the path is no folder or no longer exists."""
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        return [folder / entry.name for entry in entries]
    return []


def moment(run: Path) -> tuple[str, int]:
    """When a run was made, from its name `DATE-TIME-SEED[-NUMBER]`: the second, and its number among runs of it."""
    match = NAME.fullmatch(run.name)
    return (match[1], int(match[2] or 1)) if match else ("", 0)


def before(run: Path) -> Path:
    """The run of the same scenario before this one. FileNotFoundError when it is the first."""
    siblings = [path for path in by_age(run.parent.parent) if path.parent == run.parent]
    earlier = siblings[: siblings.index(run)] if run in siblings else []
    if not earlier:
        raise FileNotFoundError(
            f"{display_name(run)} is the first run of {printable(run.parent.name)}: there is none to compare it with"
        )
    return earlier[-1]
