"""A lateness of the host moves nothing: what is under way keeps its times, by a clock that stood still meanwhile.

The model does what a flight once did: it walks over all that is known of packets, and moves it.
"""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from endpoint.mrc.flight import Flight
from endpoint.mrc.loss.reorder import ReorderRule
from endpoint.nic.rtt import RttEstimator
from tests.helpers.transport.bench import Bench

BASE_NS, WINDOW, SIZE = 1000, 64, 4096
PATHS = tuple(Bench().qp_a.evs.paths.values())[:4]
BEGIN_NS = 1_000_000


@dataclass
class Walk:
    """Times as the network's clock has them: a lateness moves them all, and nothing is sent in the future."""

    sent_ns: dict[int, int] = field(default_factory=dict)
    log: list[tuple[int, int]] = field(default_factory=list)
    alive_ns: dict[int, int] = field(default_factory=lambda: {path.ev: -1 for path in PATHS})
    newest_ns: int = -1
    resumed_ns: int = 0

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        self.resumed_ns = now_ns
        self.sent_ns = {psn: min(sent + late_ns, now_ns) for psn, sent in self.sent_ns.items()}
        self.log = [(psn, min(sent + late_ns, now_ns)) for psn, sent in self.log]
        self.alive_ns = {ev: min(alive + late_ns, now_ns) for ev, alive in self.alive_ns.items()}
        if self.newest_ns >= 0:
            self.newest_ns = min(self.newest_ns + late_ns, now_ns)


class Pair:
    """A flight and its model, told the same."""

    def __init__(self) -> None:
        self.rule = ReorderRule(BASE_NS, 0)
        self.rtt = RttEstimator(BASE_NS)
        self.rtt.update(BASE_NS)
        self.flight = Flight(0, WINDOW, self.rule, self.rtt, lambda *_: None, lambda *_: None)
        self.flight.make_room()
        self.walk = Walk()
        self.now_ns = BEGIN_NS
        for path in PATHS:
            path.alive_ns = -1

    def send(self, psn: int, path_index: int) -> None:
        flight, slot = self.flight, psn & self.flight.mask
        flight.tries[slot] = 0 if psn == flight.nxt else flight.tries[slot] + 1
        flight.nxt = max(flight.nxt, psn + 1)
        flight.sizes[slot], flight.paths[slot] = SIZE, PATHS[path_index]
        flight.acquit(slot)
        flight.sent_ns[slot] = self.now_ns - flight.late_ns
        self.rule.log.append((psn, self.now_ns - flight.late_ns))
        self.walk.sent_ns[psn] = self.now_ns
        self.walk.log.append((psn, self.now_ns))

    def acknowledge(self, bits: int) -> None:
        flight, walk = self.flight, self.walk
        fresh = bits & ((1 << flight.nxt - flight.una) - 1) & ~flight.acked
        for psn in range(flight.una, flight.nxt):
            bit = 1 << psn - flight.una
            if fresh & bit and not flight.lost & bit:
                path = flight.paths[psn & flight.mask]
                assert path is not None
                again = flight.tries[psn & flight.mask] and walk.sent_ns[psn] >= walk.resumed_ns
                if not (again and self.now_ns - walk.sent_ns[psn] < self.rtt.min_ns * 3 // 4):
                    walk.newest_ns = max(walk.newest_ns, walk.sent_ns[psn])
                    walk.alive_ns[path.ev] = max(walk.alive_ns[path.ev], walk.sent_ns[psn])
        flight.take_acked(fresh, self.now_ns)

    def judge(self) -> None:
        """What counts as lost is the same, and is sent again."""
        flight, walk = self.flight, self.walk
        expected: list[int] = []
        while walk.log and walk.log[0][1] <= walk.newest_ns - self.rule.later_ns:
            psn, sent_ns = walk.log.pop(0)
            index = psn - flight.una
            known = index < 0 or (flight.acked | flight.lost) >> index & 1 or index in expected
            if not known and walk.sent_ns[psn] == sent_ns:
                expected.append(index)
        assert flight.rule.overdue(flight, 0) == expected
        for index in expected:
            path, _, sent_ns = flight.lose(index, proved=True)
            psn = flight.una + index
            assert sent_ns + flight.late_ns == walk.sent_ns[psn]
            assert (path.alive_ns >= sent_ns) == (walk.alive_ns[path.ev] >= walk.sent_ns[psn])
            flight.lost &= ~(1 << index)
            flight.inflight_bytes += SIZE
            self.send(psn, 0)

    def compare(self) -> None:
        flight, walk, late_ns = self.flight, self.walk, self.flight.late_ns
        for psn in range(flight.una, flight.nxt):
            assert flight.sent_ns[psn & flight.mask] + late_ns == walk.sent_ns[psn]
        assert [(psn, sent_ns + late_ns) for psn, sent_ns in self.rule.log] == walk.log
        if walk.newest_ns >= 0:
            assert self.rule.newest_ns + late_ns == walk.newest_ns
        for path in PATHS:
            assert path.alive_ns < 0 or path.alive_ns + late_ns == walk.alive_ns[path.ev]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.integers(0, 3000)),
        st.tuples(st.just("send"), st.integers(0, len(PATHS) - 1)),
        st.tuples(st.just("acknowledge"), st.integers(1, (1 << 12) - 1)),
        st.tuples(st.just("late"), st.integers(0, 3000)),
        st.tuples(st.just("overlapping"), st.integers(0, 3000)),
    ),
    max_size=60,
)


@given(STEPS)
def test_times_are_those_of_a_walk_over_all_packets(steps: list[tuple[str, int]]) -> None:
    """`late` is time that passes without the host; `overlapping` is said of time in which the host has sent."""
    pair = Pair()
    for what, number in steps:
        if what == "wait":
            pair.now_ns += number
        elif what == "send":
            if pair.flight.nxt - pair.flight.una < WINDOW:
                pair.flight.inflight_bytes += SIZE
                pair.send(pair.flight.nxt, number)
        elif what == "acknowledge":
            pair.acknowledge(number)
            pair.judge()
        else:
            pair.now_ns += number if what == "late" else 0
            pair.flight.host_was_late(number, pair.now_ns)
            pair.walk.host_was_late(number, pair.now_ns)
        pair.compare()


def test_a_lateness_costs_the_same_however_much_is_under_way() -> None:
    pair = Pair()
    for psn in range(WINDOW):
        pair.send(psn, 0)
    before = list(pair.flight.sent_ns)
    pair.now_ns += 500
    pair.flight.host_was_late(500, pair.now_ns)
    assert (pair.flight.sent_ns, pair.flight.late_ns) == (before, 500), "nothing was moved"
    assert list(pair.rule.log) == [(psn, BEGIN_NS) for psn in range(WINDOW)]
