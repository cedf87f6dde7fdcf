"""Random loss against dead paths: what each costs, with few EVs and with many. The lab's rule of suspicion is on."""

import pytest

from tests.helpers.transport import Faults, Flow, Wire

GBPS = 1_000_000_000
PLANES = 4
WARM_UP, MEASURED = 50, 300
"""Round trips before a fault, and those that are measured."""
SICK = 2
"""The plane that fails."""


def busy(evs_per_plane: int, rate_bps: int) -> tuple[Wire, Flow]:
    """One QP that always has writes posted."""
    wire = Wire(planes=PLANES, evs_per_plane=evs_per_plane, rate_bps=rate_bps, plane_suspicion=True)
    flow = Flow(wire, size=1 << 20)
    flow.keep_posted(65_536, 64, 10_000 * wire.base_rtt_ns)
    return wire, flow


def goodput(wire: Wire, flow: Flow, round_trips: int, rate_bps: int) -> float:
    """Payload that arrives in the next round trips, as a share of what all planes carry."""
    return flow.goodput_bps(wire.now_ns + round_trips * wire.base_rtt_ns) / (PLANES * rate_bps * 4096 / 4234)


def under_loss(evs_per_plane: int, loss: float, rate_bps: int = 10 * GBPS) -> tuple[float, float]:
    """Goodput with this loss on every link, and the share of round trips in which a plane is missing."""
    wire, flow = busy(evs_per_plane, rate_bps)
    wire.disturb(loss=loss)
    wire.run(WARM_UP * wire.base_rtt_ns)
    parts, missing = [], 0
    for _ in range(MEASURED):
        parts.append(goodput(wire, flow, 1, rate_bps))
        missing += len(flow.qp.evs.live) < PLANES
    return sum(parts) / MEASURED, missing / MEASURED


def leaving(evs_per_plane: int, loss: float, rate_bps: int = 100 * GBPS) -> tuple[float, float]:
    """Round trips until a plane that begins to lose this share is left, and the goodput after that."""
    wire, flow = busy(evs_per_plane, rate_bps)
    wire.run(WARM_UP * wire.base_rtt_ns)
    for number in range(evs_per_plane):
        wire.links[SICK, f"p{SICK}s{number}"].faults = Faults(loss=loss)
    began_ns = wire.now_ns
    wire.run(
        began_ns + MEASURED * wire.base_rtt_ns, stop=lambda: all(plane.number != SICK for plane in flow.qp.evs.live)
    )
    left_ns = wire.now_ns
    return (left_ns - began_ns) / wire.base_rtt_ns, goodput(wire, flow, MEASURED // 3, rate_bps)


@pytest.mark.parametrize(
    ("evs_per_plane", "loss", "least"), [(1, 0.001, 0.97), (1, 0.01, 0.85), (4, 0.01, 0.93), (32, 0.01, 0.94)]
)
def test_random_loss_costs_little_more_than_what_is_lost(evs_per_plane: int, loss: float, least: float) -> None:
    share, missing = under_loss(evs_per_plane, loss)
    assert share >= least
    assert missing < 0.1


@pytest.mark.parametrize(("loss", "most"), [(1.0, 4.0), (0.5, 8.0)])
@pytest.mark.parametrize("evs_per_plane", [1, 4, 32])
def test_a_plane_that_fails_in_silence_is_left_within_a_few_round_trips(evs_per_plane, loss, most) -> None:
    round_trips, share = leaving(evs_per_plane, loss)
    assert round_trips <= most
    assert share > 0.73  # three planes of four carry on


@pytest.mark.parametrize("loss", [0.01, 0.03])
def test_no_plane_is_left_for_random_loss_however_many_evs_share_the_blame(loss: float) -> None:
    assert under_loss(32, loss)[1] == 0.0
