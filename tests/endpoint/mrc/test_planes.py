"""Planes: equal shares, ports that go down on either side, port status updates, reverse EVs."""

from collections import Counter
from random import Random

import pytest

from benchmarks.rig.profiles import profile as profile_data
from endpoint import profile as profiles
from endpoint.mrc.endpoint import Endpoint
from endpoint.nic.wire import EndpointOp, Erth, Opcode
from endpoint.transport import QPInfo, QPState
from tests.helpers.transport import Bench, Flow, Packet, Wire, run


def sent_per_plane(flow: Flow) -> Counter[int]:
    shares: Counter[int] = Counter()
    for ev, packets in flow.qp.paths().items():
        shares[ev >> 16] += packets
    return shares


def test_planes_get_equal_shares_and_every_ev_is_used() -> None:
    wire = Wire()
    flow = Flow(wire)
    flow.post(100_000, times=40)
    run(wire, flow)
    shares = sent_per_plane(flow)
    assert max(shares.values()) - min(shares.values()) <= 1
    assert len(flow.qp.paths()) == 32


def test_a_plane_that_lost_paths_and_has_no_backups_still_carries_its_share() -> None:
    wire = Wire(planes=4, evs_per_plane=4, mark=False, trim=False)
    flow = Flow(wire)
    for via in (0, 1, 2):
        wire.links[1, f"p1s{via}"].up = False
    flow.post(100_000, times=40)
    flow.finish()
    flow.wire.run(wire.now_ns + 20 * wire.base_rtt_ns)
    before = sent_per_plane(flow)
    flow.post(100_000, times=40)
    run(wire, flow)
    shares = sent_per_plane(flow) - before
    assert max(shares.values()) - min(shares.values()) <= 0.05 * max(shares.values())
    assert flow.qp.evs.out_count == 3


@pytest.mark.parametrize(("host", "peer", "port"), [("h0", "h1", 3), ("h1", "h0", 2)])
def test_a_plane_is_left_when_a_port_at_either_end_goes_down_and_returned_to(host: str, peer: str, port: int) -> None:
    """Its own the host leaves at once, the peer's when it is told."""
    wire = Wire()
    told_ns = 0 if host == "h0" else 2 * wire.base_rtt_ns
    flow = Flow(wire)
    flow.post(100_000, times=200)
    wire.run(10 * wire.base_rtt_ns)
    wire.set_port(host, port, False)
    wire.run(wire.now_ns + told_ns)
    before = sent_per_plane(flow)
    wire.run(wire.now_ns + 20 * wire.base_rtt_ns)
    during = sent_per_plane(flow) - before
    assert during.pop(port - 1, 0) == 0
    assert min(during.values()) > 10
    wire.set_port(host, port, True)
    wire.run(wire.now_ns + told_ns)
    before = sent_per_plane(flow)
    run(wire, flow)
    after = sent_per_plane(flow) - before
    assert after[port - 1] >= 0.8 * after[0]
    flow.check()
    assert flow.qp.evs.out_count == 0  # a known port failure blames no EV
    events = [line.split(" ", 1)[1] for line in wire.journal if " plane " in line]
    expected = []
    for state in ("down", "up"):
        for who, side, of, cause in ((host, "local", None, "carrier"), (peer, "peer", host, "port_status_update")):
            fields = {"plane": port - 1, "side": side, "peer": of, "state": state, "cause": cause}
            expected.append(f"{who} plane {fields}")
    assert events == expected


def test_a_port_status_update_goes_out_on_every_live_plane_and_is_repeated_as_a_new_request_until_answered() -> None:
    bench = Bench(planes=4)
    bench.a.port_changed(2, False, bench.now_ns)
    first = bench.out(bench.a, Opcode.ENDPOINT_REQUEST)
    assert sorted(packet.port for packet in first) == [1, 3, 4]
    assert {packet.erth.op for packet in first} == {EndpointOp.PORT_STATUS_UPDATE}
    assert {packet.erth.port_status_mask for packet in first} == {0b1101}
    assert {packet.bth.dest_qpn for packet in first} == {2}
    ids = {packet.psn for packet in first}
    assert len(ids) == 1
    bench.later(3)
    second = bench.out(bench.a, Opcode.ENDPOINT_REQUEST)
    assert len(second) == 3
    assert ids.isdisjoint(packet.psn for packet in second)
    bench.to_b(*second)
    answers = bench.answers(Opcode.ENDPOINT_RESPONSE)
    assert len(answers) == 3
    assert bench.qp_b.reachable == 0b1101
    bench.to_a(answers[0])
    bench.later(20)
    assert bench.out(bench.a, Opcode.ENDPOINT_REQUEST) == []


