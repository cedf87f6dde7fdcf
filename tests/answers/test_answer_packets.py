"""Packets by hand through the P4 variants, on both engines and from either compiler's JSON."""

from pathlib import Path

import pytest

from switch.stf import parse, run
from switch.stf.statements import Statement
from tests.helpers.p4.programs import COMPILERS, ENGINES, ROOT, compiled_from, engine

STF = Path(__file__).parent / "stf"
VARIANTS = ROOT / "packages" / "answers" / "answers"
PROGRAMS = {"back_to_sender": ("leaf", "spine"), "adaptive": ("leaf",), "telemetry": ("leaf", "spine")}
CASES = [
    pytest.param(variant, program, path, id=f"{variant}-{program}-{path.stem}")
    for variant, programs in PROGRAMS.items()
    for program in programs
    for path in sorted((STF / variant).glob("*.stf"))
]


def statements(path: Path) -> list[Statement]:
    node = ROOT / "tests" / "p4" / "stf" / "node.stf"
    return parse(node.read_text()) + parse(path.read_text())


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize(("variant", "program", "path"), CASES)
def test_packets_come_out_as_the_file_says(variant: str, program: str, path: Path, kind: str, compiler: str) -> None:
    made = compiled_from(VARIANTS / variant / f"{program}.p4", compiler)
    failures = run(engine(kind), made.program, statements(path))
    assert not failures, "\n".join(map(str, failures))
