"""Limits of P4Runtime: messages, roles and replicas, and hostile batches and bytes."""

import tracemalloc
from functools import cache
from typing import Any

import grpc
import pytest
from google.protobuf import message_factory, text_format
from google.protobuf.internal import api_implementation
from hypothesis import HealthCheck, event, given, settings, strategies as st

from switch.engine import COPIES_MAX, FRAME_BYTES_MAX, Replica
from switch.p4rt import batch, replication, wire
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.errors import Code, P4RuntimeError
from switch.p4rt.limits import MESSAGE_BYTES_MIN, STREAM_BYTES_MAX
from switch.p4rt.pipeline import PipelineCache
from switch.p4rt.store import EntityStore, loaded
from switch.p4rt.streams import ROLE_NAME_BYTES_MAX, ROLES_MAX, Arbitration
from tests.helpers.p4.made import read, write
from tests.switch.p4rt.conftest import Harness, load_program


def test_a_message_longer_than_any_program_needs_is_refused_by_its_length(harness: Harness) -> None:
    refused = harness.refused("Write", b"\x1a\xff\xff\xff\x07" + b"\0" * (8 << 20))
    assert refused.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert f"must have at most {MESSAGE_BYTES_MIN} bytes" in refused.details()  # no device has a program yet


def test_a_write_of_empty_updates_takes_little_memory_and_time(store: EntityStore) -> None:
    """A MiB of them took 18 s and 1.1 GB: each error kept its trace-back."""
    request = p4rt.WriteRequest.FromString(b"\x22\x00" * ((1 << 14) + 1))
    with pytest.raises(
        P4RuntimeError, match=r"^RESOURCE_EXHAUSTED: a Write must have at most 16384 updates \(got 16385\)$"
    ):
        batch.write(store, request)
    del request.updates[-1]
    tracemalloc.start()
    try:
        with pytest.raises(batch.BatchError, match=r"^16384 of 16384 updates failed"):
            batch.write(store, request)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


def test_a_long_request_is_refused_although_the_program_could_hold_more(harness: Harness, client: Any) -> None:
    store = loaded(harness.devices.find(1))
    assert store is not None
    store.pipeline.message_bytes_max = 32 << 20
    for method, field in (("Write", b"\x22"), ("Read", b"\x12")):
        said = harness.refused(method, (field + b"\0") * (1 << 22)).details()
        assert said == "a message must have at most 4194304 bytes for the loaded programs (got 8388608)"


def test_a_pipeline_of_many_fields_is_refused_unread(harness: Harness) -> None:
    """Reading millions of them held the server, for clients that may set no pipeline as well."""
    said = "a message of this kind must have at most 64 fields"
    refused = harness.refused("SetForwardingPipelineConfig", b"\x08\x01" * 65)
    assert (refused.code(), refused.details()) == (grpc.StatusCode.RESOURCE_EXHAUSTED, said)
    with pytest.raises(P4RuntimeError, match=said):
        PipelineCache(load_program).read(b"\x12\0" * 65)


def test_a_programs_limit_is_computed_once_and_not_for_each_request(harness: Harness) -> None:
    class Tables(dict[int, Any]):
        looks = 0

        def values(self) -> Any:
            self.looks += 1
            return super().values()

    client, _ = harness.ready()
    store = loaded(harness.devices.find(1))
    assert store is not None
    tables = store.pipeline.p4info.tables = Tables(store.pipeline.p4info.tables)
    client.write("type: MODIFY entity { counter_entry { counter_id: 301989889 index { index: 1 } } }")
    client.read("counter_entry { counter_id: 301989889 index { index: 1 } }")
    assert tables.looks == 0


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


# --- replicas -------------------------------------------------------------------------------------------------------


def multicast(count: int) -> Any:
    request = p4rt.WriteRequest()
    update = request.updates.add(type=p4rt.Update.INSERT)
    group = update.entity.packet_replication_engine_entry.multicast_group_entry
    group.multicast_group_id = 1
    for number in range(count):
        group.replicas.add(egress_port=1, instance=number)
    return request


