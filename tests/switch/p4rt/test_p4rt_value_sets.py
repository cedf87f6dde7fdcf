"""Value sets, and entries that a program gives its tables (specification, "ValueSetEntry", "Preinitialized tables")."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from switch.engine import PortConfig
from switch.p4rt.batch import BatchError
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.store import EntityStore
from switch.reference import ReferenceEngine
from tests.helpers.p4.made import Made, pipeline_of, read, store_of, write

PAIRS = 0x03000005


@pytest.fixture
def store(tmp_path: Path) -> EntityStore:
    select = "transition select(hdr.h.a, hdr.h.b) { pairs: other; default: accept; } } state other { transition accept;"
    pair = "struct pair_t { bit<8> a; bit<8> b; }"
    made = Made(tmp_path, top=pair, values="@id(5) value_set<pair_t>(2) pairs;", states=select)
    return store_of(pipeline_of(made.compiled))


def entry(*members: tuple[int, ...], id_: int = PAIRS) -> Any:
    made = p4rt.Entity()
    made.value_set_entry.value_set_id = id_
    for member in members:
        match = made.value_set_entry.members.add().match
        for place, value in enumerate(member):
            match.add(field_id=place + 1).exact.value = value.to_bytes(2 if value > 255 else 1, "big")
    return made


def answer(store: EntityStore, id_: int = PAIRS) -> list[Any]:
    return read(store, entry(id_=id_))


def test_members_are_written_together_and_read_back(store: EntityStore) -> None:
    assert answer(store) == answer(store, 0) == [entry()]
    write(store, "MODIFY", entry((1, 2), (3, 4)))
    assert answer(store) == answer(store, 0) == [entry((1, 2), (3, 4))]
    assert isinstance(store.engine, ReferenceEngine)
    assert store.engine.machine.parser.value_sets == {"P.pairs": {(1, 2), (3, 4)}}
    write(store, "MODIFY", entry((5, 6)))
    copy = ReferenceEngine()
    store.copy_to(copy)
    assert copy.machine.parser.value_sets == {"P.pairs": {(5, 6)}}
    write(store, "MODIFY", entry())
    assert answer(store) == [entry()]


@pytest.mark.parametrize(
    ("entity", "kind", "message"),
    [
        (entry((1, 2)), "INSERT", "INVALID_ARGUMENT: value set P.pairs: update type INSERT is not possible"),
        (entry(), "DELETE", "INVALID_ARGUMENT: value set P.pairs: update type DELETE is not possible"),
        (entry((1, 2), (3, 4), (5, 6)), "MODIFY", "RESOURCE_EXHAUSTED: value set P.pairs: must have at most 2 members"),
        (entry((1, 2), (1, 2)), "MODIFY", "ALREADY_EXISTS: value set P.pairs: member 1 is given twice"),
        (entry((1,)), "MODIFY", "INVALID_ARGUMENT: value set P.pairs: member 0: must have one exact match for each"),
        (entry((1, 256)), "MODIFY", "INVALID_ARGUMENT: value set P.pairs: member 0: match 2: 0x0100 needs 9 bits"),
        (entry(id_=9), "MODIFY", "INVALID_ARGUMENT: no value set with id 9; value sets: 50331653 P.pairs"),
    ],
)
def test_what_the_specification_refuses_changes_nothing(entity, kind, message, store) -> None:
    write(store, "MODIFY", entry((7, 8)))
    with pytest.raises(BatchError) as refused:
        write(store, kind, entity)
    assert message in str(refused.value)
    assert answer(store) == [entry((7, 8))]


TABLE = """action to(bit<9> port) { s.egress_spec = port; }
    table t {
        key = { hdr.h.a: exact; }
        actions = { to; }
        default_action = to(3);
        KIND entries = { 1: to(1); 2: to(2); }
    }"""


class Switch:
    def __init__(self, folder: Path, kind: str) -> None:
        pipeline = pipeline_of(Made(folder, local=TABLE.replace("KIND", kind), ingress="t.apply();").compiled)
        (self.table,) = pipeline.p4info.tables.values()
        self.action = next(id_ for id_, action in self.table.actions.items() if action.name == "I.to")
        self.store = store_of(pipeline)
        self.engine: Any = self.store.engine
        for port in range(8):
            self.engine.configure_port(port, PortConfig(), 0)

    def write(self, kind: str, key: int, port: int) -> None:
        entry = p4rt.TableEntry(table_id=self.table.id)
        entry.match.add(field_id=1).exact.value = bytes((key,))
        entry.action.action.action_id = self.action
        entry.action.action.params.add(param_id=1, value=bytes((port,)))
        write(self.store, kind, p4rt.Entity(table_entry=entry))

    def ports(self) -> list[int]:
        """Where frames for the keys 1 to 4 leave."""
        for key in range(1, 5):
            self.engine.receive(0, bytes((key, 0)), 0)
        return [out.port for out in self.engine.advance(0)]

    def entries(self) -> list[Any]:
        every = p4rt.Entity(table_entry=p4rt.TableEntry(table_id=self.table.id))
        return [entity.table_entry for entity in read(self.store, every)]


def test_entries_that_are_not_const_can_be_inserted_modified_and_deleted(tmp_path: Path) -> None:
    switch = Switch(tmp_path, "")
    assert switch.ports() == [1, 2, 3, 3]
    assert not any(entry.is_const for entry in switch.entries())
    switch.write("INSERT", 4, 5)
    switch.write("MODIFY", 1, 6)
    switch.write("DELETE", 2, 0)
    assert switch.ports() == [6, 3, 3, 5]
    assert len(switch.entries()) == 2


@pytest.mark.parametrize("kind", ["INSERT", "MODIFY", "DELETE"])
def test_entries_that_are_const_cannot(kind: str, tmp_path: Path) -> None:
    switch = Switch(tmp_path, "const")
    assert all(entry.is_const for entry in switch.entries())
    with pytest.raises(BatchError, match="PERMISSION_DENIED"):
        switch.write(kind, 4 if kind == "INSERT" else 1, 5)
    assert switch.ports() == [1, 2, 3, 3]
