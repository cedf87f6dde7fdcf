"""Every call that touches what other users may hold goes through a helper, or has a row in `tests/surfaces.toml`."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

from tests.helpers.surfaces import KINDS, Site, calls, sites

ROOT = Path(__file__).parents[1]
TABLE: dict[str, list[dict[str, str]]] = tomllib.loads((ROOT / "tests" / "surfaces.toml").read_text())


def belongs(row: dict[str, str], site: Site) -> bool:
    return (row["file"], row["function"]) == (site.file, site.function) and row["call"] in site.text


def compared(rows: list[dict[str, str]], found: list[Site]) -> list[str]:
    """What is wrong between the rows of a kind and its calls."""
    without = [site for site in found if not any(belongs(row, site) for row in rows)]
    return [
        *(f"{site.file}: {site.text} in {site.function}" for site in without),
        *(f"a row without a call: {row}" for row in rows if not any(belongs(row, site) for site in found)),
        *(f"a row without a reason: {row}" for row in rows if len(row["why"].split()) < 2),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_every_call_has_a_helper_or_a_row(kind: str) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no clone but a copy: git knows no files of it")
    wrong = compared(TABLE.get(kind, []), list(sites(ROOT, KINDS[kind])))
    assert not wrong, f"[[{kind}]] of tests/surfaces.toml says which helper to use instead: {wrong}"


def test_the_table_has_no_other_kinds() -> None:
    assert set(TABLE) <= set(KINDS)


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        ("write", "open(path, 'w')", True),
        ("write", "open(path, mode='a')", True),
        ("write", "open(path, how)", True),
        ("write", "open(path)", False),
        ("write", "open(path, 'rb')", False),
        ("write", "path.open('r+b')", True),
        ("write", "path.open()", False),
        ("write", "path.open('x')", False),
        ("write", "Run.open(path)", False),
        ("write", "path.write_text(text)", True),
        ("write", "shutil.copy(a, b)", True),
        ("write", "rows.copy()", False),
        ("write", "os.open(path, os.O_RDWR | os.O_CREAT)", True),
        ("write", "os.open(path, FLAGS)", True),
        ("write", "os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)", False),
        ("write", "os.open(path, os.O_RDONLY | os.O_NOFOLLOW)", False),
        ("owner", "os.chown(path, 1, 1)", True),
        ("owner", "path.chmod(0o600)", True),
        ("owner", "os.fchmod(descriptor, 0o600)", False),
        ("lock", "fcntl.flock(file, fcntl.LOCK_EX)", True),
        ("lock", "fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)", False),
        ("unix", "socket.socket(socket.AF_UNIX, kind)", True),
        ("unix", "socket.socket(family)", True),
        ("unix", "socket.socketpair()", False),
        ("unix", "socket.socket(socket.AF_INET6)", False),
    ],
)
def test_a_call_of_a_kind_is_found(kind: str, text: str, found: bool) -> None:
    tree = ast.parse(f"class A:\n    def b(self):\n        {text}\n")
    (function, call), *_ = calls(tree)
    assert (function, KINDS[kind](call)) == ("A.b", found)


def test_a_call_without_a_row_and_a_row_without_a_call_are_told() -> None:
    row = {"file": "a.py", "function": "f", "call": "open(x", "why": "for a test"}
    site = Site("a.py", "f", "open(x, 'w')")
    assert compared([row], [site]) == []
    assert compared([], [site]) == ["a.py: open(x, 'w') in f"]
    assert compared([row], []) == [f"a row without a call: {row}"]
    assert compared([row | {"why": ""}], [site]) == [f"a row without a reason: {row | {'why': ''}}"]
