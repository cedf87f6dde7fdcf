"""A whole plan as JSON: nodes, links, and every switch's entries as the controller writes them."""

from __future__ import annotations

from typing import Any

from topo import Host, Node, Plan, plan_document
from topo.address import host_address, switch_usid, usid_address
from topo.graph import PortRef, links, ports


def document(plan: Plan) -> dict[str, Any]:
    """Rates in bit/s, delays in nanoseconds. Raises CompileError when p4/ does not compile."""
    import controller
    from controller import encode, words
    from controller.tables import tables

    pipelines = controller.compiled_pipelines()
    entries: dict[str, list[dict[str, str]]] = {}
    for switch in plan.switches():
        info = pipelines[switch.program].p4info
        items = [encode(info, entity).entity for entity in tables(plan, switch)]
        entries[switch.name] = [{"key": words.key(info, item), "value": words.value(info, item)} for item in items]
    return {
        "plan": plan_document(plan),
        "nodes": [node_document(plan, node) for node in plan.nodes()],
        "links": [
            {"a": end(link.a), "b": end(link.b), "rate_bps": link.rate_bps, "delay_ns": link.delay_ns}
            for link in links(plan)
        ],
        "entries": entries,
    }


def node_document(plan: Plan, node: Node) -> dict[str, Any]:
    interfaces = [{"port": ref.port, "interface": ref.interface, "mac": ref.mac} for ref in ports(plan, node)]
    if isinstance(node, Host):
        return {"name": node.name, "kind": "host", "address": str(host_address(plan, node)), "interfaces": interfaces}
    usid = switch_usid(node)
    own = {"usid": f"{usid:04x}", "address": str(usid_address(plan, [usid]))}
    return {"name": node.name, "kind": node.role, "plane": node.plane, **own, "interfaces": interfaces}


def end(ref: PortRef) -> dict[str, Any]:
    return {"node": ref.node.name, "port": ref.port}
