"""The `.stf` packet tests on both engines, on the embedded switch and on BMv2, from either compiler's JSON."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from switch.stf import parse, run
from switch.stf.statements import Statement
from tests.helpers.p4.bmv2 import Bmv2
from tests.helpers.p4.embedded import Embedded
from tests.helpers.p4.live import LiveSwitch
from tests.helpers.p4.programs import COMPILERS, ENGINES, PROGRAMS, Artefacts, compiled, engine

STF = Path(__file__).parent / "stf"
ENGINES_ONLY = "runts_are_dropped"  # no Linux interface carries such a frame


def files(program: str) -> list[Path]:
    return sorted([*(STF / "both").glob("*.stf"), *(STF / program).glob("*.stf")])


def statements(path: Path) -> list[Statement]:
    return parse((STF / "node.stf").read_text()) + parse(path.read_text())


CASES = [pytest.param(program, path, id=f"{program}-{path.stem}") for program in PROGRAMS for path in files(program)]


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize(("program", "path"), CASES)
def test_packets_come_out_as_the_file_says(program: str, path: Path, kind: str, compiler: str) -> None:
    failures = run(engine(kind), compiled(program, compiler).program, statements(path))
    assert not failures, "\n".join(map(str, failures))


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=COMPILERS)
def artefacts(request: pytest.FixtureRequest, program: str) -> Artefacts:
    return compiled(program, request.param)


@pytest.fixture(scope="module")
def bmv2(artefacts: Artefacts) -> Iterator[Bmv2]:
    with Bmv2(artefacts.json, artefacts.p4info) as switch:
        yield switch


@pytest.fixture(scope="module")
def embedded(artefacts: Artefacts) -> Iterator[Embedded]:
    with Embedded(artefacts.json, artefacts.p4info) as switch:
        yield switch


def run_all(switch: LiveSwitch, program: str) -> list[str]:
    return [
        f"{path.name} {failure}"
        for path in files(program)
        if path.stem != ENGINES_ONLY
        for failure in run(switch, compiled(program).program, statements(path))  # type: ignore[arg-type]
    ]


@pytest.mark.root
def test_the_embedded_switch_sends_the_same_over_p4runtime_and_real_links(embedded: Embedded, program: str) -> None:
    failures = run_all(embedded, program)
    assert not failures, "\n".join(failures)


@pytest.mark.root
@pytest.mark.bmv2
@pytest.mark.skipif(shutil.which("simple_switch_grpc") is None, reason="simple_switch_grpc is not on PATH")
def test_bmv2_sends_the_same_packets(bmv2: Bmv2, program: str) -> None:
    failures = run_all(bmv2, program)
    assert not failures, "\n".join(failures)
