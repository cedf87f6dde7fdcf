"""Write and Read on one device: each update or request of a batch to its handler, with an error for each.

Specification, "Write RPC" and "Read RPC". The caller holds the device's lock and has checked who may write.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from google.rpc import status_pb2

from switch.engine import EngineError, NoRoomError
from switch.p4rt import meters, profiles, replication, resources, tablereads, tables, wire
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.errors import Code, P4RuntimeError, exhausted, invalid, unimplemented
from switch.p4rt.keys import decode_key, find_table
from switch.p4rt.limits import REFUSED_MAX, UNDONE_MAX, UPDATES_MAX, WILDCARDS_MAX
from switch.p4rt.store import EntityStore

__all__ = ["write_updates"]

# One message of a streamed read: well below gRPC's default limit of 4 MiB.
READ_RESPONSE_BYTES = 256 * 1024
# Objects and entities between two such messages, so that a Read does not hold the server.
STEPS_PER_TURN = 256
# Status details travel as gRPC metadata, of which a client by default accepts 8 KiB. A longer status never arrives:
# gRPC puts RESOURCE_EXHAUSTED in its place.
STATUS_BYTES_MAX = 6 * 1024
_PLAIN_URL, _SHORT_URL = "type.googleapis.com/", "/"  # before the type of each error; both are a protobuf.Any's

_ENTITIES = wire.tag(p4rt.ReadResponse, "entities")

Writer = Callable[[EntityStore, int, Any], None]
Reader = Callable[[EntityStore, Any], Iterator[bytes]]

WRITERS: dict[str, Writer] = {
    "table_entry": tables.write,
    "action_profile_member": profiles.write_member,
    "action_profile_group": profiles.write_group,
    "meter_entry": meters.write,
    "direct_meter_entry": meters.write_direct,
    "counter_entry": resources.write_counter,
    "direct_counter_entry": resources.write_direct_counter,
    "packet_replication_engine_entry": replication.write,
    "register_entry": resources.write_register,
    "value_set_entry": resources.write_value_set,
    "digest_entry": lambda store, kind, message: store.digests.write(kind, message),
}
READERS: dict[str, Reader] = {
    "table_entry": tablereads.read,
    "action_profile_member": profiles.read_member,
    "action_profile_group": profiles.read_group,
    "meter_entry": meters.read,
    "direct_meter_entry": meters.read_direct,
    "counter_entry": resources.read_counter,
    "direct_counter_entry": resources.read_direct_counter,
    "packet_replication_engine_entry": replication.read,
    "register_entry": resources.read_register,
    "value_set_entry": resources.read_value_set,
    "digest_entry": lambda store, message: store.digests.read(message),
}
_UPDATE_TYPES = (p4rt.Update.INSERT, p4rt.Update.MODIFY, p4rt.Update.DELETE)


class BatchError(RuntimeError):
    """At least one element failed; `errors` has one item an element, None where it succeeded."""

    def __init__(self, what: str, errors: list[P4RuntimeError | None]) -> None:
        failed = [(place, error) for place, error in enumerate(errors) if error is not None]
        first, error = next((f for f in failed if f[1].code is not Code.ABORTED), failed[0])
        super().__init__(f"{len(failed)} of {len(errors)} {what} failed; the first, at index {first}: {error}")
        self.errors = errors
        self._failed = len(failed)

    def status_bytes(self) -> bytes:
        """A serialised google.rpc.Status with a p4.v1.Error for each element, for `grpc-status-details-bin`.

        A client with gRPC's default limit on metadata gets it, so near STATUS_BYTES_MAX types are named shortly, then
        messages are left out, and with about 270 errors or 370 elements all details: the status itself tells the first.
        """
        status = status_pb2.Status(code=int(Code.UNKNOWN), message=str(self))
        size = 2 * len(status.message.encode())  # gRPC's own status has the message as well
        plain = size + len(self.errors) * 36 + self._failed * 6
        url = _PLAIN_URL if plain <= STATUS_BYTES_MAX else _SHORT_URL
        size += len(self.errors) * (36 if url == _PLAIN_URL else 16) + self._failed * 6
        if size > STATUS_BYTES_MAX:
            return bytes(status.SerializeToString())
        for error in self.errors:
            detail = p4rt.Error(canonical_code=int(error.code) if error else int(Code.OK))
            if error is not None:
                size += len(error.message.encode()) + 4
                if size <= STATUS_BYTES_MAX:
                    detail.message = error.message
            status.details.add(type_url=f"{url}p4.v1.Error", value=detail.SerializeToString())
        return bytes(status.SerializeToString())


def write(store: EntityStore, request: Any) -> None:
    """All updates in order. Raises BatchError when any fails, P4RuntimeError when none was tried."""
    if len(request.updates) > UPDATES_MAX:
        raise exhausted(f"a Write must have at most {UPDATES_MAX} updates (got {len(request.updates)})")
    if request.atomicity == p4rt.WriteRequest.ROLLBACK_ON_ERROR:
        _write_all_or_none(store, request.updates)
    elif request.atomicity == p4rt.WriteRequest.DATAPLANE_ATOMIC:
        reason = "packets wait between ingress and egress"
        raise unimplemented(f"atomicity DATAPLANE_ATOMIC is not supported ({reason}); ROLLBACK_ON_ERROR is")
    else:
        write_updates(store, request.updates)


def write_updates(store: EntityStore, updates: Iterable[Any]) -> None:
    """p4.v1.Update messages in order. Raises BatchError when any fails."""
    errors = [_tried(store, update) for update in updates]
    if any(errors):
        raise BatchError("updates", errors)


_TOO_MANY = exhausted(f"a batch with ROLLBACK_ON_ERROR must change at most {UNDONE_MAX} objects; give an index")


def _write_all_or_none(store: EntityStore, updates: Sequence[Any]) -> None:
    back: list[Any] = []
    for place, update in enumerate(updates):
        undo = _undoing(store, update)
        error = _tried(store, update) if len(back) + len(undo) <= UNDONE_MAX else _TOO_MANY
        if error is None:
            back += undo
            continue
        for undone in reversed(back):
            _write_one(store, undone)
        rest = P4RuntimeError(Code.ABORTED, "not done, since another update of the batch failed")
        raise BatchError("updates", [error if i == place else rest for i in range(len(updates))])


def _undoing(store: EntityStore, update: Any) -> list[Any]:
    """What brings back the state of before `update`, which has not been tried yet. Nothing if the update cannot do."""
    if update.type == p4rt.Update.INSERT:
        return [p4rt.Update(type=p4rt.Update.DELETE, entity=update.entity)]
    entities = [p4rt.Entity.FromString(item) for item in islice(_changed(store, update.entity), UNDONE_MAX + 1)]
    if update.entity.HasField("table_entry"):
        for entity in entities:
            _without_what_stays(store, update, entity.table_entry)
    kind = p4rt.Update.INSERT if update.type == p4rt.Update.DELETE else p4rt.Update.MODIFY
    return [p4rt.Update(type=kind, entity=entity) for entity in entities]


def _changed(store: EntityStore, entity: Any) -> Iterator[bytes]:
    """The serialised entities that an update of `entity` may change. A table entry is found by its key: a Read without
    matches selects the whole table, and such an update one entry, of which all matches are left out."""
    entry = entity.table_entry
    if not entity.HasField("table_entry") or entry.is_default_action:
        yield from (item for item in _selected(store, entity) if isinstance(item, bytes))
        return
    with suppress(P4RuntimeError, EngineError):  # the update is refused as well
        table = find_table(store, entry.table_id)
        row = store.rows[table.id].get(decode_key(table, entry))
        if row is not None:
            yield tablereads.encode_entity(store, table, row, counters=True, meters=True)


def _without_what_stays(store: EntityStore, update: Any, entry: Any) -> None:
    """A counter that the update does not set goes on counting, and an unchanged default action is the program's."""
    if update.type == p4rt.Update.MODIFY and not update.entity.table_entry.HasField("counter_data"):
        entry.ClearField("counter_data")
    if entry.is_default_action and entry.table_id not in store.defaults:
        entry.ClearField("action")
    if entry.is_const:  # only its counter and meter can be written
        entry.ClearField("action")
        entry.ClearField("is_const")


