"""Workers end with their owner, however that ends, and leave nothing of what they wrote."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.owner import living
from tests.helpers.waiting import eventually

LIMIT_S = 60
WORKERS = 3


@pytest.mark.parametrize("attempt", range(4))
def test_nothing_is_left_when_the_owner_is_killed_while_all_workers_write(attempt: int, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    owner = subprocess.Popen(
        [sys.executable, "-m", "tests.helpers.owner", str(WORKERS), str(scratch)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    eventually(lambda: len(list(scratch.glob("*/0"))) >= WORKERS or owner.poll() is not None, "all write", LIMIT_S)
    assert owner.poll() is None
    owner.send_signal(signal.SIGKILL)
    _, errors = owner.communicate(timeout=LIMIT_S)
    eventually(lambda: not living(owner.pid), "no worker is left", LIMIT_S)
    assert not scratch.exists(), errors
