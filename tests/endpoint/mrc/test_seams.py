"""What the seams promise an algorithm: pacing, state that queue pairs share, probes on request, receivers' credit."""

from random import Random
from typing import Any

import pytest

from endpoint.mrc.algorithms import CONGESTIONS, LOSSES, OPERATIONS, SELECTIONS, algorithms_of
from endpoint.mrc.congestion.cc_profile import PathTraits
from endpoint.mrc.congestion.congestion import Congestion
from endpoint.mrc.congestion.granter import CreditGranter
from endpoint.mrc.loss.loss_detection import LossDetection, PacketWindow
from endpoint.mrc.operations import EndpointOperations
from endpoint.mrc.parameter import Values
from endpoint.mrc.paths.ev_set import EvPath, EvSet
from endpoint.mrc.paths.select_mrc import MrcSelection
from endpoint.mrc.paths.selection import Selection
from endpoint.mrc.peer import Peer
from endpoint.mrc.seams.guards import USERS, ClassPlace
from endpoint.nic.config import AlgorithmError
from endpoint.nic.wire import Opcode
from tests.helpers.transport import Bench, Flow, Wire

PORT_BPS = 10_000_000_000
LINE_BPS = 4 * PORT_BPS
HERE = ClassPlace(__file__, 1)


class Paced(Congestion):
    """A quarter of one port's rate, and all the room there is."""

    def __init__(self, path: PathTraits, values: Values, shared: dict[str, Any]) -> None:
        super().__init__(path, values, shared)
        self.window_bytes = 1 << 30
        self.pacing_bps = PORT_BPS // 4

    def on_ack(self, now_ns: int, acked_bytes: int, rtt_ns: int | None, marked: bool, inflight_bytes: int) -> None:
        pass


class Marks(Selection):
    """Hears which EVs are marked and which are not, with the bytes that it is told of."""

    heard: list[tuple[int, int]]
    unmarked: list[tuple[int, int]]

    def __init__(self, evs: EvSet, rng: Random, values: Values) -> None:
        super().__init__(evs, rng, values)
        self.mrc = MrcSelection(evs, rng, values)
        self.heard, self.unmarked = [], []

    def next(self, usable: int) -> EvPath | None:
        return self.mrc.next(usable)

    def on_packet_acked(self, now_ns: int, path: EvPath, size: int, rtt_ns: int | None, marked: bool) -> None:
        (self.heard if marked else self.unmarked).append((path.ev, size))


class Sharing(Paced):
    """Half a port's rate for all queue pairs of the host together."""

    def __init__(self, path: PathTraits, values: Values, shared: dict[str, Any]) -> None:
        super().__init__(path, values, shared)
        self.shared = shared
        shared["members"] = shared.get("members", 0) + 1

    def on_ack(self, now_ns: int, acked_bytes: int, rtt_ns: int | None, marked: bool, inflight_bytes: int) -> None:
        self.pacing_bps = PORT_BPS // 2 // self.shared["members"]


class Timing(Paced):
    """Keeps the round trips of both signals that tell of one."""

    def __init__(self, path: PathTraits, values: Values, shared: dict[str, Any]) -> None:
        super().__init__(path, values, shared)
        self.of_packets: list[int | None] = []
        self.of_sacks: list[int | None] = []

    def on_packet_acked(self, now_ns: int, path: EvPath, size: int, rtt_ns: int | None, marked: bool) -> None:
        self.of_packets.append(rtt_ns)

    def on_ack(self, now_ns: int, acked_bytes: int, rtt_ns: int | None, marked: bool, inflight_bytes: int) -> None:
        self.of_sacks.append(rtt_ns)


