"""What is written reaches the engine, and what is read is what was written (read-write symmetry)."""

from typing import Any

import grpc
import pytest
from google.protobuf import text_format
from hypothesis import HealthCheck, given, settings, strategies as st

from p4c.entries import ActionCall, Entry, Exact, GroupRef, Lpm, MemberRef, Optional, Range, Ternary
from switch.engine import CounterValue, EngineError, MeterConfig, Replica
from switch.p4rt import batch
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.bytestring import encode
from switch.p4rt.errors import Code

HOSTS, ROUTES, ACL, ECMP, INDIRECT, CLASSES, SETTINGS = range(33554433, 33554440)
SELECTOR, PROFILE = 285212673, 285212674


def forward(port=1):
    return f'action {{ action_id: 16777217 params {{ param_id: 1 value: "\\{port:03o}" }} }}'


def host(mac=2, rest="", port=1):
    match = f'match {{ field_id: 1 exact {{ value: "\\{mac:03o}" }} }}'
    return f"table_entry {{ table_id: {HOSTS} {match} action {{ {forward(port)} }} {rest} }}"


def update(kind, entity):
    return f"type: {kind} entity {{ {entity} }}"


def parsed(text):
    return text_format.Parse(text, p4rt.Entity())


TO_2001 = r'match { field_id: 1 lpm { value: "\040\001%s" prefix_len: 16 } }' % (r"\000" * 14)
ACL_ENTRY = (
    f"table_entry {{ table_id: {ACL} "
    'match { field_id: 1 ternary { value: "\\001\\000" mask: "\\377\\000" } } '
    'match { field_id: 2 range { low: "\\001" high: "\\010" } } '
    'match { field_id: 3 optional { value: "\\021" } } '
    'match { field_id: 4 exact { value: "\\003" } } '
    'action { action { action_id: 16777218 } } priority: 9 controller_metadata: 5 metadata: "note" }'
)


def test_every_match_kind_reaches_the_engine_and_reads_back_as_written(client, engine):
    client.write(update("INSERT", ACL_ENTRY))
    ((table, _),) = [key for key in engine.entries if key[0] == "ingress.acl"]
    assert table == "ingress.acl"
    assert [e for k, e in engine.entries.items() if k[0] == "ingress.acl"] == [
        Entry((Ternary(0x100, 0xFF00), Range(1, 8), Optional(17), Exact(3)), ActionCall("ingress.drop"), 9)
    ]
    assert client.read(f"table_entry {{ table_id: {ACL} }}") == [parsed(ACL_ENTRY)]


def test_fields_left_out_match_anything_and_are_left_out_when_read(client, engine):
    entry = (
        f'table_entry {{ table_id: {ACL} match {{ field_id: 4 exact {{ value: "\\003" }} }} '
        "action { action { action_id: 16777218 } } priority: 1 }"
    )
    client.write(
        update("INSERT", entry), update("INSERT", f"table_entry {{ table_id: {ROUTES} action {{ {forward()} }} }}")
    )
    entries = {key[0]: e for key, e in engine.entries.items()}
    assert entries["ingress.acl"].matches == (Ternary(0, 0), Range(0, 0xFFFF), Optional(None), Exact(3))
    assert entries["ingress.routes"].matches == (Lpm(0, 0),)
    assert client.read(f"table_entry {{ table_id: {ACL} }}") == [parsed(entry)]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ternary=st.none() | st.tuples(st.integers(0, 2**128 - 1), st.integers(1, 2**128 - 1)),
    port_range=st.none() | st.tuples(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF)),
    optional=st.none() | st.integers(0, 255),
    exact=st.integers(0, 511),
    priority=st.integers(1, 2**31 - 1),
    argument=st.integers(0, 511),
    order=st.permutations(range(4)),
)
def test_any_valid_entry_reads_back_as_its_canonical_self(
    store, ternary, port_range, optional, exact, priority, argument, order
):
    entry = p4rt.TableEntry(table_id=ACL, priority=priority)
    if ternary is not None:
        value, mask = ternary
        entry.match.add(field_id=1).ternary.MergeFrom(
            p4rt.FieldMatch.Ternary(value=encode(value & mask), mask=encode(mask))
        )
    if port_range is not None and port_range != (0, 0xFFFF):
        low, high = sorted(port_range)
        if (low, high) != (0, 0xFFFF):
            entry.match.add(field_id=2).range.MergeFrom(p4rt.FieldMatch.Range(low=encode(low), high=encode(high)))
    if optional is not None:
        entry.match.add(field_id=3).optional.value = encode(optional)
    entry.match.add(field_id=4).exact.value = encode(exact)
    action = entry.action.action
    action.action_id = 16777217
    action.params.add(param_id=1, value=encode(argument))
    shuffled = p4rt.TableEntry()
    shuffled.CopyFrom(entry)
    del shuffled.match[:]
    shuffled.match.extend(entry.match[index] for index in order if index < len(entry.match))
    request = p4rt.WriteRequest()
    request.updates.add(type=p4rt.Update.INSERT).entity.table_entry.CopyFrom(shuffled)
    batch.write(store, request)
    read = p4rt.ReadRequest()
    read.entities.add().table_entry.table_id = ACL
    (response,) = batch.read(store, read)
    (entity,) = p4rt.ReadResponse.FromString(response).entities
    assert entity.table_entry == entry
    assert entity.SerializeToString() == p4rt.Entity(table_entry=entry).SerializeToString()
    request.updates[0].type = p4rt.Update.DELETE
    batch.write(store, request)
    assert not store.rows[ACL]


