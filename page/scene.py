"""The page's scene before any event has come: nodes with their places, cables, uSIDs, verbs. Pure functions."""

from collections.abc import Mapping
from typing import Any

from topo import Host, Node, Plan
from topo.address import neighbour_usid
from topo.fault import VERBS, PortState, Verb, make_fault
from topo.graph import links
from topo.pictures.graph import graph_of
from topo.pictures.positions import lane_width, positions


def scene(plan: Plan, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """One fabric as JSON. `options` are a run's; empty for a plan and for a lab that no scenario runs in.

    Nodes are `[name, tier, plane, x, y, uSID]` (a host's uSID is its NIC's, local to its leaves), cables
    `[a, b, port of a, port of b, rate]` from the lower end; x and y are those of `topo.pictures.positions`. `ways` say
    which switches each EV names.
    GraphError when the fabric is too large to be drawn.
    """
    graph = graph_of(plan)
    at = positions(graph)
    return {
        "plan": {
            "name": plan.name,
            "planes": plan.planes,
            "words": plan.topology.describe(),
            "lane_width": lane_width(graph),
            "encapsulation": plan.encapsulation,
            "usid_block": f"{int(plan.usid_block.network_address) >> 96:08x}",
            "host_rate_bps": plan.links.host_rate_bps,
            "queue_bytes_max": plan.threshold_bytes(plan.queues.trim),
            "pmtu_bytes": plan.packets.pmtu_bytes,
            "base_rtt_ns": plan.base_rtt_ns,
        },
        "options": dict(options or {}),
        "nodes": [
            [place.name, place.tier, place.plane, *at[place.name], usid(plan, place.name)] for place in graph.places
        ],
        "cables": [
            [link.a.node.name, link.b.node.name, link.a.port, link.b.port, link.rate_bps] for link in links(plan)
        ],
        "kinds": {switch.name: plan.kind_of(switch) for switch in plan.switches()},
        "ways": ways_of(plan),
    }


def ways_of(plan: Plan) -> dict[str, Any]:
    """Which EVs name which switches between two leaves.

    `lists` has rows `[EVs, switches between the leaves, plane]`; `of[a][b]` is the place of the list of two leaves by
    index, `leaf_of` the leaf of each host. On two even tiers every two leaves share one list.
    """
    topology = plan.topology
    lists: dict[Any, int] = {}

    def place(source: int, destination: int) -> int:
        rows = tuple(
            (tuple(plane << 16 | low for low in way.lows), tuple(switch.name for switch in way.switches[1:-1]), plane)
            for plane in range(plan.planes)
            for way in topology.ways(plane, source, destination)
        )
        return lists.setdefault(rows, len(lists))

    of = [[place(source, destination) for destination in range(plan.leaves)] for source in range(plan.leaves)]
    return {"lists": list(lists), "of": of, "leaf_of": [plan.leaf_of(host) for host in plan.hosts()]}


def usid(plan: Plan, name: str) -> int:
    return neighbour_usid(plan, plan.node(name))


def verbs() -> list[dict[str, Any]]:
    """The fault verbs for the page's buttons, each with what it makes of its target."""
    return [
        {
            "name": verb.name,
            "target": verb.target,
            "meaning": verb.meaning,
            "argument": verb.argument
            and {"name": verb.argument.name, "low": verb.argument.low, "high": verb.argument.high},
            "one_way": verb.one_way,
            "lasting": verb.lasting,
            "looks": looks(verb),
        }
        for verb in VERBS.values()
    ]


def looks(verb: Verb) -> str:
    """How a target under this verb is drawn: dead, lossy, late, slow, stopped, crashed or drained."""
    if verb.denies:
        return "drained"
    if verb.impairs is None:
        return verb.switch
    usual = PortState(up=True, rate_bps=1_000_000_000, delay_ns=1)
    state = verb.impairs(usual, 1.0, 0)
    if not state.up or state.loss >= 1:
        return "dead"
    if state.loss:
        return "lossy"
    return "late" if state.delay_ns != usual.delay_ns else "slow"


def refusals(plan: Plan, target: str) -> dict[str, str]:
    """For each verb that fits a target of this kind: "" where it can be done, else the reason why it cannot.

    Targets are spelt as for `./lab fault`; ValueError when the plan has none such.
    """
    kind = kind_of(plan, target)
    reasons = {}
    for verb in VERBS.values():
        if verb.target != kind:
            continue
        try:
            make_fault(plan, verb.name, target, verb.argument.high if verb.argument else None)
            reasons[verb.name] = ""
        except ValueError as error:
            reasons[verb.name] = str(error)
    return reasons


def kind_of(plan: Plan, target: str) -> str:
    """The kind of target that these words name: link, nic port, nic or switch."""
    if "-" in target or ">" in target:
        return "link"
    if "." in target:
        return "nic port"
    if target in (host.name for host in plan.hosts()):
        return "nic"
    plan.switch_node(target)
    return "switch"


def all_refusals(plan: Plan) -> dict[str, dict[str, str]]:
    """The refusals of every kind of target there is: by kind of switch, and by whether a host is at one end.

    What a verb can do depends on the kinds of the switches at the ends alone, so one target represents all alike:
    the page asks by the key `class_of` gives.
    """
    by_class: dict[str, dict[str, str]] = {}
    for target, key in classes(plan).items():
        by_class.setdefault(key, refusals(plan, target))
    return by_class


def classes(plan: Plan) -> dict[str, str]:
    """The first target of each class: switches by kind, links by the kinds at their ends, NIC ports by their leaf's.

    One NIC is an example of all.
    """
    seen: dict[str, str] = {"nic": next(iter(plan.hosts())).name}
    for switch in plan.switches():
        seen.setdefault(f"switch {plan.kind_of(switch)}", switch.name)
    for link in links(plan):
        a, b = end(plan, link.a.node), end(plan, link.b.node)
        seen.setdefault(f"link {a} {b}", f"{link.a.node}-{link.b.node}")
        seen.setdefault(f"link {a} > {b}", f"{link.a.node}>{link.b.node}")
        seen.setdefault(f"link {b} > {a}", f"{link.b.node}>{link.a.node}")
        if isinstance(link.a.node, Host):
            seen.setdefault(f"nic port {b}", f"{link.a.node}.p{link.a.plane}")
    return {target: key for key, target in seen.items()}


def end(plan: Plan, node: Node) -> str:
    """The node at one end of a link, as far as verbs care."""
    return "host" if isinstance(node, Host) else plan.kind_of(node)