class Ticking(Paced):
    """Lets nothing go before the second tick of its timer."""

    def __init__(self, path: PathTraits, values: Values, shared: dict[str, Any]) -> None:
        super().__init__(path, values, shared)
        self.ports_open = 0
        self.ticks: list[int] = []
        self.due_ns = 2_000_000

    def on_timer(self, now_ns: int) -> None:
        self.ticks.append(now_ns)
        if len(self.ticks) == 1:
            self.due_ns = now_ns + 300_000
        else:
            self.ports_open = -1


class TickingPaths(MrcSelection):
    """A selection whose timer is set as the first packets leave."""

    def __init__(self, evs: EvSet, rng: Random, values: Values) -> None:
        super().__init__(evs, rng, values)
        self.ticks: list[int] = []

    def on_packet_sent(self, now_ns: int, path: EvPath, size: int) -> None:
        if not self.ticks:
            self.due_ns = now_ns + 700

    def on_timer(self, now_ns: int) -> None:
        self.ticks.append(now_ns)


class Asking(Selection):
    """Probes the last EV of each plane, once."""

    heard: list[tuple[int, int]]

    def __init__(self, evs: EvSet, rng: Random, values: Values) -> None:
        super().__init__(evs, rng, values)
        self.mrc = MrcSelection(evs, rng, values)
        self.asked = [plane.active[-1] for plane in evs.planes] * 3
        self.heard = []

    def next(self, usable: int) -> EvPath | None:
        return self.mrc.next(usable)

    def on_packet_acked(self, now_ns: int, path: EvPath, size: int, rtt_ns: int | None, marked: bool) -> None:
        self.wanted_probes.extend(self.asked)
        self.asked = []

    def on_probe_answered(self, now_ns: int, path: EvPath, rtt_ns: int, marked: bool) -> None:
        self.heard.append((path.ev, rtt_ns))


class Stingy(CreditGranter):
    """Grants one packet's worth per packet that arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.owed: list[int] = []

    def on_packet_arrived(self, now_ns: int, qp: int, size: int, marked: bool) -> None:
        self.owed.append(qp)
        self.due_ns = now_ns

    def grants(self, now_ns: int) -> list[tuple[int, int]]:
        found = [(qp, 4096) for qp in self.owed]
        self.owed, self.due_ns = [], 1 << 61
        return found


class Heard(Congestion):
    """Counts the credit that it hears of, and obeys it."""

    credit = 0

    @classmethod
    def receiver(cls, path: PathTraits, values: Values) -> CreditGranter | None:
        return Stingy()

    def on_credit(self, now_ns: int, granted_bytes: int, inflight_bytes: int) -> None:
        self.credit += granted_bytes

    def on_ack(self, now_ns: int, acked_bytes: int, rtt_ns: int | None, marked: bool, inflight_bytes: int) -> None:
        self.window_bytes = 16 * 4096


class Telling(EndpointOperations):
    """The shipped rule in a user's class, which is asked in Python."""

    def announce(self, now_ns: int) -> None:
        super().announce(now_ns)


class Forgetting(Telling):
    def heed(self, peer: Peer, request_id: int, ports: int, now_ns: int) -> Any:
        return peer.heard(request_id, ports, now_ns) or "not news"


class Failing(Telling):
    def announce(self, now_ns: int) -> None:
        raise ZeroDivisionError("division by zero")


class Late(Telling):
    def next_timer_ns(self) -> int:
        return -1


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes above under their names, behind the guards of a user's classes."""
    for kind in (Paced, Sharing, Timing, Ticking, Heard):
        monkeypatch.setitem(CONGESTIONS, kind.__name__, kind)
        monkeypatch.setitem(USERS, kind, HERE)
    for rule in (Telling, Forgetting, Failing, Late):
        monkeypatch.setitem(OPERATIONS, rule.__name__, rule)
        monkeypatch.setitem(USERS, rule, HERE)
    for selection in (Asking, Marks, TickingPaths):
        monkeypatch.setitem(SELECTIONS, selection.__name__, selection)
        monkeypatch.setitem(USERS, selection, HERE)


