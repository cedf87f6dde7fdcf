"""A P4Runtime client for one switch, made to be used for hundreds: the second of the two files that import gRPC.

Requests and answers travel as bytes that `items` composes and compares. Start switch processes before the first
client exists: gRPC's threads and fork do not go together.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from google.rpc import status_pb2

from common import unix_socket
from switch.p4rt import Code, P4RuntimeError, wire
from switch.p4rt import p4runtime_pb2 as p4rt

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
import grpc

INSERT, MODIFY, DELETE = p4rt.Update.INSERT, p4rt.Update.MODIFY, p4rt.Update.DELETE
"""P4Runtime's kind of update that adds an entry."""
ELECTION_ID = 1  # p4runtime-shell's default: a later controller can be primary without knowing ours
RPC_TIMEOUT_S = 30.0
PIPELINE_TIMEOUT_S = 120.0  # the switch may compile
UPDATES_PER_WRITE = 200
MESSAGE_BYTES_MAX = 32 << 20

_SERVICE = "/p4.v1.P4Runtime/"
_SET = p4rt.SetForwardingPipelineConfigRequest
_GET = p4rt.GetForwardingPipelineConfigRequest
_SET_CONFIG = wire.tag(_SET, "config")
_WRITE_UPDATES = wire.tag(p4rt.WriteRequest, "updates")
_UPDATE_TYPE = wire.tag(p4rt.Update, "type")
_UPDATE_ENTITY = wire.tag(p4rt.Update, "entity")
_READ_ENTITIES = p4rt.ReadResponse.DESCRIPTOR.fields_by_name["entities"].number


@dataclass(frozen=True, slots=True)
class Address:
    """Where a switch is: the gRPC target and its device id there."""

    target: str
    device_id: int

    def __str__(self) -> str:
        return f"{self.target} device {self.device_id}"


class ClientError(RuntimeError):
    """A switch could not be reached, or refused; the message says which and why."""


class UnreachableError(ClientError):
    """Nothing answers at a switch's address."""


class GrpcChannels:
    """One gRPC channel a target, shared by all switches behind it. A context manager; thread-safe."""

    def __init__(self) -> None:
        self._channels: dict[str, Any] = {}
        self._lock = threading.Lock()

    def get(self, target: str) -> Any:
        """The channel to a target (`HOST:PORT` or `unix:/path`), made when first asked for.

        ClientError when another user listens on the path: gRPC itself does not ask who answers.
        """
        with self._lock:
            if target not in self._channels:
                if path := unix_socket.path_of(target):
                    _check_listener(path)
                self._channels[target] = grpc.insecure_channel(
                    target,
                    options=(
                        ("grpc.max_metadata_size", 1 << 20),  # the errors of a whole batch come as metadata
                        ("grpc.absolute_max_metadata_size", 1 << 20),
                        ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
                        ("grpc.use_local_subchannel_pool", 1),
                        ("grpc.enable_http_proxy", 0),
                    ),
                )
            return self._channels[target]

    def __enter__(self) -> GrpcChannels:
        return self

    def __exit__(self, *_: object) -> None:
        for channel in self._channels.values():
            channel.close()


def _check_listener(path: Path) -> None:
    try:
        unix_socket.connected(path).close()
    except unix_socket.ForeignSocketError as error:
        raise ClientError(f"{path} {error.strerror}") from None
    except OSError:
        pass  # no process listens: gRPC says so when it is used


class UnreadyError(ClientError):
    """A switch refused because of the state that it is in, such as one without a pipeline (FAILED_PRECONDITION)."""


