"""One packet under the microscope: its headers before and after every switch, the tables that it hit, and why.

The switches are the running lab's, with their present tables and faults, or the plan's; `running/tracing.py` follows.
"""

import dataclasses
import struct
from collections.abc import Sequence
from ipaddress import IPv6Address
from typing import Any

from endpoint.nic import frame as frames
from endpoint.nic import wire
from running.tracing import Explainer, PlanExplainer, TracedHop, data_frame, follow, tables_hit
from topo import Plan
from topo.address import address_usids
from topo.path import Path, path_of_ev


class Microscope:
    """Follows packets on each lane of a view: `page.request_handler.Trace`."""

    def __init__(self, plans: Sequence[Plan], lab: Explainer | None = None) -> None:
        self._plans = plans
        self.lab = lab
        """The running lab, while its switches can explain themselves."""

    def __call__(
        self, lane: int, source: str, destination: str, ev: int, size: int, trimmed_at: str | None
    ) -> dict[str, Any]:
        """ValueError when the EV names no path, or when the lab's switches cannot explain themselves."""
        plan = self._plans[lane]
        path = path_of_ev(plan, plan.host(source), plan.host(destination), ev)
        return seen(plan, path, size, trimmed_at, self._explainer(plan, trimmed_at))

    def _explainer(self, plan: Plan, trimmed_at: str | None) -> Explainer:
        if trimmed_at is not None:  # no queue of a running lab is filled for this: the plan's switches are used instead
            return PlanExplainer(plan, {plan.switch_node(trimmed_at)})
        return self.lab or PlanExplainer(plan)


def seen(plan: Plan, path: Path, size: int, trimmed_at: str | None, explainer: Explainer) -> dict[str, Any]:
    """The journey of a WRITE Only of `size` payload bytes on a path."""
    frame = data_frame(plan, path, size)
    journey = follow(plan, explainer, path, frame)
    return {
        "source": path.source.name,
        "ev": path.ev,
        "via": path.via,
        "sent": headers(plan, frame),
        "start": [str(condition) for condition in journey.start],
        "hops": [hop_view(plan, hop) for hop in journey.hops],
        "reached": None if journey.reached is None else journey.reached.name,
        "trimmed_at": trimmed_at,
    }


def hop_view(plan: Plan, hop: TracedHop) -> dict[str, Any]:
    """One switch: where in and out, tables with what they said, every step, and the frame that leaves."""
    return {
        "switch": hop.switch.name,
        "port_in": hop.port_in,
        "port_out": hop.port_out,
        "tables": tables_hit(hop.steps),
        "text": hop.text,
        "reason": hop.reason,
        "conditions": [str(condition) for condition in hop.conditions],
        "lost": hop.lost,
        "frame": headers(plan, hop.frame_out) if hop.frame_out else [],
    }


def headers(plan: Plan, frame: bytes) -> list[list[Any]]:
    """`[header, {field: value}]` from the outside in, as far as the frame goes."""
    layers: list[list[Any]] = [["Ethernet", {"dst": mac(frame[0:6]), "src": mac(frame[6:12]), "bytes": len(frame)}]]
    offset = frames.ETHERNET
    while len(frame) >= offset + frames.IPV6 and (not layers[1:] or layers[-1][1].get("next") == IPV6_IN_IPV6):
        layers.append(["IPv6" if len(layers) > 1 else "outer IPv6", ipv6(plan, frame, offset)])
        offset += frames.IPV6
    if len(layers) == 2:
        layers[1][0] = "IPv6"
    try:
        source, destination, length, _ = struct.unpack_from("!HHHH", frame, offset)
        layers.append(["UDP", {"src": source, "dst": destination, "length": length}])
        layers += transport(frame, offset + frames.UDP)
    except struct.error:
        layers.append(["cut", {"here": "the rest was trimmed away"}])
    return layers


IPV6_IN_IPV6 = 41


def ipv6(plan: Plan, frame: bytes, offset: int) -> dict[str, Any]:
    """Fields of one IPv6 header (RFC 8200), the uSIDs of a container among them."""
    word, length, following, hops = struct.unpack_from("!IHBB", frame, offset)
    destination = IPv6Address(frame[offset + 24 : offset + 40])
    usids = (
        {"uSIDs": " ".join(f"{usid:x}" for usid in address_usids(plan, destination))}
        if destination in plan.usid_block
        else {}
    )
    return {
        "src": str(IPv6Address(frame[offset + 8 : offset + 24])),
        "dst": str(destination),
        **usids,
        "DSCP": f"{word >> 22 & 0x3F}{dscp_name(plan, word >> 22 & 0x3F)}",
        "ECN": word >> 20 & 3,
        "flow label": f"{word & 0xFFFFF:#07x}",
        "hop limit": hops,
        "length": length,
        "next": following,
    }


def dscp_name(plan: Plan, value: int) -> str:
    """The plan's name of a DSCP, in brackets."""
    names = {getattr(plan.dscp, name): name for name in plan.dscp.__slots__}
    return f" ({names[value].replace('_', ' ')})" if value in names else ""


def transport(frame: bytes, offset: int) -> list[list[Any]]:
    """The headers behind UDP; struct.error where the frame ends too early."""
    bth = wire.Bth.unpack(frame, offset)
    name = wire.Opcode(bth.opcode).name if bth.opcode in list(wire.Opcode) else hex(bth.opcode)
    layers: list[list[Any]] = [["BTH", {"opcode": name, "QP": f"{bth.dest_qpn:#x}", "PSN": bth.psn}]]
    offset += wire.BTH_BYTES
    try:
        meth = wire.Meth.unpack(frame, offset)
        layers.append(["METH", dataclasses.asdict(meth)])
        offset += wire.METH_BYTES
        reth = wire.Reth.unpack(frame, offset)
        layers.append(["RETH", {"va": f"{reth.va:#x}", "rkey": f"{reth.rkey:#x}", "length": reth.length}])
        layers.append(["payload", {"bytes": max(0, len(frame) - offset - wire.RETH_BYTES - 4)}])
    except struct.error:
        layers.append(["cut", {"here": "the rest was trimmed away"}])
    return layers


def mac(octets: bytes) -> str:
    return octets.hex(":")
