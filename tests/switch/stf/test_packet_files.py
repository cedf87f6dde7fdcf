"""Every `.stf` file here runs on both engines, with the program compiled by each compiler there is."""

import re
from pathlib import Path

import pytest

from switch.stf import parse, run
from switch.stf.programs import ENGINES, make_engine

FILES = sorted(Path(__file__).parent.glob("*.stf"))


def program_of(path: Path) -> str:
    """The program that the file's first line names."""
    found = re.match(r"# program: (\S+)", path.read_text())
    assert found is not None, f"{path}: the first line must be '# program: NAME.p4'"
    return found[1]


@pytest.mark.parametrize("engine_name", ENGINES)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_packets_come_out_as_written(path: Path, engine_name: str, compiled) -> None:
    engine = make_engine(engine_name)
    failures = run(engine, compiled(program_of(path)), parse(path.read_text()))
    assert not failures, "\n".join(map(str, failures))
