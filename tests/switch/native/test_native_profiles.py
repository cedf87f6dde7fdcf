"""The state that controllers program in the native engine: profiles, value sets, clone sessions, digests, time-outs."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from p4c.entries import ActionCall, Entry, Exact, GroupRef, MemberRef
from p4c.model import Program, load
from switch.engine import DIGESTS_WAITING_MAX, Digest, Engine, EngineError, PortConfig, Replica
from switch.native import binding
from switch.native.engine import NativeEngine
from switch.reference import ReferenceEngine, Trace
from switch.stf.programs import ENGINES
from tests.helpers.engines.scenario import Pair, Scenario
from tests.helpers.p4.made import Made

MATCHING = Path(__file__).parents[1] / "stf/matching.p4"
SELECTOR, PROFILE = "In.selector_table", "In.profile_table"
CHOOSER, SHARED = "In.chooser", "In.shared_members"


@pytest.fixture
def program(compiled: Callable[[Path], Program]) -> Program:
    return compiled(MATCHING)


@pytest.fixture
def engine(program: Program) -> Iterator[NativeEngine]:
    engine = NativeEngine(seed=1)
    engine.load(program)
    yield engine
    engine.close()


@pytest.mark.parametrize("seed", range(4))
def test_random_members_groups_and_entries_give_the_same(seed: int, program: Program) -> None:
    """A frame for every key of both tables after every few changes."""
    life = Scenario(program, seed)
    life.set_up()
    life.pool.values.clear()  # keys are small numbers then
    life.pair("configure_port", 1, PortConfig(), life.now_ns)
    tables = [table for table in program.tables if table.profile is not None]
    for _ in range(60):
        for _ in range(7):
            life.change_profiles()
        for _ in range(3):
            life.change_entries(tables)
        for kind in (5, 6):
            for key in range(8):
                life.pair("receive", 1, bytes([kind, 1, 2, 3, 4, 0, key, life.rng.randrange(256)]), life.now_ns)
        life.pair("advance", life.now_ns)
    assert life.control.oldest > 12


def test_an_entry_of_a_deleted_member_does_not_get_the_next_one(program: Program) -> None:
    pair = Pair(seed=1)
    pair("load", program)
    pair("configure_port", 1, PortConfig(), 0)
    pair("set_member", SHARED, 1, ActionCall("In.set_value", (77,)))
    pair.insert(PROFILE, Entry((Exact(1),), MemberRef(1)))

    def value() -> bytes:
        pair("receive", 1, bytes([6, 0, 0, 0, 0, 0, 1, 0]), 0)
        (sent,) = pair("advance", 0)
        return bytes(sent.frame[9:11])

    assert value() == (77).to_bytes(2, "big")
    pair("delete_member", SHARED, 1)
    pair("set_member", SHARED, 2, ActionCall("In.set_value", (88,)))
    assert value() == bytes(2)
    pair("set_member", SHARED, 1, ActionCall("In.set_value", (99,)))
    assert value() == (99).to_bytes(2, "big")


class MallInfo(ctypes.Structure):
    """What glibc's mallinfo2 returns; here only the bytes in mapped blocks (4) and in others (7) are of use."""

    _fields_ = (("values", ctypes.c_size_t * 10),)


def allocated_bytes() -> int:
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = MallInfo
    values = mallinfo().values
    return int(values[4] + values[7])


def test_members_and_groups_that_come_and_go_take_no_more_memory(engine: NativeEngine) -> None:
    """As one-shot action sets do: each change is a set of fresh members and the deletion of those before."""
    call = ActionCall("In.set_value", (1,))

    def live(ids: range) -> int:
        for number in ids:
            engine.set_member(CHOOSER, number, call)
            engine.set_group(CHOOSER, number, [(number, 1)])
            handle = engine.insert_entry(SELECTOR, Entry((Exact(1),), GroupRef(number)))
            engine.delete_entry(SELECTOR, handle)
            engine.delete_group(CHOOSER, number)
            engine.delete_member(CHOOSER, number)
        return allocated_bytes()

    before = live(range(1000))
    assert live(range(1000, 6000)) - before < 100_000


def test_a_member_is_found_without_a_look_at_the_others(engine: NativeEngine) -> None:
    """A search through them would compare 2 · 10^10 ids."""
    c, device, args = binding.runtime(), engine.device, binding.u64_array([1])
    for number in range(200_000):
        assert c.access_set_member(device, 0, number, 0, args) == 0


SETS: dict[str, tuple[str, list[tuple[int, ...]], list[str], list[str]]] = {
    "bit<8>": ("hdr.h.a", [(1,), (7,)], ["0100", "0700", "0701"], ["0001", "0200"]),
    "pair_t": ("hdr.h.a, hdr.h.b", [(1, 2), (3, 4)], ["0102", "0304"], ["0104", "0302", "0202"]),
    "bit<100>": ("(bit<100>) hdr.h.a ++ hdr.h.b", [(1 << 8 | 2,)], ["0102"], ["0201", "0002"]),
    "wide_t": ("92w1 ++ hdr.h.a, hdr.h.b", [(1 << 8 | 5, 9)], ["0509"], ["0905"]),
}


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("kind", SETS)
def test_a_parser_selects_by_the_members_of_a_value_set(kind: str, name: str, tmp_path) -> None:
    key, members, inside, outside = SETS[kind]
    made = Made(
        tmp_path,
        top="struct pair_t { bit<8> a; bit<8> b; } struct wide_t { bit<100> a; bit<8> b; }",
        values=f"value_set<{kind.replace('bit<100>', 'bit<108>')}>(4) chosen;",
        states=f"transition select({key}) {{ chosen: marked; default: accept; }} }}"
        " state marked { m.x = 9; transition accept;",
        ingress="hdr.h.b = m.x;",
    )
    engine = made.engine(name)

    def marked() -> list[str]:
        return [frame for frame in (*inside, *outside) if made.sent(frame, engine) == [(1, frame[:2] + "09")]]

    assert marked() == []
    engine.set_value_set("P.chosen", members)
    assert marked() == inside
    engine.set_value_set("P.chosen", members[:1])
    assert marked() == [f for f in inside if f != inside[-1]] or len(members) == 1 or kind == "bit<8>"
    engine.set_value_set("P.chosen", [])
    assert marked() == []
    for wrong in ([(0,) * len(members[0])] * 5, [(1 << 200,) * len(members[0])], [(0, 0, 0)]):
        with pytest.raises(EngineError, match=r"value set P\.chosen"):
            engine.set_value_set("P.chosen", wrong)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("kind", ["I2E", "E2E"])
def test_a_clone_has_the_class_of_service_of_its_session(kind: str, name: str, tmp_path) -> None:
    """P4Runtime, "CloneSessionEntry". v1model's class of service is standard_metadata.priority, queue 7 first."""
    call = f"if (s.instance_type == 0) clone(CloneType.{kind}, 5);"
    egress = "hdr.h.a = (bit<8>) s.priority; hdr.h.b = (bit<8>) s.instance_type;"
    made = Made(tmp_path, **{"ingress": call, "egress": egress} if kind == "I2E" else {"egress": egress + call})
    engine = made.engine(name)
    for service in (0, 6):
        engine.set_clone_session(5, [Replica(3, 0)], 0, service)
        instance = 1 if kind == "I2E" else 2
        assert sorted(made.sent("0102", engine)) == [(1, "0000"), (3, f"{service:02x}{instance:02x}")]


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
