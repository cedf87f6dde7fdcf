"""The end-to-end test: `smoke` on real links and embedded switches, from bringing the lab up to its verdict."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from topo.emulation import state

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(state.read_record(state.ROOT) is not None, reason="a lab is running on this machine"),
]

SMOKE = [sys.executable, "-m", "cli", "run", "smoke", "--plain", "--rate", "4", "--seed", "1"]
LIMIT_S = 180


@pytest.mark.smoke
def test_smoke_ends_true_on_embedded_switches(tmp_path: Path) -> None:
    done = subprocess.run(
        [*SMOKE, "--runs", str(tmp_path)], capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    assert done.returncode in (0, 3), done.stdout + done.stderr
    run = (tmp_path / "latest").resolve()
    findings = {f["check"]: f for f in json.loads((run / "verdict.json").read_text())["findings"]}
    machine = findings["machine"]
    if done.returncode == 3 and machine["figures"]["stalls_taken_s"]:
        pytest.skip(f"this machine has no time for it: {machine['reason']}")
    assert done.returncode == 0, (run / "summary.txt").read_text()
    options = json.loads((run / "options.json").read_text())
    assert (options["world"], options["switch_kind"]) == ("emulated", "embedded")
    assert {file.stem for file in (run / "journal").glob("*.jsonl")} >= {"runner", "controller", "h0", "h3"}
    assert state.read_record(state.ROOT) is None
