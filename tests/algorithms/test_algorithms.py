"""All path selections against decisions of the reference, and windows against their published rules."""

import json
import lzma
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from algorithms.dctcp import Dctcp
from algorithms.entropies import EntropySelection
from algorithms.plb import PlbFlow, PlbSelection
from algorithms.rccc import Rccc, RcccReceiver
from algorithms.sleek import SleekRule
from algorithms.smartt import Smartt
from algorithms.swift import Swift
from endpoint.mrc.algorithms import algorithms_of
from endpoint.mrc.congestion.cc_profile import PathTraits
from endpoint.mrc.loss.loss_detection import PacketWindow
from endpoint.mrc.parameter import checked
from endpoint.nic.wire import NackReason, Opcode
from tests.helpers.transport import Bench, Flow, Wire, ev_set

FILES = (Path(__file__).parent / "decisions").glob("*.json.xz")
RECORDED = {file.name.partition(".")[0]: file for file in sorted(FILES) if not file.name.startswith("rule-")}
SELECTIONS, CONGESTIONS = algorithms_of("selection"), algorithms_of("congestion")
BDP = 150_000
PATH = PathTraits(12_000, 12_000, 100_000_000_000, 1500)


class Recorded(Random):
    """A generator that gives back recorded draws."""

    def __init__(self) -> None:
        super().__init__(1)
        self.draws: list[int] = []

    def randrange(self, *_: Any) -> int:
        return self.draws.pop(0)


def made_selection(name: str, **given: Any) -> Any:
    """A selection of 32 EVs with these parameters."""
    kind = SELECTIONS[name]
    return kind(ev_set(32), Random(3), checked("selection", name, kind.parameters, given))


@pytest.mark.parametrize("name", RECORDED)
def test_a_policy_decides_as_the_reference_does(name: str) -> None:
    recorded = json.loads(lzma.decompress(RECORDED[name].read_bytes()))
    kind, size = SELECTIONS[recorded["policy"]], recorded["paths"]
    rng = Recorded()
    rng.draws = recorded["first_draws"][1:]  # the first is of the upper bits of the reference's entropies
    selection = kind(ev_set(size), rng, checked("selection", recorded["policy"], kind.parameters, {}))
    assert isinstance(selection, EntropySelection)
    assert (selection.size, rng.draws) == (size, [])
    told = Counter(step[0] for step in recorded["steps"])
    assert min(told[kind] for kind in ("next", "ack", "mark", "trim", "loss")) > 3
    for number, (what, path, more) in enumerate(recorded["steps"]):
        if what == "next":
            rng.draws = more
            assert (selection.choose(), rng.draws) == (path, []), f"step {number}"
        elif what == "trim":
            selection.on_packet_trimmed(more, selection.table[path], 4096, False)
        elif what == "loss":
            selection.on_packet_lost(more, selection.table[path], 4096, True)
        else:
            selection.on_packet_acked(more, selection.table[path], 4096, None, what == "mark")


@pytest.mark.parametrize("name", SELECTIONS)
def test_a_selection_delivers_every_byte_through_losses_and_a_dead_port(name: str) -> None:
    wire = Wire(selection=name, seed=5)
    flow = Flow(wire)
    end_ns = 600 * wire.base_rtt_ns
    flow.keep_posted(65_536, 8, end_ns)
    wire.at(100 * wire.base_rtt_ns, lambda: wire.set_port("h0", 1, False))
    wire.at(400 * wire.base_rtt_ns, lambda: wire.set_port("h0", 1, True))
    wire.run(end_ns + 200 * wire.base_rtt_ns)
    assert flow.finished
    assert flow.done_bytes > 1 << 20
    flow.check()


@pytest.mark.parametrize("name", sorted(SELECTIONS.keys() - {"single_path"}))
def test_a_busy_port_holds_up_no_packet_for_another_port(name: str) -> None:
    wire = Wire(selection=name, congestion="fixed_window", seed=5)
    flow = Flow(wire)
    end_ns = 300 * wire.base_rtt_ns
    flow.keep_posted(65_536, 8, end_ns)
    wire.run(end_ns)
    line_bps = 4 * 10_000_000_000  # a packet that waits for a random port while the others idle gets 54 % of it
    assert flow.done_bytes * 8e9 / end_ns > 0.85 * line_bps


@pytest.mark.parametrize("name", CONGESTIONS)
def test_a_window_delivers_every_byte(name: str) -> None:
    wire = Wire(congestion=name, seed=5)
    flows = [Flow(wire), Flow(wire, seed=9)]
    for flow in flows:
        flow.keep_posted(65_536, 8, 300 * wire.base_rtt_ns)
    wire.run(600 * wire.base_rtt_ns)
    for flow in flows:
        assert flow.finished
        flow.check()


