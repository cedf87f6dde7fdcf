"""Write and Read on one device: each update or request of a batch to its handler, with an error for each.

Specification, "Write RPC" and "Read RPC". The caller holds the device's lock and has checked who may write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from google.protobuf import any_pb2
from google.rpc import status_pb2

from switch.engine import EngineError
from switch.p4rt import meters, profiles, replication, resources, tablereads, tables, wire
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.errors import Code, P4RuntimeError, exhausted, invalid, unimplemented
from switch.p4rt.store import EntityStore

# One message of a streamed read: well below gRPC's default limit of 4 MiB.
READ_RESPONSE_BYTES = 256 * 1024
# Status details travel as gRPC metadata, of which a client by default accepts 8 KiB.
STATUS_BYTES_MAX = 6 * 1024

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
}
_UPDATE_TYPES = (p4rt.Update.INSERT, p4rt.Update.MODIFY, p4rt.Update.DELETE)


class BatchError(RuntimeError):
    """At least one element failed; `errors` has one item an element, None where it succeeded."""

    def __init__(self, what: str, errors: list[P4RuntimeError | None]) -> None:
        failed = [error for error in errors if error is not None]
        super().__init__(f"{len(failed)} of {len(errors)} {what} failed; the first: {failed[0]}")
        self.errors = errors

    def status_bytes(self) -> bytes:
        """A serialised google.rpc.Status with a p4.v1.Error for each element, for `grpc-status-details-bin`.

        Beyond STATUS_BYTES_MAX codes are kept but messages are left out, so that a client with gRPC's default limit on
        metadata still gets the codes of a batch of about 100 updates.
        """
        status = status_pb2.Status(code=int(Code.UNKNOWN), message=str(self))
        size = len(self.errors) * 50 + 2 * len(status.message.encode())  # which gRPC's own status has as well
        for error in self.errors:
            detail = p4rt.Error(canonical_code=int(error.code) if error else int(Code.OK))
            if error is not None:
                size += len(error.message.encode())
                if size <= STATUS_BYTES_MAX:
                    detail.message = error.message
            packed = any_pb2.Any()
            packed.Pack(detail)
            status.details.append(packed)
        return bytes(status.SerializeToString())


def write(store: EntityStore, request: Any) -> None:
    """All updates in order. Raises BatchError when any fails, P4RuntimeError when none was tried."""
    if request.atomicity != p4rt.WriteRequest.CONTINUE_ON_ERROR:
        name = p4rt.WriteRequest.Atomicity.Name(request.atomicity)
        raise unimplemented(f"atomicity {name} is not supported; only CONTINUE_ON_ERROR is")
    write_updates(store, request.updates)


def write_updates(store: EntityStore, updates: Iterable[Any]) -> None:
    """p4.v1.Update messages in order. Raises BatchError when any fails."""
    errors: list[P4RuntimeError | None] = []
    failed = False
    for update in updates:
        try:
            _write_one(store, update)
            errors.append(None)
        except P4RuntimeError as error:
            errors.append(error)
            failed = True
        except EngineError as error:
            errors.append(exhausted(str(error)))
            failed = True
    if failed:
        raise BatchError("updates", errors)


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
    """Serialised ReadResponses of bounded size. Raises BatchError at the end when a request failed."""
    errors: list[P4RuntimeError | None] = []
    parts: list[bytes] = []
    size = 0
    for entity in request.entities:
        error: P4RuntimeError | None = None
        try:
            which = entity.WhichOneof("entity")
            reader = READERS.get(which)
            if reader is None:
                raise _unsupported(which)
            for encoded in reader(store, getattr(entity, which)):
                part = wire.block(_ENTITIES, encoded)
                parts.append(part)
                size += len(part)
                if size >= READ_RESPONSE_BYTES:
                    yield b"".join(parts)
                    parts.clear()
                    size = 0
        except P4RuntimeError as refused:
            error = refused
        except EngineError as refused:
            error = P4RuntimeError(Code.INTERNAL, str(refused))
        errors.append(error)
    if parts:
        yield b"".join(parts)
    if any(errors):
        raise BatchError("requests", errors)


def _unsupported(which: str | None) -> P4RuntimeError:
    if which is None:
        return invalid(f"the entity is not set; supported: {', '.join(WRITERS)}")
    return unimplemented(f"{which} is not supported; supported: {', '.join(WRITERS)}")
