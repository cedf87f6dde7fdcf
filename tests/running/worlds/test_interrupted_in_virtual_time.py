"""A run in virtual time that is interrupted, or whose terminal is closed: judged unknown, and every file opens."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios

import pytest

from common.interpreter import python
from judging.run import Run
from tests.helpers.waiting import heeding_interrupts

LIMIT_S = 120


def test_ctrl_c_ends_a_run_with_what_there_is_judged_unknown(tmp_path) -> None:
    words = ["run", "smoke", "--world", "simulated", "--seed", "3", "--plain", "--runs", str(tmp_path), "--time", "8"]
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", *words, "--record-packets", "0..84"], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, preexec_fn=heeding_interrupts,
    )  # fmt: skip
    assert process.stdout is not None
    assert any("phase reference" in line for line in process.stdout)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, errors
    assert errors == "mrclab: interrupted\n"
    found = tmp_path / "latest"
    verdict = json.loads((found / "verdict.json").read_text())
    assert verdict["verdict"] == "unknown"
    assert {finding["check"] for finding in verdict["findings"] if finding["holds"] is None} >= {"complete"}
    assert "the run was interrupted in phase 'reference'" in (found / "summary.txt").read_text()
    assert (found / "report.html").read_text().rstrip().endswith("</html>")
    run = Run.open(found)
    assert run.kind("sample")
    assert [line["fatal"] for line in run.kind("error")] == [True]
    lines = [json.loads(line) for line in (found / "packets.jsonl").read_text().splitlines()]
    assert lines[-1]["lines"] == len(lines) - 2 > 1000
    assert lines[-1]["end_ns"] >= lines[-2]["t_ns"]


@pytest.mark.slow
@pytest.mark.parametrize("look", [["--plain"], []], ids=["plain", "live"])
def test_a_run_whose_terminal_is_closed_ends_with_its_report(tmp_path, look: list[str]) -> None:
    ours, theirs = os.openpty()

    def in_the_terminal() -> None:
        heeding_interrupts()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    words = ["run", "link-flap", "--world", "simulated", "--time", "2", "--seed", "1", "--runs", str(tmp_path / "runs")]
    run = subprocess.Popen(
        python("-m", "cli", *words, *look), env={**os.environ, "MRCLAB_COMPILED": "off", "TERM": "xterm"},
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, preexec_fn=in_the_terminal, cwd=tmp_path,
    )  # fmt: skip
    os.close(theirs)
    said = b""
    while b"phase reference" not in said:
        said += os.read(ours, 4096)
    os.close(ours)
    assert run.wait(LIMIT_S) == 130
    folder = (tmp_path / "runs" / "latest").resolve()
    assert json.loads((folder / "verdict.json").read_text())["verdict"] == "unknown"
    assert (folder / "report.html").exists()
