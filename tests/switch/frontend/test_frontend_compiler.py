"""The whole compiler: command line, cache, intermediate forms, and what keeps a read and a write in one action."""

import json
import random
from pathlib import Path

import pytest

from p4c.frontend import CompileError, compile_program
from p4c.frontend.compilation import Compilation
from p4c.frontend.emit.p4info import name_hash
from switch.__main__ import main
from tests.helpers.p4.made import WHOLE, Made

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[3]


# --- command line ---------------------------------------------------------------------------------


def test_compile_writes_json_and_p4info(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(PROGRAMS / "tunnel.p4"), "-o", str(tmp_path / "out"), "--no-cache"]) == 0
    assert capsys.readouterr().out.split() == [
        str(tmp_path / "out" / "tunnel.json"),
        str(tmp_path / "out" / "tunnel.p4info.txtpb"),
    ]
    assert json.loads((tmp_path / "out" / "tunnel.json").read_text())["__meta__"]["version"] == [2, 23]
    assert 'name: "MyIngress.ends"' in (tmp_path / "out" / "tunnel.p4info.txtpb").read_text()


def test_a_bad_program_writes_nothing_and_exits_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "bad.p4"
    source.write_text("header h_t { bit<8> a }\n")
    assert main(["compile", str(source), "-o", str(tmp_path / "out"), "--no-cache"]) == 1
    assert capsys.readouterr().err.endswith("1 error: nothing was written\n")
    assert not (tmp_path / "out").exists()


def test_a_missing_program_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "none.p4"
    assert main(["compile", str(missing), "--no-cache"]) == 2
    told = f"switch: the program must be a P4 source file (got {missing}: no such file or directory)\n"
    assert capsys.readouterr().err == told
    assert main(["compile", str(tmp_path)]) == 2
    assert f"(got {tmp_path}: a directory)" in capsys.readouterr().err


def test_a_program_with_warnings_is_refused_where_they_are_errors(tmp_path, capsys) -> None:
    program = PROGRAMS / "tunnel.p4"  # as p4lang's advanced_tunnel does, it counts by a header that it has just removed
    for _ in range(2):  # the second time from the cache
        assert main(["compile", str(program), "-o", str(tmp_path / "out"), "--Werror"]) == 1
        said = capsys.readouterr().err
        assert "warning[lint]: header tunnel is valid on no path to here" in said
        assert said.endswith("warnings are errors here (--Werror): nothing was written\n")
    assert not (tmp_path / "out").exists()
    assert main(["compile", str(PROGRAMS / "calculator.p4"), "-o", str(tmp_path / "out"), "--Werror"]) == 0


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["compile", str(PROGRAMS / "calculator.p4"), "-o", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err == f"switch: -o must be a folder (got the file {tmp_path / 'file'})\n"


def test_macros_and_include_paths_are_taken_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "extra.p4").write_text("const bit<8> X = VALUE;\n")
    source = tmp_path / "main.p4"
    source.write_text('#include <extra.p4>\n#include "common.p4"\n' + (PROGRAMS / "tunnel.p4").read_text())
    with pytest.raises(CompileError, match=r"cannot find the file 'extra\.p4'"):
        compile_program(source, use_cache=False)
    paths = [tmp_path / "elsewhere", PROGRAMS]
    assert compile_program(source, include_paths=paths, definitions={"VALUE": "3"}, use_cache=False).json["actions"]


# --- the cache ------------------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "common.p4").write_text((PROGRAMS / "common.p4").read_text().replace("../..", str(PROGRAMS.parents[1])))
    target = tmp_path / "tunnel.p4"
    target.write_text((PROGRAMS / "tunnel.p4").read_text())
    return target


