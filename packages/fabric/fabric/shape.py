"""From devices and cables to a shape: who is a leaf, a spine or a host, in which plane, under which number.

Nothing is decided silently: every rule that was used is in `Shape.rules`, and what fits no rule is a finding.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from common.terminal.printable import printable
from fabric.facts import Cable, Device, End, FabricError, Facts, Place, natural
from topo import Host, Node, Switch, SwitchRole, parse_node

ROLES = ("leaf", "spine", "core", "host")
_WORDS = {
    "leaf": ("leaf", "tor", "t0"),
    "spine": ("spine", "t1", "agg"),
    "core": ("core", "superspine", "t2"),
    "host": ("host", "server", "srv", "gpu", "nic", "client"),
}
_LETTERS = {"l": "leaf", "s": "spine", "c": "core"}
_LIKE_OWN = re.compile(r"h\d+|p\d+([lsc])\d+", re.ASCII)
"""Names like the lab's, with zeros in front perhaps: they tell a role."""
_PLANE = re.compile(r"(?:^|[^a-z])(?:p|plane|rail)[-_]?(\d{1,3})(?=[^0-9]|$)", re.IGNORECASE)
SUBNET_BITS = 120
"""A prefix at least as long joins two ports; a shorter one joins many hosts."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something that does not hold: where, what, and how to fix it."""

    device: str
    place: Place
    text: str
    fix: str
    stops: bool = False
    """Whether no plan can be made of it."""

    def __str__(self) -> str:
        return printable(f"{self.place}: {self.device}: {self.text}. Fix: {self.fix}")


@dataclass(slots=True)
class Shape:
    """The fabric as the lab counts it. `links` are the cables, lower end first, by the configuration's port names."""

    nodes: dict[str, Node] = field(default_factory=dict)
    links: list[Cable] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    planes: int = 0

    def find(self, device: str, place: Place, text: str, fix: str, *, stops: bool = False) -> None:
        """Note a finding."""
        self.findings.append(Finding(device, place, text, fix, stops))

    def names(self, role: str, plane: int | None = None) -> list[str]:
        """The devices of a role, in the order of their numbers; of hosts, all."""
        chosen = [
            (node.index if isinstance(node, Host) else (node.plane, node.index), name)
            for name, node in self.nodes.items()
            if role_of_node(node) == role and (plane is None or isinstance(node, Host) or node.plane == plane)
        ]
        return [name for _, name in sorted(chosen, key=lambda each: (str(type(each[0])), each))]


def own_node(name: str) -> Node | None:
    """The node that has this name in the lab; None: there is none."""
    try:
        return parse_node(name)
    except ValueError:
        return None


def role_of_node(node: Node) -> str:
    """One of host, leaf, spine and core."""
    return "host" if isinstance(node, Host) else node.role


def shape_of(facts: Facts, roles: Sequence[tuple[str, str]] = ()) -> Shape:
    """The shape that facts have; `roles` are patterns of names with the role that they have. FabricError."""
    shape = Shape()
    cables = _cables(facts, shape)
    cabled = {end.device for cable in cables for end in (cable.a, cable.b)}
    role_of = _roles(facts, shape, cabled, roles)
    plane_of = _planes(facts, shape, cables, role_of)
    if all(map(own_node, role_of)):
        shape.rules.append("numbers: the names are the lab's own")
        shape.nodes |= {name: parse_node(name) for name in sorted(role_of, key=natural)}
    else:
        _number(facts, shape, cables, role_of, plane_of)
    order = {"host": 0, "leaf": 1, "spine": 2, "core": 3}
    for cable in cables:
        a, b = cable.a, cable.b
        if a.device not in shape.nodes or b.device not in shape.nodes:
            continue
        if (order[role_of[a.device]], natural(a.device)) > (order[role_of[b.device]], natural(b.device)):
            a, b = b, a
        shape.links.append(Cable(a, b, cable.place, cable.form))
    shape.links.sort(key=lambda link: (_key(shape.nodes[link.a.device]), _key(shape.nodes[link.b.device])))
    _check_links(facts, shape)
    return shape


def _key(node: Node) -> tuple[int, int, int]:
    """Hosts, then switches by plane and index."""
    return (0, 0, node.index) if isinstance(node, Host) else (1 + ROLES.index(node.role), node.plane, node.index)


# --- cables -----------------------------------------------------------------------------------------------------


