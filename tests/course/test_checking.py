"""A check from outside: whatever the worker does, the caller gets a result."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from course import checking
from course.catalogue import find
from course.student import Student

USIDS = find("usids")


@pytest.mark.parametrize("said", ["", "[]", '{"tests": []}', "[" * 100_000])
def test_an_answer_that_cannot_be_read_is_a_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setattr(checking, "python", lambda *_: [sys.executable, "-c", f"print({said!r})"])
    (tmp_path / USIDS.file).write_text("ANSWERS = {}\n")
    result = checking.check(USIDS, tmp_path / USIDS.file, Student("anna"), tmp_path / "checked")
    assert result.status == 2
    assert "the check must answer with a result" in result.trouble
