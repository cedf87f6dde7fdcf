"""Idle timeouts (specification, "Idle-timeout" and "Table Idle Timeout Notification"); time is an argument."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from p4c.entries import Exact
from switch.p4rt.batch import BatchError
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.store import TIMEOUT_MIN_NS, EntityStore
from switch.reference import ReferenceEngine
from tests.helpers.p4.made import Made, pipeline_of, read, write

S = 1_000_000_000
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
