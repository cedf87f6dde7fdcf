"""BMv2's two queue calls on the wire, against bytes laid out by hand from Thrift's binary protocol."""

import socket
import threading

import pytest

from topo.emulation.bmv2_process import ThriftError, call, connected

NAME = b"simple_switch:set_egress_priority_queue_rate"
CALL = (
    bytes.fromhex("80010001")
    + len(NAME).to_bytes(4, "big")
    + NAME
    + bytes.fromhex("00000001")
    + bytes.fromhex("08 0001 00000003")  # i32, field 1: port 3
    + bytes.fromhex("08 0002 00000007")
    + bytes.fromhex("0a 0003 0000000000000af0")  # i64, field 3: 2,800 packets a second
    + b"\0"
)


def answered(answer):
    """What a client sends to a server that answers so, and how the call ends."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        received = []

        def serve():
            connection, _ = server.accept()
            with connection:
                received.append(connection.recv(4096))
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with connected(server.getsockname()[1]) as client:
                call(client, "set_egress_priority_queue_rate", (8, 3), (8, 7), (10, 2800))
        finally:
            thread.join()
        return received[0]


def reply(kind, body):
    return b"\x80\x01\x00" + kind + (4).to_bytes(4, "big") + b"name\0\0\0\1" + body


def test_a_call_has_exactly_these_bytes():
    assert answered(reply(b"\x02", b"\x08\0\0" + (0).to_bytes(4, "big") + b"\0")) == CALL


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (
            reply(b"\x02", b"\x08\0\0" + (1).to_bytes(4, "big") + b"\0"),
            r"set_egress_priority_queue_rate\(3, 7, 2800\).* 1",
        ),
        (reply(b"\x03", b"\x0b\0\1"), "refused with an exception"),
        (b"HTTP/1.1 400 Bad Request", "not Thrift"),
        (b"\x80\x01", "closed the connection"),
    ],
)
def test_any_other_answer_is_an_error(answer, complaint):
    with pytest.raises(ThriftError, match=complaint):
        answered(answer)
