"""Every call that touches what other users may hold goes through a helper, or has a row in `tests/surfaces.toml`."""

import ast
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import surfaces
from tests.helpers.surfaces import ENTRIES, KINDS, Site, sites

ROOT = Path(__file__).parents[1]
FILE = tomllib.loads((ROOT / "tests" / "surfaces.toml").read_text())
SURFACES = FILE.pop("surface")
TABLE: dict[str, list[dict[str, Any]]] = {
    kind: [{"file": file, "call": call, "why": why} for file, calls in files.items() for call, why in calls.items()]
    for kind, files in FILE.items()
}
needs_a_clone = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no clone but a copy: git knows no files of it")


def belongs(row: dict[str, Any], site: Site) -> bool:
    return row["file"] == site.file and row["call"] in site.text


def compared(rows: list[dict[str, Any]], found: list[Site]) -> list[str]:
    """Differences between the rows of a kind and its calls."""
    without = [site for site in found if not any(belongs(row, site) for row in rows)]
    return [
        *(f"{site.file}: {site.text}" for site in without),
        *(f"a row without a call: {row}" for row in rows if not any(belongs(row, site) for site in found)),
        *(f"a row without a reason: {row}" for row in rows if len(row["why"].split()) < 2),
    ]


@needs_a_clone
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.smoke
def test_every_call_has_a_helper_or_a_row(kind: str) -> None:
    wrong = compared(TABLE.get(kind, []), list(sites(ROOT, KINDS[kind])))
    assert not wrong, f"[{kind}] of tests/surfaces.toml says which helper to use instead: {wrong}"


def test_the_table_has_no_other_kinds() -> None:
    assert set(TABLE) <= {*KINDS, "read"}


@needs_a_clone
@pytest.mark.smoke
def test_files_of_others_are_read_by_the_helper() -> None:
    """A surface says in `reads` why its files may be read plainly. In those without it, each plain read has a row."""
    of_others = surfaces.listed([row for row in SURFACES if not row.get("reads")])
    found = [one for one in sites(ROOT, ENTRIES["read"]) if f"read {one.file}" in of_others]
    wrong = compared(TABLE.get("read", []), found)
    assert not wrong, f"common/plain_file.py reads what users name, and what lies in run folders: {wrong}"


@needs_a_clone
@pytest.mark.smoke
def test_files_of_others_are_read_within_a_bound() -> None:
    wrong = [f"{file}: {place}" for file, tree in surfaces.product(ROOT) for place in surfaces.without_bound(tree)]
    assert not wrong, f"`plain_file.lines` and a number of bytes bound what a file of others takes: {wrong}"


def test_a_read_without_a_bound_is_found() -> None:
    text = """
with plain_file.open_plain(a) as file, open(b) as own:
    for line in file: pass
    [line for _, line in enumerate(file, 1)]
    for line in plain_file.lines(file, a): pass
    file.read()
    file.read(10)
    own.read()
"""
    assert list(surfaces.without_bound(ast.parse(text))) == ["file", "file.read()", "enumerate(file, 1)"]


def test_a_call_without_a_row_and_a_row_without_a_call_are_told() -> None:
    row = {"file": "a.py", "call": "open(x", "why": "for a test"}
    site = Site("a.py", "open(x, 'w')")
    assert compared([row], [site]) == []
    assert compared([], [site]) == ["a.py: open(x, 'w')"]
    assert compared([row], []) == [f"a row without a call: {row}"]
    assert compared([row | {"why": ""}], [site]) == [f"a row without a reason: {row | {'why': ''}}"]


# --- where bytes of another party enter ---------------------------------------------------------------------------


def uncounted(surface_rows: list[dict[str, Any]], found: Counter[str]) -> list[str]:
    """Differences between the places that surfaces list and those in the code."""
    listed = surfaces.listed(surface_rows)
    return [
        *(f"in no [[surface]]: {place} (x{count})" for place, count in (found - listed).items()),
        *(f"no such place: {place} (x{count})" for place, count in (listed - found).items()),
    ]


@needs_a_clone
@pytest.mark.smoke
def test_every_place_where_bytes_of_others_enter_is_in_a_surface() -> None:
    wrong = uncounted(SURFACES, surfaces.entries(ROOT))
    assert not wrong, f"tests/surfaces.toml says what its kinds are: {wrong}"


def test_each_surface_has_its_tests() -> None:
    missing = [test for surface in SURFACES for test in surface["tests"] if not (ROOT / "tests" / test).is_file()]
    assert not missing
    assert all(surface["tests"] and surface["guard"] and surface["from"] for surface in SURFACES)


def test_the_page_lists_the_surfaces() -> None:
    text = (ROOT / "docs" / "security.md").read_text()
    assert surfaces.page(SURFACES) in text, "`python -m tests.helpers.surfaces` prints the list for docs/security.md"


def test_one_more_place_in_a_listed_file_and_one_less_are_told() -> None:
    rows = [{"at": {"exec": "a.py x2", "read": "a.py"}}]
    assert uncounted(rows, Counter({"exec a.py": 2, "read a.py": 1})) == []
    assert uncounted(rows, Counter({"exec a.py": 3, "listen a.py": 1})) == [
        "in no [[surface]]: exec a.py (x1)",
        "in no [[surface]]: listen a.py (x1)",
        "no such place: read a.py (x1)",
    ]
