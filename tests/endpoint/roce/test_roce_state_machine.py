"""Hypothesis drives the baseline over the virtual wire: loss, reordering, duplication, corruption, ECN, outages, flaps.

The model is the list of what was posted. Go-back-N with seven retries may rightly give up where much is lost; so each
message completes exactly once, and either well, or because its QP ended by the retry rule. Whatever happens, memory
holds what was written, byte for byte: a packet's place is as written or untouched, and nothing else changes.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from endpoint.transport import CompletionStatus, QPState
from tests.helpers.transport import Faults, Flow, roce_wire

SHARES = st.sampled_from([0.0, 0.01, 0.1, 0.3])
HOSTS = st.sampled_from(["h0", "h1"])
PMTU = 4096


class TwoBaselineHosts(RuleBasedStateMachine):
    @initialize(
        seed=st.integers(0, 2**16),
        spines=st.sampled_from([1, 4]),
        jitter=st.sampled_from([0, 20_000]),
        dcqcn=st.booleans(),
        psn=st.sampled_from([0, 2**24 - 20]),
        selective=st.booleans(),
    )
    def build(self, seed: int, spines: int, jitter: int, dcqcn: bool, psn: int, selective: bool) -> None:
        own = {"jitter_ns": jitter, "dcqcn": dcqcn, "selective_repeat": selective}
        self.wire = roce_wire(seed=seed, evs_per_plane=spines, rate_bps=50_000_000_000, **own)
        self.flows = [Flow(self.wire, psn=psn, size=4 << 20), Flow(self.wire, "h1", "h0", seed=8, size=4 << 20)]
        self.rates = {key: link.rate_bps for key, link in self.wire.links.items()}

    def _link(self, number: int) -> Any:
        return list(self.wire.links.values())[number % len(self.wire.links)]

    def _alive(self) -> bool:
        return all(flow.qp.state is flow.remote.state is QPState.RTS for flow in self.flows)

    @precondition(_alive)
    @rule(
        which=st.integers(0, 1),
        messages=st.lists(
            st.tuples(st.sampled_from([0, 1, 4096, 5000, 40_000, 100_000]), st.booleans()), min_size=1, max_size=8
        ),
    )
    def post(self, which: int, messages: list[tuple[int, bool]]) -> None:
        flow = self.flows[which]
        for length, immediate in messages:
            flow.post(length, immediate=len(flow.posted) if immediate else None)
        self.wire.kick(flow.src)

    @rule(round_trips=st.floats(0.05, 5.0) | st.floats(5.0, 80.0))
    def wait(self, round_trips: float) -> None:
        self.wire.run(self.wire.now_ns + int(round_trips * self.wire.base_rtt_ns))

    @rule(loss=SHARES, duplicate=SHARES, reorder=SHARES, corrupt=SHARES)
    def disturb(self, loss: float, duplicate: float, reorder: float, corrupt: float) -> None:
        for link in self.wire.links.values():
            link.faults = Faults(loss, duplicate, reorder, 3 * self.wire.base_rtt_ns, corrupt)

    @rule(number=st.integers(0, 99))
    def kill_link(self, number: int) -> None:
        self._link(number).up = False

    @rule(number=st.integers(0, 99), depth=st.sampled_from([10_000, 100_000]))
    def congest(self, number: int, depth: int) -> None:
        """Marks every packet that waits, and drops at the tail."""
        link = self._link(number)
        link.mark_bytes, link.depth_bytes, link.rate_bps = 1, depth, 10_000_000_000

    @rule(host=HOSTS)
    def flap(self, host: str) -> None:
        self.wire.set_port(host, 1, not self.wire.host_up[host, 1])

    @rule(host=HOSTS, round_trips=st.floats(0.1, 3.0))
    def deschedule(self, host: str, round_trips: float) -> None:
        self.wire.sleep(host, self.wire.now_ns + int(round_trips * self.wire.base_rtt_ns))

    @rule()
    def heal(self) -> None:
        for key, link in self.wire.links.items():
            link.up, link.faults, link.rate_bps = True, Faults(), self.rates[key]
            link.mark_bytes, link.depth_bytes = 0, 1 << 30
        for (host, port), up in list(self.wire.host_up.items()):
            if not up:
                self.wire.set_port(host, port, True)

    @invariant()
    def nothing_is_done_twice_or_out_of_order(self) -> None:
        for flow in getattr(self, "flows", []):
            flow.poll()  # asserts that no message completes twice
            wanted = [immediate for _, _, immediate in flow.posted.values() if immediate is not None]
            assert flow.immediates == wanted[: len(flow.immediates)]
            requester = flow.qp.requester
            assert requester.una <= requester.nxt <= requester.top
            assert requester.nxt - requester.una <= requester._window
            assert requester.una <= flow.remote.responder.epsn <= requester.top

    def teardown(self) -> None:
        if not hasattr(self, "wire"):
            return
        self.heal()
        # At DCQCN's least rate, a thousandth of the line, a packet takes many round trips.
        self.wire.run(
            self.wire.now_ns + 20_000 * self.wire.base_rtt_ns, stop=lambda: all(flow.finished for flow in self.flows)
        )
        for flow in self.flows:
            assert flow.finished, flow.qp.counters()
            check(flow)


def check(flow: Flow) -> None:
    """Completions by the rules, and memory as written."""
    statuses = [flow.statuses[number] for number in flow.posted]
    bad = [status for status in statuses if status is not CompletionStatus.SUCCESS]
    assert statuses == [CompletionStatus.SUCCESS] * (len(statuses) - len(bad)) + bad  # in order of posting
    if bad:
        assert (flow.qp.state, flow.qp.cause) == (QPState.ERROR, "no acknowledgement after 7 retries")
        assert bad[0] is CompletionStatus.RETRY_EXCEEDED
        assert set(bad[1:]) <= {CompletionStatus.FLUSHED}
    else:
        assert flow.qp.state is flow.remote.state is QPState.RTS
    untouched = bytearray(flow.sink)
    for number, (start, length, _) in flow.posted.items():
        end = start + length
        if flow.statuses[number] is CompletionStatus.SUCCESS:
            assert flow.sink[start:end] == flow.source[start:end]
        for at in range(start, end, PMTU):
            piece = slice(at, min(at + PMTU, end))
            assert flow.sink[piece] in (flow.source[piece], bytes(len(flow.sink[piece])))
        untouched[start:end] = bytes(length)
    assert not any(untouched)
    assert flow.guard == bytes(64)


TestTwoBaselineHosts = TwoBaselineHosts.TestCase
TestTwoBaselineHosts.settings = settings(
    max_examples=40, stateful_step_count=40, suppress_health_check=list(HealthCheck)
)


@pytest.mark.slow
def test_two_baseline_hosts_keep_the_rules_in_hundreds_of_stories() -> None:
    run_state_machine_as_test(TwoBaselineHosts, settings=settings(TestTwoBaselineHosts.settings, max_examples=400))
