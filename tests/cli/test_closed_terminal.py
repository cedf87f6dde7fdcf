"""A terminal that is closed under a command: SIGHUP, and errors for all that is written to it from then on."""

import fcntl
import json
import os
import subprocess
import termios
from pathlib import Path

import pytest

from common.interpreter import python
from tests.helpers.interrupts import heeding_interrupts

LIMIT_S = 120


@pytest.mark.slow
@pytest.mark.parametrize("look", [["--plain"], []], ids=["plain", "live"])
def test_a_run_whose_terminal_is_closed_ends_with_its_report(tmp_path: Path, look: list[str]) -> None:
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
