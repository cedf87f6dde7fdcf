"""Packets over the tables of configurations: each switch consumes its uSID and looks the next one up, as RFC 9800 says.

The tables are the source's: any block, any lengths, uN and uA lists alike. The destination that a sender writes
follows from the same tables, so a list never holds a uSID that no switch knows.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv6Address, IPv6Network

from fabric.facts import Cable, Device, End, Facts, Locator, Place, Route, Sid

BITS = 128
HOPS_MAX = 16
NODE_SIDS = ("uN", "End")
ADJACENCY_SIDS = ("uA", "End.X")
DECAP_SIDS = ("uDT6", "uDT46", "uDX6", "End.DT6", "End.DT46", "End.DX6")
USUAL_BLOCK = 32


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of a table: a SID, a route, or the network of a port."""

    prefix: IPv6Network
    place: Place
    sid: Sid | None = None
    ports: tuple[str, ...] = ()
    broken: str = ""
    """Why it forwards nothing."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Where a packet went: the ports that it left by, the device where it ended, and why it ended there."""

    links: tuple[End, ...]
    last: str
    why: str
    entry: Entry | None
    delivered: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """The port that a packet leaves a device by, and its destination then; no port and the reason where it ends."""

    port: str
    address: int
    entry: Entry | None
    why: str


@dataclass(slots=True)
class Table:
    """The rows of a device by prefix length, longest first; SIDs go before routes of their length."""

    device: Device
    rows: dict[str, dict[int, dict[int, Entry]]] = field(default_factory=dict)

    def add(self, entry: Entry, vrf: str = "") -> None:
        """Add a row; several next hops of one prefix are one row."""
        own = self.rows.setdefault(vrf, {}).setdefault(entry.prefix.prefixlen, {})
        key = int(entry.prefix.network_address)
        known = own.get(key)
        if known is None or (known.sid is None and entry.sid is not None):
            own[key] = entry
        elif known.sid is None and entry.sid is None:
            broken = known.broken or entry.broken
            own[key] = Entry(known.prefix, known.place, None, (*known.ports, *entry.ports), broken)

    def lookup(self, address: int, vrf: str = "") -> Entry | None:
        """The row that an address takes."""
        own = self.rows.get(vrf, {})
        for length in sorted(own, reverse=True):
            entry = own[length].get(address >> (BITS - length) << (BITS - length))
            if entry is not None:
                return entry
        return None


