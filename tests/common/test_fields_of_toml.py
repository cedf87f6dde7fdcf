"""TOML that a user gives has one reader, with its limits."""

import ast
import tracemalloc

import pytest

from common.fields import TOML_BYTES_MAX, parse_toml
from tests.helpers.rooms import python_files

SHIPPED = {"main.py", "door.py", "solving.py", "texts.py"}
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
