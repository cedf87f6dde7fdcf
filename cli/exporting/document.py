"""A whole plan as JSON: nodes, links, and every switch's entries as the controller writes them."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from common.terminal.progress import with_progress
from topo import Host, Node, Plan, plan_document
from topo.address import host_address, switch_usid, usid_address
from topo.graph import Link, PortRef, links, port_count, ports


def document(plan: Plan) -> Iterator[str]:
    """The text, in pieces: the paper's fabric has 50 million entries. Rates in bit/s, delays in nanoseconds. Raises
    CompileError when p4/ does not compile."""
    import controller
    from controller import encode, words
    from controller.tables import tables

    pipelines = controller.compiled_pipelines()
    node_count, end_count = plan.host_count + plan.switch_count, sum(port_count(plan, node) for node in plan.nodes())
    yield f'{{\n "plan": {_dumped(plan_document(plan), 1)}'
    nodes = with_progress(plan.nodes(), node_count, "nodes")
    yield from _listed("nodes", (node_document(plan, node) for node in nodes))
    cables = with_progress(links(plan), end_count // 2, "links")
    yield from _listed("links", (link_document(link) for link in cables))
    yield ',\n "entries": '
    opening = "{"
    for switch in with_progress(plan.switches(), plan.switch_count, "switches"):
        info = pipelines[switch.program].p4info
        items = [encode(info, entity).entity for entity in tables(plan, switch)]
        entries = [{"key": words.key(info, item), "value": words.value(info, item)} for item in items]
        yield f"{opening}\n  {json.dumps(switch.name)}: {_dumped(entries, 2)}"
        opening = ","
    yield "\n }\n}\n"


def _listed(name: str, rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    opening = f',\n "{name}": ['
    for row in rows:
        yield f"{opening}\n  {_dumped(row, 2)}"
        opening = ","
    yield "\n ]"


def _dumped(value: Any, depth: int) -> str:
    """JSON with an indent of one, inside what is `depth` deep: texts in JSON hold no line ends."""
    return json.dumps(value, indent=1, ensure_ascii=False).replace("\n", "\n" + " " * depth)


def link_document(link: Link) -> dict[str, Any]:
    return {"a": end(link.a), "b": end(link.b), "rate_bps": link.rate_bps, "delay_ns": link.delay_ns}


def node_document(plan: Plan, node: Node) -> dict[str, Any]:
    interfaces = [{"port": ref.port, "interface": ref.interface, "mac": ref.mac} for ref in ports(plan, node)]
    if isinstance(node, Host):
        return {"name": node.name, "kind": "host", "address": str(host_address(plan, node)), "interfaces": interfaces}
    usid = switch_usid(node)
    own = {"usid": f"{usid:04x}", "address": str(usid_address(plan, [usid]))}
    return {"name": node.name, "kind": node.role, "plane": node.plane, **own, "interfaces": interfaces}


def end(ref: PortRef) -> dict[str, Any]:
    return {"node": ref.node.name, "port": ref.port}
