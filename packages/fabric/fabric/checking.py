"""Compares configurations with the needs of the fabric. A finding names device, line and fix."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from common.terminal.counted import counted
from fabric.facts import Cable, Device, End, Facts, Place, Setting, Sid
from fabric.shape import Finding, Shape, shape_of
from fabric.walking import DECAP_SIDS, Tables, Walk
from topo import Host, Switch

MTU_NEED = 4228
"""Of a full MRC data packet with 4096 bytes of payload, outer header included."""


@dataclass(slots=True)
class Checked:
    """The findings of a fabric; how many EVs were walked, over how many links."""

    shape: Shape
    tables: Tables
    findings: list[Finding] = field(default_factory=list)
    walked: int = 0
    right: int = 0
    links: int = 0
    configured: int = 0
    style: str = ""

    def find(self, device: str, place: Place, text: str, fix: str) -> None:
        """Note a finding, once."""
        finding = Finding(device, place, text, fix)
        if finding not in self.findings:
            self.findings.append(finding)

    def summary(self) -> str:
        """The last line: how much was looked at."""
        found = counted(len(self.findings), "finding") if self.findings else "nothing found"
        walked = (
            f"{self.right} of {self.walked} EVs lead where they must, over {self.links} links, by {self.style}"
            if self.walked
            else "no EV was walked: the files hold no tables"
        )
        return f"{found}: {self.configured} configurations, {walked}"


def check(facts: Facts, roles: Sequence[tuple[str, str]] = ()) -> Checked:
    """Look at everything. FabricError where no shape can be told."""
    shape = shape_of(facts, roles)
    checked = Checked(shape, Tables(facts, shape.links, shape.names("host")), list(shape.findings))
    checked.configured = sum(facts.devices[name].configured for name in shape.nodes)
    _ports(facts, checked)
    _neighbours(facts, checked)
    _alike(facts, checked)
    _sids(facts, checked)
    _walks(facts, checked)
    checked.findings.sort()
    return checked


def majority(values: Mapping[str, str]) -> str | None:
    """The value that more than half of all have; None for none."""
    value, count = Counter(values.values()).most_common(1)[0] if values else ("", 0)
    return value if count * 2 > len(values) else None


# --- cables and ports -------------------------------------------------------------------------------------------


def _ports(facts: Facts, checked: Checked) -> None:
    """Both ends of every cable: networks, MTU, speed, state."""
    for link in checked.shape.links:
        near, far = (facts.devices[end.device].interfaces.get(end.port) for end in (link.a, link.b))
        for end, own in ((link.a, near), (link.b, far)):
            device = facts.devices[end.device]
            if own is None and device.configured and any(name.startswith("Ethernet") for name in device.interfaces):
                checked.find(
                    end.device,
                    link.place,
                    f"cable {link.a} – {link.b} is in port {end.port}, which its configuration does not have",
                    f"configure {end.port}, or correct the cable",
                )
            if own and (admin := own.settings.get("admin")) and admin.value == "down":
                checked.find(
                    end.device, admin.place, f"port {end.port} is down, and has a cable ({link.place})", "set it up"
                )
            if own and (mtu := own.settings.get("mtu")) and 0 < mtu.number < MTU_NEED:
                text = f"port {end.port} has MTU {mtu.value}; a full data packet has {MTU_NEED} bytes"
                checked.find(end.device, mtu.place, text, f"set MTU {MTU_NEED} or more, or send less than 4096 bytes")
        if near is None or far is None:
            continue
        for key, unit in (("mtu", "MTU"), ("speed", "speed")):
            one, other = near.settings.get(key), far.settings.get(key)
            if one and other and one.value != other.value:
                checked.find(
                    link.a.device,
                    one.place,
                    f"port {link.a.port} has {unit} {one.value}, its peer {link.b} {other.value} ({other.place})",
                    f"set the same {unit} at both ends",
                )
        _subnet(link, near.addresses, far.addresses, checked)


def _subnet(
    link: Cable, near: Sequence[tuple[object, Place]], far: Sequence[tuple[object, Place]], checked: Checked
) -> None:
    """Both ends in one network, with two addresses."""
    ours = [(own, place) for own, place in near if not own.ip.is_link_local]  # type: ignore[attr-defined]
    theirs = [(own, place) for own, place in far if not own.ip.is_link_local]  # type: ignore[attr-defined]
    if not ours or not theirs:
        return
    common = [(a, b) for a, b in product(ours, theirs) if a[0].network == b[0].network]  # type: ignore[attr-defined]
    if not common:
        checked.find(
            link.b.device,
            theirs[0][1],
            f"port {link.b.port} has {theirs[0][0]}, its peer {link.a} {ours[0][0]} ({ours[0][1]}): two networks",
            "give both ends of the cable addresses of one network",
        )
    for (one, place), (other, _) in common:
        if one.ip == other.ip:  # type: ignore[attr-defined]
            checked.find(
                link.a.device, place, f"{link.a} and {link.b} both have {one}", "give one of them another address"
            )


def _neighbours(facts: Facts, checked: Checked) -> None:
    """Compare the cables that LLDP sees with those of files."""
    tables = checked.tables
    for seen in facts.neighbours:
        near = (
            End(seen.a.device, facts.devices[seen.a.device].port(seen.a.port))
            if seen.a.device in facts.devices
            else seen.a
        )
        far = seen.b
        if far.device in facts.devices:
            far = End(far.device, facts.devices[far.device].port(far.port))
        known = tables.far.get(near)
        if near.device not in checked.shape.nodes or known == far:
            continue
        if known is None:
            text, fix = (
                f"LLDP sees {far} at {near.port}, where no file has a cable",
                "add the cable to the files, or unplug it",
            )
        else:
            text = f"LLDP sees {far} at {near.port}; the files say {known}"
            fix = f"plug {near} into {known}, or correct the files"
        checked.find(near.device, seen.place, text, fix)
    watching: dict[str, set[str]] = defaultdict(set)
    for seen in facts.neighbours:
        if seen.a.device in facts.devices:
            watching[seen.a.device].add(facts.devices[seen.a.device].port(seen.a.port))
    for near, far in tables.far.items():
        if near.device in watching and near.port not in watching[near.device] and far.device in watching:
            place = next(link.place for link in checked.shape.links if near in link.ends)
            text = f"the files have a cable {near} – {far}, and LLDP sees nothing at {near.port}"
            checked.find(near.device, place, text, "look at the cable and its optics")


# --- what must be alike -----------------------------------------------------------------------------------------


def _values(facts: Facts, names: Sequence[str]) -> dict[str, dict[str, Setting]]:
    """By setting, then by device: the values that must be alike."""
    values: dict[str, dict[str, Setting]] = defaultdict(dict)
    for name in names:
        device = facts.devices[name]
        for key, setting in device.settings.items():
            values[key][name] = setting
        for locator in device.locators.values():
            at = locator.place
            values["locator block-len"][name] = Setting(str(locator.block_bits), at)
            values["locator node-len"][name] = Setting(str(locator.node_bits), at)
            values["locator behavior"][name] = Setting("usid" if locator.usid else "none", at)
    return values


def _alike(facts: Facts, checked: Checked) -> None:
    """Trimming, ECN and locators of all switches; ECN profiles of all ports of a role."""
    names = [name for role in ("leaf", "spine", "core") for name in checked.shape.names(role)]
    names = [name for name in names if facts.devices[name].configured]
    for key, settings in sorted(_values(facts, names).items()):
        _odd(facts, checked, key, settings, names)
    for role in ("leaf", "spine", "core"):
        own = [name for name in checked.shape.names(role) if facts.devices[name].configured]
        ports: dict[str, dict[str, Setting]] = defaultdict(dict)
        cabled = sorted(end for end in checked.tables.far if end.device in own)
        for end in cabled:
            interface = facts.devices[end.device].interfaces.get(end.port)
            for key, setting in (interface.settings if interface else {}).items():
                if key.startswith("queue "):
                    ports[key][str(end)] = setting
        for key, settings in ports.items():
            _odd(facts, checked, key, settings, [str(end) for end in cabled])


def _odd(facts: Facts, checked: Checked, key: str, settings: Mapping[str, Setting], names: Sequence[str]) -> None:
    """Find values that differ from those of most, and missing ones. `names` are devices, or ports of devices."""
    usual = majority({name: setting.value for name, setting in settings.items()})
    for name in names:
        own, _, port = name.partition(":")
        what, setting = f"{port}: {key}" if port else key, settings.get(name)
        if setting is None and usual is not None and len(settings) * 2 > len(names):
            interface = facts.devices[own].interfaces.get(port)
            place = interface.place if interface else facts.devices[own].place
            checked.find(own, place, f"{what} is not set; most have {usual}", f"set {key} {usual}")
        elif setting is not None and usual is None:
            text = f"{what} is {setting.value}, and no value is that of most"
            checked.find(own, setting.place, text, "set one value everywhere")
        elif setting is not None and setting.value != usual:
            checked.find(own, setting.place, f"{what} is {setting.value}; most have {usual}", f"set {key} {usual}")


# --- SIDs -------------------------------------------------------------------------------------------------------


def _sids(facts: Facts, checked: Checked) -> None:
    """Locators and uNs: one per switch, in the plane's block, no two alike; uAs by the pattern of most."""
    for plane in range(checked.shape.planes):
        names = [name for role in ("leaf", "spine", "core") for name in checked.shape.names(role, plane)]
        names = [name for name in names if facts.devices[name].configured]
        located = [name for name in names if facts.devices[name].locators]
        blocks = {name: str(_block(checked.tables, name)) for name in located}
        usual = majority(blocks)
        taken: dict[str, str] = {}
        for name in names:
            device, sid = facts.devices[name], checked.tables.node_sid(name)
            locator = checked.tables.locator(name)
            if locator is None:
                if len(located) * 2 > len(names):
                    checked.find(name, device.place, "has no locator; most switches of its plane have one", "add one")
                continue
            if usual and blocks[name] != usual:
                text = f"locator {locator.prefix} is not in the block of plane {plane}, {usual}"
                checked.find(name, locator.place, text, f"take a locator of {usual}")
            if sid is None or not sid.prefix.subnet_of(locator.prefix):
                place = sid.place if sid else locator.place
                text = f"its uN is {sid.prefix}, its locator {locator.prefix}" if sid else "has no uN"
                checked.find(name, place, text, f"sid {locator.prefix} locator {locator.name} behavior uN")
            own = str(sid.prefix if sid else locator.prefix)
            if own in taken:
                place = sid.place if sid else locator.place
                checked.find(name, place, f"has the uSID {own}, as {taken[own]} has", "give each switch its own")
            taken.setdefault(own, name)
    _adjacencies(facts, checked)


