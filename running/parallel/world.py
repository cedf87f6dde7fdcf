"""A simulated world of which each process has a part: some leaves with their hosts, and some of the switches above."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from common.terminal.standard_streams import write_error
from endpoint import AgentClient
from running.directory import RunDirectory
from running.parallel.communicator import PATIENCE_S, Ranks, portable, raise_first
from running.transport_choice import TransportChoice
from running.worlds.host import ANSWER_S, SimulatedHost, answered
from running.worlds.simulated import SimulatedWorld
from running.worlds.virtual_time import VirtualTime
from running.worlds.world import Process
from switch import PacketRecord
from switch.native import NEVER, FabricPart
from topo import Host, Node, Plan
from topo.fault import Change
from topo.graph import links

Turn = tuple[int, int, Exception | None, bytes]
"""From each process to each other: its next event, the shortest way out of it, an exception, frames."""


class SharedTime(VirtualTime):
    """Virtual time that several processes share, in conservative turns: every call that lets time pass is one of all.

    A turn ends a cable's length after the earliest event of all: nothing that one process does in it can reach a switch
    of another before its end. Then frames change hands. Switches stop at the end of a turn, and hosts a cable later: a
    frame that is still to be brought reaches a leaf first. So fewer hosts are served twice for one cable's time. A
    turn's length changes no result: events at one nanosecond are ordered by time, port and sending (`switch.fabric`),
    wherever a frame comes from and whenever it is brought.
    """

    def __init__(self, fabric: FabricPart, tick_ns: int, ranks: Ranks, beat: Callable[[], None]) -> None:
        """`beat` is called after every turn."""
        super().__init__(fabric, tick_ns)
        self._part = fabric
        self._ranks = ranks
        self._beat = beat

    @property
    def next_ns(self) -> int | None:
        """The next instant at which anything happens in any process."""
        next_ns, _ = self._exchange(None)
        return None if next_ns == NEVER else next_ns

    def run_until(self, t_ns: int) -> None:
        end_ns, error = t_ns + 1, None
        while True:
            next_ns, between_ns = self._exchange(error)
            if next_ns >= end_ns:
                break
            error = self._turn(min(end_ns, next_ns + between_ns), end_ns)
            self._beat()
        super().run_until(t_ns)  # nothing is left to happen

    def _turn(self, turn_end_ns: int, end_ns: int) -> Exception | None:
        """One turn; hosts go on beyond its end, and not beyond `end_ns`. Returns what was raised in it."""
        try:
            self._pass(turn_end_ns, end_ns)
        except Exception as error:
            return portable(error)
        return None

    def _exchange(self, error: Exception | None) -> tuple[int, int]:
        """Frames change hands. Returns the next event of all processes, and the shortest way between two."""
        own_ns = self._own_next_ns()
        next_ns = min(NEVER if own_ns is None else own_ns, self._part.departing_ns)
        between_ns = self._part.between_ns
        ranks = self._ranks
        told: list[Turn] = [
            (next_ns, between_ns, error, b"" if error or rank == ranks.rank else self._part.depart(rank + 1))
            for rank in range(ranks.count)
        ]
        heard: list[Turn] = ranks.comm.alltoall(told)
        raise_first([turn[2] for turn in heard])
        for rank, turn in enumerate(heard):
            if rank != ranks.rank and turn[3]:
                self._part.arrive(turn[3])
        return min(turn[0] for turn in heard), min(turn[1] for turn in heard)


class PartClient:
    """`endpoint.group.AgentClient`. All processes make the same calls in the same order."""

    def __init__(
        self, name: str, owner: int, own: SimulatedHost | None, time: VirtualTime, ranks: Ranks, pace: float
    ) -> None:
        """`own` is the host where this process has it; `owner` is the rank of the process that does."""
        self._name = name
        self._owner = owner
        self._own = own
        self._time = time
        self._ranks = ranks
        self._answer_s = ANSWER_S * pace
        self._sent = 0
        self._there: dict[int, int | Exception] = {}

    def send(self, op: str, **arguments: Any) -> int:
        self._sent += 1
        if self._own is not None:
            try:
                self._there[self._sent] = self._own.send(op, **arguments)
            except Exception as error:  # all processes are told by `result`
                self._there[self._sent] = portable(error)
        return self._sent

    def result(self, ident: int, timeout_s: float | None = None) -> Any:
        limit_s = self._answer_s if timeout_s is None else timeout_s
        comm, owner = self._ranks.comm, self._owner
        return answered(lambda: comm.bcast(self._take(ident), root=owner), self._name, self._time, limit_s)

    def _take(self, ident: int) -> dict[str, Any] | Exception | None:
        if self._own is None:
            return None
        there = self._there[ident]
        return there if isinstance(there, Exception) else self._own.take(there)


@dataclass(frozen=True)
class Partition:
    """The rank of every node of a plan."""

    rank: dict[Node, int]

    @classmethod
    def of(cls, plan: Plan, count: int) -> Partition:
        """Groups of hosts in the order of their first hosts, as evenly as they go; the switches above take turns.

        ValueError when there are fewer groups than processes.
        """
        groups = host_groups(plan)
        if count > len(groups):
            raise ValueError(
                f"--processes {count}: hosts of one leaf stay together, and plan {plan.name} has {len(groups)} such"
                f" groups: take 1 to {len(groups)}"
            )
        rank: dict[Node, int] = {}
        done = 0
        for number, group in enumerate(groups):
            middle = done + sum(isinstance(node, Host) for node in group) / 2
            fair = int(middle * count / plan.host_count)
            own = max(min(fair, number), count - (len(groups) - number))  # every rank has a group
            rank.update(dict.fromkeys(group, min(own, count - 1)))
            done += sum(isinstance(node, Host) for node in group)
        above = [switch for switch in plan.switches() if switch not in rank]
        rank.update((switch, number % count) for number, switch in enumerate(above))
        return cls(rank)

    def elsewhere(self, plan: Plan, rank: int) -> dict[int, int]:
        """The switches of other ranks, by number, each with its part: its rank counted from 1."""
        switches = enumerate(plan.switches())
        return {number: self.rank[switch] + 1 for number, switch in switches if self.rank[switch] != rank}


def host_groups(plan: Plan) -> list[list[Node]]:
    """Hosts and the switches at which they are plugged in: both ends of a cable to a host are in one group."""
    leader: dict[Node, Node] = {host: host for host in plan.hosts()}

    def first(node: Node) -> Node:
        while leader[node] != node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    for link in links(plan):
        ends = (link.a.node, link.b.node)
        if any(isinstance(end, Host) for end in ends):
            host, leaf = ends if isinstance(ends[0], Host) else (ends[1], ends[0])
            leader.setdefault(leaf, leaf)
            leader[first(leaf)] = first(host)
    groups: dict[Node, list[Node]] = {}
    for node in leader:
        groups.setdefault(first(node), []).append(node)
    return sorted(groups.values(), key=lambda group: min(node.index for node in group if isinstance(node, Host)))


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
        own = {node: switch.sample() for node, switch in self.fabric.switches.items()}
        gathered = self._ranks.comm.gather(own, root=0)
        rows = {node: sample for part in gathered or () for node, sample in part.items()}
        for node in self.plan.switches() if rows else ():
            self._journal_switch(node, rows[node])

    def close(self) -> None:
        """Where this process alone was broken off, it ends all of them: the others wait for it for ever."""
        broken = sys.exc_info()[1]
        if not self._ranks.meet(PATIENCE_S if broken is not None else None):
            write_error(f"process {self._ranks.rank} of the run: {type(broken).__name__}: {broken}")
            self._ranks.abort()
        super().close()
