"""Whose uSID it is, in words."""

from __future__ import annotations

from topo import Plan
from topo.address import switch_usid


def named(plan: Plan, usid: int) -> str:
    """The owner of a uSID in words."""
    for switch in plan.switches():
        if switch_usid(switch) == usid:
            return f"which is {switch}"
    if 0x3000 <= usid < 0x3000 + plan.hosts_per_leaf:
        return f"which is the NIC at downlink {usid - 0x3000}"
    return "which no node of this plan has"