def _tried(store: EntityStore, update: Any) -> P4RuntimeError | None:
    try:
        _write_one(store, update)
    except P4RuntimeError as error:
        return error
    except NoRoomError as error:
        return exhausted(str(error))
    except EngineError as error:  # the server has checked what a client can do wrong
        return P4RuntimeError(Code.INTERNAL, str(error))
    return None


def _write_one(store: EntityStore, update: Any) -> None:
    entity = update.entity
    which = entity.WhichOneof("entity")
    writer = WRITERS.get(which)
    if writer is None:
        raise _unsupported(which)
    if update.type not in _UPDATE_TYPES:
        raise invalid("update type is unspecified; it must be INSERT, MODIFY or DELETE")
    writer(store, update.type, getattr(entity, which))


def read(store: EntityStore, request: Any) -> Iterator[bytes]:
    """Serialised ReadResponses of bounded size and bounded work, some of them empty: a place to let others have a turn.

    Raises BatchError at the end when an entity was refused, P4RuntimeError for a Read that asks for too much.

    Everything that was written can be read, also where the program declares no size (replicas, metadata): the first
    wildcard of each kind, which selects an object once, is always answered.
    """
    most = store.pipeline.message_bytes_max
    errors: list[P4RuntimeError | None] = []
    parts: list[bytes] = []
    size = answered = steps = wildcards = refused = 0
    whole: set[str] = set()
    for entity in request.entities:
        wildcard = _is_wildcard(entity)
        kind = entity.WhichOneof("entity")
        counts = not wildcard or kind in whole
        if wildcard:
            whole.add(kind)
        wildcards += wildcard
        if wildcards > WILDCARDS_MAX:
            raise exhausted(f"a Read must have at most {WILDCARDS_MAX} entities that select more than one object")
        for answer in _selected(store, entity):
            if isinstance(answer, bytes):
                part = wire.block(_ENTITIES, answer)
                parts.append(part)
                size += len(part)
                answered += len(part) if counts else 0
                steps += 1
            else:
                errors.append(answer)
                refused += answer is not None
                steps += STEPS_PER_TURN if wildcard else 1  # which may have looked at many objects for few
            if answered > most:
                raise exhausted(f"the answer to a Read must have at most {most} bytes; ask for fewer entities")
            if refused > REFUSED_MAX:
                first = next(error for error in errors if error is not None)
                raise exhausted(f"more than {REFUSED_MAX} entities of the Read are refused; the first: {first}")
            if size >= READ_RESPONSE_BYTES or steps >= STEPS_PER_TURN:
                yield b"".join(parts)
                parts.clear()
                size = steps = 0
    if parts:
        yield b"".join(parts)
    if refused:
        raise BatchError("requests", errors)


