"""What the loader makes of BMv2 JSON, and how it complains."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from p4c.entries import ActionCall, Ternary
from p4c.frontend import compile_program
from p4c.frontend.compilation import Compilation
from p4c.model import ModelError, UnsupportedError, document, load, load_program
from p4c.model.expressions import Const, FieldRef, ValidBit
from tests.helpers.frontend.random_expressions import RandomExpressions
from tests.helpers.frontend.random_parsers import RandomParser
from tests.helpers.frontend.random_programs import RandomProgram

STF = Path(__file__).resolve().parents[1] / "stf"


@pytest.fixture(scope="module")
def steer() -> dict[str, Any]:
    return compile_program(STF / "steer.p4").json


@pytest.fixture(scope="module")
def matching() -> dict[str, Any]:
    return compile_program(STF / "matching.p4").json


def changed(program: dict[str, Any], change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    twin = copy.deepcopy(program)
    change(twin)
    return twin


def first(program: dict[str, Any], section: str) -> dict[str, Any]:
    found: dict[str, Any] = program[section][0]
    return found


def primitive(program: dict[str, Any], op: str) -> dict[str, Any]:
    return next(p for a in program["actions"] for p in a["primitives"] if p["op"] == op)


def test_every_reference_is_resolved(steer: dict[str, Any]) -> None:
    program = load(steer)
    assert program.header("steer") is not None
    assert program.intrinsics.egress_spec.header.metadata
    assert program.intrinsics.priority is not None
    (kept,) = program.field_lists[1].fields
    assert kept.field.name.endswith("kept")
    for pipeline in (program.ingress, program.egress):
        assert pipeline.init in pipeline.nodes
    assert [t.index for t in program.tables] == list(range(len(program.tables)))


def test_core_errors_are_there_even_when_the_program_lists_none(steer: dict[str, Any]) -> None:
    program = load(changed(steer, lambda p: p.pop("errors")))
    assert program.errors["NoError"] == 0
    assert program.error_name(program.errors["PacketTooShort"]) == "PacketTooShort"


def test_initial_entries_have_the_priority_sense_of_p4runtime(matching: dict[str, Any]) -> None:
    table = load(matching).table("In.constant_table")
    assert table is not None
    assert table.const_entries
    assert [e.priority for e in table.entries] == sorted((e.priority for e in table.entries), reverse=True)
    assert table.entries[0].matches == (Ternary(0x10000000, 0xF0000000),)
    assert table.entries[0].action == ActionCall("In.set_value", (1,))


def test_a_table_knows_its_direct_counter_and_meter(matching: dict[str, Any]) -> None:
    table = load(matching).table("In.exact_table")
    assert table is not None
    assert table.counter is not None
    assert table.counter.direct
    assert table.meter is not None
    assert table.meter.result is not None


def test_the_digest_does_not_depend_on_where_the_source_was(steer: dict[str, Any]) -> None:
    def rename(program: dict[str, Any]) -> None:
        program["program"] = "elsewhere.p4"
        for action in program["actions"]:
            for step in action["primitives"]:
                step["source_info"] = {"filename": "elsewhere.p4", "line": 1, "column": 2, "source_fragment": "x"}

    def retype(program: dict[str, Any]) -> None:
        first(program, "header_types")["fields"][0][1] += 8

    assert load(changed(steer, rename)).digest == load(steer).digest
    assert load(changed(steer, retype)).digest != load(steer).digest


def test_a_valid_match_and_the_hidden_field_are_the_same_thing(matching: dict[str, Any]) -> None:
    def use(target: Any, kind: str) -> Callable[[dict[str, Any]], None]:
        def change(program: dict[str, Any]) -> None:
            table = next(t for p in program["pipelines"] for t in p["tables"] if t["name"] == "In.profile_table")
            table["key"][0] = {"match_type": kind, "name": "valid", "target": target, "mask": None}

        return change

    for target, kind in ((["keys", "$valid$"], "exact"), ("keys", "valid")):
        table = load(changed(matching, use(target, kind))).table("In.profile_table")
        assert table is not None
        assert isinstance(table.keys[0].target, ValidBit)
        assert (table.keys[0].match, table.keys[0].width_bits) == ("exact", 1)


def test_fields_are_found_through_aliases(steer: dict[str, Any]) -> None:
    program = load(steer)
    assert isinstance(program.intrinsics.mcast_grp, FieldRef)
    assert program.intrinsics.mcast_grp.field.name == "mcast_grp"


BIT = {"type": "hexstr", "value": "0x1", "bitwidth": 1}
ASKED = {"op": "generate_digest", "parameters": [BIT, {"type": "hexstr", "value": "0x7"}]}


def digest(number: int, *elements: dict[str, Any]) -> dict[str, Any]:
    return {"id": number, "name": "d", "elements": list(elements)}


def widened(program: dict[str, Any]) -> None:
    """A field of v1model, on which the emitter of C ended with a ValueError."""
    kinds = {kind["name"]: kind for kind in program["header_types"]}
    place = next(header for header in program["headers"] if header["name"] == "standard_metadata")
    kinds[place["header_type"]]["fields"][2][1] = 1024


def shared(program: dict[str, Any]) -> None:
    """Found by seed 2705870462 of damaged programs: each engine wrote the two in its own order."""
    next(alias for alias in program["field_aliases"] if "enq_timestamp" in alias[0])[1][1] = "instance_type"


def circled(program: dict[str, Any]) -> None:
    """The native engine went round in it for ever, for the first packet."""
    pipeline = next(each for each in program["pipelines"] if each["conditionals"])
    pipeline["conditionals"][0]["false_next"] = pipeline["conditionals"][0]["name"]


BROKEN: list[tuple[str, Callable[[dict[str, Any]], object], str]] = [
    (
        "unknown header",
        lambda p: first(p, "headers").update(header_type="nobody"),
        r"headers\[0\] \(.*\)\.header_type: no header type is called 'nobody'; there are: ",
    ),
    (
        "width",
        lambda p: first(p, "header_types")["fields"][0].__setitem__(1, 0),
        r"fields\[0\]\[1\]: 0 is out of range",
    ),
    ("missing", lambda p: first(p, "parsers").pop("init_state"), r"the attribute 'init_state' is missing"),
    ("wrong kind", lambda p: p.update(headers={}), r"headers: expected an array, found \{\}"),
    ("two of a name", lambda p: p["headers"].append(p["headers"][0]), r"a second header is called"),
    (
        "unknown state",
        lambda p: first(p, "parsers")["parse_states"][0]["transitions"][0].update(next_state="limbo"),
        r"no parser state is called 'limbo'",
    ),
    ("pipeline", lambda p: p["pipelines"].pop(), r"pipelines must hold exactly one called 'egress'"),
    ("intrinsic", lambda p: p["headers"].__delitem__(slice(None)), r"no header is called|is required by simple_switch"),
    ("circle", circled, r"a packet could go round for ever: "),
    ("one field for two", shared, r"enq_timestamp and standard_metadata.instance_type must be two fields"),
    ("wide intrinsic", widened, r"the field standard_metadata\.\w+ must have at most 64 bits \(got 1024\)"),
    (
        "field list 0",
        lambda p: (
            p["field_lists"].append({"id": 0, "name": "none", "elements": []}),
            primitive(p, "resubmit")["parameters"][0].update(type="hexstr", value="0x0"),
        ),
        r"ids must start at 1",
    ),
    ("parameters", lambda p: primitive(p, "resubmit").update(parameters=[]), r"resubmit takes 1 parameters, not 0"),
    ("two digests", lambda p: p["learn_lists"].extend([digest(1, BIT)] * 2), r"a second learn list has id 1"),
    ("empty digest", lambda p: p["learn_lists"].append(digest(1)), r"a digest has 1 to 131072 bits, not 0"),
    ("unknown digest", lambda p: primitive(p, "resubmit").update(ASKED), r"no learn list has id 7"),
    ("not hex", lambda p: primitive(p, "resubmit")["parameters"][0].update(value="0xzz"), r"a hexadecimal string"),
]
REFUSED: list[tuple[str, Callable[[dict[str, Any]], object], str]] = [
    ("unknown primitive", lambda p: primitive(p, "resubmit").update(op="teleport"), r"unknown primitive 'teleport'"),
    (
        "digest of payload",
        lambda p: p["learn_lists"].append(digest(1, {"type": "payload"})),
        r"a digest of anything but",
    ),
    ("digests", lambda p: p["learn_lists"].extend(digest(n, BIT) for n in range(1, 66)), r"more than 64 learn lists"),
    ("extern", lambda p: p.update(extern_instances=[{"name": "e"}]), r"extern instances are not supported"),
    ("version", lambda p: p["__meta__"].update(version=[3, 0]), r"version 3\.0 of the format"),
    (
        "algorithm",
        lambda p: p["calculations"].append({"name": "c", "id": 9, "algo": "random", "input": []}),
        r"unknown hash algorithm 'random'; there are: .*crc32",
    ),
]


@pytest.mark.parametrize(
    ("error", "change", "message"),
    [
        pytest.param(kind, *row[1:], id=row[0])
        for kind, rows in ((ModelError, BROKEN), (UnsupportedError, REFUSED))
        for row in rows
    ],
)
def test_a_complaint_names_the_place_and_the_rule_or_what_is_not_supported(steer, error, change, message) -> None:
    with pytest.raises(error, match=message):
        load(changed(steer, change))


def test_an_action_may_jump_back(steer: dict[str, Any]) -> None:
    def loop(program: dict[str, Any]) -> None:
        first(program, "actions")["primitives"] = [
            {"op": "_jump", "parameters": [{"type": "expression", "value": {"type": "hexstr", "value": "0x0"}}]}
        ]

    (jump,) = load(changed(steer, loop)).actions[0].primitives
    assert jump.args == (Const(0),)


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[]", b"{", b'"x"', b"{}", b"[" * 100_000])
def test_bytes_that_are_no_program_are_refused(data: bytes) -> None:
    with pytest.raises(ModelError, match=r"^program"):
        load_program(data)


def test_a_missing_file_is_a_model_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="No such file"):
        load(tmp_path / "nothing.json")


def test_a_file_and_its_bytes_give_the_same_program(steer: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "steer.json"
    path.write_text(json.dumps(steer))
    assert load(path).digest == load_program(path.read_bytes()).digest == load(steer).digest


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            b"[" + b"[]," * 1_000_000,
            r"x: not JSON: at most 2000000 commas, colons, \[ and \{ are allowed \(got 2000001\)",
        ),
        (b" " * ((24 << 20) + 1), r"x: a program must have at most 25165824 bytes \(got 25165825\)"),
    ],
)
def test_json_that_would_take_much_memory_is_refused_before_it_is_parsed(data: bytes, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        load_program(data, "x")


SWITCH = Path(__file__).resolve().parents[1]
SOURCES = [
    *sorted(p for p in (SWITCH / "frontend" / "programs").glob("*.p4") if p.name != "common.p4"),
    *sorted((SWITCH / "stf").glob("*.p4")),
    *sorted((SWITCH / "native" / "programs").glob("*.p4")),
    *(SWITCH.parents[1] / "p4" / f"{name}.p4" for name in ("leaf", "spine")),
]


def unwrapped(value: Any) -> Any:
    """The document without expressions around other values: they mean nothing, and loading leaves them out."""
    if isinstance(value, list):
        return [unwrapped(item) for item in value]
    if not isinstance(value, dict):
        return value
    inner = value.get("value")
    if value.get("type") == "expression" and isinstance(inner, dict) and "type" in inner:
        return unwrapped(inner)
    if value.get("type") == "runtime_data":
        return {**value, "type": "local"}
    return {key: unwrapped(item) for key, item in value.items()}


def same_again(path: Path) -> None:
    written = Compilation(path).run().json
    again = document(load(written))
    assert again.keys() == written.keys()
    for section, expected in unwrapped(written).items():
        assert unwrapped(again[section]) == expected, section


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.stem)
def test_a_program_is_the_same_after_loading_and_writing(path: Path) -> None:
    same_again(path)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", [RandomExpressions, RandomParser, RandomProgram])
def test_a_random_program_is_the_same_after_loading_and_writing(kind: Any, seed: int, tmp_path: Path) -> None:
    path = tmp_path / "random.p4"
    path.write_text(kind(seed).text)
    same_again(path)


def test_digests_and_value_sets_are_written_as_bmv2_reads_them() -> None:
    made = Compilation(SWITCH / "frontend" / "programs" / "control_plane.p4").run().json
    assert [one["name"] for one in made["learn_lists"]] == ["learned_t"]
    assert [one["name"] for one in made["parse_vsets"]] != []
    kinds = {t["type"] for s in made["parsers"][0]["parse_states"] for t in s["transitions"]}
    assert kinds == {"default", "hexstr", "parse_vset"}


def test_constants_of_a_calculation_have_the_digits_that_bmv2_copies() -> None:
    """As p4lang's compiler writes them; BMv2's BufBuilder copies the bytes of `bitwidth` from the number's digits."""
    made = Compilation(SWITCH.parents[1] / "p4" / "leaf.p4").run().json
    inputs = next(each["input"] for each in made["calculations"] if each["algo"] == "csum16")
    constants = {each["bitwidth"]: each["value"] for each in inputs if each["type"] == "hexstr"}
    assert constants == {16: "0x0000", 24: "0x000000"}


def test_what_only_other_compilers_write_is_kept() -> None:
    """Registers in expressions, actions called by the pipeline, saturating fields (JSON_format.md)."""
    given = Compilation(SWITCH / "stf" / "steer.p4").run().json
    given["register_arrays"] = [{"name": "r", "id": 0, "size": 4, "bitwidth": 8}]
    cell = {"type": "register", "value": ["r", {"type": "hexstr", "value": "0x1"}]}
    number = len(given["actions"])
    target = next(p["parameters"][0] for a in given["actions"] for p in a["primitives"] if p["op"] == "assign")
    called = {"op": "assign", "parameters": [target, {"type": "expression", "value": cell}]}
    given["actions"].append({"name": "called", "id": number, "runtime_data": [], "primitives": [called]})
    given["pipelines"][1]["action_calls"] = [{"name": "call", "id": 0, "action_id": number, "next_node": None}]
    given["header_types"].append({"name": "sat_t", "id": len(given["header_types"]), "fields": [["f", 8, True, True]]})
    assert unwrapped(document(load(given))) == unwrapped(given)
