"""The switches that choose the shortest queue per packet: their programs, and the groups of ports to choose from."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from controller import Entity, TableEntry
from p4c.entries import Lpm
from topo import Plan, Switch
from topo.address import leaf_prefix
from topo.plain_routes import live_ports, plain_route

PORTS_MAX = 8
PATIENCE_US_MIN = 10_000
"""An account that nothing has settled for so long, or for as long as a full queue takes, is of an empty queue."""


@dataclass(frozen=True, slots=True)
class AdaptiveSwitches:
    """`controller.ProgramVariant`. A port without a link is left at once, a link farther on when routing knows."""

    programs: Path = Path(__file__).parent

    def entries(
        self, plan: Plan, switch: Switch, down: Collection[int], dead_links: Collection[tuple[str, str]]
    ) -> Iterator[Entity]:
        """A group per leaf that has several ways up. Groups of ports that are no neighbours, or of more than eight, are
        left to the static table."""
        if switch.role != "leaf":
            return
        deep_bits = plan.threshold_packets(plan.queues.no_trim_drop) * plan.frame_bytes_max * 8
        patience_us = max(PATIENCE_US_MIN, deep_bits * 1_000_000 // plan.links.fabric_rate_bps)
        dead = {frozenset(link) for link in dead_links}
        for index in range(plan.leaves):
            route = plain_route(plan, switch, index)
            ports = route.ports
            if not route.ecmp or len(ports) > PORTS_MAX or ports != tuple(range(ports[0], ports[0] + len(ports))):
                continue
            live = set(live_ports(plan, switch, index, dead)) - set(down)
            bits = sum(1 << port - ports[0] for port in live)
            prefix = leaf_prefix(index)
            match = (("dst_addr", Lpm(int(prefix.network_address), prefix.prefixlen)),)
            yield TableEntry("adaptive_route", match, "shortest_queue", (ports[0], len(ports), bits, patience_us))


ADAPTIVE = AdaptiveSwitches()
