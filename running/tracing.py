"""One packet followed from NIC to NIC through every switch, table by table.

The switches are those of a lab, with their present tables (`running.view.LabView`); without a lab, reference
interpreters with the plan's tables. A lab's switches are not disturbed: each hop runs in a copy.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv6Address
from typing import Any, Protocol

from controller import DirectControl, compiled_pipelines
from controller.tables import tables
from endpoint.nic import frame as frames
from endpoint.nic import wire
from switch import PortConfig
from switch.reference import ReferenceEngine, Trace
from topo import Host, Plan, Switch
from topo.fault import Condition, Fault, at_switch, leaving
from topo.graph import PortRef, peer, ports
from topo.path import Path, path_da
from topo.plan import PRIORITY_DATA
from topo.profile import nic_profile

__all__ = [
    "Explainer", "Explanation", "Journey", "PlanExplainer", "TracedHop", "call_text", "data_frame", "explained",
    "follow", "hop_limit", "no_program", "outer_destination", "short", "tables_hit",
]  # fmt: skip

HOPS_MAX = 16
Steps = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A switch's work on a frame: the steps of `switch.reference.trace`, their text, the frames that leave by port."""

    steps: Steps
    text: str
    sent: list[tuple[int, bytes]]


class Explainer(Protocol):
    """Somewhere to follow a packet."""

    def faults(self) -> Sequence[Fault]:
        """The faults in force on these switches."""

    def explain(self, switch: Switch, port: int, frame: bytes) -> Explanation:
        """The work of a switch on a frame; the switch itself is not disturbed."""


QUEUE_ACCOUNT, ACCOUNT_FULL, PRIORITIES = "queue_account", 0xFFFF, 8  # p4/parts/account.p4


class PlanExplainer:
    """Reference interpreters that hold exactly the plan's tables.

    The data queues of the switches in `full` are as long as their account can say: a packet that may be trimmed is.
    """

    def __init__(self, plan: Plan, full: Collection[Switch] = (), faults: Sequence[Fault] = ()) -> None:
        self._plan, self._full, self._faults = plan, full, faults
        self._pipelines = compiled_pipelines()

    def faults(self) -> Sequence[Fault]:
        return self._faults

    def explain(self, switch: Switch, port: int, frame: bytes) -> Explanation:
        def prepare(engine: ReferenceEngine) -> None:
            entries = tables(self._plan, switch, virtual_time=True)
            DirectControl(engine, self._pipelines[switch.program]).install(entries)
            for ref in ports(self._plan, switch):
                engine.configure_port(ref.port, PortConfig(), 0)
                if switch in self._full:
                    engine.write_register(QUEUE_ACCOUNT, ref.port * PRIORITIES + PRIORITY_DATA, ACCOUNT_FULL)

        return explained(prepare, port, frame)


def explained(prepare: Callable[[ReferenceEngine], object], port: int, frame: bytes) -> Explanation:
    """The work of a reference interpreter on a frame, once `prepare` has given it a program, entries and ports."""
    trace = Trace()
    engine = ReferenceEngine(seed=0, trace=trace)
    prepare(engine)
    engine.receive(port, frame, 0)
    sent = [(item.port, item.frame) for item in engine.advance(0)]
    return Explanation([json.loads(step.json()) for step in trace.steps], trace.text(), sent)


def no_program(switch: Switch) -> Explanation:
    """The work of a switch that has crashed: none."""
    return Explanation([{"kind": "drop", "reason": f"{switch} has no program: it forwards nothing"}], "", [])


