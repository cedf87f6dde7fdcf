"""The bar of a run: its share, what is left by the wall clock, packets a second."""

import pytest

from running.live import Progress


class Wall:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_what_is_left_follows_from_the_pace_so_far() -> None:
    wall = Wall()
    progress = Progress(60.0, wall)
    progress.see(0.0, 0)
    assert (progress.share(0.0), progress.left_s(0.0)) == (0.0, None)
    wall.now_s += 30.0
    progress.see(20.0, 90_000)
    assert progress.share(20.0) == pytest.approx(1 / 3)
    assert progress.left_s(20.0) == pytest.approx(60.0)
    assert progress.words(20.0) == "1:00 left  3,000 packets/s"


def test_packets_a_second_are_those_of_late() -> None:
    wall = Wall()
    progress = Progress(60.0, wall)
    for second in range(100):
        progress.see(second / 2, 1000 * second if second < 50 else 50_000 + 5000 * (second - 50))
        wall.now_s += 1.0
    assert progress.packets_a_second == pytest.approx(5000)


def test_nothing_is_said_of_a_run_that_has_not_begun() -> None:
    progress = Progress(0.0)
    progress.see(None, 0)
    assert progress.words(None) == "0 packets/s"
    assert progress.share(5.0) == 0.0