class P4RuntimeClient:
    """One switch. `as_primary` opens the session that writing needs; reading needs none."""

    def __init__(self, channels: GrpcChannels, name: str, address: Address) -> None:
        self.name = name
        self.address = address
        self._channel = channels.get(address.target)
        self._requests: queue.Queue[Any] | None = None
        self._stream: Any = None
        self._election_id: Any = p4rt.Uint128(low=ELECTION_ID)

    def _call(self, method: str, request: bytes, timeout_s: float = RPC_TIMEOUT_S) -> bytes:
        call = self._channel.unary_unary(_SERVICE + method)
        with _errors(self):
            return bytes(call(request, timeout=timeout_s))

    def _nonsense(self, method: str) -> ClientError:
        return ClientError(f"{self.name} ({self.address}): the answer to {method} is no P4Runtime message")

    # --- session ----------------------------------------------------------------------------------------------------

    def as_primary(self) -> P4RuntimeClient:
        """Become primary, or raise ClientError. Use as `with client.as_primary():`; leaving ends the session."""
        self._requests = queue.Queue()
        stream = self._channel.stream_stream(
            _SERVICE + "StreamChannel",
            request_serializer=p4rt.StreamMessageRequest.SerializeToString,
            response_deserializer=p4rt.StreamMessageResponse.FromString,
        )
        self._stream = stream(iter(self._requests.get, None))
        try:
            answer = self._arbitrate(ELECTION_ID)
            if answer.status.code == Code.NOT_FOUND and _number(answer.election_id) > ELECTION_ID:
                # No client is primary, but one with a higher id once was: only that id, or a higher one, succeeds.
                answer = self._arbitrate(_number(answer.election_id))
        except ClientError:
            self.close()
            raise
        if answer.status.code != Code.OK:
            self.close()
            raise ClientError(
                f"{self.name} ({self.address}): another controller is primary, with election id "
                f"{_number(answer.election_id)}: close it (a p4runtime-shell?) and try again"
            )
        return self

    def _arbitrate(self, election_id: int) -> Any:
        """Send a MasterArbitrationUpdate; the switch's answer to it."""
        assert self._requests is not None
        request = p4rt.StreamMessageRequest()
        request.arbitration.device_id = self.address.device_id
        request.arbitration.election_id.high = election_id >> 64
        request.arbitration.election_id.low = election_id & (1 << 64) - 1
        self._election_id = request.arbitration.election_id
        self._requests.put(request)
        late = threading.Event()

        def give_up() -> None:
            late.set()
            self._stream.cancel()

        # A silent server must not hold us for ever; a stream itself has no deadline.
        timer = threading.Timer(RPC_TIMEOUT_S, give_up)
        timer.daemon = True
        timer.start()
        where = f"{self.name} ({self.address})"
        try:
            with _errors(self):
                # Packets, and errors about them, may come before the answer: an arbitration of another kind of message
                # would read as OK.
                for response in self._stream:
                    if response.WhichOneof("update") == "arbitration":
                        return response.arbitration
        except ClientError:
            if not late.is_set():
                raise
            message = f"{where}: the switch must answer an election within {RPC_TIMEOUT_S:g} s; no answer came"
            raise ClientError(message) from None
        finally:
            timer.cancel()
        raise ClientError(f"{where}: the switch ended the session without an answer to the election")

    def close(self) -> None:
        """End the session, if there is one."""
        if self._requests is not None:
            self._requests.put(None)
            self._requests = None
        if self._stream is not None:
            for _ in self._drain():
                pass
            self._stream = None

    def _drain(self) -> Iterator[Any]:
        """Wait until the server has also ended the stream: the next client then finds the election id free."""
        timer = threading.Timer(1.0, self._stream.cancel)
        timer.daemon = True
        timer.start()
        try:
            yield from self._stream
        except grpc.RpcError:
            pass
        finally:
            timer.cancel()

    def __enter__(self) -> P4RuntimeClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- pipeline ---------------------------------------------------------------------------------------------------

    def cookie(self) -> int | None:
        """The loaded pipeline's cookie; None without a pipeline, 0 for one without a cookie."""
        request = _GET(device_id=self.address.device_id, response_type=_GET.COOKIE_ONLY)
        try:
            data = self._call("GetForwardingPipelineConfig", request.SerializeToString())
        except UnreadyError:
            return None  # simple_switch_grpc answers so; the specification wants an empty answer
        try:
            response = p4rt.GetForwardingPipelineConfigResponse.FromString(data)
        except DecodeError:
            raise self._nonsense("GetForwardingPipelineConfig") from None
        return int(response.config.cookie.cookie) if response.HasField("config") else None

    def set_pipeline(self, config: bytes) -> None:
        """Load a serialised ForwardingPipelineConfig; all tables start empty."""
        request = _SET(device_id=self.address.device_id, action=_SET.VERIFY_AND_COMMIT)
        request.election_id.CopyFrom(self._election_id)
        self._call(
            "SetForwardingPipelineConfig",
            request.SerializeToString() + wire.block(_SET_CONFIG, config),
            PIPELINE_TIMEOUT_S,
        )

    # --- entries ----------------------------------------------------------------------------------------------------

    def write(self, updates: Iterable[tuple[int, bytes]], describe: Callable[[int], str]) -> int:
        """Updates as (type, serialised Entity), in batches. ClientError names failures by `describe(index)`."""
        head = p4rt.WriteRequest(device_id=self.address.device_id)
        head.election_id.CopyFrom(self._election_id)
        prefix = head.SerializeToString()
        encoded = [
            wire.block(_WRITE_UPDATES, wire.number(_UPDATE_TYPE, kind) + wire.block(_UPDATE_ENTITY, body))
            for kind, body in updates
        ]
        for start in range(0, len(encoded), UPDATES_PER_WRITE):
            try:
                self._call("Write", prefix + b"".join(encoded[start : start + UPDATES_PER_WRITE]))
            except ClientError as error:
                failed = list(_failed_updates(error.__cause__))
                if not failed:
                    raise
                listed = "; ".join(f"{describe(start + index)}: {text}" for index, text in failed[:5])
                more = f"; and {len(failed) - 5} more" if len(failed) > 5 else ""
                raise ClientError(f"{self.name} ({self.address}): refused {listed}{more}") from None
        return len(encoded)

    def read(self, filters: Iterable[bytes]) -> list[bytes]:
        """Serialised Entities that match the filters, which are serialised Entities too."""
        head = p4rt.ReadRequest(device_id=self.address.device_id).SerializeToString()
        tag = wire.tag(p4rt.ReadRequest, "entities")
        request = head + b"".join(wire.block(tag, body) for body in filters)
        entities: list[bytes] = []
        with _errors(self):
            for response in self._channel.unary_stream(_SERVICE + "Read")(request, timeout=RPC_TIMEOUT_S):
                try:
                    fields = list(wire.fields(response))
                except P4RuntimeError:
                    raise self._nonsense("Read") from None
                entities.extend(response[start:end] for number, _, start, end in fields if number == _READ_ENTITIES)
        return entities


