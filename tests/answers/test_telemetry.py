"""In-band telemetry from the switches to the sender, and HPCC, which lives on it."""

import json
import lzma
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from answers.telemetry import edge
from answers.telemetry.edge import Edge, Hop, Report, report
from answers.telemetry.hpcc import Hpcc
from endpoint.mrc.congestion.cc_profile import PathTraits
from endpoint.mrc.parameter import checked
from endpoint.nic import Turns, frame, wire
from judging.measures import goodput
from judging.measures.counters import qp_totals
from judging.run import Run, Span
from running.options import Choices
from running.runner import make_run
from running.spec import RunSpec
from running.transport_choice import transport
from scenarios import library
from topo.planfile import load_plan

DECISIONS = Path(__file__).parents[1] / "algorithms" / "decisions"
PATH = PathTraits(12_000, 12_000, 100_000_000_000, 1500)
BDP = 150_000


def made(**given: Any) -> Hpcc:
    return Hpcc(PATH, checked("congestion", "hpcc", Hpcc.parameters, given), {})


def hear(cc: Hpcc, hops: Sequence[Sequence[int]], acked: int = 1500, inflight: int = BDP, path: bytes = b"one") -> int:
    """A SACK with these hops; the window after it."""
    edge._at_hand[0] = Report(path, tuple(Hop(*hop) for hop in hops))
    cc.on_ack(0, acked, None, False, inflight)
    edge._at_hand[0] = None
    return cc.window_bytes


def test_hpcc_has_the_windows_of_its_authors_simulator() -> None:
    recorded = json.loads(lzma.decompress((DECISIONS / "rule-hpcc.json.xz").read_bytes()))
    cc, windows = made(), set()
    for number, (acked, inflight, hops, window) in enumerate(recorded):
        assert hear(cc, hops, acked, inflight) == window, f"step {number}"
        windows.add(window)
    assert len(windows) > 100
    assert {1500, BDP} < windows


def test_the_window_by_hand() -> None:
    """The link carries 100 Gb/s, 12,500 bytes per us, for a round trip of 12 us, and 75,000 bytes wait in both reports:
    the load is 1 + 75,000 / 150,000. The window is 150,000 x 0.95 / 1.5 and an increase of 150,000 x 0.05 / 16."""
    cc = made()
    hear(cc, [[75_000, 0, 0, 100_000_000]])
    assert hear(cc, [[90_000, 150_000, 12, 100_000_000]]) == int(95_000 + 468.75)
    assert hear(cc, [[90_000, 300_000, 24, 100_000_000]]) == int(BDP * 0.95 / 1.6 + 468.75), "of the same reference"
    cc.on_ack(0, BDP, None, False, BDP)
    assert hear(cc, [[0, 450_000, 36, 100_000_000]]) == int(BDP * 0.95 + 468.75), "and this is a reference"
    assert hear(cc, [[0, 525_000, 48, 100_000_000]]) == int(BDP * 0.95 + 2 * 468.75), "half a load: one increase more"


def test_with_two_paths_the_load_is_their_mean_and_without_a_report_nothing_changes() -> None:
    cc = made()
    for path in (b"one", b"two"):
        hear(cc, [[0, 0, 0, 100_000_000]], path=path)
    hear(cc, [[0, 300_000, 12, 100_000_000]], path=b"one")
    assert cc._load == pytest.approx((1 + 2) / 2)
    hear(cc, [[0, 75_000, 12, 100_000_000]], path=b"two")
    assert cc._load == pytest.approx((1.5 + 0.5) / 2)
    before = cc.window_bytes
    cc.on_ack(0, 1500, None, True, BDP)
    hear(cc, [[0, 400_000, 12, 100_000_000]], path=b"one")  # the switch's clock has not moved on
    assert cc.window_bytes == before


class Quiet(Turns):
    """A NIC that sends what it is given, and keeps what it gets."""

    def __init__(self) -> None:
        self.out: list[tuple[int, bytes]] = []
        self.came: list[tuple[bytes, Report | None]] = []

    def packets_to_send(self, now_ns: int, limit: int) -> list[tuple[int, bytes]]:
        out, self.out = self.out, []
        return out

    def receive(self, port: int, frames_in: Sequence[bytes | memoryview], now_ns: int) -> bool:
        self.came += [(bytes(data), report()) for data in frames_in]
        return True


def sealed(opcode: int, src: bytes, dst: bytes, ev: int = 0x12345678, outer: bool = True) -> bytes:
    front = frame.headers(
        ether_dst=b"d" * 6, ether_src=b"s" * 6, outer=(b"o" * 16, b"l" * 16) if outer else None, src=src, dst=dst,
        traffic_class=40, ev=ev, udp_dport=4793, length=32,
    )  # fmt: skip
    return frame.seal(front, bytes([opcode]) + bytes(27))


def passed(data: bytes, record: bytes) -> bytes:
    """A frame behind a switch: its record in front of the others, and lengths that say so."""
    option = bytearray(data[54:62])
    option[1], option[3], option[4] = option[1] + 2, option[3] + 16, option[4] + 1
    longer = int.from_bytes(data[18:20]) + 16
    return data[:18] + longer.to_bytes(2) + data[20:54] + bytes(option) + record + data[62:]


