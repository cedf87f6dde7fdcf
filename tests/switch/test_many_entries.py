"""Work that grows with what a program or a controller gives, and not with its square: counted, not timed."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from p4c.entries import ActionCall, Entry, Exact, Lpm, Match, Ternary
from p4c.frontend.compilation import Compilation
from p4c.model import load
from switch.native.program import LoadedProgram
from switch.p4rt import batch
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.reference import ReferenceEngine
from tests.helpers.p4.made import pipeline_of, store_of
from tests.helpers.p4.many import many_actions, many_entries


def lines(work: Callable[[], object]) -> int:
    """The lines of Python that the work takes."""
    taken = 0

    def line(_frame: Any, event: str, _given: Any) -> Any:
        nonlocal taken
        taken += event == "line"
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        work()
    finally:
        sys.settrace(before)
    return taken


def grows_evenly(make: Callable[[int], Callable[[], object]], few: int = 60) -> None:
    """Four times as much takes at most five times the lines. Work that is done once for all is done before."""
    make(few)()
    less, more = lines(make(few)), lines(make(4 * few))
    assert more < 5 * less, (less, more)


def written(folder: Path, text: str) -> Path:
    path = folder / "many.p4"
    path.write_text(text)
    return path


def work_of(step: str, path: Path) -> Callable[[], object]:
    """One step of what becomes of a program; those before it are done."""
    if step == "compile":
        return Compilation(path).run
    document = Compilation(path).run().json
    if step == "load":
        return lambda: load(document)
    program = load(document)
    return lambda: ReferenceEngine().load(program) if step == "reference" else LoadedProgram(program)


@pytest.mark.parametrize("step", ["compile", "load", "reference", "native"])
@pytest.mark.parametrize("kind", ["exact", "lpm", "ternary", "range"])
def test_a_program_of_many_entries(kind: str, step: str, tmp_path: Path) -> None:
    grows_evenly(lambda count: work_of(step, written(tmp_path, many_entries(count, kind))))


@pytest.mark.parametrize("step", ["compile", "load"])
def test_a_table_of_many_actions_with_an_entry_each(step: str, tmp_path: Path) -> None:
    grows_evenly(lambda count: work_of(step, written(tmp_path, many_actions(count))), 200)


def match(kind: str, value: int) -> Match:
    if kind == "ternary":
        return Ternary(value, 0xFFFFFFFF)
    return Lpm(value, 32) if kind == "lpm" else Exact(value)


@pytest.mark.parametrize("kind", ["exact", "lpm", "ternary"])
def test_the_reference_engine_takes_entries_one_by_one_and_gives_them_back(kind: str, tmp_path: Path) -> None:
    program = load(Compilation(written(tmp_path, many_entries(0, kind, size=240))).run().json)

    def make(count: int) -> Callable[[], object]:
        engine = ReferenceEngine()
        engine.load(program)

        def work() -> None:
            call = ActionCall("I.forward", (1,))
            handles = [engine.insert_entry("I.t", Entry((match(kind, n),), call, n % 7 + 1)) for n in range(count)]
            for handle in handles:
                engine.delete_entry("I.t", handle)

        return work

    grows_evenly(make)


@pytest.mark.parametrize("kind", ["exact", "lpm", "ternary"])
def test_p4runtime_writes_reads_and_deletes(kind: str, tmp_path: Path) -> None:
    made = Compilation(written(tmp_path, many_entries(0, kind, size=240))).run()
    pipeline = pipeline_of(made)
    (table,) = pipeline.p4info.tables.values()
    (action,) = (each for each in table.actions.values() if each.name == "I.forward")

    def updates(count: int, change: int) -> p4rt.WriteRequest:
        request = p4rt.WriteRequest()
        for number in range(count):
            entry = request.updates.add(type=change).entity.table_entry
            entry.table_id, entry.priority = table.id, number % 7 + 1 if kind == "ternary" else 0
            field = getattr(entry.match.add(field_id=1), kind)
            field.value = number.to_bytes(2, "big").lstrip(b"\0") or b"\0"
            if kind == "ternary":
                field.mask = b"\xff\xff\xff\xff"
            elif kind == "lpm":
                field.prefix_len = 32
            if change == p4rt.Update.INSERT:
                entry.action.action.action_id = action.id
                entry.action.action.params.add(param_id=1, value=b"\1")
        return request

    def make(count: int) -> Callable[[], object]:
        store = store_of(pipeline)
        read = p4rt.ReadRequest(entities=[p4rt.Entity(table_entry=p4rt.TableEntry())])
        insert, delete = (updates(count, change) for change in (p4rt.Update.INSERT, p4rt.Update.DELETE))

        def work() -> None:
            batch.write(store, insert)
            assert sum(len(p4rt.ReadResponse.FromString(block).entities) for block in batch.read(store, read)) == count
            batch.write(store, delete)

        return work

    grows_evenly(make)
