"""containerlab's topologies, which netlab writes as well (`clab.yml`), and netlab's transformed topology."""

import re
from typing import Any

from fabric.facts import Cable, End, Facts, Place, Route, Sid, checked_name, interface_address, network
from fabric.lines import Row, Table, rows

NODE_LINKS = ("veth",)
"""Types of links between two nodes; the others lead out of the lab."""
_ADDRESS = re.compile(r"ip (?:-6 )?addr(?:ess)? (?:add|replace) (\S+) dev (\S+)( nodad)?")
_ROUTE = re.compile(r"ip -6 route (?:add|replace) (\S+)(?: via \S+)? dev (\S+)(?: encap seg6local action (\S+).*)?")


def is_containerlab(value: Any) -> bool:
    """Whether a YAML document is a topology of containerlab."""
    return isinstance(value, Table) and isinstance(value.table("topology").get("nodes"), Table)


def is_netlab(value: Any) -> bool:
    """Whether a YAML document is a topology of netlab with links of two interfaces."""
    return isinstance(value, Table) and isinstance(value.get("nodes"), Table) and isinstance(value.get("links"), Row)


def containerlab(value: Table, file: str, facts: Facts) -> None:
    """Read a containerlab topology."""
    topology = value.table("topology")
    nodes = topology.table("nodes")
    for name, node in nodes.items():
        place = Place(file, nodes.lines[name])
        device = facts.device(name, place)
        if not isinstance(node, Table):
            continue
        group = topology.table("groups").table(node.text("group"))
        labels = {**group.table("labels"), **node.table("labels")}
        role = labels.get("role")
        device.role = role if role and isinstance(role, str) else device.role
        for command, line in rows(node.get("exec")):
            _command(facts, name, command if isinstance(command, str) else "", Place(file, line))
    for link, line in rows(topology.get("links")):
        _link(link, Place(file, line), nodes, facts)


def _command(facts: Facts, name: str, command: str, place: Place) -> None:
    """What `exec` says of a host's addresses and SIDs."""
    device = facts.devices[name]
    if match := _ADDRESS.match(command):
        own = interface_address(match[1], place)
        if own is not None:
            device.interface(match[2], place).addresses.append((own, place))
    elif match := _ROUTE.match(command):
        prefix = network(match[1], place)
        if match[3]:
            device.sids.append(Sid(prefix, match[3], place, interface=match[2]))
        else:
            device.routes.append(Route(prefix, place, interface=match[2]))
    elif not command.startswith("sysctl "):
        facts.remark(place, f"{name}: command not understood: {command[:60]!r}")


def _link(link: Any, place: Place, nodes: Table, facts: Facts) -> None:
    if not isinstance(link, Table):
        facts.remark(place, "a link must be a mapping; not used")
        return
    kind = link.text("type", "veth")
    ends = [_end(each, place) for each, _ in rows(link.get("endpoints"))]
    if kind not in NODE_LINKS or len(ends) != 2 or None in ends:
        facts.remark(place, f"link of type {kind!r} with {len(ends)} endpoints: no cable between two nodes; not used")
        return
    a, b = (end for end in ends if end is not None)
    for end in (a, b):
        if end.device not in nodes:
            facts.remark(place, f"{end}: the topology has no such node; not used")
            return
    facts.cables.append(Cable(a, b, place, "containerlab"))


def _end(value: Any, place: Place) -> End | None:
    """`"node:port"`, or the extended form."""
    if isinstance(value, Table):
        device, port = value.text("node"), value.text("interface")
    else:
        device, _, port = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not device or not port:
        return None
    return End(checked_name(device, place, "device"), checked_name(port, place, "interface"))


def netlab(value: Table, file: str, facts: Facts) -> None:
    """Read a topology as netlab writes it after its transformation (`netlab create -o yaml`)."""
    nodes = value.table("nodes")
    for name, node in nodes.items():
        place = Place(file, nodes.lines[name])
        device = facts.device(name, place)
        if isinstance(node, Table) and node.text("role") == "host":
            device.role = "host"
    for link, line in rows(value.get("links")):
        place = Place(file, line)
        ends = []
        for each, _ in rows(link.get("interfaces") if isinstance(link, Table) else None):
            if isinstance(each, Table) and each.text("node") in nodes and each.text("ifname"):
                ends.append(End(each.text("node"), checked_name(each.text("ifname"), place, "interface")))
                own = interface_address(each.text("ipv6"), place) if "/" in each.text("ipv6") else None
                if own is not None:
                    facts.devices[ends[-1].device].interface(ends[-1].port, place).addresses.append((own, place))
        if len(ends) == 2:
            facts.cables.append(Cable(ends[0], ends[1], place, "netlab"))
        else:
            facts.remark(place, f"link with {len(ends)} named interfaces: no cable between two nodes; not used")
