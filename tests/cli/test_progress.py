"""The bar of a run: what is left by the wall clock, packets a second."""

from io import StringIO

import pytest
from rich.console import Console

from cli.live import RunProgress


def shown(progress: RunProgress) -> str:
    console = Console(width=100, file=StringIO(), record=True)
    console.print(progress)
    return console.export_text()


def test_what_is_left_and_the_packets_a_second_are_those_of_late() -> None:
    now_s = [100.0]
    progress = RunProgress(60.0, lambda: now_s[0])
    assert "0 packets/s" in shown(progress)
    for second in range(101):
        progress.see(second / 2, 1000 * second if second < 50 else 50_000 + 5000 * (second - 50), "now")
        now_s[0] += 1.0
    assert progress.tasks[0].time_remaining == pytest.approx(20.0, abs=1)
    assert "now" in shown(progress)
    assert "0:00:20" in shown(progress)
    assert "5,000 packets/s" in shown(progress)
