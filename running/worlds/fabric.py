"""All switches of the simulated world and every cable, by the plan's names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import fields
from functools import partial
from random import Random
from typing import Any

from common.seeds import Purpose, derive
from controller import compiled_pipelines
from running.worlds.switch import SimulatedSwitch
from switch import End, Fabric, NicPort
from switch.native import NativeFabric
from topo import Host, Node, Plan, Switch
from topo.fault import PortState, SwitchState, healthy
from topo.graph import PortRef, links, ports

MakeFabric = Callable[[Sequence[int], int, int], Fabric]
"""Makes a fabric from a seed for each switch, the number of hosts, and the ports of a host."""
NIC_FIELDS = tuple(spec.name for spec in fields(NicPort))


class SimulatedFabric:
    """Every switch of a plan, provisioned, and every cable between switches and to hosts, with carrier."""

    def __init__(
        self, plan: Plan, seed: int, make: MakeFabric = NativeFabric, owns: Callable[[Node], bool] = lambda _: True
    ) -> None:
        """`owns` says which nodes are this process's: other switches are cables' ends and nothing else."""
        seeds = Random(derive(seed, Purpose.SWITCHES))
        pipelines = compiled_pipelines()
        self._switch_numbers = {node: number for number, node in enumerate(plan.switches())}
        self.host_numbers = {host: number for number, host in enumerate(plan.hosts())}
        engine_seeds = [seeds.getrandbits(64) for _ in self._switch_numbers]
        self.fabric = make(engine_seeds, len(self.host_numbers), plan.planes + 1)
        for link in links(plan):
            self.fabric.connect(self._end(link.a), self._end(link.b))
        self.switches = {
            node: SimulatedSwitch(plan, node, pipelines, partial(self.fabric.switch, number), self._now_ns)
            for node, number in self._switch_numbers.items()
            if owns(node)
        }
        for host in self.host_numbers:
            for ref in ports(plan, host):
                self.set_port(ref, healthy(plan, ref))

    def set_port(self, ref: PortRef, state: PortState) -> None:
        """Set a port's carrier and transmit side."""
        if isinstance(ref.node, Switch):
            if ref.node in self.switches:
                self.switches[ref.node].set_port(ref.port, state)
        else:
            # A NIC's port knows fewer impairments than a switch's: verbs with `host_side` must keep to these.
            nic_port = NicPort(**{name: getattr(state, name) for name in NIC_FIELDS})
            self.fabric.configure_nic_port(self.host_numbers[ref.node], ref.port, nic_port)

    def set_switch(self, switch: Switch, state: SwitchState) -> None:
        """Stop a switch, crash it, or let it run again, after a crash without tables."""
        if switch in self.switches:
            self.switches[switch].set_state(state)

    def provision(self, switch: Switch) -> None:
        """Give a switch its program and static tables."""
        if switch in self.switches:
            self.switches[switch].provision()

    def reconverge(self, dead_links: Collection[tuple[str, str]]) -> None:
        """Give every switch the tables that a routing protocol would make without these links."""
        for switch in self.switches.values():
            switch.reconverge(dead_links)

    def differences(self) -> int:
        """How many entries of all own switches differ from the plan's."""
        return sum(switch.differences() for switch in self.switches.values())

    def counters(self) -> Iterator[tuple[Switch, list[dict[str, Any]]]]:
        """Every own switch with its ports' totals, as in a `sample` line."""
        for node, switch in self.switches.items():
            yield node, switch.counters()

    def close(self) -> None:
        self.fabric.close()

    def _now_ns(self) -> int:
        return max(self.fabric.reached_ns - 1, 0)

    def _end(self, ref: PortRef) -> End:
        if isinstance(ref.node, Host):
            return End("host", self.host_numbers[ref.node], ref.port)
        return End("switch", self._switch_numbers[ref.node], ref.port)
