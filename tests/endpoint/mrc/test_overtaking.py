"""Packets of one EV cannot overtake each other: what a SACK proves lost at once, and what it does not."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings, strategies as st

from endpoint.mrc.flight import PASSES_BYTES, Flight
from endpoint.mrc.loss.reorder import ReorderRule
from endpoint.mrc.paths.ev_set import EvPath
from endpoint.nic.message import Message
from endpoint.nic.rtt import RttEstimator
from endpoint.transport import CompletionStatus, MemoryRegion
from tests.helpers.transport import Bench, Faults, Flow, Wire, ev_set

REGION = MemoryRegion(0, 100, 1, 1, memoryview(bytearray(100)))
FULL = 4096
BITS = 64
NEVER_NS = 1 << 40
"""A base round trip in which nothing is ever overdue: only overtaking proves a loss."""


@dataclass
class Sender:
    """A requester's window and loss rule. Packets leave one ns after the other, each on an EV by its number."""

    flight: Flight
    evs: list[EvPath]
    now_ns: int = 0
    late: list[int] = field(default_factory=list)

    def send(self, *evs: int, size: int = FULL) -> None:
        for ev in evs:
            self.now_ns += 1
            self.flight.depart(Message(0, REGION, 0, size, 0, 0, None, size), size, self.evs[ev], self.now_ns)

    def hear(self, cack: int, start: int, bitmap: int) -> list[int]:
        """A SACK: everything up to PSN `cack` has arrived, and the PSNs from `start` on whose bits are set. Returns the
        PSNs that are lost now."""
        flight, first = self.flight, self.flight.una
        reported = flight.reported(cack + 1 - first, start - cack, bitmap)
        flight.take_acked(reported & ~flight.acked, self.now_ns)
        flight.look(reported, start - first, first)
        found = [flight.una + index for index in flight.rule.overdue(flight, 1 << 30)]
        for psn in found:
            flight.lose(psn - flight.una, proved=True)
        return found


def sender(base_rtt_ns: int = NEVER_NS) -> Sender:
    rule = ReorderRule(base_rtt_ns, 0)
    late: list[int] = []
    flight = Flight(
        0, 1024, rule, RttEstimator(base_rtt_ns), lambda path, now_ns: late.append(path.ev), lambda message: None
    )
    flight.make_room()
    return Sender(flight, list(ev_set(8).paths.values()), late=late)


def test_a_later_packet_of_the_same_ev_proves_the_loss_at_once() -> None:
    one = sender()
    one.send(0, 1, 2, 0)
    assert one.hear(-1, 0, 0b0110) == [], "packets of other EVs may be quicker"
    assert one.hear(-1, 0, 0b1110) == [0]
    assert one.hear(-1, 0, 0b1110) == [], "each loss is told once"


def test_packets_of_other_evs_prove_nothing_however_many_there_are() -> None:
    one = sender()
    one.send(0, *[1, 2, 3] * 15)
    assert one.hear(-1, 0, (1 << 46) - 2) == []


def test_a_sack_that_has_no_room_for_a_packet_does_not_say_that_it_is_missing() -> None:
    one = sender()
    one.send(0, 1, *[2] * 70, 0)
    assert one.hear(-1, 9, (1 << 64) - 1) == [], "its bitmap names PSN 9 to 72, and not PSN 0"
    assert one.hear(-1, 0, 1 << 1) == []
    assert one.hear(1, 2, (1 << 64) - 1) == []


def test_a_sack_from_before_the_overtaking_packet_came_proves_nothing() -> None:
    """Acknowledgements return by different planes, so an older SACK may be heard after a newer one."""
    one = sender()
    one.send(0, 1, 2, 0)
    assert one.hear(2, 3, 0b1) == [], "PSN 0 to 3 have arrived"
    one.send(1, 2, 3, 1)
    assert one.hear(3, 7, 0b1) == [], "PSN 7 has arrived; the bitmap does not say whether 4 has, which is of its EV"
    assert one.hear(3, 4, 0b0110) == [], "this SACK left before PSN 7 came, and PSN 4 may have come with it"
    assert one.hear(3, 4, 0b1110) == [4]