def test_an_overtaken_port_status_update_changes_nothing() -> None:
    bench = Bench(planes=4)
    bench.a.port_changed(2, False, bench.now_ns)
    old = bench.out(bench.a, Opcode.ENDPOINT_REQUEST)
    bench.a.port_changed(2, True, bench.now_ns)
    new = bench.out(bench.a, Opcode.ENDPOINT_REQUEST)
    bench.to_b(new[0])
    assert bench.qp_b.reachable == 0b1111
    bench.to_b(*old)
    assert bench.qp_b.reachable == 0b1111


def foreign_update(bench: Bench, request_id: int, ports: int) -> Packet:
    """A port status update of `a` to `b`, as another implementation may number its requests."""
    peer = bench.a.peers.named("h1")
    peer._request(peer.routes[0], request_id, EndpointOp.PORT_STATUS_UPDATE, ports)
    (packet,) = bench.out(bench.a, Opcode.ENDPOINT_REQUEST)
    return packet


@pytest.mark.parametrize("second", [30_000, 40_001, 0, 65_535, 7_233, 7_231])
def test_ids_of_port_status_updates_need_to_be_unique_only(second: int) -> None:
    """The API asks no more of them: a peer that starts anew, or draws them at random, is heard at once."""
    bench = Bench(planes=4)
    bench.to_b(foreign_update(bench, 40_000, 0b1111))
    bench.answers()
    bench.to_b(foreign_update(bench, second, 0b1101))
    assert bench.qp_b.reachable == 0b1101
    assert len(bench.answers(Opcode.ENDPOINT_RESPONSE)) == 1


def test_a_process_that_starts_anew_does_not_use_the_ids_of_the_one_before() -> None:
    def ids(seed: int) -> set[int]:
        endpoint = Endpoint(profiles.parse(profile_data(0)), rng=Random(seed), now_ns=0)
        endpoint.create_qp(endpoint.create_cq(1)).connect(QPInfo("h1", 1, 0, 8, 8), 0)
        found: set[int] = set()
        for flap in range(20):
            endpoint.port_changed(2, bool(flap % 2), 0)
            found |= {Packet(port, frame).psn for port, frame in endpoint.packets_to_send(0, 64)}
        assert len(found) == 20
        return found

    assert ids(1).isdisjoint(ids(2))


def told_of_port_2(answered: bool = True) -> Bench:
    """Port 2 of `a` is down, `b` has heard of it, and `a` has its answer."""
    bench = Bench(planes=4)
    bench.a.port_changed(2, False, bench.now_ns)
    bench.to_b(*bench.out(bench.a, Opcode.ENDPOINT_REQUEST))
    assert bench.qp_b.reachable == 0b1101
    if answered:
        bench.to_a(*bench.answers(Opcode.ENDPOINT_RESPONSE))
    return bench


def test_an_answer_to_an_update_of_the_process_before_makes_a_host_tell_its_ports_again() -> None:
    """The peer has heeded an update that this process did not send, perhaps after ours."""
    bench = told_of_port_2()
    bench.wait(20)
    stray = foreign_update(bench, 12_345, 0b1111)
    bench.to_b(stray)
    assert bench.qp_b.reachable == 0b1111
    bench.to_a(*bench.answers(Opcode.ENDPOINT_RESPONSE))
    bench.later(3)
    bench.to_b(*bench.out(bench.a, Opcode.ENDPOINT_REQUEST))
    assert bench.qp_b.reachable == 0b1101
    bench.to_a(*bench.answers(Opcode.ENDPOINT_RESPONSE))
    bench.later(20)
    assert bench.out(bench.a, Opcode.ENDPOINT_REQUEST) == []


