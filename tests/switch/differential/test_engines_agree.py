"""Both engines get the same program, entries, settings, packets of any length and times: they must do the same."""

import random

import pytest

from switch.engine import CPU_PORT_DEFAULT, FRAME_BYTES_MAX, PortConfig
from tests.helpers.engines.random_inputs import PORTS
from tests.helpers.engines.scenario import PROGRAMS, Scenario

SEEDS = range(6)
STEPS = 120


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_random_packets_entries_and_times_give_the_same(name, seed, compiled) -> None:
    Scenario(compiled(name), seed).run(STEPS)


AROUND_HEADERS = [length + by for length in (14, 54, 62, 128) for by in (-1, 0, 1)]
LENGTHS = [0, 1, 2, 3, 5, *AROUND_HEADERS, 1500, 9216, FRAME_BYTES_MAX - 1, FRAME_BYTES_MAX]
IPV6 = bytes.fromhex("020000000001 020000000002 86dd 6a")


def frames(length: int, rng: random.Random) -> list[bytes]:
    """Nothing, ones, anything, and the beginning of what the programs of p4/ take."""
    return [bytes(length), b"\xff" * length, rng.randbytes(length), (IPV6 + rng.randbytes(length))[:length]]


@pytest.mark.parametrize("name", PROGRAMS)
def test_frames_of_every_critical_length_on_every_port(name: str, compiled) -> None:
    scenario = Scenario(compiled(name), seed=1)
    scenario.set_up()
    pair, rng = scenario.pair, random.Random(1)
    sent = 0
    for port in (*PORTS, CPU_PORT_DEFAULT):
        pair("configure_port", port, PortConfig(), scenario.now_ns)
    for length in LENGTHS:
        for port in (*PORTS, CPU_PORT_DEFAULT):
            for frame in frames(length, rng):
                pair("receive", port, frame, scenario.now_ns)
                sent += 1
        scenario.now_ns += 1_000_000
        pair("advance", scenario.now_ns)
    scenario.settle()
    received = [pair("port_counters", port, scenario.now_ns).rx_packets for port in (*PORTS, CPU_PORT_DEFAULT)]
    assert sum(received) == sent
