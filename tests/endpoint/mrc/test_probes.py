"""Probes and what a program asks of a NIC: EV events, EV probes, ports that are off, and the share of probes."""

from collections import Counter
from heapq import heappop, heappush
from typing import Any

import pytest
from hypothesis import given, strategies as st

from endpoint.mrc.endpoint import Endpoint
from endpoint.mrc.operations import ASKED_MAX
from endpoint.mrc.paths.ev_events import EvEventQueue
from endpoint.mrc.paths.ev_state import SENDABLE, EvCause
from endpoint.mrc.paths.probe_budget import AskingBudget, ProbeBudget
from endpoint.nic.attributes import VerbError
from endpoint.nic.config import ConfigError
from endpoint.nic.wire import EndpointOp, Opcode
from endpoint.roce.endpoint import RoceEndpoint
from endpoint.transport import QPState, QueueFull
from tests.helpers.transport import Bench, Flow, Packet, Wire

# --- EV events -------------------------------------------------------------------------------------------------


def signal(bench: Bench, cause: EvCause, count: int = 1) -> list[int]:
    """The state changes of so many EVs of the bench's QP."""
    paths = list(bench.qp_a.evs.paths.values())[:count]
    for path in paths:
        bench.qp_a.evs.signal(path, cause, bench.now_ns)
    return [path.ev for path in paths]


def test_changes_of_state_are_events_with_profile_port_and_state() -> None:
    bench = Bench()
    queue = bench.a.control.create_ev_event_queue(8)
    (ev,) = signal(bench, EvCause.LOSS)
    signal(bench, EvCause.ECN)  # SKIP is none of the API's states
    signal(bench, EvCause.PROBED_MARKED)
    found = queue.poll()
    assert [(one.ev, one.state, one.drop_count) for one in found] == [(ev, 2, 0), (ev, 1, 0)]
    assert {(one.profile_id, one.qp_num, one.host) for one in found} == {(0, bench.qp_a.qpn, "h1")}
    assert found[0].port == bench.qp_a.evs.paths[ev].port.number


def test_only_states_of_the_profiles_event_mask_are_told() -> None:
    bench = Bench()
    bench.a.control.modify_ev_profile(0, 0, ev_event_mask=1)
    queue = bench.a.control.create_ev_event_queue(8)
    signal(bench, EvCause.LOSS)
    assert queue.poll() == []
    signal(bench, EvCause.PROBED)
    assert [one.state for one in queue.poll()] == [1]
    bench.a.control.destroy_ev_event_queue(queue)
    signal(bench, EvCause.LOSS)
    signal(bench, EvCause.PROBED)
    assert queue.poll() == []


@given(st.integers(1, 5), st.lists(st.integers(0, 4), max_size=60))
def test_what_does_not_fit_is_counted_to_the_event(capacity: int, steps: list[int]) -> None:
    """0 polls one event, another number brings as many: each delivered event counts those lost right before it."""
    queue, sent, got = EvEventQueue(capacity), 0, []
    for step in steps:
        if not step:
            got += queue.poll(1)
        for _ in range(step):
            queue.push(0, sent, 1, 1, 1, "h1")
            sent += 1
    got += queue.poll(capacity)
    expected = 0
    for event in got:
        assert event.ev == expected + event.drop_count
        expected = event.ev + 1
    assert len(queue) == 0


# --- EV probes -------------------------------------------------------------------------------------------------


def test_an_ev_probe_returns_the_round_trip_of_its_path() -> None:
    """Planes of 1 µs and of 7 µs, and 1 µs to either host; a frame of some 120 bytes takes 0.1 µs a link at 10 Gb/s."""
    wire = Wire(planes=2, plane_delays_ns=(1_000, 7_000))
    Flow(wire)
    found: dict[int, tuple[int, int]] = {}
    for path in wire.profiles["h0"].destinations["h1"].paths:
        wire.transports["h0"].control.send_ev_probe(
            "h1", path.ev, path.port, 0, lambda route, port, rtt_ns: found.update({route.ev: (port.number, rtt_ns)})
        )
    wire.run(20 * wire.base_rtt_ns)
    paths = wire.profiles["h0"].destinations["h1"].paths
    assert set(found) == {path.ev for path in paths}
    for path in paths:
        port, rtt_ns = found[path.ev]
        assert port == path.port
        there = (1_000, 7_000)[path.port - 1] + 1_000
        assert 2 * there < rtt_ns < 2 * there + 5_000  # what waits for the port adds some


