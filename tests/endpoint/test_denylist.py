"""Owners of denials: what one takes back, another may still want."""

from collections.abc import Set

from hypothesis import given, strategies as st

from endpoint.denylist import BY_REQUEST, CONTROL, FAULTS, OWNERS, PROBER, Denylist

Rows = Set[tuple[str, int]]
rows = st.frozensets(st.tuples(st.sampled_from(["h1", "h2"]), st.integers(0, 3)))


def test_a_path_that_two_deny_is_free_when_both_have_let_go() -> None:
    told: list[Rows] = []
    denylist = Denylist(lambda denied, now_ns: told.append(denied))
    denylist.set(PROBER, {("h1", 1)}, 0)
    denylist.set(FAULTS, {("h1", 1), ("h1", 2)}, 0)
    assert denylist.without(PROBER) == {("h1", 1), ("h1", 2)}
    denylist.set(PROBER, set(), 0)
    assert told[-1] == {("h1", 1), ("h1", 2)}
    denylist.set(FAULTS, set(), 0)
    assert told[-1] == set()


@given(st.lists(st.tuples(st.sampled_from(OWNERS), rows), max_size=20))
def test_whatever_happens_the_transport_has_what_the_owners_last_said(said: list[tuple[str, Rows]]) -> None:
    told: list[Rows] = [frozenset()]
    denylist = Denylist(lambda denied, now_ns: told.append(denied))
    for owner, denied in said:
        denylist.set(owner, denied, 0)
    last = dict(said)
    assert told[-1] == frozenset().union(*last.values()) == denylist.all()
    for owner in OWNERS:
        assert denylist.of(owner) == last.get(owner, frozenset())


def test_nobody_sets_the_probers_share_by_request() -> None:
    assert set(BY_REQUEST) == {CONTROL, FAULTS}
