"""Packets by hand through the P4 variants, on both engines and BMv2, and from either compiler's JSON."""

import shutil
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from switch.stf import parse, run
from switch.stf.statements import Statement
from tests.helpers.p4.bmv2 import Bmv2
from tests.helpers.p4.programs import COMPILERS, ENGINES, ROOT, compiled_from, engine

STF = Path(__file__).parent / "stf"
VARIANTS = ROOT / "packages" / "answers" / "answers"
PROGRAMS = {"back_to_sender": ("leaf", "spine"), "adaptive": ("leaf",), "telemetry": ("leaf", "spine")}
NOT_LIVE = ("only_data_goes_back_and_only_once", "the_shortest_live_queue")
"""A port loses its link, or a queue's length is written: BMv2 has no word for it."""


def cases(*without: str) -> list[ParameterSet]:
    return [
        pytest.param(variant, program, path, id=f"{variant}-{program}-{path.stem}")
        for variant, programs in PROGRAMS.items()
        for program in programs
        for path in sorted((STF / variant).glob("*.stf"))
        if path.stem not in without
    ]


def statements(path: Path) -> list[Statement]:
    node = ROOT / "tests" / "p4" / "stf" / "node.stf"
    return parse(node.read_text()) + parse(path.read_text())


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize(("variant", "program", "path"), cases())
def test_packets_come_out_as_the_file_says(variant: str, program: str, path: Path, kind: str, compiler: str) -> None:
    made = compiled_from(VARIANTS / variant / f"{program}.p4", compiler)
    failures = run(engine(kind), made.program, statements(path))
    assert not failures, "\n".join(map(str, failures))


@pytest.mark.root
@pytest.mark.bmv2
@pytest.mark.skipif(shutil.which("simple_switch_grpc") is None, reason="simple_switch_grpc is not on PATH")
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(("variant", "program", "path"), cases(*NOT_LIVE))
def test_bmv2_sends_the_same_packets(variant: str, program: str, path: Path, compiler: str) -> None:
    made = compiled_from(VARIANTS / variant / f"{program}.p4", compiler)
    with Bmv2(made.json, made.p4info) as switch:
        failures = run(switch, made.program, statements(path))  # type: ignore[arg-type]
    assert not failures, "\n".join(map(str, failures))