def test_a_probe_over_a_dead_path_is_never_answered_and_forgotten_when_asked() -> None:
    wire = Wire()
    path = wire.profiles["h0"].destinations["h1"].paths[0]
    wire.links[path.port - 1, path.via or ""].up = False
    control = wire.transports["h0"].control
    found: list[Any] = []
    number = control.send_ev_probe("h1", path.ev, path.port, 0, lambda *answer: found.append(answer))
    wire.run(100 * wire.base_rtt_ns)
    assert found == []
    assert len(wire.transports["h0"]._operations._asked) == 1
    control.forget_ev_probe(number)
    assert wire.transports["h0"]._operations._asked == {}


def test_probes_of_programs_are_bounded_and_displace_none_of_the_transports() -> None:
    bench = Bench()
    route = bench.qp_a.peer.routes[0]
    bench.qp_a.probe_ev(route)
    operations = bench.a._operations
    for _ in range(ASKED_MAX):
        bench.a.control.send_ev_probe("h1", route.ev, route.port.number, 0, lambda *answer: None)
    with pytest.raises(QueueFull, match="4096 EV probes"):
        bench.a.control.send_ev_probe("h1", route.ev, route.port.number, 0, lambda *answer: None)
    assert len(operations._probes) == 1
    assert not operations._probes.keys() & operations._asked.keys()


def test_after_65536_requests_an_answer_still_finds_its_own_probe() -> None:
    """Request ids have 16 bits. The transport's probe goes over a dead path and is never answered."""
    wire = Wire()
    flow = Flow(wire)
    dead, alive = wire.profiles["h0"].destinations["h1"].paths[:2]
    wire.links[dead.port - 1, dead.via or ""].up = False
    operations = wire.transports["h0"]._operations
    flow.qp.probe_ev(next(route for route in flow.qp.peer.routes if route.ev == dead.ev))
    (stale,) = operations._probes
    operations._request_id = (stale - 1) & 0xFFFF
    answers: list[Any] = []
    wire.transports["h0"].control.send_ev_probe("h1", alive.ev, alive.port, 0, lambda *answer: answers.append(answer))
    wire.run(100 * wire.base_rtt_ns)
    assert len(answers) == 1


def test_a_probe_of_a_path_that_is_not_there_is_refused_with_those_that_are() -> None:
    bench = Bench()
    route = bench.qp_a.peer.routes[0]
    tell = lambda *answer: None  # noqa: E731
    with pytest.raises(VerbError, match=r"no path to h1 has EV 0x5555 on port 1; valid: 0x"):
        bench.a.control.send_ev_probe("h1", 0x5555, 1, 0, tell)
    with pytest.raises(VerbError, match="no paths to 'h9'"):
        bench.a.control.send_ev_probe("h9", 5, 1, 0, tell)
    bench.a.port_changed(route.port.number, False, 0)
    with pytest.raises(VerbError, match=f"port {route.port.number} is down"):
        bench.a.control.send_ev_probe("h1", route.ev, route.port.number, 0, tell)


# --- ports -----------------------------------------------------------------------------------------------------


def test_a_port_that_is_switched_off_is_left_peers_are_told_and_the_others_keep_their_rate() -> None:
    wire = Wire()
    flow = Flow(wire, size=1 << 20)
    flow.keep_posted(65_536, 64, 10_000 * wire.base_rtt_ns)
    wire.run(50 * wire.base_rtt_ns)
    measured_ns = 100 * wire.base_rtt_ns
    whole = flow.goodput_bps(wire.now_ns + measured_ns)
    nic, peer = wire.transports["h0"], wire.transports["h1"]
    nic.enable_port(2, False, wire.now_ns)
    wire.run(wire.now_ns + 20 * wire.base_rtt_ns)
    assert peer.peers.named("h0").ports & 0b1111 == 0b1101
    sent = nic.ports.by_number[2].tx_packets
    assert flow.goodput_bps(wire.now_ns + measured_ns) == pytest.approx(whole * 3 / 4, rel=0.02)
    assert nic.ports.by_number[2].tx_packets == sent
    nic.enable_port(2, True, wire.now_ns)
    wire.run(wire.now_ns + 50 * wire.base_rtt_ns)
    assert peer.peers.named("h0").ports & 0b1111 == 0b1111
    assert flow.goodput_bps(wire.now_ns + measured_ns) == pytest.approx(whole, rel=0.02)


