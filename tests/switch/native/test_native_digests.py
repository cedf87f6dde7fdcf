"""Digests and the time of the last hit, on both engines; here, so that the sanitizers see them.

Truth: simple_switch, which reads the fields of a digest when ingress has ended, one digest a packet; and the bits of
the data by hand.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from p4c.entries import ActionCall, Entry, Exact
from p4c.model import load
from switch.engine import DIGESTS_WAITING_MAX, Digest, Engine, EngineError, Replica
from switch.reference import ReferenceEngine, Trace
from switch.stf.programs import ENGINES
from tests.helpers.p4.made import Made

LEARNED = "struct learned_t { bit<8> a; bit<9> port; bit<3> three; bool odd; }"
TABLE = (
    "action give(bit<8> v) { hdr.h.b = v; } table t { key = { hdr.h.a: exact; } actions = { give; NoAction; }"
    " size = 8; support_timeout = true; } table u { key = { hdr.h.a: exact; } actions = { NoAction; } size = 8; }"
)


def learning(engine: Engine, *frames: str, name: str = "learned_t") -> list[Digest]:
    engine.enable_digest(name, True)
    for frame in frames:
        engine.receive(2, bytes.fromhex(frame), 0)
    return engine.take_digests()


@pytest.mark.parametrize("name", ENGINES)
def test_a_digest_has_the_values_of_the_end_of_ingress_bit_behind_bit(name: str, tmp_path: Path) -> None:
    call = "digest<learned_t>(1, { hdr.h.a, s.ingress_port, 5, hdr.h.b == 3 }); hdr.h.a = hdr.h.a + 1;"
    made = Made(tmp_path, top=LEARNED, ingress=call)
    assert made.warnings == []
    engine = made.engine(name)
    # a + 1, port 2, 5, true: 00010001 000000010 101 1, and 3 zeros up to the byte
    assert learning(engine, "1003", "ff02") == [Digest(1, bytes.fromhex("110158")), Digest(1, bytes.fromhex("000150"))]
    assert engine.take_digests() == []
    assert [out.frame.hex() for out in engine.advance(0)] == ["1103", "0002"], "the packets themselves go on"


@pytest.mark.parametrize("name", ENGINES)
def test_none_is_kept_unless_it_is_enabled(name: str, tmp_path: Path) -> None:
    made = Made(tmp_path, top=LEARNED, ingress="digest<learned_t>(1, { hdr.h.a, 1, 2, true });")
    engine = made.engine(name)
    engine.receive(2, b"\x01\x02", 0)
    assert engine.take_digests() == []
    assert len(learning(engine, "0102")) == 1
    engine.enable_digest("learned_t", False)
    engine.receive(2, b"\x01\x02", 0)
    assert engine.take_digests() == []
    with pytest.raises(EngineError, match="no digest is called 'other'; there are: learned_t"):
        engine.enable_digest("other", True)


@pytest.mark.parametrize("name", ENGINES)
def test_loading_forgets_what_waits_and_what_is_enabled(name: str, tmp_path: Path) -> None:
    made = Made(tmp_path, top=LEARNED, ingress="digest<learned_t>(1, { hdr.h.a, 1, 2, true });")
    engine = made.engine(name)
    engine.enable_digest("learned_t", True)
    engine.receive(2, b"\x01\x02", 0)
    engine.set_running(False, 0)
    engine.set_running(True, 0)
    assert len(engine.take_digests()) == 1, "a stop wipes packets only"
    for _ in range(2):
        engine.receive(2, b"\x01\x02", 0)
        engine.load(load(made.json))
        assert engine.take_digests() == []
    assert len(learning(engine, "0102")) == 1
    engine.receive(2, b"\x01\x02", 0)
    engine.reset()
    assert engine.take_digests() == []


@pytest.mark.parametrize("name", ENGINES)
def test_the_last_call_of_a_packet_counts_also_when_the_packet_is_dropped(name: str, tmp_path: Path) -> None:
    calls = "digest<one_t>(1, { hdr.h.a }); if (hdr.h.b == 1) digest<two_t>(1, { hdr.h.b, hdr.h.a }); mark_to_drop(s);"
    made = Made(tmp_path, top="struct one_t { bit<8> a; } struct two_t { bit<8> b; bit<8> a; }", ingress=calls)
    engine = made.engine(name)
    engine.enable_digest("one_t", True)
    assert learning(engine, "0700", "0801", name="two_t") == [Digest(1, b"\x07"), Digest(2, b"\x01\x08")]
    assert engine.advance(0) == []
    engine.enable_digest("two_t", False)
    engine.receive(2, b"\x08\x01", 0)
    assert engine.take_digests() == [], "the call that counts is not enabled"


@pytest.mark.parametrize("name", ENGINES)
def test_each_pass_may_give_one_and_clones_give_none(name: str, tmp_path: Path) -> None:
    call = "digest<one_t>(1, { hdr.h.a, s.instance_type }); if (s.instance_type == 0)"
    top = "struct one_t { bit<8> a; bit<32> kind; }"
    again = Made(tmp_path, top=top, ingress=f"{call} resubmit_preserving_field_list(0);").engine(name)
    kinds = [digest.data.hex() for digest in learning(again, "0500", name="one_t")]
    assert kinds == ["0500000000", "0500000006"]
    cloning = Made(tmp_path, top=top, ingress=f"{call} clone(CloneType.I2E, 5);").engine(name)
    cloning.set_clone_session(5, [Replica(3, 0)], 0)
    assert len(learning(cloning, "0500", name="one_t")) == 1
    assert len(cloning.advance(0)) == 2


@pytest.mark.parametrize("name", ENGINES)
def test_fields_of_an_invalid_header_are_what_they_were(name: str, tmp_path: Path) -> None:
    call = "hdr.h.setInvalid(); digest<one_t>(1, { hdr.h.a, hdr.i.b });"
    made = Made(tmp_path, top="struct one_t { bit<8> a; bit<8> b; }", ingress=call)
    assert learning(made.engine(name), "4200", name="one_t") == [Digest(1, b"\x42\0")]


@pytest.mark.parametrize("name", ENGINES)
def test_digests_that_wait_are_bounded(name: str, tmp_path: Path) -> None:
    made = Made(tmp_path, top="struct one_t { bit<8> a; bit<8> b; }", ingress="digest<one_t>(1, { hdr.h.a, hdr.h.b });")
    engine = made.engine(name)
    frames = [f"{number:04x}" for number in range(DIGESTS_WAITING_MAX + 3)]
    found = learning(engine, *frames, name="one_t")
    assert [digest.data.hex() for digest in found] == frames[:DIGESTS_WAITING_MAX]
    assert learning(engine, "abcd", name="one_t") == [Digest(1, b"\xab\xcd")]


@pytest.mark.parametrize("seed", range(6))
def test_random_data_is_what_its_fields_are(seed: int, tmp_path: Path) -> None:
    """Fields of random widths, of which the program sets constants, computed values and metadata."""
    source = random.Random(seed)
    widths = [source.choice((1, 3, 7, 8, 13, 32, 48, 64, 65, 100, 128)) for _ in range(source.randint(1, 9))]
    values = [source.getrandbits(width) for width in widths]
    fields = " ".join(f"bit<{width}> f{i};" for i, width in enumerate(widths))
    sets = ""
    given: list[str] = []
    for i, (width, value) in enumerate(zip(widths, values, strict=True)):
        match source.randrange(3):
            case 0:
                given.append(f"{width}w{value}")
            case 1:
                sets += f"v{i} = {width}w{value};"
                given.append(f"v{i}")
            case _:
                part = source.getrandbits(width)
                sets += f"v{i} = {width}w{value ^ part};"
                given.append(f"v{i} ^ {width}w{part}")
    declared = " ".join(f"bit<{width}> v{i};" for i, width in enumerate(widths))
    call = f"{declared} {sets} digest<many_t>(1, {{ {', '.join(given)} }});"
    made = Made(tmp_path, top=f"struct many_t {{ {fields} }}", ingress=call)
    bits = "".join(f"{value:0{width}b}" for value, width in zip(values, widths, strict=True))
    expected = int(bits + "0" * (-len(bits) % 8), 2).to_bytes((len(bits) + 7) // 8, "big")
    for name in ENGINES:
        assert learning(made.engine(name), "0000", name="many_t") == [Digest(1, expected)]


@pytest.mark.parametrize("name", ENGINES)
def test_a_table_with_timeouts_knows_when_an_entry_was_hit(name: str, tmp_path: Path) -> None:
    engine = Made(tmp_path, local=TABLE, ingress="t.apply(); u.apply();").engine(name)
    first, second = (engine.insert_entry("I.t", Entry((Exact(a),), ActionCall("I.give", (9,)))) for a in (1, 2))
    other = engine.insert_entry("I.u", Entry((Exact(1),), ActionCall("NoAction")))
    assert engine.read_last_hit_ns("I.t", first) == 0
    for t_ns in (5, 1_000_000_007):
        engine.receive(2, b"\x01\x02", t_ns)
        assert (engine.read_last_hit_ns("I.t", first), engine.read_last_hit_ns("I.t", second)) == (t_ns, 0)
    engine.receive(2, b"\x03\x02", 2_000_000_000)
    engine.modify_entry("I.t", first, ActionCall("I.give", (8,)))
    assert engine.read_last_hit_ns("I.t", first) == 1_000_000_007, "neither a miss nor a change is a hit"
    engine.delete_entry("I.t", first)
    again = engine.insert_entry("I.t", Entry((Exact(1),), ActionCall("I.give", (9,))))
    assert engine.read_last_hit_ns("I.t", again) == 0, "a new entry in the place of an old one"
    with pytest.raises(EngineError, match=r"table I\.u: its entries have no idle timeout"):
        engine.read_last_hit_ns("I.u", other)
    with pytest.raises(EngineError):
        engine.read_last_hit_ns("I.t", 77)


def test_a_trace_tells_a_digest_also_when_no_controller_asked_for_it(tmp_path: Path) -> None:
    trace = Trace()
    made = Made(tmp_path, top="struct one_t { bit<8> a; }", ingress="digest<one_t>(1, { hdr.h.a });")
    engine = made.engine(trace=trace)
    assert isinstance(engine, ReferenceEngine)
    engine.receive(2, b"\x01\x02", 0)
    assert "digest one_t: 01, which no controller asked for" in trace.text()
