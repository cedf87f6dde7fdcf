"""Bad programs are filed by the phase that must reject them; what is said about them is golden.

`UPDATE_GOLDEN=1` writes the golden files anew, for a person to read before they are committed.
"""

import os
from pathlib import Path

import pytest

from p4c.frontend import CompileError
from p4c.frontend.compilation import Compilation
from p4c.frontend.diagnostics import PHASES

BAD = Path(__file__).parent / "bad"
CASES = sorted(p.relative_to(BAD) for p in BAD.glob("*/*.p4"))


def test_every_phase_has_bad_programs() -> None:
    assert {str(p.parent) for p in CASES} == set(PHASES)


@pytest.mark.parametrize("path", CASES, ids=str)
def test_a_bad_program_is_rejected_by_its_phase_with_the_golden_message(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(BAD)
    with pytest.raises(CompileError) as caught:
        Compilation(path).run()
    errors = [d for d in caught.value.diagnostics if d.severity == "error"]
    assert {d.phase for d in errors} == {str(path.parent)}
    assert all(d.span.line > 0 and d.span.column > 0 for d in errors)
    golden = path.with_suffix(".txt")
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(f"{caught.value}\n")
    assert f"{caught.value}\n" == golden.read_text()