def test_copies_neither_prove_a_loss_nor_are_proved_lost() -> None:
    """They travel in another traffic class, which may have another queue."""
    one = sender()
    one.send(0, 1, 0)
    one.flight.tries[2 & one.flight.mask] = 1
    assert one.hear(-1, 0, 0b110) == []
    two = sender()
    two.send(0, 1, 0)
    two.flight.tries[0] = 1
    assert two.hear(-1, 0, 0b110) == []


def test_a_packet_no_longer_than_a_trimmed_one_proves_nothing() -> None:
    """A switch may have sent the packet whole through the priority queue, past those that wait as data."""
    one = sender()
    one.send(0, 1)
    one.send(0, size=PASSES_BYTES - 1)
    assert one.hear(-1, 0, 0b110) == []


def test_an_ev_that_reorders_ends_the_rule_with_the_first_packet_wrongly_taken_for_lost() -> None:
    one = sender()
    one.send(0, 1, 0)
    assert one.hear(-1, 0, 0b110) == [0]
    one.hear(2, 3, 0)  # the original, in much less than a round trip
    assert not one.flight.in_order
    assert one.late == [one.evs[0].ev]
    one.send(1, 2, 1)
    assert one.hear(2, 3, 0b110) == []


@dataclass
class Packet:
    """A packet in the simulated network: when it arrives, or that it is lost."""

    ev: int
    arrives_ns: int
    lost: bool


@st.composite
def networks(draw: st.DrawFn, longest: int) -> list[Packet]:
    """Packets in order of sending; each EV keeps its packets in order, whatever the delays of EVs are."""
    evs = draw(st.integers(1, 8))
    free_ns = [0] * evs
    packets = []
    for psn in range(draw(st.integers(2, longest))):
        ev = draw(st.integers(0, evs - 1))
        free_ns[ev] = max(free_ns[ev] + 1, psn + draw(st.integers(0, 400)))
        packets.append(Packet(ev, free_ns[ev], draw(st.integers(0, 9)) == 0))
    return packets


def arrivals(packets: list[Packet]) -> list[int]:
    """PSNs in order of arrival."""
    return sorted((n for n, one in enumerate(packets) if not one.lost), key=lambda n: (packets[n].arrives_ns, n))


def cumulative(arrived: set[int]) -> int:
    cack = -1
    while cack + 1 in arrived:
        cack += 1
    return cack


@settings(max_examples=300, deadline=None)
@given(networks(150), st.randoms(use_true_random=False))
def test_no_packet_that_arrives_is_taken_for_lost_whatever_the_order_of_sacks(packets, rng) -> None:
    """Each arrival may cause a SACK with a bitmap anywhere; SACKs are lost, late and heard in any order."""
    one = sender()
    one.send(*(packet.ev for packet in packets))
    arrived: set[int] = set()
    sacks = []
    for number, psn in enumerate(arrivals(packets)):
        arrived.add(psn)
        cack = cumulative(arrived)
        start = rng.randrange(cack + 1, max(cack + 2, max(arrived) + 1))
        bits = sum(1 << bit for bit in range(BITS) if start + bit in arrived)
        if rng.random() < 0.8:
            sacks.append((number + rng.randrange(30), cack, start, bits))
    lost = {psn for psn, packet in enumerate(packets) if packet.lost}
    for _, cack, start, bits in sorted(sacks):
        if cack >= one.flight.una - 1:
            assert set(one.hear(cack, start, bits)) <= lost


