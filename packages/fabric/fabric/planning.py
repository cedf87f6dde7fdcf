"""From a shape to the text of a plan file, with the origin of every fact, and what differs from the source."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.fields import TOML_BYTES_MAX
from fabric.facts import NUMBER, Cable, FabricError, Facts, Place, Sid, natural
from fabric.shape import Shape, own_node, role_of_node
from topo import Host, Plan, PlanError, Switch
from topo.address import switch_usid, usid_prefix
from topo.planfile import parse_plan

LAB_RATE_BPS = 10_000_000
LAB_MTU = 4338
HEADERS = 132
"""Of a full data packet, beside its payload: docs/reference/fabric.md."""
COMMENT_BYTES_MAX = TOML_BYTES_MAX // 2


@dataclass(frozen=True, slots=True)
class Imported:
    """The text of a plan file, the plan that it makes, and how it differs from the source."""

    text: str
    plan: Plan
    differences: tuple[str, ...]


def imported(facts: Facts, shape: Shape, name: str) -> Imported:
    """A plan of a shape. FabricError where there can be none, with the first reason."""
    if stops := [finding for finding in shape.findings if finding.stops]:
        more = f" ({len(stops) - 1} more: ./lab topo check lists all)" if len(stops) > 1 else ""
        raise FabricError(f"{stops[0]}{more}")
    for role in ("host", "leaf"):
        if not shape.names(role):
            raise FabricError(f"{', '.join(sorted(facts.files))}: a fabric must have at least one {role} with cables")
    differences: list[str] = []
    given = _names(shape, differences)
    body = [
        f"name = {quoted(name)}",
        f"description = {quoted(_description(facts, shape))}",
        "",
        *_fabric(shape, _speeds(facts, shape)),
        "",
        *_links(facts, shape, differences),
        *_trimming(facts, differences),
        *_block(facts, shape, differences),
        "[names]",
        *(
            f"{node} = {quoted(given[source])}  # {facts.devices[source].place}"
            for source, node in sorted(shape.nodes.items(), key=lambda each: _order(each[1]))
            if source != node.name
        ),
    ]
    try:
        plan = parse_plan("\n".join(body), min(facts.files))
    except PlanError as error:
        raise FabricError(f"{_renamed(str(error), shape)}: the lab cannot hold this fabric") from None
    differences += _sid_differences(facts, shape, plan)
    text = "\n".join([*_comments(facts, shape, differences), *body]) + "\n"
    return Imported(text, plan, tuple(differences))


def _names(shape: Shape, differences: list[str]) -> dict[str, str]:
    """The plan's names by the source's. Names that are the lab's own of other nodes get the role in front."""
    names = {name: name for name in shape.nodes}
    taken = [name for name, node in shape.nodes.items() if own_node(name) and name != node.name]
    for role in {role_of_node(shape.nodes[name]) for name in taken}:
        names |= {name: f"{role}-{name}" for name in shape.names(role) if own_node(name)}
    if taken:
        first = min(taken, key=natural)
        mistaken = next((names[name] for name, node in shape.nodes.items() if node.name == first), "none")
        differences.append(
            f"names: {len(taken)} of the source are the lab's for other nodes: {first} is {names[first]} here,"
            f" and {first} means {mistaken}"
        )
    return names


