"""Namespaces of benchmarks and tests are removed, also those of a process that was killed."""

import os
import subprocess
import sys

import pytest

from benchmarks.rig.namespaces import namespaces, remove_leftovers
from tests.helpers.waiting import eventually
from topo.emulation.namespace import exists
from topo.emulation.process import start_ticks

LIMIT_S = 60
MAKER = """
import subprocess, sys
from benchmarks.rig.namespaces import namespaces
from topo.emulation.namespace import entered
with namespaces(2) as names:
    with entered(names[0]):
        child = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL)
    print(*names, child.pid, flush=True)
    sys.stdin.read()
"""

pytestmark = pytest.mark.root


def test_namespaces_of_a_process_that_was_killed_go_with_what_runs_in_them() -> None:
    maker = subprocess.Popen([sys.executable, "-c", MAKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert maker.stdout
    *names, inside = maker.stdout.readline().split()
    remove_leftovers()
    assert all(exists(name) for name in names)  # their maker lives
    maker.kill()
    maker.communicate()
    remove_leftovers()
    assert not any(exists(name) for name in names)
    eventually(lambda: start_ticks(int(inside)) is None, "the process inside is gone", LIMIT_S)


def test_namespaces_go_at_the_end_and_one_that_is_gone_already_is_no_error() -> None:
    with namespaces(2) as names:
        assert all(name.startswith(f"mrcbench{os.getpid()}-") for name in names)
        subprocess.run(["ip", "netns", "del", names[1]], check=True)
    assert not any(exists(name) for name in names)