def test_modify_changes_the_action_and_delete_needs_only_the_key(client, engine):
    client.write(update("INSERT", host(port=1)))
    client.write(update("MODIFY", host(port=5)))
    assert [e.action.args for k, e in engine.entries.items() if k[0] == "ingress.hosts"] == [(5,)]
    assert client.read("table_entry { table_id: 33554433 }") == [parsed(host(port=5))]
    client.write(
        update("DELETE", f'table_entry {{ table_id: {HOSTS} match {{ field_id: 1 exact {{ value: "\\002" }} }} }}')
    )
    assert client.read("table_entry { table_id: 33554433 }") == []
    assert not [k for k in engine.entries if k[0] == "ingress.hosts"]


def test_a_batch_goes_on_after_an_error_and_reports_each_update_in_its_place(client, errors_of):
    bad = host(mac=3).replace("action_id: 16777217", "action_id: 1")
    with pytest.raises(grpc.RpcError) as caught:
        client.write(
            update("INSERT", host(2)), update("INSERT", bad), update("INSERT", host(4)), update("INSERT", host(2))
        )
    assert caught.value.code() is grpc.StatusCode.UNKNOWN
    errors = errors_of(caught.value)
    assert [code for code, _ in errors] == [Code.OK, Code.INVALID_ARGUMENT, Code.OK, Code.ALREADY_EXISTS]
    assert errors[0][1] == ""
    assert "no action with id 1" in errors[1][1]
    assert len(client.read("table_entry { table_id: 33554433 }")) == 2


def test_the_errors_of_a_batch_fit_the_metadata_that_a_default_client_accepts(harness, client, errors_of):
    request = p4rt.WriteRequest(device_id=1)
    request.election_id.low = 1
    for _ in range(60):
        text_format.Parse(update("INSERT", "table_entry { table_id: 1 }"), request.updates.add())
    refused = harness.refused("Write", request.SerializeToString())
    assert refused.code() is grpc.StatusCode.UNKNOWN
    errors = errors_of(refused)
    assert [code for code, _ in errors] == [Code.INVALID_ARGUMENT] * 60
    assert "no table with id 1; tables:" in errors[0][1]


def test_one_bad_update_of_a_thousand_is_named_to_a_default_client(harness, client, errors_of):
    """All details would be 16,000 bytes or more. A client by default refuses more than 8 KiB, and is told nothing."""
    for count in (300, 1000):
        request = p4rt.WriteRequest(device_id=1)
        request.election_id.low = 1
        for _ in range(count):
            text_format.Parse(
                f"type: MODIFY entity {{ table_entry {{ table_id: {ROUTES} is_default_action: true }} }}",
                request.updates.add(),
            )
        request.updates[count - 7].entity.table_entry.table_id = 1
        refused = harness.refused("Write", request.SerializeToString())
        assert refused.code() is grpc.StatusCode.UNKNOWN
        told = f"1 of {count} updates failed; the first, at index {count - 7}: INVALID_ARGUMENT: no table with id 1"
        assert refused.details().startswith(told)
        if count == 300:
            errors = errors_of(refused)
            assert [i for i, (code, _) in enumerate(errors) if code] == [293]
            assert "no table with id 1" in errors[293][1]


