"""Owners of denials: what one takes back, another may still want."""

from collections.abc import Set

from hypothesis import given
from hypothesis import strategies as st

from endpoint.denylist import BY_REQUEST, CONTROL, FAULTS, OWNERS, PROBER, Denylist

Rows = Set[tuple[str, int]]
rows = st.frozensets(st.tuples(st.sampled_from(["h1", "h2"]), st.integers(0, 3)))


class Transport:
    def __init__(self) -> None:
        self.denied: frozenset[tuple[str, int]] = frozenset()

    def set_denied(self, denied: Rows, now_ns: int) -> None:
        self.denied = frozenset(denied)


def test_a_path_that_two_deny_is_free_when_both_have_let_go() -> None:
    transport = Transport()
    denylist = Denylist(transport)
    prober = denylist.denier(PROBER)
    prober.deny({("h1", 1)}, 0)
    denylist.set(FAULTS, {("h1", 1), ("h1", 2)}, 0)
    assert prober.others() == {("h1", 1), ("h1", 2)}
    prober.deny(set(), 0)
    assert transport.denied == {("h1", 1), ("h1", 2)}
    denylist.set(FAULTS, set(), 0)
    assert transport.denied == set()


@given(st.lists(st.tuples(st.sampled_from(OWNERS), rows), max_size=20))
def test_whatever_happens_the_transport_has_what_the_owners_last_said(said: list[tuple[str, Rows]]) -> None:
    transport = Transport()
    denylist = Denylist(transport)
    for owner, denied in said:
        denylist.denier(owner).deny(denied, 0)
    last = dict(said)
    assert transport.denied == frozenset().union(*last.values()) == denylist.all()
    for owner in OWNERS:
        assert denylist.of(owner) == last.get(owner, frozenset())


def test_nobody_sets_the_probers_share_by_request() -> None:
    assert set(BY_REQUEST) == {CONTROL, FAULTS}