@pytest.mark.parametrize("carrier_first", [True, False])
def test_a_port_is_up_only_with_carrier_and_permission(carrier_first: bool) -> None:
    bench = Bench()
    nic, port = bench.a, bench.a.ports.by_number[3]
    steps = [(nic.port_changed, False), (nic.enable_port, False)]
    for step, value in steps if carrier_first else steps[::-1]:
        step(3, value, 0)
        assert not port.up
    for step, value in ((nic.enable_port, True), (nic.port_changed, True)):
        step(3, value, 0)
        assert port.up is (step == nic.port_changed)
    causes = [event.fields["cause"] for event in iter(nic.next_event, None) if event.kind == "plane"]
    assert causes == (["carrier", "carrier"] if carrier_first else ["admin", "carrier"])


@pytest.mark.parametrize("make", [None, RoceEndpoint])
def test_what_arrives_at_a_port_that_is_off_is_dropped_and_counted(make: Any) -> None:
    wire = Wire(**({} if make is None else {"make": make}))
    flow = Flow(wire)
    for port in range(1, 5):
        wire.transports["h1"].enable_port(port, False, 0)
    flow.post(5000)
    wire.run(5 * wire.base_rtt_ns)
    assert wire.transports["h1"].log.drops["port_disabled"] >= 1
    assert flow.remote.responder.received_packets == 0
    for port in range(1, 5):
        wire.transports["h1"].enable_port(port, True, wire.now_ns)
    wire.run(10**10, stop=lambda: flow.finished)
    flow.check()


def test_a_port_that_is_not_there_is_refused_with_those_that_are() -> None:
    nic = Bench().a
    with pytest.raises(VerbError, match="h0 has no port 9; valid: 1, 2, 3, 4"):
        nic.enable_port(9, False, 0)


QPS = 8
SILENT_RTTS = 150
FOUND_RTTS = 400
"""Until most of the EVs were given up: with few probes to spare, it is data that finds them."""


def probes_of_silent_paths(probe_share: float) -> tuple[int, int]:
    """Probes of abandoned EVs and bytes that a host sends while three EVs of four on each plane lose everything, and
    its eight queue pairs have little to send; of the time after the first ones were given up."""
    wire = Wire(seed=5, evs_per_plane=16, evs_min_active_share=0.0, plane_suspicion=False, probe_share=probe_share)
    for (place, via), link in wire.links.items():
        if isinstance(place, int) and int(str(via).partition("s")[2]) % 4:
            link.faults.loss = 1.0
    flows = [Flow(wire, seed=seed) for seed in range(QPS)]
    evs = {flow.remote.qpn: flow.qp.evs for flow in flows}
    abandoned: Counter[bool] = Counter()

    def hear(host: str, port: int, frame: bytes) -> None:
        packet = Packet(port, frame)
        if host == "h0" and packet.opcode is Opcode.PROBE:
            abandoned[evs[packet.bth.dest_qpn].paths[packet.ev].state not in SENDABLE] += 1

    for flow in flows:
        flow.keep_posted(2_000, 1, (SILENT_RTTS + FOUND_RTTS) * wire.base_rtt_ns)
    wire.run(FOUND_RTTS * wire.base_rtt_ns)
    before = sent_bytes(wire)
    wire.tap(hear)
    wire.run((SILENT_RTTS + FOUND_RTTS) * wire.base_rtt_ns)
    assert all(flow.qp.evs.out_count >= 20 for flow in flows)
    return abandoned[True], sent_bytes(wire) - before


