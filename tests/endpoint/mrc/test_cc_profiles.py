"""Congestion-control profiles and QP hints: the API's names and ranges, chosen per QP; what they make of a window."""

import re
from dataclasses import dataclass
from typing import Any

import pytest

from benchmarks.rig.profiles import profile as profile_data
from endpoint import FORM
from endpoint.mrc.congestion.cc_profile import RANGES, NsccConfig
from endpoint.mrc.congestion.nscc import Nscc
from endpoint.mrc.endpoint import Endpoint
from endpoint.mrc.hint import QpHint, QpHints
from endpoint.nic.attributes import BusyError, VerbError
from endpoint.nic.config import ConfigError
from endpoint.transport import QueueFull
from tests.helpers.transport import Bench, Flow, Wire

API_NAMES = [
    *("disable_qa", "adjust_bytes_threshold", "adjust_period_threshold", "base_rtt", "eta", "fi", "fi_scale", "gamma"),
    *("max_md_jump", "max_cwnd", "qa_gate", "qa_threshold", "target_delay"),
]


def test_a_profile_has_the_thirteen_parameters_of_the_api() -> None:
    assert list(RANGES) == API_NAMES == list(NsccConfig.__dataclass_fields__)


def congestion(bench: Bench, **attributes: Any) -> Nscc:
    """The window control of a new connected QP of `a`."""
    cc = bench.pair(attributes)[0].requester.cc
    assert isinstance(cc, Nscc)
    return cc


def test_a_profile_is_chosen_per_qp_and_counts_for_qps_to_come() -> None:
    bench = Bench(nscc={"max_cwnd": 500_000})
    bench.a.control.modify_cc_profile(7, "uet-1.0-nscc", max_cwnd=100_000)
    assert congestion(bench, cc_profile_id=7).window_bytes == 100_000
    assert congestion(bench).window_bytes == 500_000
    before = congestion(bench, cc_profile_id=7)
    bench.a.control.modify_cc_profile(7, "uet-1.0-nscc", max_cwnd=200_000)
    assert before.window_bytes == 100_000
    assert congestion(bench, cc_profile_id=7).window_bytes == 200_000


def test_no_algorithm_is_no_congestion_control() -> None:
    bench = Bench()
    bench.a.control.modify_cc_profile(1, None)
    qp = bench.a.create_qp(bench.cq_a, cc_profile_id=1)
    qp.connect(bench.qp_b.info(), bench.now_ns)
    window = qp.requester.cc.window_bytes
    for _ in range(1000):
        qp.requester.cc.on_trim(bench.now_ns, 4096, 0)
    assert qp.requester.cc.window_bytes == window


def test_a_profile_that_nobody_made_is_refused() -> None:
    bench = Bench()
    bench.a.control.modify_cc_profile(7, "uet-1.0-nscc")
    with pytest.raises(VerbError, match="no congestion-control profile 8; present: 0, 7"):
        bench.a.create_qp(bench.cq_a, cc_profile_id=8)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"etta": 1.0}, "NSCC has no parameter 'etta'; valid: disable_qa, adjust_bytes_threshold"),
        ({"gamma": 1.5}, "NSCC's gamma is 1.5; it must be from 0.0 to 1.0"),
        ({"qa_gate": 2.5}, "NSCC's qa_gate is 2.5; it must be an integer"),
        ({"disable_qa": 1}, "NSCC's disable_qa is 1; it must be true or false"),
        ({"max_cwnd": 1 << 32}, "NSCC's max_cwnd is 4294967296; it must be from 1 to 4294967295"),
        ({"fi": "much"}, "NSCC's fi is 'much'; it must be a number"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused_by_name(config: dict[str, Any], words: str) -> None:
    bench = Bench()
    with pytest.raises(ConfigError, match=re.escape(words)):
        bench.a.control.modify_cc_profile(7, "uet-1.0-nscc", **config)
    with pytest.raises(ConfigError, match=re.escape(words)):
        Endpoint(bench.a.profile, rng=bench.a.rng, nscc=config)
    with pytest.raises(ConfigError, match="no congestion control 'x'; valid: nscc, fixed_window"):
        bench.a.control.modify_cc_profile(7, "x")


def test_settings_take_an_object_for_nscc_and_nothing_else() -> None:
    with pytest.raises(ConfigError, match="nscc is 3; it must be an object"):
        Bench(nscc=3)


def test_the_round_trip_of_a_neighbour_makes_its_window() -> None:
    bench = Bench()
    rows = [(name, row) for host in (0, 1) for name, row in profile_data(host)["destinations"].items()]
    near = Bench(changes={"destinations": {name: {**row, "base_rtt_ns": bench.base_rtt_ns // 2} for name, row in rows}})
    assert near.qp_a.requester.cc.window_bytes * 2 == bench.qp_a.requester.cc.window_bytes


@pytest.mark.skipif(FORM.compiled, reason="a method of a compiled class cannot be replaced")
def test_acknowledgements_of_retransmissions_reach_the_window_control(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 5 % loss most bytes are acknowledged by SACKs that a retransmission caused: they count all the same."""
    fed: list[tuple[int, int | None]] = []
    original = Nscc.on_ack

    def watch(cc: Nscc, now_ns: int, acked: int, rtt_ns: int | None, marked: bool, inflight: int) -> None:
        fed.append((acked, rtt_ns))
        original(cc, now_ns, acked, rtt_ns, marked, inflight)

    monkeypatch.setattr(Nscc, "on_ack", watch)
    wire = Wire(seed=7)
    flow = Flow(wire, size=1 << 20)
    wire.disturb(loss=0.05)
    flow.post(60_000, times=60)
    flow.finish(4000)
    assert sum(acked for acked, _ in fed) == flow.qp.requester.acked_bytes == 60 * 60_000
    assert sum(acked for acked, rtt_ns in fed if rtt_ns is None) > 0.2 * 60 * 60_000


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