def _cables(facts: Facts, shape: Shape) -> list[Cable]:
    """The cables: those that files list, else what LLDP sees from both ends, else ports that share a subnet."""
    listed = [_resolved(facts, cable) for cable in facts.cables]
    if not listed and facts.neighbours:
        seen = {(each.a, each.b): each for each in (_resolved(facts, cable) for cable in facts.neighbours)}
        listed = [each for (a, b), each in seen.items() if (b, a) not in seen or a < b]
        shape.rules.append(f"cables: no file lists them, so the {len(listed)} that LLDP sees are taken")
    if not listed:
        listed = list(_by_subnet(facts))
        shape.rules.append(
            f"cables: no file lists them, so the {len(listed)} pairs of ports that share a subnet are taken"
        )
    by_end: dict[End, Cable] = {}
    kept: list[Cable] = []
    for cable in listed:
        if cable.a.device == cable.b.device:
            text = f"{cable.form} says {cable.a} – {cable.b}: a cable from a device to itself"
            shape.find(cable.a.device, cable.place, text, "correct the file, or leave the cable out", stops=True)
            continue
        known = next((by_end[end] for end in (cable.a, cable.b) if end in by_end), None)
        if known is None:
            kept.append(cable)
            by_end[cable.a] = by_end[cable.b] = cable
        elif known.ends != cable.ends:
            at = cable.a if cable.a in known.ends else cable.b
            shape.find(
                at.device,
                cable.place,
                f"{cable.form} says {cable.a} – {cable.b}, but {known.form} says {known.a} – {known.b} ({known.place})",
                "look at the port, and correct the file that is wrong",
                stops=True,
            )
    return kept


def _resolved(facts: Facts, cable: Cable) -> Cable:
    """The cable with the names of ports that the configurations use."""
    ends = []
    for end in (cable.a, cable.b):
        device = facts.device(end.device, cable.place)
        ends.append(End(end.device, device.port(end.port)))
    return replace(cable, a=ends[0], b=ends[1])


def _by_subnet(facts: Facts) -> Iterator[Cable]:
    ports: dict[str, list[tuple[End, Place]]] = defaultdict(list)
    for device in facts.devices.values():
        for interface in device.interfaces.values():
            for own, place in interface.addresses:
                if SUBNET_BITS <= own.network.prefixlen < 128:
                    ports[str(own.network)].append((End(device.name, interface.name), place))
    for subnet, ends in ports.items():
        if len(ends) == 2 and ends[0][0].device != ends[1][0].device:
            yield Cable(ends[0][0], ends[1][0], ends[0][1], "addresses")
        else:
            facts.remark(ends[0][1], f"{subnet} is on {len(ends)} ports: says nothing of a cable")


# --- roles and planes -------------------------------------------------------------------------------------------