def _selected(store: EntityStore, entity: Any) -> Iterator[bytes | P4RuntimeError | None]:
    """The serialised entities that one entity of a Read selects, and at last its error or None."""
    try:
        which = entity.WhichOneof("entity")
        reader = READERS.get(which)
        if reader is None:
            raise _unsupported(which)
        yield from reader(store, getattr(entity, which))
    except P4RuntimeError as refused:
        yield refused
    except EngineError as refused:
        yield P4RuntimeError(Code.INTERNAL, str(refused))
    else:
        yield None


def _is_wildcard(entity: Any) -> bool:
    """Whether an entity of a Read may select more than one object of a kind."""
    which = entity.WhichOneof("entity")
    if which not in READERS:
        return False
    message = getattr(entity, which)
    if which in ("counter_entry", "meter_entry", "register_entry"):
        return not message.HasField("index")
    if which in ("direct_counter_entry", "direct_meter_entry"):
        message, which = message.table_entry, "table_entry"
    if which == "table_entry":
        return not message.match and not message.is_default_action
    if which == "packet_replication_engine_entry":
        return not message.multicast_group_entry.multicast_group_id and not message.clone_session_entry.session_id
    if which == "value_set_entry":
        return not message.value_set_id
    if which == "digest_entry":
        return not message.digest_id
    return not (message.member_id if which == "action_profile_member" else message.group_id)


def _unsupported(which: str | None) -> P4RuntimeError:
    if which is None:
        return invalid(f"the entity is not set; supported: {', '.join(WRITERS)}")
    return unimplemented(f"{which} is not supported; supported: {', '.join(WRITERS)}")
