"""Digests and idle timeouts, sentence by sentence (specification, "DigestEntry", "Idle-timeout"); time is given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format

from p4c.entries import Exact
from p4c.model import load_program
from switch.engine import PortConfig
from switch.p4rt import batch, digests
from switch.p4rt.batch import BatchError
from switch.p4rt.bindings import p4info_pb2, p4runtime_pb2 as p4rt
from switch.p4rt.errors import P4RuntimeError
from switch.p4rt.p4data import digest_info
from switch.p4rt.pipeline import PipelineCache
from switch.p4rt.store import TIMEOUT_MIN_NS, EntityStore
from switch.reference import ReferenceEngine
from tests.helpers.p4.made import Made, pipeline_of, read, store_of, write

TOP = (
    "type bit<9> port_t; enum bit<4> level_t { LOW = 1, HIGH = 8 } struct inner_t { bool odd; int<8> signed; }"
    " struct learned_t { bit<8> a; port_t port; level_t level; inner_t inner; tuple<bit<8>, bit<16>> pair; }"
    " struct other_t { bit<8> b; }"
)
INGRESS = (
    "if (hdr.h.b == 0) digest<other_t>(1, { hdr.h.a }); else digest<learned_t>(1,"
    " { hdr.h.a, (port_t) s.ingress_port, level_t.HIGH, { true, (int<8>) hdr.h.b }, { 0, 300 } });"
)
S = 1_000_000_000


@pytest.fixture
def store(tmp_path: Path) -> EntityStore:
    return store_of(pipeline_of(Made(tmp_path, top=TOP, ingress=INGRESS).compiled))


def id_of(store: EntityStore, name: str = "other_t") -> int:
    return next(info.id for info in store.pipeline.p4info.digests.values() if info.name == name)


def entry(store: EntityStore, name: str = "other_t", timeout: int = 0, size: int = 0, ack: int = 0) -> Any:
    config = p4rt.DigestEntry.Config(max_timeout_ns=timeout, max_list_size=size, ack_timeout_ns=ack)
    return p4rt.Entity(digest_entry=p4rt.DigestEntry(digest_id=id_of(store, name), config=config))


def packets(store: EntityStore, now_ns: int, *frames: str) -> None:
    """Frames of two bytes, of which the second chooses the digest."""
    engine = store.engine
    assert isinstance(engine, ReferenceEngine)
    for frame in frames:
        engine.configure_port(2, PortConfig(), now_ns)
        engine.receive(2, bytes.fromhex(frame), now_ns)
    for digest in engine.take_digests():
        store.digests.arrived(digest.number, digest.data, now_ns)


def sent(store: EntityStore, now_ns: int, epoch_ns: int = 7) -> list[Any]:
    """The DigestList messages that are due."""
    return [p4rt.StreamMessageResponse.FromString(one).digest for one in store.digests.due(now_ns, epoch_ns)]


def values(one: Any) -> list[int]:
    return [data.struct.members[0].bitstring[0] for data in one.data]


def test_without_an_entry_no_list_is_made(store: EntityStore) -> None:
    packets(store, 0, "0100")
    assert sent(store, 9 * S) == []
    write(store, "INSERT", entry(store))
    packets(store, 0, "0101")
    assert sent(store, 9 * S) == [], "another digest is not enabled by it"


def test_a_list_has_the_data_as_p4info_says(store: EntityStore) -> None:
    write(store, "INSERT", entry(store, "learned_t"))
    packets(store, 5, "2aff")
    (one,) = sent(store, 5, 1_700_000_000_000_000_005)
    assert (one.digest_id, one.timestamp) == (id_of(store, "learned_t"), 1_700_000_000_000_000_005)
    a, port, level, inner, pair = one.data[0].struct.members
    assert (a.bitstring, port.bitstring, level.enum_value) == (b"\x2a", b"\x02", b"\x08")
    assert [m.WhichOneof("data") for m in inner.struct.members] == ["bool", "bitstring"]
    assert (inner.struct.members[0].bool, inner.struct.members[1].bitstring) == (True, b"\xff"), "-1 in one byte"
    assert [m.bitstring for m in getattr(pair, pair.WhichOneof("data")).members] == [b"\0", b"\x01\x2c"]


@pytest.mark.parametrize(("timeout", "size"), [(0, 0), (0, 5), (S, 1)])
def test_without_a_timeout_or_with_lists_of_one_each_digest_is_sent_at_once(timeout, size, store) -> None:
    write(store, "INSERT", entry(store, timeout=timeout, size=size))
    packets(store, 3, "0100", "0200")
    lists = sent(store, 3)
    assert [values(one) for one in lists] == [[1], [2]]
    assert lists[0].list_id != lists[1].list_id


def test_a_list_waits_for_its_timeout_from_the_first_digest_on(store: EntityStore) -> None:
    write(store, "INSERT", entry(store, timeout=S))
    packets(store, 10, "0100")
    packets(store, S, "0200", "0100")
    assert sent(store, S + 9) == []
    assert store.digests.next_ns == S + 10
    assert [values(one) for one in sent(store, S + 10)] == [[1, 2]], "distinct, in their order"
    assert sent(store, 9 * S) == [], "an empty list is never sent"
    assert store.digests.next_ns is None
    packets(store, 5 * S, "0300")
    assert store.digests.next_ns == 6 * S


def test_a_list_is_sent_when_it_has_so_many_distinct_digests(store: EntityStore) -> None:
    write(store, "INSERT", entry(store, timeout=S, size=3))
    packets(store, 0, "0100", "0200", "0100", "0200")
    assert sent(store, 1) == []
    packets(store, 2, "0300", "0400")
    assert [values(one) for one in sent(store, 2)] == [[1, 2, 3]]
    assert [values(one) for one in sent(store, S + 2)] == [[4]]


def test_what_is_not_acknowledged_is_not_sent_again_before_the_timeout(store: EntityStore) -> None:
    write(store, "INSERT", entry(store, ack=S))
    packets(store, 0, "0100")
    (first,) = sent(store, 0)
    packets(store, S - 1, "0100", "0200")
    assert [values(one) for one in sent(store, S - 1)] == [[2]]
    packets(store, S, "0100", "0200")
    assert [values(one) for one in sent(store, S)] == [[1]], "ack_timeout_ns old"
    store.digests.acknowledge(id_of(store), first.list_id)
    packets(store, S + 1, "0100")
    assert sent(store, S + 1) == [], "the acknowledgement was of an older list"


def test_an_acknowledgement_of_the_list_lets_its_digests_come_again(store: EntityStore) -> None:
    write(store, "INSERT", entry(store, ack=S, timeout=1))
    packets(store, 0, "0100", "0200")
    (one,) = sent(store, 1)
    for digest, list_id in ((id_of(store), one.list_id + 5), (id_of(store, "learned_t"), one.list_id)):
        store.digests.acknowledge(digest, list_id)
    packets(store, 2, "0100")
    assert sent(store, 3) == [], "both numbers must match"
    store.digests.acknowledge(id_of(store), one.list_id)
    store.digests.acknowledge(id_of(store), one.list_id)
    packets(store, 4, "0100", "0200")
    assert [values(one) for one in sent(store, 5)] == [[1, 2]]


def test_without_a_timeout_of_acknowledgements_nothing_is_remembered(store: EntityStore) -> None:
    write(store, "INSERT", entry(store))
    for now_ns in (0, 0, 1):
        packets(store, now_ns, "0100")
        assert [values(one) for one in sent(store, now_ns)] == [[1]]


def test_another_controller_learns_what_was_not_acknowledged(store: EntityStore) -> None:
    write(store, "INSERT", entry(store, ack=S))
    packets(store, 0, "0100")
    assert len(sent(store, 0)) == 1
    store.digests.forget()
    packets(store, 1, "0100")
    assert len(sent(store, 1)) == 1


def test_an_entry_is_inserted_modified_read_and_deleted(store: EntityStore) -> None:
    def answer(digest_id: int) -> list[Any]:
        return read(store, p4rt.Entity(digest_entry=p4rt.DigestEntry(digest_id=digest_id)))

    assert answer(0) == answer(id_of(store)) == []
    first, second = entry(store, timeout=5, size=6, ack=7), entry(store, "learned_t")
    write(store, "INSERT", first)
    write(store, "INSERT", second)
    assert answer(id_of(store)) == [first]
    assert sorted(map(str, answer(0))) == sorted(map(str, (first, second)))
    changed = entry(store, timeout=S, ack=S)
    write(store, "MODIFY", changed)
    assert answer(id_of(store)) == [changed]
    packets(store, 0, "0100")
    assert sent(store, 5) == [], "by the new parameters"
    write(store, "DELETE", entry(store))
    assert (answer(id_of(store)), answer(0)) == ([], [second])
    assert sent(store, 9 * S) == [], "what waited is gone"
    packets(store, 9 * S, "0100")
    assert sent(store, 9 * S) == []
    write(store, "INSERT", entry(store))
    packets(store, 9 * S, "0100")
    assert len(sent(store, 9 * S)) == 1


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("INSERT", {}, "ALREADY_EXISTS: digest other_t: is enabled already; modify it"),
        ("MODIFY", {"name": "learned_t"}, "NOT_FOUND: digest learned_t: is not enabled; insert it first"),
        ("DELETE", {"name": "learned_t"}, "NOT_FOUND: digest learned_t: is not enabled; insert it first"),
        ("MODIFY", {"ack": -1}, "INVALID_ARGUMENT: digest other_t: timeouts and sizes must not be negative"),
    ],
)
def test_a_wrong_update_changes_nothing(kind: str, change: dict[str, Any], message: str, store: EntityStore) -> None:
    write(store, "INSERT", entry(store, size=2))
    with pytest.raises(BatchError) as refused:
        write(store, kind, entry(store, **change))
    assert message in str(refused.value)
    (kept,) = store.digests.read(p4rt.DigestEntry())
    assert p4rt.Entity.FromString(kept) == entry(store, size=2)


def test_a_digest_that_p4info_has_not_is_invalid(store: EntityStore) -> None:
    with pytest.raises(BatchError, match="INVALID_ARGUMENT: no digest with id 5; digests: "):
        write(store, "INSERT", p4rt.Entity(digest_entry=p4rt.DigestEntry(digest_id=5)))


def test_a_batch_of_all_or_none_takes_an_entry_back(store: EntityStore) -> None:
    request = p4rt.WriteRequest(atomicity="ROLLBACK_ON_ERROR")
    request.updates.add(type="INSERT", entity=entry(store))
    request.updates.add(type="DELETE", entity=entry(store, "learned_t"))
    with pytest.raises(BatchError):
        batch.write(store, request)
    assert list(store.digests.read(p4rt.DigestEntry())) == []


def test_what_is_kept_is_bounded(store: EntityStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "KEPT_BYTES_MAX", 4 * (128 + 1) + 9)
    write(store, "INSERT", entry(store, timeout=S, ack=9 * S))
    packets(store, 0, *(f"{a:02x}00" for a in range(1, 10)))
    (one,) = sent(store, S)
    assert values(one) == [1, 2, 3, 4], "others are dropped, as the specification allows"
    packets(store, S, "0900")
    assert sent(store, 3 * S) == [], "unacknowledged ones count"
    store.digests.acknowledge(id_of(store), one.list_id)
    packets(store, 3 * S, "0900")
    assert [values(one) for one in sent(store, 4 * S)] == [[9]]


def test_long_lists_are_cut(store: EntityStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "LIST_SIZE_MAX", 3)
    write(store, "INSERT", entry(store, timeout=S, size=0))
    packets(store, 0, *(f"{a:02x}00" for a in range(1, 5)))
    assert [values(one) for one in sent(store, 0)] == [[1, 2, 3]]
    monkeypatch.setattr(digests, "LIST_BYTES_MAX", 2)
    packets(store, 1, "0900")
    assert [values(one) for one in sent(store, 1)] == [[4, 9]]


@pytest.mark.parametrize(
    ("spec", "types", "refused"),
    [
        (
            'struct { name: "a" }',
            'structs { key: "a" value { members { type_spec { struct { name: "a" } } } } }',
            "32 in",
        ),
        (
            'new_type { name: "n" }',
            'new_types { key: "n" value { original_type { new_type { name: "n" } } } }',
            "32 in",
        ),
        ('header { name: "h" }', "", "a digest of type header is not supported"),
        ('struct { name: "gone" }', "", "a digest of type struct is not supported"),
        ("bitstring { varbit { max_bitwidth: 8 } }", "", "a digest of type bitstring is not supported"),
        ("bitstring { int { bitwidth: 0 } }", "", "a digest of type bitstring is not supported"),
        ("", "", "a digest of type unset is not supported"),
    ],
)
def test_types_that_a_digest_cannot_have_are_refused_when_it_is_enabled(spec: str, types: str, refused: str) -> None:
    digest = text_format.Parse(f"type_spec {{ {spec} }}", p4info_pb2.Digest())
    assert refused in digest_info(digest, text_format.Parse(types, p4info_pb2.P4Info().type_info)).refused


def test_types_that_double_are_bounded() -> None:
    types = p4info_pb2.P4Info().type_info
    for number in range(30):
        for _ in range(2):
            types.structs[f"s{number}"].members.add().type_spec.struct.name = f"s{number + 1}"
    types.structs["s30"].SetInParent()
    digest = text_format.Parse('type_spec { struct { name: "s0" } }', p4info_pb2.Digest())
    assert "at most 4096 parts" in digest_info(digest, types).refused


def test_the_program_must_have_what_p4info_has(tmp_path: Path) -> None:
    compiled = Made(tmp_path, top=TOP, ingress=INGRESS).compiled
    config = p4rt.ForwardingPipelineConfig(
        p4_device_config=compiled.json_text.replace('"other_t"', '"else_t"').encode()
    )
    text_format.Parse(compiled.p4info_text, config.p4info)
    with pytest.raises(P4RuntimeError, match="INVALID_ARGUMENT: pipeline config: digest other_t: its 1 values"):
        PipelineCache(load_program).read(config.SerializeToString())


LOCAL = (
    "action give(bit<8> v) { hdr.h.b = v; } table t { key = { hdr.h.a: exact; } actions = { give; NoAction; }"
    " size = 600; support_timeout = true; } table u { key = { hdr.h.a: exact; } actions = { NoAction; } size = 8; }"
)


class Timed:
    """A device whose clock the test moves."""

    def __init__(self, folder: Path) -> None:
        self.made = Made(folder, local=LOCAL, ingress="t.apply(); u.apply();")
        engine = self.made.engine()
        assert isinstance(engine, ReferenceEngine)
        self.engine, self.now_ns = engine, 0
        self.store = EntityStore(pipeline_of(self.made.compiled), engine, lambda: self.now_ns)
        self.tables = {table.name: table for table in self.store.pipeline.p4info.tables.values()}

    def entity(self, a: int, timeout: int = 0, table: str = "I.t", **more: Any) -> Any:
        entry = p4rt.TableEntry(table_id=self.tables[table].id, idle_timeout_ns=timeout, **more)
        if not entry.is_default_action:
            entry.match.add(field_id=1).exact.value = bytes([a])
        name = "NoAction"
        entry.action.action.action_id = next(x.id for x in self.tables[table].actions.values() if x.name == name)
        return p4rt.Entity(table_entry=entry)

    def write(self, kind: str, entity: Any) -> None:
        write(self.store, kind, entity)

    def read(self, entity: Any) -> list[Any]:
        return [found.table_entry for found in read(self.store, entity)]

    def packet(self, a: int, now_ns: int) -> None:
        self.engine.receive(2, bytes([a, 0]), now_ns)

    def expired(self, now_ns: int) -> list[int]:
        self.now_ns = now_ns
        keys = [row.entry.matches[0] for _, row in self.store.idle.expired(now_ns)]
        return [key.value for key in keys if isinstance(key, Exact)]


@pytest.fixture
def timed(tmp_path: Path) -> Timed:
    return Timed(tmp_path)


def test_an_entry_that_is_not_hit_for_its_timeout_is_told_again_and_again(timed: Timed) -> None:
    timed.now_ns = 5
    timed.write("INSERT", timed.entity(1, S))
    timed.write("INSERT", timed.entity(2, 0))
    assert timed.expired(S + 4) == []
    assert timed.store.idle.next_ns == S + 5
    assert timed.expired(S + 5) == [1]
    assert timed.expired(2 * S + 4) == [], "the timer was reset"
    assert timed.expired(2 * S + 5) == [1]


def test_a_hit_begins_the_lapse_anew(timed: Timed) -> None:
    timed.write("INSERT", timed.entity(1, S))
    timed.packet(1, S // 2)
    timed.packet(7, S - 1)
    assert timed.expired(S) == []
    assert timed.store.idle.next_ns == S + S // 2
    assert timed.expired(S + S // 2) == [1]


def test_several_entries_are_told_together_and_deleted_ones_never(timed: Timed) -> None:
    for a in (1, 2, 3):
        timed.write("INSERT", timed.entity(a, a * S))
    timed.write("DELETE", timed.entity(2))
    timed.write("INSERT", timed.entity(2, 9 * S))
    assert timed.expired(4 * S) == [1, 3]
    for a in (1, 2, 3):
        timed.write("DELETE", timed.entity(a))
    assert timed.expired(99 * S) == []
    assert timed.store.idle.next_ns is None


def test_a_modified_timeout_holds_from_the_last_hit_on(timed: Timed) -> None:
    timed.write("INSERT", timed.entity(1, 100 * S))
    timed.packet(1, 3 * S)
    timed.write("MODIFY", timed.entity(1, 2 * S))
    assert timed.expired(5 * S - 1) == []
    assert timed.expired(5 * S) == [1]
    timed.write("MODIFY", timed.entity(1, 0))
    assert timed.expired(99 * S) == []


def test_what_was_modified_often_takes_no_memory(timed: Timed) -> None:
    timed.write("INSERT", timed.entity(1, S))
    for number in range(500):
        timed.write("MODIFY", timed.entity(1, S - number))
    assert len(timed.store.idle._heap) < 100
    assert timed.expired(S) == [1]


def test_a_shorter_timeout_than_can_be_had_is_taken_for_the_shortest(timed: Timed) -> None:
    timed.write("INSERT", timed.entity(1, 1))
    assert timed.expired(TIMEOUT_MIN_NS - 1) == []
    assert timed.expired(TIMEOUT_MIN_NS) == [1]
    (entry,) = timed.read(timed.entity(1))
    assert entry.idle_timeout_ns == 1, "exactly as it was set"


def test_the_time_since_the_last_hit_is_read_if_asked_for(timed: Timed) -> None:
    asked = p4rt.TableEntry.IdleTimeout()
    timed.now_ns = 7
    timed.write("INSERT", timed.entity(1, 0))
    timed.now_ns = 10
    (entry,) = timed.read(timed.entity(1))
    assert not entry.HasField("time_since_last_hit")
    (entry,) = timed.read(timed.entity(1, time_since_last_hit=asked))
    assert entry.time_since_last_hit.elapsed_ns == 3, "of one that was never hit: since it was inserted"
    timed.packet(1, 20)
    timed.now_ns = 24
    (entry,) = timed.read(timed.entity(1, time_since_last_hit=asked))
    assert entry.time_since_last_hit.elapsed_ns == 4
    timed.write("INSERT", timed.entity(1, table="I.u"))
    everything = timed.read(p4rt.Entity(table_entry=p4rt.TableEntry(time_since_last_hit=asked)))
    assert [e.HasField("time_since_last_hit") for e in everything] == [True, False]


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("INSERT", {"a": 1, "timeout": 5, "table": "I.u"}, "table I.u: a table without `support_timeout = true`"),
        ("INSERT", {"a": 1, "time_since_last_hit": {}}, "table I.t: time_since_last_hit can only be read"),
        ("INSERT", {"a": 1, "timeout": -5}, "table I.t: idle_timeout_ns must not be negative"),
        ("MODIFY", {"a": 0, "timeout": 5, "is_default_action": True}, "table I.t: the default entry has no idle"),
        ("READ", {"a": 1, "table": "I.u", "time_since_last_hit": {}}, "table I.u: time_since_last_hit is of"),
        ("READ", {"a": 1, "is_default_action": True, "time_since_last_hit": {}}, "I.t: time_since_last_hit is of"),
    ],
)
def test_what_the_specification_refuses(kind: str, change: dict[str, Any], message: str, timed: Timed) -> None:
    entity = timed.entity(**change)
    ask: Callable[[], object] = (lambda: timed.read(entity)) if kind == "READ" else lambda: timed.write(kind, entity)
    with pytest.raises(BatchError, match="INVALID_ARGUMENT") as refused:
        ask()
    assert message in str(refused.value)