def test_a_data_plane_that_fails_is_no_lack_of_room(client, errors_of):
    """google.rpc.Code: RESOURCE_EXHAUSTED is for lack of room, INTERNAL for a broken server."""
    for value, code in (("\\013\\255", Code.RESOURCE_EXHAUSTED), ("\\013\\256", Code.INTERNAL)):
        with pytest.raises(grpc.RpcError) as caught:
            client.write(update("INSERT", host().replace("\\002", value)))
        assert errors_of(caught.value)[0][0] == code


def test_a_batch_of_all_or_none_leaves_all_as_it_was_after_an_error(client, engine, errors_of):
    """ROLLBACK_ON_ERROR: "software and data plane state is consistent with the state before the batch"."""
    default = f"table_entry {{ table_id: {ROUTES} is_default_action: true action {{ {forward(7)} }} }}"
    member = f"action_profile_member {{ action_profile_id: {PROFILE} member_id: 1 {forward(2)} }}"
    group = "multicast_group_entry { multicast_group_id: 5 replicas { egress_port: 1 } }"
    clone = "clone_session_entry { session_id: 6 replicas { egress_port: 1 } }"
    group, clone = (f"packet_replication_engine_entry {{ {entry} }}" for entry in (group, clone))
    register = 'register_entry { register_id: 369098753 index { index: 2 } data { bitstring: "\\001" } }'
    counter = "counter_entry { counter_id: 301989889 index { index: 1 } data { packet_count: 7 byte_count: 8 } }"
    meter = "meter_entry { meter_id: 335544321 index { index: 3 } config { cir: 10 cburst: 1 pir: 20 pburst: 2 } }"
    metered = ACL_ENTRY[:-1] + "meter_config { cir: 1 cburst: 1 pir: 1 pburst: 1 } }"
    there = [host(2, "counter_data { packet_count: 5 byte_count: 6 }"), metered, member, group, clone]
    client.write(*(update("INSERT", entity) for entity in there))

    def state():
        kinds = (
            "table_entry action_profile_member meter_entry counter_entry register_entry packet_replication_engine_entry"
        )
        read = [str(e) for kind in kinds.split() for e in client.read(f"{kind} {{ }}")]
        tables = (
            f"table_entry {{ table_id: {HOSTS} counter_data {{ }} }}",
            f"table_entry {{ table_id: {ACL} meter_config {{ }} }}",
        )
        read += [str(e) for table in tables for e in client.read(table)]
        kept = (
            engine.entries.values(), engine.members, engine.multicast, engine.clones, engine.direct_counters.values(),
        )  # fmt: skip
        return sorted(read), sorted(map(str, kept[0])), str(kept[1:4]), sorted(set(map(str, kept[4])))

    before = state()
    good = [
        update("DELETE", host(2)),
        update("INSERT", host(3)),
        update("MODIFY", host(3, port=4)),
        update("DELETE", metered),
        update("MODIFY", default),
        update("MODIFY", member.replace("\\002", "\\003")),
        update("MODIFY", group.replace("egress_port: 1", "egress_port: 4")),
        update("DELETE", clone),
        update("MODIFY", register),
        update("MODIFY", counter),
        update("MODIFY", meter),
    ]
    atomicity = p4rt.WriteRequest.ROLLBACK_ON_ERROR
    with pytest.raises(grpc.RpcError) as caught:
        client.write(*good, update("INSERT", "table_entry { table_id: 1 }"), good[1], atomicity=atomicity)
    assert [code for code, _ in errors_of(caught.value)] == [Code.ABORTED] * 11 + [Code.INVALID_ARGUMENT, Code.ABORTED]
    assert "at index 11: INVALID_ARGUMENT: no table with id 1" in caught.value.details()
    assert state() == before
    client.write(*good, atomicity=atomicity)
    assert state() != before