def test_records_of_a_write_come_back_with_the_next_sack_and_both_nics_see_plain_frames() -> None:
    one, other = b"1" * 16, b"2" * 16
    nics = Quiet(), Quiet()
    sender, receiver = Edge(nics[0]), Edge(nics[1])
    write, sack = sealed(wire.Opcode.WRITE_ONLY, one, other), sealed(wire.Opcode.SACK, other, one)
    nics[0].out = [(1, write)]
    ((_, data),) = sender.packets_to_send(0, 64)
    assert (data[20], data[54], data[56]) == (0, 41, 0x3E)
    assert len(data) == len(write) + 8 == 54 + int.from_bytes(data[18:20])
    for number in (1, 2, 3):
        data = passed(data, b"".join(value.to_bytes(4) for value in (number, 10 * number, 100, 10_000)))
    assert receiver.receive(1, [data], 0)
    assert nics[1].came == [(write, None)]
    nics[1].out = [(1, sack), (1, sack)]
    (_, first), (_, second) = receiver.packets_to_send(0, 64)
    assert second == sack, "the records go back once"
    assert len(first) == 54 + int.from_bytes(first[18:20])
    assert sender.receive(1, [first, second], 0)
    hops = tuple(Hop(number, 10 * number, 100, 10_000) for number in (1, 2, 3))
    assert nics[0].came == [(sack, Report(other + bytes.fromhex("12345678"), hops)), (sack, None)]
    assert report() is None


def test_frames_that_are_no_writes_or_have_no_tunnel_pass_the_edge_as_they_are() -> None:
    nic = Quiet()
    probe, plain = sealed(wire.Opcode.PROBE, b"1" * 16, b"2" * 16), sealed(6, b"1" * 16, b"2" * 16, outer=False)
    nic.out = [(1, probe), (2, plain)]
    outside = Edge(nic)
    assert outside.packets_to_send(0, 64) == [(1, probe), (2, plain)]
    strange = probe[:20] + b"\0" + probe[21:]
    outside.receive(1, [probe, plain, strange, strange[:70]], 0)
    assert [data for data, _ in nic.came] == [probe, plain, strange, strange[:70]]


@given(st.binary(max_size=200), st.integers(0, 255), st.sampled_from((0, 1, 2)))
def test_an_edge_passes_every_frame_on(tail: bytes, length: int, echo: int) -> None:
    """Frames are hostile: with an option of any length, cut anywhere, with records or without."""
    nic = Quiet()
    outside = Edge(nic)
    option = bytes([41, length, 0x3E, 0, 1, echo, 0, 0])
    front = sealed(wire.Opcode.SACK, b"1" * 16, b"2" * 16)
    frames = [front[:20] + b"\0" + front[21:54] + option + tail, front[:20] + b"\0" + tail[:40]]
    outside.receive(1, frames, 0)
    assert len(nic.came) == len(frames)
    nic.out = [(1, sealed(wire.Opcode.SACK, b"2" * 16, b"1" * 16))]
    assert len(outside.packets_to_send(0, 64)) == 1
    assert report() is None


def test_a_hop_that_says_no_rate_changes_nothing() -> None:
    cc = made()
    hear(cc, [[0, 0, 0, 0]])
    before = cc.window_bytes
    hear(cc, [[0, 300_000, 12, 0]])
    assert cc.window_bytes == before


def test_hpcc_without_switches_that_tell_is_refused() -> None:
    with pytest.raises(ValueError, match=r"congestion=hpcc needs --transport mrc-int \(got mrc-cx8\)"):
        Choices(transport("mrc-cx8", {"congestion": "hpcc"}), load_plan("lab"), seed=1, world="simulated")
    with pytest.raises(ValueError, match="only with --world simulated"):
        Choices(transport("mrc-int", {"congestion": "hpcc"}), load_plan("lab"), seed=1)


def carried(folder: Path, **settings: Any) -> tuple[float, Run]:
    """Goodput of the reference phase of an incast without its incast, bit/s."""
    choice = replace(transport("mrc-int", settings), payload="counted")
    choices = Choices(choice, load_plan("rack"), time_factor=0.5, seed=7, world="simulated")
    run = Run.open(make_run(RunSpec(library.find("incast"), choices), folder))
    value = goodput.of_phase(run, run.phases["reference"])
    assert value is not None
    return value, run


@pytest.mark.slow
def test_hpcc_fills_links_to_95_percent_on_switches_that_tell_their_load(tmp_path: Path) -> None:
    """The paper's target of utilization, as a share of what NSCC carries over the same switches. And its queues: seven
    senders to one are marked and trimmed when they begin, and two seconds (30 round trips) later no more."""
    usual, _ = carried(tmp_path)
    own, run = carried(tmp_path, congestion="hpcc")
    assert own / usual == pytest.approx(0.95, abs=0.02)
    begun = run.phases["faults"]
    settled = qp_totals(run, Span("settled", begun.start_ns + 2 * 10**9, begun.stop_ns))
    assert settled["data_packets"] > 10_000
    assert (settled["ecn"], settled["trims"]) == (0, 0)
