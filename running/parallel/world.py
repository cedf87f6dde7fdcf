"""A simulated world of which each process has a part: some leaves with their hosts, and some of the switches above."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from endpoint import AgentClient
from running.directory import RunDirectory
from running.parallel.client import PartClient
from running.parallel.communicator import PATIENCE_S, Ranks
from running.parallel.partition import Partition
from running.parallel.shared_time import SharedTime
from running.transport_choice import TransportChoice
from running.worlds.simulated import SimulatedWorld
from running.worlds.world import Process
from switch import PacketRecord
from switch.native import FabricPart
from topo import Node, Plan
from topo.fault import Change


class RecordedPart(FabricPart):
    """A part whose records of packets are taken by the first process for all."""

    ranks: Ranks

    def take_records(self) -> list[PacketRecord]:
        gathered = self.ranks.comm.gather(super().take_records(), root=0)
        return [record for records in gathered or () for record in records]


class PartWorld(SimulatedWorld):
    """`running.worlds.world.World`, called by all processes alike. Each writes the journals of its hosts; the first
    writes all other files of the run."""

    def __init__(
        self,
        ranks: Ranks,
        beat: Callable[[int], None],
        plan: Plan,
        transport: TransportChoice,
        seed: int,
        directory: RunDirectory,
        tell: Callable[[str], None],
    ) -> None:
        """`beat` is called with the time of the slowest process after every turn."""
        self._ranks = ranks
        self._told = beat
        self._partition = Partition.of(plan, ranks.count)
        elsewhere = self._partition.elsewhere(plan, ranks.rank)
        super().__init__(
            plan, transport, seed, directory, tell, partial(self._part, elsewhere, counted=transport.counted)
        )
        clients = {
            host.name: PartClient(
                host.name, self._partition.rank[host], self._hosts.get(host), self.time, ranks, plan.pace
            )
            for host in self.fabric.host_numbers
        }
        self.clients: Mapping[str, AgentClient] = clients  # type: ignore[assignment]  # most hosts are elsewhere

    def _part(
        self, elsewhere: Mapping[int, int], seeds: Sequence[int], hosts: int, host_ports: int, *, counted: bool
    ) -> RecordedPart:
        part = RecordedPart(elsewhere, seeds, hosts, host_ports, counted=counted)
        part.ranks = self._ranks
        return part

    def _owns(self, node: Node) -> bool:
        return self._partition.rank[node] == self._ranks.rank

    def _time(self) -> SharedTime:
        part = self.fabric.fabric
        assert isinstance(part, FabricPart)
        return SharedTime(part, self.plan.base_rtt_ns, self._ranks, lambda: self._told(self.time.now_ns))

    def carry_out(self, change: Change) -> None:
        self._ranks.together(lambda: super(PartWorld, self).carry_out(change))

    def reconverge(self, dead_links: Collection[tuple[str, str]]) -> None:
        self._ranks.together(lambda: super(PartWorld, self).reconverge(dead_links))

    def verify(self) -> int:
        return sum(self._ranks.comm.allgather(self._ranks.together(super().verify)))

    def spawn(self, host: str, argv: Sequence[str], log: str) -> Process:
        raise ValueError("--processes: programs in hosts run with one process only")

    def _journal_switches(self) -> None:
        own = [(switch, counters) for switch, counters in self.fabric.counters()]
        gathered = self._ranks.comm.gather(own, root=0)
        counted = {switch: counters for part in gathered or () for switch, counters in part}
        for switch in self.plan.switches() if counted else ():
            self._journal_switch(switch, counted[switch])

    def close(self) -> None:
        """Where this process alone was broken off, it ends all of them: the others wait for it for ever."""
        broken = sys.exc_info()[1]
        if not self._ranks.meet(PATIENCE_S if broken is not None else None):
            sys.stderr.write(f"process {self._ranks.rank} of the run: {type(broken).__name__}: {broken}\n")
            self._ranks.abort()
        super().close()
