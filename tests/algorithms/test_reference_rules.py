"""The loss rule SLEEK and the rate of RCCC's receivers against recorded decisions of the reference."""

import json
import lzma
from collections import Counter
from pathlib import Path

import pytest

from algorithms.rccc import Rccc, RcccReceiver
from algorithms.sleek import SleekRule
from endpoint.mrc.congestion.cc_profile import PathTraits
from endpoint.mrc.loss.loss_detection import PacketWindow
from endpoint.mrc.parameter import checked
from tests.helpers.transport.bench import ev_set

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
