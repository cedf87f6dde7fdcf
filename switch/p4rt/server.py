"""The gRPC server: one address, many device ids.

Everything runs in one asyncio loop: requests of all devices are handled one after the other, which gives the strict
serialisability that the specification asks of writes. Only reading a new pipeline (parse, compile) leaves the loop.
This is one of the two files that import gRPC.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import grpc
from p4.v1 import p4runtime_pb2 as p4rt

from switch.device import Device, DeviceEvent, DeviceTable
from switch.engine import EngineError
from switch.p4rt import batch, packetio, wire
from switch.p4rt.arbitration import Arbitration, Notification
from switch.p4rt.errors import Code, P4RuntimeError, choices, invalid
from switch.p4rt.pipeline import Pipeline, PipelineCache, ProgramLoader
from switch.p4rt.store import Store

API_VERSION = "1.4.1"  # of the P4Runtime bindings
SERVICE = "p4.v1.P4Runtime"
MESSAGE_BYTES_MAX = 64 * 1024 * 1024
PACKET_INS_WAITING_MAX = 1024  # per stream; more are dropped, as between a switch and its CPU
FLUSH_S = 1.0

SetRequest = p4rt.SetForwardingPipelineConfigRequest
GetRequest = p4rt.GetForwardingPipelineConfigRequest
_CONFIG_FIELD = SetRequest.DESCRIPTOR.fields_by_name["config"].number
_GET_CONFIG = wire.tag(p4rt.GetForwardingPipelineConfigResponse, "config")
_STATUS_DETAILS = "grpc-status-details-bin"

log = logging.getLogger(__name__)


class _Client:
    """One StreamChannel."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.device: Device | None = None
        self.outgoing: asyncio.Queue[Any] = asyncio.Queue()
        self.ended: asyncio.Future[P4RuntimeError] = loop.create_future()

    def send(self, message: Any) -> None:
        self.outgoing.put_nowait(message)

    def end(self, error: P4RuntimeError) -> None:
        if not self.ended.done():
            self.ended.set_result(error)


