"""StreamChannel: sessions of controllers, their arbitration, and packet I/O.

No gRPC in here: a stream is an asynchronous iterator of requests and a function that writes a response. Everything runs
in the server's loop, except `arrived`, which any thread may call.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from common.records import Frozen
from switch.device import Device, Devices
from switch.engine import FRAME_BYTES_MAX, EngineError
from switch.p4rt import wire
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.errors import Code, P4RuntimeError, choices, denied, exhausted, invalid, not_found, unready
from switch.p4rt.p4info import PacketHeader, TableInfo
from switch.p4rt.store import EntityStore, StoredEntry, loaded
from switch.p4rt.tablereads import encode_entry

# Who may write: election of a primary for each (device, role).
# Specification, "Client Arbitration and Controller Replication". No I/O: a client is any hashable token for its stream;
# each call returns the notifications to send, in order. One `Arbitration` serves one device from its start to its
# crash.
STREAMS_PER_ROLE_MAX = 64
ROLES_MAX = 64
"""Of one device, beside the default role. A role that had a primary is remembered without a stream, since the
specification compares later election ids with the highest that ever was, until a new role needs its place."""
ROLE_NAME_BYTES_MAX = 256
HANDOVER_S = 0.2
"""For which a stream waits for the end of the one that has its election id: a controller that opens its next stream at
once, as the PTF tests of p4lang's tutorials do, may be heard before the end of its last one."""

Client = Hashable


class Notification(Frozen):
    """A MasterArbitrationUpdate for `client`. `election_id` is the highest that ever was primary, None before any."""

    client: Client
    role: str
    election_id: int | None
    status: Code


@dataclass(slots=True)
class _Role:
    clients: dict[Client, int | None] = field(default_factory=dict)  # live streams with their election ids
    highest: int | None = None
    primary: Client | None = None


class Arbitration:
    def __init__(self) -> None:
        self._roles: dict[str, _Role] = {}  # those without a stream in the order in which their last one ended
        self._role_of: dict[Client, str] = {}

    def holder(self, client: Client, role: str, election_id: int | None) -> Client | None:
        """Another live stream of the role that has this id."""
        clients = self._roles[role].clients if role in self._roles and election_id is not None else {}
        return next((other for other, taken in clients.items() if taken == election_id and other != client), None)

    def update(self, client: Client, role: str, election_id: int | None) -> list[Notification]:
        """A MasterArbitrationUpdate of `client`. Raises P4RuntimeError, with which its stream must end."""
        known = self._role_of.get(client)
        if known is not None and known != role:
            raise unready(f"role {role!r} differs from {known!r}, with which this stream began; open another stream")
        state = self._roles.get(role) or self._new_role(role)
        if self.holder(client, role, election_id) is not None:
            raise invalid(
                f"election id {election_id} is in use by another live controller of role {role!r}; "
                f"in use: {choices(sorted(i for i in state.clients.values() if i is not None))}"
            )
        if known is None and len(state.clients) >= STREAMS_PER_ROLE_MAX:
            raise exhausted(f"role {role!r}: there are {STREAMS_PER_ROLE_MAX} streams already, the most")
        self._roles[role] = state
        self._role_of[client] = role
        state.clients[client] = election_id
        was_primary = state.primary == client
        if election_id is not None and (state.highest is None or election_id >= state.highest):
            state.highest = election_id
            state.primary = client
            # Others first, then the new primary (rule 1.2 of the specification's second list).
            return self._notify(role, [c for c in state.clients if c != client] + [client])
        if was_primary:
            state.primary = None
            return self._notify(role, list(state.clients))
        return self._notify(role, [client])

    def _new_role(self, role: str) -> _Role:
        """A role that nothing is known about. It takes the place of the one without a stream for longest if need be.

        Raises P4RuntimeError when every role has a stream.
        """
        size = len(role.encode())
        if size > ROLE_NAME_BYTES_MAX:
            raise invalid(f"a role's name must have at most {ROLE_NAME_BYTES_MAX} bytes (got {size})")
        named = self._roles.keys() - {""}
        if role and len(named) >= ROLES_MAX:
            idle = next((name for name, state in self._roles.items() if name and not state.clients), None)
            if idle is None:
                raise exhausted(f"a device must have at most {ROLES_MAX} roles: there is no room for {role!r}")
            del self._roles[idle]
        return _Role()

    def disconnect(self, client: Client) -> list[Notification]:
        """The stream ended. Nothing to do for a client that never sent an update."""
        role = self._role_of.pop(client, None)
        if role is None:
            return []
        state = self._roles[role]
        del state.clients[client]
        if not state.clients:
            del self._roles[role]
            if state.highest is not None:
                self._roles[role] = state  # now the last of those without a stream
        if state.primary != client:
            return []
        state.primary = None
        return self._notify(role, list(state.clients))

    def _notify(self, role: str, clients: list[Client]) -> list[Notification]:
        state = self._roles[role]
        backup = Code.NOT_FOUND if state.primary is None else Code.ALREADY_EXISTS
        return [
            Notification(client, role, state.highest, Code.OK if client == state.primary else backup)
            for client in clients
        ]

    def check_write(self, role: str, election_id: int | None) -> None:
        """Raises P4RuntimeError unless (role, election id) is the primary's: NOT_FOUND, PERMISSION_DENIED."""
        state = self._roles.get(role)
        if state is None and role:
            known = choices(repr(name) for name in self._roles)
            raise not_found(f"no controller has role {role!r}; roles: {known}")
        if state is None or state.primary is None:
            raise denied(
                "there is no primary controller; open a StreamChannel and send a MasterArbitrationUpdate first"
            )
        if election_id is None or election_id != state.clients[state.primary]:
            raise denied(f"election id {election_id} is not the primary's, which is {state.highest}")

    def is_primary(self, client: Client) -> bool:
        role = self._role_of.get(client)
        return role is not None and self._roles[role].primary == client

    def primaries(self) -> list[Client]:
        """Of every role: those to whom packet-ins go."""
        return [state.primary for state in self._roles.values() if state.primary is not None]