def test_a_port_status_update_is_heeded_however_many_probes_went_before() -> None:
    bench = told_of_port_2()
    for _ in range(40_000):  # more than half of the request ids
        bench.qp_a.probe_ev(bench.qp_a.peer.routes[0])
    bench.out(bench.a)
    bench.a.port_changed(2, True, bench.now_ns)
    bench.to_b(*bench.out(bench.a, Opcode.ENDPOINT_REQUEST))
    assert bench.qp_b.reachable == 0b1111


@pytest.mark.parametrize("heard", [True, False])
def test_a_port_that_came_back_while_no_qp_was_there_is_told_to_the_next(heard: bool) -> None:
    bench = told_of_port_2(answered=heard)
    bench.a.destroy_qp(bench.qp_a, bench.now_ns)
    bench.a.port_changed(2, True, bench.now_ns)
    bench.timers()
    qp = bench.a.create_qp(bench.cq_a)
    qp.connect(bench.qp_b.info(), bench.now_ns)
    bench.to_b(*bench.out(bench.a, Opcode.ENDPOINT_REQUEST))
    assert bench.qp_b.reachable == 0b1111
    bench.to_a(*bench.answers(Opcode.ENDPOINT_RESPONSE))
    bench.later(20)
    assert bench.out(bench.a, Opcode.ENDPOINT_REQUEST) == []


def test_a_host_that_started_anew_is_told_again_which_port_is_down() -> None:
    bench, fresh = told_of_port_2(), Bench(planes=4)
    qp = bench.a.create_qp(bench.cq_a)
    qp.connect(fresh.qp_b.info(), bench.now_ns)
    fresh.to_b(*bench.out(bench.a, Opcode.ENDPOINT_REQUEST))
    assert fresh.qp_b.reachable == 0b1101


@pytest.mark.parametrize("end", ["destroyed", "error"])
def test_what_a_host_said_of_its_ports_is_forgotten_with_the_last_qp_to_it(end: str) -> None:
    """It may have started anew with all ports up, and then says nothing; what is still down it says to every new QP."""
    bench, fresh = told_of_port_2(answered=False), Bench(planes=4)
    other = bench.b.create_qp(bench.cq_b)
    other.connect(bench.qp_a.info(), bench.now_ns)
    for qp in (other, bench.qp_b):
        assert bench.qp_b.reachable == 0b1101
        if end == "destroyed":
            bench.b.destroy_qp(qp, bench.now_ns)
        else:
            qp.modify(QPState.ERROR, bench.now_ns)
    if end == "error":
        bench.b.destroy_qp(other, bench.now_ns)  # counts once only
    qp = bench.b.create_qp(bench.cq_b)
    qp.connect(fresh.qp_a.info(), bench.now_ns)
    assert qp.reachable == 0b1111
    assert qp.peer.users == 1


def test_an_answer_from_another_host_refreshes_no_reverse_ev_and_takes_no_probe_away() -> None:
    wire = Wire(hosts=3)
    flow = Flow(wire)
    h1 = wire.transports["h1"]
    route = h1.peers.named("h0").routes[3]
    flow.remote.probe_ev(route)
    operations = h1._operations
    request_id = operations._request_id
    h2 = wire.transports["h2"]
    request = Erth(EndpointOp.EV_PROBE)
    h2.peers.named("h1").respond(h2.ports[0], 0, 0b1111, request_id, request)
    ((port, forged),) = h2.packets_to_send(wire.now_ns, 8)
    h1.receive(port, [forged], wire.now_ns)
    assert flow.remote.reverse.routes[route.port.number] is not route
    assert request_id in operations._probes


def test_an_answer_to_what_was_true_before_and_is_again_does_not_end_the_announcement() -> None:
    """Down, up, down: the peer has heard the first two only."""
    bench = Bench(planes=4)
    bench.a.port_changed(2, False, bench.now_ns)
    bench.to_b(bench.out(bench.a, Opcode.ENDPOINT_REQUEST)[0])
    late = bench.answers(Opcode.ENDPOINT_RESPONSE)
    bench.a.port_changed(2, True, bench.now_ns)
    bench.to_b(bench.out(bench.a, Opcode.ENDPOINT_REQUEST)[0])
    bench.answers()
    bench.a.port_changed(2, False, bench.now_ns)
    bench.out(bench.a)
    bench.to_a(*late)
    assert bench.qp_b.reachable == 0b1111
    bench.later(3)
    bench.to_b(*bench.out(bench.a, Opcode.ENDPOINT_REQUEST))
    assert bench.qp_b.reachable == 0b1101