def sent_bytes(wire: Wire) -> int:
    return sum(port["tx_bytes"] for port in wire.transports["h0"].counters()["ports"])


def test_queue_pairs_that_wait_for_their_own_ports_ask_nothing_of_the_network() -> None:
    """No packet is lost or late on its way: each queue pair is silent for many round trips only because it takes turns
    with the others. uet-htsim's senders ask for nothing then."""
    wire = Wire(seed=5)
    flows = [Flow(wire, seed=seed) for seed in range(64)]
    for flow in flows:
        flow.post(100_000)
    wire.run(3000 * wire.base_rtt_ns, stop=lambda: all(flow.finished for flow in flows))
    for flow in flows:
        flow.check()
    assert sum(flow.qp.requester.retransmits for flow in flows) == 0
    asked = sum(flow.qp.requester.counters()["probes"] for flow in flows)
    assert asked <= len(flows)  # at the end of a message, when nothing more is to be sent


def test_senders_of_an_incast_ask_once_per_fifty_packets_at_most() -> None:
    """Each window is one packet, in a queue whose length changes: an answer that is a little later than usual is no
    silence. uet-htsim's senders ask for nothing then, and `probe_share` is 2 %."""
    wire = Wire(seed=5, hosts=17)
    flows = [Flow(wire, f"h{number}", "h0", seed=number) for number in range(1, 17)]
    for flow in flows:
        flow.post(400_000)
    wire.run(3000 * wire.base_rtt_ns, stop=lambda: all(flow.finished for flow in flows))
    for flow in flows:
        flow.check()
    requesters = [flow.qp.requester for flow in flows]
    packets = sum(requester.data_packets + requester.retransmits for requester in requesters)
    assert sum(requester.counters()["probes"] for requester in requesters) <= 0.02 * packets
    assert sum(requester.timeouts for requester in requesters) == 0


def ev_probes(wire: Wire) -> Counter[str]:
    """How many requests of a way back each host sends from now on; port status updates are opcodes of their own."""
    sent: Counter[str] = Counter()

    def hear(host: str, port: int, frame: bytes) -> None:
        packet = Packet(port, frame)
        if packet.opcode is Opcode.ENDPOINT_REQUEST and packet.erth.op == EndpointOp.EV_PROBE:
            sent[host] += 1

    wire.tap(hear)
    return sent


def test_a_host_that_receives_by_one_queue_pair_refreshes_its_way_back_once_per_round_trip() -> None:
    """Paper, section 2.4: an EV probe in each round trip in which something came in and nothing went out."""
    wire = Wire()
    flow = Flow(wire)
    flow.keep_posted(50_000, 16, 300 * wire.base_rtt_ns)
    sent = ev_probes(wire)
    wire.run(300 * wire.base_rtt_ns)
    assert 0.95 <= sent["h1"] / 300 <= 1.0
    assert sent["h0"] == 0


def test_a_host_that_receives_by_many_queue_pairs_refreshes_each_way_back_in_turn() -> None:
    wire = Wire(seed=5, hosts=17)
    flows = [Flow(wire, f"h{number}", "h0", seed=number) for number in range(1, 17)]
    for flow in flows:
        flow.post(400_000)
    sent = ev_probes(wire)
    wire.run(3000 * wire.base_rtt_ns, stop=lambda: all(flow.finished for flow in flows))
    trips = wire.now_ns / wire.base_rtt_ns
    assert trips / 2 < sent["h0"] <= trips + 8
    confirmed = [flow.remote.reverse._confirmed.bit_count() for flow in flows]
    assert min(confirmed) >= 2, confirmed


def test_queue_pairs_that_wait_for_their_own_ports_probe_no_way_back() -> None:
    """Both ends of 64 queue pairs send: one that is silent for a round trip waits for its turn, and data that is
    answered will tell of its EVs."""
    wire = Wire(seed=5)
    flows = [Flow(wire, seed=seed) for seed in range(64)]
    source, sink = (wire.transports[host].register_memory(bytearray(100_000)) for host in ("h1", "h0"))
    for flow in flows:
        flow.post(100_000)
        flow.remote.post_write(0, source, 0, 100_000, sink.va, sink.rkey, None)
    sent, ends = ev_probes(wire), [qp for flow in flows for qp in (flow.qp, flow.remote)]
    wire.run(3000 * wire.base_rtt_ns, stop=lambda: not any(qp.work.pending for qp in ends))
    packets = sum(qp.requester.data_packets for qp in ends)
    assert packets == 2 * 64 * 25
    assert sum(sent.values()) <= 0.02 * packets