# Packet-in and packet-out: `@controller_header` fields between a frame on the CPU port and PacketMetadata.
# Specification, "Packet I/O" and "ControllerPacketMetadata". The fields stand before the frame in the order and with
# the widths of P4Info, from the most significant bit, as simple_switch_grpc does.
def packet_in(header: PacketHeader | None, frame: bytes) -> Any:
    """A PacketIn message from a frame that left by the CPU port; None when it is shorter than its header."""
    if header is None:
        return p4rt.PacketIn(payload=frame)
    size = (header.bits + 7) // 8
    if len(frame) < size:
        return None
    value = int.from_bytes(frame[:size], "big") >> size * 8 - header.bits
    message = p4rt.PacketIn(payload=frame[size:])
    left = header.bits
    for part in header.fields:
        left -= part.width
        message.metadata.add(metadata_id=part.id, value=part.value(value >> left & (1 << part.width) - 1))
    return message


def packet_out(header: PacketHeader | None, payload: bytes, metadata: Iterable[Any]) -> bytes:
    """The frame that arrives at the CPU port for a PacketOut. Raises P4RuntimeError."""
    given: dict[int, int] = {}
    known = {field.id: field for field in header.fields} if header else {}
    valid = choices(f"{field.id} {field}" for field in known.values())
    for item in metadata:
        field = known.get(item.metadata_id)
        if field is None:
            raise invalid(f"packet_out: no metadata field with id {item.metadata_id}; fields: {valid}")
        if field.id in given:
            raise invalid(f"packet_out: metadata field {field} is given twice")
        given[field.id] = field.number(item.value, f"packet_out: metadata field {field}")
    size = (header.bits + 7) // 8 if header else 0
    if size + len(payload) > FRAME_BYTES_MAX:
        raise invalid(
            f"packet_out: the frame must have at most {FRAME_BYTES_MAX} bytes with its header "
            f"(got {size + len(payload)})"
        )
    if header is None:
        return payload
    value = 0
    for field in header.fields:
        if field.id not in given:
            raise invalid(f"packet_out: metadata field {field} is missing; fields: {valid}")
        value = value << field.width | given[field.id]
    return (value << size * 8 - header.bits).to_bytes(size, "big") + payload


