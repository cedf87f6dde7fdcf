"""The NIC profile: one NIC's knowledge of the fabric, read from the JSON file that `docs/contracts.md` defines.

A profile is all an endpoint learns of the world: its ports, the DSCPs, and per destination the list of paths with
their entropy values (EVs). It is checked whole when it is read, so the code behind it never has to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv6Address, IPv6Network
from pathlib import Path
from typing import Any

from common.fields import Fields, read_json

__all__ = ["Destination", "NicProfile", "ProfilePath", "SelfProbe", "parse"]

VERSION = 1
ENCAPSULATIONS = ("srv6", "none")

# Ethernet 14 and the headers of a data packet up to its payload, plus the ICRC behind it:
# IPv6 40, UDP 8, BTH 12, METH 4, TSETH 4, RETH 16, ImmDt 4, ICRC 4; another IPv6 40 in front when encapsulated.
HEADER_BYTES_MAX = {"none": 92, "srv6": 132}


class ProfileError(ValueError):
    """The profile breaks a rule; the message names the file, the field, the rule and the valid choices."""


@dataclass(frozen=True, slots=True)
class Dscp:
    """The six-bit code points of the traffic classes (OCP MRC: no-trim, trimmable, ...); `roce` is the baseline's."""

    no_trim: int
    trimmable: int
    trimmable_retransmit: int
    trimmed: int
    trimmed_lasthop: int
    control: int
    roce: int


@dataclass(frozen=True, slots=True)
class ProfilePort:
    """One plane port. `port` counts from 1, as in the port status mask of the endpoint operations."""

    port: int
    plane: int
    interface: str
    mac: bytes
    gateway_mac: bytes
    address: IPv6Address
    usid_address: IPv6Address
    """Where a uSID list that ends at this port arrives: block, NIC uSID, zeros."""
    rate_bps: int
    """Of Ethernet frame bytes: no FCS, preamble or gap."""
    delay_ns: int
    overhead_bytes: int = 0
    """The bytes around a frame on the wire, which take time there."""


@dataclass(frozen=True, slots=True)
class ProfilePath:
    """One path to one destination: leave by `port` towards `da`; `via` names the switches that the EV chose, if any."""

    ev: int
    port: int
    plane: int
    via: str | None
    da: IPv6Address


@dataclass(frozen=True, slots=True)
class Destination:
    """Another host and every path to that host."""

    host: str
    index: int
    address: IPv6Address
    base_rtt_ns: int
    """The round trip to this host, shorter than the fabric's longest under one leaf. Default: the NIC's."""
    paths: Sequence[ProfilePath]


@dataclass(frozen=True, slots=True)
class SelfProbe:
    """A uSID list that visits `target` and comes back to the sending port. The first of a port visits its leaf."""

    target: str
    port: int
    da: IPv6Address
    behind: str = ""
    """The switch between the leaf and the target; empty where they are wired to each other."""


@dataclass(frozen=True, slots=True)
class NicProfile:
    """One host's NIC profile (docs/contracts.md)."""

    host: str
    index: int
    address: IPv6Address
    usid_block: IPv6Network
    mtu: int
    """IP MTU of every port, outer header included, bytes."""
    pmtu: int
    """Payload bytes of a full data packet."""
    udp_port: int
    base_rtt_ns: int
    jitter_ns: int
    """How late a process may be scheduled in this world (0 when the file does not say): timers allow for it."""
    dscp: Dscp
    retransmit_priority: int
    """Of the queue of retransmissions in switches; 0, or not in the file: that of data. Else they overtake data."""
    pfc_classes: int
    """Lossless priorities (IEEE 802.1Qbb), bit n for priority n; 0, or not in the file: no flow control."""
    trimming: bool
    """Whether switches trim a packet that meets a full queue (true when the file does not say): if they don't, a packet
    that vanishes may be a sign of congestion."""
    encapsulation: str
    ports: tuple[ProfilePort, ...]
    self_probes: Sequence[SelfProbe]
    destinations: Mapping[str, Destination]
    names: Mapping[bytes, str]
    """This host and its destinations by inner address. Destinations may be made when they are read, names are not."""

    def destination(self, host: str) -> Destination | None:
        """A host and the paths there; None: there are none. Paths to this host itself turn back at its leaves, and have
        EVs of paths to another."""
        if host != self.host:
            return self.destinations.get(host)
        other = next(iter(self.destinations.values()), None)
        evs = {} if other is None else {path.port: path for path in reversed(other.paths)}
        leaves = {probe.port: probe for probe in reversed(self.self_probes) if not probe.behind and probe.port in evs}
        paths = [replace(evs[port], via=probe.target, da=probe.da) for port, probe in sorted(leaves.items())]
        return Destination(host, self.index, self.address, self.base_rtt_ns, paths) if paths else None

    def reachable(self) -> dict[str, str]:
        """The addresses of all hosts to which there are paths, by name."""
        rows = [*self.destinations.values(), self.destination(self.host)]
        return {row.host: str(row.address) for row in rows if row is not None}

    def port(self, number: int) -> ProfilePort:
        """The port of that number, from 1. Raises StopIteration for one that does not exist."""
        return next(port for port in self.ports if port.port == number)


