"""What the native engine is measured with follows the runtime; what it measures is never asserted here."""

import subprocess
from contextlib import ExitStack

import pytest

from benchmarks.switch_pps import Wires, build_tool
from topo.emulation.namespace import entered, offloads


def test_the_generator_and_bare_forwarder_are_built_from_the_runtimes_sockets(tmp_path) -> None:
    tool = build_tool(tmp_path)
    words = (str(tool), "forward", "/nowhere/netns", "s1", "s2")
    done = subprocess.run(words, capture_output=True, text=True, timeout=10)
    assert done.returncode == 1
    assert done.stderr == "s1: cannot open the network namespace: No such file or directory\n"


@pytest.mark.root
def test_no_device_that_is_measured_has_an_offload_on() -> None:
    with ExitStack() as stack:
        for _ in range(3):
            wires = Wires(stack)
            for namespace, ends in ((wires.hosts, ("h1", "h2")), (wires.device, ("s1", "s2"))):
                with entered(namespace):
                    assert {end: offloads(end) for end in ends} == {end: set() for end in ends}
