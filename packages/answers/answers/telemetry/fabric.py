"""The switches that write telemetry: their programs, and the rate of each port."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from controller import Entity, TableEntry
from p4c.entries import Exact
from topo import Plan, Switch
from topo.graph import link_at, ports


@dataclass(frozen=True, slots=True)
class RecordingSwitches:
    """`controller.ProgramVariant`. A port's rate is the plan's, also while a fault slows its cable."""

    programs: Path = Path(__file__).parent

    def entries(
        self, plan: Plan, switch: Switch, down: Collection[int], dead_links: Collection[tuple[str, str]]
    ) -> Iterator[Entity]:
        """An entry per port."""
        for ref in ports(plan, switch):
            kbps = max(1, link_at(plan, ref).rate_bps // 1000)
            match = (("egress_port", Exact(ref.port)),)
            yield TableEntry("link", match, "count_sent", (kbps, plan.links.wire_overhead_bytes))


RECORDING = RecordingSwitches()
