"""What the native engine is measured with follows the runtime; what it measures is never asserted here."""

import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.switch_pps import Trial, Wires, build_tool, search, take_turns
from topo.emulation.namespace import entered, offloads


def test_the_generator_and_bare_forwarder_are_built_from_the_runtimes_sockets(tmp_path: Path) -> None:
    tool = build_tool(tmp_path)
    words = (str(tool), "forward", "/nowhere/netns", "s1", "s2")
    done = subprocess.run(words, capture_output=True, text=True, timeout=10)
    assert done.returncode == 1
    assert done.stderr == "s1: cannot open the network namespace: No such file or directory\n"


@pytest.mark.parametrize("limits", [{"a": 300_000.0}, {"a": 90_000.0, "b": 600_000.0}, {"a": 10_000.0, "b": 10_000.0}])
def test_searches_take_turns_and_each_finds_its_devices_rate(limits: dict[str, float]) -> None:
    """Devices that lose whatever is above their limit, and use a microsecond a packet at it."""
    turns: list[str] = []

    def trial(name: str, rate: float) -> Trial:
        turns.append(name)
        return Trial(rate, 0.0 if rate <= limits[name] else 0.5, rate / limits[name])

    found = take_turns({name: search() for name in limits}, trial)
    for name, limit in limits.items():
        assert 0.9 * limit < found[name].pps <= limit
        assert found[name].cpu_us == found[name].pps / limit
    together = 2 * min(turns.count(name) for name in limits)
    if len(limits) == 2:
        assert turns[:together] == ["a", "b"] * (together // 2)


def test_a_search_ends_where_the_sender_can_do_no_more() -> None:
    found = take_turns({"a": search()}, lambda name, rate: Trial(min(rate, 250_000.0), 0.0, 2.0))
    assert found["a"] == (250_000.0, 2.0)


@pytest.mark.root
def test_no_device_that_is_measured_has_an_offload_on() -> None:
    with ExitStack() as stack:
        for _ in range(3):
            wires = Wires(stack)
            for namespace, ends in ((wires.hosts, ("h1", "h2")), (wires.device, ("s1", "s2"))):
                with entered(namespace):
                    assert {end: offloads(end) for end in ends} == {end: set() for end in ends}
