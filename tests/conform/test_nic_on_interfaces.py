"""A NIC behind interfaces: frames of two ports keep their order, and the lab's own NIC keeps every rule there."""

import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.interpreter import python
from common.linux.netns import entered
from conform import rule
from conform.nic import run
from conform.nic.control import channel
from conform.nic.device_file import parse
from conform.nic.link import InterfaceLink
from conform.packet_socket import packet_socket
from tests.helpers.conform.switches import Rig

pytestmark = pytest.mark.root
SEEDS = range(int(os.environ.get("MRCLAB_CONFORM_SEEDS", "1")))


@pytest.fixture
def rig() -> Iterator[Rig]:
    with contextlib.ExitStack() as stack:
        yield Rig(stack)


def frame(port: int, number: int) -> bytes:
    return (
        b"d" * 6
        + b"s" * 6
        + b"\x86\xdd"
        + bytes([0x60, 0, 0, 0, 0, 4, 17, 64, *[0] * 32, port, 0])
        + bytes([0, number])
    )


def test_frames_of_two_ports_come_in_the_order_in_which_they_were_sent(rig: Rig) -> None:
    """One processor sends all of them, so the kernel has one order. A third interface is none of the link's."""
    order = random.Random(7).choices((1, 2, 3), k=200)
    before = os.sched_getaffinity(0)
    with entered(rig.path), contextlib.ExitStack() as stack:
        link = InterfaceLink(rig.tester[:2])
        stack.callback(link.close)
        far = [stack.enter_context(packet_socket(ref.interface)) for ref in rig.refs]
        os.sched_setaffinity(0, {min(before)})
        stack.callback(os.sched_setaffinity, 0, before)
        for number, port in enumerate(order):
            far[port - 1].send(frame(port, number))
        got = [link.receive(5) for port in order if port != 3]
        link.send(2, frame(2, 0))
        assert (link.receive(0), far[1].recv(100)) == (None, frame(2, 0))
    assert got == [(port, frame(port, number)) for number, port in enumerate(order) if port != 3]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_the_unmodified_nic_passes_every_rule_over_two_cables(seed: int, rig: Rig, tmp_path: Path) -> None:
    file = tmp_path / "nic.toml"
    ports = [word for ref in rig.refs[:2] for word in ("--interface", ref.interface)]
    words = rig.command(*python("-m", "conform.device", "--device", str(file), *ports))
    file.write_text(f"[control]\ncommand = {words}\n")
    about = parse(file.read_text())
    with entered(rig.path), contextlib.ExitStack() as stack:
        link = InterfaceLink(rig.tester[:2])
        stack.callback(link.close)
        control = channel(about.control)
        stack.callback(control.close)
        tester = run.Tester(about, link, control, seed)
        tester.greet()
        results = [tester.run(one)[0] for one in rule.chosen(rule.load(run.ROLES), "all")]
    assert [one for one in results if one.outcome not in ("pass", "device's choice")] == []