def test_checking_replicas_takes_one_look_at_each(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    class Counted(Replica):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return super().__eq__(other)

        __hash__ = Replica.__hash__

    monkeypatch.setattr(replication, "Replica", Counted)
    batch.write(store, multicast(1000))
    assert len(store.engine.multicast[1]) == 1000
    assert compared < 10 * 1000


def test_more_replicas_than_a_packet_may_have_copies_are_refused(store: Any) -> None:
    batch.write(store, multicast(COPIES_MAX))
    request = multicast(COPIES_MAX + 1)
    request.updates[0].type = p4rt.Update.MODIFY
    with pytest.raises(batch.BatchError) as refused:
        batch.write(store, request)
    (error,) = refused.value.errors
    assert error is not None
    assert error.code == Code.RESOURCE_EXHAUSTED
    assert error.message == "multicast group 1: must have at most 4096 replicas (got 4097)"
    assert len(store.engine.multicast[1]) == COPIES_MAX


# --- roles ----------------------------------------------------------------------------------------------------------


def test_the_roles_of_a_device_and_their_names_are_limited() -> None:
    arbitration = Arbitration()
    with pytest.raises(P4RuntimeError, match=f"a role's name must have at most {ROLE_NAME_BYTES_MAX} bytes") as refused:
        arbitration.update("a", "x" * (ROLE_NAME_BYTES_MAX + 1), 1)
    assert refused.value.code == Code.INVALID_ARGUMENT
    for number in range(ROLES_MAX):
        arbitration.update(number, f"role {number}", 1)
    with pytest.raises(P4RuntimeError, match=f"at most {ROLES_MAX} roles") as refused:
        arbitration.update("one too many", "another role", 1)
    assert refused.value.code == Code.RESOURCE_EXHAUSTED
    arbitration.update("a", "", 1)  # the default role always has room
    arbitration.check_write("", 1)
    arbitration.disconnect(0)
    arbitration.update("b", "role 0", 1)  # the known roles go on


def test_a_new_role_takes_the_place_of_the_one_that_has_had_no_controller_for_longest() -> None:
    arbitration = Arbitration()
    arbitration.update("default", "", 9)
    arbitration.disconnect("default")
    for number in range(ROLES_MAX):
        arbitration.update(number, f"role {number}", 5)
    for number in (7, 3, 8):
        arbitration.disconnect(number)
    arbitration.update("new", "another role", 1)
    arbitration.check_write("another role", 1)
    for name in ("role 3", "role 8", ""):  # remembered: a lower election id is no primary's
        (told,) = arbitration.update(f"late {name}", name, 4)
        assert told.status == Code.NOT_FOUND
    with pytest.raises(P4RuntimeError, match="no controller has role 'role 7'"):
        arbitration.check_write("role 7", 5)
    with pytest.raises(P4RuntimeError, match=f"at most {ROLES_MAX} roles"):
        arbitration.update("one too many", "role 7", 5)
    arbitration.check_write("role 1", 5)


def test_a_role_is_forgotten_with_its_last_stream_unless_an_election_id_must_be_remembered() -> None:
    arbitration = Arbitration()
    for number in range(10 * ROLES_MAX):
        arbitration.update("a", f"role {number}", None)
        arbitration.update("b", f"role {number}", None)
        arbitration.disconnect("a")
        arbitration.disconnect("b")
    with pytest.raises(P4RuntimeError, match="roles: none"):
        arbitration.check_write("role 1", 1)
    arbitration.update("a", "role 1", 5)
    arbitration.disconnect("a")
    (told,) = arbitration.update("b", "role 1", 4)
    assert (told.election_id, told.status) == (5, Code.NOT_FOUND)


# --- what a client sends and is told ----------------------------------------------------------------------------------


def test_a_long_value_is_shown_by_its_beginning_and_a_client_with_default_limits_is_told_why(harness: Harness) -> None:
    harness.ready()
    request = p4rt.WriteRequest(device_id=1)
    request.election_id.low = 1
    entry = request.updates.add(type=p4rt.Update.INSERT).entity.table_entry
    entry.table_id = 33554433
    entry.match.add(field_id=1).exact.value = b"\xab" * 5000
    entry.action.action.action_id = 16777218
    refused = harness.refused("Write", request.SerializeToString())
    assert refused.code() is grpc.StatusCode.UNKNOWN
    assert refused.details() == (
        "1 of 1 updates failed; the first, at index 0: INVALID_ARGUMENT: table ingress.hosts: field hdr.ethernet.dst "
        "(exact, bit<48>): "
        f"0x{'ab' * 32}… (5000 bytes) needs 40000 bits, but the width is bit<48> (at most 0xffffffffffff)"
    )


def test_no_message_exceeds_what_a_status_can_carry() -> None:
    error = P4RuntimeError(Code.INVALID_ARGUMENT, "ä" * 5000)
    assert len(error.message.encode()) <= 1024
    assert error.message.endswith("ä…")
    failed = batch.BatchError("updates", [error] * 10)
    assert len(str(failed).encode()) <= 1024 + 100
    assert len(str(failed).encode()) + len(failed.status_bytes()) < 8192


def test_a_frame_that_is_too_long_is_the_clients_mistake(harness: Harness) -> None:
    _, stream = harness.ready()
    request = p4rt.StreamMessageRequest()
    request.packet.payload = b"x" * FRAME_BYTES_MAX
    for id_ in (1, 2):
        request.packet.metadata.add(metadata_id=id_, value=b"\0")
    stream.requests.put(request)
    stream.requests.put(p4rt.StreamMessageRequest())  # is answered with an error in any case
    error = stream.next().error
    assert error.canonical_code == Code.INVALID_ARGUMENT
    most, given = FRAME_BYTES_MAX, FRAME_BYTES_MAX + 2
    assert error.message == f"packet_out: the frame must have at most {most} bytes with its header (got {given})"
    assert harness.data_plane.packets_out == []


@pytest.mark.parametrize(
    ("method", "data"),
    [
        ("SetForwardingPipelineConfig", b"\x08\x01\x1a\x02\xff\xff"),  # an election id that is no message
        ("GetForwardingPipelineConfig", b"\xff"),
        ("Write", b"\xff" * 100),
        ("Capabilities", b"\xff"),
    ],
)
def test_a_request_with_a_corrupt_field_is_an_invalid_argument(harness: Harness, method: str, data: bytes) -> None:
    refused = harness.refused(method, data)
    assert refused.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "must be a protobuf message" in refused.details()


METHODS = ("Write", "Read", "SetForwardingPipelineConfig", "GetForwardingPipelineConfig", "Capabilities")
CODES = {code.name for code in grpc.StatusCode} - {"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"}


def refusal(call):
    """The error with which the server refuses, if it does; any other exception is a bug."""
    try:
        call()
    except (batch.BatchError, grpc.RpcError) as error:
        return error
    return None


small = st.integers(0, 3) | st.integers(-(2**31), 2**31 - 1)
unsigned = st.integers(0, 3) | st.integers(0, 2**32 - 1)
blob = st.integers(0, 7).map(lambda n: bytes([n])) | st.binary(max_size=20)
KNOWN: dict[str, st.SearchStrategy[Any]] = {
    "table_id": st.sampled_from([0, *range(33554433, 33554440), 1]),
    "action_id": st.sampled_from([16777217, 16777218, 16777219, 16777220, 21257015, 5]),
    "action_profile_id": st.sampled_from([285212673, 285212674, 0, 9]),
    "counter_id": st.sampled_from([0, 301989889]),
    "meter_id": st.sampled_from([0, 335544321]),
    "register_id": st.sampled_from([0, 369098753]),
    "index": st.integers(-2, 5),
}
"""Values of fields by their name: mostly the program's, and a few others."""
UNREAD = {"p4.v1.P4Data", "google.protobuf.Any"}


def values(field):
    """Any value of a field."""
    if field.message_type:
        return messages(field.message_type)
    if field.enum_type:
        return st.sampled_from([value.number for value in field.enum_type.values])
    kind = {field.TYPE_BYTES: blob, field.TYPE_BOOL: st.booleans(), field.TYPE_STRING: st.text(max_size=5)}
    unsigned_kinds = (field.TYPE_UINT32, field.TYPE_UINT64)
    return kind.get(field.type, unsigned if field.type in unsigned_kinds else small)


@cache
def messages(descriptor):
    """Any message of a kind, by its schema; each field may be left out."""
    kind = message_factory.GetMessageClass(descriptor)
    fields = {}
    for field in descriptor.fields:
        if not field.message_type or field.message_type.full_name not in UNREAD:
            one = values(field) if field.message_type or field.name not in KNOWN else KNOWN[field.name]
            repeated = hasattr(getattr(kind(), field.name), "extend")
            fields[field.name] = st.lists(one, max_size=3) if repeated else one
    return st.fixed_dictionaries({}, optional=fields).map(lambda given: kind(**given))


entities = st.one_of(
    st.just(p4rt.Entity()),
    *(
        messages(field.message_type).map(lambda m, name=field.name: p4rt.Entity(**{name: m}))
        for field in p4rt.Entity.DESCRIPTOR.fields
    ),
)
FORWARD = 'action { action_id: 16777217 params { param_id: 1 value: "\\%03o" } }'
LIKELY = (
    f'table_entry {{ table_id: 33554433 match {{ field_id: 1 exact {{ value: "\\%03o" }} }} action {{ {FORWARD} }} }}',
    f"action_profile_member {{ action_profile_id: 285212673 member_id: %d {FORWARD} }}",
    "action_profile_group { action_profile_id: 285212673 group_id: %d max_size: 4 "
    "members { member_id: %d weight: %d } }",
    "table_entry { table_id: 33554436 action { action_profile_member_id: %d } }",
    "table_entry { table_id: 33554436 action { action_profile_group_id: %d } }",
    "table_entry { table_id: 33554436 action { action_profile_action_set { action_profile_actions { weight: 1 "
    f"{FORWARD} }} }} }} }}",
    "packet_replication_engine_entry { multicast_group_entry { multicast_group_id: %d } }",
)
"""Entities that fit each other, with small numbers."""
likely_entities = st.builds(
    lambda text, numbers: text_format.Parse(text % tuple(numbers[: text.count("%")]), p4rt.Entity()),
    st.sampled_from(LIKELY),
    st.lists(st.integers(1, 3), min_size=3, max_size=3),
)
updates = st.builds(
    lambda kind, entity: p4rt.Update(type=kind, entity=entity),
    st.sampled_from([1, 1, 1, 2, 3, 0]),
    entities | likely_entities | likely_entities,
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(updates, min_size=5, max_size=20), entities)
def test_any_batch_is_carried_out_or_refused_and_what_is_read_can_be_deleted(store, writes, query):
    refused = refusal(lambda: batch.write(store, p4rt.WriteRequest(updates=writes)))
    assert refused is None or (len(refused.errors) == len(writes) and len(refused.status_bytes()) < 8192)
    event(f"{len(writes) if refused is None else refused.errors.count(None)} updates carried out")
    refused = refusal(lambda: read(store, query))
    assert refused is None or len(refused.errors) == 1
    # Whatever got in is consistent: read back, it can be taken out again, in the order of the references.
    everything = [
        p4rt.Entity(table_entry=p4rt.TableEntry()),
        p4rt.Entity(action_profile_group=p4rt.ActionProfileGroup()),
        p4rt.Entity(action_profile_member=p4rt.ActionProfileMember()),
        p4rt.Entity(packet_replication_engine_entry=p4rt.PacketReplicationEngineEntry()),
    ]
    write(store, "DELETE", *(entity for entity in read(store, *everything) if not entity.table_entry.is_const))
    assert store.entry_count() == 2  # the constant ones
    assert not store.engine.members
    assert not store.engine.groups
    assert len(store.engine.entries) == 2


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(method=st.sampled_from(METHODS), data=st.binary(max_size=60))
def test_any_bytes_over_grpc_are_answered(client, method, data):
    call = client.channel.unary_unary(f"/p4.v1.P4Runtime/{method}")
    if method == "Read":
        call = lambda request: list(client.channel.unary_stream("/p4.v1.P4Runtime/Read")(request))  # noqa: E731
    refused = refusal(lambda: call(data))
    assert refused is None or refused.code().name in CODES
    assert client.stub.Capabilities(p4rt.CapabilitiesRequest()).p4runtime_api_version


@settings(max_examples=200)
@given(st.binary(max_size=80))
def test_the_wire_reader_never_reads_beyond_the_message(data):
    try:
        spans = [(start, end) for _, _, start, end in wire.fields(data)]
    except P4RuntimeError:
        return
    assert all(0 <= start <= end <= len(data) for start, end in spans)
    assert not spans or spans[-1][1] == len(data)


@given(st.integers(0, 2**64 - 1), st.binary(max_size=300))
def test_the_wire_writer_agrees_with_protobuf(value, payload):
    digest = p4rt.DigestListAck(digest_id=value & 0xFFFFFFFF, list_id=value)
    encoded = wire.number(wire.tag(p4rt.DigestListAck, "digest_id"), value & 0xFFFFFFFF)
    encoded += wire.number(wire.tag(p4rt.DigestListAck, "list_id"), value)
    assert encoded == digest.SerializeToString()
    packet = p4rt.PacketMetadata(metadata_id=5, value=payload or b"\0")
    encoded = wire.number(wire.tag(p4rt.PacketMetadata, "metadata_id"), 5)
    encoded += wire.block(wire.tag(p4rt.PacketMetadata, "value"), payload or b"\0")
    assert encoded == packet.SerializeToString()


@pytest.mark.parametrize("value", [-1, -(2**63)])
def test_the_wire_writer_writes_negative_integers_as_protobuf_does(value):
    data = p4rt.Index(index=value).SerializeToString()
    assert wire.number(wire.tag(p4rt.Index, "index"), value) == data