@settings(max_examples=300, deadline=None)
@given(networks(BITS))
def test_each_loss_is_found_by_the_sack_of_the_next_packet_of_the_ev(packets: list[Packet]) -> None:
    one = sender()
    one.send(*(packet.ev for packet in packets))
    arrived: set[int] = set()
    found: set[int] = set()
    for psn in arrivals(packets):
        arrived.add(psn)
        cack = cumulative(arrived)
        bits = sum(1 << bit for bit in range(BITS) if cack + 1 + bit in arrived)
        found |= set(one.hear(cack, cack + 1, bits))
        passed = {before for before in range(psn) if packets[before].lost and packets[before].ev == packets[psn].ev}
        assert passed <= found


def flow_of_losses(reorder: float) -> tuple[Flow, Wire]:
    """One QP over four planes with one path each, one of them ten base round trips slower, and 2 % of packets lost. The
    guard is so wide that only overtaking, or the timer, finds a loss."""
    base = Wire().base_rtt_ns
    delays = (1_000, 1_000, 1_000, 1_000 + 10 * base)
    wire = Wire(evs_per_plane=1, plane_delays_ns=delays, mark=False, trim=False, parameters={"loss.guard": 16.0})
    for key, link in wire.links.items():
        if key[0] == "h1":  # towards the receiver: every acknowledgement arrives
            link.faults = Faults(loss=0.02, reorder=reorder, reorder_ns=2 * base)
    flow = Flow(wire)
    flow.post(50_000, times=300)
    wire.run(20_000 * base, stop=lambda: flow.finished)
    flow.check()
    return flow, wire


def test_losses_on_paths_of_very_different_length_cost_hardly_a_needless_copy() -> None:
    flow, _ = flow_of_losses(reorder=0.0)
    requester = flow.qp.requester
    assert requester.flight.in_order
    assert requester.retransmits > 50
    assert requester.timeouts == 0
    assert flow.remote.responder.duplicates <= 1, "of 3,900 packets"


def test_a_network_that_reorders_within_paths_costs_one_needless_copy_at_a_time_at_most() -> None:
    flow, _ = flow_of_losses(reorder=0.2)
    requester = flow.qp.requester
    assert not requester.flight.in_order
    assert requester.spurious <= 40


@pytest.mark.parametrize("lost", [0, 5, 11])
def test_a_packet_out_on_a_path_that_later_packets_pass_is_sent_again_within_a_round_trip_and_a_turn(lost: int) -> None:
    """With four EVs the next packet of the same EV leaves four packets later."""
    base = Wire().base_rtt_ns
    wire = Wire(evs_per_plane=1, mark=False, trim=False, parameters={"loss.guard": 16.0})
    flow = Flow(wire)
    flow.post(50_000, times=80)
    wire.run((10 + lost) * base)
    link = wire.links["h1", 1]
    link.faults = Faults(loss=1.0)
    start_ns, before = wire.now_ns, flow.qp.requester.retransmits
    wire.run(start_ns + base, stop=lambda: link.dropped > 0)
    link.faults = Faults()
    wire.run(start_ns + 10 * base, stop=lambda: flow.qp.requester.retransmits > before)
    assert wire.now_ns - start_ns < 2.5 * base


@pytest.mark.parametrize("priority", [0, 1])
def test_a_copy_from_a_queue_of_its_own_proves_no_loss_of_data(priority: int) -> None:
    """Ten packets wait in a long queue. A copy of one of them, sent a round trip later, overtakes the others there."""
    bench = Bench(changes={"retransmit_priority": priority})
    first, *waiting = bench.write(10)
    bench.wait()
    bench.to_b(first.trimmed())
    bench.to_a(*bench.answers())
    (copy,) = bench.writes()
    bench.to_b(copy)
    bench.to_a(*bench.answers())
    assert len(bench.writes()) == (0 if priority else 9)
    assert bench.qp_a.requester.flight.una == 1
    bench.to_b(*waiting)
    bench.to_a(*bench.answers())
    assert [done.status for done in bench.completions()] == [CompletionStatus.SUCCESS]
