"""What two hosts know of each other's ports, while QPs come and go, ports flap, frames get lost and hosts start anew.

The model is the carrier of every port. In the end, when frames arrive again, each host must know the other's ports and
reach it by every plane that is up on both sides.
"""

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from endpoint.mrc.endpoint import Endpoint
from tests.helpers.transport import Faults, Flow, Wire

PLANES = 3
HOSTS = ["h0", "h1"]
SHARES = st.sampled_from([0.0, 0.1, 0.5])


class Acquaintances(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 2**16))
    def build(self, seed: int) -> None:
        self.seed = seed
        self.wire = Wire(seed=seed, planes=PLANES, evs_per_plane=2, rate_bps=50_000_000_000)
        self.flows: list[Flow] = []
        self.orphans: list[tuple[str, Any]] = []
        """QPs whose other end is gone, with their hosts."""

    def _nic(self, host: str) -> Any:
        return self.wire.transports[host]

    @precondition(lambda self: len(self.flows) < 3)
    @rule(one_way=st.booleans())
    def open(self, one_way: bool) -> None:
        self._bury()
        source, target = HOSTS if one_way else HOSTS[::-1]
        self.flows.append(Flow(self.wire, source, target, size=1 << 16, seed=len(self.flows)))
        for host in HOSTS:
            self.wire.kick(host)

    @precondition(lambda self: self.flows)
    @rule(which=st.integers(0, 9), first=st.booleans(), round_trips=st.floats(0.0, 5.0))
    def close(self, which: int, first: bool, round_trips: float) -> None:
        """The two ends go one after the other."""
        flow = self.flows.pop(which % len(self.flows))
        ends = [(flow.src, flow.qp), (flow.dst, flow.remote)]
        for host, qp in ends if first else ends[::-1]:
            self._nic(host).destroy_qp(qp, self.wire.now_ns)
            self.wire.run(self.wire.now_ns + int(round_trips * self.wire.base_rtt_ns))

    @rule(host=st.sampled_from(HOSTS), port=st.integers(1, PLANES))
    def flap(self, host: str, port: int) -> None:
        self.wire.set_port(host, port, not self.wire.host_up[host, port])

    @rule(loss=SHARES, duplicate=SHARES, reorder=SHARES)
    def disturb(self, loss: float, duplicate: float, reorder: float) -> None:
        for link in self.wire.links.values():
            link.faults = Faults(loss, duplicate, reorder, self.wire.base_rtt_ns, 0.0)

    @rule(host=st.sampled_from(HOSTS), at_once=st.booleans())
    def start_anew(self, host: str, at_once: bool) -> None:
        """The host's process is killed and started again, which takes longer than any frame does; whoever used it
        notices at once, or when it makes new QPs."""
        other = HOSTS[1 - HOSTS.index(host)]
        for flow in self.flows:
            qp = flow.qp if flow.src == other else flow.remote
            self.orphans.append((other, qp))
        self.orphans = [(owner, qp) for owner, qp in self.orphans if owner != host]
        self.flows = []
        if at_once:
            self._bury()
        starts_ns = self.wire.now_ns + 5 * self.wire.base_rtt_ns
        self.wire.sleep(host, starts_ns)
        self.wire.run(starts_ns - 1)
        self.wire._inbox[host] = []
        self.seed += 1
        nic = self.wire.profiles[host]
        self.wire.transports[host] = Endpoint(nic, rng=Random(self.seed), now_ns=self.wire.now_ns)
        for port in range(1, PLANES + 1):
            if not self.wire.host_up[host, port]:
                self._nic(host).port_changed(port, False, self.wire.now_ns)
        self.wire.kick(host)

    @rule(round_trips=st.floats(0.05, 30.0))
    def wait(self, round_trips: float) -> None:
        self.wire.run(self.wire.now_ns + int(round_trips * self.wire.base_rtt_ns))

    def _bury(self) -> None:
        for owner, qp in self.orphans:
            self._nic(owner).destroy_qp(qp, self.wire.now_ns)
        self.orphans = []

    def teardown(self) -> None:
        if not hasattr(self, "wire"):
            return
        for link in self.wire.links.values():
            link.faults = Faults()
        self._bury()
        self.flows.append(Flow(self.wire, size=1 << 16))
        for host in HOSTS:
            self.wire.kick(host)
        # After a new start ids may have to catch up with flaps that came faster than the clock: two round trips each.
        self.wire.run(self.wire.now_ns + 120 * self.wire.base_rtt_ns)
        up = {
            host: sum(1 << port - 1 for (name, port), is_up in self.wire.host_up.items() if name == host and is_up)
            for host in HOSTS
        }
        common = up["h0"] & up["h1"]
        if common:
            for host, other in (HOSTS, HOSTS[::-1]):
                peer = self._nic(host).peers.named(other)
                assert peer.ports & (1 << PLANES) - 1 == up[other], f"{host} knows {peer.ports:b} of {other}"
                assert {qp.reachable for qp in self._nic(host).qps.values()} == {common}
                assert peer.users == len(self._nic(host).qps)
                assert not peer.asked or peer.due_ns > self.wire.now_ns