class P4RuntimeServer:
    """Serves the devices of a table. `start` and `stop` belong to one running loop."""

    def __init__(self, devices: DeviceTable, load_program: ProgramLoader) -> None:
        self._devices = devices
        self._pipelines = PipelineCache(load_program)
        self._arbitration: dict[int, Arbitration] = {}
        self._clients: dict[int, set[_Client]] = {}
        self._packet_ins: deque[tuple[Device, bytes]] = deque(maxlen=PACKET_INS_WAITING_MAX)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Any = None

    async def start(self, address: str) -> int:
        """Listen on `host:port` and return the port. Raises OSError when it cannot be had."""
        self._loop = asyncio.get_running_loop()
        self._server = grpc.aio.server(
            options=(
                ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
                ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
                ("grpc.so_reuseport", 0),  # a second server on this address must fail, not share it
            )
        )
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, self._handlers()),))
        try:
            port = int(self._server.add_insecure_port(address))
        except RuntimeError as error:
            raise OSError(f"cannot listen on {address}: {error}") from None
        if not port:
            raise OSError(f"cannot listen on {address}")
        for device in self._devices:
            self._on_device(device, DeviceEvent.ADDED)
        self._devices.observe(self._observe)
        await self._server.start()
        return port

    async def stop(self) -> None:
        for clients in self._clients.values():
            for client in clients:
                client.end(P4RuntimeError(Code.UNAVAILABLE, "the server shuts down"))
        await self._server.stop(grace=0.5)

    def _handlers(self) -> dict[str, Any]:
        def unary(function: Any, request: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(function, request, _as_is)

        return {
            "Write": unary(self._write, p4rt.WriteRequest.FromString),
            "Read": grpc.unary_stream_rpc_method_handler(self._read, p4rt.ReadRequest.FromString, _as_is),
            "SetForwardingPipelineConfig": unary(self._set_pipeline, _as_is),
            "GetForwardingPipelineConfig": unary(self._get_pipeline, GetRequest.FromString),
            "Capabilities": unary(self._capabilities, p4rt.CapabilitiesRequest.FromString),
            "StreamChannel": grpc.stream_stream_rpc_method_handler(
                self._stream, p4rt.StreamMessageRequest.FromString, p4rt.StreamMessageResponse.SerializeToString
            ),
        }

    # --- devices come, crash and go -------------------------------------------------------------------------------

    def _observe(self, device: Device, event: DeviceEvent) -> None:
        """Called in the thread that changed the device."""
        assert self._loop is not None
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._on_device, device, event)

    def _on_device(self, device: Device, event: DeviceEvent) -> None:
        if event is DeviceEvent.ADDED:
            device.packet_in = lambda frame: self._packet_in_arrived(device, frame)
        if event in (DeviceEvent.CRASHED, DeviceEvent.REMOVED):
            self._arbitration.pop(device.device_id, None)
            for client in self._clients.pop(device.device_id, set()):
                client.end(P4RuntimeError(Code.UNAVAILABLE, f"device {device.name} was {event.value}"))

    def _find(self, device_id: int) -> Device:
        device = self._devices.get(device_id)
        if device is None:
            known = choices(f"{d.device_id} ({d.name})" for d in self._devices)
            raise P4RuntimeError(Code.NOT_FOUND, f"no device with id {device_id}; devices: {known}")
        return device

    def _arbiter(self, device: Device) -> Arbitration:
        return self._arbitration.setdefault(device.device_id, Arbitration())

    @staticmethod
    def _store(device: Device) -> Store:
        store = device.store
        if store is None:
            raise P4RuntimeError(
                Code.FAILED_PRECONDITION,
                f"device {device.name} has no forwarding pipeline; set one with SetForwardingPipelineConfig",
            )
        return store

    # --- unary requests ---------------------------------------------------------------------------------------------

    async def _write(self, request: Any, context: Any) -> bytes:
        try:
            device = self._find(request.device_id)
            self._arbiter(device).check_write(_role_of(request), _election_id(request))
            with device.lock:
                batch.write(self._store(device), request)
        except batch.BatchError as error:
            await _abort_batch(context, error)
        except P4RuntimeError as error:
            await _abort(context, error)
        return b""

    async def _read(self, request: Any, context: Any) -> AsyncIterator[bytes]:
        responses: list[bytes] = []
        try:
            device = self._find(request.device_id)
            # Collected under the lock, as the specification asks, and sent without it: a slow reader holds up nobody.
            with device.lock:
                responses.extend(batch.read(self._store(device), request))
        except batch.BatchError as error:
            for response in responses:
                yield response
            await _abort_batch(context, error)
        except P4RuntimeError as error:
            await _abort(context, error)
        for response in responses:
            yield response

    async def _capabilities(self, request: Any, context: Any) -> bytes:
        return bytes(p4rt.CapabilitiesResponse(p4runtime_api_version=API_VERSION).SerializeToString())

    async def _get_pipeline(self, request: Any, context: Any) -> bytes:
        try:
            device = self._find(request.device_id)
        except P4RuntimeError as error:
            await _abort(context, error)
        store = device.store
        if store is None:
            return b""
        kind = request.response_type
        config = store.pipeline.config_bytes(
            p4info=kind in (GetRequest.ALL, GetRequest.P4INFO_AND_COOKIE),
            device_config=kind in (GetRequest.ALL, GetRequest.DEVICE_CONFIG_AND_COOKIE),
        )
        return wire.block(_GET_CONFIG, config)

    async def _set_pipeline(self, data: bytes, context: Any) -> bytes:
        try:
            await self._set_pipeline_checked(data)
        except P4RuntimeError as error:
            await _abort(context, error)
        except EngineError as error:
            await _abort(context, invalid(f"pipeline config: the program cannot be run: {error}"))
        return b""

    async def _set_pipeline_checked(self, data: bytes) -> None:
        request, config = _split_set_request(data)
        device = self._find(request.device_id)
        self._arbiter(device).check_write(_role_of(request), _election_id(request))
        action = request.action
        if action not in (SetRequest.VERIFY, SetRequest.VERIFY_AND_COMMIT, SetRequest.RECONCILE_AND_COMMIT):
            code = Code.INVALID_ARGUMENT if action == SetRequest.UNSPECIFIED else Code.UNIMPLEMENTED
            raise P4RuntimeError(
                code,
                f"pipeline action {SetRequest.Action.Name(action)} is not supported; supported: VERIFY, "
                "VERIFY_AND_COMMIT, and RECONCILE_AND_COMMIT of the pipeline that is already loaded",
            )
        if config is None:
            raise invalid("pipeline config: is missing")
        assert self._loop is not None
        pipeline = await self._loop.run_in_executor(None, self._read_pipeline, config)
        if action == SetRequest.VERIFY:
            return
        # Time has passed: the device may be gone, or the primary another.
        device = self._find(request.device_id)
        self._arbiter(device).check_write(_role_of(request), _election_id(request))
        with device.lock:
            if action == SetRequest.RECONCILE_AND_COMMIT:
                _reconcile(device, pipeline)
                return
            device.engine.load(pipeline.program)
            device.store = Store(pipeline, device.engine)

    def _read_pipeline(self, config: bytes) -> Pipeline:
        """Parse and compile: what may take seconds, and is done once for each distinct config."""
        pipeline = self._pipelines.read(config)
        try:
            self._devices.data_plane.prepare(pipeline.program)
        except Exception as error:  # whatever stops a compiler: the controller must be told, not only our log
            raise P4RuntimeError(Code.INTERNAL, f"pipeline config: the program cannot be prepared: {error}") from error
        return pipeline

    # --- streams ----------------------------------------------------------------------------------------------------

    async def _stream(self, requests: AsyncIterator[Any], context: Any) -> None:
        client = _Client(asyncio.get_running_loop())
        reader = asyncio.ensure_future(self._receive(client, requests))
        writer = asyncio.ensure_future(_send(client, context))
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
            client.send(None)
            await asyncio.wait({writer}, timeout=FLUSH_S)  # what was said before the end is still delivered
            writer.cancel()
        if error is not None:
            await _abort(context, error)

    async def _receive(self, client: _Client, requests: AsyncIterator[Any]) -> None:
        async for request in requests:
            which = request.WhichOneof("update")
            if which == "arbitration":
                self._arbitrate(client, request.arbitration)
            elif which == "packet":
                self._packet_out(client, request.packet)
            else:
                response = p4rt.StreamMessageResponse()
                response.error.canonical_code = int(Code.INVALID_ARGUMENT)
                response.error.message = f"{which or 'an empty message'} is not supported; use arbitration or packet"
                if which == "digest_ack":
                    response.error.digest_list_ack.digest_list_ack.CopyFrom(request.digest_ack)
                else:
                    response.error.other.SetInParent()
                client.send(response)

    def _arbitrate(self, client: _Client, update: Any) -> None:
        if client.device is None:
            client.device = self._find(update.device_id)
            self._clients.setdefault(update.device_id, set()).add(client)
        elif client.device.device_id != update.device_id:
            raise P4RuntimeError(
                Code.FAILED_PRECONDITION,
                f"device id {update.device_id} differs from {client.device.device_id}, with which this stream began",
            )
        if update.HasField("role") and update.role.HasField("config"):
            raise invalid(f"role {update.role.name!r}: role configurations are not supported; leave role.config unset")
        role = (update.role.name or _numbered(update.role.id)) if update.HasField("role") else ""
        self._notify(client.device, self._arbiter(client.device).update(client, role, _election_id(update)))

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
            assert isinstance(item.client, _Client)
            item.client.send(response)

    def _disconnected(self, client: _Client) -> None:
        device = client.device
        if device is None:
            return
        self._clients.get(device.device_id, set()).discard(client)
        arbiter = self._arbitration.get(device.device_id)
        if arbiter is not None:
            self._notify(device, arbiter.disconnect(client))

    # --- packets ----------------------------------------------------------------------------------------------------

    def _packet_out(self, client: _Client, packet: Any) -> None:
        try:
            device = client.device
            if device is None or not self._arbiter(device).is_primary(client):
                raise P4RuntimeError(Code.PERMISSION_DENIED, "only a primary controller may send packets")
            header = self._store(device).pipeline.p4info.packet_out
            frame = packetio.packet_out(header, packet.payload, packet.metadata)
            device.data_plane.packet_out(device.device_id, frame)
        except (P4RuntimeError, EngineError) as error:
            response = p4rt.StreamMessageResponse()
            code, text = (
                (error.code, error.message) if isinstance(error, P4RuntimeError) else (Code.INTERNAL, str(error))
            )
            response.error.canonical_code = int(code)
            response.error.message = text
            response.error.packet_out.packet_out.CopyFrom(packet)
            client.send(response)

    def _packet_in_arrived(self, device: Device, frame: bytes) -> None:
        """Called from any thread. The bounded queue drops the oldest when controllers cannot keep up."""
        assert self._loop is not None
        self._packet_ins.append((device, frame))
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._deliver_packet_ins)

    def _deliver_packet_ins(self) -> None:
        while self._packet_ins:
            device, frame = self._packet_ins.popleft()
            arbiter, store = self._arbitration.get(device.device_id), device.store
            if arbiter is None or store is None:
                continue
            message = packetio.packet_in(store.pipeline.p4info.packet_in, frame)
            if message is None:
                continue
            for client in arbiter.primaries():
                assert isinstance(client, _Client)
                if client.outgoing.qsize() < PACKET_INS_WAITING_MAX:
                    client.send(p4rt.StreamMessageResponse(packet=message))


