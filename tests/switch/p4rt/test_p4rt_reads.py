"""A Read is bounded, and others are answered while it is collected; no Write comes in between."""

import asyncio
from typing import Any

import grpc
import pytest

from switch.engine import COPIES_MAX, CounterValue
from switch.p4rt import batch
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.errors import Code, P4RuntimeError
from switch.p4rt.limits import REFUSED_MAX, WILDCARDS_MAX
from tests.switch.p4rt.conftest import Client, Harness

COUNTER = 301989889


def cells(count: int) -> Any:
    """A Read of `count` cells of the counter, which has four."""
    request = p4rt.ReadRequest(device_id=1)
    for number in range(count):
        entry = request.entities.add().counter_entry
        entry.counter_id = COUNTER
        entry.index.index = number % 4
    return request


WILDCARDS = [
    "table_entry { }",
    "table_entry { table_id: 33554433 priority: 5 }",
    "direct_counter_entry { table_entry { table_id: 33554433 } }",
    "direct_meter_entry { }",
    "counter_entry { counter_id: 301989889 }",
    "meter_entry { }",
    "register_entry { }",
    "action_profile_member { action_profile_id: 285212673 }",
    "action_profile_group { action_profile_id: 285212673 }",
    "packet_replication_engine_entry { }",
    "packet_replication_engine_entry { multicast_group_entry { } }",
    "packet_replication_engine_entry { clone_session_entry { } }",
]


@pytest.mark.parametrize("entity", WILDCARDS)
def test_the_wildcards_of_a_read_are_limited(client: Client, entity: str) -> None:
    client.read(*[entity] * WILDCARDS_MAX)
    with pytest.raises(grpc.RpcError) as refused:
        client.read(*[entity] * (WILDCARDS_MAX + 1))
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert refused.value.details() == (
        f"a Read must have at most {WILDCARDS_MAX} entities that select more than one object"
    )


def test_an_answer_has_at_most_the_bytes_of_all_that_the_program_can_hold(store, monkeypatch) -> None:
    assert sum(map(len, batch.read(store, cells(2000)))) > 20_000
    monkeypatch.setattr(store.pipeline, "message_bytes_max", 20_000)
    with pytest.raises(P4RuntimeError) as refused:
        list(batch.read(store, cells(2000)))
    assert refused.value.code == Code.RESOURCE_EXHAUSTED
    assert refused.value.message == "the answer to a Read must have at most 20000 bytes; ask for fewer entities"


def test_multicast_groups_that_could_be_written_can_be_read_however_many_there_are(store: Any) -> None:
    for number in range(1, 41):
        write = p4rt.WriteRequest()
        group = write.updates.add(type=p4rt.Update.INSERT).entity.packet_replication_engine_entry.multicast_group_entry
        group.multicast_group_id = number
        for instance in range(COPIES_MAX):
            group.replicas.add(egress_port=1, instance=instance)
        batch.write(store, write)
    request = p4rt.ReadRequest()
    request.entities.add().packet_replication_engine_entry.multicast_group_entry.SetInParent()
    responses = list(batch.read(store, request))
    found = [entity for response in responses for entity in p4rt.ReadResponse.FromString(response).entities]
    assert sum(map(len, responses)) > store.pipeline.message_bytes_max
    assert len(found) == 40
    assert max(map(len, responses)) < 4 << 20  # gRPC's default limit
    with pytest.raises(P4RuntimeError, match="ask for fewer entities"):  # the same twice is more than there is
        list(batch.read(store, p4rt.ReadRequest(entities=list(request.entities) * 2)))


def test_a_read_of_nonsense_ends_early(store: Any) -> None:
    request = p4rt.ReadRequest(entities=[p4rt.Entity()] * 100_000)
    with pytest.raises(P4RuntimeError) as refused:
        list(batch.read(store, request))
    assert refused.value.code == Code.RESOURCE_EXHAUSTED
    assert refused.value.message.startswith(
        f"more than {REFUSED_MAX} entities of the Read are refused; the first: INVALID_ARGUMENT: the entity is not set"
    )


class Context:
    """Takes a Read's answer, as gRPC does for a client that reads at once."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.aborted: list[str] = []

    async def write(self, response: bytes) -> None:
        self.taken.append(response)

    async def abort(self, code: Any, details: str, **_: Any) -> None:
        self.aborted.append(f"{code.name}: {details}")
        raise grpc.RpcError

    @property
    def entities(self) -> list[Any]:
        return [entity for response in self.taken for entity in p4rt.ReadResponse.FromString(response).entities]


async def collected(harness: Harness, request: Any, context: Context | None = None) -> list[Any]:
    """The entities of a Read, in the server's loop."""
    context = context or Context()
    await harness.server._read(request.SerializeToString(), context)
    return context.entities


