"""Runs that a benchmark keeps, one JSON line per run. A line torn by a crash counts as no run; the next stays whole."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

JUDGED = (0, 1, 3)
"""Exit statuses of `./lab run` with a verdict: true, false and unknown."""


def lines(path: Path | None) -> Iterator[dict[str, Any]]:
    """The whole lines of a file; none where there is no file."""
    for line in path.read_text().splitlines() if path is not None and path.exists() else []:
        try:
            yield json.loads(line)
        except ValueError:
            continue


def keep(path: Path, row: Mapping[str, Any]) -> None:
    """Add a line to the file, even after a torn one."""
    torn = path.exists() and not path.read_text().endswith("\n") and path.stat().st_size > 0
    with path.open("a") as file:
        file.write("\n" * torn + json.dumps(row) + "\n")


def commit() -> str:
    """The commit that is checked out, with a + when files differ from it; "" outside a repository."""
    words = ["git", "describe", "--always", "--exclude=*", "--dirty=+"]
    return subprocess.run(words, cwd=Path(__file__).parent, capture_output=True, text=True).stdout.strip()
