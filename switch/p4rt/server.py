"""The gRPC server: one address, many device ids.

Everything runs in one asyncio loop: requests about a device are handled one after the other, which gives the strict
serialisability that the specification asks of writes. A long Read pauses between its parts; then only requests about
its device wait. A long answer is sent meanwhile. Reading a new pipeline (parse, compile) leaves the loop.
This is one of the two files that import gRPC.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from switch.device import Device, DeviceEvent, Devices
from switch.engine import Engine, EngineError
from switch.p4rt import batch, wire
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.errors import Code, P4RuntimeError, exhausted, invalid, not_found, unimplemented
from switch.p4rt.limits import (
    ASIDE_BYTES,
    FIELDS_MAX,
    MESSAGE_BYTES_MAX,
    MESSAGE_BYTES_MIN,
    REQUEST_BYTES_MAX,
    STREAM_BYTES_MAX,
)
from switch.p4rt.pipeline import ForwardingPipeline, PipelineCache, ProgramLoader
from switch.p4rt.saved import SavedPipeline
from switch.p4rt.store import EntityStore, loaded
from switch.p4rt.streams import Streams, election_id, find_device, numbered_role, store_of

AHEAD_BYTES = 4 << 20
"""Of an answer, collected before its client takes any: all of most answers."""
PATIENCE_S = 10.0
"""A device waits so long for the client of a longer answer, at most; it earns a second with each PACE_BYTES taken."""
PACE_BYTES = 1 << 20
HURRY_S = 1.0
"""All other long requests, of whichever device, wait so long for the client of a long Read request, altogether."""


class Answer:
    """Messages in their order. No more than AHEAD_BYTES and one message wait here, however many a Read asks for.

    `add` to a longer answer waits until the client has taken the first of it. Writes to the device wait as well, so a
    client that is too slow loses its answer.
    """

    def __init__(self, send: Callable[[bytes], Awaitable[Any]], hurried: bool = False) -> None:
        """`hurried`: requests about other devices wait as well, so the client has HURRY_S for all of it."""
        self._send = send
        self._hurried = hurried
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._left_s = HURRY_S if hurried else PATIENCE_S

    async def add(self, message: bytes) -> None:
        """Raises P4RuntimeError (RESOURCE_EXHAUSTED) when the client is too slow."""
        self._waiting.append(message)
        self._size += len(message)
        while self._size > AHEAD_BYTES:
            began_s = time.monotonic()
            first = self._waiting.popleft()
            try:
                await asyncio.wait_for(self._send(first), max(self._left_s, 0.0))
            except TimeoutError:
                if self._hurried:
                    raise exhausted(
                        f"the client of a Read request above {ASIDE_BYTES} bytes must take an answer above"
                        f" {AHEAD_BYTES} bytes at once; ask for fewer entities"
                    ) from None
                raise exhausted(
                    f"the client of a Read must take at least {PACE_BYTES} bytes per second of an answer that is longer"
                    f" than {AHEAD_BYTES} bytes; ask for fewer entities"
                ) from None
            self._size -= len(first)
            earned_s = (0.0 if self._hurried else len(first) / PACE_BYTES) - (time.monotonic() - began_s)
            self._left_s = min(self._left_s + earned_s, PATIENCE_S)

    async def flush(self) -> None:
        """Send the rest, at the client's pace."""
        while self._waiting:
            await self._send(self._waiting.popleft())


API_VERSION = "1.4.1"  # of the P4Runtime bindings
SERVICE = "p4.v1.P4Runtime"

SetRequest = p4rt.SetForwardingPipelineConfigRequest
GetRequest = p4rt.GetForwardingPipelineConfigRequest
_CONFIG_FIELD = SetRequest.DESCRIPTOR.fields_by_name["config"].number
_GET_CONFIG = wire.tag(p4rt.GetForwardingPipelineConfigResponse, "config")
_ACTIONS = (
    SetRequest.VERIFY,
    SetRequest.VERIFY_AND_SAVE,
    SetRequest.VERIFY_AND_COMMIT,
    SetRequest.COMMIT,
    SetRequest.RECONCILE_AND_COMMIT,
)
_STATUS_DETAILS = "grpc-status-details-bin"


