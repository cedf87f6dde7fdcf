"""The tester around a switch: what is wired to its ports, and packets for it.

The switch is the leaf `p0l0` of a small fabric: hosts at ports 1 and 2, spines at ports 3 and 4. The tester is all of
its neighbours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import NamedTuple

from common.seeds import Purpose, derive
from conform.capture import Event
from conform.switch.device import DeviceError, SwitchDevice
from conform.switch.findings import Arrival, Findings
from conform.switch.packets import HEADERS, ICMPV6, IPV6, Header, encapsulated, plain
from conform.switch.wire import Recording, Sockets
from topo import Host, Plan, load_plan
from topo.address import adjacency_usid, host_address, neighbour_usid, switch_usid
from topo.graph import PortRef, peer, ports, towards_host

NODE = "p0l0"
MARKER = 1 << 63
"""In the low half of a marker's source address; no probe has it."""
RATE_BPS = 1_000_000
"""Of a port, where the device's file names none: addresses and thresholds in packets do not depend on it."""
_SID_BITS, _SIDS = 16, 6
LOW = (1 << 64) - 1


class Probe(NamedTuple):
    """A frame for the switch; `identity` is in the low half of its outer source address."""

    identity: int
    frame: bytes

    @property
    def outer(self) -> Header:
        return Header.of(self.frame[14:HEADERS])


Seen = Mapping[int, Sequence[Arrival]]
"""What left the switch, by the identity of the probe, in order at each port."""


def fabric(rate_bps: int = 0) -> Plan:
    """The fabric around the switch: one plane, two leaves, two spines, two hosts per leaf."""
    return load_plan("tiny", {"fabric.planes": "1"}).at_rate(rate_bps or RATE_BPS)


class Bench:
    """A switch with its neighbours, and what was found. `seed` decides all that varies; without `events` of an earlier
    run the switch is behind these interfaces."""

    def __init__(
        self,
        interfaces: Sequence[str],
        device: SwitchDevice,
        found: Findings,
        seed: int,
        events: Sequence[Event] | None = None,
    ) -> None:
        self.device, self.dice = device, Random(derive(seed, Purpose.DEVICE))
        self.judge, self.same, self.choice, self.unreachable = found.judge, found.same, found.choice, found.unreachable
        self.plan = fabric(device.about.rate_bps)
        self.refs: dict[int, PortRef] = {ref.port: ref for ref in ports(self.plan, self.plan.switch_node(NODE))}
        if len(interfaces) != len(self.refs):
            raise DeviceError(f"--ports must name {len(self.refs)} interfaces, port 1 first (got {len(interfaces)})")
        self.strange: list[Arrival] = []
        """Frames that no frame of the tester caused."""
        self.in_order: list[Arrival] = []
        """What left in the last `through`: in order at each port."""
        self._count = 0
        self._token = self.dice.getrandbits(31) << 32
        self._base = int(host_address(self.plan, Host(0))) >> 64 << 64
        self.recording: list[Event] = []
        names = dict(zip(self.refs, interfaces, strict=True))
        self.wire: Sockets | Recording
        if events is None:
            self.wire = Sockets(names, device.about.patience_s, self._marker, self.recording)
        else:
            self.wire = Recording(names, events)

    # --- what the switch has ---

    @property
    def own(self) -> int:
        """The switch's uN."""
        return switch_usid(self.plan.switch_node(NODE))

    def adjacency(self, port: int) -> int:
        """The uA of a port."""
        return adjacency_usid(port)

    def neighbour(self, port: int) -> int:
        """The uSID of the node at a port."""
        return neighbour_usid(self.plan, peer(self.plan, self.refs[port]).node)

    def hosts(self) -> list[int]:
        return [port for port, ref in self.refs.items() if towards_host(self.plan, ref)]

    def spines(self) -> list[int]:
        return [port for port, ref in self.refs.items() if not towards_host(self.plan, ref)]

    def unknown(self) -> int:
        """A uSID that the switch has no entry for."""
        return self.dice.randrange(0x5000, 0xD000)

    def container(self, *usids: int) -> int:
        """An address with these uSIDs."""
        value = int(self.plan.usid_block.network_address)
        for place, usid in enumerate(usids):
            value |= usid << (_SIDS - 1 - place) * _SID_BITS
        return value

    # --- packets ---

    def macs(self, port: int, *, leaving: bool = False) -> bytes:
        """Destination and source of a frame to the switch's port, or from it."""
        own, other = self.refs[port].mac, peer(self.plan, self.refs[port]).mac
        return bytes.fromhex("".join((other, own) if leaving else (own, other)).replace(":", ""))

    def header(self, *usids: int, **fields: int) -> tuple[int, Header]:
        """An outer header for a probe, and the probe's identity."""
        self._count += 1
        identity = self._token | self._count
        outer = Header(self._base | identity, self.container(*usids), flow_label=self.dice.randrange(1 << 20))
        return identity, outer._replace(**fields)

    def probe(self, port: int, *usids: int, size: int = 300, **fields: int) -> Probe:
        """A packet for this port, with these uSIDs; `size` is that of the frame."""
        identity, outer = self.header(*usids, **fields)
        return Probe(identity, encapsulated(self.macs(port), outer, self.dice, size))

    def _marker(self, port: int, out: int, number: int) -> bytes:
        outer = Header(self._base | MARKER | number, self.container(self.neighbour(out)))
        return plain(self.macs(port), outer._replace(traffic_class=self.plan.dscp.no_trim << 2), bytes(60))

    def through(self, port: int, probes: Iterable[Probe], linger: bool = False) -> Seen:
        """What leaves the switch when these have arrived by a port. SilentError."""
        seen: defaultdict[int, list[Arrival]] = defaultdict(list)
        self.in_order = []
        for arrival in self.wire.exchange(port, [probe.frame for probe in probes], linger):
            identity = self._identity(arrival)
            if identity is None:
                self.strange.append(arrival)
            elif identity >> 32 == self._token >> 32:  # else of a test before this one
                self.in_order.append(arrival)
                seen[identity].append(arrival)
        return seen

    def _identity(self, arrival: Arrival) -> int | None:
        """Of the packet that left, or of that which a message is about; None for frames that no probe caused."""
        if arrival.frame[12:14] != IPV6 or len(arrival.frame) < HEADERS:
            return None
        outer = arrival.outer
        told = outer.next_header == ICMPV6 and outer.source >> 64 != self._base >> 64
        address = outer.destination if told else outer.source
        return address & LOW if address >> 64 == self._base >> 64 else None