def data_bytes(wire: Wire, host: str) -> list[int]:
    """Sizes of the data frames that a host sends from now on; acknowledgements and probes are not paced."""
    sizes: list[int] = []
    wire.tap(lambda sender, port, frame: sizes.append(len(frame)) if sender == host and len(frame) > 4096 else None)
    return sizes


def busy(wire: Wire, flows: list[Flow]) -> float:
    """Bits per second of data that the first flow's host sends, after a quarter of the time."""
    end_ns = 120 * wire.base_rtt_ns
    for flow in flows:
        flow.keep_posted(65_536, 8, end_ns)
    wire.run(end_ns // 4)
    sizes = data_bytes(wire, flows[0].src)
    wire.run(end_ns)
    found = sum(sizes) * 8e9 / (end_ns - end_ns // 4)
    wire.run(4 * end_ns)
    for flow in flows:
        flow.check()
    return found


def test_a_paced_queue_pair_sends_at_its_rate(user: None) -> None:
    wire = Wire(congestion="Paced", seed=5)
    assert busy(wire, [Flow(wire)]) == pytest.approx(PORT_BPS / 4, rel=0.02)


def test_a_paced_queue_pair_keeps_its_rate_where_frames_leave_their_payload_out(user: None) -> None:
    """A counted frame is paced by its length on the line, not by the headers that are left of it."""
    wire = Wire(congestion="Paced", seed=5)
    for transport in wire.transports.values():
        transport.counted = True
    flow = Flow(wire)
    flow.region = wire.transports[flow.src].register_counted(1 << 20)
    flow.target = wire.transports[flow.dst].register_counted(1 << 20)
    end_ns = 120 * wire.base_rtt_ns
    flow.keep_posted(65_536, 8, end_ns)
    wire.run(end_ns)
    flow.poll()
    assert flow.done_bytes * 8e9 / end_ns == pytest.approx(PORT_BPS / 4, rel=0.1)


def test_a_mark_is_heard_with_its_ev_though_a_later_sack_has_settled_its_packet(user: None) -> None:
    """The SACK of a marked packet comes behind one that moved the cumulative PSN past it."""
    bench = Bench(selection="Marks")
    sent = bench.write(8)
    bench.to_b(*sent[:3], sent[3].marked())
    (early,) = [sack for sack in bench.answers(Opcode.SACK) if sack.seth.mark]
    bench.to_b(*sent[4:])
    later = bench.answers(Opcode.SACK)
    bench.to_a(*later, early)
    selection: Any = bench.qp_a.requester._selection
    assert selection._guarded.object.heard == [(sent[3].ev, 0)]
    assert selection._guarded.object.unmarked == [(packet.ev, 4096) for packet in sent]


def test_both_signals_of_a_round_trip_say_none_where_it_is_unknown(user: None) -> None:
    wire = Wire(congestion="Timing", seed=5)
    wire.disturb(loss=0.02)
    flow = Flow(wire)
    flow.keep_posted(65_536, 4, 100 * wire.base_rtt_ns)
    wire.run(400 * wire.base_rtt_ns)
    heard = flow.qp.requester.cc._guarded.object
    assert flow.qp.requester.retransmits > 0
    assert None in heard.of_packets
    assert None in heard.of_sacks
    known = [rtt_ns for rtt_ns in heard.of_packets if rtt_ns is not None]
    assert known == [rtt_ns for rtt_ns in heard.of_sacks if rtt_ns is not None]
    assert min(known) > 4_000  # two links there and two back, 1 µs each


@pytest.mark.parametrize("own", [True, False])
def test_algorithms_are_called_when_their_time_has_come(own: bool, user: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user's classes, behind guards, and as shipped ones."""
    if not own:
        for kind in (Ticking, TickingPaths):
            monkeypatch.delitem(USERS, kind)
    wire = Wire(congestion="Ticking", selection="TickingPaths", seed=5)
    flow = Flow(wire)
    flow.post(65_536)
    wire.kick(flow.src)
    wire.run(2_299_999)
    assert flow.qp.requester.data_packets == 0
    wire.run(4_000_000)
    flow.check()
    control, paths = flow.qp.requester.cc, flow.qp._selection
    control, paths = (control._guarded.object, paths._guarded.object) if own else (control, paths)
    assert control.ticks == [2_000_000, 2_300_000]
    assert paths.ticks == [2_300_700]


def test_queue_pairs_share_a_rate_through_their_hosts_dictionary(user: None) -> None:
    wire = Wire(congestion="Sharing", seed=5)
    flows = [Flow(wire, seed=seed) for seed in (1, 2, 3)]
    assert busy(wire, flows) == pytest.approx(PORT_BPS / 2, rel=0.02)
    share = [flow.done_bytes for flow in flows]
    assert min(share) > 0.9 * max(share)


def test_probes_leave_on_the_evs_that_a_selection_asks_for_eight_at_a_time(user: None) -> None:
    wire = Wire(selection="Asking", seed=5)
    flow = Flow(wire)
    wanted = [plane.active[-1].ev for plane in flow.qp.evs.planes] * 3
    flow.keep_posted(65_536, 2, 20 * wire.base_rtt_ns)
    wire.run(60 * wire.base_rtt_ns)
    heard = flow.qp._selection._guarded.object.heard
    assert sorted(ev for ev, _ in heard) == sorted(wanted[:8])
    assert all(rtt_ns > 4_000 for _, rtt_ns in heard)  # two links there and two back, 1 µs each
    assert flow.qp.requester.counters()["probes"] == 8


def test_a_sender_hears_all_credit_though_acknowledgements_are_lost(user: None) -> None:
    wire = Wire(congestion="Heard", seed=5)
    wire.disturb(loss=0.02)
    flow = Flow(wire)
    flow.keep_posted(65_536, 4, 100 * wire.base_rtt_ns)
    wire.run(100 * wire.base_rtt_ns)
    wire.disturb()
    flow.keep_posted(65_536, 4, 110 * wire.base_rtt_ns)
    wire.run(400 * wire.base_rtt_ns)
    flow.check()
    assert flow.qp.requester.retransmits > 0
    assert flow.qp.requester.cc._guarded.object.credit == 4096 * flow.remote.responder.received_packets


def frames_through_a_dead_port(operations: str) -> list[tuple[str, int, bytes]]:
    """Everything that two hosts send, while one of them loses a port and gets it back."""
    wire = Wire(operations=operations, seed=5)
    sent: list[tuple[str, int, bytes]] = []
    wire.tap(lambda sender, port, frame: sent.append((sender, port, bytes(frame))))
    flow = Flow(wire)
    flow.keep_posted(65_536, 4, 40 * wire.base_rtt_ns)
    wire.at(10 * wire.base_rtt_ns, lambda: wire.set_port("h0", 1, False))
    wire.at(25 * wire.base_rtt_ns, lambda: wire.set_port("h0", 1, True))
    wire.run(80 * wire.base_rtt_ns)
    flow.check()
    return sent


def test_the_shipped_rule_for_port_updates_behind_a_guard_sends_the_same_frames(user: None) -> None:
    assert frames_through_a_dead_port("Telling") == frames_through_a_dead_port("mrc")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Forgetting", r"test_seams\.py:\d+: operations Forgetting\.heed: .* True, False or None \(got 'not news'\)"),
        ("Failing", r"division by zero \(in operations Failing\.announce\)"),
        ("Late", r"operations Late\.next_timer_ns: it must return an integer from 0 to NEVER \(got -1\)"),
    ],
)
def test_a_users_rule_for_port_updates_that_breaks_names_its_method(user: None, name: str, said: str) -> None:
    with pytest.raises(AlgorithmError, match=said):
        frames_through_a_dead_port(name)


@pytest.mark.parametrize("name", algorithms_of("loss"))
def test_a_loss_rule_delivers_every_byte_over_lossy_links_and_a_dead_port(name: str) -> None:
    wire = Wire(loss=name, seed=5)
    wire.disturb(loss=0.01)
    flow = Flow(wire)
    end_ns = 200 * wire.base_rtt_ns
    flow.keep_posted(65_536, 8, end_ns)
    wire.at(50 * wire.base_rtt_ns, lambda: wire.set_port("h0", 1, False))
    wire.at(120 * wire.base_rtt_ns, lambda: wire.set_port("h0", 1, True))
    wire.run(end_ns + 300 * wire.base_rtt_ns)
    assert flow.done_bytes > 1 << 20
    assert flow.qp.requester.retransmits > 10
    flow.check()


def incast(congestion: str) -> tuple[Wire, list[Flow], float]:
    wire = Wire(hosts=6, congestion=congestion, rcv_penalty=False, seed=5)
    flows = [Flow(wire, src=f"h{number}", dst="h0", seed=number) for number in range(1, 6)]
    end_ns = 100 * wire.base_rtt_ns
    for flow in flows:
        flow.keep_posted(65_536, 8, end_ns)
    wire.run(end_ns)
    done_bytes = sum(flow.done_bytes for flow in flows)
    wire.run(4 * end_ns)
    for flow in flows:
        flow.check()
    return wire, flows, done_bytes * 8e9 / end_ns


def test_receivers_of_rccc_share_their_line_among_senders_and_trim_little() -> None:
    _, flows, bps = incast("rccc")
    assert bps > 0.85 * LINE_BPS
    share = [flow.done_bytes for flow in flows]
    assert min(share) > 0.9 * max(share)
    _, others, _ = incast("fixed_window")
    trims, other_trims = (sum(flow.qp.requester.trims for flow in some) for some in (flows, others))
    assert trims < other_trims / 5


def test_a_lone_sender_of_rccc_has_the_whole_line() -> None:
    wire = Wire(congestion="rccc", seed=5)
    assert busy(wire, [Flow(wire)]) > 0.95 * LINE_BPS


def test_a_sender_of_rccc_that_many_others_have_left_has_the_whole_line_again() -> None:
    wire = Wire(hosts=13, planes=2, evs_per_plane=4, congestion="rccc")
    flows = [Flow(wire, f"h{number}", "h0", size=1 << 18) for number in range(1, 13)]
    together_ns, alone_ns = 30 * wire.base_rtt_ns, 100 * wire.base_rtt_ns
    for flow in flows:
        flow.keep_posted(50_000, 2, alone_ns if flow is flows[0] else together_ns)
    wire.run(alone_ns * 3 // 4)
    assert all(flow.finished for flow in flows[1:])
    before = flows[0].qp.requester.acked_bytes
    wire.run(alone_ns)
    rate = (flows[0].qp.requester.acked_bytes - before) * 8e9 / (alone_ns // 4)
    assert rate > 0.9 * 2 * PORT_BPS


class Deaf(LossDetection):
    def overdue(self, flight: PacketWindow, window_bytes: int) -> list[int]:
        return []


def test_what_a_loss_rule_misses_is_sent_again_though_probes_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hunt found queue pairs with SLEEK that carried nothing for seconds: answered probes put the timer off."""
    monkeypatch.setitem(LOSSES, "deaf", Deaf)
    monkeypatch.setitem(USERS, Deaf, HERE)
    wire = Wire(loss="deaf")
    flow = Flow(wire)
    wire.disturb(loss=1.0)
    flow.post(4096)
    wire.run(wire.base_rtt_ns // 2)
    wire.disturb()
    wire.run(4 * wire.transports["h0"].limits.timeout_ns, stop=lambda: flow.finished)
    flow.check()
    assert flow.qp.requester.timeouts == 1
