"""Random lives of two P4Runtime devices, one per engine: digests and idle timeouts; for fuzzing and sanitizers too."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from switch.p4rt.batch import BatchError
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.store import EntityStore
from switch.stf.programs import ENGINES
from tests.helpers.p4.made import Made, pipeline_of, read, write

TOP = "struct learned_t { bit<8> a; bit<9> port; bit<100> wide; } struct other_t { bit<8> b; }"
LOCAL = """action give(bit<8> v) { hdr.h.b = v; }
table t { key = { hdr.h.a: exact; } actions = { give; NoAction; } size = 4; support_timeout = true; }"""
INGRESS = """t.apply(); if (hdr.h.b == 0) { digest<other_t>(1, { hdr.h.a }); }
else if (hdr.h.b < 9) { digest<learned_t>(1, { hdr.h.a, s.ingress_port, (bit<100>) hdr.h.a << 90 }); }"""
BYTES = (0, 1, 2, 3, 9, 255)
STEPS = (0, 1, 999, 10_000_000, 1_000_000_000)
LAPSES = (0, 1, 10_000_000, 3_000_000_000, 2**40)


class Side:
    """A device with an engine, whose clock the test moves."""

    def __init__(self, made: Made, name: str) -> None:
        self.now_ns = 0
        self.engine: Any = made.engine(name)
        self.store = EntityStore(pipeline_of(made.compiled), self.engine, lambda: self.now_ns)

    def write(self, kind: str, entity: Any) -> str:
        try:
            write(self.store, kind, entity)
        except BatchError as error:
            return str(error)
        return ""

    def packet(self, port: int, frame: bytes) -> list[Any]:
        self.engine.receive(port, frame, self.now_ns)
        sent = [(out.port, bytes(out.frame)) for out in self.engine.advance(self.now_ns)]
        for digest in self.engine.take_digests():
            self.store.digests.arrived(digest.number, digest.data, self.now_ns)
        return sent

    def told(self) -> list[Any]:
        """The messages that the stream would send now, and when it looks again."""
        lists = list(self.store.digests.due(self.now_ns, 7))
        idle = [(handle, row.entry) for handle, row in self.store.idle.expired(self.now_ns)]
        return [lists, idle, self.store.digests.next_ns, self.store.idle.next_ns]


def entities(rng: random.Random, store: EntityStore) -> Any:
    """An entry of the table or of a digest, mostly a right one."""
    info = store.pipeline.p4info
    if rng.random() < 0.4:
        digest = rng.choice(list(info.digests.values()))
        lapses = {"max_timeout_ns": rng.choice(LAPSES), "ack_timeout_ns": rng.choice(LAPSES)}
        config = p4rt.DigestEntry.Config(max_list_size=rng.choice((-1, 0, 1, 2, 5, 2**31 - 1)), **lapses)
        return p4rt.Entity(digest_entry=p4rt.DigestEntry(digest_id=digest.id, config=config))
    (table,) = info.tables.values()
    entry = p4rt.TableEntry(table_id=table.id, idle_timeout_ns=rng.choice((-1, *LAPSES)))
    entry.match.add(field_id=1).exact.value = bytes([rng.choice(BYTES)])
    action = rng.choice(list(table.actions.values()))
    entry.action.action.action_id = action.id
    for param in info.action(action.name).params:
        entry.action.action.params.add(param_id=param.id, value=bytes([rng.choice(BYTES)]))
    return p4rt.Entity(table_entry=entry)


@pytest.mark.parametrize("seed", range(4))
def test_controllers_are_told_the_same_by_both_engines(seed: int, tmp_path: Path) -> None:
    made = Made(tmp_path, top=TOP, local=LOCAL, ingress=INGRESS)
    rng, sides = random.Random(seed), [Side(made, name) for name in ENGINES]
    lists = idle = 0

    def both(step: Callable[[Side], Any]) -> Any:
        first, second = (step(side) for side in sides)
        assert first == second
        return first

    for _ in range(400):
        lapse = rng.choice(STEPS)
        for side in sides:
            side.now_ns += lapse
        match rng.randrange(8):
            case 0 | 1:
                kind, entity = rng.choice(("INSERT", "INSERT", "MODIFY", "DELETE")), entities(rng, sides[0].store)
                both(lambda side, kind=kind, entity=entity: side.write(kind, entity))
            case 2:
                ack = rng.choice(list(sides[0].store.pipeline.p4info.digests)), rng.randrange(max(lists, 1) + 1)
                both(lambda side, ack=ack: side.store.digests.acknowledge(*ack))
            case 3 if rng.random() < 0.2:
                both(lambda side: side.store.digests.forget())
            case 4:
                (table,) = sides[0].store.pipeline.p4info.tables
                asked = p4rt.TableEntry(table_id=table, time_since_last_hit=p4rt.TableEntry.IdleTimeout())
                both(lambda side, asked=asked: read(side.store, p4rt.Entity(table_entry=asked)))
            case _:
                frame = bytes(rng.choice(BYTES) for _ in range(rng.choice((0, 1, 2, 2, 2, 3))))
                port = rng.randrange(4)
                both(lambda side, port=port, frame=frame: side.packet(port, frame))
        told = both(Side.told)
        lists += len(told[0])
        idle += len(told[1])
    assert lists, "some lists were sent"
    assert idle, "some entries were idle"