async def begun(harness: Harness) -> None:
    """Until a Read has its turn, and pauses."""
    engine = harness.data_plane.engines[1]
    read_counter, first = engine.read_counter, asyncio.Event()

    def read(name: str, index: int) -> CounterValue:
        first.set()
        found: CounterValue = read_counter(name, index)
        return found

    engine.read_counter = read
    await asyncio.wait_for(first.wait(), timeout=30)


@pytest.mark.parametrize("answered", [True, False])
def test_the_server_goes_on_while_a_read_is_collected(harness: Harness, client: Client, answered: bool) -> None:
    request = cells(10_000)
    if not answered:  # filters that no entry passes
        request = p4rt.ReadRequest(device_id=1)
        for number in range(10_000):
            entry = request.entities.add().table_entry
            entry.table_id = 33554433
            entry.match.add(field_id=1).exact.value = number.to_bytes(2, "big")

    async def live() -> tuple[int, int]:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.ensure_future(others())
        found = await collected(harness, request)
        task.cancel()
        return len(found), turns

    found, turns = harness.run(live())
    assert found == (10_000 if answered else 0)
    assert turns >= 10_000 // batch.STEPS_PER_TURN


def test_no_write_comes_between_the_parts_of_a_read(harness: Harness, client: Client, engine: Any) -> None:
    write = p4rt.WriteRequest(device_id=1)
    write.election_id.low = 1
    entry = write.updates.add(type=p4rt.Update.MODIFY).entity.counter_entry
    entry.counter_id = COUNTER
    entry.data.packet_count = 7

    async def live() -> list[Any]:
        reading = asyncio.ensure_future(collected(harness, cells(10_000)))
        await begun(harness)
        await harness.server._write(write.SerializeToString(), None)
        assert reading.done()
        return await reading

    assert {entity.counter_entry.data.packet_count for entity in harness.run(live())} == {0}
    assert engine.counters["ingress.received", 3] == CounterValue(7, 0)


def test_a_read_whose_device_crashes_between_its_parts_ends(harness: Harness, client: Client) -> None:
    context = Context()

    async def live() -> None:
        reading = asyncio.ensure_future(collected(harness, cells(10_000), context))
        await begun(harness)
        harness.devices.crash(1)
        await reading

    with pytest.raises(grpc.RpcError):
        harness.run(live())
    assert context.aborted == [
        "FAILED_PRECONDITION: device s1 has no forwarding pipeline; set one with SetForwardingPipelineConfig"
    ]


@pytest.mark.parametrize("slow", [False, True], ids=["reading", "not reading"])
def test_a_long_answer_is_sent_while_it_is_collected(harness, client, monkeypatch, slow) -> None:
    """However long: what its client has not taken yet is bounded. A client that takes nothing loses its answer, and
    others have the device again."""
    monkeypatch.setattr("switch.p4rt.server.AHEAD_BYTES", 20_000)
    monkeypatch.setattr("switch.p4rt.server.HURRY_S", 0.05 if slow else 10.0)  # the request is long as well
    made, context, waiting = 0, Context(), list[int]()
    read = batch.read

    def counted(*asked: Any) -> Any:
        nonlocal made
        for block in read(*asked):
            made += len(block)
            yield block

    async def write(response: bytes) -> None:
        waiting.append(made - sum(map(len, context.taken)))
        if slow:
            await asyncio.Event().wait()
        context.taken.append(response)

    monkeypatch.setattr("switch.p4rt.batch.read", counted)
    monkeypatch.setattr(context, "write", write)
    asked = cells(20_000)
    if slow:
        with pytest.raises(grpc.RpcError):
            harness.run(collected(harness, asked, context))
        assert context.aborted[0].startswith("RESOURCE_EXHAUSTED: the client of a Read request above 65536 bytes must")
    else:
        assert len(harness.run(collected(harness, asked, context))) == 20_000
        assert made > 300_000
    assert max(waiting) < 30_000
    assert len(client.read("register_entry { }")) > 0  # the device's turn has ended


def test_one_object_is_found_without_a_look_at_all_others(store: Any) -> None:
    """Each of these entities names one object, so a Read may have a hundred thousand of them."""

    class Untouched(dict[int, Any]):
        def items(self) -> Any:
            raise AssertionError("all objects were looked at")

    state = next(iter(store.profiles.values()))
    state.members, state.groups = Untouched(state.members), Untouched(state.groups)
    store.multicast, store.clones = Untouched(), Untouched()
    request = p4rt.ReadRequest()
    request.entities.add().action_profile_member.action_profile_id = 285212673
    request.entities[-1].action_profile_member.member_id = 5
    request.entities.add().action_profile_group.action_profile_id = 285212673
    request.entities[-1].action_profile_group.group_id = 5
    request.entities.add().packet_replication_engine_entry.multicast_group_entry.multicast_group_id = 5
    request.entities.add().packet_replication_engine_entry.clone_session_entry.session_id = 5
    assert list(batch.read(store, request)) == []
