"""QP hints: many queue pairs that begin together put no more on the line than one alone would."""

from dataclasses import dataclass

import pytest

from endpoint.mrc.hint import QpHint, QpHints
from endpoint.nic.attributes import BusyError, VerbError
from endpoint.transport import QueueFull
from tests.helpers.transport.bench import Bench
from tests.helpers.transport.flows import Flow
from tests.helpers.transport.virtual_wire import Wire

QPS, ROUND_TRIPS = 64, 20
GBPS = 1_000_000_000


@dataclass
class Start:
    """The first round trips: packets trimmed, and the goodput as a share of what the planes carry."""

    trims: int
    goodput: float


def begin(senders: int, hint: dict[str, int]) -> tuple[Wire, list[Flow]]:
    """64 QPs to h0 from as many hosts. Every NIC gets the hint as its first, so its number is 1 everywhere."""
    wire = Wire(hosts=senders + 1, rate_bps=100 * GBPS, delay_ns=2_000, rcv_penalty=True)
    for transport in wire.transports.values():
        assert transport.control.create_qp_hint(**hint) == 1
    flows = [Flow(wire, f"h{1 + number % senders}", "h0", size=1 << 16, qp_hint=1) for number in range(QPS)]
    return wire, flows


def start(senders: int, hint: dict[str, int]) -> Start:
    wire, flows = begin(senders, hint)
    for flow in flows:
        flow.keep_posted(1 << 16, 64, 10_000 * wire.base_rtt_ns)
    wire.run(ROUND_TRIPS * wire.base_rtt_ns)
    received = sum(flow.remote.responder.received_bytes for flow in flows)
    return Start(
        trims=sum(link.trimmed for link in wire.links.values()),
        goodput=received / (4 * 100 * GBPS * wire.now_ns / 8e9 * 4096 / 4234),
    )


ONE_SENDER = {"num_qps_per_peer": QPS}
EIGHT_SENDERS = {"num_qps_per_peer": QPS // 8, "num_remote_recv_peers": QPS}


@pytest.mark.parametrize(("senders", "hint"), [(1, ONE_SENDER), (8, EIGHT_SENDERS)])
def test_each_qp_begins_with_its_share_of_the_first_window(senders: int, hint: dict[str, int]) -> None:
    wire, flows = begin(senders, hint)
    _, alone = begin(senders, {})
    whole = alone[0].qp.requester.cc.window_bytes
    assert whole == pytest.approx(1.5 * 4 * 100 * GBPS * wire.base_rtt_ns / 8e9, rel=0.01)
    for flow in flows:
        assert flow.qp.requester.cc.window_bytes == max(whole // QPS, 4096)


def test_hints_keep_an_incast_of_64_queue_pairs_from_being_trimmed() -> None:
    with_hints, without = start(8, EIGHT_SENDERS), start(8, {})
    assert with_hints.trims < without.trims / 5
    assert with_hints.goodput > 0.9 * without.goodput


@pytest.mark.parametrize(
    ("given", "sharers"),
    [
        ({}, 1),
        ({"num_qps_per_peer": 4}, 4),
        ({"num_qps_per_peer": 4, "num_send_peers": 3}, 12),
        ({"num_qps_per_peer": 2, "num_send_peers": 3, "num_remote_recv_peers": 5}, 6),
        ({"num_remote_recv_peers": 7}, 7),
    ],
)
def test_the_busier_of_the_two_lines_counts(given: dict[str, int], sharers: int) -> None:
    assert QpHint(**given).sharers == sharers


def test_hints_are_made_queried_modified_and_destroyed() -> None:
    bench = Bench()
    nic = bench.a
    number = nic.control.create_qp_hint(num_qps_per_peer=4)
    nic.control.modify_qp_hint(number, num_send_peers=3)
    assert nic.control.query_qp_hint(number) == QpHint(4, 3, 1)
    qp = nic.create_qp(bench.cq_a, qp_hint=number)
    with pytest.raises(BusyError, match=f"hint {number} is in use by QPs"):
        nic.control.destroy_qp_hint(number)
    nic.destroy_qp(qp, 0)
    nic.control.destroy_qp_hint(number)
    with pytest.raises(VerbError, match=f"no QP hint {number}; present: 0 "):
        nic.control.query_qp_hint(number)


def test_a_nic_has_room_for_4096_hints() -> None:
    hints = QpHints()
    numbers = [hints.create({}) for _ in range(4096)]
    with pytest.raises(QueueFull, match="4096 QP hints; destroy one first"):
        hints.create({})
    hints.destroy(numbers[7])
    assert hints.create({}) not in numbers


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"num_qps": 3}, "no attribute 'num_qps'; valid: num_qps_per_peer, num_send_peers, num_remote_recv_peers"),
        ({"num_qps_per_peer": 0}, "num_qps_per_peer is 0; it must be an integer from 1 to 2147483647"),
        ({"num_send_peers": "4"}, "num_send_peers is '4'; it must be an integer"),
    ],
)
def test_a_hint_that_cannot_be_is_refused_by_name(given: dict[str, int], words: str) -> None:
    with pytest.raises(VerbError, match=words):
        Bench().a.control.create_qp_hint(**given)
