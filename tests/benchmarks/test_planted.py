"""The planter of noise stops a whole family of processes, lets all of them go on, and ends with the command."""

import subprocess
import sys
from pathlib import Path

from benchmarks.planted import family, planted
from tests.helpers.waiting import eventually

CHILDREN = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"


def state(pid: int) -> str:
    """One letter of proc(5): T is stopped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "gone"


def test_all_of_a_family_stop_together_and_go_on() -> None:
    root = subprocess.Popen([sys.executable, "-c", CHILDREN], stdin=subprocess.PIPE)
    try:
        eventually(lambda: len(family(root.pid)) == 2, "the child is there")
        both = family(root.pid)
        with planted("freeze", root.pid, seed=1) as frozen:
            eventually(lambda: all(state(pid) == "T" for pid in both), "both are stopped")
            eventually(lambda: len(frozen) == 1, "a freeze is noted when it is over")
        assert 0.05 <= frozen[0] <= 0.8
        eventually(lambda: not any(state(pid) == "T" for pid in both), "nobody stays stopped")
    finally:
        root.communicate(b"\n", timeout=20)


def test_a_command_under_noise_keeps_its_exit_status_and_says_what_it_bore() -> None:
    words = [sys.executable, "-m", "benchmarks.planted", "mild", "--seed", "3", "--"]
    words += [sys.executable, "-c", "import sys, time; time.sleep(2); sys.exit(3)"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert "planted: mild, " in done.stderr
    assert "planted: mild, 0 freezes" not in done.stderr