WAITING_MAX = 1024  # notifications and errors a stream: more are dropped, as between a switch and its CPU
UNREAD_MAX = 2 * WAITING_MAX  # of these and of arbitration updates, which cannot be dropped: then the stream ends
FLUSH_S = 1.0
NOTIFIED_MAX = 256  # idle entries in one message

_IDLE = wire.tag(p4rt.StreamMessageResponse, "idle_timeout_notification")
_IDLE_ENTRY, _IDLE_TIMESTAMP = wire.tags(p4rt.IdleTimeoutNotification, "table_entry", "timestamp")

Respond = Callable[[Any], Awaitable[Any]]

_STATUS_WORDS = {
    Code.OK: "you are the primary",
    Code.ALREADY_EXISTS: "another controller is the primary",
    Code.NOT_FOUND: "there is no primary",
}


def find_device(devices: Devices, device_id: int) -> Device:
    """Raises P4RuntimeError (NOT_FOUND) naming the devices that exist."""
    device = devices.get(device_id)
    if device is None:
        known = choices(f"{d.device_id} ({d.name})" for d in devices)
        raise not_found(f"no device with id {device_id}; devices: {known}")
    return device


def store_of(device: Device) -> EntityStore:
    """Raises P4RuntimeError (FAILED_PRECONDITION) when the device has no pipeline."""
    store = loaded(device)
    if store is None:
        raise unready(f"device {device.name} has no forwarding pipeline; set one with SetForwardingPipelineConfig")
    return store


def numbered_role(role_id: int) -> str:
    """Clients of P4Runtime before 1.4 number their roles."""
    return f"#{role_id}" if role_id else ""


def election_id(message: Any) -> int | None:
    """The 128-bit number in a message; None when it is not set, which never wins."""
    if not message.HasField("election_id"):
        return None
    return int(message.election_id.high << 64 | message.election_id.low)