_STATUS_WORDS = {
    Code.OK: "you are the primary",
    Code.ALREADY_EXISTS: "another controller is the primary",
    Code.NOT_FOUND: "there is no primary",
}


def _as_is(data: bytes) -> bytes:
    return data


def _numbered(role_id: int) -> str:
    """Clients of P4Runtime before 1.4 number their roles."""
    return f"#{role_id}" if role_id else ""


def _role_of(request: Any) -> str:
    return request.role or _numbered(request.role_id)


def _election_id(message: Any) -> int | None:
    if not message.HasField("election_id"):
        return None
    return int(message.election_id.high << 64 | message.election_id.low)


def _split_set_request(data: bytes) -> tuple[Any, bytes | None]:
    """The request without its config, and the config's bytes: hundreds of devices are sent the same large one."""
    config = None
    start = 0
    rest = bytearray()
    for number, kind, payload, end in wire.fields(data):
        if number == _CONFIG_FIELD and kind == wire.LENGTH:
            config = data[payload:end]
        else:
            rest += data[start:end]
        start = end
    return SetRequest.FromString(bytes(rest)), config


def _reconcile(device: Device, pipeline: Pipeline) -> None:
    if device.store is None or device.store.pipeline.digest != pipeline.digest:
        raise P4RuntimeError(
            Code.UNIMPLEMENTED,
            "RECONCILE_AND_COMMIT is supported only for the pipeline that is already loaded; use VERIFY_AND_COMMIT",
        )
    device.store.pipeline = pipeline


async def _send(client: _Client, context: Any) -> None:
    while (message := await client.outgoing.get()) is not None:
        await context.write(message)


async def _abort(context: Any, error: P4RuntimeError) -> None:
    await context.abort(_GRPC_CODES[error.code], error.message)


async def _abort_batch(context: Any, error: batch.BatchError) -> None:
    await context.abort(
        grpc.StatusCode.UNKNOWN, str(error), trailing_metadata=((_STATUS_DETAILS, error.status_bytes()),)
    )


_GRPC_CODES = {code: next(c for c in grpc.StatusCode if c.value[0] == int(code)) for code in Code}
