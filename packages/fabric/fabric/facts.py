"""The facts of a fabric: devices, interfaces, SIDs, routes, cables, each with file and line."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv6Address, IPv6Interface, IPv6Network, ip_interface

from common.terminal.printable import printable

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@+-]{0,63}")
"""Of devices and interfaces."""
NUMBER = re.compile(r"[0-9]{1,12}")


class FabricError(ValueError):
    """Files that make no fabric. The message begins with file and line where one is at fault."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a fact is written."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, order=True)
class Remark:
    """Something in a file that was not used, and why."""

    place: Place
    text: str

    def __str__(self) -> str:
        return printable(f"{self.place}: {self.text}")


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and its place."""

    value: str
    place: Place

    @property
    def number(self) -> int:
        """The value as a whole number; 0 for none, or one of more than 12 digits."""
        return int(self.value) if NUMBER.fullmatch(self.value) else 0


@dataclass(slots=True)
class Interface:
    """A port or a loopback of a device. `settings` has mtu, speed, admin and the like, as the file spells it."""

    name: str
    place: Place
    addresses: list[tuple[IPv6Interface, Place]] = field(default_factory=list)
    vrf: str = ""
    settings: dict[str, Setting] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Locator:
    """A locator: its prefix, the bits of block and node, and whether it is one of uSIDs."""

    name: str
    prefix: IPv6Network
    block_bits: int
    node_bits: int
    usid: bool
    place: Place


@dataclass(frozen=True, slots=True)
class Sid:
    """A local SID. `behavior` is as in RFC 9800's drafts: uN, uA, uDT6, uDX6."""

    prefix: IPv6Network
    behavior: str
    place: Place
    locator: str = ""
    interface: str = ""
    nexthop: IPv6Address | None = None
    vrf: str = ""


@dataclass(frozen=True, slots=True)
class Route:
    """A static route with one next hop; several of one prefix are equal-cost. A blackhole has neither next hop."""

    prefix: IPv6Network
    place: Place
    nexthop: IPv6Address | None = None
    interface: str = ""
    vrf: str = ""


@dataclass(frozen=True, slots=True, order=True)
class End:
    """A port at a device."""

    device: str
    port: str

    def __str__(self) -> str:
        return f"{self.device}:{self.port}"


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable, or what a neighbour table says of one. `form` is the form of the file."""

    a: End
    b: End
    place: Place
    form: str

    @property
    def ends(self) -> frozenset[End]:
        return frozenset((self.a, self.b))


@dataclass(slots=True)
class Device:
    """A switch or a host: everything that any file says of it."""

    name: str
    place: Place
    role: str = ""
    """leaf, spine, core or host where a file says so."""
    configured: bool = False
    """Whether a switch configuration was read."""
    interfaces: dict[str, Interface] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    locators: dict[str, Locator] = field(default_factory=dict)
    sids: list[Sid] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)
    vrfs: set[str] = field(default_factory=set)
    settings: dict[str, Setting] = field(default_factory=dict)

    def interface(self, name: str, place: Place) -> Interface:
        """The interface of this name, made when there is none."""
        checked_name(name, place, "interface")
        return self.interfaces.setdefault(name, Interface(name, place))

    def port(self, name: str) -> str:
        """The configuration's name of a port that a cable names: ethN of a SONiC container is its N-th port."""
        if name in self.interfaces:
            return name
        if name in self.aliases:
            return self.aliases[name]
        if not (match := re.fullmatch(r"eth([1-9][0-9]{0,3})", name)):
            return name
        front = sorted((each for each in self.interfaces if re.fullmatch(r"Ethernet[0-9]+", each)), key=natural)
        return front[int(match[1]) - 1] if int(match[1]) <= len(front) else name


@dataclass(slots=True)
class Facts:
    """Everything that was read."""

    devices: dict[str, Device] = field(default_factory=dict)
    cables: list[Cable] = field(default_factory=list)
    neighbours: list[Cable] = field(default_factory=list)
    """Cables as devices see them by LLDP. `a` is the device that sees."""
    remarks: list[Remark] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """The form of every file that was read."""

    def device(self, name: str, place: Place) -> Device:
        """The device of this name, made when there is none."""
        checked_name(name, place, "device")
        return self.devices.setdefault(name, Device(name, place))

    def remark(self, place: Place, text: str) -> None:
        """Note what is not used."""
        self.remarks.append(Remark(place, text))

    def cabled(self) -> Iterator[tuple[Cable, Cable]]:
        """Every cable in both directions."""
        for cable in self.cables:
            yield cable, Cable(cable.b, cable.a, cable.place, cable.form)


def checked_name(name: str, place: Place, what: str) -> str:
    """A name that may become part of a plan and of messages. FabricError for another."""
    if not NAME.fullmatch(name):
        raise FabricError(f"{place}: a {what}'s name must match {NAME.pattern} (got {name[:80]!r})")
    return name


def natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts Ethernet8 before Ethernet12, and p0-leaf2 before p0-leaf10."""
    return [(int(part), "") if part[0] in "0123456789" else (-1, part) for part in re.findall(r"[0-9]+|[^0-9]+", name)]


def address(text: str, place: Place) -> IPv6Address:
    """An IPv6 address. FabricError for another text."""
    try:
        return IPv6Address(text)
    except ValueError as error:
        raise FabricError(f"{place}: {error}") from None


def network(text: str, place: Place) -> IPv6Network:
    """An IPv6 prefix, host bits dropped. FabricError for another text."""
    try:
        return IPv6Network(text, strict=False)
    except ValueError as error:
        raise FabricError(f"{place}: {error}") from None


def interface_address(text: str, place: Place) -> IPv6Interface | None:
    """An IPv6 address with its prefix length; None for one of IPv4. FabricError for another text."""
    try:
        value = ip_interface(text)
    except ValueError as error:
        raise FabricError(f"{place}: {error}") from None
    return value if isinstance(value, IPv6Interface) else None


def number(text: str | None, place: Place, low: int, high: int) -> int:
    """A whole number. FabricError for another text, or one out of its range."""
    if text is None or not NUMBER.fullmatch(text) or not low <= int(text) <= high:
        raise FabricError(f"{place}: must be a whole number between {low} and {high} (got {str(text)[:40]!r})")
    return int(text)
