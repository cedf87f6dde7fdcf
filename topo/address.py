"""MACs, IPv6 addresses and uSIDs as functions of a node's place in the plan.

| what | value |
|---|---|
| T0 uSID | `0x1000 + plane·512 + leaf` |
| T1 uSID | `0x2000 + plane·256 + spine`, from spine 256 on `0x2800 + plane·256 + spine − 256` |
| T2 uSID | `0x4000 + plane·512 + core` |
| a switch's address | its T0, T1 or T2 uSID behind the block, as in `traceroute` |
| NIC uSID | `0x3000 + downlink`, local to its T0 |
| uA uSID | `0xE000 + port`, local to its switch |
| host's own address | `fd00:<leaf>:<downlink>::1` |
| host's address in a plane | `fd00:<leaf>:<downlink>:<plane + 1>::1`, the outer source |
| MAC | `02:<kind><plane>:<index, 2 bytes>:<port, 2 bytes>`; kind is the tier, 0 for hosts, whose index has 4 bytes |

uSIDs up to 0xDFFF are global (GIB), from 0xE000 local (LIB), as in the F3216 convention of RFC 9800.
"""

import ipaddress
from collections.abc import Sequence

from topo.node import Host, Node, Switch, tier
from topo.plan import Plan

__all__ = [
    "address_usids", "adjacency_usid", "host_address", "host_prefix", "leaf_prefix", "neighbour_usid", "nic_usid",
    "port_address", "switch_address", "switch_usid", "usid_address", "usid_prefix",
]  # fmt: skip

T0_USID_BASE = 0x1000
T1_USID_BASE = 0x2000
T2_USID_BASE = 0x4000
NIC_USID_BASE = 0x3000
UA_USID_BASE = 0xE000
USIDS_PER_ADDRESS = 6  # 96 bits behind a 32-bit block


def switch_usid(switch: Switch) -> int:
    """The uN of a switch."""
    if switch.role == "leaf":
        return T0_USID_BASE + switch.plane * 512 + switch.index
    if switch.role == "core":
        return T2_USID_BASE + switch.plane * 512 + switch.index
    upper, place = divmod(switch.index, 256)
    return T1_USID_BASE + upper * 0x800 + switch.plane * 256 + place


def nic_usid(downlink: int) -> int:
    """A NIC's uSID at its own T0."""
    return NIC_USID_BASE + downlink


def neighbour_usid(plan: Plan, node: Node) -> int:
    """The uSID by which a switch sends to what is wired to it: a switch's uN, or a NIC's uSID."""
    return nic_usid(plan.downlink_of(node)) if isinstance(node, Host) else switch_usid(node)


def adjacency_usid(port: int) -> int:
    """The uA of a switch's port (RFC 9800, End.X with NEXT-CSID)."""
    return UA_USID_BASE + port


def usid_address(plan: Plan, usids: Sequence[int]) -> ipaddress.IPv6Address:
    """The uSID container: block, then the uSIDs in order of use, then zeros."""
    if not 1 <= len(usids) <= USIDS_PER_ADDRESS:
        raise ValueError(f"a container holds 1 to {USIDS_PER_ADDRESS} uSIDs, not {len(usids)}")
    value = int(plan.usid_block.network_address)
    for position, usid in enumerate(usids):
        if not 0 < usid < 0x10000:
            raise ValueError(f"a uSID has 16 bits and is not zero: {usid:#x}")
        value |= usid << (80 - 16 * position)
    return ipaddress.IPv6Address(value)


def switch_address(plan: Plan, switch: Switch) -> ipaddress.IPv6Address:
    """The source of what a switch says itself: the container with nothing but its uN."""
    return usid_address(plan, (switch_usid(switch),))


def address_usids(plan: Plan, address: ipaddress.IPv6Address) -> list[int]:
    """The uSIDs of a container, up to the end-of-carrier zero; ValueError when it is not in the plan's block."""
    if address not in plan.usid_block:
        raise ValueError(f"{address} is not in the uSID block {plan.usid_block}")
    usids = []
    for position in range(USIDS_PER_ADDRESS):
        usid = int(address) >> (80 - 16 * position) & 0xFFFF
        if usid == 0:
            break
        usids.append(usid)
    return usids


def usid_prefix(plan: Plan, *usids: int) -> ipaddress.IPv6Network:
    """What a switch matches: /48 for one uSID, /64 for two."""
    return ipaddress.IPv6Network((usid_address(plan, usids), 32 + 16 * len(usids)))


def host_address(plan: Plan, host: Host) -> ipaddress.IPv6Address:
    """The NIC's own address: source and destination of every inner header, the same in all planes."""
    return ipaddress.IPv6Address(f"fd00:{plan.leaf_of(host):x}:{plan.downlink_of(host):x}::1")


def port_address(plan: Plan, host: Host, plane: int) -> ipaddress.IPv6Address:
    """The NIC's address in one plane: outer source, and a way to reach the host's kernel through that plane."""
    return ipaddress.IPv6Address(f"fd00:{plan.leaf_of(host):x}:{plan.downlink_of(host):x}:{plane + 1:x}::1")


def host_prefix(plan: Plan, host: Host) -> ipaddress.IPv6Network:
    """All addresses of one host: what its leaf routes to its port."""
    return ipaddress.IPv6Network((int(host_address(plan, host)) >> 80 << 80, 48))


def leaf_prefix(leaf_index: int) -> ipaddress.IPv6Network:
    """All addresses of the hosts of one leaf: what spines and other leaves route."""
    return ipaddress.IPv6Network(f"fd00:{leaf_index:x}::/32")


def host_mac(host: Host, plane: int) -> str:
    """The MAC of a host's port in a plane."""
    return _mac(0, plane, host.index)


def switch_mac(switch: Switch, port: int) -> str:
    """The MAC of a switch's port."""
    return _mac(tier(switch), switch.plane, switch.index << 16 | port)


def _mac(kind: int, plane: int, low: int) -> str:
    octets = [0x02, kind << 4 | plane, *low.to_bytes(4, "big")]
    return ":".join(f"{octet:02x}" for octet in octets)
