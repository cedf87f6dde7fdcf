"""Entries that the program gives a table and that are not const (specification, "Preinitialized tables")."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from switch.engine import PortConfig
from switch.p4rt.batch import BatchError
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from tests.helpers.p4.made import Made, pipeline_of, read, store_of, write

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
