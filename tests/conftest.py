"""Before all tests: whose machine this is.

A worker of pytest-xdist that may have a machine of its own: its labs, namespaces and links are its alone, so that tests
that build networks can run side by side. Everybody else has the machine as it is, without what killed runs have left.
"""

import os
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, settings

from tests.helpers import private_machine
from tests.helpers.made_up_run import made_up
from tests.helpers.refused import refused
from topo.emulation import state
from topo.emulation.lab import down
from topo.emulation.labname import DEFAULT_LAB
from topo.emulation.state import LabError

pytest_plugins = ["tests.helpers.fuzzing", "tests.helpers.rings"]

__all__ = ["made_up", "refused"]

# A machine may stall any example: no test is timed.
settings.register_profile("mrclab", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mrclab")


def pytest_configure(config: pytest.Config) -> None:
    """A worker with root leaves the machine that it shares with the others."""
    if os.geteuid() == 0 and hasattr(config, "workerinput"):
        with suppress(OSError):  # where the kernel does not allow it, a test that needs it is skipped with the reason
            private_machine.enter_private_run()
            private_machine.enter_private_network()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Remove a default lab that a killed run has left: it is nobody's, and tests would take it for a running lab."""
    if os.geteuid() != 0 or hasattr(session.config, "workerinput"):
        return
    try:
        record = state.read_record(DEFAULT_LAB.root)
    except LabError:
        return  # of another version: tests that need the place say so
    if record is not None and record.abandoned:
        down(DEFAULT_LAB)