def test_silence_is_asked_about_within_a_share_of_the_data_packets_and_the_ends_of_messages_first() -> None:
    budget = AskingBudget(0.02, 1_000_000, now_ns=0)
    assert budget.take(2, 0, last=False) == 0, "kept for ends"
    assert budget.take(100, 0, last=True) == 8
    budget.sent(500)
    assert budget.take(100, 0, last=False) == 2
    assert budget.take(100, 0, last=True) == 8
    budget.justified()
    assert budget.take(2, 0, last=True) == 1, "a probe that proves a loss is free"
    assert budget.take(2, 2_000_000, last=True) == 2, "a host that sends nothing has one per interval"
    budget.sent(100_000)
    assert budget.take(100, 2_000_000, last=True) == 64


def test_a_queue_pair_asks_nothing_while_all_it_has_sent_was_refused() -> None:
    """Nothing is under way: the host itself waits before it sends the trimmed packet again."""
    bench = Bench(trims_before_wait=1)
    bench.write(1)
    requester = bench.qp_a.requester
    requester.flight.refused(0, next(path.ev for path in requester.flight.paths if path is not None))
    requester.retry.hold_ns = bench.now_ns + 10 * bench.a.limits.base_rtt_ns
    bench.now_ns += 9 * bench.a.limits.base_rtt_ns
    bench.a.handle_timer(bench.now_ns)
    assert requester.counters()["probes"] == requester.timeouts == 0


def test_silence_begins_when_the_port_has_sent_the_packet() -> None:
    """A port that runs ahead of its line has frames of other queue pairs before this one's."""
    bench = Bench(jitter_ns=1_000_000)
    for port in bench.a.ports:
        port.free_ns = bench.now_ns + 1_000_000
    bench.write(1)
    bench.a.packets_to_send(bench.now_ns, 64)
    limits = bench.a.limits
    assert bench.qp_a.requester.retry.ask_due_ns > bench.now_ns + 1_000_000 + limits.base_rtt_ns + limits.jitter_ns


def test_background_probes_of_a_host_stay_within_their_share() -> None:
    unlimited, _ = probes_of_silent_paths(probe_share=1.0)
    least, _ = probes_of_silent_paths(probe_share=0.0)  # one per probe interval
    probes, sent = probes_of_silent_paths(probe_share=0.01)
    assert least < unlimited / 3
    assert 0 < probes - least < 1.1 * sent * 0.01 / 150


def test_evs_return_under_the_limit_when_their_paths_work_again() -> None:
    wire = Wire(seed=5, evs_per_plane=16, evs_min_active_share=0.0, plane_suspicion=False, probe_share=0.0)
    links = [link for (place, via), link in wire.links.items() if isinstance(place, int) and via != f"p{place}s0"]
    for link in links:
        link.faults.loss = 1.0
    flow = Flow(wire)
    flow.keep_posted(65_536, 4, 600 * wire.base_rtt_ns)
    wire.run(200 * wire.base_rtt_ns)
    assert flow.qp.evs.out_count > 20
    for link in links:
        link.faults.loss = 0.0
    wire.run(1000 * wire.base_rtt_ns)
    assert flow.qp.evs.out_count == 0
    flow.check()


def test_a_healed_plane_is_probed_although_the_other_planes_stay_dead() -> None:
    wire = Wire(planes=3, evs_per_plane=24)
    rtt_ns = wire.base_rtt_ns
    flow = Flow(wire)
    flow.keep_posted(20_000, 2, 60 * rtt_ns)
    for planes, at in (((0, 1), 10), ((2,), 60)):
        wire.at(at * rtt_ns, lambda planes=planes: break_fabric(wire, *planes))
    wire.run(500 * rtt_ns)
    assert flow.qp.work.pending
    break_fabric(wire, 1, up=True)
    wire.run(1000 * rtt_ns, stop=lambda: flow.finished)
    flow.check()


