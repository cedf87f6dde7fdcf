"""A host's probes of abandoned EVs are a share of what it sends, however many queue pairs it has."""

from heapq import heappop, heappush

import pytest

from endpoint.mrc.endpoint import Endpoint
from endpoint.mrc.paths.ev_state import EvCause
from endpoint.mrc.paths.probe_budget import ProbeBudget
from endpoint.nic.config import ConfigError
from endpoint.transport import QPState
from tests.helpers.transport import Flow, Wire

QPS = 8
SILENT_RTTS = 150


def probes_of_silent_paths(probe_share: float) -> tuple[int, int]:
    """Probes and bytes that a host sends while three EVs of four on each plane lose everything, and its eight queue
    pairs have little to send; of the time after the first ones were given up."""
    wire = Wire(seed=5, evs_per_plane=16, evs_min_active_share=0.0, plane_suspicion=False, probe_share=probe_share)
    for (place, via), link in wire.links.items():
        if isinstance(place, int) and int(str(via).partition("s")[2]) % 4:
            link.faults.loss = 1.0
    flows = [Flow(wire, seed=seed) for seed in range(QPS)]
    for flow in flows:
        flow.keep_posted(2_000, 1, (SILENT_RTTS + 100) * wire.base_rtt_ns)
    wire.run(100 * wire.base_rtt_ns)
    before = counted(wire, flows)
    wire.run((SILENT_RTTS + 100) * wire.base_rtt_ns)
    after = counted(wire, flows)
    assert all(flow.qp.evs.out_count >= 20 for flow in flows)
    return after[0] - before[0], after[1] - before[1]


def counted(wire: Wire, flows: list[Flow]) -> tuple[int, int]:
    ports = wire.transports["h0"].counters()["ports"]
    return sum(flow.qp.requester.counters()["probes"] for flow in flows), sum(port["tx_bytes"] for port in ports)


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
    assert counted(wire, flows)[0] <= len(flows)  # at the end of a message, when nothing more is to be sent


def test_background_probes_of_a_host_stay_within_their_share() -> None:
    unlimited, _ = probes_of_silent_paths(probe_share=1.0)
    least, _ = probes_of_silent_paths(probe_share=0.0)  # with those that ask for the end of a message
    probes, sent_bytes = probes_of_silent_paths(probe_share=0.01)
    assert least < unlimited / 3
    assert 0 < probes - least < 1.1 * sent_bytes * 0.01 / 150


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
