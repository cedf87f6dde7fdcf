"""A switch of the plan as SONiC's CONFIG_DB: static SRv6 (srv6_static_config_hld), routes and packet trimming."""

import json
from typing import Any

from cli.exporting.routes import NEXT_HOP, own_usid, routes
from topo import Plan, Switch
from topo.graph import PortRef
from topo.plan import PRIORITY_CONTROL

LANES = 4  # of a port: SONiC numbers the first one of each


def port_name(ref: PortRef) -> str:
    """Ethernet0, Ethernet4, …: ports of four lanes."""
    return f"Ethernet{(ref.port - 1) * LANES}"


def sonic(plan: Plan, switch: Switch) -> str:
    """The text of a partial `config_db.json`, for `config load`."""
    document: dict[str, Any] = {
        "DEVICE_METADATA": {"localhost": {"hostname": switch.name}},
        "STATIC_ROUTE": {
            f"default|{route.prefix}": {
                "nexthop": ",".join(NEXT_HOP for _ in route.out),
                "ifname": ",".join(port_name(ref) for ref in route.out),
            }
            for route in routes(plan, switch)
        },
    }
    if plan.encapsulation == "srv6":
        own = own_usid(plan, switch)
        lengths = {"block_len": "32", "node_len": "16", "func_len": "16", "arg_len": "0"}
        document["SRV6_MY_LOCATORS"] = {"MAIN": {"prefix": str(own.network_address), **lengths, "vrf": "default"}}
        document["SRV6_MY_SIDS"] = {f"MAIN|{own}": {"action": "uN", "decap_dscp_mode": "pipe"}}
    if plan.trimming.enabled:
        document["SWITCH_TRIMMING"] = {
            "GLOBAL": {
                "size": str(plan.trimming.size_bytes),
                "dscp_value": str(plan.dscp.trimmed),
                "queue_index": str(PRIORITY_CONTROL),
            }
        }
    return json.dumps(document, indent=2) + "\n"