class Tables:
    """The tables of all devices, and the cables between their ports."""

    def __init__(self, facts: Facts, links: Iterable[Cable], hosts: Iterable[str]) -> None:
        self.facts = facts
        self.hosts = set(hosts)
        self.far: dict[End, End] = {}
        self._ports: dict[tuple[str, str], list[str]] = defaultdict(list)
        for near, far in ((a, b) for link in links for a, b in ((link.a, link.b), (link.b, link.a))):
            self.far[near] = far
            self._ports[near.device, far.device].append(near.port)
        self.tables = {name: self._table(device) for name, device in facts.devices.items()}

    def ports_to(self, device: str, other: str) -> list[str]:
        """The ports of a device that are cabled to another."""
        return self._ports.get((device, other), [])

    def _table(self, device: Device) -> Table:
        table = Table(device)
        for interface in device.interfaces.values():
            for own, place in interface.addresses:
                if own.network.prefixlen < BITS:
                    table.add(Entry(own.network, place, None, (interface.name,)), interface.vrf)
        for sid in device.sids:
            table.add(Entry(sid.prefix, sid.place, sid))
        for route in device.routes:
            table.add(self._route(device, route), "" if route.vrf == "default" else route.vrf)
        return table

    def _route(self, device: Device, route: Route) -> Entry:
        port, broken = device.port(route.interface) if route.interface else "", ""
        if route.nexthop is None and not route.interface:
            broken = "a blackhole"
        elif not port and route.nexthop is not None:
            port = self.port_of(device, route.nexthop, route.vrf)
            broken = "" if port else f"next hop {route.nexthop} is in the network of no port"
        return Entry(route.prefix, route.place, None, (port,) if port else (), broken)

    @staticmethod
    def port_of(device: Device, nexthop: IPv6Address, vrf: str = "") -> str:
        """The port in whose network a next hop is; "" for none."""
        for interface in device.interfaces.values():
            for own, _ in interface.addresses:
                if nexthop in own.network and own.network.prefixlen < BITS and nexthop != own.ip:
                    return interface.name
        return ""

    # --- what senders write ---------------------------------------------------------------------------------------

    def locator(self, device: str) -> Locator | None:
        """A device's first locator."""
        return next(iter(self.facts.devices[device].locators.values()), None)

    def block_bits(self, device: str, sid: Sid | None = None) -> int:
        """The bits of the block of a SID's locator, or of the device's."""
        locators = self.facts.devices[device].locators
        locator = locators.get(sid.locator) if sid else None
        locator = locator or self.locator(device)
        return locator.block_bits if locator else USUAL_BLOCK

    def node_sid(self, device: str) -> Sid | None:
        """The uN of a device: that of its locator, where it has several."""
        own = [sid for sid in self.facts.devices[device].sids if sid.behavior in NODE_SIDS]
        locator = self.locator(device)
        return next((sid for sid in own if locator and sid.prefix == locator.prefix), own[0] if own else None)

    def adjacency_sid(self, device: str, other: str) -> Sid | None:
        """The uA of a device that is meant for a neighbour: by its port."""
        ports = set(self.ports_to(device, other))
        own = self.facts.devices[device]
        for sid in own.sids:
            if sid.behavior in ADJACENCY_SIDS and own.port(sid.interface) in ports:
                return sid
        return None

    def bits(self, device: str, sid: Sid) -> tuple[int, int]:
        """A SID behind its block: value and length."""
        length = sid.prefix.prefixlen - self.block_bits(device, sid)
        return int(sid.prefix.network_address) >> (BITS - sid.prefix.prefixlen) & (1 << max(0, length)) - 1, length

    def last_sid(self, leaf: str, host: str) -> tuple[int, int] | None:
        """How a leaf is told to deliver to a host: a uA, a route of one uSID, or decapsulation into the port's VRF."""
        if (sid := self.adjacency_sid(leaf, host)) is not None:
            return self.bits(leaf, sid)
        device, block = self.facts.devices[leaf], self.block_bits(leaf)
        ports = self.ports_to(leaf, host)
        for route in device.routes:
            entry = self._route(device, route)
            own, length = self.locator(leaf), route.prefix.prefixlen - block
            if not entry.ports or entry.ports[0] not in ports or own is None or length <= 0:
                continue
            if route.prefix.subnet_of(own.prefix.supernet(new_prefix=block)):
                return int(route.prefix.network_address) >> (BITS - block - length) & (1 << length) - 1, length
        for sid in device.sids:
            if sid.behavior in DECAP_SIDS and any(self.in_vrf(device, port, sid.vrf) for port in ports):
                return self.bits(leaf, sid)
        return None

    @staticmethod
    def in_vrf(device: Device, port: str, vrf: str) -> bool:
        """Whether a port is in the VRF that a SID names."""
        interface = device.interfaces.get(port)
        return interface is not None and interface.vrf == ("" if vrf in ("default", "0") else vrf)

    def destination(self, switches: Sequence[str], host: str, *, adjacencies: bool) -> int | str:
        """The destination of a packet over these switches to a host, or why it cannot be written."""
        parts: list[tuple[int, int]] = []
        for position, name in enumerate(switches):
            following = switches[position + 1] if position + 1 < len(switches) else ""
            if not adjacencies or not following:
                sid = self.node_sid(name) if not adjacencies else None
                if sid is None and not adjacencies:
                    return f"{name} has no uN"
            else:
                sid = self.adjacency_sid(name, following)
                if sid is None:
                    return f"{name} has no uA for its port to {following}"
            if sid is not None:
                parts.append(self.bits(name, sid))
                if parts[-1][1] < 0:
                    return f"{name} has a SID {sid.prefix} that is shorter than its block"
        last = self.last_sid(switches[-1], host)
        if last is None:
            return f"{switches[-1]} has neither a uA, a route nor a decapsulation for {host}"
        locator = self.locator(switches[0])
        block = locator.block_bits if locator else USUAL_BLOCK
        sid = self.node_sid(switches[0]) or self.adjacency_sid(switches[0], (*switches, host)[1])
        prefix = locator.prefix if locator else sid.prefix if sid else None
        if prefix is None:
            return f"{switches[0]} has neither a locator nor a SID"
        value, free = int(prefix.network_address) >> (BITS - block), BITS - block
        for bits, length in (*parts, last):
            value, free = value << length | bits, free - length
        return value << free if free >= 0 else f"the list needs {-free} bits more than an address has"

    # --- packets --------------------------------------------------------------------------------------------------

    def walk(self, leaf: str, destination: int, host: str) -> Walk:
        """Follow a packet that a host's leaf has received, up to a host or a dead end."""
        links: list[End] = []
        at, address = leaf, destination
        for _ in range(HOPS_MAX):
            step = self._step(at, address, host)
            if not step.port:
                return Walk(tuple(links), at, step.why, step.entry)
            near, address = End(at, step.port), step.address
            links.append(near)
            far = self.far.get(near)
            if far is None:
                return Walk(tuple(links), at, f"port {step.port} has no cable", step.entry)
            at = far.device
            if at in self.hosts:
                return Walk(tuple(links), at, "", step.entry, delivered=True)
        return Walk(tuple(links), at, f"still under way after {HOPS_MAX} hops: a loop", None)

    def _step(self, device: str, address: int, host: str) -> Step:
        """The next step of a packet at a device."""
        table = self.tables[device]
        for _ in range(HOPS_MAX):
            entry = table.lookup(address)
            if entry is None:
                return Step("", address, None, f"no SID and no route for {IPv6Address(address)}")
            sid = entry.sid
            if sid is None:
                port = entry.ports[0] if entry.ports else ""
                return Step(port, address, entry, entry.broken or "a route without a port")
            shifted = self._shifted(device, address, sid)
            if sid.behavior in ADJACENCY_SIDS:
                port = self._adjacency_port(table.device, sid)
                return Step(port, shifted, entry, f"uA without a port: next hop {sid.nexthop}")
            if sid.behavior in DECAP_SIDS:
                port, why = self._decapsulated(table.device, sid, host)
                return Step(port, address, entry, why)
            if sid.behavior not in NODE_SIDS:
                return Step("", address, entry, f"behaviour {sid.behavior} is not one that uSID lists use")
            address = shifted
        return Step("", address, None, f"{IPv6Address(address)} is looked up again and again")

    def _shifted(self, device: str, address: int, sid: Sid) -> int:
        """The destination without the uSID that was used."""
        block = self.block_bits(device, sid)
        length = max(0, sid.prefix.prefixlen - block)
        rest = address & (1 << (BITS - block)) - 1
        return address >> (BITS - block) << (BITS - block) | (rest << length) & (1 << (BITS - block)) - 1

    def _adjacency_port(self, device: Device, sid: Sid) -> str:
        if sid.interface:
            return device.port(sid.interface)
        return self.port_of(device, sid.nexthop) if sid.nexthop else ""

    def _decapsulated(self, device: Device, sid: Sid, host: str) -> tuple[str, str]:
        """Where the inner packet goes: by the VRF's table to one of the receiver's addresses. Where no file has them,
        the receiver's port must be in the VRF."""
        vrf = "" if sid.vrf in ("default", "0") else sid.vrf
        if vrf and vrf not in device.vrfs and not any(each.vrf == vrf for each in device.interfaces.values()):
            return "", f"{sid.behavior} into VRF {vrf}, which the device does not have"
        inner = [own.ip for each in self.facts.devices[host].interfaces.values() for own, _ in each.addresses]
        if not inner:
            ports = [port for port in self.ports_to(device.name, host) if self.in_vrf(device, port, sid.vrf)]
            return (
                (ports[0], "")
                if ports
                else ("", f"{sid.behavior} into VRF {vrf or 'default'}: no port to {host} there")
            )
        for own in inner:
            entry = self.tables[device.name].lookup(int(own), vrf)
            if entry is not None and entry.ports:
                return entry.ports[0], ""
        return "", f"{sid.behavior} into VRF {vrf or 'default'}: no route to the receiver's address there"