def test_two_hosts_with_news_for_each_other_by_ports_that_are_dead_find_the_live_one() -> None:
    """Each thinks only that port of the other alive which has just died."""
    hosts = Acquaintances()
    hosts.build(seed=1)
    hosts.open(one_way=False)
    for host in HOSTS:
        hosts.flap(host, 1)
    hosts.wait(10.0)
    for host, lost in zip(HOSTS, (3, 2), strict=True):
        hosts.flap(host, lost)
        hosts.flap(host, 1)
    hosts.teardown()


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("flapped", [False, True])
def test_what_is_forgotten_with_the_last_qp_is_asked_for_with_the_next(restarted: bool, flapped: bool) -> None:
    """The peer tells of a dead port once: when its end of the second queue pair is made, before the first is gone."""
    wire = Wire(planes=PLANES, evs_per_plane=2)
    near, far = wire.transports["h0"], wire.transports["h1"]
    wire.set_port("h1", 2, False)
    flow = Flow(wire)
    qp, other = near.create_qp(near.create_cq(9)), far.create_qp(far.create_cq(9))
    other.connect(qp.info(), wire.now_ns)
    wire.run(wire.now_ns + 10 * wire.base_rtt_ns)
    assert flow.qp.reachable == 0b101
    near.destroy_qp(flow.qp, wire.now_ns)
    if flapped:
        wire.set_port("h0", 3, False)
    if restarted:
        wire.set_port("h1", 2, True)
        far = wire.transports["h1"] = Endpoint(wire.profiles["h1"], rng=Random(5), now_ns=wire.now_ns)
        other = far.create_qp(far.create_cq(9))
    qp.connect(other.info(), wire.now_ns)
    if restarted:
        other.connect(qp.info(), wire.now_ns)
    wire.run(wire.now_ns + 10 * wire.base_rtt_ns)
    up = (0b111 if restarted else 0b101) & (0b011 if flapped else 0b111)
    assert (qp.reachable, other.reachable) == (up, up)
    assert not wire.transports["h0"].peers.named("h1").asked


def test_an_answer_that_comes_when_no_queue_pair_is_left_is_forgotten_as_well() -> None:
    """The peer may start anew with all ports up, and then says nothing."""
    wire = Wire(planes=PLANES, evs_per_plane=2)
    near, far = wire.transports["h0"], wire.transports["h1"]
    wire.set_port("h1", 2, False)
    flow = Flow(wire)
    wire.run(wire.now_ns + 10 * wire.base_rtt_ns)
    near.destroy_qp(flow.qp, wire.now_ns)
    peer = near.peers.named("h1")
    asking, other = near.create_qp(near.create_cq(9)), far.create_qp(far.create_cq(9))
    other.connect(asking.info(), wire.now_ns)
    asking.connect(other.info(), wire.now_ns)
    assert peer.asked
    wire.kick("h0")
    near.destroy_qp(asking, wire.now_ns)
    wire.run(wire.now_ns + 10 * wire.base_rtt_ns)
    assert not peer.asked
    wire.set_port("h1", 2, True)
    wire.transports["h1"] = Endpoint(wire.profiles["h1"], rng=Random(5), now_ns=wire.now_ns)
    assert Flow(wire).qp.reachable == 0b111


TestAcquaintances = Acquaintances.TestCase
TestAcquaintances.settings = settings(max_examples=150, stateful_step_count=40, suppress_health_check=list(HealthCheck))
