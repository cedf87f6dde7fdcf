"""Programs of verbs in the hosts of a lab on real links: connected by name, and run through a fault."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.living_lab import MRCLAB, mrclab, tiny
from tests.helpers.waiting import eventually
from tests.libmrc.compiled import PERFTEST, REQUIREMENTS
from topo.emulation import front_end, namespace
from topo.emulation.lab import Lab

pytestmark = [*REQUIREMENTS, pytest.mark.root]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with tiny() as running:
        mrclab("traffic", "agents")
        yield running


def beside(
    lab: Lab, server: list[str], client: list[str], port: int, during: list[str] | None = None, host: str = "h1"
) -> tuple[str, str]:
    """Output of a server in `host` and of a client in h0, which end well, strictly; `during` is a command meanwhile."""
    words = [*MRCLAB, "exec", "--strict"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    started = [subprocess.Popen([*words, host, "--", *server], **pipes)]  # type: ignore[call-overload]
    try:

        def listens() -> bool:
            with namespace.entered(lab.name.netns(lab.plan.host(host))):
                tables = [Path(f"/proc/thread-self/net/{name}").read_text() for name in ("tcp", "tcp6")]
            return f":{port:04X} " in "".join(tables)

        eventually(listens, "the server listens", 60)
        started.append(subprocess.Popen([*words, "h0", "--", *client], **pipes))  # type: ignore[call-overload]
        if during:
            mrclab(*during)
        said = [one.communicate(timeout=200)[0] for one in started]
        assert [one.returncode for one in started] == [0, 0], said
        return said[0], said[1]
    finally:
        for one in started:
            one.kill()


@PERFTEST
def test_ib_write_bw_runs_between_hosts_by_their_names_through_a_cut(lab: Lab) -> None:
    words = ["ib_write_bw", "-D", "6", "-s", "65536"]
    try:
        _, said = beside(lab, words, [*words, "h1"], 18515, ["fault", "link-down", "h0-p0l0"])
    finally:
        mrclab("undo", "all")
    assert "BW average" in said
    assert "mrc_h0" in said


@PERFTEST
def test_a_host_writes_to_itself_by_its_own_name(lab: Lab) -> None:
    words = ["ib_write_bw", "-n", "20"]
    _, said = beside(lab, words, [*words, "h0"], 18515, host="h0")
    assert "BW average" in said


def test_hosts_reach_each_other_by_the_front_end_and_it_goes_with_the_lab(lab: Lab) -> None:
    h0, h2 = lab.plan.host("h0"), lab.plan.host("h2")
    for _ in range(2):
        front_end.connect(h0, h2, lab.name.netns(h0), lab.name.netns(h2))
        for host, other in ((h0, h2), (h2, h0)):  # NCCL takes no other interface
            with namespace.entered(lab.name.netns(host)):
                assert namespace.is_running(f"to-{other.name}")
    assert "1 received" in mrclab("exec", "h0", "--", "ping", "-c", "1", "-W", "5", front_end.address(h2))
    assert "to-h2" in mrclab("exec", "h0", "--", "ip", "-br", "link")
    assert "to-h" not in subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout


def test_what_exec_is_not_given_is_asked_for() -> None:
    assert "exec must be followed by a node and a command" in mrclab("exec", status=2)
    assert "exec --sdk takes no node" in mrclab("exec", "--sdk", "h0", status=2)
