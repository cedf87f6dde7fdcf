"""Runs whose frames leave payload out, against the same runs with it, to the byte; and the option --payload."""

import argparse
import os
import subprocess
import sys
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from cli.commands.seeds import sweep
from endpoint import FORM
from endpoint.mrc import responder
from endpoint.mrc.endpoint import Endpoint
from endpoint.nic import memory
from endpoint.transport import MemoryRegion
from running.directory import RunDirectory
from running.estimate import rank_memories
from running.transport_choice import transport
from running.worlds.simulated import SimulatedWorld
from scenarios.scenario import Workload
from tests.helpers.chosen import chosen
from tests.helpers.fuzzing import seeds
from tests.helpers.random_run import RandomRun
from topo.plan import Trimming
from topo.planfile import load_plan

KINDS: dict[str, dict[str, Any]] = {
    "all_reduce": {"size": 60_000, "rounds": 3, "segment": 8192},
    "all_gather": {"size": 50_004, "rounds": 2, "segment": 65_536},
    "all_to_all": {"size": 40_000, "rounds": 3, "segment": 4096},
    "training": {"size": 30_000, "steps": 2, "compute_ns": 100_000, "compute_jitter": 0.5, "segment": 8192},
    "mix": {"sizes": [[1, 1], [63, 2], [4097, 2], [20_001, 1]], "messages": 60, "qps": 2},
    "incast": {"size": 10_000, "messages": 12},
}


class CountedRun(RandomRun):
    """As the random run, with one workload more, and trims that leave more or less of a packet."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        kind = self.random.choice(list(KINDS))
        self.workloads.append(Workload(kind, KINDS[kind], name="other", phase="reference"))
        size = self.random.choice((128, 134, 138, 142, 300, 512))
        self.plan = replace(self.plan, trimming=Trimming(size_bytes=size))


def compare(seed: int, directory: Path) -> int:
    """Returns the bytes that receivers have verified in the run without payload."""
    run = CountedRun(seed)
    expected = run.journals(directory / "real", None)
    got = run.journals(directory / "counted", None, counted=True)
    assert got.keys() == expected.keys()
    for name, lines in expected.items():
        for place, line in enumerate(lines):
            assert got[name][place : place + 1] == [line], f"seed {seed}: {name}, line {place + 1}"
        assert len(got[name]) == len(lines), f"seed {seed}: {name} goes on"
    return sum(int(total["result"]["bytes_verified"]) for total in run.totals)


def test_the_commits_random_runs_are_the_same_with_and_without_payload(tmp_path: Path) -> None:
    assert sum(compare(seed, tmp_path / str(seed)) for seed in chain(range(12), seeds())) > 1_000_000


PLACE = memory.place


def beside(region: MemoryRegion, at: int, frame: bytes | memoryview, start: int, size: int) -> bool:
    """Put one packet in sixteen a byte further than it belongs."""
    return PLACE(region, at + (at >> 12 & 15 == 3 and at + size < region.length), frame, start, size)


def at_the_start(region: MemoryRegion, at: int, frame: bytes | memoryview, start: int, size: int) -> bool:
    """Forget of some packets how far into the message they are."""
    return PLACE(region, 0 if at >> 12 & 15 == 3 else at, frame, start, size)


def never(region: MemoryRegion, at: int, frame: bytes | memoryview, start: int, size: int) -> bool:
    """Acknowledge some packets without placing them."""
    return at >> 12 & 15 == 3 or PLACE(region, at, frame, start, size)


@pytest.mark.skipif(FORM.compiled, reason="a bug can only be planted into the interpreted form: the next test does")
@pytest.mark.parametrize("bug", [beside, at_the_start, never])
@pytest.mark.parametrize("kind", ["permutation", "all_reduce", "all_to_all"])
@pytest.mark.parametrize("counted", [False, True], ids=["real", "counted"])
def test_packets_in_wrong_places_are_found_with_and_without_payload(bug, kind, counted, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(responder, "place", bug)
    run = RandomRun(3)
    run.transport, run.faults = transport("mrc"), []
    options = {"size": 200_000, "messages": 3} if kind == "permutation" else {"size": 200_000, "rounds": 2}
    run.workloads = [Workload(kind, options, phase="reference")]
    run.journals(tmp_path, None, record=False, counted=counted)
    assert sum(int(total["result"]["bytes_wrong"]) for total in run.totals) > 0


@pytest.mark.slow
@pytest.mark.skipif(not FORM.compiled, reason="the test before it has run")
def test_bugs_are_planted_into_the_interpreted_form() -> None:
    words = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "", "-k", "wrong_places", __file__]
    environment = {**os.environ, "MRCLAB_COMPILED": "off"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "18 passed" in done.stdout


def test_memory_does_not_follow_the_size_of_messages(tmp_path: Path) -> None:
    run = RandomRun(4)
    directory = RunDirectory.create(tmp_path, "large", 1)
    world = SimulatedWorld(run.plan, replace(transport("mrc"), payload="counted"), 1, directory, lambda text: None)
    try:
        hosts = list(world.clients)[:2]
        for kind, options in (("all_to_all", {"size": 1 << 30, "segment": 1 << 20}), ("write_bw", {"size": 1 << 30})):
            for host in hosts:
                ident = world.clients[host].send("workload.prepare", name=kind, kind=kind, ranks=hosts, options=options)
                offers = world.clients[host].result(ident)["offers"]
                assert any(offer["length"] >= 1 << 30 for offer in offers.values()) or host == hosts[0]
        nics = [client.nic.transport for client in world.clients.values()]
        regions = [region for nic in nics if isinstance(nic, Endpoint) for region in nic.memory.writable.values()]
        assert sum(region.length for region in regions) > 1 << 34
        assert all(region.buffer is None for region in regions)
    finally:
        world.close()


@pytest.mark.parametrize(("words", "payload"), [([], "real"), (["--payload", "counted"], "counted")])
def test_a_run_carries_payload_unless_told(words: list[str], payload: str) -> None:
    spec = chosen(["collision", "--world", "simulated", "--seed", "1", *words])
    assert spec.choices.transport.payload == spec.options()["payload"] == payload


def test_real_links_carry_every_byte() -> None:
    with pytest.raises(ValueError, match="--payload counted: only with --world simulated"):
        chosen(["collision", "--payload", "counted", "--rate", "10"])


@pytest.mark.parametrize(
    ("words", "payload"), [([], "counted"), (["--payload", "real"], "real"), (["--world", "emulated"], "real")]
)
def test_a_sweep_counts_payload_in_virtual_time(words: list[str], payload: str) -> None:
    parser = argparse.ArgumentParser()
    sweep.register(parser.add_subparsers())
    (variant,) = sweep.asked(parser.parse_args(["sweep", "collision", *words]))
    given = list(variant.arguments)
    assert given[given.index("--payload") + 1] == payload


def test_counted_payload_of_any_size_takes_no_memory() -> None:
    workload = Workload("all_reduce", {"size": 1 << 30, "rounds": 1})
    assert {rank.bytes for rank in rank_memories(workload, load_plan("rack"), counted=True)} == {0}
    with pytest.raises(ValueError, match=r"would hold 5\.37 GB"):
        rank_memories(workload, load_plan("rack"))
