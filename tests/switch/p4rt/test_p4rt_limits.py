"""Messages that no loaded program has use for are refused by their length, unread."""

from __future__ import annotations

import grpc
import pytest
from google.protobuf.internal import api_implementation

from switch.p4rt.limits import MESSAGE_BYTES_MAX, MESSAGE_BYTES_MIN, STREAM_BYTES_MAX, write_bytes_max
from tests.switch.p4rt.conftest import Harness

WRITE = "/p4.v1.P4Runtime/Write"


def test_without_a_program_the_smallest_limit_holds() -> None:
    assert write_bytes_max(None) == MESSAGE_BYTES_MIN < MESSAGE_BYTES_MAX


def test_a_message_longer_than_any_program_needs_is_refused_by_its_length(harness: Harness) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{harness.port}") as channel:
        write = channel.unary_unary(WRITE, request_serializer=None, response_deserializer=None)
        with pytest.raises(grpc.RpcError) as raised:
            write(b"\x1a\xff\xff\xff\x07" + b"\0" * (8 << 20), timeout=30)
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "must have at most" in raised.value.details()


def test_bytes_that_are_no_message_are_an_invalid_argument(harness: Harness) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{harness.port}") as channel:
        write = channel.unary_unary(WRITE, request_serializer=None, response_deserializer=None)
        with pytest.raises(grpc.RpcError) as raised:
            write(b"\xff" * 100, timeout=30)
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_stream_takes_no_message_above_its_limit(harness: Harness) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{harness.port}") as channel:
        stream = channel.stream_stream(
            "/p4.v1.P4Runtime/StreamChannel", request_serializer=None, response_deserializer=None
        )
        with pytest.raises(grpc.RpcError) as raised:
            next(stream(iter([b"\0" * (STREAM_BYTES_MAX + 1)]), timeout=30))
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_messages_are_parsed_by_the_c_backend() -> None:
    """The pure-Python backend took 115 s for a message of 64 MiB."""
    assert api_implementation.Type() == "upb"