@pytest.mark.parametrize("name", ["round_robin", "two_choices"])
def test_a_selection_uses_ports_that_can_send_only(name: str) -> None:
    kind = SELECTIONS[name]
    evs = ev_set(32)
    selection = kind(evs, Random(3), {})
    for usable in [0b0001, 0b1010, 0b1111, 0b0100] * 20:
        path = selection.next(usable)
        assert path is not None
        assert path.port.bit & usable
    assert selection.next(0) is None


def test_round_robin_takes_every_ev_equally_often() -> None:
    evs = ev_set(32)
    selection = SELECTIONS["round_robin"](evs, Random(3), {})
    taken = Counter(path.ev for path in (selection.next(0b1111) for _ in range(32 * 5)) if path is not None)
    assert set(taken.values()) == {5}


def test_two_choices_keep_the_longest_queue_shorter_than_one_choice_does() -> None:
    selection = SELECTIONS["two_choices"](ev_set(32), Random(3), {})
    load: Counter[int] = Counter()
    for _ in range(32 * 8):
        path = selection.next(0b1111)
        assert path is not None
        selection.on_packet_sent(0, path, 1)
        load[path.ev] += 1
    rng = Random(3)
    random_load = Counter(rng.randrange(32) for _ in range(32 * 8))
    assert max(load.values()) <= 8 + 3  # log2 log2 64 above the mean, and one; a single choice is far above
    assert max(random_load.values()) > max(load.values())


@pytest.mark.parametrize("when", ["before", "behind", "refused"])
def test_bytes_under_way_are_taken_off_the_ev_that_they_went_by(when: str) -> None:
    """A packet is taken for lost and arrives before its copy leaves, or behind it; or the peer lacked something."""
    bench = Bench(selection="two_choices", sack_threshold_bytes=0)
    requester = bench.qp_a.requester
    selection: Any = requester._selection
    under_way = selection._under_way
    (first,) = bench.write()
    under_way[first.ev] += 8192  # of other packets
    if when == "refused":
        bench.qp_b.responder.nack(bench.b.ports[0], first.ev, 0, NackReason.NO_RESOURCE, 0)
        bench.to_a(*bench.answers(Opcode.NACK))
        assert sum(under_way.values()) == 8192
        return
    requester._lose(0, bench.now_ns, proved=True)
    if when == "behind":
        bench.qp_a.agenda.wake()
        (copy,) = bench.writes()
        assert under_way[copy.ev] == 4096
    bench.to_b(first)
    bench.to_a(*bench.answers(Opcode.SACK))
    assert len(bench.completions()) == 1
    assert {ev: left for ev, left in under_way.items() if left} == {first.ev: 8192}


def made(name: str) -> Any:
    kind = CONGESTIONS[name]
    return kind.make(PATH, checked("congestion", name, kind.parameters, {}), {})


