"""The simulated world over the native fabric and over one instant after the other: the same journals to the byte.

Random plans, rates, workloads, transports and faults. The slow side is `SteppedFabric` over native engines,
and in some runs over the reference interpreter.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from running.directory import RunDirectory
from running.runner import Choices, Runner
from running.transport_choice import TRANSPORTS, transport
from running.worlds.fabric import MakeFabric
from running.worlds.simulated import SimulatedWorld
from scenarios.scenario import Phase, Scenario, TimedFault, Workload
from switch.engine import Engine
from switch.native.engine import NativeEngine
from switch.native.fabric import NativeFabric
from switch.reference.engine import ReferenceEngine
from tests.helpers.engines.stepped_fabric import SteppedFabric
from topo.fault import VERBS, FaultError
from topo.graph import links
from topo.plan import Links, Plan


def stepped(make: Callable[[int], Engine]) -> MakeFabric:
    def fabric(seeds: Sequence[int], hosts: int, host_ports: int) -> SteppedFabric:
        return SteppedFabric([make(seed) for seed in seeds], hosts, host_ports)

    return fabric


OVER_NATIVE = stepped(lambda seed: NativeEngine(seed=seed))
OVER_REFERENCE = stepped(lambda seed: ReferenceEngine(seed=seed))


class RandomRun:
    """One run, drawn from a seed: a fraction of a second at lab rates."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        draw = self.random = random.Random(seed)
        planes, leaves, spines = draw.choice((1, 2, 4)), draw.randint(1, 3), draw.randint(1, 3)
        rate_bps = draw.choice((10_000_000, 7_777_777, 1_000_000_000))
        delays_ns = [draw.choice((1000, 200_000, 5_000_000, 333_333)) * 10_000_000 // rate_bps + 1 for _ in range(2)]
        links_ = Links(rate_bps, draw.choice((rate_bps, 2 * rate_bps)), *delays_ns)
        self.plan = Plan("drawn", planes, leaves, spines, draw.randint(1, 3) if leaves > 1 else 2, links=links_)
        self.transport = transport(draw.choice(("mrc", "mrc", *TRANSPORTS)))
        self.seconds = 0.4  # of lab time: the world keeps the number of round trips at any rate
        self.scenario = Scenario(
            name="drawn",
            title="",
            description="",
            plan="tiny",
            workloads=lambda setting: self.workloads,
            timeline=lambda setting: self.faults,
            checks=lambda setting: [],
            phases=(Phase("reference", self.seconds), Phase("faults", self.seconds), Phase("heal", self.seconds / 4)),
        )
        size = draw.choice((100, 4096, 65536))
        stream = {"size": size, "depth": draw.choice((1, 4)), "messages": 0}
        hosts = [host.name for host in self.plan.hosts()]
        self.workloads = [
            Workload("permutation", stream, phase="reference"),
            Workload(
                "write_lat",
                {"size": 64, "messages": 5},
                ranks=tuple(draw.sample(hosts, 2)),
                name="latency",
                phase="reference",
            ),
        ][: draw.randint(1, 2)]
        self.faults = [fault for _ in range(draw.randint(0, 4)) if (fault := self._fault()) is not None]

    def _fault(self) -> TimedFault | None:
        draw = self.random
        verb = VERBS[draw.choice(list(VERBS))]
        link = draw.choice([link for link in links(self.plan) if link.kind == "fabric"])
        nic = f"{draw.choice(list(self.plan.hosts())).name}.p{draw.randrange(self.plan.planes)}"
        switch = draw.choice(list(self.plan.switches())).name
        target = {"link": f"{link.a.node}-{link.b.node}", "nic port": nic, "switch": switch}[verb.target]
        value = None
        if verb.argument is not None:
            value = {"loss": 20.0, "delay": draw.choice((0.0, 1.0)), "rate": 3.0}[verb.name]
        at_s = draw.uniform(0, self.seconds)
        for_s = draw.choice((None, self.seconds / 5)) if verb.lasting else None
        return TimedFault(at_s, verb.name, target, for_s, value, seed=draw.randrange(100))

    def journals(self, directory: Path, make_fabric: MakeFabric, record: bool = True) -> dict[str, list[str]]:
        """Every process's lines, of the runner's all but what real clocks say; and the packet log's, if wanted."""
        run = RunDirectory.create(directory, "drawn", self.seed)
        record_s = (self.seconds / 2, self.seconds * 1.3) if record else None
        choices = Choices(self.transport, self.plan, seed=self.seed, world="simulated", record_s=record_s)
        runner = Runner(self.scenario, choices, run, tell=lambda event: None)
        plan = choices.running_plan
        try:
            runner.run(lambda: SimulatedWorld(plan, choices.transport, self.seed, run, runner.tell, make_fabric))
        except FaultError as refused:  # a timeline that cannot be is refused alike
            return {"refused": [str(refused)]}
        lines = {path.name: path.read_text().splitlines() for path in sorted((run.path / "journal").glob("*.jsonl"))}
        real = ("process", "options")
        kept = {
            name: [line for line in written if json.loads(line)["kind"] not in real] for name, written in lines.items()
        }
        return {**kept, "packets": run.packets.read_text().splitlines() if record else []}


def compare(seed: int, directory: Path, slow: MakeFabric) -> int:
    """Returns the bytes of journal that are the same."""
    run = RandomRun(seed)
    expected = run.journals(directory / "slow", slow)
    got = run.journals(directory / "fast", NativeFabric)
    assert got.keys() == expected.keys()
    for name, lines in expected.items():
        for place, line in enumerate(lines):
            assert got[name][place : place + 1] == [line], f"seed {seed}: {name}, line {place + 1}"
        assert len(got[name]) == len(lines), f"seed {seed}: {name} goes on"
    return sum(map(len, (line for lines in expected.values() for line in lines)))


@pytest.mark.parametrize("seed", range(10))
def test_a_random_run_is_the_same_as_one_instant_after_the_other(seed: int, tmp_path: Path) -> None:
    assert compare(seed, tmp_path, OVER_NATIVE) > 0


@pytest.mark.parametrize("seed", [1, 4])
def test_a_run_whose_packets_are_recorded_is_the_same_run(seed: int, tmp_path: Path) -> None:
    run = RandomRun(seed)
    recorded = run.journals(tmp_path / "recorded", NativeFabric)
    plain = run.journals(tmp_path / "plain", NativeFabric, record=False)
    assert len(recorded.pop("packets")) > 100
    assert plain.pop("packets") == []
    assert without_postcards(recorded) == without_postcards(plain) == plain


def without_postcards(journals: dict[str, list[str]]) -> dict[str, list[str]]:
    """What both runs journal: one whose packets are recorded also tells where receivers put some of them."""
    return {
        name: [line for line in lines if json.loads(line)["kind"] not in ("sampled", "memory")]
        for name, lines in journals.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_hundreds_of_random_runs_are_the_same_as_one_instant_after_the_other(block: int, tmp_path: Path) -> None:
    assert sum(compare(seed, tmp_path / str(seed), OVER_NATIVE) for seed in range(100 * block, 100 * block + 30)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1006))
def test_a_random_run_is_the_same_on_the_interpreter(seed: int, tmp_path: Path) -> None:
    assert compare(seed, tmp_path, OVER_REFERENCE) > 0
