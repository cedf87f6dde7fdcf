"""Bad programs are filed by the phase that must reject them; what is said about them is golden.

A golden file has what is printed without the line of the program and the mark below: `4:33+2` marks columns 33 to 35.
`UPDATE_GOLDEN=1` writes the golden files anew, for a person to read before they are committed.
"""

import os
import re
from pathlib import Path

import pytest

from p4c.frontend import CompileError
from p4c.frontend.compilation import Compilation
from p4c.frontend.diagnostics import PHASES

BAD = Path(__file__).parent / "bad"
EVERY = sorted(p.relative_to(BAD) for p in BAD.glob("*/*.p4"))
DOUBTFUL = [p for p in EVERY if str(p.parent) == "lint"]
CASES = [p for p in EVERY if p not in DOUBTFUL]
PLACE = re.compile(r"^(\S+):(\d+):(\d+)(?:\+(\d+))?(: (?:error|warning).*)$", re.MULTILINE)


def shown(place: re.Match[str]) -> str:
    """A place as it is printed: the message, the line of the program, and a mark below it."""
    file, line, column, more, message = place.groups()
    text = (BAD / file).read_text().splitlines()[int(line) - 1]
    mark = " " * (int(column) - 1) + "^" + "~" * int(more or 0)
    return f"{file}:{line}:{column}{message}\n    {text}\n    {mark}"


def place_of(printed: re.Match[str]) -> str:
    return printed[1] + f"+{len(printed[3])}" * bool(printed[3]) + printed[2]


def test_every_phase_has_bad_programs() -> None:
    assert {str(p.parent) for p in EVERY} == set(PHASES)


@pytest.mark.parametrize("path", CASES, ids=str)
def test_a_bad_program_is_rejected_by_its_phase_with_the_golden_message(path, monkeypatch) -> None:
    monkeypatch.chdir(BAD)
    with pytest.raises(CompileError) as caught:
        Compilation(path).run()
    errors = [d for d in caught.value.diagnostics if d.severity == "error"]
    assert {d.phase for d in errors} == {str(path.parent)}
    assert all(d.span.line > 0 and d.span.column > 0 for d in errors)
    compare_with_golden(path, f"{caught.value}\n")


def compare_with_golden(path: Path, text: str) -> None:
    golden = path.with_suffix(".txt")
    if os.environ.get("UPDATE_GOLDEN"):
        printed = re.sub(r"(:\d+)(: .*)\n {4}.*\n +\^(~*)$", place_of, text, flags=re.MULTILINE)
        golden.write_text(printed)
    assert text == PLACE.sub(shown, golden.read_text())


@pytest.mark.parametrize("path", DOUBTFUL, ids=str)
def test_a_doubtful_program_is_compiled_with_the_golden_warnings(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside what is warned of, each program has what looks alike and is right."""
    monkeypatch.chdir(BAD)
    compilation = Compilation(path)
    assert compilation.run().warnings
    assert {d.phase for d in compilation.diagnostics.items} == {"lint"}
    compare_with_golden(path, f"{compilation.diagnostics.render()}\n")