@pytest.mark.parametrize("made_first", ["h1", "h2"])
def test_a_queue_pair_to_a_dead_host_does_not_use_up_the_probes_of_another(made_first: str) -> None:
    wire = Wire(hosts=3, planes=3, evs_per_plane=12)
    rtt_ns = wire.base_rtt_ns
    flows = {peer: Flow(wire, "h0", peer) for peer in sorted(("h1", "h2"), key=lambda peer: peer != made_first)}
    for flow in flows.values():
        flow.keep_posted(20_000, 2, 60 * rtt_ns)
    wire.at(10 * rtt_ns, lambda: break_fabric(wire, 0, 1))
    wire.run(90 * rtt_ns)
    assert all(flow.qp.evs.out_count == 24 for flow in flows.values())
    for plane in range(3):
        wire.links["h2", plane].up = False
    break_fabric(wire, 0, 1, up=True)
    wire.run(500 * rtt_ns)
    assert flows["h1"].qp.evs.out_count == 0
    assert flows["h2"].qp.evs.out_count == 24


def break_fabric(wire: Wire, *planes: int, up: bool = False) -> None:
    for (place, _), link in wire.links.items():
        if place in planes:
            link.up = up


@pytest.mark.parametrize("end", ["error", "reset", "destroyed", "returned"])
def test_a_queue_pair_that_no_longer_probes_gives_up_its_place(end: str) -> None:
    wire = Wire(hosts=3, planes=2, evs_per_plane=40)
    rtt_ns = wire.base_rtt_ns
    flows = [Flow(wire, "h0", peer) for peer in ("h1", "h2")]
    for flow in flows:
        flow.keep_posted(20_000, 2, 60 * rtt_ns)
    wire.at(10 * rtt_ns, lambda: break_fabric(wire, 0))
    wire.run(200 * rtt_ns)
    nic, gone, left = wire.transports["h0"], flows[0].qp, flows[1].qp
    waiting = nic._context.probe_budget.waiting
    assert set(waiting) == {gone.qpn, left.qpn}
    if end == "error":
        gone.modify(QPState.ERROR, wire.now_ns)
    elif end == "reset":
        gone.modify(QPState.RESET, wire.now_ns)
    elif end == "destroyed":
        nic.destroy_qp(gone, wire.now_ns)
    else:
        for path in list(gone.evs.planes[0].out):
            gone.evs.signal(path, EvCause.LATE_ACK, wire.now_ns)
    wire.run(wire.now_ns + 10 * nic.limits.probe_interval_ns)
    assert set(waiting) == {left.qpn}


@pytest.mark.parametrize("count", [32, 200])
def test_a_busy_host_sends_its_share_of_probes_however_many_queue_pairs_wait(count: int) -> None:
    """Each queue pair has sixteen abandoned EVs, and asks when the budget tells it to: in 100 intervals of 1,000 ns the
    host sends 75 MB, of which two in a hundred are 10,000 probes of 150 bytes."""
    ports = Wire().transports["h0"].ports
    budget = ProbeBudget(ports, 0.02, 1_000)
    asks = [(qpn, qpn) for qpn in range(count)]
    probed = [0] * count
    while (ask := heappop(asks))[0] < 100_000:
        now_ns, qpn = ask
        ports.list[0].tx_bytes = 750 * now_ns
        sent = min(16, budget.allowed(qpn, now_ns))
        budget.spend(qpn, sent, more=sent < 16)
        probed[qpn] += sent
        heappush(asks, (max(now_ns + 1, now_ns + 1_000 if sent == 16 else budget.next_ns(qpn, now_ns)), qpn))
    assert sum(probed) > 0.9 * 10_000
    assert min(probed) >= 10


def test_a_share_out_of_range_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"probe_share is 1\.5; it must be from 0\.0 to 1\.0"):
        Wire(make=Endpoint, probe_share=1.5)