def test_a_batch_that_fails_brings_back_a_route_without_matches_alone(client, errors_of):
    """Of an LPM table it is the entry that fits all packets, while a Read without matches asks for every entry."""
    routes = [f"table_entry {{ table_id: {ROUTES} {match} action {{ {forward(3)} }} }}" for match in (TO_2001, "")]
    client.write(*(update("INSERT", route) for route in routes))
    before = client.read(f"table_entry {{ table_id: {ROUTES} }}")
    assert len(before) == 2
    with pytest.raises(grpc.RpcError) as caught:
        client.write(
            *(update(kind, routes[1]) for kind in ("MODIFY", "DELETE")),
            update("INSERT", routes[0]),
            atomicity=p4rt.WriteRequest.ROLLBACK_ON_ERROR,
        )
    assert [code for code, _ in errors_of(caught.value)] == [Code.ABORTED, Code.ABORTED, Code.ALREADY_EXISTS]
    assert sorted(map(str, client.read(f"table_entry {{ table_id: {ROUTES} }}"))) == sorted(map(str, before))


def test_data_plane_atomic_batches_are_unimplemented_before_anything_is_tried(client):
    with pytest.raises(grpc.RpcError) as caught:
        client.write(update("INSERT", host()), atomicity=p4rt.WriteRequest.DATAPLANE_ATOMIC)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert "DATAPLANE_ATOMIC is not supported" in caught.value.details()
    assert client.read("table_entry { table_id: 33554433 }") == []


def test_default_entries_are_set_read_and_reset(client, engine):
    default = f"table_entry {{ table_id: {ROUTES} is_default_action: true action {{ {forward(7)} }} }}"
    read = f"table_entry {{ table_id: {ROUTES} is_default_action: true }}"
    unset = parsed(read)  # this program has no default action here, so there is nothing more to say
    assert client.read(read) == [unset]
    client.write(update("MODIFY", default))
    assert engine.defaults["ingress.routes"] == ActionCall("ingress.forward", (7,))
    assert client.read(read) == [parsed(default)]
    assert client.read(f"table_entry {{ table_id: {ROUTES} }}") == []
    client.write(update("MODIFY", f"table_entry {{ table_id: {ROUTES} is_default_action: true }}"))
    assert engine.defaults["ingress.routes"] is None
    assert client.read(read) == [unset]


def test_constant_entries_and_defaults_of_the_program_can_be_read(client):
    entities = [e.table_entry for e in client.read(f"table_entry {{ table_id: {CLASSES} }}")]
    assert [e.match[0].exact.value for e in entities] == [bytes([10]), bytes([46])]
    assert all(e.is_const for e in entities)
    (default,) = client.read(f"table_entry {{ table_id: {CLASSES} is_default_action: true }}")
    assert default.table_entry.action.action.params[0].value == b"\x01"


def test_reads_filter_by_key_action_priority_and_metadata(client):
    drops = host(3).replace(forward(), "action { action_id: 16777218 }")
    client.write(*(update("INSERT", entity) for entity in (ACL_ENTRY, host(2), drops)))
    assert len(client.read("table_entry { }")) == 5  # with the two constant entries
    assert client.read(f"table_entry {{ table_id: {ACL} priority: 8 }}") == []
    assert len(client.read(f"table_entry {{ table_id: {ACL} priority: 9 }}")) == 1
    assert len(client.read(f"table_entry {{ table_id: {ACL} controller_metadata: 5 }}")) == 1
    assert client.read(f"table_entry {{ table_id: {ACL} controller_metadata: 6 }}") == []
    assert len(client.read(f'table_entry {{ table_id: {ACL} metadata: "note" }}')) == 1
    assert client.read(f'table_entry {{ table_id: {ACL} metadata: "nota" }}') == []
    dropped = client.read(f"table_entry {{ table_id: {HOSTS} action {{ action {{ action_id: 16777218 }} }} }}")
    assert [e.table_entry.match[0].exact.value for e in dropped] == [b"\x03"]
    by_key = f'table_entry {{ table_id: {HOSTS} match {{ field_id: 1 exact {{ value: "\\002" }} }} }}'
    assert client.read(by_key) == [parsed(host(2))]


