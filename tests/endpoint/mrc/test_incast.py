"""Seven senders, one receiver: fair, few trims once the penalty is known, and the switch queue stays bounded."""

import pytest

from endpoint.mrc.paths.penalty import ReceiverPenalty
from tests.helpers.transport import Flow, Wire


class Weight:
    def __init__(self) -> None:
        self.received_bytes = 0
        self.penalty_seen_bytes = 0
        self.penalty_weight = 0.0


@pytest.mark.parametrize(
    ("shares", "penalty"),
    [([1], 0), ([1, 1], 64), ([1] * 7, 110), ([1] * 128, 127), ([100, 1], 3), ([1, 1, 0, 0], 64), ([0, 0], 0)],
)
def test_the_penalty_follows_the_number_of_equal_senders(shares: list[int], penalty: int) -> None:
    rule = ReceiverPenalty(period_ns=100)
    weights = [Weight() for _ in shares]
    for weight in weights:
        rule.join(weight)
    now_ns = 0
    for _ in range(20):
        now_ns += 100
        for weight, share in zip(weights, shares, strict=True):
            weight.received_bytes += 1000 * share
        current = rule.at(now_ns)
    assert current == penalty


def test_the_penalty_forgets_senders_that_stopped() -> None:
    rule = ReceiverPenalty(period_ns=100)
    weights = [Weight() for _ in range(4)]
    for weight in weights:
        rule.join(weight)
    for now_ns in range(100, 1000, 100):
        for weight in weights:
            weight.received_bytes += 1000
        current = rule.at(now_ns)
    assert current == 96
    for now_ns in range(1000, 2000, 100):
        weights[0].received_bytes += 4000
        current = rule.at(now_ns)
    assert current < 3


def test_half_of_what_was_known_before_counts_a_period_later() -> None:
    """By the rule: 8000 beside 4000 + 8000 / 2 is two equal senders, 8000 beside 8000 / 4 after two periods is not."""
    rule = ReceiverPenalty(period_ns=100)
    steady, ended = Weight(), Weight()
    rule.join(steady)
    rule.join(ended)
    ended.received_bytes = 8000
    assert rule.at(1000) == 0
    ended.received_bytes += 4000
    steady.received_bytes = 8000
    assert rule.at(1100) == 64
    steady.received_bytes += 8000 - 2000  # with a quarter of 8000 it weighs 8000 again
    assert rule.at(1300) == round(128 * (1 - (8000**2 + 2000**2) / 10_000**2))


def incast(senders: int, round_trips: int, **settings: object) -> tuple[Wire, list[Flow], list[int], Flow]:
    wire = Wire(hosts=senders + 2, rate_bps=25_000_000_000, **settings)  # type: ignore[arg-type]
    target, bystander = f"h{senders}", f"h{senders + 1}"
    end_ns = round_trips * wire.base_rtt_ns
    flows = [Flow(wire, f"h{n}", target, seed=n) for n in range(senders)]
    victim = Flow(wire, "h0", bystander, seed=99)
    for flow in [*flows, victim]:
        flow.keep_posted(65_536, 16, end_ns)
    wire.run(end_ns // 3)
    for flow in [*flows, victim]:
        flow.poll()
    starts = [flow.remote.responder.received_bytes for flow in [*flows, victim]]
    wire.run(end_ns)
    gained = [
        flow.remote.responder.received_bytes - start for flow, start in zip([*flows, victim], starts, strict=True)
    ]
    wire.run(end_ns * 3, stop=lambda: all(flow.finished for flow in [*flows, victim]))
    return wire, flows, gained, victim


def test_seven_to_one_incast_is_fair_fills_the_receiver_and_leaves_a_victim_alone() -> None:
    wire, flows, gained, victim = incast(7, 300, rcv_penalty=True)
    duration_ns = 200 * wire.base_rtt_ns
    line = 4 * 25_000_000_000 * duration_ns // 8_000_000_000
    shares = gained[:-1]
    assert sum(shares) >= 0.9 * line * 4096 / 4238
    assert max(shares[1:]) <= 1.15 * min(shares[1:])
    # h0 also sends to the victim: its share of the incast suffers a little, the rest of its line is the victim's.
    assert shares[0] >= 0.6 * max(shares)
    assert gained[-1] >= 0.75 * line
    for flow in [*flows, victim]:
        flow.check()
        assert flow.qp.requester.timeouts == 0
        assert not flow.qp.evs.out_count
    # After the first window, which is sent at line rate, the penalty holds the queue under the trim threshold.
    trims = sum(flow.qp.requester.trims for flow in flows)
    assert trims <= 0.05 * sum(flow.qp.requester.data_packets for flow in flows)


def test_without_the_penalty_the_same_incast_trims_more() -> None:
    trims = []
    for penalty in (True, False):
        _, flows, _, _ = incast(7, 60, rcv_penalty=penalty)
        trims.append(sum(flow.qp.requester.trims for flow in flows))
    assert trims[0] < 0.7 * trims[1]
