"""Calls that hardware refuses: refused in strict mode, else taken and told once at the end; under either transport."""

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.rig.uverbs_rig import rig
from tests.libmrc.compiled import SANITIZERS, compiled
from tests.libmrc.requirements import REQUIREMENTS

pytestmark = REQUIREMENTS

TOLD = {
    "masks": [
        "12 x ibv_modify_qp from RESET to INIT needs ACCESS_FLAGS",
        "4 x ibv_modify_qp from RESET to INIT does not take SQ_PSN",
        "1 x ibv_modify_qp: ah_attr.port_num must be 1, the port (got 0)",
        "1 x a queue pair goes from RESET to INIT only, not to ERR",
    ],
    "legal": [],
    "access": ["4 x 9 packets of a peer to memory of another protection domain, or to a queue pair whose"],
    "domains": ["1 x lkey 0x", "1 x 9 packets of a peer"],
    "overrun": ["1 x a completion queue of 4 places with completions that were not polled gets one more"],
    "unmapped": ["1 x ibv_reg_mr: 12288 bytes from 0x"],
    "mrc": ["3 x mrc_modify_qp from RESET to INIT needs ACCESS_FLAGS, PKEY_INDEX"],
}
"""By case, how the lines begin that say at the end what a NIC refuses."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled(Path(__file__).with_name("strict.c"), tmp_path_factory.mktemp("strict"), *SANITIZERS)


@pytest.mark.parametrize("transport", ["mrc", "roce"])
@pytest.mark.parametrize("strict", ["strict", "lenient"])
@pytest.mark.parametrize("case", TOLD)
def test_a_nic_that_is_strict_refuses_and_another_tells(case: str, strict: str, transport: str, program: str) -> None:
    with rig(transport) as made:
        command = [program, case, *(f"mrc_{name}" for name in made.names), strict]
        environment = {**os.environ, "MRCLAB_STRICT": "1" if strict == "strict" else "0"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240, env=environment)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if " x " in line]
    if strict == "strict":
        assert told == []
        assert ("(--strict)" in done.stderr) is (case not in ("legal", "access"))
    else:
        assert len(told) == len(TOLD[case]), told
        for line, expected in zip(told, TOLD[case], strict=True):
            assert line.removeprefix("libmrc: warning: ").startswith(expected)
        assert done.stderr.count("./lab exec --strict refuses it as well") == bool(told)
