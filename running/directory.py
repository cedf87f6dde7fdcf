"""Run directories: `runs/<scenario>/<time>-<seed>/`, and `runs/latest`, a link to the newest."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import tomli_w

from topo.plan import Plan
from topo.planfile import plan_document

RUNS = Path("runs")


class RunDirectory:
    """The folder of one run, with the names of its files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journals = path / "journal"
        self.packets = path / "packets.jsonl"

    @classmethod
    def create(cls, root: Path, scenario: str, seed: int) -> RunDirectory:
        """Make a new, empty folder; `latest` points to it at once."""
        (root / scenario).mkdir(parents=True, exist_ok=True)
        stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{seed}"
        for number in count(1):
            path = root / scenario / (stamp if number == 1 else f"{stamp}-{number}")
            with suppress(FileExistsError):  # of another run that began in this second
                path.mkdir()
                break
        directory = cls(path)
        directory.journals.mkdir()
        link = root / f".latest-{scenario}-{path.name}"
        link.symlink_to(path.relative_to(root))
        link.replace(root / "latest")
        return directory

    def journal(self, name: str) -> Path:
        """The file that a process of this name appends to."""
        return self.journals / f"{name}.jsonl"

    def write_options(self, options: Mapping[str, Any]) -> None:
        """Everything that was chosen, as `options.json`."""
        (self.path / "options.json").write_text(json.dumps(options, indent=2, sort_keys=True) + "\n")

    def write_plan(self, plan: Plan) -> None:
        """The plan as a plan file with every key, as `up`, `topo` and `run --plan` take it."""
        (self.path / "plan.toml").write_text(tomli_w.dumps(plan_document(plan)), encoding="utf-8")


def find(root: Path, name: str) -> Path:
    """A run by path, by `scenario/time-seed`, by its scenario (the newest of it), or "latest".

    FileNotFoundError lists what there is.
    """
    for candidate in (Path(name), root / name):
        if (candidate / "options.json").exists():
            return candidate.resolve()
    runs = by_age(root)
    for path in reversed(runs):
        if path.parent.name == name:
            return path.resolve()
    known = [str(path.relative_to(root)) for path in runs]
    choices = ", ".join(["latest", *known[-8:]]) if known else f"none yet, {root} is empty: ./lab run makes one"
    raise FileNotFoundError(f"no run {name!r}; there is: {choices}")


def by_age(root: Path) -> list[Path]:
    """All runs, the newest last."""
    return sorted(
        (path.parent for path in root.glob("*/*/options.json")), key=lambda path: (path.name, path.parent.name)
    )


def before(run: Path) -> Path:
    """The run of the same scenario before this one. FileNotFoundError when it is the first."""
    earlier = [path for path in by_age(run.parent.parent) if path.parent == run.parent and path.name < run.name]
    if not earlier:
        raise FileNotFoundError(f"{run} is the first run of {run.parent.name}: there is none to compare it with")
    return earlier[-1]