def quoted(text: str) -> str:
    """A TOML string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in escaped) + '"'


def _order(node: Host | Switch) -> tuple[int, int, int, int]:
    if isinstance(node, Host):
        return 9, 0, 0, node.index
    return 0, node.plane, ("leaf", "spine", "core").index(node.role), node.index


def _renamed(message: str, shape: Shape) -> str:
    """A message of the lab's with the source's names."""
    names = {node.name: source for source, node in shape.nodes.items()}
    return re.sub(r"(?<![\w/.])(?:p\d+[lsc]\d+|h\d+)(?!\w)", lambda match: names.get(match[0], match[0]), message)


def _description(facts: Facts, shape: Shape) -> str:
    forms = sorted(set(facts.files.values()))
    counts = [f"{len(shape.names(role))} {plural}" for role, plural in _PLURALS.items() if shape.names(role)]
    return f"imported from {', '.join(forms)}: {shape.planes} planes, {', '.join(counts)}"


_PLURALS = {"leaf": "leaves", "spine": "spines", "core": "cores", "host": "hosts"}


def _speed(facts: Facts, device: str, port: str) -> int | None:
    interface = facts.devices[device].interfaces.get(port)
    setting = interface.settings.get("speed") if interface else None
    return setting.number or None if setting else None


def _speeds(facts: Facts, shape: Shape) -> dict[int, int]:
    """By the number of a link: its speed in Mb/s, the lower one of its ends."""
    speeds = {}
    for number, link in enumerate(shape.links):
        ends = [_speed(facts, end.device, end.port) for end in (link.a, link.b)]
        if known := [speed for speed in ends if speed is not None]:
            speeds[number] = min(known)
    return speeds


def _fabric(shape: Shape, speeds: dict[int, int]) -> list[str]:
    """The section `[fabric]`: four numbers where every leaf is wired to every spine alike, else the list of cables."""
    leaves, spines, hosts = (len(shape.names(role)) for role in ("leaf", "spine", "host"))
    ends = set(shape.names("host"))
    between = {number: None for number, link in enumerate(shape.links) if link.a.device not in ends}
    planes = shape.planes
    pairs = {(shape.nodes[shape.links[n].a.device], shape.nodes[shape.links[n].b.device]) for n in between}
    under = Counter(link.b.device for link in shape.links if link.a.device in ends)
    alike = len({speeds.get(number) for number in between}) <= 1
    regular = (
        not shape.names("core")
        and leaves % planes == spines % planes == hosts % (leaves // planes) == 0
        and len(pairs) == len(between) == leaves * spines // planes
        and all(isinstance(b, Switch) and b.role == "spine" for _, b in pairs)
        and set(under.values()) == {hosts * planes // leaves}
        and all(_in_order(shape, link, hosts * planes // leaves) for link in shape.links)
    )
    if regular and alike:
        numbers = (planes, leaves // planes, spines // planes, hosts * planes // leaves)
        keys = ("planes", "leaves", "spines", "hosts_per_leaf")
        return ["[fabric]", *(f"{key} = {value}" for key, value in zip(keys, numbers, strict=True))]
    most = max((speeds[number] for number in between if number in speeds), default=0)
    lines = ["[fabric]", 'topology = "list"', "cables = ["]
    for number, link in enumerate(shape.links):
        share = speeds[number] / most if number in between and number in speeds else 1.0
        pair = f'"{shape.nodes[link.a.device]}", "{shape.nodes[link.b.device]}"'
        lines.append(f"  [{pair}{'' if share == 1.0 else f', {share:.6g}'}],  # {link.place}")
    return [*lines, "]"]


def _in_order(shape: Shape, link: Cable, hosts_per_leaf: int) -> bool:
    """Whether a host is under the leaf that the usual numbering has for it; anything else is in order."""
    host, leaf = shape.nodes[link.a.device], shape.nodes[link.b.device]
    return not isinstance(host, Host) or host.index // hosts_per_leaf == leaf.index


def _links(facts: Facts, shape: Shape, differences: list[str]) -> list[str]:
    """Rates and MTU. The lab's ports are slow on purpose; `hardware_rate_bps` is the source's speed."""
    speeds = _speeds(facts, shape)
    hosts = set(shape.names("host"))
    edge = {speed for number, speed in speeds.items() if shape.links[number].a.device in hosts}
    core = [speed for number, speed in speeds.items() if shape.links[number].a.device not in hosts]
    lines = ["[links]"]
    if len(edge) == 1:
        speed = edge.pop()
        lines.append(f"hardware_rate_bps = {speed * 1_000_000}")
        differences.append(
            f"rates: a port of {speed / 1000:g} Gb/s runs at 10 Mb/s; give --rate {speed} for its own rate"
        )
        if core and max(core) != speed:
            lines.append(f"fabric_rate_bps = {LAB_RATE_BPS * max(core) // speed}")
    else:
        differences.append("rates: the source gives hosts' ports no speed, or several; they have the lab's")
    mtus = [
        (setting.number, setting.place)
        for link in shape.links
        for end in (link.a, link.b)
        if (interface := facts.devices[end.device].interfaces.get(end.port))
        and (setting := interface.settings.get("mtu"))
        and setting.number
    ]
    mtu, place = min(mtus, default=(0, Place("", 0)))
    if mtu and mtu < LAB_MTU:
        lines += [f"mtu_bytes = {mtu}  # {place}", "", "[packets]", f"pmtu_bytes = {min(4096, mtu - HEADERS)}"]
    else:
        said = f"the source's smallest MTU is {mtu} ({place})" if mtu else "the source gives no MTU"
        differences.append(f"MTU: {said}; the plan keeps {LAB_MTU}, enough for a payload of 4096 bytes")
    return [*lines, ""]


def _trimming(facts: Facts, differences: list[str]) -> list[str]:
    """The size and DSCP of trimmed packets, where the source says them."""
    found = {key: device.settings for device in facts.devices.values() for key in device.settings if "trimming" in key}
    if not found:
        differences.append("trimming and ECN: the source says nothing; the plan has the lab's")
        return []
    values = {key: settings[key] for key, settings in found.items()}
    lines = []
    if size := values.get("trimming size"):
        lines += ["[trimming]", f"size_bytes = {size.number}  # {size.place}", ""]
    if dscp := values.get("trimming dscp_value"):
        if NUMBER.fullmatch(dscp.value):
            lines += ["[dscp]", f"trimmed = {dscp.number}  # {dscp.place}", ""]
        else:
            differences.append(f"trimming: dscp_value {dscp.value!r} ({dscp.place}); the plan has the lab's")
    differences.append("ECN: thresholds of the source are bytes; the plan's are multiples of Plane_BDP, the lab's own")
    return lines


def _block(facts: Facts, shape: Shape, differences: list[str]) -> list[str]:
    """The source's block where all switches share one of 32 bits."""
    blocks = {
        locator.prefix.supernet(new_prefix=min(locator.block_bits, locator.prefix.prefixlen))
        for name in shape.nodes
        for locator in facts.devices[name].locators.values()
    }
    if len(blocks) == 1 and (block := blocks.pop()).prefixlen == 32:
        return ["[srv6]", f'usid_block = "{block}"', ""]
    if blocks:
        told = ", ".join(sorted(map(str, blocks))[:4])
        more = ", …" if len(blocks) > 4 else ""
        differences.append(f"blocks: the source has {len(blocks)} ({told}{more}), a plan has one of 32 bits")
    return []


