"""A process of `./lab run --processes N`, started by `mpiexec` with the command's arguments as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.choosing import choose, scenario_of
from common.interpreter import python
from running.parallel import runs
from running.preparation import PreparedRun, prepare


def command(arguments: argparse.Namespace, seed: int, folder: Path) -> list[str]:
    """The command line of such a process: this run, with its seed, in this folder."""
    plain = {name: value for name, value in vars(arguments).items() if not callable(value)}
    whole = {**plain, "seed": seed, "runs": str(arguments.runs), "folder": str(folder)}
    return python("-m", "cli.part", json.dumps(whole))


def prepared(given: Mapping[str, Any]) -> PreparedRun:
    arguments = argparse.Namespace(**given)
    return prepare(choose(scenario_of(arguments), arguments, lambda line: None))


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    sys.exit(runs.part(lambda: prepared(given), Path(given["folder"])))
