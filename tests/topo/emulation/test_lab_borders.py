"""What of a lab another user of the machine can reach: no TCP socket, no switch, no address that would help."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from common.client import ControlClient
from common.interpreter import python
from controller.provisioning import provision
from topo.emulation.lab import Lab, down
from topo.emulation.labname import LabName
from topo.emulation.state import read_record
from topo.node import Switch
from topo.planfile import load_plan

pytestmark = pytest.mark.root
LISTENS = "0A"
NOBODY = 65534


@pytest.fixture
def lab() -> Iterator[Lab]:
    made = Lab.up(load_plan("tiny"))
    yield made
    down(made.name)


def listening() -> set[str]:
    """Local addresses of TCP sockets that listen in this network namespace."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {row[1] for row in rows if row[3] == LISTENS}


def test_no_process_of_a_lab_listens_on_tcp_in_the_root_namespace() -> None:
    before = listening()
    made = Lab.up(load_plan("tiny"))
    try:
        assert listening() == before
    finally:
        down(made.name)


def test_the_owner_drives_the_switches_as_before(lab: Lab) -> None:
    record = read_record(lab.root)
    assert record is not None
    where = record.details["embedded"]
    assert where["control"].startswith(f"unix:{lab.root}/")
    with ControlClient(where["control"]) as client:
        assert client.call("ping")["devices"] == len(list(lab.plan.switches()))
    switches: list[Switch] = list(lab.plan.switches())
    assert provision(lab, switches).ok


def told_as(user: int, act: Callable[[], object]) -> str:
    """What a call returns or raises in a process of another user; its modules are loaded already."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            said = repr(act())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said


def test_another_user_is_told_whose_lab_it_is_and_not_that_switches_are_silent(lab: Lab) -> None:
    def status() -> object:
        found = Lab.attach().status()
        return [found[key] for key in ("closed", "switches_silent", "processes", "namespaces_missing")]

    why = "the lab belongs to root, and its switches answer root only: call this command with sudo"
    status()
    said = told_as(NOBODY, status)
    assert why in said
    assert said.endswith(", [], None, []]")
    for act in (lambda: Lab.attach().switch_control, lambda: Lab.attach().p4runtime(next(iter(lab.plan.switches())))):
        assert f"LabError: {why}" in told_as(NOBODY, act)


def test_another_user_can_change_nothing_of_a_lab_that_root_made_with_an_open_umask() -> None:
    """`profiles` had the umask's mode, and agents of root obey what lies there."""
    words = python("-m", "cli", "up", "tiny", "--name", "open")
    subprocess.run(words, umask=0, check=True, capture_output=True)
    try:
        made = [LabName("open").root, *LabName("open").root.rglob("*")]
        assert {"profiles", "h0.json", "agents"} <= {path.name for path in made}
        assert [path for path in made if not path.is_symlink() and path.stat().st_mode & 0o022] == []
    finally:
        down(LabName("open"))
