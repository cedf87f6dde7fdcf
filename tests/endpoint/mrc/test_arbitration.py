"""Whose turn it is: control against data by weight, queue pairs against each other by bytes, in both transports."""

from collections import Counter
from typing import Any

import pytest

from endpoint.mrc.endpoint import Endpoint
from endpoint.roce.endpoint import RoceEndpoint
from tests.helpers.transport import Bench, Flow, Wire

RATE_BPS = 10_000_000_000
CONTROL_BYTES = 154
"""A SACK with an outer header."""
ROCE: dict[str, Any] = {"planes": 1, "trim": False, "profile_changes": {"encapsulation": "none"}}
TRANSPORTS = pytest.mark.parametrize(("make", "choices"), [(Endpoint, {}), (RoceEndpoint, ROCE)], ids=["mrc", "roce"])


def data_share(wire: Wire, flow: Flow, control_load: float, round_trips: int = 200) -> float:
    """Bytes of data frames as a share of what the ports carry, with control frames of `control_load` of each line."""
    ports: Any = wire.transports[flow.src].ports
    interval_ns = int(CONTROL_BYTES * 8_000_000_000 / RATE_BPS / control_load) if control_load else 0

    def load() -> None:
        for port in ports:
            port.queue_control(bytes(CONTROL_BYTES))
        wire.kick(flow.src)
        wire.at(wire.now_ns + interval_ns, load)

    sent = 0

    def watch(host: str, port: int, frame: bytes) -> bool:
        nonlocal sent
        of_the_load = len(frame) == CONTROL_BYTES and not any(frame)
        sent += len(frame) if host == flow.src and not of_the_load else 0
        return not of_the_load

    wire.tap(watch)
    if interval_ns:
        load()
    flow.keep_posted(65_536, 32, (round_trips + 100) * wire.base_rtt_ns)
    wire.run(50 * wire.base_rtt_ns)
    before, began_ns = sent, wire.now_ns
    wire.run(began_ns + round_trips * wire.base_rtt_ns)
    return (sent - before) / (len(list(ports)) * RATE_BPS * (wire.now_ns - began_ns) / 8e9)


@TRANSPORTS
@pytest.mark.parametrize(("load", "least"), [(0.0, 0.97), (0.2, 0.75), (0.95, 0.65), (2.0, 0.65)])
def test_data_is_not_starved_by_control_frames(make, choices, load, least) -> None:
    """Ten control frames of 154 bytes to a data frame of 4,234 leave data 73 % of the line, however many there are."""
    wire = Wire(make=make, rate_bps=RATE_BPS, mark=False, **choices)
    assert data_share(wire, Flow(wire), load) >= least


def test_ten_control_frames_go_before_a_data_frame_and_all_of_them_where_no_data_waits() -> None:
    wire = Wire(planes=1, rate_bps=RATE_BPS)
    flow = Flow(wire)
    nic: Any = wire.transports["h0"]
    for _ in range(25):
        nic.ports[0].queue_control(bytes(CONTROL_BYTES))
    flow.post(4096 * 4)
    order, now_ns = "", 0
    for _ in range(40):
        out = nic.packets_to_send(now_ns, 64)
        order += "".join("c" if len(frame) == CONTROL_BYTES else "D" for _, frame in out)
        now_ns += 500
    assert order == "c" * 10 + "D" + "c" * 10 + "D" + "c" * 5 + "DD"
    for _ in range(25):
        nic.ports[0].queue_control(bytes(CONTROL_BYTES))
    assert len(nic.packets_to_send(now_ns, 64)) == 25