def _sid_differences(facts: Facts, shape: Shape, plan: Plan) -> list[str]:
    """The uN of switches in the source and in the lab, where they differ; an example and how many."""
    rows = []
    for name, node in shape.nodes.items():
        own = own_sid(facts, name)
        if own is not None and isinstance(node, Switch):
            lab = usid_prefix(plan, switch_usid(node))
            if lab != own.prefix:
                rows.append(f"{name} {own.prefix} is {lab} ({own.place})")
    if not rows:
        return []
    return [
        f"uSIDs: runs use the lab's own for {len(rows)} switches, such as {rows[0]}; `topo check` walks the source's"
    ]


def own_sid(facts: Facts, name: str) -> Sid | None:
    """The uN of a device."""
    return next((sid for sid in facts.devices[name].sids if sid.behavior in ("uN", "End", "End.DX6")), None)


def _comments(facts: Facts, shape: Shape, differences: Sequence[str]) -> list[str]:
    """The head of the file: rules, differences, unused facts, and the origin of every cable."""
    lines = ["# Made by `./lab topo import`. Read from:"]
    lines += [f"#   {file} ({form})" for file, form in sorted(facts.files.items())]
    lines += ["#", "# Rules that were used:", *(f"#   {rule}" for rule in shape.rules)]
    lines += ["#", "# Differences from the source:", *(f"#   {each}" for each in differences or ("none",))]
    lines += ["#", "# Not used:", *(f"#   {each}" for each in facts.remarks[:200] or ("nothing",))]
    lines += ["#", "# Cables:", *(f"#   {link.a} – {link.b}  {link.place}" for link in shape.links)]
    size = 0
    for number, line in enumerate(lines):
        size += len(line.encode()) + 1
        if size > COMMENT_BYTES_MAX:
            lines[number:] = [f"#   … {len(lines) - number} more lines are left out"]
            break
    return [*(line if line.isprintable() else repr(line) for line in lines), ""]


def plan_name(paths: Sequence[Path]) -> str:
    """The name of a plan by the first file or folder that was given."""
    return paths[0].resolve().name.partition(".")[0] or "imported"