def test_a_read_returns_what_is_valid_and_an_error_for_each_request_that_is_not(client, errors_of):
    client.write(update("INSERT", host(2)))
    request = p4rt.ReadRequest(device_id=1)
    for entity in ("table_entry { table_id: 33554433 }", "table_entry { table_id: 5 }", "extern_entry { }"):
        text_format.Parse(entity, request.entities.add())
    stream = client.stub.Read(request)
    received: list[Any] = []
    with pytest.raises(grpc.RpcError) as caught:
        received.extend(entity for response in stream for entity in response.entities)
    assert received == [parsed(host(2))]
    assert [code for code, _ in errors_of(caught.value)] == [Code.OK, Code.INVALID_ARGUMENT, Code.UNIMPLEMENTED]


def test_large_reads_come_in_messages_of_bounded_size(store):
    for number in range(900):
        request = p4rt.WriteRequest()
        entry = request.updates.add(type=p4rt.Update.INSERT).entity.table_entry
        entry.table_id = ROUTES
        entry.match.add(field_id=1).lpm.MergeFrom(p4rt.FieldMatch.LPM(value=encode(number << 64), prefix_len=64))
        entry.metadata = bytes(1000)
        entry.action.action.action_id = 16777218
        batch.write(store, request)
    read = p4rt.ReadRequest()
    read.entities.add().table_entry.table_id = ROUTES
    responses = list(batch.read(store, read))
    assert len(responses) > 3
    assert max(map(len, responses)) < batch.READ_RESPONSE_BYTES + 2048
    assert sum(len(p4rt.ReadResponse.FromString(r).entities) for r in responses) == 900


# --- action profiles --------------------------------------------------------------------------------------------------


def member(member_id, port, profile=SELECTOR):
    return f"action_profile_member {{ action_profile_id: {profile} member_id: {member_id} {forward(port)} }}"


def group(group_id, *members, size=4):
    listed = " ".join(f"members {{ member_id: {m} weight: {w} }}" for m, w in members)
    return f"action_profile_group {{ action_profile_id: {SELECTOR} group_id: {group_id} {listed} max_size: {size} }}"


def ecmp(action, prefix_len=48):
    return (
        f"table_entry {{ table_id: {ECMP} match {{ field_id: 1 lpm {{ "
        f'value: "\\375{chr(92)}000{(chr(92) + "000") * 14}" prefix_len: {prefix_len} }} }} action {{ {action} }} }}'
    )


def test_members_groups_and_references_reach_the_engine_and_read_back(client, engine):
    entities = [member(1, 5), member(2, 6), group(1, (1, 1), (2, 2)), ecmp("action_profile_group_id: 1")]
    client.write(*(update("INSERT", entity) for entity in entities))
    client.write(update("INSERT", member(7, 3, PROFILE)))
    indirect = (
        f'table_entry {{ table_id: {INDIRECT} match {{ field_id: 1 exact {{ value: "\\001" }} }} '
        "action { action_profile_member_id: 7 } }"
    )
    client.write(update("INSERT", indirect))
    assert engine.members["ingress.ecmp_selector", 2] == ActionCall("ingress.forward", (6,))
    assert engine.groups["ingress.ecmp_selector", 1] == ((1, 1), (2, 2))
    actions = {k[0]: e.action for k, e in engine.entries.items()}
    assert (actions["ingress.ecmp"], actions["ingress.indirect"]) == (GroupRef(1), MemberRef(7))
    assert client.read("action_profile_member { }") == [parsed(e) for e in (*entities[:2], member(7, 3, PROFILE))]
    assert client.read(f"action_profile_member {{ action_profile_id: {SELECTOR} member_id: 2 }}") == [
        parsed(entities[1])
    ]
    assert client.read("action_profile_group { }") == [parsed(entities[2])]
    assert client.read(f"table_entry {{ table_id: {ECMP} }}") == [parsed(entities[3])]
    client.write(update("MODIFY", group(1, (2, 4))), update("MODIFY", member(2, 9)))
    assert engine.groups["ingress.ecmp_selector", 1] == ((2, 4),)
    assert engine.members["ingress.ecmp_selector", 2] == ActionCall("ingress.forward", (9,))
    client.write(
        update("DELETE", ecmp("action_profile_group_id: 1")),
        update("DELETE", group(1)),
        update("DELETE", member(1, 5)),
        update("DELETE", member(2, 6)),
    )
    assert not engine.groups
    assert list(engine.members) == [("ingress.next_hops", 7)]