def test_a_port_status_update_is_heeded_and_answered_only_where_there_is_a_qp() -> None:
    """A late one of a process that is gone would otherwise stay."""
    bench = Bench(planes=4)
    bench.b.destroy_qp(bench.qp_b, bench.now_ns)
    bench.a.port_changed(2, False, bench.now_ns)
    bench.to_b(*bench.out(bench.a, Opcode.ENDPOINT_REQUEST))
    assert bench.answers() == []
    qp = bench.b.create_qp(bench.cq_b)
    qp.connect(bench.qp_a.info(), bench.now_ns)
    assert qp.reachable == 0b1111
    bench.later(3)
    bench.to_b(*bench.out(bench.a, Opcode.ENDPOINT_REQUEST))
    assert qp.reachable == 0b1101


def test_the_qp_lives_on_one_plane_of_four_and_dies_by_the_retry_rule_on_none() -> None:
    wire = Wire(retry_exponential=7)
    flow = Flow(wire)
    flow.post(100_000, times=50)
    for number, port in enumerate((1, 2, 3)):
        wire.at((number + 2) * wire.base_rtt_ns, lambda port=port: wire.set_port("h0", port, False))
    flow.finish()
    flow.post(100_000)
    wire.set_port("h0", 4, False)
    wire.run(wire.now_ns + 100_000 * wire.base_rtt_ns, stop=lambda: flow.finished)
    assert flow.qp.state is QPState.ERROR
    flow.poll()
    assert "no answer after 14 retries" in flow.qp.cause
    assert flow.statuses[50].value == "retry_exceeded"


def test_a_write_posted_while_every_port_is_down_ends_by_the_retry_rule_or_goes_out_when_one_returns() -> None:
    for returns in (False, True):
        wire = Wire(retry_exponential=7)
        flow = Flow(wire)
        for port in (1, 2, 3, 4):
            wire.set_port("h0", port, False)
        flow.post(10_000)
        wire.kick("h0")
        if returns:
            wire.at(50 * wire.base_rtt_ns, lambda wire=wire: wire.set_port("h0", 3, True))
        wire.run(100_000 * wire.base_rtt_ns, stop=lambda flow=flow: flow.finished)
        flow.poll()
        assert flow.statuses[0].value == ("success" if returns else "retry_exceeded")


def test_a_dead_path_is_left_and_comes_back_by_probes() -> None:
    wire = Wire()
    flow = Flow(wire)
    flow.keep_posted(50_000, 16, 2000 * wire.base_rtt_ns)
    wire.run(20 * wire.base_rtt_ns)
    dead = wire.links[2, "p2s5"]
    dead.up = False
    wire.run(wire.now_ns + 50 * wire.base_rtt_ns)
    path = flow.qp.evs.paths[2 << 16 | 5]
    assert path.state.value == "assumed_bad"
    dropped = dead.dropped
    sent = path.sent
    wire.run(wire.now_ns + 100 * wire.base_rtt_ns)
    assert path.sent == sent  # probes only
    assert dead.dropped > dropped
    dead.up = True
    wire.run(wire.now_ns + 60 * wire.base_rtt_ns)
    assert path.state.value in ("good", "skip")
    wire.run(wire.now_ns + 60 * wire.base_rtt_ns)
    assert path.sent > sent
    causes = [line.split("'cause': ")[1] for line in wire.journal if " ev " in line]
    assert causes == ["'loss'}", "'probed'}"]


def test_an_answer_goes_back_as_its_packet_came_until_a_way_back_is_confirmed() -> None:
    bench = Bench(evs_per_plane=8)
    reverse = bench.qp_b.reverse
    port = bench.b.ports[0]
    guess = reverse.routes[port.number]
    came, confirmed = [route for route in bench.qp_b.peer.routes if route.port is port and route is not guess][:2]
    assert reverse.choose(port, came.ev) is came
    reverse.confirm(confirmed)
    assert reverse.choose(port, came.ev) is confirmed