class StreamClient:
    """One StreamChannel."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.device: Device | None = None
        self.outgoing: asyncio.Queue[Any] = asyncio.Queue()
        self.ended: asyncio.Future[P4RuntimeError] = loop.create_future()
        self.gone: asyncio.Future[None] = loop.create_future()
        """Done when its device has no more of it."""

    def send(self, message: Any) -> None:
        """Send a message that the client must not miss; a client that does not read is cut off."""
        if self.outgoing.qsize() < UNREAD_MAX:
            self.outgoing.put_nowait(message)
        else:
            self.end(exhausted(f"{UNREAD_MAX} messages wait to be read, the most"))

    def offer(self, message: Any) -> None:
        """Send, unless the client is too slow to take what waits already."""
        if self.outgoing.qsize() < WAITING_MAX:
            self.outgoing.put_nowait(message)

    def end(self, error: P4RuntimeError) -> None:
        """Close the stream with this error, unless it is being closed with another."""
        if not self.ended.done():
            self.ended.set_result(error)


class Streams:
    """The streams of all devices, and who is primary of which."""

    def __init__(self, devices: Devices, loop: asyncio.AbstractEventLoop) -> None:
        self._devices = devices
        self._loop = loop
        self._arbitration: dict[int, Arbitration] = {}
        self._clients: dict[int, set[StreamClient]] = {}
        self._arrived: deque[tuple[Device, bytes, int]] = deque(maxlen=WAITING_MAX)
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._delivering = False

    def arbiter(self, device: Device) -> Arbitration:
        return self._arbitration.setdefault(device.device_id, Arbitration())

    def forget(self, device: Device, reason: str) -> None:
        """The device restarts or goes: its streams end, and so does what they were elected with."""
        self._arbitration.pop(device.device_id, None)
        for client in self._clients.pop(device.device_id, set()):
            client.end(P4RuntimeError(Code.UNAVAILABLE, reason))

    def end_all(self, reason: str) -> None:
        for clients in self._clients.values():
            for client in clients:
                client.end(P4RuntimeError(Code.UNAVAILABLE, reason))

    async def serve(self, requests: AsyncIterator[Any], respond: Respond) -> None:
        """One stream from its beginning to its end. Raises P4RuntimeError when it must end with an error."""
        client = StreamClient(self._loop)
        reader = asyncio.ensure_future(self._receive(client, requests))
        writer = asyncio.ensure_future(_send(client, respond))
        tasks: set[asyncio.Future[Any]] = {reader, writer, client.ended}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            error = client.ended.result() if client.ended.done() else None
            if error is None and reader.done() and not reader.cancelled():
                failure = reader.exception()
                error = failure if isinstance(failure, P4RuntimeError) else None
        finally:
            reader.cancel()
            self._disconnected(client)
            client.outgoing.put_nowait(None)
            await asyncio.wait({writer}, timeout=FLUSH_S)  # what was said before the end is still delivered
            writer.cancel()
        if error is not None:
            raise error

    async def _receive(self, client: StreamClient, requests: AsyncIterator[Any]) -> None:
        async for request in requests:
            which = request.WhichOneof("update")
            if which == "arbitration":
                await self._arbitrate(client, request.arbitration)
                continue
            try:
                if which == "packet":
                    self._packet_out(self._led_by(client, "send packets"), request.packet)
                elif which == "digest_ack":
                    device, ack = self._led_by(client, "acknowledge digests"), request.digest_ack
                    store_of(device).digests.acknowledge(ack.digest_id, ack.list_id)
                else:
                    what = which or "an empty message"
                    raise invalid(f"{what} is not supported; use arbitration, packet or digest_ack")
            except (P4RuntimeError, EngineError) as refused:
                response = p4rt.StreamMessageResponse()
                error = refused if isinstance(refused, P4RuntimeError) else P4RuntimeError(Code.INTERNAL, str(refused))
                response.error.canonical_code, response.error.message = int(error.code), error.message
                if which == "packet":
                    response.error.packet_out.packet_out.CopyFrom(request.packet)
                elif which == "digest_ack":
                    response.error.digest_list_ack.digest_list_ack.CopyFrom(request.digest_ack)
                else:
                    response.error.other.SetInParent()
                client.offer(response)

    def _led_by(self, client: StreamClient, what: str) -> Device:
        """The device of a primary. Raises P4RuntimeError for any other client."""
        device = client.device
        if device is None or not self.arbiter(device).is_primary(client):
            raise denied(f"only a primary controller may {what}")
        return device

    async def _arbitrate(self, client: StreamClient, update: Any) -> None:
        if client.device is None:
            client.device = find_device(self._devices, update.device_id)
            self._clients.setdefault(update.device_id, set()).add(client)
        elif client.device.device_id != update.device_id:
            raise unready(
                f"device id {update.device_id} differs from {client.device.device_id}, with which this stream began"
            )
        if update.HasField("role") and update.role.HasField("config"):
            raise invalid(f"role {update.role.name!r}: role configurations are not supported; leave role.config unset")
        role = (update.role.name or numbered_role(update.role.id)) if update.HasField("role") else ""
        number = election_id(update)
        holder = self.arbiter(client.device).holder(client, role, number)
        if isinstance(holder, StreamClient):
            await asyncio.wait({holder.gone}, timeout=HANDOVER_S)
        self._notify(client.device, self.arbiter(client.device).update(client, role, number))
        store = loaded(client.device)
        if store is not None and self.arbiter(client.device).is_primary(client):
            store.digests.forget()

    def _notify(self, device: Device, notifications: list[Notification]) -> None:
        for item in notifications:
            response = p4rt.StreamMessageResponse()
            update = response.arbitration
            update.device_id = device.device_id
            if item.role:
                update.role.name = item.role
            if item.election_id is not None:
                update.election_id.high, update.election_id.low = (
                    item.election_id >> 64,
                    item.election_id & (1 << 64) - 1,
                )
            update.status.code = int(item.status)
            update.status.message = _STATUS_WORDS[item.status]
            assert isinstance(item.client, StreamClient)
            item.client.send(response)

    def _disconnected(self, client: StreamClient) -> None:
        device = client.device
        if device is None:
            return
        self._clients.get(device.device_id, set()).discard(client)
        arbiter = self._arbitration.get(device.device_id)
        if arbiter is not None:
            self._notify(device, arbiter.disconnect(client))
        client.gone.set_result(None)

    # --- packets ----------------------------------------------------------------------------------------------------

    def _packet_out(self, device: Device, packet: Any) -> None:
        header = store_of(device).pipeline.p4info.packet_out
        frame = packet_out(header, packet.payload, packet.metadata)
        device.data_plane.packet_out(device.device_id, frame)

    def arrived(self, device: Device, data: bytes, learned: int = 0) -> None:
        """As PacketIn. The bounded queue drops the oldest when controllers cannot keep up; digests from the half on."""
        if learned and len(self._arrived) >= WAITING_MAX // 2:
            return
        self._arrived.append((device, data, learned))
        if not self._delivering and not self._loop.is_closed():
            self._delivering = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._delivering = False  # first: messages that arrive from here on are delivered now or schedule another turn
        learning: dict[int, Device] = {}
        while self._arrived:
            device, data, learned = self._arrived.popleft()
            store = loaded(device)
            if store is None:
                continue
            if learned:
                store.digests.arrived(learned, data, store.now_ns())
                learning[device.device_id] = device
            elif (message := packet_in(store.pipeline.p4info.packet_in, data)) is not None:
                self._offer(device, p4rt.StreamMessageResponse(packet=message))
        for device in learning.values():
            self.attend(device)

    def _offer(self, device: Device, message: Any) -> bool:
        """To the primaries of all roles. Returns whether there are any."""
        arbiter = self._arbitration.get(device.device_id)
        clients = arbiter.primaries() if arbiter is not None else []
        for client in clients:
            assert isinstance(client, StreamClient)
            client.offer(message)
        return bool(clients)

    # --- digests and idle entries -----------------------------------------------------------------------------------

    def attend(self, device: Device) -> None:
        """Tell what is due of a device's digests and idle entries, and come back when more is."""
        timer = self._timers.pop(device.device_id, None)
        if timer is not None:
            timer.cancel()
        store = loaded(device)
        if store is None:
            return
        now_ns = store.now_ns()
        with suppress(EngineError):  # the device is being removed
            expired = store.idle.expired(now_ns)
            for first in range(0, len(expired), NOTIFIED_MAX):
                self._offer(device, _idle(store, expired[first : first + NOTIFIED_MAX]))
        for due in store.digests.due(now_ns, time.time_ns()):
            if not self._offer(device, due):
                store.digests.forget()
        next_ns = min((t for t in (store.digests.next_ns, store.idle.next_ns) if t is not None), default=None)
        if next_ns is not None:
            wait_s = max(next_ns - now_ns, 0) / 1e9
            self._timers[device.device_id] = self._loop.call_later(wait_s, self.attend, device)


def _idle(store: EntityStore, expired: list[tuple[TableInfo, StoredEntry]]) -> bytes:
    """A serialised StreamMessageResponse about idle entries."""
    entries = (wire.block(_IDLE_ENTRY, encode_entry(store, table, row)) for table, row in expired)
    return wire.block(_IDLE, b"".join(entries) + wire.number(_IDLE_TIMESTAMP, time.time_ns()))


async def _send(client: StreamClient, respond: Respond) -> None:
    while (message := await client.outgoing.get()) is not None:
        await respond(message)