def _block(tables: Tables, name: str) -> object:
    locator = tables.locator(name)
    assert locator is not None
    return locator.prefix.supernet(new_prefix=min(locator.block_bits, locator.prefix.prefixlen))


def _adjacencies(facts: Facts, checked: Checked) -> None:
    """uAs: the same function bits for the same port and role everywhere; next hops that are the peer's."""
    tables, functions = checked.tables, _functions(facts, checked)
    for (role, port), values in functions.items():
        usual = majority({name: f"{bits:x}" for name, (bits, _) in values.items()})
        for name, (bits, place) in values.items():
            if usual and f"{bits:x}" != usual:
                text = f"the uA of {port} has the function {bits:x}; most {role} switches have {usual}"
                checked.find(name, place, text, f"use {usual}")
    for name in checked.shape.nodes:
        device = facts.devices[name]
        for sid in device.sids if device.configured else ():
            port = device.port(sid.interface) if sid.interface else ""
            far = tables.far.get(End(name, port)) if port else None
            if port and port not in device.interfaces and far is None:
                checked.find(
                    name, sid.place, f"SID {sid.prefix} leaves by {port}, which the device does not have", "correct it"
                )
            elif far is not None and sid.nexthop is not None and not sid.nexthop.is_link_local:
                peer = facts.devices[far.device].interfaces.get(far.port)
                theirs = [own.ip for own, _ in peer.addresses] if peer else []
                if theirs and sid.nexthop not in theirs:
                    told = ", ".join(map(str, theirs))
                    text = f"SID {sid.prefix} has the next hop {sid.nexthop}; its peer {far} has {told}"
                    checked.find(name, sid.place, text, f"nexthop {theirs[0]}")