def load(path: str | Path) -> NicProfile:
    """Read and check a profile. Raises `ProfileError` for a file that is not there, not JSON, or breaks a rule."""
    data = read_json(Path(path), ProfileError)
    try:
        return parse(data)
    except ProfileError as error:
        raise ProfileError(f"{path}: {error}") from error


def parse(data: Any) -> NicProfile:
    """Check a decoded profile and give it types. Raises `ProfileError`."""
    top = Fields("profile", data, ProfileError)
    version = top.integer("version", 0)
    if version != VERSION:
        raise ProfileError(f"profile.version is {version}; this endpoint reads version {VERSION}")
    encapsulation = top.choice("encapsulation", ENCAPSULATIONS)
    ports = tuple(_port(fields) for fields in top.rows("ports"))
    if not ports:
        raise ProfileError("profile.ports is empty; a NIC has at least one port")
    numbers = [port.port for port in ports]
    for name, values in (("port", numbers), ("interface", [port.interface for port in ports])):
        if len(set(values)) != len(values):
            raise ProfileError(f"profile.ports: two ports have the same {name}: {values}")
    mtu, pmtu = top.integer("mtu", 1280, 65535), top.integer("pmtu", 256, 65535)
    header_bytes = HEADER_BYTES_MAX[encapsulation]
    if pmtu + header_bytes > mtu:
        raise ProfileError(
            f"profile.mtu is {mtu}, but pmtu {pmtu} + {header_bytes} bytes of headers and ICRC = {pmtu + header_bytes}"
        )
    host, address, base_rtt_ns = (
        top.string("host"),
        top.converted("address", IPv6Address),
        top.integer("base_rtt_ns", 1),
    )
    destinations = {
        name: _destination(name, Fields(f"profile.destinations.{name}", value, ProfileError), numbers, base_rtt_ns)
        for name, value in top.fields("destinations").values.items()
    }
    return NicProfile(
        host=host,
        index=top.integer("index", 0),
        address=address,
        usid_block=top.converted("usid_block", IPv6Network),
        mtu=mtu,
        pmtu=pmtu,
        udp_port=top.integer("udp_port", 1, 65535),
        base_rtt_ns=base_rtt_ns,
        jitter_ns=top.integer("jitter_ns", 0, default=0),
        dscp=_dscp(top.fields("dscp")),
        retransmit_priority=top.integer("retransmit_priority", 0, 7, default=0),
        pfc_classes=top.integer("pfc_classes", 0, 255, default=0),
        trimming=top.boolean("trimming", default=True),
        encapsulation=encapsulation,
        ports=ports,
        self_probes=tuple(_self_probe(fields, numbers) for fields in top.rows("self_probes")),
        destinations=destinations,
        names={**{row.address.packed: name for name, row in destinations.items()}, address.packed: host},
    )


def _dscp(fields: Fields) -> Dscp:
    return Dscp(**{name: fields.integer(name, 0, 63) for name in Dscp.__slots__})


def _port(fields: Fields) -> ProfilePort:
    return ProfilePort(
        port=fields.integer("port", 1, 32),
        plane=fields.integer("plane", 0),
        interface=fields.string("interface"),
        mac=fields.converted("mac", _mac),
        gateway_mac=fields.converted("gateway_mac", _mac),
        address=fields.converted("address", IPv6Address),
        usid_address=fields.converted("usid_address", IPv6Address),
        rate_bps=fields.integer("rate_bps", 0),
        delay_ns=fields.integer("delay_ns", 0),
        overhead_bytes=fields.integer("overhead_bytes", 0, default=0),
    )


def _destination(name: str, fields: Fields, ports: list[int], base_rtt_ns: int) -> Destination:
    paths = tuple(_path(row, ports) for row in fields.rows("paths"))
    if not paths:
        raise ProfileError(f"{fields.name}.paths is empty; a destination has at least one path")
    if len({path.ev for path in paths}) != len(paths):
        raise ProfileError(f"{fields.name}.paths: an EV names one path, but one occurs twice")
    return Destination(
        host=name,
        index=fields.integer("index", 0),
        address=fields.converted("address", IPv6Address),
        base_rtt_ns=fields.integer("base_rtt_ns", 1, default=base_rtt_ns),
        paths=paths,
    )


def _path(fields: Fields, ports: list[int]) -> ProfilePath:
    return ProfilePath(
        ev=fields.integer("ev", 0, 2**32 - 1),
        port=_known_port(fields, ports),
        plane=fields.integer("plane", 0),
        via=fields.string("via") if fields.get("via") is not None else None,
        da=fields.converted("da", IPv6Address),
    )


def _self_probe(fields: Fields, ports: list[int]) -> SelfProbe:
    return SelfProbe(
        fields.string("target"),
        _known_port(fields, ports),
        fields.converted("da", IPv6Address),
        fields.string("behind", default=""),
    )


def _known_port(fields: Fields, ports: list[int]) -> int:
    number = fields.integer("port", 1)
    if number not in ports:
        raise ProfileError(f"{fields.name}.port is {number}; the profile's ports are {ports}")
    return number


def _mac(text: str) -> bytes:
    octets = bytes.fromhex(text.replace(":", ""))
    if len(octets) != 6 or text.count(":") != 5:
        raise ValueError("a MAC address is six hexadecimal octets joined by ':'")
    return octets
