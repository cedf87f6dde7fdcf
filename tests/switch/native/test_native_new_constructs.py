"""Random lives of both engines with digests, idle entries, value sets, loops, exits, assertions; for sanitizers too."""

import random
from pathlib import Path

import pytest

from p4c.entries import ActionCall, Entry, Exact
from p4c.model import load
from switch.engine import PortConfig
from tests.helpers.engines.scenario import Handles, Pair
from tests.helpers.p4.made import Made

LEARNED = "struct learned_t { bit<8> a; bit<9> port; bit<3> three; bit<100> wide; }"
LOCAL = """action give(bit<8> v) { hdr.h.b = v; } action leave(bit<8> v) { hdr.h.b = v; exit; }
table t { key = { hdr.h.a: exact; hdr.i.isValid(): exact; } actions = { give; leave; NoAction; } size = 8;
support_timeout = true; } table u { key = { hdr.h.b: exact; } actions = { leave; } const entries = { 3: leave(7); } }"""
INGRESS = """switch (t.apply().action_run) { give: { hdr.h.a = 4; } default: { } } if (u.apply().hit) hdr.h.a = 6;
assume(m.x < 255); bit<100> wide = 0;
for (bit<8> i in 1..5) { if (i == hdr.h.b) break; if (hdr.h.a[0:0] == 1) continue; wide = wide * 7 + (bit<100>) i; }
assert(hdr.h.a != 77); if (m.x != 0) digest<learned_t>(1, { hdr.h.a, s.ingress_port, 5, wide });
if (hdr.h.b == 9 && s.instance_type == 0) resubmit_preserving_field_list(0); hdr.h.b = (bit<8>) wide;"""
VALUES = "value_set<bit<8>>(4) chosen; value_set<bit<8>>(2) other;"
STATES = """transition select(hdr.h.a) { chosen: marked; other: twice; default: accept; } }
state twice { m.x = 2; p.extract(hdr.i); transition accept; } state marked { m.x = 1; transition accept;"""
BYTES = (0, 1, 2, 3, 9, 77, 255)


@pytest.mark.parametrize("seed", range(6))
def test_random_lives_of_new_constructs_agree(seed: int, tmp_path: Path) -> None:
    made = Made(tmp_path, top=LEARNED, values=VALUES, states=STATES, local=LOCAL, ingress=INGRESS)
    rng, pair, entries, now_ns = random.Random(seed), Pair(seed), list[Handles](), 0
    told = 0
    pair("load", load(made.json))
    for port in (1, 2):
        pair("configure_port", port, PortConfig(), 0)
    for _ in range(300):
        now_ns += rng.choice((0, 1, 1_000_000))
        match rng.randrange(10):
            case 0:
                action = ActionCall(rng.choice(("I.give", "I.give", "I.leave")), (rng.choice(BYTES),))
                entry = Entry((Exact(rng.choice(BYTES)), Exact(rng.randrange(2))), action)
                handles = pair.insert("I.t", entry)
                entries += [handles] if handles else []
            case 1 if entries:
                pair("delete_entry", "I.t", entries.pop(rng.randrange(len(entries))))
            case 2:
                values = [(rng.choice((*BYTES, 256)),) for _ in range(rng.randint(0, 5))]
                pair("set_value_set", rng.choice(("P.chosen", "P.other")), values)
            case 3:
                pair("enable_digest", "learned_t", rng.random() < 0.8)
            case 4:
                told += len(pair("take_digests") or ())
            case _:
                frame = bytes(rng.choice(BYTES) for _ in range(rng.choice((0, 1, 2, 3, 4, 9))))
                pair("receive", rng.choice((1, 2)), frame, now_ns)
        pair("advance", now_ns)
        for handles in entries:
            pair("read_last_hit_ns", "I.t", handles)
    assert told, "some digests were told"