@pytest.mark.parametrize(
    ("make", "choices", "size"), [(Endpoint, {}, 512), (RoceEndpoint, ROCE, 2048)], ids=["mrc", "roce"]
)
def test_queue_pairs_take_turns_of_bytes_and_not_of_packets(make, choices, size) -> None:
    wire = Wire(hosts=3, make=make, rate_bps=RATE_BPS, mark=False, **choices)
    small, large = Flow(wire, "h0", "h1", seed=1), Flow(wire, "h0", "h2", seed=2)
    end_ns = 300 * wire.base_rtt_ns
    small.keep_posted(size, 2_000, end_ns)
    large.keep_posted(65_536, 16, end_ns)
    sent = {"h1": 0, "h2": 0}
    hosts = {nic.address.packed: name for name, nic in wire.profiles.items()}

    def watch(host: str, port: int, frame: bytes) -> None:
        at = 14 + (40 if wire.profiles["h0"].encapsulation == "srv6" else 0) + 24
        if host == "h0":
            sent[hosts[frame[at : at + 16]]] += len(frame)

    wire.tap(watch)
    wire.run(end_ns)
    assert sent["h1"] == pytest.approx(sent["h2"], rel=0.1)


@pytest.mark.parametrize("ports", [[1, 3], [2], [2, 3, 4]])
def test_planes_have_equal_shares_of_the_ports_that_a_congestion_control_opens(ports: list[int]) -> None:
    bench = Bench(planes=4)
    bench.qp_a.requester.cc.ports_open = sum(1 << port - 1 for port in ports)
    bench.post(12)
    sent: list[int] = []
    while len(sent) < 12:
        now = [packet.port for packet in bench.writes()]
        assert now, f"the queue pair stands still after {sent}"
        sent += now
        bench.wait()  # until the ports are free
        bench.qp_a.agenda.wake()
    assert Counter(sent) == {port: 12 // len(ports) for port in ports}


def lost_on_all_ports(**settings: Any) -> Bench:
    """A packet has left by each of four ports, and counts as lost."""
    bench = Bench(**settings)
    bench.post(4)
    assert sorted(packet.port for packet in bench.writes()) == [1, 2, 3, 4]
    for index in range(4):
        bench.qp_a.requester._lose(index, bench.now_ns, proved=True)
    bench.wait()  # until the ports are free
    bench.qp_a.agenda.wake()
    return bench


@pytest.mark.parametrize("selection", ["mrc", "round_robin"])
@pytest.mark.parametrize("retransmit_plane", ["any", "other"])
@pytest.mark.parametrize("ports", [[1, 3], [2]])
def test_what_was_lost_goes_again_by_ports_that_a_congestion_control_opens(ports, retransmit_plane, selection) -> None:
    bench = lost_on_all_ports(retransmit_plane=retransmit_plane, selection=selection)
    bench.qp_a.requester.cc.ports_open = sum(1 << port - 1 for port in ports)
    sent = bench.writes()
    assert [packet.psn for packet in sent if packet.retransmission] == [0, 1, 2, 3]
    assert {packet.port for packet in sent} == set(ports)


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("down", [False, True])
def test_what_is_new_or_was_lost_waits_for_an_open_port_until_it_is_free_or_up_again(down: bool, lost: bool) -> None:
    bench = lost_on_all_ports() if lost else Bench()
    bench.qp_a.requester.cc.ports_open = 1
    free_ns = bench.now_ns + bench.base_rtt_ns
    if down:
        bench.a.port_changed(1, False, bench.now_ns)
        bench.out(bench.a)  # the peer is told
    else:
        bench.a.ports[0].free_ns = free_ns  # another queue pair's frame is on the line
    if not lost:
        bench.post(4)
    assert bench.a.packets_to_send(bench.now_ns, 64) == []
    if down:
        bench.wait()
        assert bench.writes() == []
        bench.a.port_changed(1, True, bench.now_ns)
    else:
        assert bench.a.scheduler.pacing_ns == free_ns
    assert [packet.port for packet in bench.writes()] == [1] * 4


def test_what_was_lost_waits_while_a_congestion_control_has_closed_all_ports() -> None:
    bench = lost_on_all_ports()
    cc = bench.qp_a.requester.cc
    cc.ports_open = 0
    assert bench.a.packets_to_send(bench.now_ns, 64) == []
    assert bench.a.scheduler.resting  # the queue pair is not asked again and again
    cc.ports_open = -1
    bench.now_ns = bench.qp_a.requester.retry.retry_due_ns
    bench.timers()
    assert {packet.psn for packet in bench.writes()} == {0, 1, 2, 3}
