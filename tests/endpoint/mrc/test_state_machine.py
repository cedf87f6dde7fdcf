"""Hypothesis drives a pair of hosts: posts, breaks, waits and heals in any order, with the model beside it.

The model is the list of what was posted. After every step nothing may have completed twice and nothing outside of the
region may have changed; at the end everything heals and must complete.
"""

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from endpoint.mrc.paths.ev_state import SENDABLE
from endpoint.transport import QPState
from tests.helpers.transport import Faults, Flow, Wire

SHARES = st.floats(0.0, 0.5)
HOSTS = st.sampled_from(["h0", "h1"])


class TwoHosts(RuleBasedStateMachine):
    @initialize(
        seed=st.integers(0, 2**16),
        planes=st.sampled_from([1, 2, 4]),
        evs=st.sampled_from([1, 3, 8]),
        jitter=st.sampled_from([0, 20]),
        selection=st.sampled_from(["mrc", "mrc", "mrc", "oblivious", "single_path"]),
    )
    def build(self, seed: int, planes: int, evs: int, jitter: int, selection: str) -> None:
        self.wire = Wire(seed=seed, planes=planes, evs_per_plane=evs, rate_bps=50_000_000_000, jitter_ns=jitter * 1000)
        self.flows = [
            Flow(self.wire, psn=2**24 - 20, selection=selection),
            Flow(self.wire, "h1", "h0", seed=8, selection=selection),
        ]
        self.rates = {key: link.rate_bps for key, link in self.wire.links.items()}
        self.broken_since: int | None = None

    def _link(self, number: int) -> object:
        keys = list(self.wire.links)
        return keys[number % len(keys)]

    @rule(which=st.integers(0, 1), length=st.sampled_from([0, 1, 4097, 40_000, 150_000]), immediate=st.booleans())
    def post(self, which: int, length: int, immediate: bool) -> None:
        flow = self.flows[which]
        flow.post(length, immediate=len(flow.posted) if immediate else None)
        self.wire.kick(flow.src)

    @rule(round_trips=st.floats(0.05, 5.0))
    def wait(self, round_trips: float) -> None:
        self._bounded_outage()
        self.wire.run(self.wire.now_ns + int(round_trips * self.wire.base_rtt_ns))

    @rule(number=st.integers(0, 99), loss=SHARES, duplicate=SHARES, reorder=SHARES, corrupt=SHARES)
    def disturb(self, number: int, loss: float, duplicate: float, reorder: float, corrupt: float) -> None:
        self._break()
        link = self.wire.links[self._link(number)]  # type: ignore[index]
        link.faults = Faults(loss, duplicate, reorder, 3 * self.wire.base_rtt_ns, corrupt)

    @rule(number=st.integers(0, 99))
    def kill_link(self, number: int) -> None:
        self._break()
        self.wire.links[self._link(number)].up = False  # type: ignore[index]

    @rule(number=st.integers(0, 99), trim=st.sampled_from([4_500, 20_000]), mark=st.sampled_from([0, 1]))
    def congest(self, number: int, trim: int, mark: int) -> None:
        link = self.wire.links[self._link(number)]  # type: ignore[index]
        link.trim_bytes, link.mark_bytes, link.rate_bps = trim, mark, 10_000_000_000

    @rule(host=HOSTS, number=st.integers(0, 99))
    def flap(self, host: str, number: int) -> None:
        self._break()
        port = 1 + number % len(self.wire.profiles[host].ports)
        self.wire.set_port(host, port, not self.wire.host_up[host, port])

    @rule(host=HOSTS, round_trips=st.floats(0.1, 3.0))
    def deschedule(self, host: str, round_trips: float) -> None:
        self.wire.sleep(host, self.wire.now_ns + int(round_trips * self.wire.base_rtt_ns))

    @rule(host=HOSTS, picks=st.lists(st.integers(0, 299), min_size=1, max_size=20))
    def replay(self, host: str, picks: list[int]) -> None:
        """Somebody sends frames again that have arrived before: writes, SACKs, NACKs, probes, port status updates."""
        heard = list(self.wire.heard[host])
        for pick in picks[: len(heard)]:
            port, frame = heard[pick % len(heard)]
            self.wire.transports[host].receive(port, [frame], self.wire.now_ns)
        self.wire.kick(host)

    @rule(host=HOSTS, evs=st.sets(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=4))
    def deny(self, host: str, evs: set[tuple[int, int]]) -> None:
        """A controller denies EVs, but leaves every plane one."""
        self._break()
        peer = "h1" if host == "h0" else "h0"
        denied = {(peer, plane << 16 | spine) for plane, spine in evs if spine}
        self.wire.transports[host].set_denied(denied, self.wire.now_ns)
        self.wire.kick(host)

    @rule()
    def heal(self) -> None:
        for key, link in self.wire.links.items():
            link.up, link.faults, link.rate_bps = True, Faults(), self.rates[key]
            link.trim_bytes = link.mark_bytes = 0
        for (host, port), up in list(self.wire.host_up.items()):
            if not up:
                self.wire.set_port(host, port, True)
        self.broken_since = None

    def _break(self) -> None:
        if self.broken_since is None:
            self.broken_since = self.wire.now_ns

    def _bounded_outage(self) -> None:
        """The retry rule ends a QP after a long outage, rightly; here outages stay short of it."""
        if self.broken_since is not None and self.wire.now_ns - self.broken_since > 25 * self.wire.base_rtt_ns:
            self.heal()

    @invariant()
    def the_books_balance(self) -> None:
        """What is counted as it happens is what a count of everything gives."""
        for flow in getattr(self, "flows", []):
            requester, evs = flow.qp.requester, flow.qp.evs
            inflight = 0
            for psn in range(requester.flight.una, requester.flight.nxt):
                if not (requester.flight.acked | requester.flight.lost) >> (psn - requester.flight.una) & 1:
                    inflight += requester.flight.sizes[psn & requester.flight.mask]
            assert requester.flight.inflight_bytes == inflight
            assert not requester.flight.acked & requester.flight.lost
            assert evs.out_count == sum(len(plane.out) for plane in evs.planes)
            for plane in evs.planes:
                assert all(path.state in SENDABLE for path in [*plane.active, *plane.backups])
                assert not any(path.state in SENDABLE for path in plane.out)
                assert len(plane.active) <= plane.quota
            responder = flow.remote.responder
            assert requester.flight.una <= responder.epsn <= requester.flight.nxt
            assert responder.bitmap & 1 == 0
            assert responder.bitmap.bit_length() <= requester.flight.nxt - responder.epsn

    @invariant()
    def nothing_is_done_twice_or_out_of_place(self) -> None:
        for flow in getattr(self, "flows", []):
            flow.poll()  # asserts that no message completes twice
            assert flow.guard == bytes(64)
            assert (
                flow.immediates
                == [n for n in sorted(flow.posted) if flow.posted[n][2] is not None][: len(flow.immediates)]
            )
            requester = flow.qp.requester
            assert 0 <= requester.flight.nxt - requester.flight.una <= 64 * 128
            assert requester.flight.inflight_bytes >= 0

    def teardown(self) -> None:
        if not hasattr(self, "wire"):
            return
        self.heal()
        self.wire.run(
            self.wire.now_ns + 200 * self.wire.base_rtt_ns, stop=lambda: all(flow.finished for flow in self.flows)
        )
        for flow in self.flows:
            assert flow.qp.state is QPState.RTS, flow.qp.cause
            assert flow.finished, flow.qp.counters()
            flow.check()
            assert flow.qp.requester.flight.inflight_bytes == 0


TestTwoHosts = pytest.mark.smoke(TwoHosts.TestCase)
TestTwoHosts.settings = settings(max_examples=80, stateful_step_count=40, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
def test_two_hosts_keep_the_rules_in_hundreds_of_stories() -> None:
    run_state_machine_as_test(TwoHosts, settings=settings(TestTwoHosts.settings, max_examples=600))