@dataclass(frozen=True, slots=True)
class TracedHop:
    """One switch on the way. `port_out` None: the packet ended in it, for `reason`.

    `conditions` are the faults that the packet met in it and on the cable behind it; one of them may have ended it.
    """

    switch: Switch
    port_in: int
    frame_in: bytes
    steps: Steps
    text: str
    port_out: int | None
    frame_out: bytes
    reason: str
    conditions: tuple[Condition, ...] = ()

    @property
    def lost(self) -> bool:
        """Whether the packet got no further than this switch and the cable behind it."""
        return self.port_out is None or any(condition.ends for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class Journey:
    """Every switch that a packet crossed, and the host it reached, None if it was lost.

    `start` are the faults on the sender's own cable.
    """

    start: tuple[Condition, ...]
    hops: list[TracedHop]
    reached: Host | None

    @property
    def conditions(self) -> list[Condition]:
        """Every fault that the packet met, in order."""
        return [*self.start, *(condition for hop in self.hops for condition in hop.conditions)]


def data_frame(plan: Plan, path: Path, payload_bytes: int) -> bytes:
    """A WRITE Only as the source's NIC sends it on this path."""
    profile = nic_profile(plan, path.source)
    port = profile["ports"][path.plane]
    destination = profile["destinations"][path.destination.name]
    pad = -payload_bytes % 4
    transport = (
        wire.Bth(wire.Opcode.WRITE_ONLY, dest_qpn=0x100, psn=1, pad=pad).pack()
        + wire.Meth(0, 1).pack()
        + wire.Reth(0x1000, 0x2A, payload_bytes).pack()
        + bytes(payload_bytes + pad)
    )
    outer = None
    if plan.encapsulation == "srv6":
        outer = (IPv6Address(port["address"]).packed, path_da(plan, path).packed)
    front = frames.headers(
        ether_dst=bytes.fromhex(port["gateway_mac"].replace(":", "")),
        ether_src=bytes.fromhex(port["mac"].replace(":", "")),
        outer=outer,
        src=IPv6Address(profile["address"]).packed,
        dst=IPv6Address(destination["address"]).packed,
        traffic_class=plan.dscp.trimmable << 2 | frames.ECN_CAPABLE,
        ev=path.ev,
        udp_dport=plan.packets.udp_port,
        length=len(transport) + 4,
    )
    return frames.seal(front, transport)


def follow(
    plan: Plan, explainer: Explainer, path: Path, frame: bytes, wired: Callable[[PortRef], PortRef] | None = None
) -> Journey:
    """The frame from its sender to where it ends, with the faults in force where it meets them.

    `wired` gives the port at the other end of a cable, where cables are not as the plan has them.
    """
    wired = wired or partial(peer, plan)
    faults = explainer.faults()
    out = PortRef(path.source, path.port)
    start = tuple(leaving(plan, faults, out))
    hops: list[TracedHop] = []
    if any(condition.ends for condition in start):
        return Journey(start, hops, None)
    here = wired(out)
    while len(hops) < HOPS_MAX:
        hop = through(plan, explainer, faults, here, frame)
        hops.append(hop)
        if hop.lost or hop.port_out is None:
            return Journey(start, hops, None)
        here, frame = wired(PortRef(hop.switch, hop.port_out)), hop.frame_out
        if isinstance(here.node, Host):
            return Journey(start, hops, here.node)
    return Journey(start, hops, None)


def through(plan: Plan, explainer: Explainer, faults: Sequence[Fault], here: PortRef, frame: bytes) -> TracedHop:
    """One switch: its faults, the decision of its tables, and the faults of the cable that they choose."""
    switch = here.node
    assert isinstance(switch, Switch)
    met = at_switch(plan, faults, switch)
    if any(condition.ends for condition in met):
        reason = next(str(condition) for condition in met if condition.ends)
        return TracedHop(switch, here.port, frame, [], "", None, b"", reason, tuple(met))
    told = explainer.explain(switch, here.port, frame)
    if not told.sent:
        reason = next((step["reason"] for step in told.steps if step["kind"] == "drop"), "it never left")
        return TracedHop(switch, here.port, frame, told.steps, told.text, None, b"", str(reason), tuple(met))
    port_out, out = told.sent[0]
    met += leaving(plan, faults, PortRef(switch, port_out))
    return TracedHop(switch, here.port, frame, told.steps, told.text, port_out, out, "", tuple(met))


def outer_destination(frame: bytes) -> IPv6Address:
    """The outer IPv6 destination: a frame's uSID list."""
    return IPv6Address(frame[38:54])


def hop_limit(frame: bytes) -> int:
    """The outer hop limit."""
    return frame[21]


def tables_hit(steps: Steps) -> list[tuple[str, str]]:
    """(table, what it said) for each lookup that hit: the action with its arguments."""
    hits: list[tuple[str, str]] = []
    for step, following in zip(steps, [*steps[1:], {"kind": ""}], strict=False):  # no steps: none follows
        if step["kind"] == "table" and step["hit"]:
            said = ""
            if following["kind"] == "action":
                said = call_text(following)
            hits.append((short(step["table"]), said))
    return hits


def call_text(step: Mapping[str, Any]) -> str:
    """An action with its arguments, as P4 would call it."""
    arguments = ", ".join(f"{name}={value}" for name, value in step["args"].items())
    return f"{short(step['action'])}({arguments})"


def short(name: str) -> str:
    """The last part of a qualified name."""
    return name.rsplit(".", 1)[-1]
