"""JSON and TOML of others have one reader each, with limits: what they make is counted before it takes memory."""

from __future__ import annotations

import ast
import json
import re
import tracemalloc

import pytest

from common import plain_file
from common.fields import TOML_BYTES_MAX, parse_toml, read_json
from controller.pipelines import without_places
from judging.journal import read_file
from tests.helpers.tracked import ROOT, python_files

MOST = 2_000_000
TOO_MUCH = "at most 2000000 commas, colons, [ and { are allowed (got 2000001)"
OWN = {
    "packages/course/course/checking.py",  # what its own process says
    "packages/operations/operations/incident/tools.py",  # the journal that its own process writes
    "packages/p4c/p4c/frontend/cache.py",  # a file of the cache, which no other user can write
    "switch/control.py",  # what this process has just made
    "topo/emulation/state.py",  # the record in /run/mrclab, which is root's
    "running/parallel/runs.py",  # lines of its own processes
}
"""Modules that read plain files, and parse JSON that comes from elsewhere."""


def of_marks(count: int) -> bytes:
    return b"[" + b"1," * (count - 1) + b"1]"


def test_a_text_has_as_many_values_as_fit_in_200_megabytes() -> None:
    assert len(plain_file.parse_json(of_marks(MOST))) == MOST
    for text in (of_marks(MOST + 1), of_marks(MOST + 1).decode()):
        with pytest.raises(ValueError, match=f"^{re.escape(TOO_MUCH)}$"):
            plain_file.parse_json(text)


def test_files_of_others_and_lines_of_their_journals_are_counted(tmp_path) -> None:
    path = tmp_path / "options.json"
    path.write_bytes(of_marks(MOST + 1) + b"\n")
    with pytest.raises(ValueError, match=re.escape(f"{path} must hold JSON ({TOO_MUCH})")):
        plain_file.read_object(path)
    with pytest.raises(LookupError, match=re.escape(f"{path}: is not JSON: {TOO_MUCH}")):
        read_json(path, LookupError)
    (line,) = read_file(path)
    assert line["message"] == f"options.json:1: unreadable: {TOO_MUCH}"


@pytest.mark.parametrize("program", [of_marks(MOST + 1), b"[" * 100_000 + b"]" * 100_000], ids=["wide", "deep"])
def test_a_program_that_is_too_much_json_is_sent_as_it_is(program: bytes) -> None:
    assert without_places(program, positions=False) == program
    assert json.loads(without_places(b'{"program": "/a/b.p4"}', positions=False)) == {"program": "b.p4"}


def test_modules_that_read_files_of_others_count_what_they_parse() -> None:
    found = set()
    for file in python_files():
        text = file.read_text()
        tree = ast.parse(text if "plain_file" in text and "json" in text else "")
        called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        if called & {"json.loads", "json.load"}:
            found.add(file.relative_to(ROOT).as_posix())
    assert found == OWN


SHIPPED = {"main.py", "door.py", "solving.py", "texts.py", "bar.py", "rule.py", "contest.py"}
"""Readers of files that are part of the project: no user gives them one."""


class GivenError(ValueError):
    pass


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = ", r"mine\.toml: must be TOML \(Invalid value"),
        ("a = " + "[" * 5000, r"mine\.toml: must be TOML \(it is nested too deeply\)"),
        ("\n" + ".".join("a" * 18) + " = 1", r"mine\.toml: line 2 must have at most 16 dots beside numbers \(got 17\)"),
        ("b = 1\na = " + "1" * 4301 + "\nc = 2", r"mine\.toml: line 2 must have no number of more than 4300 digits"),
        ("b = 1\na = 0x" + "f" * 5000, r"mine\.toml: line 2 must have no number of more than 4300 digits"),
        ("a = 0b" + "1_" * 3000 + "1", r"mine\.toml: line 1 must have no number of more than 4300 digits"),
    ],
)
def test_what_is_no_toml_is_named(text: str, said: str) -> None:
    with pytest.raises(GivenError, match=said):
        parse_toml(text, "mine.toml", GivenError)


@pytest.mark.parametrize("opening", ["a.b", "[a"])
def test_the_longest_text_costs_at_most_300_mb(opening: str) -> None:
    """The worst that the limits let through: keys of as many parts as a line may have, a table for each."""
    parts, closing = ".b" * 15, "]" if opening.startswith("[") else " = 1"
    text = "".join(f"{opening}{number:x}{parts}{closing}\n" for number in range(1000))
    tracemalloc.start()
    parse_toml(text, "mine.toml", GivenError)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes * TOML_BYTES_MAX < 300_000_000 * len(text)


def test_no_other_part_of_the_lab_parses_toml_of_users() -> None:
    importers = set()
    for file in python_files():
        if "tests" not in file.parts and "tomllib" in (text := file.read_text()):
            imported = [one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Import)]
            importers |= {file.name for one in imported if one.names[0].name == "tomllib"}
    assert importers == {"fields.py", *SHIPPED}
