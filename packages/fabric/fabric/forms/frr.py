"""FRR's configuration: interfaces, locators, static SIDs and routes. Routing protocols are listed, not followed."""

import re
from dataclasses import dataclass, field
from ipaddress import IPv6Address

from fabric.facts import (
    Device,
    FabricError,
    Facts,
    Interface,
    Locator,
    Place,
    Route,
    Setting,
    Sid,
    address,
    interface_address,
    network,
    number,
)

IGNORED = re.compile(
    r"(?:!|exit\b|end$|frr (?:version|defaults)|(?:no )?service |log |password |enable |ip(?:v6)? (?:nht|forwarding)"
    r"|line vty|description |no shutdown$|formats$|segment-routing$|srv6$|static-sids$|encapsulation$|locators$"
    r"|debug |domainname |hostname |ip address |ip route |no ip|no ipv6|agentx|username |banner |source-address )"
)
"""Lines that say nothing about the tables of IPv6 and SIDs."""
PROTOCOL = re.compile(r"router \S+|route-map |ip(?:v6)? prefix-list|access-list|bgp |mpls|pbr-map|policy")
HINTS = re.compile(
    r"(?m)^(?:frr version|frr defaults|hostname \S+$|segment-routing$|ipv6 route |interface \S+$|router bgp)"
)
USUAL_BITS = {"usid-f3216": (32, 16), "uncompressed-f4024": (40, 24)}


def is_frr(text: str) -> bool:
    """Whether a text looks like FRR's configuration."""
    return len(HINTS.findall(text)) >= 2


def hostname(text: str) -> str:
    """The host name that a configuration gives itself."""
    match = re.search(r"(?m)^hostname (\S+)$", text)
    return match[1] if match else ""


@dataclass(slots=True)
class _Reading:
    """Where in the file the reader is."""

    facts: Facts
    device: Device
    interface: Interface | None = None
    vrf: str = ""
    locator: str = ""
    protocol: bool = False
    bits: dict[str, tuple[int, int]] = field(default_factory=dict)
    usid: set[str] = field(default_factory=set)
    prefixes: dict[str, tuple[str, Place]] = field(default_factory=dict)


def frr(text: str, file: str, name: str, facts: Facts) -> None:
    """Read a configuration as that of the device `name`."""
    device = facts.device(name, Place(file, 1))
    device.configured = True
    reading = _Reading(facts, device)
    for line, raw in enumerate(text.splitlines(), 1):
        place = Place(file, line)
        try:
            _line(reading, raw, place)
        except FabricError:
            raise
        except ValueError as error:
            raise FabricError(f"{place}: {error}") from None
    for locator, (prefix, place) in reading.prefixes.items():
        block, node = reading.bits.get(locator, (40, 24))  # as FRR takes it without the words
        device.locators[locator] = Locator(locator, network(prefix, place), block, node, locator in reading.usid, place)


def _line(reading: _Reading, raw: str, place: Place) -> None:
    text = raw.strip()
    if not raw.startswith((" ", "\t")):
        reading.interface, reading.vrf, reading.protocol = None, "", bool(PROTOCOL.match(text))
        if reading.protocol:
            reading.facts.remark(place, f"{text[:60]!r}: only static tables are read; not followed")
            return
    if reading.protocol or not text:
        return
    if match := re.fullmatch(r"interface (\S+)(?: vrf (\S+))?", text):
        reading.interface = reading.device.interface(match[1], place)
        reading.interface.vrf = match[2] or reading.interface.vrf
    elif match := re.fullmatch(r"vrf (\S+)", text):
        reading.vrf = match[1]
        reading.device.vrfs.add(match[1])
    elif match := re.fullmatch(r"ipv6 address (\S+)", text):
        _address(reading, match[1], place)
    elif text == "shutdown" and reading.interface:
        reading.interface.settings["admin"] = Setting("down", place)
    elif text.startswith("ipv6 route "):
        _route(reading, text.split()[2:], place)
    elif text.startswith("sid "):
        _sid(reading, text.split()[1:], place)
    elif text == "exit":
        reading.locator = ""
    elif not _locator(reading, text, place) and not IGNORED.match(text):
        reading.facts.remark(place, f"{reading.device.name}: line not understood: {text[:60]!r}")


def _address(reading: _Reading, text: str, place: Place) -> None:
    if reading.interface is None:
        raise FabricError(f"{place}: `ipv6 address` must be below an interface")
    own = interface_address(text, place)
    if own is not None:
        reading.interface.addresses.append((own, place))


def _locator(reading: _Reading, text: str, place: Place) -> bool:
    """Lines about locators; whether this is one."""
    if match := re.fullmatch(r"locator (\S+)", text):
        reading.locator = match[1]
    elif match := re.fullmatch(r"prefix (\S+)((?: (?:block-len|node-len|func-bits) \d+)*)", text):
        reading.prefixes[reading.locator] = match[1], place
        words = dict(re.findall(r"(\S+) (\d+)", match[2]))
        if words:
            reading.bits[reading.locator] = (
                number(words.get("block-len", "40"), place, 8, 96),
                number(words.get("node-len", "24"), place, 0, 64),
            )
    elif text == "behavior usid":
        reading.usid.add(reading.locator)
    elif match := re.fullmatch(r"format (\S+)", text):
        if match[1] not in USUAL_BITS:
            return False
        if reading.locator:
            reading.bits.setdefault(reading.locator, USUAL_BITS[match[1]])
    else:
        return False
    return True


def _route(reading: _Reading, words: list[str], place: Place) -> None:
    """`PREFIX NEXTHOP [INTERFACE]`, `PREFIX INTERFACE` or `PREFIX blackhole`, perhaps with a VRF."""
    vrf, rest = reading.vrf, []
    prefix = network(words[0] if words else "", place)
    words = words[1:]
    while words:
        word = words.pop(0)
        if word in ("vrf", "tag", "nexthop-vrf", "table", "color", "label", "segments"):
            value = words.pop(0) if words else ""
            if word == "vrf":
                vrf = value
            elif word != "tag":
                reading.facts.remark(place, f"{reading.device.name}: `{word}` of a route is not read; route not used")
                return
        elif not word.isdigit() and word != "onlink":
            rest.append(word)
    if not rest:
        raise FabricError(f"{place}: a route must have a next hop, an interface or blackhole")
    if rest[0] in ("blackhole", "reject", "Null0", "null0"):
        reading.device.routes.append(Route(prefix, place, vrf=vrf))
        return
    nexthop: IPv6Address | None = address(rest.pop(0), place) if ":" in rest[0] else None
    reading.device.routes.append(Route(prefix, place, nexthop, rest[0] if rest else "", vrf))


def _sid(reading: _Reading, words: list[str], place: Place) -> None:
    """`PREFIX locator NAME behavior BEHAVIOR [interface NAME] [nexthop ADDRESS] [vrf NAME]`."""
    prefix = network(words[0] if words else "", place)
    pairs = dict(zip(words[1::2], words[2::2], strict=False))
    unknown = set(pairs) - {"locator", "behavior", "interface", "nexthop", "vrf"}
    if unknown or len(words) % 2 == 0 or "behavior" not in pairs:
        raise FabricError(f"{place}: a SID must be PREFIX locator NAME behavior BEHAVIOR …, with other words not read")
    nexthop = address(pairs["nexthop"], place) if "nexthop" in pairs else None
    reading.device.sids.append(
        Sid(
            prefix,
            pairs["behavior"],
            place,
            pairs.get("locator", ""),
            pairs.get("interface", ""),
            nexthop,
            pairs.get("vrf", ""),
        )
    )
