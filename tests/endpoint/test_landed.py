"""Arrived bytes as ranges, against a list with a number for each byte."""

from hypothesis import given, settings, strategies as st

from endpoint.region import Landed

ROOM = 12
RANGES = st.tuples(st.integers(0, ROOM - 1), st.integers(1, 6)).map(lambda one: (one[0], min(ROOM, one[0] + one[1])))


@settings(max_examples=1000)
@given(st.lists(st.tuples(st.booleans(), RANGES), max_size=12))
def test_it_knows_of_each_byte_whether_it_came_once(steps: list[tuple[bool, tuple[int, int]]]) -> None:
    """True is always right. Once a byte came twice, False may also be said of a range beside it, that packet's rest."""
    landed, came = Landed(), [0] * ROOM
    twice = False
    for takes, (start, end) in steps:
        if takes:
            once = all(number == 1 for number in came[start:end])
            got = landed.take(start, end)
            assert got == once or (twice and once), (start, end, came)
            came[start:end] = [0] * (end - start)
        else:
            landed.add(start, end)
            came[start:end] = [number + 1 for number in came[start:end]]
            twice = twice or max(came) > 1


@given(st.permutations(range(30)))
def test_packets_of_a_message_are_one_range_in_any_order(order: list[int]) -> None:
    landed = Landed()
    for number in order:
        assert len(landed) <= 16
        landed.add(number * 100, number * 100 + 100)
    assert len(landed) == 1
    assert landed.take(0, 3000)
    assert len(landed) == 0


def test_a_hole_and_a_byte_that_came_twice_are_found_once() -> None:
    landed = Landed()
    landed.add(0, 10)
    landed.add(11, 20)
    assert not landed.take(0, 20)
    for start in (0, 5, 10):
        landed.add(start, start + 10)  # the second one overlaps
    assert not landed.take(0, 20)
    landed.add(0, 20)
    assert landed.take(5, 15)
    assert not landed.take(0, 20)
    assert len(landed) == 0
