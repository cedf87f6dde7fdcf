"""The packet log of a run in virtual time: the fate of every packet in a stretch of time, as JSON lines.

docs/contracts.md ("Packet log") is the format. Lines are written as the run goes on, in order of time, so that memory
holds no more than what happened since the last look.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from common.files import named
from common.interrupts import held_back
from endpoint import Decoder
from endpoint.nic.dialect import Dialect
from switch import NO_PORT, Fabric, Fate, NodeKind, PacketRecord, in_order
from topo import Host, Node, Plan, Switch
from topo.address import host_address
from topo.graph import PortRef, peer, ports

Line = dict[str, Any]

FORMAT, VERSION = "mrclab packet log", 1
LOOKS = 256  # in the recorded stretch: how often lines are written


class PacketLog:
    """Writes what a fabric records to a file. `switches` and `hosts` are in the order of their numbers there."""

    def __init__(
        self,
        plan: Plan,
        fabric: Fabric,
        switches: Iterable[Switch],
        hosts: Iterable[Host],
        path: Path,
        dialect: Dialect,
        start_ns: int,
        stop_ns: int,
    ) -> None:
        """Raises OSError when there is no room for the file, or there is one."""
        fabric.record_packets(start_ns, stop_ns)
        self._fabric = fabric
        names = {host_address(plan, host).packed: host.name for host in plan.hosts()}
        trimmed = (plan.dscp.trimmed, plan.dscp.trimmed_lasthop)
        self._decode = Decoder(names, trimmed, plan.packets.udp_port, dialect).fields
        nodes: dict[tuple[NodeKind, int], Node] = {(NodeKind.SWITCH, i): node for i, node in enumerate(switches)}
        nodes |= {(NodeKind.HOST, i): node for i, node in enumerate(hosts)}
        self._names = {at: str(node) for at, node in nodes.items()}
        self._numbers = {name: at for at, name in self._names.items()}
        self._peers = {(*at, ref.port): peer(plan, ref) for at, node in nodes.items() for ref in ports(plan, node)}
        self._waiting: list[PacketRecord] = []  # later than what is written
        self._under_way: dict[tuple[NodeKind, int, int, int], int] = {}  # node, port and time of arrival -> packet
        self._packets = 0
        self._lines = 0
        self.start_ns, self.stop_ns = start_ns, stop_ns
        self._file = path.open("x", encoding="utf-8")
        self._write({"format": FORMAT, "version": VERSION, "start_ns": self.start_ns, "stop_ns": self.stop_ns})

    @property
    def look_ns(self) -> int:
        """How much time may pass between two calls of `write`."""
        return max((self.stop_ns - self.start_ns) // LOOKS, 1)

    def write(self, before_ns: int) -> None:
        """Everything before this time, which the fabric has reached. OSError names the file."""
        with named(self._file.name), held_back():  # or `close` would not know which lines there are
            self._waiting += self._fabric.take_records()
            ready = in_order(record for record in self._waiting if record.t_ns < before_ns)
            self._waiting = [record for record in self._waiting if record.t_ns >= before_ns]
            for record in ready:
                self._write(self._line(record))
            self._lines += len(ready)
            self._file.flush()

    def close(self, now_ns: int) -> None:
        """Write what is left, also of a run that was broken off, and how many lines there are."""
        self.write(now_ns + 1)
        with named(self._file.name):
            self._write({"end_ns": min(now_ns, self.stop_ns), "lines": self._lines})
            self._file.close()

    def _line(self, record: PacketRecord) -> Line:
        there = self._peers.get((record.kind, record.node, record.port))
        sent = record.fate in (Fate.SENT, Fate.LOST)
        return {
            "t_ns": record.t_ns,
            "node": self._names[record.kind, record.node],
            "fate": record.fate.name.lower(),
            "packet": self._number(record, there),
            "port_in": None if record.port_in == NO_PORT else record.port_in,
            "port": None if record.port == NO_PORT else record.port,
            "to": None if there is None else str(there.node),
            "queued_ns": record.queued_ns,
            "arrives_ns": record.arrives_ns if sent else None,
            "depth": record.depth,
            "priority": record.priority,
            "bytes": record.length,
            "bytes_in": record.length_in,
            **self._decode(record.head),
        }

    def _number(self, record: PacketRecord, there: PortRef | None) -> int:
        """The packet's number: the one it had at the place before, where the log has seen it."""
        came = (record.kind, record.node, record.port_in, record.queued_ns)
        number = self._under_way.pop(came, None)
        if number is None:
            self._packets = number = self._packets + 1
        if record.fate is Fate.SENT and there is not None:
            self._under_way[(*self._numbers[str(there.node)], there.port, record.arrives_ns)] = number
        return number

    def _write(self, line: Line) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