def test_one_shot_action_sets_become_groups_and_read_back_whole(client, engine, errors_of):
    def action_set(*ports):
        return (
            "action_profile_action_set { "
            + " ".join(f"action_profile_actions {{ {forward(p)} weight: {w} }}" for p, w in ports)
            + " }"
        )

    entry = ecmp(action_set((1, 1), (2, 2)))
    client.write(update("INSERT", entry))
    ((_, members),) = engine.groups.items()
    assert [(engine.members["ingress.ecmp_selector", m].args, w) for m, w in members] == [((1,), 1), ((2,), 2)]
    assert client.read(f"table_entry {{ table_id: {ECMP} }}") == [parsed(entry)]
    assert client.read("action_profile_member { }") == []
    assert client.read("action_profile_group { }") == []
    with pytest.raises(grpc.RpcError) as caught:
        client.write(update("INSERT", member(1, 1)))
    assert "is programmed with action sets" in errors_of(caught.value)[0][1]
    client.write(update("MODIFY", ecmp(action_set((3, 1)))))
    ((_, members),) = engine.groups.items()
    assert [engine.members["ingress.ecmp_selector", m].args for m, _ in members] == [(3,)]
    assert len(engine.members) == 1
    client.write(update("DELETE", entry))
    assert not engine.groups
    assert not engine.members
    client.write(update("INSERT", member(1, 1)))


# --- counters, meters, registers, replication -------------------------------------------------------------------------


def test_counters_are_read_whole_or_by_index_and_written(client, engine):
    engine.counters["ingress.received", 2] = CounterValue(packets=3, bytes=300)
    entities = [e.counter_entry for e in client.read("counter_entry { counter_id: 301989889 }")]
    assert [(e.index.index, e.data.packet_count, e.data.byte_count) for e in entities] == [
        (0, 0, 0), (1, 0, 0), (2, 3, 300), (3, 0, 0),
    ]  # fmt: skip
    assert len(client.read("counter_entry { }")) == 4
    write = "counter_entry { counter_id: 301989889 index { index: 1 } data { packet_count: 7 byte_count: 8 } }"
    client.write(update("MODIFY", write))
    assert engine.counters["ingress.received", 1] == CounterValue(7, 8)
    assert client.read("counter_entry { counter_id: 301989889 index { index: 1 } }") == [parsed(write)]
    client.write(update("MODIFY", "counter_entry { counter_id: 301989889 data { } }"))
    assert {engine.read_counter("ingress.received", i) for i in range(4)} == {CounterValue(0, 0)}


def test_direct_counters_come_with_their_entry_only_when_asked_for(client, engine):
    client.write(update("INSERT", host(2, "counter_data { packet_count: 5 byte_count: 6 }")))
    ((key, value),) = engine.direct_counters.items()
    assert (key[0], value) == ("ingress.hosts", CounterValue(5, 6))
    (plain,) = client.read("table_entry { table_id: 33554433 }")
    assert not plain.table_entry.HasField("counter_data")
    (full,) = client.read("table_entry { table_id: 33554433 counter_data { } }")
    assert (full.table_entry.counter_data.packet_count, full.table_entry.counter_data.byte_count) == (5, 6)
    key = f'table_entry {{ table_id: {HOSTS} match {{ field_id: 1 exact {{ value: "\\002" }} }} }}'
    client.write(update("MODIFY", f"direct_counter_entry {{ {key} data {{ packet_count: 1 }} }}"))
    for request in (f"direct_counter_entry {{ {key} }}", "direct_counter_entry { table_entry { } }"):
        (entity,) = client.read(request)
        assert entity.direct_counter_entry.data.packet_count == 1
        assert entity.direct_counter_entry.table_entry.match[0].exact.value == b"\x02"


def test_meters_are_configured_read_back_and_reset(client, engine):
    config = "config { cir: 10 cburst: 1 pir: 20 pburst: 2 }"
    meter = f"meter_entry {{ meter_id: 335544321 index {{ index: 3 }} {config} }}"
    client.write(update("MODIFY", meter))
    assert engine.meters["egress.trimmed_cap", 3] == MeterConfig(10, 1, 20, 2)
    entities = client.read("meter_entry { meter_id: 335544321 }")
    assert entities[3] == parsed(meter)
    assert [e.meter_entry.HasField("config") for e in entities] == [False, False, False, True]
    client.write(update("MODIFY", "meter_entry { meter_id: 335544321 }"))
    assert engine.meters["egress.trimmed_cap", 3] is None
    assert not client.read("meter_entry { meter_id: 335544321 index { index: 3 } }")[0].meter_entry.HasField("config")

    acl = ACL_ENTRY[:-1] + f"meter_{config} }}"
    client.write(update("INSERT", acl))
    ((_, value),) = engine.direct_meters.items()
    assert value == MeterConfig(10, 1, 20, 2)
    (entity,) = client.read(f"table_entry {{ table_id: {ACL} meter_config {{ }} }}")
    assert entity == parsed(acl)
    client.write(update("MODIFY", ACL_ENTRY))  # a modify without configuration resets it
    assert list(engine.direct_meters.values()) == [None]


