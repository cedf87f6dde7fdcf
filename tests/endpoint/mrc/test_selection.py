"""The three path selections side by side, and the pacing that they all sit behind."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from endpoint.mrc.algorithms import find
from endpoint.mrc.paths.ev_set import EvSet
from endpoint.mrc.paths.ev_state import EvCause, EvState
from endpoint.mrc.paths.selection import next_after_loss, next_pair
from endpoint.mrc.paths.shuffling import choose, shuffle
from tests.helpers.transport import Flow, Wire, ev_set

ALL = 0b1111


def make(name: str) -> tuple[Any, EvSet]:
    evs = ev_set(128, 64)
    return find("selection", name)(evs, Random(3), {}), evs


def test_mrc_takes_every_plane_once_a_round_even_when_ports_are_busy_at_times() -> None:
    selection, _ = make("mrc")
    rng = Random(4)
    shares: Counter[int] = Counter()
    for _ in range(4000):
        path = selection.next(rng.randrange(16))
        if path is not None:
            shares[path.plane.number] += 1
            assert max(shares.values()) - min(shares[plane] for plane in range(4)) <= 1
    assert sum(shares.values()) > 1000


def test_mrc_waits_for_the_plane_whose_turn_it_is() -> None:
    selection, _ = make("mrc")
    taken = [selection.next(0b0111) for _ in range(4)]
    assert {path.plane.number for path in taken[:3]} == {0, 1, 2}
    assert taken[3] is None
    assert selection.next(0b1000).plane.number == 3


def test_mrc_leaves_a_plane_at_once_when_it_is_no_longer_wanted() -> None:
    selection, evs = make("mrc")
    selection.next(ALL)
    evs.set_wanted(0b1011)
    assert {selection.next(ALL).plane.number for _ in range(30)} == {0, 1, 3}
    evs.set_wanted(0)
    assert selection.next(ALL) is None


def few_evs(rest_packets: int = 0) -> Any:
    """One plane with two EVs, as its selection sees it."""
    evs = ev_set(only=lambda route: route.port.number == 1 and route.ev < 2, rest_packets=rest_packets)
    assert len(evs.planes[0].active) == 2
    return find("selection", "mrc")(evs, Random(3), {}), evs, *evs.planes[0].active


def test_a_marked_ev_is_passed_over_for_the_good_one_also_where_a_scan_ends() -> None:
    """OCP MRC 11.2.2: the packet for which a SKIP EV is made GOOD takes the next GOOD EV, and there is one."""
    selection, evs, marked, good = few_evs()
    for turn in range(1000):
        evs.signal(marked, EvCause.ECN, turn)
        while marked.state is EvState.SKIP:
            assert selection.next(ALL) is good


def test_when_all_evs_rest_one_of_them_is_used() -> None:
    for rest_packets in (0, 5):
        selection, evs, one, other = few_evs(rest_packets)
        evs.signal(one, EvCause.ECN, 0)
        evs.signal(other, EvCause.TRIM, 0)
        assert selection.next(ALL) in (one, other)


def test_a_rest_lasts_as_many_packets_as_its_setting_says() -> None:
    selection, evs, marked, good = few_evs(rest_packets=100)
    evs.signal(marked, EvCause.ECN, 0)
    assert [selection.next(ALL) for _ in range(100)] == [good] * 100
    assert marked in [selection.next(ALL) for _ in range(4)]


def test_oblivious_uses_everything_evenly_but_what_is_denied() -> None:
    selection, evs = make("oblivious")
    denied = evs.planes[1].active[0]
    evs.signal(denied, EvCause.DENY, 0)
    counts = Counter(selection.next(ALL) for _ in range(20_000))
    assert len(counts) == 31
    assert denied not in counts
    planes = Counter(path.plane.number for path in counts.elements())
    assert max(planes.values()) < 1.1 * min(planes.values())


def test_oblivious_lets_packets_pass_a_choice_that_waits_for_its_port() -> None:
    selection, _ = make("oblivious")
    for _ in range(50):
        path = selection.next(0b0001)
        assert path is not None
        assert path.port.number == 1
    waiting = selection.next(0b1110)
    assert waiting is not None
    assert waiting.port.number != 1


def test_single_path_keeps_its_path_until_the_port_goes() -> None:
    selection, evs = make("single_path")
    first = selection.next(ALL)
    assert all(selection.next(ALL) is first for _ in range(100))
    assert selection.next(ALL & ~first.port.bit) is None
    evs.set_wanted(ALL & ~first.port.bit)
    second = selection.next(ALL)
    assert second.port is not first.port
    assert all(selection.next(ALL) is second for _ in range(100))


def test_a_packet_sent_again_goes_by_a_port_whose_pause_ends_now() -> None:
    selection, evs = make("mrc")
    blamed = selection.next(ALL)
    pausing, *others = (plane for plane in evs.live if plane is not blamed.plane)
    for plane in others:
        plane.port.paused_ns = 1001
    pausing.port.paused_ns = 1000
    found = [next_after_loss(selection, evs, ALL, blamed, 1000) for _ in range(8)]  # by chance, once is no proof
    assert {path.plane for path in found if path is not None} == {pausing}


def goodput(selection: str, seed: int = 1) -> tuple[float, Flow]:
    """Share of the line with one lossy path of eight in each plane."""
    wire = Wire(seed=seed)
    for plane in range(4):
        wire.links[plane, f"p{plane}s{plane}"].faults.loss = 0.2
    flow = Flow(wire, selection=selection)
    end_ns = 400 * wire.base_rtt_ns
    flow.keep_posted(65_536, 16, end_ns)
    return flow.goodput_bps(end_ns) / 40_000_000_000, flow


@pytest.mark.parametrize("name", ["mrc", "oblivious", "bitmap", "mixed", "round_robin", "two_choices"])
def test_two_probes_go_by_two_planes(name: str) -> None:
    """A hunt found both for the same plane, which was dead: the last turn of a round, and the first of the next."""
    selection, evs = make(name)
    for plane in evs.planes[2:]:
        plane.wanted = False
    evs.refresh()
    for _ in range(200):
        selection.next(ALL)
        assert {path.plane.number for path in next_pair(selection, evs)} == {0, 1}


def test_the_second_probe_goes_by_another_ev_where_one_plane_is_left_and_by_none_where_one_path_is() -> None:
    selection, evs = make("mrc")
    for plane in evs.planes[1:]:
        plane.wanted = False
    evs.refresh()
    assert len({path.ev for path in next_pair(selection, evs)}) == 2
    assert len(next_pair(*make("single_path"))) == 1


def test_lossy_paths_cost_mrc_little_and_oblivious_spraying_much() -> None:
    (mrc, flow), (oblivious, other) = goodput("mrc"), goodput("oblivious")
    assert mrc > 0.85
    assert flow.qp.requester.retransmits < other.qp.requester.retransmits / 3
    assert mrc > oblivious


@pytest.mark.parametrize("name", ["mrc", "oblivious", "single_path"])
def test_no_port_is_ever_sent_more_than_its_line_carries(name: str) -> None:
    wire = Wire(rate_bps=1_000_000_000)
    flow = Flow(wire, selection=name)
    other = Flow(wire, seed=9)
    for one in (flow, other):
        one.keep_posted(65_536, 16, 200 * wire.base_rtt_ns)
    sent: Counter[int] = Counter()
    slack = 2 * 4300 + 20 * 160  # the frame on the line, one behind it, and control frames that go at once

    def watch(host: str, port: int, frame: bytes) -> None:
        if host == "h0":
            sent[port] += len(frame)
            assert sent[port] <= wire.now_ns * 1_000_000_000 // 8_000_000_000 + slack

    wire.tap(watch)
    wire.run(200 * wire.base_rtt_ns)
    assert sum(sent.values()) > 0


def test_one_qp_fills_all_ports() -> None:
    wire = Wire(mark=False)
    flow = Flow(wire)
    end_ns = 400 * wire.base_rtt_ns
    flow.keep_posted(65_536, 16, end_ns)
    assert flow.goodput_bps(end_ns) > 0.97 * 40_000_000_000 * 4096 / 4238


def test_where_no_numbered_path_is_in_rotation_a_packet_waits_for_the_port_of_the_first_live_plane() -> None:
    selection, evs = make("bitmap")
    for path in selection.table:
        path.active = False
    first = evs.live[0]
    assert selection.next(ALL & ~first.bit) is None
    assert selection.next(first.bit) is first.active[0]


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
