"""The memory of a P4 program has a total, whatever it is asked for in, and the sum holds for both engines."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from p4c.frontend import CompileError
from p4c.frontend.compilation import Compilation
from p4c.model import ModelError, load, load_program, memory
from tests.helpers.p4.many import many_entries, whole

MIB = 1 << 20
SIXTY = "\n".join(f"register<bit<64>>(16777216) r{n};" for n in range(60))
PARTS = {
    "registers": (SIXTY, "register I.r0 134217728"),
    "narrow registers": ("register<bit<1>>(33554433) r;", "register I.r 268435464"),
    "wide registers": ("register<bit<128>>(16777217) r;", "register I.r 268435472"),
    "counters": ("counter(16777217, CounterType.packets) c;", "counter I.c 268435472"),
    "meters": ("meter(2400000, MeterType.bytes) c;", "meter I.c 268800000"),
    "a table": (
        "action a() { } table t { key = { h.data.value : exact; } actions = { a; } size = 2000000; }",
        "table I.t",
    ),
    "direct meters": (
        "direct_meter<bit<2>>(MeterType.bytes) d; action a() { d.read(m.c); }"
        " table t { key = { h.data.value : exact; } actions = { a; } size = 1000000; meters = d; }",
        "table I.t",
    ),
    "an action profile": (
        "action a() { } action_profile(6000000) p;"
        " table t { key = { h.data.value : exact; } actions = { a; } size = 1; implementation = p; }",
        "action profile I.p",
    ),
    "parts that are each small enough": (
        "register<bit<64>>(20000000) r; counter(5000000, CounterType.bytes) c; meter(300000, MeterType.bytes) d;",
        "register I.r 160000000, counter I.c 80000000, meter I.d 33600000",
    ),
}


def written(folder: Path, before: str) -> Path:
    path = folder / "large.p4"
    body = "t.apply();" if " table t " in before else ""
    path.write_text(whole(before, body).replace("struct meta { bit<16> a; }", "struct meta { bit<16> a; bit<2> c; }"))
    return path


@pytest.mark.parametrize("part", PARTS)
def test_the_compiler_refuses_more_than_the_total_and_names_the_largest(part: str, tmp_path: Path) -> None:
    before, largest = PARTS[part]
    with pytest.raises(CompileError) as caught:
        Compilation(written(tmp_path, before)).run()
    said = str(caught.value)
    assert re.search(
        r"large\.p4:\d+:\d+: error\[target\]: the registers, counters, meters and tables of a program", said
    )
    assert f"must take at most {256 * MIB} bytes (got " in said
    assert f"; the largest: {largest}" in said


def test_the_loader_refuses_more_than_the_total(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BMv2 JSON comes from other compilers as well."""
    with monkeypatch.context() as patched:
        patched.setattr(memory, "BYTES_MAX", 1 << 60)
        document = Compilation(written(tmp_path, SIXTY)).run().json
    with pytest.raises(
        ModelError, match=r"got 80530\d{5}; the largest: register I.r0 134217728, .*, and \d+ smaller ones"
    ):
        load_program(json.dumps(document).encode())


def test_as_much_as_the_total_is_taken(tmp_path: Path) -> None:
    assert Compilation(written(tmp_path, "register<bit<64>>(33554000) r;")).run().json["register_arrays"]
    keys = "action a() { } table t { key = { m.a : exact; } actions = { a; } size = 2000000; }"
    assert Compilation(written(tmp_path, keys)).run().json["pipelines"], "16 bits are 65,536 entries at most"


def test_a_direct_counter_costs_nothing_more(tmp_path: Path) -> None:
    """Every entry has room for one."""
    table = "action a() { } table t { key = { h.data.value : exact; } actions = { a; } size = 1000; }"
    counted = table.replace("size", "counters = c; size")
    plain, with_counter = (
        load(Compilation(written(tmp_path, text)).run().json)
        for text in (table, f"direct_counter(CounterType.bytes) c; {counted}")
    )
    assert sum(p.bytes for p in memory.parts(plain)) == sum(p.bytes for p in memory.parts(with_counter))


FILL = """
import json, resource, sys
from switch.engine import CounterValue, MeterConfig
from p4c.entries import ActionCall, Entry, Exact
from p4c.model import load, memory
from tests.helpers.p4.programs import engine

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

program = load(json.load(open(sys.argv[2])))
made = engine(sys.argv[1])
made.load(program)
before = resident()
for register in program.registers:
    for index in range(register.size):
        made.write_register(register.name, index, (1 << register.width_bits) - 1)
for counter in program.counters:
    for index in range(counter.size):
        made.write_counter(counter.name, index, CounterValue(1, 1))
for meter in program.meters:
    for index in range(0 if sys.argv[1] == "reference" else meter.size):
        made.set_meter(meter.name, index, MeterConfig(1, 1, 1, 1))
for table in program.tables:
    for index in range(table.max_size if table.keys and sys.argv[1] == "native" else 0):
        made.insert_entry(table.name, Entry((Exact(index),), ActionCall("I.forward", (1,))))
print(json.dumps([resident() - before, sum(part.bytes for part in memory.parts(program))]))
"""


def taken(kind: str, source: str, folder: Path) -> tuple[int, int]:
    """The bytes that an engine takes when all that a program has is used, and those that were counted."""
    (folder / "large.p4").write_text(source)
    document = folder / "large.json"
    document.write_text(Compilation(folder / "large.p4").run().json_text)
    command = [sys.executable, "-c", FILL, kind, str(document)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    found, counted = json.loads(ran.stdout)
    return found, counted


@pytest.mark.parametrize("kind", ["reference", "native"])
def test_arrays_take_no_more_than_was_counted(kind: str, tmp_path: Path) -> None:
    arrays = "register<bit<8>>(90000) q; register<bit<100>>(40000) r; counter(40000, CounterType.packets) c;"
    found, counted = taken(
        kind, whole(arrays + (" meter(7000, MeterType.bytes) d;" if kind == "native" else "")), tmp_path
    )
    assert found < 1.1 * counted + MIB
    assert found > (0.8 if kind == "native" else 0.4) * counted  # Python reuses what it had


def test_a_full_table_takes_no_more_than_was_counted(tmp_path: Path) -> None:
    found, counted = taken("native", many_entries(0, "exact", size=33_000), tmp_path)
    assert 0.3 * counted < found < counted + 16 * MIB  # Python keeps the words of 16,384 matches
