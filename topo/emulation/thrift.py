"""The two calls of BMv2's Thrift service that a lab needs, in Thrift's binary protocol.

P4Runtime has no verb for queues. BMv2's own command line has verbs for them, but takes a core for a second to start,
for each switch, and needs Thrift's Python package. Encoding: strict TBinaryProtocol over an unframed socket, service
multiplexed by name (thrift-binary-protocol.md of Apache Thrift; simple_switch.thrift of behavioral-model).
"""

from __future__ import annotations

import socket
import struct

SERVICE = "simple_switch"
_VERSION_1 = 0x80010000
_CALL, _REPLY = 1, 2
_STOP, _I32, _I64 = 0, 8, 10
_TIMEOUT_S = 10.0


class ThriftError(RuntimeError):
    """The other side answered with an exception, a failure, or not as Thrift."""


class SimpleSwitchClient:
    """One connection to a `simple_switch`'s Thrift port, used as a context. OSError when it cannot be reached."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=_TIMEOUT_S)
        self._sequence = 0

    def __enter__(self) -> SimpleSwitchClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def set_queue_depth(self, port: int, priority: int, depth_packets: int) -> None:
        self._call("set_egress_priority_queue_depth", (_I32, port), (_I32, priority), (_I32, depth_packets))

    def set_queue_rate(self, port: int, priority: int, rate_pps: int) -> None:
        self._call("set_egress_priority_queue_rate", (_I32, port), (_I32, priority), (_I64, rate_pps))

    def _call(self, method: str, *arguments: tuple[int, int]) -> None:
        self._sequence += 1
        self._socket.sendall(encode_call(f"{SERVICE}:{method}", self._sequence, arguments))
        version, length = struct.unpack("!II", self._read(8))
        if version & 0xFFFF0000 != _VERSION_1 or length > 1000:
            raise ThriftError(f"{method}: the answer is not Thrift's strict binary protocol")
        self._read(length + 4)  # its name, which says "exception" if need be, and the sequence number
        field_type = self._read(1)[0]
        if version & 0xFF != _REPLY or field_type != _I32:
            raise ThriftError(f"{method}: refused with an exception")
        _, status = struct.unpack("!hi", self._read(6))
        if status != 0:
            raise ThriftError(f"{method}({', '.join(str(value) for _, value in arguments)}): BMv2 answered {status}")
        self._read(1)  # the end of the result

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self._socket.recv(count - len(data))
            if not part:
                raise ThriftError("BMv2 closed the connection")
            data += part
        return data


def encode_call(name: str, sequence: int, arguments: tuple[tuple[int, int], ...]) -> bytes:
    """A call whose arguments, numbered from 1, are (type, value) of i32 and i64."""
    encoded = name.encode()
    message = struct.pack("!II", _VERSION_1 | _CALL, len(encoded)) + encoded + struct.pack("!i", sequence)
    for number, (kind, value) in enumerate(arguments, 1):
        message += struct.pack("!bh", kind, number) + struct.pack("!i" if kind == _I32 else "!q", value)
    return message + bytes([_STOP])