def test_dctcp_cuts_by_half_of_alpha_once_per_window() -> None:
    cc: Dctcp = made("dctcp")
    assert cc.window_bytes == BDP * 3 // 2
    for _ in range(150):  # RFC 8257: with every byte marked alpha stays 1, and each window halves
        cc.on_ack(0, 1500, None, True, 0)
    assert (cc.alpha, cc.window_bytes) == (1.0, BDP * 3 // 4)
    for _ in range(75):  # half of the next window is marked: alpha = 1 + (0.5 - 1) / 16
        cc.on_ack(0, 750, None, True, 0)
        cc.on_ack(0, 750, None, False, 0)
    assert cc.alpha == pytest.approx(1 - 1 / 32, abs=1e-3)
    assert cc.window_bytes == pytest.approx(BDP * 3 / 4 * (1 - cc.alpha / 2), rel=1e-3)
    before, left = cc.window_bytes, cc.window_bytes
    while left > 0:
        cc.on_ack(0, 1500, None, False, 0)
        left -= 1500
    assert cc.window_bytes == before + 1500


def test_dctcp_halves_once_for_all_losses_of_a_window() -> None:
    cc: Dctcp = made("dctcp")
    full = cc.window_bytes
    under_way = full
    for _ in range(20):  # RFC 8257, 3.5: one reduction per window of data across all loss signals
        under_way -= 1500
        cc.on_loss(0, 1500, under_way)
    assert cc.window_bytes == full // 2
    for _ in range(under_way // 1500):  # the rest of that window, marked or not, changes nothing (RFC 5681, 3.2)
        assert cc.window_bytes == full // 2
        cc.on_ack(0, 1500, None, True, 0)
    cc.on_loss(0, 1500, full // 2)
    assert cc.window_bytes == full // 4


def test_dctcp_starts_slowly_after_a_timeout() -> None:
    cc: Dctcp = made("dctcp")
    cc.on_timeout(0, 12_000)
    windows = []
    for _ in range(6):  # RFC 5681, 3.1: from one packet to half of what was under way, then a packet per window
        windows.append(cc.window_bytes)
        for _ in range(cc.window_bytes // 1500):
            cc.on_ack(0, 1500, None, False, 0)
    assert windows == [1500, 3000, 6000, 7500, 9000, 10_500]


def test_swift_grows_by_a_packet_per_round_trip_and_cuts_by_the_excess_once_per_round_trip() -> None:
    cc: Swift = made("swift")
    cc.on_timeout(0, 0)
    assert cc.window_bytes == 1500
    cc.on_ack(1000, 1500, 12_000, False, 0)
    assert cc.window_bytes == 3000
    cc.on_ack(20_000, 3000, 36_000, False, 0)  # 0.8 * (36 - 18) / 36 = 0.4
    assert cc.window_bytes == 1800
    cc.on_ack(30_000, 1500, 36_000, False, 0)
    assert cc.window_bytes == 1800  # once per round trip
    cc.on_ack(500_000, 1500, 360_000, False, 0)  # 0.76, but never by more than half
    assert cc.window_bytes == 1500


@pytest.mark.parametrize("kind", [Dctcp, Swift])
def test_a_loss_cuts_nothing_where_switches_trim_if_so_told(kind: type[Any]) -> None:
    """NSCC takes a loss for congestion only where switches do not trim (`docs/reference/nscc.md`)."""
    for trimming, losses_cut, share in ((True, True, 0.5), (True, False, 1.0), (False, False, 0.5)):
        path = PathTraits(12_000, 12_000, 100_000_000_000, 1500, trimming=trimming)
        cc = kind(path, checked("congestion", "made", kind.parameters, {"losses_cut": losses_cut}), {})
        before = cc.window_bytes
        cc.on_loss(100_000, 1500, before)
        assert cc.window_bytes == share * before


def test_reps_freezes_for_round_trips_if_so_told() -> None:
    selection: Any = made_selection("reps", freeze_rtts=9.0)
    path = selection.table[0]
    selection.on_packet_acked(1_000, path, 4096, 12_000, False)
    selection.on_packet_acked(2_000, path, 4096, 20_000, False)
    selection.on_packet_lost(3_000, path, 4096, True)
    assert selection._thaw_ns == 3_000 + 9 * 12_000


def test_rccc_owes_nothing_for_packets_that_went_without_credit() -> None:
    """One always may. A receiver does not count credit below 0, so a sender that did would never have it again."""
    cc: Rccc = made("rccc")
    cc.on_packet_sent(0, None, cc.window_bytes)
    for _ in range(3):
        cc.on_ack(0, 1500, None, False, 0)
        assert cc.window_bytes == 0
        cc.on_packet_sent(0, None, 1500)
    cc.on_ack(0, 1500, None, False, 0)
    cc.on_credit(0, 6144, 0)
    assert cc.window_bytes == 6144


DECISIONS = Path(__file__).parent / "decisions"


def send(window: PacketWindow, count: int, size: int) -> None:
    """What a requester does to its window when it sends packets, without a requester."""
    for psn in range(window.nxt, window.nxt + count):
        window.sizes[psn & window.mask] = size
    window.nxt += count


def take_acked(window: PacketWindow, psns: list[int]) -> None:
    """The same when packets are acknowledged."""
    for psn in psns:
        window.acked |= 1 << psn - window.una
    window.lost &= ~window.acked
    count = (~window.acked & -~window.acked).bit_length() - 1
    window.acked >>= count
    window.lost >>= count
    window.una += count


@pytest.mark.parametrize("name", ["rule-sleek-1", "rule-sleek-2"])
def test_sleek_takes_the_same_packets_for_lost_as_the_reference(name: str) -> None:
    recorded = json.loads(lzma.decompress((DECISIONS / f"{name}.json.xz").read_bytes()))
    rule = SleekRule(12_000, 0, checked("loss", "sleek", SleekRule.parameters, {}))
    flight, window_bytes = PacketWindow(0, 1024), recorded["first_window"]
    path = ev_set(8).planes[0].active[0]
    told = Counter(step[0] for step in recorded["steps"])
    assert min(told[kind] for kind in ("send", "resend", "window", "ack", "probe")) > 5
    assert sum(len(step[2]) for step in recorded["steps"] if step[0] in ("ack", "probe")) > 20
    for number, (what, *more) in enumerate(recorded["steps"]):
        if what == "send":
            send(flight, more[0], recorded["packet"])
        elif what == "resend":
            flight.lost = 0
        elif what == "window":
            window_bytes = more[0]
        else:
            take_acked(flight, more[0])
            if what == "probe":
                rule.on_probe_answered(0, path, 12_500, False)
            found = rule.overdue(flight, window_bytes)
            assert [flight.una + index for index in found] == more[1], f"step {number}"
            for index in found:
                flight.lost |= 1 << index


@pytest.mark.parametrize("name", ["rule-rccc-1", "rule-rccc-2"])
def test_a_receiver_of_rccc_slows_down_and_speeds_up_as_the_reference(name: str) -> None:
    recorded = json.loads(lzma.decompress((DECISIONS / f"{name}.json.xz").read_bytes()))
    values = checked("congestion", "rccc", Rccc.parameters, {})
    assert (values["marks"], values["cut"]) == (recorded["target"], recorded["cut"])
    receiver = RcccReceiver(PathTraits(12_000, 12_000, 100_000_000_000, 4096), values)
    rates = [rate for *_, rate in recorded["steps"]]
    assert min(rates) < 0.5 < max(rates)
    for number, (arrived, marked, trimmed, trimmed_last, rate) in enumerate(recorded["steps"]):
        receiver.adjust(arrived, marked, trimmed, trimmed_last)
        assert receiver.rate == pytest.approx(rate, rel=1e-9), f"step {number}"


def test_plb_leaves_a_path_when_linux_does() -> None:
    recorded = json.loads(lzma.decompress((DECISIONS / "rule-plb.json.xz").read_bytes()))
    values = checked("selection", "plb", PlbSelection.parameters, {"suspend_ns": recorded["suspend_ms"] * 10**6})
    rng = Recorded()
    flow = PlbFlow(rng, values)
    for number, (what, now_ms, *more) in enumerate(recorded["steps"]):
        if what == "rto":
            rng.draws = [more[0] * 10**6]
            flow.time_out(now_ms * 10**6)
        else:
            share, idle, leaves = more
            assert flow.leaves(now_ms * 10**6, share / 256, idle) is leaves, f"step {number}"


def test_plb_repaths_a_plane_whose_packets_are_marked_and_no_other() -> None:
    selection: Any = made_selection("plb")
    evs = selection.evs
    first = {plane.number: selection.next(plane.bit) for plane in evs.planes}
    marked = evs.planes[0].number
    for path in first.values():
        selection.on_packet_sent(0, path, 4096)
    for now_ns in range(0, 120_000, 10_000):  # twelve rounds, with a packet under way after each
        assert {plane.number: selection.next(plane.bit) for plane in evs.planes} == first
        for path in first.values():
            selection.on_packet_sent(now_ns, path, 4096)
            selection.on_packet_acked(now_ns + 9_000, path, 4096, None, path.plane.number == marked)
    assert selection._flows[marked].path is None
    assert [flow.path for number, flow in selection._flows.items() if number != marked] == list(first.values())[1:]


def test_smartt_has_the_windows_of_its_authors_simulator() -> None:
    recorded = json.loads(lzma.decompress((DECISIONS / "rule-smartt.json.xz").read_bytes()))
    path = PathTraits(12_000, 12_000, 100_000_000_000, recorded["packet"])
    cc = Smartt(path, checked("congestion", "smartt", Smartt.parameters, {}), {})
    assert cc.window_bytes == recorded["window"]
    for number, (what, now_ns, *more, inflight, window) in enumerate(recorded["steps"]):
        if what == "trim":
            cc.on_trim(now_ns, recorded["packet"], inflight)
        else:
            cc.on_ack(now_ns, recorded["packet"], more[0], more[1], inflight)
        assert cc.window_bytes == window, f"step {number}"


def test_sleek_hears_no_recovery_in_the_answer_of_a_background_probe() -> None:
    rule = SleekRule(12_000, 0, checked("loss", "sleek", SleekRule.parameters, {}))
    flight, path = PacketWindow(0, 1024), ev_set(8).planes[0].active[0]
    send(flight, 4, 4096)
    take_acked(flight, [3])
    path.active = False  # an EV that is out: its probes say nothing of the packets under way
    rule.on_probe_answered(0, path, 12_500, False)
    assert rule.overdue(flight, 65_536) == []
    path.active = True
    rule.on_probe_answered(0, path, 12_500, False)
    assert rule.overdue(flight, 65_536) == [0, 1, 2]
