"""Streams of controllers: who is primary, and packets in and out."""

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given, strategies as st

from switch.p4rt import streams
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.bytestring import encode
from switch.p4rt.errors import Code, P4RuntimeError
from switch.p4rt.p4info import FieldInfo, PacketHeader
from switch.p4rt.streams import STREAMS_PER_ROLE_MAX, UNREAD_MAX, Arbitration, Streams


def told(notifications):
    return [(n.client, n.election_id, n.status.name) for n in notifications]


def test_the_highest_election_id_ever_seen_is_primary_and_others_are_told_first():
    arbitration = Arbitration()
    assert told(arbitration.update("a", "", 5)) == [("a", 5, "OK")]
    assert told(arbitration.update("b", "", 3)) == [("b", 5, "ALREADY_EXISTS")]
    assert told(arbitration.update("c", "", 9)) == [
        ("a", 9, "ALREADY_EXISTS"),
        ("b", 9, "ALREADY_EXISTS"),
        ("c", 9, "OK"),
    ]
    arbitration.check_write("", 9)
    for id_ in (5, 3, None):
        with pytest.raises(P4RuntimeError, match="PERMISSION_DENIED"):
            arbitration.check_write("", id_)


def test_nobody_inherits_when_the_primary_leaves_but_its_id_may_return():
    arbitration = Arbitration()
    arbitration.update("a", "", 5)
    arbitration.update("b", "", 3)
    assert told(arbitration.disconnect("a")) == [("b", 5, "NOT_FOUND")]
    with pytest.raises(P4RuntimeError, match="there is no primary controller"):
        arbitration.check_write("", 3)
    assert told(arbitration.update("b", "", 4)) == [("b", 5, "NOT_FOUND")]
    assert told(arbitration.update("c", "", 5)) == [("b", 5, "ALREADY_EXISTS"), ("c", 5, "OK")]


def test_a_primary_that_lowers_its_id_steps_down_and_everyone_hears():
    arbitration = Arbitration()
    arbitration.update("a", "", 5)
    arbitration.update("b", "", 3)
    assert told(arbitration.update("a", "", 2)) == [("a", 5, "NOT_FOUND"), ("b", 5, "NOT_FOUND")]


def test_an_unset_election_id_never_wins_and_may_be_shared():
    arbitration = Arbitration()
    assert told(arbitration.update("a", "", None)) == [("a", None, "NOT_FOUND")]
    assert told(arbitration.update("b", "", None)) == [("b", None, "NOT_FOUND")]
    assert told(arbitration.update("c", "", 0))[-1] == ("c", 0, "OK")


def test_a_live_election_id_is_refused_to_another_controller_but_not_to_its_own():
    arbitration = Arbitration()
    arbitration.update("a", "", 5)
    with pytest.raises(P4RuntimeError, match="INVALID_ARGUMENT: election id 5 is in use by another live controller"):
        arbitration.update("b", "", 5)
    assert told(arbitration.update("a", "", 5)) == [("a", 5, "OK")]
    assert arbitration.disconnect("b") == []


def test_roles_elect_independently_and_a_stream_keeps_its_role():
    arbitration = Arbitration()
    arbitration.update("a", "", 5)
    assert told(arbitration.update("b", "lab", 5)) == [("b", 5, "OK")]
    arbitration.check_write("lab", 5)
    assert set(arbitration.primaries()) == {"a", "b"}
    with pytest.raises(P4RuntimeError, match="FAILED_PRECONDITION: role 'lab' differs"):
        arbitration.update("a", "lab", 6)
    with pytest.raises(P4RuntimeError, match="NOT_FOUND: no controller has role 'other'; roles: '', 'lab'"):
        arbitration.check_write("other", 5)


