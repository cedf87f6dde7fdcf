"""Primitives that decide on the packet and the action: jumps, exit, drop, clone, resubmit, recirculate, truncate."""

from functools import partial
from typing import Any

from p4c.model import Header
from p4c.model.externs import LearnList
from switch.engine import DROP_PORT
from switch.reference.packet import Packet
from switch.reference.primitives.registry import Effect, builds
from switch.reference.runtime import Runtime

_M16 = (1 << 16) - 1


@builds("_jump")
def _jump(runtime: Runtime, target: Any) -> Effect:
    where = target.value
    return lambda packet: where


@builds("_jump_if_zero")
def _jump_if_zero(runtime: Runtime, condition: Any, target: Any) -> Effect:
    where, read = target.value, runtime.expressions.reader(condition)
    return lambda packet: where if read(packet) == 0 else None


@builds("exit")
def _exit(runtime: Runtime) -> Effect:
    def leave(packet: Packet) -> None:
        packet.exited = True
        runtime.record(packet, "primitive", text="exit")

    return leave


@builds("no_op")
def _no_op(runtime: Runtime) -> Effect:
    return lambda packet: None


@builds("drop", "mark_to_drop")
def _drop(runtime: Runtime, header: Header | None = None) -> Effect:
    intrinsics, expressions = runtime.program.intrinsics, runtime.expressions
    set_spec = expressions.writer(intrinsics.egress_spec)
    set_group = None if intrinsics.mcast_grp is None else expressions.writer(intrinsics.mcast_grp)

    def drop(packet: Packet) -> None:
        set_spec(packet, DROP_PORT)
        if set_group is not None:
            set_group(packet, 0)
        runtime.record(packet, "primitive", text="mark_to_drop")

    return drop


@builds("clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress")
def _clone(runtime: Runtime, session: Any, preserved: Any) -> Effect:
    read = runtime.expressions.reader(session)

    def clone(packet: Packet) -> None:
        packet.clone = (read(packet) & _M16 & 0x7FFF, preserved)
        runtime.record(packet, "primitive", text=f"clone to session {packet.clone[0]}")

    return clone


def _again(verb: str, runtime: Runtime, preserved: Any) -> Effect:
    def ask(packet: Packet) -> None:
        setattr(packet, verb, preserved)
        runtime.record(packet, "primitive", text=verb)

    return ask


for _verb in ("resubmit", "recirculate"):
    builds(_verb)(partial(_again, _verb))


@builds("generate_digest")
def _digest(runtime: Runtime, receiver: Any, learned: LearnList) -> Effect:
    def ask(packet: Packet) -> None:
        packet.digest = learned
        runtime.record(packet, "primitive", text=f"digest {learned.name}")

    return ask


@builds("truncate")
def _truncate(runtime: Runtime, length: Any) -> Effect:
    read = runtime.expressions.reader(length)

    def truncate(packet: Packet) -> None:
        packet.truncate = min(packet.truncate, max(read(packet), 0))
        runtime.record(packet, "primitive", text=f"truncate to {packet.truncate} bytes")

    return truncate