@contextmanager
def _errors(client: P4RuntimeClient) -> Iterator[None]:
    """Turns gRPC's exceptions into ClientError, caused by a P4RuntimeError or, for a batch, by the RPC's error."""
    try:
        yield
    except grpc.RpcError as error:
        code, details = error.code(), error.details()
        where = f"{client.name} ({client.address})"
        if code is grpc.StatusCode.UNKNOWN and _details(error):
            raise ClientError(f"{where}: {details}") from error
        if code is grpc.StatusCode.UNAVAILABLE:
            raise UnreachableError(f"{where}: {details}") from error
        known = {c.value: c for c in Code}.get(code.value[0], Code.UNKNOWN)
        refused = UnreadyError if known is Code.FAILED_PRECONDITION else ClientError
        raise refused(f"{where}: {code.name}: {details}") from P4RuntimeError(known, details or "")


def _number(election_id: Any) -> int:
    return int(election_id.high << 64 | election_id.low)


def _details(error: Any) -> list[Any]:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            return list(status_pb2.Status.FromString(value).details)
    return []


def _failed_updates(error: BaseException | None) -> Iterator[tuple[int, str]]:
    """(index in the batch, words) of each update that failed."""
    if not isinstance(error, grpc.RpcError):
        return
    for index, detail in enumerate(_details(error)):
        item = p4rt.Error()
        detail.Unpack(item)
        if item.canonical_code != Code.OK:
            name = next((c.name for c in Code if c == item.canonical_code), str(item.canonical_code))
            yield index, f"{name}: {item.message}"
