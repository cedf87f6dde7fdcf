"""The switches that send packets back: their programs, and the entries that turn notification on."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from controller import Entity, TableEntry
from p4c.entries import Exact
from topo import Plan, Switch
from topo.graph import peer, ports

RETURNED_CLASS = 7
PRIORITY = 1
"""Behind control and trimmed packets, before data: the vendor's default switch priority is 1 as well."""


@dataclass(frozen=True, slots=True)
class NotifyingSwitches:
    """`controller.ProgramVariant`. Numbers are the vendor's defaults, but for the size: headers fit in the plan's trim
    size, and the vendor sends 256 to 1024 bytes (`README.md`)."""

    programs: Path = Path(__file__).parent
    dscp: int = 11
    size_bytes: int = 0
    """The most that comes back of a packet; 0: the plan's trim size."""

    def entries(
        self, plan: Plan, switch: Switch, down: Collection[int], dead_links: Collection[tuple[str, str]]
    ) -> Iterator[Entity]:
        """Which packets go back, and which ports have no link. Tables are static, so no route is ever withdrawn."""
        yield TableEntry("dscp_to_class", (("dscp", Exact(self.dscp)),), "set_class", (RETURNED_CLASS, PRIORITY))
        size_bytes = self.size_bytes or plan.trimming.size_bytes
        for ref in ports(plan, switch):
            macs = (int(mac.replace(":", ""), 16) for mac in (ref.mac, peer(plan, ref).mac))
            args = (size_bytes, self.dscp, PRIORITY, *macs)
            for dscp in (plan.dscp.trimmable, plan.dscp.trimmable_retransmit):
                match = (("ingress_port", Exact(ref.port)), ("dscp", Exact(dscp)))
                yield TableEntry("notify_sender", match, "send_back", args)
        for port in sorted(down):
            yield TableEntry("dead_port", (("egress_port", Exact(port)),), "link_is_down")


NOTIFYING = NotifyingSwitches()
