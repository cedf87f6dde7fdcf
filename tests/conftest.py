"""Before all tests: the default lab is either somebody's, and tests that build one are skipped, or not there."""

from __future__ import annotations

import os

import pytest

from topo.emulation import state
from topo.emulation.lab import down
from topo.emulation.labname import DEFAULT_LAB
from topo.emulation.state import LabError


def pytest_sessionstart(session: pytest.Session) -> None:
    """Removes what a killed run has left: it is nobody's, and tests would take it for a running lab."""
    if os.geteuid() != 0 or hasattr(session.config, "workerinput"):  # a worker of pytest-xdist begins after this
        return
    try:
        record = state.read_record(DEFAULT_LAB.root)
    except LabError:
        return  # of another version: tests that need the place say so
    if record is not None and record.abandoned:
        down(DEFAULT_LAB)