def test_streams_are_limited():
    arbitration = Arbitration()
    for number in range(STREAMS_PER_ROLE_MAX):
        arbitration.update(number, "", number)
    with pytest.raises(P4RuntimeError, match="RESOURCE_EXHAUSTED"):
        arbitration.update("one too many", "", 1000)


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(["", "r"]), st.none() | st.integers(0, 4), st.booleans()),
        max_size=40,
    )
)
def test_whatever_happens_there_is_at_most_one_primary_and_its_id_is_the_highest_ever(steps):
    arbitration = Arbitration()
    live: dict[Any, Any] = {}
    highest: dict[Any, Any] = {}
    for client, role, election_id, leave in steps:
        if leave:
            arbitration.disconnect(client)
            live.pop(client, None)
            continue
        others = [i for c, (r, i) in live.items() if c != client and r == role]
        if live.get(client, (role,))[0] != role or (election_id is not None and election_id in others):
            with pytest.raises(P4RuntimeError):
                arbitration.update(client, role, election_id)
            continue
        notifications = arbitration.update(client, role, election_id)
        live[client] = (role, election_id)
        if election_id is not None:
            highest[role] = max(highest.get(role, election_id), election_id)
        assert client in [n.client for n in notifications]
        for name in ("", "r"):
            primaries = [c for c, (r, _) in live.items() if r == name and arbitration.is_primary(c)]
            assert len(primaries) <= 1
            expected = [c for c, (r, i) in live.items() if r == name and i is not None and i == highest.get(name)]
            assert primaries == expected


def test_over_streams_a_backup_is_told_who_comes_and_goes(harness):
    first, second = harness.client(), harness.client()
    a = first.stream(1, 1)
    assert a.next().arbitration.status.code == 0
    b = second.stream(1, 2)
    assert b.next().arbitration.status.code == 0
    lost = a.next().arbitration
    assert (lost.status.code, lost.election_id.low) == (Code.ALREADY_EXISTS, 2)
    b.close()
    gone = a.next().arbitration
    assert (gone.status.code, gone.election_id.low) == (Code.NOT_FOUND, 2)


def test_over_streams_errors_end_the_stream_with_the_specified_code(harness):
    client = harness.client()
    assert client.stream(77, 1).code() == ("NOT_FOUND", "no device with id 77; devices: 1 (s1), 2 (s2)")
    a = client.stream(1, 1)
    a.next()
    code, message = client.stream(1, 1).code()
    assert code == "INVALID_ARGUMENT"
    assert "election id 1 is in use by another live controller" in message
    a.arbitrate(2, device_id=2)
    assert a.code()[0] == "FAILED_PRECONDITION"
    b = client.stream(1, 3, role="lab")
    assert b.next().arbitration.role.name == "lab"
    b.arbitrate(3, role="other")
    assert b.code()[0] == "FAILED_PRECONDITION"


def test_a_controller_that_reads_nothing_is_ended_before_it_fills_the_memory(harness):
    """Every update is answered, and arbitration cannot be dropped as packets can."""
    asked = 0

    async def updates():
        nonlocal asked
        while True:
            asked += 1
            request = p4rt.StreamMessageRequest()
            request.arbitration.device_id = 1
            request.arbitration.election_id.low = asked
            yield request
            await asyncio.sleep(0)

    async def stuck(_message):
        await asyncio.Event().wait()

    async def live():
        streams = Streams(harness.devices, asyncio.get_running_loop())
        await asyncio.wait_for(streams.serve(updates(), stuck), timeout=60)

    with pytest.raises(P4RuntimeError) as refused:
        asyncio.run(live())
    assert refused.value.code == Code.RESOURCE_EXHAUSTED
    assert asked <= UNREAD_MAX + 10


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


def test_over_streams_a_controller_may_open_its_next_stream_before_the_last_one_has_ended(harness):
    """The PTF tests of p4lang's tutorials end a stream and open another with the same id, in either order."""
    client = harness.client()
    a = client.stream(1, 1)
    a.next()
    b = client.stream(1, 1)
    time.sleep(0.05)  # in which the server reads the new stream's update
    a.close()
    assert b.next().arbitration.status.code == Code.OK
