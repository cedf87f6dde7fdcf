"""Random runs in virtual time and their journals: plan, rates, workloads, transport and faults follow from a seed."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from running.directory import RunDirectory
from running.options import Choices
from running.runner import Runner
from running.spec import RunSpec
from running.transport_choice import TRANSPORTS, transport
from running.worlds.simulated import SimulatedWorld
from running.worlds.virtual_time import MakeFabric
from scenarios.scenario import Phase, Scenario, TimedFault, Workload
from topo.fault import VERBS, FaultError
from topo.graph import links
from topo.plan import Links, Plan


class RandomRun:
    """One run, drawn from a seed: a fraction of a second at lab rates."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.totals: list[dict[str, Any]] = []
        """The latest run's journal lines with totals."""
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
        verb = draw.choice([verb for verb in VERBS.values() if not verb.drawn_apart])
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

    def journals(
        self, directory: Path, make_fabric: MakeFabric | None, record: bool = True, counted: bool = False
    ) -> dict[str, list[str]]:
        """Every process's lines, of the runner's all but what real clocks say; and the packet log's, if wanted."""
        run = RunDirectory.create(directory, "drawn", self.seed)
        record_s = (self.seconds / 2, self.seconds * 1.3) if record else None
        chosen = replace(self.transport, payload="counted" if counted else "real")
        choices = Choices(chosen, self.plan, seed=self.seed, world="simulated", record_packets_s=record_s)
        runner = Runner(RunSpec(self.scenario, choices), run, tell=lambda event: None)
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
        self.totals = [json.loads(line) for name in lines for line in lines[name] if '"bytes_verified"' in line]
        return {**kept, "packets": run.packets.read_text().splitlines() if record else []}
