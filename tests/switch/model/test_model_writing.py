"""Writing is the inverse of loading: what the compiler wrote, loaded and written again, is what it was."""

from pathlib import Path
from typing import Any

import pytest

from p4c.frontend.compilation import Compilation
from p4c.model import document, load
from tests.helpers.frontend.random_expressions import RandomExpressions
from tests.helpers.frontend.random_parsers import RandomParser
from tests.helpers.frontend.random_programs import RandomProgram

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


@pytest.mark.parametrize("seed", range(6))
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
