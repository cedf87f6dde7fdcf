"""`./lab run --processes` as a command, for tests that start real processes."""

import sys
from pathlib import Path

import pytest

from running.parallel import runs

try:
    runs.mpiexec()
    MISSING = ""
except ValueError as error:
    MISSING = str(error)
needs_mpi = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def words(folder: Path, *more: str, scenario: str = "smoke") -> list[str]:
    """The command of a run in a folder."""
    simulated = ["run", scenario, "--world", "simulated", "--plan", "tiny", "--seed", "3", "--plain"]
    return [sys.executable, "-P", "-m", "cli", *simulated, "--runs", str(folder), *more]
