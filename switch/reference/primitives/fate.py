"""Primitives that decide on the packet and the action: jumps, exit, drop, clone, resubmit, recirculate, truncate."""

from __future__ import annotations

from typing import Any

from switch.engine import DROP_PORT
from switch.model.headers import Header
from switch.reference.packet import Packet
from switch.reference.primitives.registry import Effect, builds, said
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
        said(runtime, packet, "exit")

    return leave


@builds("no_op")
def _no_op(runtime: Runtime) -> Effect:
    return lambda packet: None


def _dropper(runtime: Runtime) -> Effect:
    intrinsics, expressions = runtime.program.intrinsics, runtime.expressions
    set_spec = expressions.writer(intrinsics.egress_spec)
    set_group = None if intrinsics.mcast_grp is None else expressions.writer(intrinsics.mcast_grp)

    def drop(packet: Packet) -> None:
        set_spec(packet, DROP_PORT)
        if set_group is not None:
            set_group(packet, 0)
        said(runtime, packet, "mark_to_drop")

    return drop


@builds("drop")
def _drop(runtime: Runtime) -> Effect:
    return _dropper(runtime)


@builds("mark_to_drop")
def _mark_to_drop(runtime: Runtime, header: Header) -> Effect:
    return _dropper(runtime)


@builds("clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress")
def _clone(runtime: Runtime, session: Any, preserved: Any) -> Effect:
    read = runtime.expressions.reader(session)

    def clone(packet: Packet) -> None:
        packet.clone = (read(packet) & _M16 & 0x7FFF, preserved)
        said(runtime, packet, f"clone to session {packet.clone[0]}")

    return clone


@builds("resubmit")
def _resubmit(runtime: Runtime, preserved: Any) -> Effect:
    def resubmit(packet: Packet) -> None:
        packet.resubmit = preserved
        said(runtime, packet, "resubmit")

    return resubmit


@builds("recirculate")
def _recirculate(runtime: Runtime, preserved: Any) -> Effect:
    def recirculate(packet: Packet) -> None:
        packet.recirculate = preserved
        said(runtime, packet, "recirculate")

    return recirculate


@builds("truncate")
def _truncate(runtime: Runtime, length: Any) -> Effect:
    read = runtime.expressions.reader(length)

    def truncate(packet: Packet) -> None:
        packet.truncate = min(packet.truncate, max(read(packet), 0))
        said(runtime, packet, f"truncate to {packet.truncate} bytes")

    return truncate
