"""Value sets over P4Runtime (specification, "ValueSetEntry")."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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
