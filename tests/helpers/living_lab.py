"""A lab that is up on real links, and the commands of `./lab` on it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from topo.emulation import state
from topo.emulation.lab import Lab

LIMIT_S = 300
MRCLAB = (sys.executable, "-m", "cli")


def mrclab(*words: str, status: int = 0) -> str:
    """What a command prints, on both outputs; AssertionError if it ends with another status."""
    done = subprocess.run([*MRCLAB, *words], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert done.returncode == status, f"{words}: {done.returncode}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
    return done.stdout + done.stderr


@contextmanager
def tiny() -> Iterator[Lab]:
    """The default lab with the plan `tiny`; skips where one is running already."""
    if state.read_record(state.ROOT) is not None:
        pytest.skip("a lab is running on this machine")
    mrclab("up", "tiny")
    try:
        yield Lab.attach()
    finally:
        mrclab("down")
