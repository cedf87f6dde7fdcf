"""OCP's own program between two hosts of a lab, from 1 byte to 64 MB, with memory compared beneath it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from running import sdk
from switch.native.build import compiler
from tests.helpers.waiting import ran
from tests.libmrc.compiled import REQUIREMENTS
from topo.emulation import state

pytestmark = [
    *REQUIREMENTS,
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif("MRCLAB_OCP" not in os.environ, reason="MRCLAB_OCP names no checkout of OCP's repository"),
]
LARGEST = 64 << 20
SIZES = [1 << bits for bits in range(27)]
HEALTHY = """
from scenarios.scenario import Phase, Scenario
SCENARIO = Scenario(
    name="healthy", title="No faults", description="", plan="lab", phases=(Phase("run", 600.0),),
    workloads=lambda setting: [], checks=lambda setting: [],
)
"""


def build(folder: Path) -> Path:
    """Their sources as they are, and `compare.c` ahead of the library."""
    ocp, program = Path(os.environ["MRCLAB_OCP"]), folder / "mrc_example"
    sources = [ocp / "examples" / "benchmark" / name for name in ("mrc_example.c", "utils.c")]
    sources.append(Path(__file__).with_name("compare.c"))
    words = ["-std=gnu11", "-O2", f"-I{ocp}", "-o", str(program), *map(str, sources), f"-L{sdk.library()}"]
    subprocess.run([*compiler(), *words, "-lmrc", "-lm"], check=True)
    return program


def run_under(scenario: str, folder: Path, iterations: int) -> str:
    """The summary of a run that is not false."""
    if state.read_record(state.ROOT) is not None:
        pytest.skip("a lab is running on this machine")
    (folder / "memory").mkdir()
    program = f"{build(folder)} -d mrc_{{host}} -n {iterations} -w 1 -s {LARGEST} {{server}}"
    words = ["run", scenario, "--plan", "lab", "--rate", "30", "--plain", "--runs", str(folder / "runs")]
    command = [sys.executable, "-m", "cli", *words, "--program", program]
    done = ran(command, 590, env={**os.environ, "COMPARE": str(folder / "memory")})
    summary = folder / "runs" / "latest" / "summary.txt"
    # A machine that others load makes a verdict unknown (3); the bytes are compared all the same.
    assert done.returncode in (0, 3), done.stderr[-3000:] + (summary.read_text() if summary.exists() else "")
    return summary.read_text()


@pytest.mark.parametrize(("scenario", "iterations"), [("healthy", 1), ("link-flap", 5), ("switch-reboot", 5)])
def test_every_size_arrives_with_every_byte_right(scenario: str, iterations: int, tmp_path: Path) -> None:
    source = scenario
    if scenario == "healthy":
        source = str(tmp_path / "healthy.py")
        Path(source).write_text(HEALTHY)
    said = run_under(source, tmp_path, iterations)
    print(said)  # for the table of docs/libmrc.md
    assert [int(size) for size in re.findall(r"^ +(\d+) +\d+ +[\d.]+ +[\d.]+$", said, re.MULTILINE)] == SIZES
    right = re.search(r"compare: (\d+) messages, (\d+) bytes, every byte right", said)
    assert right is not None
    assert int(right[1]) == len(SIZES)
    assert int(right[2]) >= sum(SIZES)
