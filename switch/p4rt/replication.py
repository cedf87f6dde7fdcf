"""Multicast groups and clone sessions (specification, "PacketReplicationEngineEntry")."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from switch.config import PORT_MAX
from switch.engine import COPIES_MAX, PRIORITIES, Replica
from switch.p4rt import wire
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.bytestring import decode
from switch.p4rt.errors import choices, exhausted, exists, invalid, not_found
from switch.p4rt.store import CloneSessionRow, EntityStore, MulticastGroup, chosen
from switch.rules import SESSION_MAX

INSERT, MODIFY, DELETE = p4rt.Update.INSERT, p4rt.Update.MODIFY, p4rt.Update.DELETE
ID_MAX = 0xFFFF  # v1model: mcast_grp and egress_rid are bit<16>
PORT_BITS = 32

_ENTITY = wire.tag(p4rt.Entity, "packet_replication_engine_entry")
_MULTICAST, _CLONE = wire.tags(p4rt.PacketReplicationEngineEntry, "multicast_group_entry", "clone_session_entry")


def write(store: EntityStore, kind: int, message: Any) -> None:
    """One update. Raises P4RuntimeError and changes nothing when it is refused."""
    which = message.WhichOneof("type")
    if which == "multicast_group_entry":
        _write_multicast(store, kind, message.multicast_group_entry)
    elif which == "clone_session_entry":
        _write_clone(store, kind, message.clone_session_entry)
    else:
        raise invalid("packet replication entry: must be a multicast_group_entry or a clone_session_entry")


def _check_id(what: str, id_: int, most: int, existing: Iterable[int], kind: int) -> None:
    if not 0 < id_ <= most:
        raise invalid(f"{what}: the id must be 1..{most}, not {id_}")
    if kind == INSERT and id_ in existing:
        raise exists(f"{what} {id_}: exists already")
    if kind != INSERT and id_ not in existing:
        raise not_found(f"{what} {id_}: does not exist; existing: {choices(sorted(existing))}")


def _replicas(owner: str, messages: Sequence[Any]) -> tuple[Replica, ...]:
    if len(messages) > COPIES_MAX:  # the engines make no more copies of one packet
        raise exhausted(f"{owner}: must have at most {COPIES_MAX} replicas (got {len(messages)})")
    replicas: dict[Replica, None] = {}
    for message in messages:
        if message.WhichOneof("port_kind") == "port":
            port = decode(message.port, PORT_BITS, f"{owner}: replica port")
        else:
            port = message.egress_port
        if not 0 <= port <= PORT_MAX:
            raise invalid(f"{owner}: replica port {port} must be 0..{PORT_MAX}")
        if message.instance > ID_MAX:
            raise invalid(f"{owner}: replica instance {message.instance} must be 0..{ID_MAX}")
        replica = Replica(port, message.instance)
        if replica in replicas:
            raise invalid(f"{owner}: the replica with port {port} and instance {message.instance} is given twice")
        replicas[replica] = None
    return tuple(replicas)


def _write_multicast(store: EntityStore, kind: int, message: Any) -> None:
    group_id = message.multicast_group_id
    _check_id("multicast group", group_id, ID_MAX, store.multicast, kind)
    if kind == DELETE:
        store.engine.delete_multicast_group(group_id)
        del store.multicast[group_id]
        return
    replicas = _replicas(f"multicast group {group_id}", message.replicas)
    store.engine.set_multicast_group(group_id, replicas)
    store.multicast[group_id] = MulticastGroup(replicas, message.SerializeToString())


def _write_clone(store: EntityStore, kind: int, message: Any) -> None:
    session_id = message.session_id
    _check_id("clone session", session_id, SESSION_MAX, store.clones, kind)
    if kind == DELETE:
        store.engine.delete_clone_session(session_id)
        del store.clones[session_id]
        return
    owner = f"clone session {session_id}"
    if not 0 <= message.class_of_service < PRIORITIES:
        raise invalid(f"{owner}: class_of_service {message.class_of_service} must be 0..{PRIORITIES - 1}")
    if message.packet_length_bytes < 0:
        raise invalid(f"{owner}: packet_length_bytes must not be negative, is {message.packet_length_bytes}")
    replicas = _replicas(owner, message.replicas)
    store.engine.set_clone_session(session_id, replicas, message.packet_length_bytes, message.class_of_service)
    store.clones[session_id] = CloneSessionRow(
        replicas, message.class_of_service, message.packet_length_bytes, message.SerializeToString()
    )


def read(store: EntityStore, message: Any) -> Iterator[bytes]:
    """All multicast groups and clone sessions when the type is not set."""
    which = message.WhichOneof("type")
    if which != "clone_session_entry":
        for _, group in chosen(store.multicast, message.multicast_group_entry.multicast_group_id):
            yield wire.block(_ENTITY, wire.block(_MULTICAST, group.encoded))
    if which != "multicast_group_entry":
        for _, session in chosen(store.clones, message.clone_session_entry.session_id):
            yield wire.block(_ENTITY, wire.block(_CLONE, session.encoded))
