"""Congestion-control profiles: the API's names and ranges, chosen per QP; what a QP feeds into its window."""

import re
from typing import Any

import pytest

from endpoint import FORM
from endpoint.mrc.congestion.cc_profile import RANGES, NsccConfig
from endpoint.mrc.congestion.nscc import Nscc
from endpoint.mrc.endpoint import Endpoint
from endpoint.nic.attributes import VerbError
from endpoint.nic.config import ConfigError
from tests.helpers.transport.bench import Bench
from tests.helpers.transport.flows import Flow
from tests.helpers.transport.virtual_wire import Wire

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
    near = Bench(changes={"destinations": {**_destinations(bench, bench.base_rtt_ns // 2)}})
    assert near.qp_a.requester.cc.window_bytes * 2 == bench.qp_a.requester.cc.window_bytes


def _destinations(bench: Bench, base_rtt_ns: int) -> dict[str, Any]:
    """The destinations of both profiles, as JSON, with another round trip."""
    found: dict[str, Any] = {}
    for profile in (bench.a.profile, bench.b.profile):
        for name, row in profile.destinations.items():
            paths = [
                {"ev": path.ev, "port": path.port, "plane": path.plane, "via": path.via, "da": str(path.da)}
                for path in row.paths
            ]
            address = str(row.address)
            found[name] = {"index": row.index, "address": address, "base_rtt_ns": base_rtt_ns, "paths": paths}
    return found


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