class P4RuntimeServer:
    """Serves the devices of a table. `start` and `stop` belong to one running loop."""

    def __init__(
        self, devices: Devices, load_program: ProgramLoader, spare_engine: Callable[[], Engine] | None = None
    ) -> None:
        """`spare_engine` makes the engines of pipelines that are saved; the reference by default."""
        self._devices = devices
        self._spare_engine = spare_engine or _reference_engine
        self._saved: dict[int, SavedPipeline] = {}
        self._pipelines = PipelineCache(load_program)
        self._turns: dict[int, asyncio.Lock] = {}
        self._long = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop
        self._streams: Streams
        self._server: Any

    async def start(self, address: str) -> int:
        """Listen on `host:port` and return the port. Raises OSError when it cannot be had."""
        self._loop = asyncio.get_running_loop()
        self._streams = Streams(self._devices, self._loop)
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
        self._streams.end_all("the server shuts down")
        await self._server.stop(grace=0.5)

    def _handlers(self) -> dict[str, Any]:
        def unary(function: Any, request: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(function, request, _as_is)

        return {
            "Write": unary(self._write, _as_is),
            "Read": grpc.unary_stream_rpc_method_handler(self._read, _as_is, _as_is),
            "SetForwardingPipelineConfig": unary(self._set_pipeline, _as_is),
            "GetForwardingPipelineConfig": unary(self._get_pipeline, _as_is),
            "Capabilities": unary(self._capabilities, _as_is),
            "StreamChannel": grpc.stream_stream_rpc_method_handler(
                self._stream, _as_is, lambda said: said if isinstance(said, bytes) else said.SerializeToString()
            ),
        }

    # --- devices come, crash and go -------------------------------------------------------------------------------

    def _observe(self, device: Device, event: DeviceEvent) -> None:
        """Called in the thread that changed the device."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._on_device, device, event)

    def _on_device(self, device: Device, event: DeviceEvent) -> None:
        if event is DeviceEvent.ADDED:
            device.packet_in = partial(self._streams.arrived, device)
        if event in (DeviceEvent.CRASHED, DeviceEvent.REMOVED):
            self._saved.pop(device.device_id, None)
            self._streams.forget(device, f"device {device.name} was {event.value}")

    # --- unary requests ---------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _parsed(self, kind: Any, data: bytes) -> AsyncIterator[Any]:
        """A Write or Read request. P4RuntimeError when it is longer than any loaded program has use for.

        Of long requests, one at a time is parsed and carried out, so that not each client adds to the memory.
        """
        stores = [loaded(device) for device in self._devices]
        most = max((store.pipeline.message_bytes_max if store else MESSAGE_BYTES_MIN for store in stores), default=0)
        longest = min(most, REQUEST_BYTES_MAX)
        if len(data) > longest:
            raise exhausted(f"a message must have at most {longest} bytes for the loaded programs (got {len(data)})")
        if len(data) <= ASIDE_BYTES:
            yield _message(kind, data)
            return
        async with self._long:
            yield await self._loop.run_in_executor(None, _message, kind, data)

    @asynccontextmanager
    async def _turn(self, device_id: int) -> AsyncIterator[Device]:
        """The device, for one request at a time. Raises P4RuntimeError (NOT_FOUND)."""
        find_device(self._devices, device_id)
        async with self._turns.setdefault(device_id, asyncio.Lock()):
            yield find_device(self._devices, device_id)  # again: time has passed

    async def _write(self, data: bytes, context: Any) -> bytes:
        try:
            async with self._parsed(p4rt.WriteRequest, data) as request, self._turn(request.device_id) as device:
                self._streams.arbiter(device).check_write(_role_of(request), election_id(request))
                saved = self._saved.get(device.device_id)
                with device.lock:
                    self._loop.call_soon(self._streams.attend, device)
                    saved.write(request) if saved else batch.write(store_of(device), request)
        except batch.BatchError as error:
            await _abort_batch(context, error)
        except P4RuntimeError as error:
            await _abort(context, error)
        return b""

    async def _read(self, data: bytes, context: Any) -> None:
        answer = Answer(context.write, hurried=len(data) > ASIDE_BYTES)
        try:
            # Collected in the device's turn, as the specification asks. All but a long answer is sent after: a slow
            # reader then delays no other.
            async with self._parsed(p4rt.ReadRequest, data) as request, self._turn(request.device_id) as device:
                await _collect(lambda: self._store(device), device, request, answer)
        except batch.BatchError as error:
            await answer.flush()
            await _abort_batch(context, error)
        except P4RuntimeError as error:
            await _abort(context, error)
        await answer.flush()

    async def _capabilities(self, data: bytes, context: Any) -> bytes:
        try:
            _message(p4rt.CapabilitiesRequest, data)
        except P4RuntimeError as error:
            await _abort(context, error)
        return bytes(p4rt.CapabilitiesResponse(p4runtime_api_version=API_VERSION).SerializeToString())

    async def _get_pipeline(self, data: bytes, context: Any) -> bytes:
        try:
            request = _message(GetRequest, data)
            device = find_device(self._devices, request.device_id)
        except P4RuntimeError as error:
            await _abort(context, error)
        store = loaded(device)
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
        except batch.BatchError as error:
            await _abort_batch(context, error)
        except EngineError as error:
            await _abort(context, invalid(f"pipeline config: the program cannot be run: {error}"))
        return b""

    async def _set_pipeline_checked(self, data: bytes) -> None:
        request, config = _split_set_request(data)
        device = find_device(self._devices, request.device_id)
        self._streams.arbiter(device).check_write(_role_of(request), election_id(request))
        action = request.action
        if action not in _ACTIONS:
            raise invalid(f"pipeline action {action} must be one of {', '.join(map(SetRequest.Action.Name, _ACTIONS))}")
        pipeline = None
        if action == SetRequest.COMMIT:
            if config is not None:
                raise invalid("pipeline config: must be left out to COMMIT the pipeline that is saved")
        elif config is None:
            raise invalid("pipeline config: is missing")
        else:
            pipeline = await self._loop.run_in_executor(None, self._read_pipeline, config)
        if action == SetRequest.VERIFY:
            return
        saved = None
        if action == SetRequest.VERIFY_AND_SAVE:
            assert pipeline is not None
            saved = await self._loop.run_in_executor(None, SavedPipeline, pipeline, self._spare_engine())
        async with self._turn(request.device_id) as device:
            # Time has passed: the device may be gone, or the primary another.
            self._streams.arbiter(device).check_write(_role_of(request), election_id(request))
            with device.lock:
                if device.removed:
                    raise not_found(f"device {device.name} has been removed")
                if saved is not None:
                    self._saved[device.device_id] = saved
                    return
                self._loop.call_soon(self._streams.attend, device)
                if pipeline is None:
                    if device.device_id not in self._saved:
                        raise not_found(f"device {device.name} has no saved pipeline; save one with VERIFY_AND_SAVE")
                    saved = self._saved[device.device_id]
                    device.store = store = saved.load(device.engine, device.data_plane.now_ns)
                    # From here on the engine has the program, also if it cannot carry out one of the writes.
                    self._saved.pop(device.device_id).write_again(store)
                elif action == SetRequest.RECONCILE_AND_COMMIT:
                    _reconcile(device, pipeline)
                else:
                    store = EntityStore(pipeline, device.engine, device.data_plane.now_ns)
                    device.engine.load(pipeline.program)  # last: what is refused before leaves the device as it was
                    device.store = store
                self._saved.pop(device.device_id, None)

    def _store(self, device: Device) -> EntityStore:
        """What Read and Write refer to: the pipeline that was saved last, else the one that is loaded."""
        saved = self._saved.get(device.device_id)
        return saved.store if saved else store_of(device)

    def _read_pipeline(self, config: bytes) -> ForwardingPipeline:
        """Parse and compile. This may take seconds, and is done once for each distinct config."""
        pipeline = self._pipelines.read(config)
        try:
            self._devices.data_plane.prepare(pipeline.program)
        except Exception as error:  # anything that stops a compiler: the controller must be told, not only our log
            raise P4RuntimeError(Code.INTERNAL, f"pipeline config: the program cannot be prepared: {error}") from error
        return pipeline

    async def _stream(self, requests: AsyncIterator[Any], context: Any) -> None:
        try:
            await self._streams.serve(_stream_requests(requests), context.write)
        except P4RuntimeError as error:
            await _abort(context, error)


def _reference_engine() -> Engine:
    from switch.reference.engine import ReferenceEngine  # rarely needed

    return ReferenceEngine()


def _as_is(data: bytes) -> bytes:
    return data


def _message(kind: Any, data: bytes) -> Any:
    try:
        return kind.FromString(data)
    except (DecodeError, RecursionError) as error:
        raise invalid(f"{kind.DESCRIPTOR.name}: must be a protobuf message ({error})") from None


async def _stream_requests(messages: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    """The messages of a stream. P4RuntimeError for one that is too long, or none."""
    async for data in messages:
        if len(data) > STREAM_BYTES_MAX:
            raise exhausted(f"a message of a stream must have at most {STREAM_BYTES_MAX} bytes (got {len(data)})")
        yield _message(p4rt.StreamMessageRequest, data)


async def _collect(store: Callable[[], EntityStore], device: Device, request: Any, answer: Answer) -> None:
    """The answers to a Read, in the device's turn: no Write comes in between, but the control socket may crash it."""
    with device.lock:
        blocks = batch.read(store(), request)
    while True:
        with device.lock:
            store()
            block = next(blocks, None)
        if block is None:
            return
        if block:
            await answer.add(block)
        await asyncio.sleep(0)


def _role_of(request: Any) -> str:
    return request.role or numbered_role(request.role_id)


def _split_set_request(data: bytes) -> tuple[Any, bytes | None]:
    """The request without its config, and the config's bytes: hundreds of devices are sent the same large one."""
    config = None
    start = 0
    rest = bytearray()
    for number, kind, payload, end in wire.fields(data, FIELDS_MAX):
        if number == _CONFIG_FIELD and kind == wire.LENGTH:
            config = data[payload:end]
        else:
            rest += data[start:end]
        start = end
    return _message(SetRequest, bytes(rest)), config


def _reconcile(device: Device, pipeline: ForwardingPipeline) -> None:
    store = loaded(device)
    if store is None or store.pipeline.digest != pipeline.digest:
        raise unimplemented(
            "RECONCILE_AND_COMMIT is supported only for the pipeline that is already loaded; use VERIFY_AND_COMMIT"
        )
    store.pipeline = pipeline


async def _abort(context: Any, error: P4RuntimeError) -> None:
    await context.abort(_GRPC_CODES[error.code], error.message)


async def _abort_batch(context: Any, error: batch.BatchError) -> None:
    await context.abort(
        grpc.StatusCode.UNKNOWN, str(error), trailing_metadata=((_STATUS_DETAILS, error.status_bytes()),)
    )


_GRPC_CODES = {code: next(c for c in grpc.StatusCode if c.value[0] == int(code)) for code in Code}
