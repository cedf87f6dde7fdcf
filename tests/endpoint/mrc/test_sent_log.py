"""The log of transmissions does what a deque of pairs does."""

from collections import deque
from random import Random

import pytest

from endpoint.mrc.loss.loss_detection import ROOM, SentLog


@pytest.mark.parametrize("seed", range(5))
def test_it_is_a_deque_of_pairs(seed: int) -> None:
    chance, log, model = Random(seed), SentLog(), deque[tuple[int, int]]()
    for number in range(128 * ROOM):
        choice = chance.random()
        if choice < 0.5 + 0.1 * (number < 16 * ROOM):
            log.append((number, 1 << number % 70))
            model.append((number, 1 << number % 70))
        elif choice < 0.99 and model:
            assert log.popleft() == model.popleft()
        elif choice > 0.999:
            log.clear()
            model.clear()
        elif choice > 0.995:
            log.extend([(number, 1), (number, 2)])
            model.extend([(number, 1), (number, 2)])
        assert len(log) == len(model)
        if model:
            assert (log[0], log[-1]) == (model[0], model[-1])
        if number % 64 == 0:
            assert list(log) == list(model)


def test_a_log_has_only_what_was_not_taken_out() -> None:
    log = SentLog()
    log.extend([(1, 10), (2, 20)])
    assert log.popleft() == (1, 10)
    for place in (1, -2):
        with pytest.raises(IndexError, match="the log has 1 transmissions"):
            log[place]
    log.clear()
    with pytest.raises(IndexError):
        log.popleft()