def test_a_known_result_is_taken_from_the_cache(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    first = compile_program(source, cache)

    def unexpected(_: Compilation) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(Compilation, "run", unexpected)
    assert compile_program(source, cache) == first


@pytest.mark.parametrize("changed", ["tunnel.p4", "common.p4"])
def test_a_change_in_any_file_compiles_again(source: Path, tmp_path: Path, changed: str) -> None:
    cache = tmp_path / "cache"
    before = compile_program(source, cache)
    text = (tmp_path / changed).read_text()
    (tmp_path / changed).write_text(text.replace("0x1212", "0x1313").replace("ipv4_address_t src", "bit<32> source"))
    after = compile_program(source, cache)
    assert (after.json != before.json) == (changed == "tunnel.p4")
    assert after.json == compile_program(source, use_cache=False).json


def test_a_file_that_would_now_be_found_first_compiles_again(source: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    source.write_text("#include <v1model.p4>\n" + source.read_text())
    near = tmp_path / "near"
    near.mkdir()
    before = compile_program(source, cache, include_paths=[near])
    (near / "v1model.p4").write_text('#define V1MODEL_VERSION 20200408\n#error "found"\n')
    with pytest.raises(CompileError, match="found"):
        compile_program(source, cache, include_paths=[near])
    (near / "v1model.p4").unlink()
    assert compile_program(source, cache, include_paths=[near]) == before


def test_a_result_with_other_includes_is_no_result_for_a_program_that_may_not_have_them(source, tmp_path) -> None:
    cache = tmp_path / "cache"
    compile_program(source, cache)
    with pytest.raises(CompileError, match="cannot find the file"):
        compile_program(source, cache, includable=frozenset())


def test_a_torn_cache_entry_is_compiled_again(source: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = compile_program(source, cache)
    (entry,) = cache.iterdir()
    text = entry.read_bytes()
    rng = random.Random(1)
    for _ in range(20):
        entry.write_bytes(text[: rng.randrange(len(text))])
        assert compile_program(source, cache) == first


def test_a_cache_that_cannot_be_written_is_done_without(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert compile_program(source, tmp_path / "file" / "cache").json


# --- what the rest of the project relies on -------------------------------------------------------


@pytest.mark.parametrize("program", ["leaf", "spine"])
def test_a_register_is_read_and_written_within_one_action(program: str) -> None:
    document = Compilation(ROOT / "p4" / f"{program}.p4").run().json
    ingress = {a for t in document["pipelines"][0]["tables"] for a in t["action_ids"]}
    using = [a for a in document["actions"] if any(p["op"].startswith("register") for p in a["primitives"])]
    both = [a for a in using if a["id"] in ingress]
    assert len(both) == 1
    assert [p["op"] for p in both[0]["primitives"] if p["op"].startswith("register")] == [
        "register_read",
        "register_write",
    ]


def test_compiling_twice_gives_the_same_text() -> None:
    path = ROOT / "p4" / "leaf.p4"
    first, second = Compilation(path).run(), Compilation(path).run()
    assert first.json_text == second.json_text
    assert first.p4info_text == second.p4info_text


def test_ids_are_the_kind_and_the_hash_of_the_name() -> None:
    # Values of the hash as its author publishes them, and an id as every P4 program has it.
    assert name_hash("a") == 0xCA2E9442
    assert name_hash("The quick brown fox jumps over the lazy dog") == 0x519E91F5
    assert (0x01 << 24) | (name_hash("NoAction") & 0xFFFFFF) == 21257015


# --- stacks ---------------------------------------------------------------------------------------


def test_a_field_behind_a_struct_in_an_element_chosen_at_run_time_is_that_field(tmp_path: Path) -> None:
    """BMv2 counts the fields of the flattened header; the struct of two fields in front counts as two."""
    source = WHOLE.replace("h_t h; h_t i;", "part_t[2] parts;").replace("extract(hdr.h)", "extract(hdr.parts.next)")
    types = "struct pair_t {{ bit<8> one; bit<8> two; }}\nheader part_t {{ pair_t pair; bit<8> wanted; }}\n"
    source = source.replace("struct headers", types + "struct headers", 1)
    made = Made(tmp_path, source, ingress="hdr.parts[m.x].wanted = 7;").json
    fields = next(t["fields"] for t in made["header_types"] if t["name"] == "part_t")
    written = [p["parameters"][0] for a in made["actions"] for p in a["primitives"] if p["op"] == "assign"][-1]
    assert fields[written["value"]["value"]["right"]][0] == "wanted"
