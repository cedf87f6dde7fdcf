"""A switch of the plan as FRR's configuration: zebra's locator, staticd's SID (FRR 10.3 or newer) and static routes."""

from cli.exporting.routes import NEXT_HOP, own_usid, routes
from topo import Plan, Switch

SID_DEVICE = "sr0"  # staticd of FRR 10.3 installs SIDs on this device, and on no other


def frr(plan: Plan, switch: Switch) -> str:
    """The text of `frr.conf`."""
    lines = [
        f"! {switch} of plan {plan.name}: interfaces are the lab's, next hops are its {NEXT_HOP}",
        "frr defaults datacenter",
        f"hostname {switch}",
        "!",
    ]
    for route in routes(plan, switch):
        lines += [f"ipv6 route {route.prefix} {NEXT_HOP} {ref.interface}" for ref in route.out]
    if plan.encapsulation == "srv6":
        own = own_usid(plan, switch)
        lines += [
            "!",
            f"! ip link add {SID_DEVICE} type dummy && ip link set {SID_DEVICE} up: without it no SID is installed",
            "segment-routing",
            " srv6",
            "  locators",
            "   locator MAIN",
            f"    prefix {own} block-len 32 node-len 16 func-bits 16",
            "    behavior usid",
            "   exit",
            "  exit",
            "  static-sids",
            f"   sid {own} locator MAIN behavior uN",
            "  exit",
            " exit",
            "exit",
        ]
    return "\n".join([*lines, "!"]) + "\n"
