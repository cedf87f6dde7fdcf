"""Shuffling and choosing in compiled code draws what the standard library draws."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from endpoint.mrc.paths.shuffling import choose, shuffle


@given(st.integers(0, 1 << 64), st.integers(0, 200))
def test_a_shuffle_leaves_what_the_standard_librarys_leaves(seed: int, count: int) -> None:
    ours, theirs = Random(seed), Random(seed)
    mine, expected = list(range(count)), list(range(count))
    shuffle(mine, ours.getrandbits)
    theirs.shuffle(expected)
    assert mine == expected
    assert ours.getstate() == theirs.getstate()


@given(st.integers(0, 1 << 64), st.integers(1, 200))
def test_a_choice_is_the_standard_librarys(seed: int, count: int) -> None:
    ours, theirs = Random(seed), Random(seed)
    items = list(range(count))
    assert [choose(items, ours.getrandbits) for _ in range(9)] == [theirs.choice(items) for _ in range(9)]
    assert ours.getstate() == theirs.getstate()