def _roles(facts: Facts, shape: Shape, cabled: set[str], given: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The role of every cabled device: as given, as its file says, or by a word in its name. FabricError for none."""
    found: dict[str, str] = {}
    by: Counter[str] = Counter()
    unknown: list[Device] = []
    for name, device in facts.devices.items():
        if name not in cabled:
            facts.remark(device.place, f"{name} has no cable to another device; left out")
            continue
        role, why = next(((r, f"--role {p}={r}") for p, r in given if fnmatchcase(name, p)), ("", ""))
        if not role and device.role in ROLES:
            role, why = device.role, f"{device.role}, as its file says"
        if not role and (role := role_by_name(name)):
            why = f"{role}, by the word in the name"
        if role:
            found[name] = role
            by[why] += 1
        else:
            unknown.append(device)
    shape.rules += [f"roles: {count} devices are {why}" for why, count in sorted(by.items())]
    if unknown:
        named = ", ".join(f"{device.name} ({device.place})" for device in unknown[:5])
        raise FabricError(
            f"{unknown[0].place}: {len(unknown)} devices have no role: {named}. A name must hold leaf, spine, core or"
            f" host, or say it: --role '{unknown[0].name}=leaf' (a pattern such as 'l*=leaf' is possible)"
        )
    return found


def role_by_name(name: str) -> str:
    """The role that a name tells; "" for none, and where it tells two."""
    lower = name.lower()
    if match := _LIKE_OWN.fullmatch(lower):
        return _LETTERS[match[1]] if match[1] else "host"
    roles = {
        role
        for role, words in _WORDS.items()
        if any(re.search(rf"(?:^|[^a-z]){word}(?:s|es)?(?=[^a-z]|$)", lower) for word in words)
    }
    return roles.pop() if len(roles) == 1 else ""


def _planes(facts: Facts, shape: Shape, cables: list[Cable], role_of: Mapping[str, str]) -> dict[str, int]:
    """The plane of every switch: by the number in all names, else by which switches are joined without hosts."""
    switches = sorted((name for name, role in role_of.items() if role != "host"), key=natural)
    told = {name: int(match[1]) for name in switches if (match := _PLANE.search(name))}
    if switches and len(told) == len(switches):
        numbers = sorted(set(told.values()))
        shape.rules.append(f"planes: {len(numbers)}, by the number in the names of switches")
        plane_of = {name: numbers.index(told[name]) for name in switches}
    else:
        group = {name: name for name in switches}

        def top(name: str) -> str:
            while group[name] != name:
                name = group[name] = group[group[name]]
            return name

        for cable in cables:
            if cable.a.device in group and cable.b.device in group:
                a, b = sorted((top(cable.a.device), top(cable.b.device)), key=natural)
                group[b] = a
        tops = sorted({top(name) for name in switches}, key=natural)
        shape.rules.append(f"planes: {len(tops)}, by which switches are joined")
        plane_of = {name: tops.index(top(name)) for name in switches}
    shape.planes = len(set(plane_of.values()))
    for cable in cables:
        a, b = cable.a.device, cable.b.device
        if a in plane_of and b in plane_of and plane_of[a] != plane_of[b]:
            shape.find(
                a,
                cable.place,
                f"cable {cable.a} – {cable.b} joins planes {plane_of[a]} and {plane_of[b]}",
                "plug it into a switch of the same plane",
                stops=True,
            )
    return plane_of


# --- numbers ----------------------------------------------------------------------------------------------------


def _number(
    facts: Facts, shape: Shape, cables: list[Cable], role_of: Mapping[str, str], plane_of: Mapping[str, int]
) -> None:
    """Indices: leaves of plane 0, spines and cores by name; other leaves by their hosts; hosts by leaf and port."""
    above: tuple[SwitchRole, ...] = ("spine", "core")
    for role in above:
        for plane in range(shape.planes):
            names = [name for name in role_of if role_of[name] == role and plane_of[name] == plane]
            for index, name in enumerate(sorted(names, key=natural)):
                shape.nodes[name] = Switch(plane, role, index)
    under: dict[str, dict[int, tuple[str, Cable]]] = defaultdict(dict)
    for cable in cables:
        for near, far in ((cable.a, cable.b), (cable.b, cable.a)):
            if role_of.get(near.device) == "host" and role_of.get(far.device) == "leaf":
                plane = plane_of[far.device]
                if plane in under[near.device]:
                    first = under[near.device][plane]
                    shape.find(
                        near.device,
                        cable.place,
                        f"has two cables into plane {plane}, to {first[0]} and {far.device}",
                        "a NIC has one port per plane",
                        stops=True,
                    )
                under[near.device].setdefault(plane, (far.device, cable))
            elif role_of.get(near.device) == "host" and role_of.get(far.device) != "leaf":
                shape.find(
                    near.device,
                    cable.place,
                    f"is cabled to {far.device}, a {role_of.get(far.device)}",
                    "a host hangs on leaves",
                    stops=True,
                )
    ranks = _leaf_numbers(shape, role_of, plane_of, under)
    _hosts(facts, shape, role_of, under, ranks)


def _leaf_numbers(
    shape: Shape,
    role_of: Mapping[str, str],
    plane_of: Mapping[str, int],
    under: Mapping[str, Mapping[int, tuple[str, Cable]]],
) -> dict[str, int]:
    """Leaves of plane 0 by name; a leaf of another plane has the number of the plane-0 leaf with most of its hosts."""
    ranks: dict[str, int] = {}
    for plane in range(shape.planes):
        names = sorted((n for n in role_of if role_of[n] == "leaf" and plane_of[n] == plane), key=natural)
        usual = {name: rank for rank, name in enumerate(names)}
        votes: dict[str, Counter[int]] = defaultdict(Counter)
        for hosts in under.values():
            if plane in hosts and 0 in hosts and plane:
                votes[hosts[plane][0]][ranks[hosts[0][0]]] += 1
        voted = {name: votes[name].most_common(1)[0][0] if votes[name] else usual[name] for name in names}
        chosen = voted if len(set(voted.values())) == len(names) else usual
        ranks |= chosen
        for name, rank in chosen.items():
            shape.nodes[name] = Switch(plane, "leaf", rank)
    return ranks


def _hosts(
    facts: Facts,
    shape: Shape,
    role_of: Mapping[str, str],
    under: Mapping[str, Mapping[int, tuple[str, Cable]]],
    ranks: Mapping[str, int],
) -> None:
    places: list[tuple[int, list[tuple[int, str]], str]] = []
    for name in (name for name, role in role_of.items() if role == "host"):
        own = under.get(name, {})
        votes = Counter(ranks[leaf] for leaf, _ in own.values())
        if not votes:
            shape.find(name, facts.devices[name].place, "has no cable to a leaf", "cable it", stops=True)
            continue
        usual = votes.most_common(1)[0][0]
        for plane, (leaf, cable) in own.items():
            if ranks[leaf] != usual:
                right = next((n for n, node in shape.nodes.items() if node == Switch(plane, "leaf", usual)), "?")
                shape.find(
                    name,
                    cable.place,
                    f"hangs on {leaf} in plane {plane}, but on leaf {usual} in most planes",
                    f"plug it into {right}",
                    stops=True,
                )
        for plane in set(range(shape.planes)) - set(own):
            shape.find(
                name,
                facts.devices[name].place,
                f"has no cable into plane {plane}",
                f"cable it to leaf {usual} of plane {plane}",
                stops=True,
            )
        leaf, cable = own.get(0) or next(iter(own.values()))
        port = cable.a.port if cable.a.device == leaf else cable.b.port
        places.append((usual, natural(port), name))
    for index, (_, _, name) in enumerate(sorted(places)):
        shape.nodes[name] = Host(index)


def _check_links(facts: Facts, shape: Shape) -> None:
    """One cable between two devices; planes wired alike."""
    seen: dict[frozenset[str], Cable] = {}
    wired: dict[tuple[Switch, Switch], dict[int, Cable]] = defaultdict(dict)
    for link in shape.links:
        pair = frozenset((link.a.device, link.b.device))
        if pair in seen:
            shape.find(
                link.a.device,
                link.place,
                f"has a second cable to {link.b.device} ({seen[pair].place}): the lab has one between two nodes",
                "import one of them",
                stops=True,
            )
        seen[pair] = link
        a, b = shape.nodes[link.a.device], shape.nodes[link.b.device]
        if isinstance(a, Switch) and isinstance(b, Switch) and a.plane == b.plane:
            wired[replace(a, plane=0), replace(b, plane=0)][a.plane] = link
    switches = {node: name for name, node in shape.nodes.items() if isinstance(node, Switch)}
    for (lower, upper), links in wired.items():
        link = next(iter(links.values()))
        for plane in sorted(set(range(shape.planes)) - set(links)):
            own, other = (switches.get(replace(end, plane=plane)) for end in (lower, upper))
            if own and other and len(links) * 2 >= shape.planes:
                text = f"has no cable to {other}, as other planes have ({link.place})"
                shape.find(own, facts.devices[own].place, text, f"cable it to {other}")
            else:
                missing = "cable" if own and other else "switch"
                text = f"is cabled to {link.b.device}, but plane {plane} has no such {missing}"
                shape.find(link.a.device, link.place, text, "wire the planes alike")
    _check_sizes(facts, shape)


def _check_sizes(facts: Facts, shape: Shape) -> None:
    """Leaves without hosts; a host whose ports lead to planes in another order than those of most hosts."""
    with_hosts = {link.b.device for link in shape.links if isinstance(shape.nodes[link.a.device], Host)}
    for name in shape.names("leaf"):
        if name not in with_hosts:
            shape.find(name, facts.devices[name].place, "has no host", "leave it out, or cable a host", stops=True)
    ports: dict[str, list[tuple[list[tuple[int, str]], int]]] = defaultdict(list)
    for link in shape.links:
        far = shape.nodes[link.b.device]
        if isinstance(far, Switch):
            ports[link.a.device].append((natural(link.a.port), far.plane))
    orders: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name in shape.names("host"):
        orders[tuple(plane for _, plane in sorted(ports[name]))].append(name)
    usual = max(orders, key=lambda order: len(orders[order]), default=())
    for order, names in orders.items():
        for name in names if order != usual and sorted(order) == sorted(usual) else ():
            shape.find(
                name,
                facts.devices[name].place,
                f"has its ports in planes {list(order)}, in the order of their names; most hosts have {list(usual)}",
                "swap the cables",
            )
