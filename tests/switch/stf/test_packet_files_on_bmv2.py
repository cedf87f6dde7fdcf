"""The packet files on a real simple_switch, with our compiler's JSON: what we take for simple_switch's behaviour is.

Only up to the first control statement that follows a packet; clocks and queue depths are the machine's and left out.
"""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from p4c.frontend import compile_program
from p4c.model import load
from switch.stf import parse, run
from switch.stf.statements import Expect, NoPacket, StateCheck, Statement, StfPacket, SwitchCommand
from tests.helpers.engines.bmv2_files import Bmv2Files

HERE = Path(__file__).parent
FILES = [p for p in sorted(HERE.glob("*.stf")) if "\n# bmv2: no" not in p.read_text()]
# Bytes of steer.p4's report that depend on the machine: queue depths, timestamps, waiting time.
MACHINES_OWN = range(20, 48)


def playable(path: Path, program: str) -> list[Statement]:
    chosen: list[Statement] = []
    for statement in parse(path.read_text()):
        packets = any(isinstance(s, StfPacket) for s in chosen)
        if isinstance(statement, NoPacket | StateCheck) or (
            isinstance(statement, SwitchCommand) and statement.word == "wait"
        ):
            continue
        if packets and not isinstance(statement, StfPacket | Expect):
            break
        if isinstance(statement, Expect) and program == "steer.p4" and statement.pattern is not None:
            pattern = list(statement.pattern)
            for i in MACHINES_OWN:
                pattern[2 * i : 2 * i + 2] = "**"[: len(pattern[2 * i : 2 * i + 2])]
            statement = replace(statement, pattern="".join(pattern))
        chosen.append(statement)
    return chosen


@pytest.mark.bmv2
@pytest.mark.skipif(shutil.which("simple_switch") is None, reason="simple_switch is not on PATH")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_simple_switch_sends_the_same(path: Path, tmp_path: Path) -> None:
    found = re.match(r"# program: (\S+)", path.read_text())
    assert found is not None
    compiled = compile_program(HERE / found[1])
    switch = Bmv2Files(compiled.json_text.encode(), tmp_path)
    failures = run(switch, load(compiled.json), playable(path, found[1]))  # type: ignore[arg-type]
    assert not failures, "\n".join(map(str, failures))
