"""Any bytes in any request: the server answers with an error and goes on serving."""

from functools import cache
from typing import Any

import grpc
import pytest
from google.protobuf import message_factory, text_format
from hypothesis import HealthCheck, event, given, settings, strategies as st

from switch.p4rt import batch, wire
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.errors import P4RuntimeError
from tests.helpers.p4.made import read, write

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