def _functions(facts: Facts, checked: Checked) -> dict[tuple[str, str], dict[str, tuple[int, Place]]]:
    """By role and port: the bits behind the block of every switch's uA."""
    functions: dict[tuple[str, str], dict[str, tuple[int, Place]]] = defaultdict(dict)
    for name, node in checked.shape.nodes.items():
        device = facts.devices[name]
        if not isinstance(node, Switch):
            continue
        for sid in device.sids:
            if sid.behavior == "uA" and sid.interface and not _nested(checked.tables, name, sid):
                functions[node.role, device.port(sid.interface)][name] = (checked.tables.bits(name, sid)[0], sid.place)
    return functions


def _nested(tables: Tables, name: str, sid: Sid) -> bool:
    """Whether a uA holds the uN as well, so that its bits are different at every switch."""
    locator = tables.locator(name)
    return locator is not None and sid.prefix.prefixlen > locator.prefix.prefixlen


# --- EVs --------------------------------------------------------------------------------------------------------


def _ways(checked: Checked) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Every pair of hosts with every shortest way between their leaves, plane by plane."""
    shape = checked.shape
    leaf_of: dict[tuple[str, int], str] = {}
    above: dict[str, list[str]] = defaultdict(list)
    for link in shape.links:
        a, b = shape.nodes[link.a.device], shape.nodes[link.b.device]
        assert isinstance(b, Switch)
        if isinstance(a, Host):
            leaf_of[link.a.device, b.plane] = link.b.device
        else:
            above[link.a.device].append(link.b.device)
            above[link.b.device].append(link.a.device)
    leaves = sorted(set(leaf_of.values()))
    between = {(a, b): list(_shortest(above, a, b)) for a, b in product(leaves, leaves) if _plane(shape, a, b)}
    hosts = shape.names("host")
    for plane, source, host in product(range(shape.planes), hosts, hosts):
        here, there = leaf_of.get((source, plane)), leaf_of.get((host, plane))
        if source != host and here and there:
            for way in between.get((here, there), ()):
                yield source, host, way


def _plane(shape: Shape, a: str, b: str) -> bool:
    here, there = shape.nodes[a], shape.nodes[b]
    return isinstance(here, Switch) and isinstance(there, Switch) and here.plane == there.plane


def _shortest(above: Mapping[str, Sequence[str]], source: str, goal: str) -> Iterator[tuple[str, ...]]:
    """All shortest ways between two switches."""
    front: list[tuple[str, ...]] = [(source,)]
    seen = {source}
    while front and not any(way[-1] == goal for way in front):
        longer = [(*way, other) for way in front for other in above[way[-1]] if other not in seen]
        seen |= {way[-1] for way in longer}
        front = longer
    yield from (way for way in front if way[-1] == goal)


def _walks(facts: Facts, checked: Checked) -> None:
    """Walk every EV of every pair, and tell each wrong table once, with the number of EVs that it costs."""
    if not any(device.sids for device in facts.devices.values() if device.configured):
        return
    tables = checked.tables
    used: set[End] = set()
    between = [
        (link.a.device, link.b.device)
        for link in checked.shape.links
        if link.a.device not in checked.shape.names("host")
    ]
    with_adjacency = sum(tables.adjacency_sid(a, b) is not None for a, b in between)
    adjacencies = with_adjacency * 2 > len(between)
    checked.style = "uA" if adjacencies else "uN"
    wrong: dict[tuple[str, Place, str, str], int] = Counter()
    walked: dict[tuple[tuple[str, ...], str], tuple[Walk | None, str]] = {}
    for _, host, way in _ways(checked):
        checked.walked += 1
        if (way, host) not in walked:
            destination = tables.destination(way, host, adjacencies=adjacencies)
            walk = None if isinstance(destination, str) else tables.walk(way[0], destination, host)
            walked[way, host] = walk, destination if isinstance(destination, str) else ""
        walk, why = walked[way, host]
        expected = [*way, host]
        if walk is None:
            wrong[_unwritten(facts, checked, way, host, why)] += 1
            continue
        passed = [end.device for end in walk.links] + [walk.last]
        if walk.delivered and passed == expected:
            checked.right += 1
            used.update(walk.links)
        else:
            wrong[_astray(facts, checked, walk, passed, expected)] += 1
    checked.links = len({frozenset((near, tables.far[near])) for near in used})
    for (device, place, text, fix), count in wrong.items():
        checked.find(device, place, f"{text} ({count} EVs)", fix)


def _unwritten(facts: Facts, checked: Checked, way: Sequence[str], host: str, why: str) -> tuple[str, Place, str, str]:
    """A list that cannot be written: which switch lacks what, and the line that would add it."""
    name = why.partition(" ")[0]
    device = facts.devices.get(name) or facts.devices[way[0]]
    place = device.sids[0].place if device.sids else device.place
    following = dict(zip(way, (*way[1:], host), strict=True)).get(device.name, "")
    fix = f"add a SID for {following}" if "uN" not in why else "add the uN of its locator"
    if "no uA" in why:
        ports = checked.tables.ports_to(device.name, following)
        node = checked.shape.nodes[device.name]
        known = _functions(facts, checked).get((node.role, ports[0]), {}) if isinstance(node, Switch) and ports else {}
        usual = majority({each: f"{bits:x}" for each, (bits, _) in known.items()})
        if usual and (locator := checked.tables.locator(device.name)):
            block = str(_block(checked.tables, device.name)).partition("/")[0].rstrip(":")
            fix = f"sid {block}:{usual}::/48 locator {locator.name} behavior uA interface {ports[0]} nexthop …"
    return device.name, place, why.partition(" ")[2] if device.name == name else why, fix


def _astray(
    facts: Facts, checked: Checked, walk: Walk, passed: Sequence[str], expected: Sequence[str]
) -> tuple[str, Place, str, str]:
    """A packet that went wrong: the device that sent it wrong, by which line."""
    right = next((i for i, (a, b) in enumerate(zip(passed, expected, strict=False)) if a != b), len(passed))
    name = expected[max(0, min(right, len(expected)) - 1)] if right < len(passed) else walk.last
    device = facts.devices[name]
    if right < len(passed) and right > 0:
        end = walk.links[right - 1]
        place = _line_of(device, end.port)
        return (
            name,
            place,
            f"sends to {passed[right]} by {end.port} what is for {expected[right]}",
            "correct its SID or route",
        )
    place = walk.entry.place if walk.entry else (device.sids[0].place if device.sids else device.place)
    following = expected[right] if right < len(expected) else ""
    what = walk.why or "ends here"
    told = f"forwards nothing to {following}: {what}" if following else what
    fix = "correct this line" if walk.entry else f"add a SID or a route towards {following or 'the host'}"
    return name, place, told, fix


def _line_of(device: Device, port: str) -> Place:
    """The line of a device's table that names a port."""
    for sid in device.sids:
        if sid.interface and device.port(sid.interface) == port and sid.behavior not in DECAP_SIDS:
            return sid.place
    for route in device.routes:
        if route.interface and device.port(route.interface) == port:
            return route.place
    return device.sids[0].place if device.sids else device.place
