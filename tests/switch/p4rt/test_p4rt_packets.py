"""Packet-in and packet-out: controller headers by P4Info's widths, primaries only, and errors on the stream."""

from hypothesis import given, strategies as st

from switch.p4rt import streams
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.bytestring import encode
from switch.p4rt.errors import Code
from switch.p4rt.p4info import FieldInfo, PacketHeader


def packet_out(stream, payload, *metadata):
    request = p4rt.StreamMessageRequest()
    request.packet.payload = payload
    for id_, value in metadata:
        request.packet.metadata.add(metadata_id=id_, value=value)
    stream.requests.put(request)


def test_a_packet_out_carries_its_header_in_front(harness):
    _, stream = harness.ready()
    packet_out(stream, b"frame", (2, b"\x05"), (1, b"\x01\x02"))
    packet_out(stream, b"", (9, b"\x01"))  # an error comes back, so the packet before has been handled
    assert stream.next().WhichOneof("update") == "error"
    assert harness.data_plane.packets_out == [(1, (0x102 << 7 | 5).to_bytes(2, "big") + b"frame")]


def test_a_bad_packet_out_is_dropped_and_reported_with_the_packet(harness):
    client = harness.client()
    stream = client.primary()
    packet_out(stream, b"x")
    error = stream.next().error
    assert (error.canonical_code, error.packet_out.packet_out.payload) == (Code.FAILED_PRECONDITION, b"x")
    client.set_pipeline()
    for metadata, message in (
        ([(1, b"\x01")], "packet_out: metadata field _pad (bit<7>) is missing; fields: 1 egress_port (bit<9>), 2 _pad"),
        ([(1, b"\x01"), (1, b"\x01")], "packet_out: metadata field egress_port (bit<9>) is given twice"),
        ([(7, b"\x01")], "packet_out: no metadata field with id 7; fields: 1 egress_port (bit<9>), 2 _pad (bit<7>)"),
        ([(1, b"\xff\xff"), (2, b"\0")], "packet_out: metadata field egress_port (bit<9>): 0xffff needs 16 bits"),
    ):
        packet_out(stream, b"x", *metadata)
        error = stream.next().error
        assert error.canonical_code == Code.INVALID_ARGUMENT
        assert error.message.startswith(message)
    assert harness.data_plane.packets_out == []


def test_only_the_primary_sends_and_receives_packets(harness):
    client = harness.client()
    primary = client.stream(1, 5)
    primary.next()
    client.set_pipeline(election_id=5)
    backup = client.stream(1, 3)
    backup.next()
    packet_out(backup, b"x", (1, b"\1"), (2, b"\0"))
    assert backup.next().error.canonical_code == Code.PERMISSION_DENIED
    harness.data_plane.packet_ins[1]((0x1FF << 7 | 3).to_bytes(2, "big") + b"hello")
    packet = primary.next().packet
    assert packet.payload == b"hello"
    assert [(m.metadata_id, m.value) for m in packet.metadata] == [(1, b"\x01\xff"), (2, b"\x03")]
    backup.arbitrate(4)
    assert backup.next().WhichOneof("update") == "arbitration"  # and no packet before it


def test_packet_ins_of_every_role_s_primary_and_runts_are_dropped(harness):
    client = harness.client()
    stream, other = client.primary(), client.stream(1, 1, role="watcher")
    other.next()
    client.set_pipeline()
    harness.data_plane.packet_ins[1](b"\x01")  # shorter than the header
    harness.data_plane.packet_ins[1](b"\x00\x00")
    assert stream.next().packet.payload == b""
    assert other.next().packet.payload == b""


def test_other_stream_messages_are_answered_with_an_error(harness):
    """Specification, "Stream Error Reporting": an unknown digest is INVALID_ARGUMENT."""
    client = harness.client()
    stream = client.primary(election_id=5)
    client.set_pipeline(election_id=5)
    backup = client.stream(1, 3)
    backup.next()
    request = p4rt.StreamMessageRequest()
    request.digest_ack.digest_id = 5
    for one, code, message in (
        (stream, Code.INVALID_ARGUMENT, "no digest with id 5; digests: none"),
        (backup, Code.PERMISSION_DENIED, "only a primary controller may acknowledge digests"),
    ):
        one.requests.put(request)
        error = one.next().error
        assert (error.canonical_code, error.message) == (code, message)
        assert error.digest_list_ack.digest_list_ack.digest_id == 5
    stream.requests.put(p4rt.StreamMessageRequest())
    assert "an empty message is not supported" in stream.next().error.message


@given(st.data(), st.lists(st.integers(1, 40), min_size=1, max_size=6), st.binary(max_size=20))
def test_a_header_of_any_widths_survives_the_way_out_and_in(data, widths, payload):
    header = PacketHeader("h", tuple(FieldInfo(i + 1, f"f{i}", w, i) for i, w in enumerate(widths)))
    values = [data.draw(st.integers(0, 2**w - 1)) for w in widths]
    metadata = [p4rt.PacketMetadata(metadata_id=i + 1, value=encode(v)) for i, v in enumerate(values)]
    frame = streams.packet_out(header, payload, metadata)
    assert len(frame) == (sum(widths) + 7) // 8 + len(payload)
    message = streams.packet_in(header, frame)
    assert message.payload == payload
    assert list(message.metadata) == metadata
