"""Any bytes in any request: the server answers with an error and goes on serving."""

import grpc
import pytest
from google.protobuf import text_format
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from switch.p4rt import batch, wire
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.errors import P4RuntimeError

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
TABLES = st.sampled_from([0, *range(33554433, 33554440), 1])


def messages(kind, **fields):
    return st.fixed_dictionaries({}, optional=fields).map(lambda given: kind(**given))


params = st.lists(messages(p4rt.Action.Param, param_id=unsigned, value=blob), max_size=3)
actions = messages(
    p4rt.Action, action_id=st.sampled_from([16777217, 16777218, 16777219, 16777220, 21257015, 5]), params=params
)
members = st.lists(messages(p4rt.ActionProfileAction, action=actions, weight=small, watch_port=blob), max_size=3)
table_actions = st.one_of(
    messages(p4rt.TableAction, action=actions),
    messages(p4rt.TableAction, action_profile_member_id=unsigned),
    messages(p4rt.TableAction, action_profile_group_id=unsigned),
    messages(p4rt.ActionProfileActionSet, action_profile_actions=members).map(
        lambda s: p4rt.TableAction(action_profile_action_set=s)
    ),
    st.just(p4rt.TableAction()),
)
fields = st.one_of(
    messages(p4rt.FieldMatch.Exact, value=blob).map(lambda m: {"exact": m}),
    messages(p4rt.FieldMatch.LPM, value=blob, prefix_len=small).map(lambda m: {"lpm": m}),
    messages(p4rt.FieldMatch.Ternary, value=blob, mask=blob).map(lambda m: {"ternary": m}),
    messages(p4rt.FieldMatch.Range, low=blob, high=blob).map(lambda m: {"range": m}),
    messages(p4rt.FieldMatch.Optional, value=blob).map(lambda m: {"optional": m}),
)
matches = st.builds(lambda id_, kind: p4rt.FieldMatch(field_id=id_, **kind), unsigned, fields | st.just({}))
meter_configs = messages(p4rt.MeterConfig, cir=small, cburst=small, pir=small, pburst=small)
counter_data = messages(p4rt.CounterData, packet_count=small, byte_count=small)
table_entries = messages(
    p4rt.TableEntry,
    table_id=TABLES,
    match=st.lists(matches, max_size=4),
    action=table_actions,
    priority=small,
    is_default_action=st.booleans(),
    metadata=blob,
    counter_data=counter_data,
    meter_config=meter_configs,
    idle_timeout_ns=small,
    is_const=st.booleans(),
)
indices = messages(p4rt.Index, index=st.integers(-2, 5))
profile_ids = st.sampled_from([285212673, 285212674, 0, 9])
group_members = st.lists(messages(p4rt.ActionProfileGroup.Member, member_id=unsigned, weight=small), max_size=3)
replicas = st.lists(messages(p4rt.Replica, port=blob, instance=unsigned), max_size=3)
entities = st.one_of(
    table_entries.map(lambda m: p4rt.Entity(table_entry=m)),
    messages(p4rt.ActionProfileMember, action_profile_id=profile_ids, member_id=unsigned, action=actions).map(
        lambda m: p4rt.Entity(action_profile_member=m)
    ),
    messages(
        p4rt.ActionProfileGroup, action_profile_id=profile_ids, group_id=unsigned, members=group_members, max_size=small
    ).map(lambda m: p4rt.Entity(action_profile_group=m)),
    messages(p4rt.CounterEntry, counter_id=st.sampled_from([0, 301989889]), index=indices, data=counter_data).map(
        lambda m: p4rt.Entity(counter_entry=m)
    ),
    messages(p4rt.DirectCounterEntry, table_entry=table_entries, data=counter_data).map(
        lambda m: p4rt.Entity(direct_counter_entry=m)
    ),
    messages(p4rt.MeterEntry, meter_id=st.sampled_from([0, 335544321]), index=indices, config=meter_configs).map(
        lambda m: p4rt.Entity(meter_entry=m)
    ),
    messages(p4rt.DirectMeterEntry, table_entry=table_entries, config=meter_configs).map(
        lambda m: p4rt.Entity(direct_meter_entry=m)
    ),
    messages(p4rt.RegisterEntry, register_id=st.sampled_from([0, 369098753]), index=indices).map(
        lambda m: p4rt.Entity(register_entry=m)
    ),
    messages(p4rt.MulticastGroupEntry, multicast_group_id=unsigned, replicas=replicas).map(
        lambda m: p4rt.Entity(packet_replication_engine_entry={"multicast_group_entry": m})
    ),
    messages(p4rt.CloneSessionEntry, session_id=unsigned, replicas=replicas, packet_length_bytes=small).map(
        lambda m: p4rt.Entity(packet_replication_engine_entry={"clone_session_entry": m})
    ),
    st.just(p4rt.Entity()),
)


def parsed(text, *values):
    """An entity in text format whose %d are small numbers and %s are one-byte strings."""
    return text_format.Parse(text % values, p4rt.Entity())


tiny = st.integers(1, 3)
FORWARD = 'action { action_id: 16777217 params { param_id: 1 value: "\\%03o" } }'
likely_entities = st.one_of(
    st.builds(
        lambda mac, port: parsed(
            'table_entry { table_id: 33554433 match { field_id: 1 exact { value: "\\%03o" } } action { '
            + FORWARD
            + " } }",
            mac,
            port,
        ),
        tiny,
        tiny,
    ),
    st.builds(
        lambda i, port: parsed(
            f"action_profile_member {{ action_profile_id: 285212673 member_id: %d {FORWARD} }}", i, port
        ),
        tiny,
        tiny,
    ),
    st.builds(
        lambda i, m, w: parsed(
            "action_profile_group { action_profile_id: 285212673 group_id: %d max_size: 4 "
            "members { member_id: %d weight: %d } }",
            i,
            m,
            w,
        ),
        tiny,
        tiny,
        tiny,
    ),
    st.builds(
        lambda reference, i: parsed(
            f"table_entry {{ table_id: 33554436 action {{ action_profile_{reference}_id: %d }} }}", i
        ),
        st.sampled_from(["member", "group"]),
        tiny,
    ),
    st.builds(
        lambda port: parsed(
            "table_entry { table_id: 33554436 action { action_profile_action_set { action_profile_actions { weight: 1 "
            + FORWARD
            + " } } } }",
            port,
        ),
        tiny,
    ),
    st.builds(
        lambda i: parsed("packet_replication_engine_entry { multicast_group_entry { multicast_group_id: %d } }", i),
        tiny,
    ),
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
    refused = refusal(
        lambda: [p4rt.ReadResponse.FromString(r) for r in batch.read(store, p4rt.ReadRequest(entities=[query]))]
    )
    assert refused is None or len(refused.errors) == 1
    # Whatever got in is consistent: read back, it can be taken out again, in the order of the references.
    everything = [
        p4rt.Entity(table_entry=p4rt.TableEntry()),
        p4rt.Entity(action_profile_group=p4rt.ActionProfileGroup()),
        p4rt.Entity(action_profile_member=p4rt.ActionProfileMember()),
        p4rt.Entity(packet_replication_engine_entry=p4rt.PacketReplicationEngineEntry()),
    ]
    responses = batch.read(store, p4rt.ReadRequest(entities=everything))
    found = [e for r in responses for e in p4rt.ReadResponse.FromString(r).entities if not e.table_entry.is_const]
    batch.write(store, p4rt.WriteRequest(updates=[p4rt.Update(type=p4rt.Update.DELETE, entity=e) for e in found]))
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