def test_registers_are_written_and_read(client, engine):
    write = 'register_entry { register_id: 369098753 index { index: 2 } data { bitstring: "\\001\\002" } }'
    client.write(update("MODIFY", write))
    assert engine.registers["ingress.depth", 2] == 0x102
    assert [e.register_entry.data.bitstring for e in client.read("register_entry { }")] == [b"\0", b"\0", b"\x01\x02"]
    assert client.read("register_entry { register_id: 369098753 index { index: 2 } }") == [parsed(write)]


def test_multicast_groups_and_clone_sessions_are_kept(client, engine):
    multicast = (
        "packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 5 "
        "replicas { egress_port: 1 instance: 1 } replicas { egress_port: 2 instance: 9 } } }"
    )
    clone = (
        "packet_replication_engine_entry { clone_session_entry { session_id: 6 "
        'replicas { port: "\\001\\376" instance: 1 } class_of_service: 3 packet_length_bytes: 100 } }'
    )
    client.write(update("INSERT", multicast), update("INSERT", clone))
    assert engine.multicast[5] == (Replica(1, 1), Replica(2, 9))
    assert engine.clones[6] == ((Replica(510, 1),), 100, 3)
    assert client.read("packet_replication_engine_entry { multicast_group_entry { } }") == [parsed(multicast)]
    assert client.read("packet_replication_engine_entry { clone_session_entry { session_id: 6 } }") == [parsed(clone)]
    assert len(client.read("packet_replication_engine_entry { }")) == 2
    client.write(update("DELETE", multicast), update("DELETE", clone))
    assert not engine.multicast
    assert not engine.clones


def test_a_copy_of_the_store_brings_another_engine_to_the_same_state(harness, client, engine):
    entities = [
        ACL_ENTRY[:-1] + "meter_config { cir: 1 cburst: 1 pir: 1 pburst: 1 } }",
        host(2),
        member(1, 5),
        group(1, (1, 1)),
        ecmp("action_profile_group_id: 1"),
        "packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 5 } }",
    ]
    client.write(*(update("INSERT", entity) for entity in entities))
    client.write(
        update("MODIFY", f"table_entry {{ table_id: {ROUTES} is_default_action: true action {{ {forward(7)} }} }}"),
        update("MODIFY", "meter_entry { meter_id: 335544321 config { cir: 1 cburst: 1 pir: 2 pburst: 1 } }"),
        update("MODIFY", 'register_entry { register_id: 369098753 data { bitstring: "\\001" } }'),
    )
    copy = type(engine)()
    harness.devices.find(1).copy_to(copy)
    for name in ("defaults", "members", "groups", "meters", "registers", "multicast", "clones"):
        assert getattr(copy, name) == getattr(engine, name), name

    def by_table(e):
        return sorted((table, str(entry)) for (table, _), entry in e.entries.items())

    assert by_table(copy) == by_table(engine)
    assert len(copy.direct_meters) == 1


def test_a_copy_of_too_many_register_cells_is_refused_before_one_is_read(harness, client, engine, monkeypatch):
    """The device waits during a copy: `trace` of the largest program would take a minute."""
    client.write(update("MODIFY", 'register_entry { register_id: 369098753 data { bitstring: "\\001" } }'))
    monkeypatch.setattr("switch.p4rt.store.CELLS_COPIED_MAX", 2)
    copy = type(engine)()
    words = r"registers must have at most 2 cells together to be copied \(got 3; the largest is ingress.depth, with 3\)"
    with pytest.raises(EngineError, match=words):
        harness.devices.find(1).copy_to(copy)
    assert not copy.registers