def test_a_qp_that_only_receives_keeps_its_reverse_evs_fresh_by_probes() -> None:
    wire = Wire()
    flow = Flow(wire)
    flow.keep_posted(50_000, 16, 2000 * wire.base_rtt_ns)
    wire.run(5 * wire.base_rtt_ns)
    first = {number: route.ev for number, route in flow.remote.reverse.routes.items()}
    assert sorted(first) == [1, 2, 3, 4]
    wire.run(wire.now_ns + 100 * wire.base_rtt_ns)
    second = {number: route.ev for number, route in flow.remote.reverse.routes.items()}
    assert all(first[number] != second[number] for number in first) or first != second
    assert flow.remote.requester.data_packets == 0


def test_acknowledged_data_refreshes_the_reverse_evs() -> None:
    bench = Bench(sack_threshold_bytes=0)
    sent = bench.write(20)
    last = {}
    for packet in sent:
        bench.to_b(packet)
        bench.to_a(*bench.answers(Opcode.SACK))
        last[packet.port] = packet.ev
    assert {number: route.ev for number, route in bench.qp_a.reverse.routes.items()} == last


def test_dead_reverse_paths_are_replaced_and_cost_little() -> None:
    wire = Wire()
    flow = Flow(wire)
    flow.keep_posted(50_000, 16, 10_000 * wire.base_rtt_ns)
    wire.run(5 * wire.base_rtt_ns)

    def kill_return(number: int) -> None:
        route = flow.remote.reverse.routes[number]
        wire.links[number - 1, f"p{number - 1}s{route.ev & 0xFFFF}"].up = False

    for number in (1, 2):
        kill_return(number)
    wire.run(wire.now_ns + 300 * wire.base_rtt_ns)
    for number in (1, 2):
        route = flow.remote.reverse.routes[number]
        assert wire.links[number - 1, f"p{number - 1}s{route.ev & 0xFFFF}"].up
    assert flow.qp.state is QPState.RTS
    assert flow.qp.requester.timeouts == 0


@pytest.mark.parametrize("live", range(4))
def test_a_qp_starts_although_every_reverse_ev_that_was_chosen_is_dead(live: int) -> None:
    """Dead from the first packet on, in both directions; one path a plane is left."""
    wire = Wire(evs_per_plane=4)
    for plane in range(4):
        for via in range(4):
            wire.links[plane, f"p{plane}s{via}"].up = via == (live + plane) % 4
    flow = Flow(wire)
    for qp in (flow.qp, flow.remote):
        dead = [route for route in qp.peer.routes if not wire.links[route.port.plane, str(route.via)].up]
        qp.reverse.routes = {route.port.number: route for route in dead}
    flow.keep_posted(50_000, 8, 400 * wire.base_rtt_ns)
    wire.run(300 * wire.base_rtt_ns)
    assert flow.qp.state is QPState.RTS
    assert flow.qp.requester.acked_bytes > 1_000_000


def test_denied_evs_are_not_used_by_present_and_future_qps() -> None:
    wire = Wire(evs_per_plane=2)
    flow = Flow(wire)
    denied = {("h1", 0), ("h1", 1 << 16 | 1)}
    wire.transports["h0"].set_denied(denied, wire.now_ns)
    other = Flow(wire, seed=9)
    for _ in range(10):
        flow.post(50_000)
        other.post(50_000)
    run(wire, flow, other)
    for one in (flow, other):
        one.check()
        assert {ev for _, ev in denied}.isdisjoint(one.qp.paths())
    wire.transports["h0"].set_denied(set(), wire.now_ns)
    flow.post(50_000, times=10)
    run(wire, flow)
    assert {ev for _, ev in denied} <= set(flow.qp.paths())
    assert wire.transports["h0"].denied() == set()


@pytest.mark.parametrize("seed", range(4))
def test_what_was_lost_goes_by_another_plane(seed: int) -> None:
    """A hunt found writes of one packet that met the same dead plane four times in a row, 0.4 s each time."""
    wire = Wire(planes=2, evs_per_plane=8, seed=seed, retransmit_plane="other")
    flow = Flow(wire)
    flow.post(4096)
    run(wire, flow)
    for (plane, _), link in wire.links.items():
        link.up = plane != 1
    copies = []
    for _ in range(16):
        before = flow.qp.requester.retransmits
        flow.post(4096)
        run(wire, flow)
        copies.append(flow.qp.requester.retransmits - before)
    flow.check()
    assert max(copies) == 1
    assert sum(copies) >= 2, "or nothing was lost"
    assert flow.qp.requester.timeouts == 0
