"""The face of a lab for every tool: its nodes, counters, tables, packets, clock and faults, in either world."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from topo import Host, Node, Plan, Switch
from topo.fault import Fault, healthy, port_states
from topo.graph import PortRef, peer, ports

if TYPE_CHECKING:  # gRPC comes with them, which the help of a command does not need
    from controller import Cells
    from endpoint import AgentClient
    from running.tracing import Explanation

Managers = Mapping[str, Mapping[int, Mapping[str, int]]]
"""The counts of traffic managers, queues among them, by switch and port."""
Crossing = tuple[int, bool, int, bytes]
"""A packet at one end of a cable: time in ns, whether it left, its length, its first bytes."""


class LabView(Protocol):
    """A lab to look at, on real links (`RealLab`) or in virtual time (`VirtualLab`, `RemoteLab`).

    Times are nanoseconds of the lab's own clock. An answer leaves out facts that a lab cannot tell.
    """

    plan: Plan
    name: str
    virtual_time: bool
    """Whether time passes in commands only."""

    # clock

    def now_ns(self) -> int:
        """The clock of the journal."""

    def pass_time(self, seconds: float) -> None:
        """Let lab time pass. LabError when the lab is taken down meanwhile."""

    def is_up(self, *, settled: bool = False) -> bool:
        """Whether the lab is still there; `settled` waits for a process that is changing it."""

    # nodes and interfaces

    def states(self, nodes: Collection[Node]) -> Mapping[str, str]:
        """How each of these nodes is, such as `running` or `silent`; of a host also whether it has an agent."""

    def facts(self, node: Node) -> Mapping[str, Any]:
        """More that this lab knows of a node, such as the path of its namespace."""
        return {}

    def interfaces(self, node: Node) -> Mapping[int, Mapping[str, Any]]:
        """By port: `state`, `rate_bps`, and what else the lab knows of the port's transmit side."""
        told = port_states(self.plan, self.faults())
        states = {ref.port: told.get(ref) or healthy(self.plan, ref) for ref in ports(self.plan, node)}
        return {
            port: {
                "state": "up" if state.up else "down",
                "rate_bps": state.rate_bps,
                "delay_ns": state.delay_ns,
                "loss": state.loss,
            }
            for port, state in states.items()
        }

    def wired(self, ref: PortRef) -> PortRef:
        """The port at the other end of the cable that is plugged in here."""
        return peer(self.plan, ref)

    # counters and queues

    def programs(self, switches: Collection[Switch]) -> Mapping[str, Cells | None]:
        """The counts of the program of each of these P4 switches; None for a switch that runs none now."""

    def managers(self) -> Managers:
        """The counts of the traffic managers of embedded switches."""

    def port_counters(self, node: Node) -> Mapping[int, Mapping[str, int]]:
        """The packets of a node's ports, where no traffic manager counts them: `rx_packets`, `tx_packets`."""

    def agent_counters(self, host: Host) -> Mapping[str, Any] | None:
        """The counts of a host's agent, of ports and queue pairs; None if no agent answers."""

    # tables, packets

    def held(self, switch: Switch) -> list[dict[str, str]]:
        """The entries that a switch holds, as `entries.entry_rows` has them; none after a crash."""

    def explain(self, switch: Switch, port: int, frame: bytes) -> Explanation:
        """The work of a switch on a frame by the tables that it holds; `running.tracing.follow` follows a packet."""

    def crossing(self, near: PortRef, seconds: float) -> Iterable[Crossing]:
        """Let `seconds` pass; the packets that cross one end of a cable meanwhile, in order of time."""

    # agents: probers, paths, workloads

    def agents(self) -> Mapping[str, AgentClient]:
        """The agents' control operations (endpoint/README.md), by host."""

    # faults

    def faults(self) -> list[Fault]:
        """The faults in force, the oldest first."""

    def inject(self, verb: str, target: str, value: float | None = None, seed: int = 0) -> Fault:
        """Put a fault in force (`topo.fault.VERBS`). FaultError: there is no such fault."""

    def undo(self, fault: Fault) -> None:
        """End a fault; the others stay in force."""
